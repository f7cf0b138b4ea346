// A market maker over the event stream: it quotes on both sides, and lives through losses.
//
//	npm install socket.io-client
//	EXCHANGE_KEY=demo-alice EXCHANGE_SECRET=demo-alice-secret \
//	  node market_maker.mjs http://127.0.0.1:8080 BTC_USDT 50000 0.01
//
// The arguments are the address, the pair, the first price, and the amount of a quote. The address may be several, with
// commas: of nodes, of which each new connection takes the next. The account is the maker's alone.
// Ctrl-C ends it: it cancels its orders, and sells what it has bought.
import { createHmac } from "node:crypto";
import { io } from "socket.io-client";
import { DepthBook } from "./depth_book.mjs";

const [list, pair, price, size] = process.argv.slice(2).map((x) => (isNaN(x) ? x : Number(x)));
const addresses = list.split(",");
const { EXCHANGE_KEY: key, EXCHANGE_SECRET: secret } = process.env;
const [coin, money] = pair.split("_");
const sign = (text) => createHmac("sha256", secret).update(text).digest("hex");
const exact = (x) => Number(x.toFixed(8)); // binary floating point has no decimals: sums are rounded to what the exchange has
let name = Date.now();

// What the account has, by the event own, and its trades since the maker began.
class Account {
	sequence = null; // of the last event
	newest = 0; // trade of the pair, of all accounts, as of the last snapshot
	snapshots = 0;
	lastTrade = 0;
	balances = {};
	orders = new Map();
	trades = new Map();
	#parts = [];

	// false: an event is missing. Start over.
	apply(event) {
		this.#parts = event.part > 1 ? [...this.#parts, event] : [event];
		if (event.part < event.parts) return true; // an event is applied with its last part
		if (event.snapshot) {
			this.orders.clear();
			this.snapshots++;
			this.newest = event.last_trades[pair] ?? 0;
			if (this.sequence === null) this.lastTrade = this.newest;
		} else if ((event.prev ?? 0) !== this.sequence) return false;
		if (this.orders.size > 1000) this.orders = new Map(this.open().map((o) => [o.id, o]));
		for (const { orders, balances, trades } of this.#parts) {
			for (const order of orders) this.orders.set(order.id, order);
			for (const balance of balances) this.balances[balance.currency] = balance;
			this.traded(trades ?? []);
		}
		if (this.sequence === null) this.begin = this.balances[coin].balance;
		this.sequence = event.sequence;
		return true;
	}

	traded(trades) {
		for (const trade of trades) {
			this.trades.set(trade.id, trade);
			this.lastTrade = Math.max(this.lastTrade, trade.id);
		}
	}

	open = () => [...this.orders.values()].filter((order) => order.status === 1);
	free = (currency) => exact(this.balances[currency].balance - this.balances[currency].reserve);
	position = () => exact(this.balances[coin].balance - this.begin);

	// Whether the events have come to the answer to a command.
	shows({ oid, price }) {
		const order = this.orders.get(oid);
		return order !== undefined && (order.status !== 1 || order.price === price);
	}
}

const account = new Account();
const unknown = new Set(); // client order ids of which no answer came
const shown = { connects: 0, resumed: 0, done: false };
let ending = false;
let earlier; // id of the last socket that was logged in
let changed = () => {};
const change = () => new Promise((resolve) => ((changed = resolve), setTimeout(resolve, 1000)));
const socket = io(addresses[0], { path: "/socket.v2/", transports: ["websocket"], reconnectionDelay: 50, reconnectionDelayMax: 500 });
const book = new DepthBook(socket, pair);
book.onChange = () => changed();
process.on("SIGINT", () => ((ending = true), changed()));
socket.on("connect_error", (error) => console.error(`connecting again: ${error.message}`));
for (const event of ["disconnect", "connect_error"])
	socket.on(event, () => {
		addresses.push(addresses.shift());
		socket.io.uri = addresses[0]; // of the next connection
	});
socket.on("login.end", (end) => again(end.detail));
socket.on("own", (event) => (account.apply(event) ? changed() : again("an event is missing")));
socket.on("connect", live);

// Has the client connect again.
function again(reason) {
	console.error(reason);
	socket.disconnect().connect();
}

// Returns status and body. An error says nothing of what became of the request. A socket without a connection would keep
// the request and send it later, so it is not asked.
async function ask(event, ...fields) {
	if (!socket.connected) throw new Error(`${event} was not sent`);
	const answer = await socket.timeout(10_000).emitWithAck(event, ...fields);
	if (answer.retry_after) await new Promise((resolve) => setTimeout(resolve, 1000));
	return answer;
}

async function must(event, ...fields) {
	const answer = await ask(event, ...fields);
	if ((answer.status ?? 200) !== 200) throw new Error(`${event}: ${JSON.stringify(answer)}`);
	return answer.body ?? answer;
}

