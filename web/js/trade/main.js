// The terminal: loads the pair, holds the stream, and tells each panel what it shows.
import { html, render } from "../../vendor/lit-html/lit-html.js";
import { get, isCurrent, Refusal } from "../api.js";
import { parse } from "../decimal.js";
import { Stream } from "../stream.js";
import { text } from "../text/en.js";
import { Chart } from "./chart.js";
import { Depth } from "./depth.js";
import { Header } from "./header.js";
import { Ladder } from "./ladder.js";
import { chosen } from "./settings.js";
import { Trades } from "./trades.js";

/**
 * @typedef {{name: string, base: string, quote: string, priceDigits: number, amountDigits: number,
 *   tick: bigint, step: bigint, takerFee: bigint, marketCollar: bigint}} Pair
 */

const app = /** @type {HTMLElement} */ (document.getElementById("app"));
document.getElementById("loading")?.remove();
app.hidden = false;

const tabs = /** @type {const} */ (["chart", "book", "trades", "own"]);
render(html`
	<header id="header"></header>
	<p id="notice" role="status" hidden></p>
	<nav aria-label=${text.panels}><div id="tabs" role="tablist" @click=${pickTab} @keydown=${moveTab}>
		${tabs.map((name) => html`<button role="tab" id="tab-${name}" aria-controls="panel-${name}"
			>${name === "own" ? text.account : text[name]}</button>`)}
	</div></nav>
	<main>
		<h1 class="unseen">${text.market}</h1>
		<div class="left" id="panel-chart">
			<section id="chart" aria-label=${text.chart}></section>
			<section id="depth" aria-label=${text.depth}></section>
		</div>
		<section id="panel-book" aria-label=${text.book}></section>
		<section id="panel-form" aria-label=${text.order} hidden></section>
		<section id="panel-trades" aria-label=${text.trades}></section>
		<section id="panel-own" aria-label=${text.account} hidden></section>
	</main>
	<div id="sides" hidden></div>`, app);

/** @param {string} id */
const element = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @type {Map<string, Pair>} */
const pairs = new Map();
/** @type {Set<string>} */
const halted = new Set();
/** @type {{message: string} | null} */
let maintenance = null;
/** @type {Pair | undefined} */
let pair;
let wasLive = false;
let isOld = false; // the exchange has newer pages
let away = 0; // seconds by which this device's clock is ahead
/** Keys that everybody may know; none: this is no demo. @type {import("./login.js").DemoKey[]} */
let demo = [];
/** What an account needs, once it is asked for. @type {Promise<Desk | undefined> | undefined} */
let loading;
/** @type {Desk | undefined} */
let desk;
/** @typedef {import("./desk.js").Desk} Desk */

const stream = new Stream();
const header = new Header(element("header"), choose, () => openDesk().then((desk) => desk?.open()));
const ladder = new Ladder(element("panel-book"), stream);
const depth = new Depth(element("depth"), ladder.book);
const trades = new Trades(element("panel-trades"), stream);
const chart = new Chart(element("chart"), stream);
ladder.onChange = () => depth.change();
chosen.onChange = () => {
	chart.recolour();
	depth.change();
};

stream.on("ticker", (ticker) => header.ticker(ticker));
stream.on("status", (event) => {
	if (event.snapshot) {
		halted.clear();
		for (const name of event.halted) halted.add(name);
	} else if (event.pair) halted[event.status === "halted" ? "add" : "delete"](event.pair);
	if ("maintenance" in event) maintenance = event.maintenance;
	tell();
});
stream.onState = () => {
	tell();
	desk?.connection();
	if (stream.state !== "live") ladder.lost();
	else if (pair) {
		trades.load();
		chart.load();
		if (wasLive) isCurrent().then((current) => {
			isOld = !current;
			tell();
		}, () => {});
		wasLive = true;
	}
};

