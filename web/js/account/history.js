// What has changed balances: deposits, approved withdrawals and own trades, as one list. The
// exchange keeps no such list for its clients.
import { BALANCE_DIGITS, FINER, parse } from "../format.js";
import { legsOf } from "../session.js";
import { Pages } from "./pages.js";

/** @typedef {"deposits" | "withdraws" | "trades"} Source */
/**
 * change: in units of 1e-16.
 * @typedef {{id: string, source: Source, time: string, currency: string, change: bigint,
 *   row: any}} Entry
 */

const PATHS = /** @type {const} */ ({ deposits: "/api/v1/deposits/",
	withdraws: "/api/v1/withdraws/?status=30", trades: "/api/v1/exchanges/own/?both_sides=1" });
const MOST = 1000;

/**
 * changesOf returns what a row has changed.
 * @param {Source} source
 * @param {any} row
 * @returns {Entry[]}
 */
export function changesOf(source, row) {
	/** @param {string} currency @param {bigint} change @param {any} [of] */
	const entry = (currency, change, of = row) =>
		({ id: row.id, source, time: row.timestamp, currency, change, row: of });
	if (source !== "trades") {
		const amount = parse(row.amount) * FINER;
		return [entry(row.currency, source === "deposits" ? amount : -amount)];
	}
	return legsOf([row]).flatMap((leg) => {
		const [base, quote] = leg.pair.split("_"), isBuy = leg.my_side === "buy";
		const amount = parse(leg.amount), value = amount * parse(leg.price);
		const fee = parse(leg.fee, BALANCE_DIGITS);
		return isBuy ? [entry(base, amount * FINER - fee, leg), entry(quote, -value, leg)]
			: [entry(quote, value - fee, leg), entry(base, -amount * FINER, leg)];
	});
}

export class History {
	/** @type {[Source, Pages<any>][]} */
	#sources;

	/**
	 * @param {(path: string) => Promise<any[]>} read
	 * @param {string} currency "": all
	 */
	constructor(read, currency) {
		this.currency = currency;
		this.#sources = /** @type {Source[]} */ (Object.keys(PATHS)).map((source) =>
			[source, new Pages({ read, path: PATHS[source], most: MOST })]);
	}

	get isDone() {
		return this.#sources.every(([, pages]) => pages.isDone);
	}

	/** The entries from the newest on, as far as no source can have one between them. */
	get rows() {
		const from = Math.max(...this.#sources.map(([, pages]) => edgeOf(pages)));
		return this.#sources.flatMap(([source, pages]) =>
			pages.rows.filter((row) => Number(row.timestamp) >= from)
				.flatMap((row) => changesOf(source, row)))
			.filter((entry) => !this.currency || entry.currency === this.currency)
			.sort((a, b) => Number(b.time) - Number(a.time));
	}

	/** more reads on where the list ends. @param {number} [size] */
	async more(size) {
		const edges = this.#sources.map(([, pages]) => edgeOf(pages)), from = Math.max(...edges);
		await Promise.all(this.#sources.map(([, pages], i) =>
			edges[i] === from && pages.more(size)));
	}

	async fresh() {
		await Promise.all(this.#sources.map(([, pages]) => pages.fresh()));
	}
}

/** edgeOf returns the time back to which all rows are here. @param {Pages<any>} pages */
const edgeOf = (pages) => (pages.isDone ? -Infinity
	: Number(pages.rows.at(-1)?.timestamp ?? Infinity));
