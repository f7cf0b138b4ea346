// The line at the top: the pair and its day, the state of the market, and the settings.
import { html, nothing, render } from "../../vendor/lit-html/lit-html.js";
import { fromNumber } from "../decimal.js";
import { decimal, percent } from "../format.js";
import { inFrame } from "../frame.js";
import { openHelp, settingsButton, singleKey } from "../settings.js";
import { stateLine } from "../stream.js";
import { text } from "../text/en.js";

/** @typedef {import("../api.js").Pair} Pair */
/**
 * @typedef {{timestamp: number, pair: string, last: number, diff: number, vol: number,
 *   high: number, low: number}} Ticker
 */

/** changeOf returns the share by which a price has changed; undefined: there was no price before. */
export function changeOf(/** @type {Ticker} */ t) {
	const before = t.last - t.diff;
	return t.last > 0 && before > 0 ? t.diff / before : undefined;
}

/** signOf returns a class, and a sign for readers who do not see its colour. @param {number} n */
const signOf = (n) => (n > 0 ? ["up", "▲"] : n < 0 ? ["down", "▼"] : ["", ""]);

export class Header {
	/** @type {Pair[]} */
	#pairs = [];
	/** @type {Pair | undefined} */
	#pair;
	/** @type {Map<string, Ticker>} */
	#tickers = new Map();
	/** @type {keyof typeof text.states} */
	#state = "connecting";
	#search = "";
	#at = 0; // place of the marked pair in the list
	#isOpen = false;
	#account = text.logIn;

	/**
	 * @param {HTMLElement} place
	 * @param {(name: string) => void} choose
	 * @param {() => void} openAccount
	 */
	constructor(place, choose, openAccount) {
		this.place = place;
		this.openAccount = openAccount;
		this.choose = choose;
		addEventListener("keydown", (event) => this.#key(event));
		addEventListener("pointerdown", (event) => {
			if (this.#isOpen && !(event.target instanceof Element && event.target.closest(".picker"))) this.#close();
		});
		this.#paint();
	}

	/** @param {Pair[]} pairs */
	pairs(pairs) {
		this.#pairs = pairs;
		this.#paint();
	}

	/** @param {Pair} pair */
	show(pair) {
		this.#pair = pair;
		this.#paint();
	}

	/** @param {keyof typeof text.states} state */
	state(state) {
		this.#state = state;
		this.#paint();
	}

	/** account says whose account it is, or how to come to one. @param {string} words */
	account(words) {
		this.#account = words;
		this.#paint();
	}

	/** ticker takes a pair's ticker; one paint follows for all that come together. @param {Ticker} ticker */
	ticker(ticker) {
		this.#tickers.set(ticker.pair, ticker);
		this.#wait();
	}

	#wait = inFrame(() => this.#paint());

	/** @param {KeyboardEvent} event */
	#key(event) {
		const key = singleKey(event);
		if (key === "/") this.#open();
		else if (key === "?") openHelp();
		else return;
		event.preventDefault();
	}

	#open() {
		this.#isOpen = true;
		this.#search = "";
		this.#at = Math.max(0, this.#pairs.findIndex((p) => p === this.#pair));
		this.#paint();
		this.place.querySelector("input")?.focus();
	}

