// The newest trades of the pair.
import { html, render } from "../../vendor/lit-html/lit-html.js";
import { AGAIN, get } from "../api.js";
import { fromNumber, parse } from "../decimal.js";
import { decimal, time } from "../format.js";
import { text } from "../text/en.js";
import { size } from "./ladder.js";

/** @typedef {import("../api.js").Pair} Pair */
/** @typedef {import("../stream.js").Stream} Stream */
/** @typedef {{id: number, buys: boolean, price: bigint, amount: bigint, at: number}} Trade */

const MOST = 40;

export class Trades {
	/** Newest first. @type {Trade[]} */
	#trades = [];
	/** @type {Pair | undefined} */
	#pair;
	#isWaiting = false;
	#isLoaded = false;

	/** @param {HTMLElement} place @param {Stream} stream */
	constructor(place, stream) {
		this.stream = stream;
		render(html`<div class="bar"><h2>${text.trades}</h2></div><div class="table"></div>`, place);
		this.table = /** @type {HTMLElement} */ (place.querySelector(".table"));
		stream.on("trades", (t) => {
			if (t.pair !== this.#pair?.name) return;
			this.#add([{ id: t.id, buys: t.type === "buy", price: fromNumber(t.price), amount: fromNumber(t.amount), at: t.timestamp }]);
		});
	}

	/** @param {Pair} pair */
	show(pair) {
		if (this.#pair) this.stream.unsubscribe(`trades.${this.#pair.name}`);
		this.#pair = pair;
		this.#trades = [];
		this.#isLoaded = false;
		this.stream.subscribe(`trades.${pair.name}`);
		this.change();
		if (this.stream.state === "live") this.load();
	}

	/** load reads the newest trades. It is for those that were made while there was no connection. */
	async load() {
		const pair = this.#pair;
		if (!pair) return;
		/** @type {{id: string, type: string, price: string, amount: string, timestamp: string}[]} */
		let list;
		try {
			list = await get(`/api/v1/exchanges/?pair=${pair.name}&limit=${MOST}`);
		} catch {
			setTimeout(() => pair === this.#pair && this.stream.state === "live" && this.load(), AGAIN);
			return; // what is not live any more loads again when it is
		}
		if (pair !== this.#pair) return;
		this.#isLoaded = true;
		this.#add(list.map((t) => ({ id: Number(t.id), buys: t.type === "buy", price: parse(t.price), amount: parse(t.amount), at: Number(t.timestamp) })));
	}

	/** @param {Trade[]} trades */
	#add(trades) {
		const byId = new Map([...this.#trades, ...trades].map((t) => [t.id, t]));
		this.#trades = [...byId.values()].sort((a, b) => b.id - a.id).slice(0, MOST);
		this.change();
	}

	change() {
		if (this.#isWaiting) return;
		this.#isWaiting = true;
		requestAnimationFrame(() => {
			this.#isWaiting = false;
			this.#paint();
		});
	}

	#paint() {
		const pair = this.#pair;
		if (!pair) return;
		render(this.#trades.length === 0 ? html`<p class="muted">${this.#isLoaded ? text.noTrades : ""}</p>` : html`
			<table><thead><tr><th>${text.price}</th><th>${text.amount}</th><th>${text.time}</th></tr></thead><tbody>
			${this.#trades.map((t) => html`<tr class=${t.buys ? "buy" : "sell"}>
				<td><span aria-hidden="true">${t.buys ? "▲" : "▼"}</span><span class="unseen">${t.buys ? text.buy : text.sell}</span> ${decimal(t.price, pair.priceDigits)}</td>
				<td>${size(t.amount, pair)}</td><td>${time(t.at)}</td></tr>`)}
			</tbody></table>`, this.table);
	}
}
