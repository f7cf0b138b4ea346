"""A market maker over the event stream: it quotes on both sides, and lives through losses.

    EXCHANGE_KEY=demo-alice EXCHANGE_SECRET=demo-alice-secret \
        python3 market_maker.py http://127.0.0.1:8080 BTC_USDT 50000 0.01

The arguments are the address, the pair, the first price, and the amount of a quote. The address may
be several, with commas: of nodes, of which each new connection takes the next. The account is the
maker's alone. Ctrl-C ends it: it cancels its orders, and sells what it has bought. It needs
python-socketio and aiohttp (Debian: python3-socketio, python3-aiohttp).
"""
import asyncio, contextlib, hashlib, hmac, itertools, json, os, re, signal, sys, time, types, zlib
from decimal import Decimal as D
import aiohttp, socketio

ADDRESSES, PAIR, PRICE, SIZE = sys.argv[1].split(","), sys.argv[2], *map(D, sys.argv[3:5])
KEY, SECRET = os.environ["EXCHANGE_KEY"], os.environ["EXCHANGE_SECRET"]
COIN, MONEY = PAIR.split("_")
exact = types.SimpleNamespace(dumps=lambda v, **k: json.dumps(v, default=str, **k),  # decimals stay
                              loads=lambda s, **k: json.loads(s, parse_float=D))
def sign(text): return hmac.new(SECRET.encode(), text.encode(), hashlib.sha256).hexdigest()
def note(text): print(text, file=sys.stderr, flush=True)

class Book:
    """The pair's order book by the channel depth: prices and amounts are texts, as they come."""
    update_id, buy, sell = None, {}, {}

    def apply(self, event):
        """False: the event does not follow, or the book is not the exchange's. Subscribe again."""
        if event.get("snapshot"):
            self.buy, self.sell = {}, {}
        elif self.update_id is None:
            return True  # the whole book is in flight
        elif event["prev_update_id"] != self.update_id:
            return False
        for side, levels in (("buy", self.buy), ("sell", self.sell)):
            for level in event[side]:
                levels.pop(level["price"], None)
                if level["amount"] != "0":
                    levels[level["price"]] = level["amount"]
        self.update_id = event["update_id"]
        return event.get("checksum", self.checksum()) == self.checksum()

    def checksum(self):
        sides = (sorted(self.buy.items(), key=lambda l: -D(l[0])),
                 sorted(self.sell.items(), key=lambda l: D(l[0])))
        texts = [":".join(l[i]) for i in range(10) for l in sides if i < len(l)]
        return zlib.crc32(":".join(texts).encode())

class Account:
    """What the account has, by the event own, and its trades since the maker began."""
    sequence, newest, last_trade = None, 0, 0  # of events; of all trades of the pair; of own ones

    def __init__(self):
        self.balances, self.orders, self.trades, self.parts = {}, {}, {}, []

    def apply(self, event):
        """False: an event is missing. Subscribe again."""
        self.parts = self.parts + [event] if event.get("part", 1) > 1 else [event]
        if event.get("part", 1) < event.get("parts", 1):
            return True  # an event is applied with its last part
        if event.get("snapshot"):
            self.orders, self.newest = {}, event["last_trades"].get(PAIR, 0)
            self.last_trade = self.newest if self.sequence is None else self.last_trade
        elif (event["prev"] or 0) != self.sequence:
            return False
        if len(self.orders) > 1000:
            self.orders = {o["id"]: o for o in self.open()}
        for part in self.parts:
            self.balances.update((b["currency"], b) for b in part["balances"])
            self.orders.update((o["id"], o) for o in part["orders"])
            self.traded(part.get("trades", []))
        if self.sequence is None:
            self.begin = self.has(COIN)
        self.sequence = event["sequence"]
        return True

    def traded(self, rows):
        for trade in rows:
            self.trades[trade["id"]] = trade
            self.last_trade = max(self.last_trade, trade["id"])

    def open(self):
        return [o for o in self.orders.values() if o["status"] == 1]

    def has(self, currency, part="balance"):
        return D(self.balances[currency][part])

    def position(self):
        """What was bought since the first snapshot, less what was sold."""
        return self.has(COIN) - self.begin

    def shows(self, answer):
        """Whether the events have come to the answer to a command."""
        order = self.orders.get(answer.get("oid"))
        return order and (order["status"] != 1 or order["price"] == answer["price"])

