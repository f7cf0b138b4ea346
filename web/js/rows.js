// Words of the rows of an account's lists.
import { html } from "../vendor/lit-html/lit-html.js";
import { text } from "./text/en.js";

/** @typedef {import("./account.js").Order} Order */

/** sideOf shows a side, in words and with a sign. @param {string} side */
export const sideOf = (side) => html`<span class=${side === "buy" ? "up" : "down"}
	><span aria-hidden="true">${side === "buy" ? "▲" : "▼"}</span> ${
	side === "buy" ? text.buy : text.sell}</span>`;

/** typeOf says which order it is. @param {Partial<Order>} o */
export function typeOf(o) {
	const kind = o.oco_trigger_price ? text.types.oco
		: o.trigger_price ? text.types[o.order_type === "market" ? "stopMarket" : "stop"]
		: text.types[o.order_type === "market" ? "market" : "limit"];
	const force = o.post_only ? text.forces.post
		: o.time_in_force && o.time_in_force !== "gtc" ? o.time_in_force.toUpperCase() : "";
	const stop = o.trigger_price ?? o.oco_trigger_price;
	return `${kind}${stop ? ` ${stop}` : ""}${force ? `, ${force}` : ""}`;
}

/** isWaiting reports whether a stop was not triggered yet. @param {Partial<Order>} o */
export const isWaiting = (o) => o.triggered === false && !o.oco_trigger_price;