	#close() {
		const hadFocus = this.place.querySelector(".picker")?.contains(document.activeElement);
		this.#isOpen = false;
		this.#paint();
		if (hadFocus) /** @type {HTMLElement} */ (this.place.querySelector(".pair")).focus();
	}

	#found() {
		const words = this.#search.toUpperCase().replace(/[^A-Z0-9]/g, "");
		return this.#pairs.filter((p) => p.name.toUpperCase().replace(/[^A-Z0-9]/g, "").includes(words));
	}

	/** @param {Pair | undefined} pair */
	#take(pair) {
		if (!pair) return;
		this.#close();
		this.choose(pair.name);
	}

	/** @param {KeyboardEvent} event */
	#move(event) {
		const found = this.#found();
		const last = found.length - 1;
		if (event.key === "Tab") return this.#close();
		if (!["ArrowDown", "ArrowUp", "Enter", "Escape"].includes(event.key)) return;
		event.preventDefault();
		if (event.key === "Enter") return this.#take(found[this.#at]);
		if (event.key === "Escape") return this.#close();
		this.#at = event.key === "ArrowDown" ? Math.min(last, this.#at + 1) : Math.max(0, this.#at - 1);
		this.#paint();
	}

	#paint() {
		const pair = this.#pair;
		const t = pair && this.#tickers.get(pair.name);
		const isTraded = t !== undefined && t.last > 0;
		const change = t && changeOf(t);
		const [colour, sign] = signOf(change ?? 0);
		/** @param {number} n @param {number} digits */
		const shown = (n, digits) => (isTraded ? decimal(fromNumber(n), digits) : text.none);
		const digits = pair?.priceDigits ?? 0;
		const last = t ? shown(t.last, digits) : text.none;
		if (pair) document.title = isTraded ? `${last} ${pair.name}` : pair.name;
		render(html`
			<div class="picker">
				<button class="pair" aria-haspopup="listbox" aria-expanded=${this.#isOpen}
					@click=${() => (this.#isOpen ? this.#close() : this.#open())}>
					<span class="unseen">${text.pair}</span>${pair ? html`<b>${pair.base}</b><span class="muted">/${pair.quote}</span>` : text.loading}
					<span aria-hidden="true" class="muted">▾</span>
				</button>
				${this.#isOpen ? this.#list() : nothing}
			</div>
			<dl class="day">
				<div class="last"><dt class="unseen">${text.last}</dt><dd class=${colour}>${last}</dd></div>
				<div class="change"><dt>${text.change}</dt><dd class=${colour}>${change === undefined ? text.none : html`<span aria-hidden="true">${sign}</span> ${percent(change)}`}</dd></div>
				<div><dt>${text.high}</dt><dd>${t ? shown(t.high, digits) : text.none}</dd></div>
				<div><dt>${text.low}</dt><dd>${t ? shown(t.low, digits) : text.none}</dd></div>
				<div><dt>${text.volume(pair?.base ?? "")}</dt><dd>${t ? shown(t.vol, 4) : text.none}</dd></div>
			</dl>
			${stateLine(this.#state)}
			<a class="wide" href="/account">${text.accountPage}</a>
			<button class="account" @click=${this.openAccount}>${this.#account}</button>
			<button class="help" title=${text.help} aria-label=${text.help} @click=${openHelp}>?</button>
			${settingsButton}`, this.place);
	}

	#list() {
		const found = this.#found();
		return html`<div class="pairs">
			<input type="search" role="combobox" aria-label=${text.searchPairs} aria-expanded="true" aria-controls="pairs"
				aria-activedescendant=${found[this.#at] ? `pair-${this.#at}` : nothing} placeholder=${text.searchPairs}
				autocomplete="off" spellcheck="false" .value=${this.#search} @keydown=${this.#move.bind(this)}
				@input=${(/** @type {InputEvent} */ event) => {
					this.#search = /** @type {HTMLInputElement} */ (event.target).value;
					this.#at = 0;
					this.#paint();
				}}>
			<ul id="pairs" role="listbox" aria-label=${text.pairs}>
				${found.map((p, i) => {
					const t = this.#tickers.get(p.name);
					const change = t && changeOf(t);
					const [colour, sign] = signOf(change ?? 0);
					return html`<li role="option" id="pair-${i}" aria-selected=${i === this.#at} @click=${() => this.#take(p)}>
						<span><b>${p.base}</b><span class="muted">/${p.quote}</span></span>
						<span>${t && t.last > 0 ? decimal(fromNumber(t.last), p.priceDigits) : text.none}</span>
						<span class=${colour}>${change === undefined ? text.none : `${sign} ${percent(change)}`}</span></li>`;
				})}
			</ul>
			${found.length ? nothing : html`<p class="muted" role="status">${text.noPair}</p>`}
		</div>`;
	}
}
