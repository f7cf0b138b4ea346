// Subscribers of the event stream that compare what they hear with what REST answers, while others trade and the
// exchange may come and go:
//
//	node stream.mjs ADDRESS PAIR
//
// It goes on until its standard input ends, looks once more when all is quiet, and prints what it did. Differences end
// it with 1.
import { io } from "socket.io-client";
import { LocalBook } from "../../../docs/examples/local_book.mjs";

const [base, pair] = process.argv.slice(2);
const kept = 20_000; // states of a book that are remembered
const report = { compared: 0, tops: 0, trades: 0, connects: 0, errors: [] };
const wrong = (text) => report.errors.length < 20 && report.errors.push(text);
const text = (sell, buy) => JSON.stringify([sell, buy]);

async function get(path) {
	const response = await fetch(`${base}/api/v1/${path}`);
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
	trades = []; // of this connection
	waiting = []; // what REST answered for an update id that is still to come

	constructor(name, options) {
		this.name = name;
		this.socket = io(base, { reconnectionDelay: 50, reconnectionDelayMax: 200, forceNew: true, ...options });
		this.socket.on("connect", () => {
			report.connects++;
			this.trades = [];
			this.socket.emit("subscribe", `trades.${pair}`, [`orderbook.20.${pair}`]);
		});
		this.socket.on("subscribe.error", (e) => wrong(`${name}: ${JSON.stringify(e)}`));
		this.socket.on("trades", (trade) => this.trades.push(trade));
		this.socket.on("orderbook.20", (top) => {
			this.tops.set(top.update_id, top);
			this.#compareTops();
		});
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
	}

	// What was heard of trades since the connection must be what REST has between the first and the last of them.
	compareTrades(all) {
		const heard = this.trades.map((t) => JSON.stringify(t));
		if (heard.length === 0) return;
		const first = this.trades[0].id;
		const want = all.filter((t) => t.id >= first).map((t) => JSON.stringify(t));
		report.trades += heard.length;
		if (heard.join() !== want.join()) wrong(`${this.name}: ${heard.length} trades since ${first}, and REST has ${want.length}`);
	}
}

const subscribers = [
	new Subscriber("defaults", { path: "/socket.v2/" }),
	new Subscriber("defaults at the default path", {}),
	new Subscriber("websocket", { path: "/socket.v2/", transports: ["websocket"] }),
	new Subscriber("polling", { path: "/socket.v2/", transports: ["polling"] }),
];
let over = false;
process.stdin.on("end", () => (over = true)).resume();
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
while (!over) {
	try {
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
const last = await book();
for (const s of subscribers) {
	for (let tries = 0; s.book.updateId !== last.id && tries < 3000; tries++) await pause(10);
	if (s.book.updateId !== last.id) wrong(`${s.name} is at ${s.book.updateId}, REST at ${last.id}`);
	s.shown(last);
	// Trades come by a channel of their own, and perhaps later.
	for (let tries = 0; s.trades.length > 0 && s.trades.at(-1).id !== trades.at(-1).id && tries < 3000; tries++) await pause(10);
	s.compareTrades(trades);
	s.socket.close();
}
console.log(JSON.stringify(report));
process.exit(report.errors.length > 0 ? 1 : 0);
