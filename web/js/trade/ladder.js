// The order book: asks above bids, as many rows as fit.
import { html, render } from "../../vendor/lit-html/lit-html.js";
import { Book } from "../book.js";
import { number, plain } from "../decimal.js";
import { decimal } from "../format.js";
import { text } from "../text/en.js";

/** @typedef {import("../api.js").Pair} Pair */
/** @typedef {import("../stream.js").Stream} Stream */

const GROUPS = [1n, 5n, 10n, 50n, 100n, 500n, 1000n, 10000n, 100000n];

export class Ladder {
	book = new Book();
	/** Called when the book has changed. */
	onChange = () => {};
	/** Called with the price of a row that was clicked. */
	onPick = (/** @type {bigint} */ _) => {};
	/** Prices of the account's own orders in the book. @type {Record<"sell" | "buy", bigint[]>} */
	#own = { sell: [], buy: [] };
	/** @type {Pair | undefined} */
	#pair;
	#step = 1n;
	#isWaiting = false;
	/** Rows from the top: the worst ask first. @type {Record<"sell" | "buy", RowView[]>} */
	#rows = { sell: [], buy: [] };

	/** @param {HTMLElement} place @param {Stream} stream */
	constructor(place, stream) {
		this.stream = stream;
		render(html`
			<div class="bar"><h2>${text.book}</h2><b class="not-live">${text.notLive}</b>
				<label><span class="unseen">${text.group}</span><select class="group" title=${text.group} @change=${this.#regroup.bind(this)}></select></label></div>
			<div class="table" role="table" aria-label=${text.book}>
				<div role="rowgroup"><div role="row" class="head"><span role="columnheader">${text.price}</span><span role="columnheader">${text.amount}</span><span role="columnheader">${text.total}</span></div></div>
				<div role="rowgroup" class="side sell" aria-label=${text.asks}></div>
				<div role="rowgroup"><div role="row" class="middle"><span role="cell" aria-colspan="3"></span></div></div>
				<div role="rowgroup" class="side buy" aria-label=${text.bids}></div>
			</div>`, place);
		/** @param {string} name */
		const find = (name) => /** @type {HTMLElement} */ (place.querySelector(name));
		this.table = find(".table");
		this.middle = find(".middle span");
		this.group = /** @type {HTMLSelectElement} */ (find(".group"));
		this.places = { sell: find(".side.sell"), buy: find(".side.buy") };
		this.table.addEventListener("click", (event) => {
			const at = event.target instanceof Element && event.target.closest(".side [role=row]");
			const row = [...this.#rows.sell, ...this.#rows.buy].find((view) => view.row === at);
			if (row?.price) this.onPick(row.price);
		});
		new ResizeObserver(() => this.#fit()).observe(this.table);
		stream.on("depth", (event) => {
			if (event.pair !== this.#pair?.name) return;
			if (!this.book.apply(event)) stream.subscribe(`depth.${event.pair}`);
			this.change();
		});
	}

	/** @param {Pair} pair */
	show(pair) {
		if (this.#pair) this.stream.unsubscribe(`depth.${this.#pair.name}`);
		this.#pair = pair;
		this.#step = pair.tick;
		this.book.forget();
		this.book.sides = { sell: [], buy: [] };
		this.stream.subscribe(`depth.${pair.name}`);
		render(GROUPS.map((n) => html`<option value=${n}>${plain(n * pair.tick)}</option>`), this.group);
		this.group.value = "1";
		this.change();
	}

	/** lost keeps what is shown, and waits for a whole book. */
	lost() {
		this.book.forget();
	}

	/**
	 * mark marks the prices of an account's own orders.
	 * @param {Record<"sell" | "buy", bigint[]>} own
	 */
	mark(own) {
		this.#own = own;
		this.#wait();
	}

	change() {
		this.onChange();
		this.#wait();
	}

	#wait() {
		if (this.#isWaiting) return;
		this.#isWaiting = true;
		requestAnimationFrame(() => {
			this.#isWaiting = false;
			this.#paint();
		});
	}

	#regroup() {
		if (this.#pair) this.#step = BigInt(this.group.value) * this.#pair.tick;
		this.change();
	}

	/** fit makes as many rows as there is room for. */
	#fit() {
		const height = this.places.sell.clientHeight;
		const row = parseFloat(getComputedStyle(this.table).getPropertyValue("--row"));
		const n = Math.max(1, Math.min(100, Math.floor(height / row)));
		for (const side of /** @type {const} */ (["sell", "buy"])) {
			const rows = this.#rows[side];
			while (rows.length < n) {
				const view = new RowView();
				rows.push(view);
				this.places[side].append(view.row);
			}
			while (rows.length > n) rows.pop()?.row.remove();
		}
		this.#paint();
	}

	#paint() {
		const pair = this.#pair;
		if (!pair) return;
		const n = this.#rows.sell.length;
		const asks = this.book.rows("sell", this.#step, n), bids = this.book.rows("buy", this.#step, n);
		const most = number([asks.at(-1)?.total ?? 0n, bids.at(-1)?.total ?? 0n].reduce((a, b) => (a > b ? a : b)));
		// asks are rounded up, bids down
		const step = this.#step, up = step - 1n;
		const own = { sell: new Set(this.#own.sell.map((price) => (price + up) / step * step)),
			buy: new Set(this.#own.buy.map((price) => price / step * step)) };
		for (let i = 0; i < n; i++) {
			this.#rows.sell[n - 1 - i].show(asks[i], pair, most, own.sell);
			this.#rows.buy[i].show(bids[i], pair, most, own.buy);
		}
		const [ask] = this.book.sides.sell, [bid] = this.book.sides.buy;
		write(this.middle, ask && bid ? `${text.spread} ${decimal(ask.price - bid.price, pair.priceDigits)}`
			: ask || bid || this.book.updateId === null ? "" : text.emptyBook);
	}
}

/** write changes a text only if it differs. @param {Node} cell @param {string} words */
function write(cell, words) {
	if (cell.textContent !== words) cell.textContent = words;
}

class RowView {
	row = document.createElement("div");
	#cells = [0, 1, 2].map(() => document.createElement("span"));
	#bar = document.createElement("i");
	#mark = document.createElement("b");
	#width = -1;
	/** @type {bigint | undefined} */
	price;

	constructor() {
		this.row.role = "row";
		this.row.hidden = false;
		for (const cell of this.#cells) cell.role = "cell";
		this.#bar.ariaHidden = "true";
		this.#mark.className = "mark";
		this.#mark.title = text.ownOrder;
		this.#mark.role = "img";
		this.#mark.ariaLabel = text.ownOrder;
		this.#mark.textContent = "●";
		this.#mark.hidden = true;
		this.#cells[0].append(this.#bar, this.#mark, "");
		this.row.append(...this.#cells);
	}

	/**
	 * @param {import("../book.js").Row | undefined} level
	 * @param {Pair} pair
	 * @param {number} most
	 * @param {Set<bigint>} own
	 */
	show(level, pair, most, own) {
		const [price, amount, total] = this.#cells;
		this.price = level?.price;
		const isOwn = level !== undefined && own.has(level.price);
		if (this.#mark.hidden === isOwn) this.#mark.hidden = !isOwn;
		write(/** @type {Node} */ (price.lastChild), level ? decimal(level.price, pair.priceDigits) : "");
		write(amount, level ? size(level.amount, pair) : "");
		write(total, level ? size(level.total, pair) : "");
		const width = level && most > 0 ? Math.round((number(level.total) / most) * 1000) / 1000 : 0;
		if (width === this.#width) return;
		this.#width = width;
		this.#bar.style.transform = `scaleX(${width})`;
	}
}

/** size writes an amount for a narrow column: what is too small for its digits is told as such. @param {bigint} amount @param {Pair} pair */
export function size(amount, pair) {
	const digits = Math.min(pair.amountDigits, 5), least = 10n ** BigInt(8 - digits);
	return amount > 0n && amount < least ? `<${decimal(least, digits)}` : decimal(amount, digits);
}
