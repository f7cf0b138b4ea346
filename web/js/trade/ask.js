// Questions before what could be a slip: what an order would do now, and a dialog.
import { html, nothing, render } from "../../vendor/lit-html/lit-html.js";
import { parse } from "../decimal.js";
import { decimal, percent } from "../format.js";
import { open } from "../settings.js";
import { text } from "../text/en.js";

/** @typedef {import("../api.js").Pair} Pair */
/** @typedef {import("./desk.js").Desk} Desk */
/** @typedef {ReturnType<import("../book.js").Book["take"]>} Take */

/** How much worse than the market a limit may be, and the last price that a market order takes. */
const THROUGH = 500n, FAR = 100n, PARTS = 10_000n;

/**
 * worse returns by how many parts of 10,000 a price is worse than another one, rounded up.
 * @param {string} side
 * @param {bigint} price
 * @param {bigint} than
 */
const worse = (side, price, than) =>
	((side === "buy" ? price - than : than - price) * PARTS + than - 1n) / than;

/** shareOf writes parts of 10,000. @param {bigint} parts */
const shareOf = (parts) => percent(Number(parts) / 1e4).replace(/^[+-]/, "");

/**
 * farFrom says that a price is far through the market, or its trigger; "": it is not.
 * @param {Desk} desk
 * @param {Pair} pair
 * @param {{side: string, price: bigint | null, trigger?: bigint | null}} order
 */
export function farFrom(desk, pair, { side, price, trigger }) {
	if (!price) return "";
	const than = trigger ?? desk.marketOf(pair, side);
	if (!than) return "";
	const by = worse(side, price, than), { through, fromTrigger } = text.warnings;
	return by > THROUGH ? (trigger ? fromTrigger : through)(shareOf(by),
		decimal(than, pair.priceDigits)) : "";
}

/**
 * dangersOf says what is dangerous about what a market order would take now.
 * @param {Take} take
 * @param {string} side
 * @param {bigint | undefined} best
 * @param {Pair} pair
 */
export function dangersOf(take, side, best, { amountDigits, base }) {
	if (!best || !take.amount) return [];
	const by = worse(side, take.worst, best);
	return [by > FAR ? text.warnings.far(shareOf(by)) : "",
		take.isWhole ? text.warnings.whole(`${decimal(take.amount, amountDigits)} ${base}`) : ""]
		.filter(Boolean);
}

/**
 * ownMet returns the ids of own orders that an order of a side would meet, up to a price.
 * @param {import("../account.js").Account} account
 * @param {string} pair
 * @param {string} side
 * @param {bigint} limit
 */
export const ownMet = (account, pair, side, limit) => [...account.orders.values()].filter((o) =>
	o.pair === pair && o.type !== side && (o.triggered !== false || o.oco_trigger_price)
	&& (side === "buy" ? parse(o.price) <= limit : parse(o.price) >= limit)).map((o) => o.id);

/**
 * ask shows a question in a dialog. The one who answers yes has seen what it says now: it is
 * painted again as the market moves. With dangers, or isSafe, the safe answer has the focus.
 * @param {{title: string, side?: string, yes: string, no?: string, act: () => void,
 *   whyNot?: () => string, rows?: () => [string, unknown][], words?: string,
 *   isSafe?: boolean, dangers?: () => string[]}} question
 */
export function ask({ title, side = "", yes, no = text.goBack, act, whyNot = () => "",
	rows = () => [], words, isSafe = false, dangers = () => [] }) {
	const place = document.createElement("div");
	place.className = "question";
	const dialog = open(title, place, no);
	const paint = () => render(html`
		${dangers().length ? html`<ul>${dangers().map((why) => html`<li>${why}</li>`)}</ul>` : nothing}
		${words ? html`<p>${words}</p>` : nothing}
		<dl class="sums">${rows().map(([name, is]) => html`<div><dt>${name}</dt>
			<dd>${is}</dd></div>`)}</dl>
		<p><button class="main yes ${side}" ?disabled=${whyNot() !== ""} @click=${() => {
			dialog.close();
			act();
		}} @keydown=${(/** @type {KeyboardEvent} */ event) => event.repeat && event.preventDefault()}
			>${whyNot() || yes}</button></p>`, place);
	paint();
	/** @type {HTMLElement | null} */ (
		dialog.querySelector(isSafe || dangers().length ? ".done" : ".yes"))
		?.focus();
	return { dialog, paint };
}
