// A local order book from the event stream, for Node and browsers.
//
//	import { io } from "socket.io-client";
//	import { LocalBook } from "./local_book.mjs";
//
//	const socket = io("http://127.0.0.1:8080", { path: "/socket.v2/" });
//	const book = new LocalBook(socket, "BTC_USDT");
//	book.onChange = () => console.log(book.updateId, book.best("buy"), book.best("sell"));
//
// It holds, at any time, exactly the book that GET /api/v1/orderbook/BTC_USDT/?group=1 answers with the same
// X-Update-Id. Four rules are enough:
//
//  1. The first event, and the first after a loss, is the whole book: it has "snapshot": true.
//  2. Every other event follows the one whose update_id is its prev_update_id. If not, request it again.
//  3. An amount is what is at the price now, and 0 removes the price.
//  4. A connection that comes back starts over.
export class LocalBook {
	#socket;
	#pair;
	#sides = { sell: new Map(), buy: new Map() };
	updateId = null; // null: not known yet
	onChange = () => {};

	constructor(socket, pair) {
		this.#socket = socket;
		this.#pair = pair;
		socket.on("connect", () => this.#ask());
		socket.on("disconnect", () => (this.updateId = null));
		socket.on("depth.diff", (event) => event.pair === pair && this.#apply(event));
		if (socket.connected) this.#ask();
	}

	#ask() {
		this.updateId = null;
		this.#socket.emit("subscribe", `diff.${this.#pair}`);
	}

	#apply(event) {
		if (event.snapshot) {
			this.#sides = { sell: new Map(), buy: new Map() };
		} else if (this.updateId === null) {
			return; // the whole book is in flight
		} else if (event.prev_update_id !== this.updateId) {
			this.#ask(); // who subscribes again gets the whole book
			return;
		}
		for (const side of ["sell", "buy"]) {
			for (const { price, amount } of event[side]) {
				if (amount === 0) this.#sides[side].delete(price);
				else this.#sides[side].set(price, amount);
			}
		}
		this.updateId = event.update_id;
		this.onChange(this);
	}

	// side is "sell" or "buy": its levels as [price, amount], best first.
	levels(side) {
		return [...this.#sides[side]].sort(side === "sell" ? (a, b) => a[0] - b[0] : (a, b) => b[0] - a[0]);
	}

	// The best price of a side, undefined if the side is empty.
	best(side) {
		const prices = this.#sides[side].keys();
		let best;
		for (const p of prices) if (best === undefined || (side === "sell" ? p < best : p > best)) best = p;
		return best;
	}
}
