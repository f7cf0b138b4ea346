// The terminal: loads the pair, holds the stream, and tells each panel what it shows.
import { html, render } from "../../vendor/lit-html/lit-html.js";
import { load } from "../api.js";
import { chosen } from "../settings.js";
import { Status, Stream } from "../stream.js";
import { text } from "../text/en.js";
import { Chart, Depth, Header, Ladder, Trades } from "./market.js";

/** @typedef {import("../api.js").Pair} Pair */

const app = /** @type {HTMLElement} */ (document.getElementById("app"));
document.getElementById("loading")?.remove();
app.hidden = false;

const tabs = /** @type {const} */ (["chart", "book", "trades", "own"]);
render(html`
	<header id="header"></header>
	<p id="notice" role="status" hidden></p>
	<nav aria-label=${text.panels}><div id="tabs" role="tablist" @click=${pickTab} @keydown=${moveTab}>
		${tabs.map((name) => html`<button role="tab" id="tab-${name}" aria-controls="panel-${name}"
			>${name === "own" ? text.orders : text[name]}</button>`)}
	</div><a href="/account">${text.accountPage}</a></nav>
	<main>
		<h1 class="unseen">${text.market}</h1>
		<div class="left" id="panel-chart">
			<section id="chart" aria-label=${text.chart}></section>
			<section id="depth" aria-label=${text.depth}></section>
		</div>
		<div class="right">
			<section id="panel-book" aria-label=${text.book}></section>
			<section id="panel-form" aria-label=${text.order} hidden></section>
			<section id="panel-trades" aria-label=${text.trades}></section>
		</div>
		<section id="panel-own" aria-label=${text.account} hidden></section>
		<div id="toasts" role="status"></div>
	</main>
	<div id="sides" hidden></div>`, app);

/** @param {string} id */
const element = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @type {Map<string, Pair>} */
const pairs = new Map();
/** @type {Pair | undefined} */
let pair;
/** Keys that everybody may know; none: this is no demo. @type {import("../login.js").DemoKey[]} */
let demo = [];
/** What an account needs, once it is asked for. @type {Promise<Desk | undefined> | undefined} */
let loading;
/** @type {Desk | undefined} */
let desk;
/** @typedef {import("./desk.js").Desk} Desk */

const stream = new Stream();
const status = new Status(stream, element("notice"));
const header = new Header(element("header"), choose, () => openDesk().then((desk) => desk?.open()));
const ladder = new Ladder(element("panel-book"), stream);
const depth = new Depth(element("depth"), ladder.book);
const trades = new Trades(element("panel-trades"), stream);
const chart = new Chart(element("chart"), stream);
ladder.onChange = () => {
	depth.change();
	desk?.book();
};
/** @param {boolean} is */
const slow = (is) => {
	status.isSlow = is;
	ladder.shorten(is);
	tell();
};
stream.onSlow = () => slow(true);
ladder.onWhole = () => slow(false);
chosen.onChange = () => {
	chart.recolour();
	depth.change();
};

stream.on("ticker", (ticker) => header.ticker(ticker));
status.onChange = tell;
stream.onState = () => {
	tell();
	desk?.connection();
	if (stream.state !== "live") ladder.book.forget(); // what is shown stays
	else if (pair) {
		trades.load();
		chart.load();
		status.connected();
	}
};

/** tell shows what the market and the connection are like. */
function tell() {
	const shown = status.tell(pair?.name ?? "", pair !== undefined);
	header.tell({ state: shown });
	desk?.market(shown);
}

/** choose shows a pair. @param {string} name @param {boolean} [isNew] false: the address has it already */
function choose(name, isNew = true) {
	const to = pairs.get(name);
	if (!to || to === pair) return;
	pair = to;
	// the list of pairs has a place in the history while it is open: the pair takes it over
	if (isNew) history[history.state?.opened ? "replaceState" : "pushState"](null, "",
		`?pair=${encodeURIComponent(name)}`);
	header.tell({ pair });
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
			desk = new Desk({ stream, status, header, ladder, pairs, demo, element });
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

/** start reads the pairs as soon as the exchange has them. */
async function start() {
	const info = await load(stream, tell);
	for (const [name, p] of info.pairs) pairs.set(name, p);
	status.learn(info);
	demo = info.demo;
	header.tell({ all: [...pairs.values()], halted: () => status.halted });
	stream.subscribe("ticker", "status");
	stream.open();
	choose(asked(), false);
	enter();
	addEventListener("storage", ({ key }) => key === "session" && enter());
}

/** enter logs in with the key of another tab, or of this device. */
async function enter() {
	if (await isKept()) (await openDesk())?.session.resumeKept();
}

/** isKept reports whether a key is kept on this device: see session.js. */
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
