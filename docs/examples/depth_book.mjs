// A local order book from the channel depth, for Node and browsers. Prices and amounts stay the texts that the exchange
// sends, and each checksum is compared.
//
//	import { io } from "socket.io-client";
//	import { DepthBook } from "./depth_book.mjs";
//
//	const socket = io("http://127.0.0.1:8080", { path: "/socket.v2/" });
//	const book = new DepthBook(socket, "BTC_USDT");
//	book.onChange = () => console.log(book.updateId, book.levels("buy")[0], book.levels("sell")[0]);
//
// The rules are those of local_book.mjs, and one more: a book whose checksum differs is requested again.
export class DepthBook {
	#socket;
	#pair;
	#sides = { sell: new Map(), buy: new Map() };
	updateId = null; // null: not known yet
	checked = 0; // checksums that were equal
	onChange = () => {};
	onDifference = () => {}; // a checksum differs

	constructor(socket, pair) {
		this.#socket = socket;
		this.#pair = pair;
		socket.on("connect", () => this.#ask());
		socket.on("disconnect", () => (this.updateId = null));
		socket.on("depth", (event) => event.pair === pair && this.#apply(event));
		if (socket.connected) this.#ask();
	}

	#ask() {
		this.updateId = null;
		this.#socket.emit("subscribe", `depth.${this.#pair}`);
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
				if (amount === "0") this.#sides[side].delete(price);
				else this.#sides[side].set(price, amount);
			}
		}
		this.updateId = event.update_id;
		if (event.checksum !== undefined) {
			if (event.checksum !== this.checksum()) {
				this.onDifference(this);
				this.#ask();
				return;
			}
			this.checked++;
		}
		this.onChange(this);
	}

	// side is "sell" or "buy": its levels as [price, amount], texts, best first.
	levels(side) {
		return [...this.#sides[side]].sort(side === "sell" ? (a, b) => a[0] - b[0] : (a, b) => b[0] - a[0]);
	}

	// The checksum of the best ten levels of each side: buy 1, sell 1, buy 2, and so on, without those that are missing.
	checksum() {
		const sides = [this.levels("buy"), this.levels("sell")];
		const list = [];
		for (let i = 0; i < 10; i++) for (const side of sides) if (i < side.length) list.push(side[i].join(":"));
		return crc32(list.join(":"));
	}
}

const table = Uint32Array.from({ length: 256 }, (_, n) => {
	for (let k = 0; k < 8; k++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
	return n;
});

// The CRC-32 (IEEE) of a text of ASCII.
function crc32(text) {
	let c = ~0;
	for (let i = 0; i < text.length; i++) c = table[(c ^ text.charCodeAt(i)) & 255] ^ (c >>> 8);
	return ~c >>> 0;
}
