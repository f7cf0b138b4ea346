// Own orders and own trades, of one pair or all, and of a range of time.
import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { legsOf } from "../session.js";
import { BALANCE_DIGITS, offset, padded, pairOf, parse, plain } from "../format.js";
import { isAtMarket, isWaiting, priced, priceOf, sideOf, typeOf } from "../words.js";
import { words } from "../text/account.en.js";
import { text } from "../text/en.js";
import { utc } from "./csv.js";
import { atTime, instant } from "./exact.js";
import { Fills, Orders } from "./fills.js";
import { List } from "./list.js";
import { Pages } from "./pages.js";

/** @typedef {import("./main.js").Page} Page */
/** @typedef {import("../session.js").Order} Order */
/** @typedef {import("../session.js").Trade} Trade */
/**
 * pair, status: "" is all. from, to: as they were typed, local times; "": none.
 * @typedef {{pair: string, status: string, from: string, to: string}} Filter
 */
/**
 * kind: all of a list but how it is read. path: of its rows. most: its longest page. secondsOf: the
 * time of a row. rowsOf: those of an event.
 * @typedef {{kind: Omit<import("./list.js").Kind, "open">, path: string, most: number,
 *   hasStatus: boolean, secondsOf: (row: any) => number,
 *   rowsOf: (event: import("../session.js").Event) => {id: string}[] | undefined}} What
 */

/**
 * secondsOf returns a typed moment in seconds since 1970.
 * @param {string} typed
 * @param {number} none
 */
const secondsOf = (typed, none) => (typed ? new Date(typed).getTime() / 1000 : none);

export class Trading {
	/** @type {Filter} */
	#filter = { pair: "", status: "", from: "", to: "" };
	#wrong = "";
	/** Of the orders that are listed. */
	fills = new Fills();
	/** Why orders were cancelled, by id, as events tell of plain ones alone. @type {Map<string, string>} */
	reasons = new Map();