class Maker:
    account, ids, unknown, nonce = Account(), itertools.count(time.time_ns()), set(), 0
    earlier, connects, resumed, done, ending = None, 0, 0, False, False

    async def run(self):
        for self.address in itertools.cycle(ADDRESSES):
            if self.done:
                break
            self.lost, self.changed = asyncio.Event(), asyncio.Event()
            self.http = aiohttp.ClientSession()
            self.sio = socketio.AsyncClient(reconnection=False, json=exact, http_session=self.http)
            self.sio.on("disconnect", self.lost.set)
            self.sio.on("login.end", lambda end: note(end["detail"]) or self.lost.set())
            try:
                await self.sio.connect(self.address, transports=["websocket"],
                                       socketio_path="socket.v2")
                asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self.end)
                await self.live()
            except (socketio.exceptions.SocketIOError, aiohttp.ClientError, OSError) as e:
                note(f"connecting again: {e}")
            await self.sio.disconnect()
            await self.http.close()
            await asyncio.sleep(0.1)

    def end(self):
        self.ending = True
        self.changed.set()

    async def ask(self, event, fields=None):
        """Returns status and body. An error says nothing of what became of the request."""
        answer = asyncio.get_running_loop().create_future()
        await self.sio.emit(event, fields, callback=lambda a: answer.done() or answer.set_result(a))
        lost = asyncio.ensure_future(self.lost.wait())
        await asyncio.wait({answer, lost}, timeout=10, return_when=asyncio.FIRST_COMPLETED)
        lost.cancel()
        if not answer.done():
            raise ConnectionError(f"{event} was not answered")
        answer = answer.result()
        if answer.get("retry_after"):
            await asyncio.sleep(min(answer["retry_after"], 1))
        return answer.get("status"), answer.get("body", answer)

    async def must(self, event, fields=None):
        status, body = await self.ask(event, fields)
        if status not in (None, 200):
            raise ConnectionError(f"{event}: {status} {body}")
        return body

    async def live(self):
        """Logs in, takes up what was before, and quotes until the connection is lost."""
        challenge = (await self.must("challenge"))["challenge"]
        login = {"key": KEY, "sign": sign(f"login\n{KEY}\n{challenge}"),
                 "cancel_on_disconnect": 30, "pair": PAIR}  # unless it is back by then
        if self.earlier:  # from the answer on, nothing of that socket is in flight
            login["ends"] = self.earlier
        await self.must("login", login)
        self.earlier = self.sio.get_sid()
        self.connects += 1
        pairs = (await self.get("/api/v1/exchange-info/"))["pairs"]
        self.tick, self.step = next((D(p["price_tick"]), D(p["amount_step"])) for p in pairs
                                    if p["name"] == PAIR)
        await self.follow()
        while not (self.lost.is_set() or self.done):
            self.changed.clear()
            await self.resolve()
            await (self.flatten() if self.ending else self.quote())
            self.show()
            if not self.done:
                await self.change()

    async def change(self):
        """Waits for an event, for a second at most."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.changed.wait(), 1)
        self.changed.clear()

    async def follow(self):
        """Subscribes to the account, from its last event on if that is possible, and the book."""
        self.book, fresh = Book(), asyncio.Event()
        def own(event):
            if not self.account.apply(event):
                self.lost.set()  # start over
            if event.get("snapshot"):
                fresh.set()
            self.changed.set()
        def depth(event):
            if not self.book.apply(event):
                self.book.update_id = None
                asyncio.ensure_future(self.sio.emit("subscribe", f"depth.{PAIR}"))
            self.changed.set()
        self.sio.on("own", own)
        self.sio.on("depth", depth)
        body = await self.must("own.subscribe", {"after": self.account.sequence})
        if body["resumed"]:
            self.resumed += 1
        else:
            await asyncio.wait_for(fresh.wait(), 10)
            while self.account.last_trade < self.account.newest and await self.page():
                pass
        await self.sio.emit("subscribe", f"depth.{PAIR}")

    async def page(self):
        """Reads trades that were missed: from the last one that is known to the snapshot's."""
        path = f"/api/v1/exchanges/own/?pair={PAIR}&after={self.account.last_trade}"
        rows = [t for t in await self.get(path) if t["id"] <= self.account.newest]
        self.account.traded(rows)
        return rows

    async def get(self, path, again=True):
        """Reads by REST, signed; once more if another program has used a greater nonce."""
        self.nonce = max(self.nonce + 1, time.time_ns() // 1_000_000)
        headers = {"X-KEY": KEY, "X-SIGN": sign(KEY), "X-NONCE": str(self.nonce)}
        async with self.http.get(self.address + path, headers=headers) as r:
            text = await r.text()
        last = re.search(r'"code":"nonce","last":(\d+)', text) if r.status == 401 else None
        if last and again:
            self.nonce = max(self.nonce, int(last[1]))
            return await self.get(path, again=False)
        if r.status != 200:
            raise ConnectionError(f"{path}: {r.status} {text}")
        return exact.loads(text)

    async def resolve(self):
        """Ends orders of which no answer came. One that is not found now was never carried out."""
        for name in list(self.unknown):
            status, body = await self.ask("order-cancel", {"client_order_id": name})
            if status in (200, 400):
                self.unknown.remove(name)

    async def carry_out(self, commands):
        """Carries out commands, in a batch if there are several, until the account shows them."""
        self.unknown |= {c["client_order_id"] for c in commands if "client_order_id" in c}
        if len(commands) == 1:
            fields = dict(commands[0])
            event = {"place": "order", "amend": "order-amend"}[fields.pop("do")]
            answers = [await self.ask(event, fields)]
        else:
            status, body = await self.ask("order-batch", {"orders": commands})
            answers = [(status, body)] * len(commands)
            if status == 200:
                answers = [(r["status"], r["body"]) for r in body["results"]]
        for command, (status, body) in zip(commands, answers):
            if body.get("code") != "outcome_unknown":
                self.unknown.discard(command.get("client_order_id"))
            until = time.monotonic() + 5
            while status in (200, 201) and not self.account.shows(body) and \
                    not self.lost.is_set() and time.monotonic() < until:
                await self.change()

    async def quote(self):
        """Has an order on each side of a price that falls as the maker holds more."""
        spread = PRICE / 1000
        middle = PRICE - spread * self.account.position() / SIZE / 10
        money = self.account.has(MONEY) - self.account.has(MONEY, "reserve")
        coins = self.account.has(COIN) - self.account.has(COIN, "reserve")
        commands = []
        for side, price, most in (("buy", middle - spread, money / PRICE),
                                  ("sell", middle + spread, coins)):
            price = self.beside(side, price // self.tick * self.tick)
            amount = min(SIZE, most) // self.step * self.step
            order = next((o for o in self.account.open() if o["type"] == side), None)
            if order and order["price"] != price:
                commands.append({"do": "amend", "order": order["id"], "price": price})
            elif not order and amount > 0:
                commands.append({"do": "place", "pair": PAIR, "type": side, "price": price,
                                 "amount": amount, "post_only": 1,
                                 "client_order_id": f"maker-{next(self.ids)}"})
        if commands:
            await self.carry_out(commands)

    def beside(self, side, price):
        """The price, or the next one at which an order of the side would not trade at once."""
        if side == "buy" and self.book.sell:
            return min(price, min(map(D, self.book.sell)) - self.tick)
        if side == "sell" and self.book.buy:
            return max(price, max(map(D, self.book.buy)) + self.tick)
        return price

    async def flatten(self):
        """Takes all orders back, and trades until the account has the coins that it began with."""
        side = "sell" if self.account.position() > 0 else "buy"
        amount = abs(self.account.position()) // self.step * self.step
        if self.account.open():
            await self.ask("order-cancel-all", {"pair": PAIR})
        elif amount > 0:
            await self.carry_out([{"do": "place", "pair": PAIR, "type": side,
                                   "order_type": "market", "amount": amount,
                                   "client_order_id": f"maker-{next(self.ids)}"}])
        else:
            self.done = not self.unknown

    def show(self):
        """Prints what the maker knows, in a line of JSON."""
        a, traded = self.account, {"buy": D(0), "sell": D(0)}
        for t in a.trades.values():
            traded[t["my_side"]] += t["amount"]
        print(exact.dumps({
            "address": self.address, "sequence": a.sequence, "update_id": self.book.update_id,
            "checksum": self.book.update_id and self.book.checksum(), "trades": len(a.trades),
            "bought": traded["buy"], "sold": traded["sell"], "connects": self.connects,
            "resumed": self.resumed, "done": self.done,
            "balances": {c: [D(b["balance"]), D(b["reserve"])] for c, b in a.balances.items()},
            "orders": {o["id"]: [o["type"], D(o["price"]), D(o["amount"])] for o in a.open()},
        }), flush=True)

asyncio.run(Maker().run())