// Logs in, takes up what was before, and quotes until the connection is lost.
async function live() {
	const here = socket.id;
	try {
		const { challenge } = await must("challenge");
		// From the answer on, nothing of the earlier socket is in flight. The orders of a maker that
		// is gone for 30 seconds are cancelled.
		await must("login", { key, sign: sign(`login\n${key}\n${challenge}`), ends: earlier,
			cancel_on_disconnect: 30, pair });
		earlier = here;
		shown.connects++;
		await follow();
		const { pairs } = await get("/api/v1/exchange-info/");
		const rules = pairs.find((p) => p.name === pair);
		while (socket.id === here && !shown.done) {
			await resolve();
			await (ending ? flatten() : quote(rules));
			show();
			if (!shown.done) await change();
		}
		if (shown.done) socket.disconnect();
	} catch (error) {
		if (socket.id === here) again(error.message);
	}
}

// Subscribes to the account, from its last event on if that is possible.
async function follow() {
	const { snapshots, sequence } = account;
	const { resumed } = await must("own.subscribe", { after: sequence });
	if (resumed) return void shown.resumed++;
	while (account.snapshots === snapshots && socket.connected) await change();
	while (account.lastTrade < account.newest) { // trades that were missed, up to the snapshot
		const rows = await get(`/api/v1/exchanges/own/?pair=${pair}&after=${account.lastTrade}`);
		const missed = rows.filter((trade) => trade.id <= account.newest);
		if (missed.length === 0) break;
		account.traded(missed);
	}
}

// Reads by REST, signed; once more if another program has used a greater nonce of the key.
let nonce = 0n;
async function get(path, again = true) {
	const now = BigInt(Date.now());
	nonce = now > nonce ? now : nonce + 1n;
	const headers = { "X-KEY": key, "X-SIGN": sign(key), "X-NONCE": String(nonce) };
	const response = await fetch(addresses[0] + path, { headers });
	if (response.ok) return response.json();
	const text = await response.text(), last = /"code":"nonce","last":(\d+)/.exec(text)?.[1];
	if (!last || !again) throw new Error(`${path}: ${response.status} ${text}`);
	if (BigInt(last) > nonce) nonce = BigInt(last);
	return get(path, false);
}

// Ends orders of which no answer came. One that is not found now was never carried out.
async function resolve() {
	for (const id of unknown) {
		const { status } = await ask("order-cancel", { client_order_id: id });
		if (status === 200 || status === 400) unknown.delete(id);
	}
}

// Carries out commands, in a batch if there are several, until the account shows them.
async function carryOut(commands) {
	for (const { client_order_id: id } of commands) if (id) unknown.add(id);
	let answers;
	if (commands.length === 1) {
		const { do: what, ...fields } = commands[0];
		answers = [await ask({ place: "order", amend: "order-amend" }[what], fields)];
	} else {
		const answer = await ask("order-batch", { orders: commands });
		answers = answer.status === 200 ? answer.body.results : commands.map(() => answer);
	}
	for (const [i, { status, body }] of answers.entries()) {
		if (body.code !== "outcome_unknown") unknown.delete(commands[i].client_order_id);
		const until = Date.now() + 5000;
		while (status < 300 && !account.shows(body) && socket.connected && Date.now() < until) await change();
	}
}

// Has an order on each side of a price that falls as the maker holds more.
async function quote({ price_tick: tick, amount_step: step }) {
	const spread = price / 1000;
	const middle = price - (spread * account.position()) / size / 10;
	const [bid] = book.levels("buy"), [offer] = book.levels("sell");
	const sides = {
		buy: { price: Math.min(middle - spread, offer ? offer[0] - tick : Infinity), most: account.free(money) / price },
		sell: { price: Math.max(middle + spread, bid ? Number(bid[0]) + tick : 0), most: account.free(coin) },
	};
	const commands = [];
	for (const [type, wish] of Object.entries(sides)) {
		const at = exact(Math.round(wish.price / tick) * tick);
		const amount = exact(Math.floor(Math.min(size, wish.most) / step + 1e-6) * step);
		const order = account.open().find((o) => o.type === type);
		if (order && order.price !== at) commands.push({ do: "amend", order: order.id, price: at });
		if (!order && amount > 0) commands.push({ do: "place", pair, type, price: at, amount, post_only: 1, client_order_id: `maker-${name++}` });
	}
	if (commands.length > 0) await carryOut(commands);
}

// Takes all orders back, and trades until the account has the coins that it began with.
async function flatten() {
	const position = account.position();
	if (account.open().length > 0) await ask("order-cancel-all", { pair });
	else if (position !== 0)
		await carryOut([{ do: "place", pair, type: position > 0 ? "sell" : "buy", order_type: "market", amount: Math.abs(position), client_order_id: `maker-${name++}` }]);
	else shown.done = unknown.size === 0;
}

// Prints what the maker knows, in a line of JSON.
function show() {
	const traded = { buy: 0, sell: 0 };
	for (const trade of account.trades.values()) traded[trade.my_side] = exact(traded[trade.my_side] + trade.amount);
	console.log(
		JSON.stringify({
			address: addresses[0],
			sequence: account.sequence,
			update_id: book.updateId,
			checksum: book.updateId === null ? null : book.checksum(),
			trades: account.trades.size,
			bought: traded.buy,
			sold: traded.sell,
			...shown,
			balances: Object.fromEntries(Object.values(account.balances).map((b) => [b.currency, [b.balance, b.reserve]])),
			orders: Object.fromEntries(account.open().map((o) => [o.id, [o.type, String(o.price), String(o.amount)]])),
		}),
	);
}
