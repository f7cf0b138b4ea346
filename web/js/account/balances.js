// Balances, and what has changed them.
import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { BALANCE_DIGITS, padded, pairOf, parse, plain } from "../format.js";
import { priced } from "../words.js";
import { text } from "../text/en.js";
import { words } from "../text/account.en.js";
import { utc } from "./csv.js";
import { atTime, instant } from "./exact.js";
import { History } from "./history.js";
import { List } from "./list.js";

/** @typedef {import("./history.js").Entry} Entry */

/** signed writes a change with its sign. @param {Entry} entry */
const signed = ({ change }) => `${change > 0n ? "+" : ""}${padded(plain(change, BALANCE_DIGITS))}`;

/** what names an entry. @param {Entry} entry */
const what = ({ source, id, row }) => (row.adjustment ? words.adjustment
	: source === "deposits" ? words.deposit
		: source === "withdraws" ? words.withdraw : words.trade)(id);

/**
 * about says more of it.
 * @param {Entry} entry
 * @param {Map<string, import("../api.js").Pair> | undefined} pairs
 */
function about({ source, row, currency }, pairs) {
	if (source === "deposits") return "";
	if (row.adjustment) return row.details;
	if (source === "withdraws") return words.toAddress(row.address);
	const fee = currency === row.fee_currency && row.fee !== "0"
		? words.feeOf(padded(row.fee), currency) : "";
	return words.tradeOf(pairOf(row.pair), row.order, priced(row.price, pairs?.get(row.pair))) + fee;
}

export class Balances {
	#currency = ""; // whose history is shown; "": all

	/** @param {import("./main.js").Page} page */
	constructor(page) {
		this.page = page;
		/** @type {List} */
		this.list = new List(page, { name: "history", title: words.history,
			columns: [[atTime, (e) => instant(Number(e.time))], [words.what, what],
				[text.currency, (e) => e.currency],
				[words.change, (e) => html`<span class=${e.change < 0n ? "down" : "up"}
					>${signed(e)}</span>`], [words.about, (e) => about(e, page.info?.pairs)]],
			csv: [["time", (e) => utc(e.time)],
				["what", (e) => (e.row.adjustment ? "adjustment" : e.source.slice(0, -1))],
				["id", (e) => e.id], ["currency", (e) => e.currency],
				["change", (e) => plain(e.change, BALANCE_DIGITS)],
				["pair", (e) => e.row.pair ?? ""], ["order", (e) => e.row.order ?? ""],
				["price", (e) => e.row.price ?? ""], ["fee", (e) => e.row.fee ?? ""],
				["fee_currency", (e) => e.row.fee_currency ?? ""],
				["address", (e) => e.row.address ?? ""]],
			open: () => new History((path) => page.session.read(path), this.#currency) });
	}

	/** @param {import("../session.js").Event} event */
	event(event) {
		if (event.snapshot || event.trades || ["deposit", "withdraw"].includes(event.cause ?? "")) {
			this.list.fresh();
		}
	}

	view() {
		const { account } = this.page.live, all = [...account.balances.values()];
		if (!this.page.session.may("read")) return html`<p>${words.mayNot.read}</p>`;
		/** @param {string} title @param {string} exact */
		const cell = (title, exact) =>
			html`<td role="cell" data-title=${title}>${padded(exact)}</td>`;
		return html`<table role="table" class="balances"><thead><tr role="row">
				${[text.currency, text.total, text.reserved, text.free].map((title) =>
					html`<th role="columnheader">${title}</th>`)}</tr></thead><tbody>
				${all.map(({ currency, balance, reserve }) => html`<tr role="row">
					<th role="rowheader" scope="row">${currency}</th>
					${cell(text.total, balance)}${cell(text.reserved, reserve)}${cell(text.free,
						plain(parse(balance, BALANCE_DIGITS) - parse(reserve, BALANCE_DIGITS),
							BALANCE_DIGITS))}</tr>`)}
			</tbody></table>${all.length ? nothing : html`<p class="muted">${text.loading}</p>`}
			<h3>${words.history}</h3>
			<p class="muted">${words.aboutHistory}</p>
			<div class="filter"><label><span>${text.currency}</span><select name="currency"
				@change=${(/** @type {Event} */ event) => {
					this.#currency = /** @type {any} */ (event.target).value;
					this.list.load();
				}}><option value="">${words.allCurrencies}</option>${all.map(({ currency }) =>
					html`<option ?selected=${currency === this.#currency}>${currency}</option>`)}
			</select></label></div>
			${this.list.view()}`;
	}
}
