// What orders were filled with, by their trades: the exchange's rows of orders have no fees, and
// those of plain orders no average price.
import { AGAIN } from "../api.js";
import { BALANCE_DIGITS, parse, plain } from "../format.js";
import { legsOf } from "../session.js";
import { Pages } from "./pages.js";

/** @typedef {import("../session.js").Order} Order */
/** @typedef {import("../session.js").Trade} Trade */
/** @typedef {{filled: bigint, value: bigint, fee: bigint, currency: string}} Sum */

const MOST = 1000; // trades of a page

export class Fills {
	/** @type {Map<string, Sum>} */
	#byOrder = new Map();
	#trades = new Set(); // ids of those that are counted
	#oldest = ""; // id of the last trade that was read
	#edge = Infinity; // seconds since 1970 back to which all trades are counted

	/** @param {Trade[]} trades */
	add(trades) {
		const fresh = trades.filter(({ id }) => !this.#trades.has(id));
		for (const t of legsOf(fresh)) {
			this.#trades.add(t.id);
			const sum = this.#byOrder.get(t.order)
				?? { filled: 0n, value: 0n, fee: 0n, currency: t.fee_currency };
			sum.filled += parse(t.amount);
			sum.value += parse(t.amount) * parse(t.price);
			sum.fee += parse(t.fee, BALANCE_DIGITS);
			this.#byOrder.set(t.order, sum);
		}
	}

	/**
	 * of returns average price and fee of an order; "": it has none, or not all its trades are here.
	 * @param {Order} o
	 */
	of(o) {
		const sum = this.#byOrder.get(o.id);
		if (!sum || sum.filled !== parse(o.amount_filled)) {
			return { average: o.average_price ?? "", fee: "", currency: "" };
		}
		return { average: plain(sum.value / sum.filled), fee: plain(sum.fee, BALANCE_DIGITS),
			currency: sum.currency };
	}

	/**
	 * back reads the trades since the oldest order that wants them.
	 * @param {Order[]} orders
	 * @param {(query: string) => Promise<Trade[]>} read
	 */
	async back(orders, read) {
		const from = orders.reduce((least, o) => (o.amount_filled !== "0" && !this.of(o).fee
			? Math.min(least, Number(o.date) / 1000) : least), Infinity);
		// ids of two pairs may be swapped within a moment
		while (this.#edge > from - 1) {
			const list = await read(`limit=${MOST}${this.#oldest && `&before=${this.#oldest}`}`);
			this.add(list);
			const last = list.at(-1);
			this.#oldest = last?.id ?? this.#oldest;
			this.#edge = last && list.length === MOST ? Number(last.timestamp) : -Infinity;
		}
	}
}

/** Orders are a list of orders, whose trades are read behind them. @extends {Pages<Order>} */
export class Orders extends Pages {
	/** @type {Promise<void> | undefined} */
	#reading;

	/**
	 * @param {import("./pages.js").Origin<Order>} origin
	 * @param {Fills} fills
	 * @param {(query: string) => Promise<Trade[]>} read
	 * @param {() => void} onChange called when trades are here
	 */
	constructor(origin, fills, read, onChange) {
		super(origin);
		this.ready = () => this.#reading ??= fills.back(this.rows, read).finally(() => {
			this.#reading = undefined;
			onChange();
		});
	}

	/** @param {number} [size] */
	async more(size) {
		await super.more(size);
		if (size === undefined) this.#try();
	}

	/** try reads the trades for rows that are shown already, as often as it takes. */
	#try() {
		this.ready().catch(() => setTimeout(() => this.#try(), AGAIN));
	}
}