	/** @param {Page} page @param {What} what */
	constructor(page, what) {
		this.page = page;
		this.what = what;
		/** @type {List} */
		this.list = new List(page, { ...what.kind, open: () => this.#open() });
	}

	/** open returns the list that the filter asks for. */
	#open() {
		const { path, most, hasStatus, secondsOf: at } = this.what;
		const { pair, status, from, to } = this.#filter;
		const since = secondsOf(from, -Infinity), until = secondsOf(to, Infinity);
		const query = new URLSearchParams();
		if (!hasStatus) query.set("both_sides", "1");
		if (pair) query.set("pair", pair);
		if (status) query.set("status", status);
		if (from && !hasStatus) query.set("since", String(since)); // orders have no such parameters
		if (to && !hasStatus) query.set("until", String(until));
		/** @type {import("./pages.js").Origin<any>} */
		const origin = { path: `${path}?${query}`, most,
			read: (asked) => this.page.session.read(asked),
			accepts: (/** @type {any} */ row) => (!pair || row.pair === pair) && (!status || row.status === status)
				&& at(row) >= since && at(row) <= until,
			isPast: (row) => at(row) < since };
		if (!hasStatus) return new Pages({ ...origin, legs: legsOf });
		const of = `/api/v1/exchanges/own/?both_sides=1&${pair && `pair=${pair}&`}`;
		this.fills = new Fills();
		return new Orders(origin, this.fills, (asked) => this.page.session.read(of + asked),
			() => this.page.change());
	}

	/** @param {import("../session.js").Event} event */
	event(event) {
		if (event.snapshot) this.list.again();
		else {
			this.fills.add(event.trades ?? []);
			for (const o of event.orders ?? []) {
				const why = o.cancel_reason ?? event.cancel_reason ?? event.cause;
				if (o.status === "2" && why) this.reasons.set(o.id, why);
			}
			this.list.put(this.what.rowsOf(event) ?? []);
		}
	}

	/** @param {Event} event of a field */
	#change({ currentTarget }) {
		const typed = new FormData(/** @type {HTMLFormElement} */ (currentTarget));
		/** @param {keyof Filter} name */
		const of = (name) => String(typed.get(name) ?? "");
		this.#filter = { pair: of("pair"), status: of("status"), from: of("from"), to: of("to") };
		const { pair, from, to } = this.#filter;
		this.#wrong = (from || to) && !pair ? words.needsPair : "";
		if (this.#wrong) this.page.change();
		else this.list.load();
	}

	view() {
		const { pair, status, from, to } = this.#filter, wrong = this.#wrong;
		/** @param {string} value @param {string} is @param {string} shown */
		const option = (value, is, shown) =>
			html`<option value=${value} ?selected=${value === is}>${shown}</option>`;
		/** @param {"from" | "to"} name @param {string} value */
		const moment = (name, value) => html`<label><span>${words[name]} (${
			offset(value ? +new Date(value) : undefined)})</span>
			<input type="datetime-local" name=${name} .value=${value}></label>`;
		return html`<form class="filter" @change=${this.#change.bind(this)}>
				<label><span>${text.pair}</span><select name="pair"
					aria-invalid=${wrong ? "true" : "false"}
					aria-describedby=${wrong ? "wrong-pair" : nothing}>
					${option("", pair, words.allPairs)}
					${[...this.page.info?.pairs.keys() ?? []].map((name) =>
						option(name, pair, pairOf(name)))}</select></label>
				${this.what.hasStatus ? html`<label><span>${text.state}</span><select name="status">
					${option("", status, words.all)}${Object.entries(words.statuses).map(
						([value, shown]) => option(value, status, shown))}</select></label>`
				: nothing}
				${moment("from", from)}${moment("to", to)}
			</form>
			${wrong ? html`<p class="wrong" id="wrong-pair" role="alert">${wrong}</p>` : nothing}
			${this.list.view()}`;
	}
}

/** stateOf says what has become of an order. @param {Order} o @param {string} why it was cancelled */
function stateOf(o, why) {
	if (o.status === "1" && isWaiting(o)) return text.orderStates.waiting;
	const state = words.statuses[/** @type {"1" | "2" | "3"} */ (o.status)] ?? o.status;
	const said = text.reasons[/** @type {keyof typeof text.reasons} */ (why)] ?? why;
	return said ? `${state}: ${said}` : state;
}

/** valueOf returns price times amount, to the last digit. @param {Trade} t */
const valueOf = (t) => plain(parse(t.price) * parse(t.amount), BALANCE_DIGITS);

/** ordersOf makes the section of orders. @param {Page} page */
export function ordersOf(page) {
	/** @param {Order} o */
	const of = (o) => section.fills.of(o);
	/** @param {Order} o */
	const pair = (o) => page.info?.pairs.get(o.pair);
	/** @param {Order} o */
	const whyOf = (o) => o.cancel_reason ?? section.reasons.get(o.id) ?? "";
	/** @param {Order} o */
	const feeOf = (o) => (of(o).fee ? `${padded(of(o).fee)} ${of(o).currency}` : text.none);
	/** @type {Trading} */
	const section = new Trading(page, { path: "/api/v1/orders/own/", most: 2000,
		hasStatus: true, secondsOf: (o) => Number(o.date) / 1000, rowsOf: (event) => event.orders,
		kind: { name: "orders", title: words.sections.orders,
			columns: [[atTime, (o) => instant(Number(o.date) / 1000)], [text.order, (o) => o.id],
				[text.pair, (o) => pairOf(o.pair)], [text.side, (o) => sideOf(o.type)],
				[text.type, (o) => typeOf(o, pair(o))], [text.price, (o) => priceOf(o, pair(o))],
				[text.average, (o) => padded(of(o).average) || text.none],
				[text.amount, (o) => padded(o.amount_original)],
				[text.filled, (o) => padded(o.amount_filled)], [text.fee, feeOf],
				[text.state, (o) => stateOf(o, whyOf(o))]],
			csv: [["time", (o) => new Date(Number(o.date)).toISOString()], ["id", (o) => o.id],
				["client_order_id", (o) => o.client_order_id ?? ""], ["pair", (o) => o.pair],
				["side", (o) => o.type],
				["order_type", (o) => (isAtMarket(o) ? "market" : "limit")],
				["time_in_force", (o) => o.time_in_force ?? "gtc"],
				["price", (o) => (isAtMarket(o) ? "" : o.price)],
				["price_limit", (o) => (isAtMarket(o) ? o.price : "")],
				["average_price", (o) => of(o).average],
				["trigger_price", (o) => o.trigger_price ?? ""],
				["trigger_when", (o) => o.trigger_when ?? ""],
				["amount", (o) => o.amount_original], ["filled", (o) => o.amount_filled],
				["fee", (o) => of(o).fee], ["fee_currency", (o) => of(o).currency],
				["visible_amount", (o) => o.display_amount ?? ""],
				["oco_trigger_price", (o) => o.oco_trigger_price ?? ""],
				["oco_price", (o) => o.oco_price ?? ""],
				["status", (o) => STATUSES[o.status] ?? o.status],
				["cancel_reason", whyOf]] } });
	return section;
}

/** In files, which programs read. @type {Record<string, string>} */
const STATUSES = { 1: "active", 2: "cancelled", 3: "done" };

/** tradesOf makes the section of trades. @param {Page} page */
export const tradesOf = (page) => new Trading(page, { path: "/api/v1/exchanges/own/", most: 1000,
	hasStatus: false, secondsOf: (t) => Number(t.timestamp), rowsOf: (event) => event.trades,
	kind: { name: "trades", title: words.sections.trades,
		columns: [[atTime, (t) => instant(Number(t.timestamp))], [words.tradeId, (t) => t.id],
			[text.pair, (t) => pairOf(t.pair)], [text.side, (t) => sideOf(t.my_side)],
			[text.price, (t) => priced(t.price, page.info?.pairs.get(t.pair))],
			[text.amount, (t) => padded(t.amount)],
			[text.total, (t) => padded(valueOf(t))],
			[text.fee, (t) => `${padded(t.fee)} ${t.fee_currency}`],
			[text.role, (t) => (t.maker ? text.maker : text.taker)], [text.order, (t) => t.order]],
		csv: [["time", (t) => utc(t.timestamp)], ["id", (t) => t.id], ["pair", (t) => t.pair],
			["side", (t) => t.my_side], ["price", (t) => t.price], ["amount", (t) => t.amount],
			["value", valueOf], ["fee", (t) => t.fee], ["fee_currency", (t) => t.fee_currency],
			["role", (t) => (t.maker ? "maker" : "taker")], ["order", (t) => t.order],
			["client_order_id", (t) => t.client_order_id ?? ""]] } });
