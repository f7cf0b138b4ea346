// Words for answers, and for rows of an account's lists.
import { html } from "../vendor/lit-html/lit-html.js";
import { legsOf } from "./session.js";
import { decimal, editable, exactly, moment, padded, pairOf, parse, plain, read, shortest } from "./format.js";
import { text } from "./text/en.js";

/** @typedef {import("./session.js").Order} Order */
/** @typedef {import("./session.js").Trade} Trade */

/**
 * readable writes what the exchange says with pairs and numbers as readers know them. Ids and dates
 * stay as they are.
 * @param {unknown} words
 */
export const readable = (words) => pairOf([words].flat().join(" ")).replace(
	/(?<![\w.:-]|order |draw )\d+(\.\d+)?(?![\w:-]|\.\d)/g, exactly);

/**
 * refused tells what is missing, or the market's refusal as it is.
 * @param {string} error
 * @param {import("./session.js").Account} account
 */
function refused(error, account) {
	const [, missing, currency] = /^Out of balance -?([\d.]+) (\w+)$/.exec(error) ?? [];
	if (!missing) return readable(error);
	const free = account.free(currency);
	const needed = free + parse(missing.replace(/(\.\d{8})\d+$/, "$1"));
	return text.notEnough(currency, exactly(plain(free)), exactly(plain(needed)));
}

/**
 * fillOf sums trades up: the amount, and at which price on average.
 * @param {Trade[]} trades
 * @param {import("./api.js").Pair} pair
 * @param {string} [order] without one: all of them
 */
export function fillOf(trades, { priceDigits }, order) {
	let filled = 0n, value = 0n;
	for (const t of legsOf(trades)) {
		if (order && t.order !== order) continue;
		filled += parse(t.amount);
		value += parse(t.amount) * parse(t.price);
	}
	return { filled, average: filled ? decimal(value / filled, priceDigits) : "" };
}

/**
 * doneOf says what was done at once by an order, or by a change of one.
 * @param {any} body of the answer
 * @param {import("./api.js").Pair} pair
 * @param {boolean} [isProtected] the price of an order at the market is the exchange's
 */
export function doneOf(body, pair, isProtected = false) {
	const { trades, prevented, cancel_reason: why, amount_filled: inAll } = body;
	const { filled, average } = fillOf(trades, pair);
	const said = filled ? [text.filledAt(`${shortest(filled)} ${pair.base}`, average)] : [];
	if (prevented) {
		said.push(text.prevented(prevented.map((/** @type {Record<string, string>} */ p) =>
			`${p.o_id} (${exactly(p.amount)} ${pair.base})`).join(", ")));
	}
	if (why) {
		const isMarket = body.order_type === "market" && body.price;
		const reason = why === "ioc" && isMarket ? text.beyond(isProtected,
			decimal(parse(body.price), pair.priceDigits))
			: text.reasons[/** @type {keyof typeof text.reasons} */ (why)] ?? why;
		const isRest = filled || parse(inAll ?? "0");
		said.push((isRest ? text.restCancelled : text.allCancelled)(reason));
	}
	return said.join("; ");
}

/**
 * wordsOf says why something was not done.
 * @param {import("./session.js").Answer} answer
 * @param {import("./session.js").Account} account
 */
export function wordsOf({ status, body, retryAfter }, account) {
	if (status === 400 && body.error) return refused(body.error, account);
	if (status === 400 && !body.detail) return readable(Object.values(body).flat());
	if (status === 401) return text.keyEnded;
	if (status === 429) return text.tooOften(String(retryAfter || ""));
	if (status === 503) return text.nothingDone(readable(body.detail ?? "").replace(/[^.!?]$/, "$&."));
	return readable(body.detail ?? text.noAnswer);
}

/** wrongOf says what is wrong with a number that was typed. @param {string} typed */
export function wrongOf(typed) {
	if (!typed.trim()) return text.empty;
	const { n, two } = read(typed);
	return two ? text.twoNumbers(editable(two[0]), editable(two[1]))
		: n === 0n ? text.isZero : text.notANumber(decimal(123_450_000_000n, 2));
}

/** sideOf shows a side, in words and with a sign. @param {string} side */
export const sideOf = (side) => html`<span class=${side === "buy" ? "up" : "down"}
	><span aria-hidden="true">${side === "buy" ? "▲" : "▼"}</span> ${
	side === "buy" ? text.buy : text.sell}</span>`;

/**
 * priced writes a price with the digits of its pair.
 * @param {string} price
 * @param {import("./api.js").Pair | undefined} pair
 */
export const priced = (price, pair) => (pair ? decimal(parse(price), pair.priceDigits) : padded(price));

/**
 * priceOf shows the limit of an order; one at the market has none, but a worst price.
 * @param {Partial<Order>} o
 * @param {import("./api.js").Pair | undefined} pair
 */
export const priceOf = (o, pair) => (o.order_type === "market" ? text.types.market
	: o.price ? priced(o.price, pair) : text.none);

/** signOf says to which side of a trigger the price goes. @param {boolean} isRise */
export const signOf = (isRise) => (isRise ? "≥" : "≤");

/**
 * typeOf says which order it is: what it waits for, what it shows, and how long it stays.
 * @param {Partial<Order>} o
 * @param {import("./api.js").Pair} [pair]
 */
export function typeOf(o, pair) {
	const { trigger_price: at, oco_trigger_price: leg, oco_price: second, display_amount } = o;
	const isMarket = o.order_type === "market";
	const kind = leg ? text.types.oco : at ? text.types[isMarket ? "stopMarket" : "stop"]
		: text.types[isMarket ? "market" : "limit"];
	const isRise = (o.trigger_when ?? (o.type === "buy" ? "rise" : "fall")) === "rise";
	const { time_in_force: is = "gtc" } = o, force = o.post_only ? "post" : is;
	return [kind, at && text.triggerAt(signOf(isRise), priced(at, pair)),
		leg && text.otherLeg(priced(leg, pair), second ? priced(second, pair) : ""),
		display_amount && text.shows(exactly(display_amount)),
		force === "gtd" && o.expire_time ? text.untilTime(moment(Number(o.expire_time), false))
			: force === "gtc" || isMarket && force === "ioc" ? ""
				: text.forces[/** @type {"fok"} */ (force)].toLowerCase()].filter(Boolean).join(", ");
}

/** isWaiting reports whether a stop was not triggered yet. @param {Partial<Order>} o */
export const isWaiting = (o) => o.triggered === false && !o.oco_trigger_price;
