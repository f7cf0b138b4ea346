// Subscribers of the event stream that compare their data with REST, while others trade and the exchange may
// restart:
//
//	node stream.mjs ADDRESS PAIR
//
// It runs until its standard input ends, compares once more when all is quiet, and prints its counts. Differences end
// it with 1. A line on its standard input says that the market rests: it compares the book of each subscriber with
// REST's, and prints "looked".
import { createInterface } from "node:readline";
import { io } from "socket.io-client";
import { DepthBook } from "../../docs/examples/depth_book.mjs";
import { LocalBook } from "../../docs/examples/local_book.mjs";

const [base, pair] = process.argv.slice(2);
const kept = 20_000; // states of a book that are remembered
// Looks at distances of 10 ms. A client whose node dies while it turns from polling to a websocket does not poll any
// more, and sees only by the silence (45 s) that it must connect again.
const patience = 9000;
const report = { compared: 0, tops: 0, bests: 0, depths: 0, checksums: 0, trades: 0, fulls: 0, candles: 0, statuses: 0, connects: 0, errors: [] };
const wrong = (text) => report.errors.length < 20 && report.errors.push(text);
const text = (sell, buy) => JSON.stringify([sell, buy]);

async function get(path) {
	// Without a limit fetch may wait without end for an exchange that was killed.
	const response = await fetch(`${base}/api/v1/${path}`, { signal: AbortSignal.timeout(10_000) });
	if (!response.ok) throw new Error(`${path}: ${response.status}`);
	return { id: Number(response.headers.get("X-Update-Id")), body: await response.json() };
}

async function book() {
	const { id, body } = await get(`orderbook/${pair}/?group=1`);
	const levels = (side) => body[side].map(({ price, amount }) => [price, amount]);
	return { id, text: text(levels("sell"), levels("buy")) };
}

class Subscriber {
	states = new Map(); // update id to book, as text
	tops = new Map(); // update id to the event orderbook.20
	bests = new Map(); // update id to the event bbo
	depths = new Map(); // update id to the book of depth, as text
	trades = []; // of this connection
	fulls = [];
	candle = null; // the newest of this connection
	waiting = []; // what REST answered for an update id that is still to come

	constructor(name, options) {
		this.name = name;
		this.socket = io(base, { reconnectionDelay: 50, reconnectionDelayMax: 200, forceNew: true, ...options });
		this.socket.on("connect", () => {
			report.connects++;
			this.trades = [];
			this.fulls = [];
			this.candle = null;
			this.socket.emit("subscribe", `trades.${pair}`, [`orderbook.20.${pair}`, `bbo.${pair}`], `trades.full.${pair}`, `candles.D.${pair}`, "status");
		});
		this.socket.on("subscribe.error", (e) => wrong(`${name}: ${JSON.stringify(e)}`));
		this.socket.on("trades", (trade) => this.trades.push(trade));
		this.socket.on("trades.full", (trade) => this.fulls.push(trade));
		this.socket.on("candles", (candle) => (this.candle = candle));
		this.socket.on("status", (status) => {
			report.statuses++;
			if (!status.snapshot || status.maintenance !== null || status.halted.length > 0) wrong(`${name}: ${JSON.stringify(status)}`);
		});
		this.socket.on("orderbook.20", (top) => {
			this.tops.set(top.update_id, top);
			this.#compareTops();
		});
		this.socket.on("bbo", (best) => {
			this.bests.set(best.update_id, best);
			this.#compareTops();
		});
		this.depth = new DepthBook(this.socket, pair);
		this.depth.onDifference = ({ updateId }) => wrong(`${name}: the checksum of depth ${updateId} differs`);
		this.depth.onChange = (book) => {
			const levels = (side) => book.levels(side).map((level) => level.map(Number));
			this.depths.set(book.updateId, text(levels("sell"), levels("buy")));
			if (this.depths.size > kept) this.depths.delete(this.depths.keys().next().value);
			this.#compareTops();
		};
		this.book = new LocalBook(this.socket, pair);
		this.book.onChange = ({ updateId }) => {
			this.states.set(updateId, text(this.book.levels("sell"), this.book.levels("buy")));
			if (this.states.size > kept) this.states.delete(this.states.keys().next().value);
			this.waiting = this.waiting.filter((shown) => shown.id > updateId || this.#compare(shown));
			this.#compareTops();
		};
	}

	// A state of before the subscription, or one that a whole book has taken the place of, is not known here.
	#compare(shown) {
		const own = this.states.get(shown.id);
		if (own === undefined) return;
		report.compared++;
		if (own !== shown.text) wrong(`${this.name}: update ${shown.id} is\n${own} and shown as\n${shown.text}`);
	}

	shown(shown) {
		if (shown.id > (this.book.updateId ?? Infinity)) this.waiting.push(shown);
		else this.#compare(shown);
	}