/** tell shows what the market and the connection are like. */
function tell() {
	const name = pair?.name ?? "";
	const { state } = stream;
	const shown = state !== "live" ? state : maintenance ? "maintenance" : halted.has(name) ? "halted" : "live";
	header.state(shown);
	document.body.dataset.state = shown;
	desk?.market(shown);
	document.body.classList.toggle("stale", state === "reconnecting" || state === "starting" && pair !== undefined);
	const notice = element("notice");
	const words = shown === "reconnecting" ? text.reconnecting : shown === "starting" ? text.starting
		: shown === "maintenance" ? text.maintenance(maintenance?.message ?? "")
		: shown === "halted" ? text.halted(name)
		: isOld ? text.newVersion
		: Math.abs(away) >= 2 ? text.clock(away) : "";
	notice.hidden = words === "";
	render(html`${words}${isOld && shown === "live" ? html` <button @click=${() => location.reload()}>${text.reload}</button>` : ""}`, notice);
}

/** choose shows a pair. @param {string} name @param {boolean} [isNew] false: the address has it already */
function choose(name, isNew = true) {
	const to = pairs.get(name);
	if (!to || to === pair) return;
	pair = to;
	if (isNew) history.pushState(null, "", `?pair=${encodeURIComponent(name)}`);
	header.show(pair);
	ladder.show(pair);
	depth.show(pair);
	trades.show(pair);
	chart.show(pair);
	desk?.show(pair);
	tell();
}

/** openDesk loads what an account needs. Visitors of the market never ask for it. */
function openDesk() {
	return loading ??= (async () => {
		try {
			const { Desk } = await import("./desk.js");
			desk = new Desk({ stream, header, ladder, pairs, demo, element });
			if (pair) desk.show(pair);
			tell();
			return desk;
		} catch {
			loading = undefined; // the next click tries again
			element("notice").hidden = false;
			render(text.notLoaded, element("notice"));
		}
	})();
}

/** asked returns the pair that the address names, or the first one. */
function asked() {
	const name = new URLSearchParams(location.search).get("pair") ?? "";
	return pairs.has(name) ? name : pairs.keys().next().value ?? "";
}
addEventListener("popstate", () => choose(asked(), false));

/** start reads the pairs, again and again until the exchange has them. */
async function start() {
	try {
		const before = Date.now();
		const info = await get("/api/v1/exchange-info/");
		away = Math.round((Date.now() + before) / 2000 - Number(info.time));
		for (const p of info.pairs) {
			pairs.set(p.name, { name: p.name, base: p.currency1, quote: p.currency2,
				priceDigits: Number(p.price_precision), amountDigits: Number(p.amount_precision),
				tick: parse(p.price_tick), step: parse(p.amount_step),
				takerFee: parse(p.taker_fee), marketCollar: parse(p.market_collar) });
			if (p.status === "halted") halted.add(p.name);
		}
		maintenance = info.maintenance;
		demo = info.demo ?? [];
	} catch (failed) {
		if (failed instanceof Refusal && failed.status === 503) stream.state = "starting";
		tell();
		setTimeout(start, 500);
		return;
	}
	header.pairs([...pairs.values()]);
	stream.subscribe("ticker", "status");
	stream.open();
	choose(asked(), false);
	if (await isKept()) (await openDesk())?.resume();
}

/** isKept reports whether a key is kept on this device: see keys.js. */
async function isKept() {
	try {
		return (await indexedDB.databases()).some(({ name }) => name === "key");
	} catch {
		return false; // where a browser lets pages keep nothing
	}
}

/** @param {string} name */
function showTab(name) {
	for (const tab of tabs) {
		const button = element(`tab-${tab}`);
		button.ariaSelected = String(tab === name);
		button.tabIndex = tab === name ? 0 : -1;
	}
	document.body.dataset.tab = name;
}
/** @param {Event} event */
function pickTab(event) {
	const button = /** @type {HTMLElement} */ (event.target).closest("button");
	if (button) showTab(button.id.slice("tab-".length));
}
/** @param {KeyboardEvent} event */
function moveTab(event) {
	const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
	if (!step) return;
	const shown = tabs.filter((name) => !element(`tab-${name}`).hidden);
	const at = shown.findIndex((name) => document.body.dataset.tab === name);
	const to = shown[(at + step + shown.length) % shown.length];
	showTab(to);
	element(`tab-${to}`).focus();
}

element("tab-own").hidden = true;
showTab("chart");
tell();
start();

export { ladder }; // a test compares its book with the exchange's