	#compareTops() {
		for (const [id, top] of this.tops) {
			const own = this.states.get(id);
			if (own === undefined) continue;
			this.tops.delete(id);
			report.tops++;
			const [sell, buy] = JSON.parse(own);
			const levels = (side) => top[side].map(({ price, amount }) => [price, amount]);
			if (text(sell.slice(0, 20), buy.slice(0, 20)) !== text(levels("sell"), levels("buy"))) wrong(`${this.name}: top ${id} is ${JSON.stringify(top)}, of ${own}`);
		}
		for (const [id, best] of this.bests) {
			const own = this.states.get(id);
			if (own === undefined) continue;
			this.bests.delete(id);
			report.bests++;
			const [sell, buy] = JSON.parse(own);
			const level = (l) => (l === null ? [] : [[l.price, l.amount]]);
			if (text(sell.slice(0, 1), buy.slice(0, 1)) !== text(level(best.sell), level(best.buy))) wrong(`${this.name}: best ${id} is ${JSON.stringify(best)}, of ${own}`);
		}
		for (const [id, depth] of this.depths) {
			const own = this.states.get(id);
			if (own === undefined) continue;
			this.depths.delete(id);
			report.depths++;
			if (own !== depth) wrong(`${this.name}: depth ${id} is\n${depth} and diff\n${own}`);
		}
	}

	// The trades received since the connection must equal those of REST between the first and the last of them.
	compareTrades(all) {
		report.trades += this.#compareList("trades", this.trades, all);
		const orders = this.fulls.every((t) => t.maker_order > 0 && t.taker_order > 0 && t.taker_order !== t.maker_order);
		if (!orders) wrong(`${this.name}: a full trade has no orders`);
		report.fulls += this.#compareList("full trades", this.fulls.map(({ taker_order, maker_order, ...t }) => t), all);
	}

	#compareList(what, list, all) {
		const received = list.map((t) => JSON.stringify(t));
		if (received.length === 0) return 0;
		const first = list[0].id;
		const want = all.filter((t) => t.id >= first).map((t) => JSON.stringify(t));
		if (received.join() !== want.join()) wrong(`${this.name}: ${received.length} ${what} since ${first}, and REST has ${want.length}`);
		return received.length;
	}

	// The newest candle is the chart's newest.
	compareCandle(shown) {
		const { pair: of, timeframe, closed, ...candle } = this.candle ?? {};
		report.candles++;
		if (of !== pair || timeframe !== "D" || closed || JSON.stringify(candle) !== JSON.stringify(shown)) wrong(`${this.name}: the candle is ${JSON.stringify(this.candle)}, and shown as ${JSON.stringify(shown)}`);
	}
}

const subscribers = [
	new Subscriber("defaults", { path: "/socket.v2/" }),
	new Subscriber("defaults at the default path", {}),
	new Subscriber("websocket", { path: "/socket.v2/", transports: ["websocket"] }),
	new Subscriber("polling", { path: "/socket.v2/", transports: ["polling"] }),
];
let over = false;
let looks = 0; // that were asked for
createInterface({ input: process.stdin }).on("line", () => looks++).on("close", () => (over = true));
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// While the market rests, each one must come to the book that REST has.
async function look() {
	const last = await book();
	for (const s of subscribers) {
		for (let tries = 0; s.book.updateId !== last.id && tries < patience; tries++) await pause(10);
		if (s.book.updateId !== last.id) wrong(`${s.name} is at ${s.book.updateId}, REST at ${last.id}`);
		s.shown(last);
	}
	return last;
}

while (!over) {
	try {
		if (looks > 0) {
			await look();
			looks--;
			console.log("looked");
		}
		const shown = await book();
		for (const s of subscribers) s.shown(shown);
	} catch {
		// The exchange may be gone for a moment; the books say whether it is back.
	}
	await pause(20);
}
// Now nobody trades. Each one must come to the state that REST has, and to all trades.
const trades = [];
for (let before = ""; ; before = `&before=${trades.at(-1).id}`) {
	const { body } = await get(`exchanges/?pair=${pair}&limit=1000${before}`);
	trades.push(...body);
	if (body.length < 1000) break;
}
trades.reverse();
const last = await look();
const chart = await fetch(`${base}/api/charts/${pair}/D/chart/?limit=1`);
const [newest] = await chart.json();
for (const s of subscribers) {
	// Trades come by a channel of their own, and perhaps later.
	for (let tries = 0; s.trades.length > 0 && s.trades.at(-1).id !== trades.at(-1).id && tries < patience; tries++) await pause(10);
	for (let tries = 0; s.fulls.length > 0 && s.fulls.at(-1).id !== trades.at(-1).id && tries < patience; tries++) await pause(10);
	s.compareTrades(trades);
	for (let tries = 0; s.candle?.volume !== newest.volume && tries < patience; tries++) await pause(10);
	s.compareCandle(newest);
	for (let tries = 0; s.depth.updateId !== last.id && tries < patience; tries++) await pause(10);
	if (s.depth.updateId !== last.id) wrong(`${s.name}: depth is at ${s.depth.updateId}, REST at ${last.id}`);
	report.checksums += s.depth.checked;
	s.socket.close();
}
console.log(JSON.stringify(report));
process.exit(report.errors.length > 0 ? 1 : 0);
