// What has become of own orders that rested: toasts, a mark in the title, a sound, the system.
import { html, render } from "../../vendor/lit-html/lit-html.js";
import { parse } from "../decimal.js";
import { exactly, pairOf, shortest } from "../format.js";
import { chosen } from "../settings.js";
import { text } from "../text/en.js";
import { doneOf, fillOf, typeOf } from "../words.js";

/** @typedef {import("../account.js").Order} Order */
/** @typedef {import("../account.js").Event} Event */
/** @typedef {import("../api.js").Pair} Pair */

const MOST = 4; // toasts
/** How long a toast stays, and the least time between two sounds, in milliseconds. */
const STAYS = 20_000, SILENCE = 1000;

export class Notices {
	/** Open orders as they were told last. @type {Map<string, Order>} */
	#known = new Map();
	/** Those of before a snapshot. @type {Map<string, Order>} */
	#before = new Map();
	/** By order, the oldest first. @type {Map<string, {words: string, timer: number}>} */
	#toasts = new Map();
	/** Orders whose end the page says elsewhere, because it has asked for it. */
	mine = new Set();
	#unseen = 0; // since the page was hidden
	#heard = 0;
	/** @type {AudioContext | undefined} */
	#audio;

	/**
	 * @param {HTMLElement} place
	 * @param {Map<string, Pair>} pairs
	 * @param {(n: number) => void} mark marks the title
	 */
	constructor(place, pairs, mark) {
		this.place = place;
		this.pairs = pairs;
		this.mark = mark;
		document.addEventListener("visibilitychange", () => document.hidden || this.#see());
	}

	/** forget lets go of an account. */
	forget() {
		this.#known.clear();
		for (const id of this.#toasts.keys()) this.#drop(id);
		this.#see();
	}

	/** tell says what an event has done to orders that were open. @param {Event} event */
	tell(event) {
		const { orders = [], trades = [], snapshot, part = "1" } = event;
		if (snapshot && part === "1") {
			this.#before = this.#known;
			this.#known = new Map();
		}
		const before = snapshot ? this.#before : this.#known;
		for (const o of orders) {
			const was = before.get(o.id), isMine = this.mine.has(o.id);
			if (o.status === "1") this.#known.set(o.id, o);
			else {
				this.#known.delete(o.id);
				this.mine.delete(o.id);
			}
			const pair = /** @type {Pair} */ (this.pairs.get(o.pair));
			const why = o.status === "2" && !isMine
				&& (o.cancel_reason ?? event.cancel_reason ?? event.cause);
			const words = was && whatOf(was, o, trades, pair, why);
			if (words) {
				this.#add(o.id,
					`${text.order} ${o.id}, ${text[o.type]} ${pairOf(o.pair)}, ${typeOf(o)}: ${words}.`);
			}
		}
		if (!snapshot || event.parts && part !== event.parts) return;
		for (const [id] of before) { // closed while the page was away
			if (!this.#known.has(id) && event.orders_complete) this.#add(id, text.isOver(id));
		}
	}

	/** @param {string} id @param {string} words */
	#add(id, words) {
		this.#drop(id);
		const timer = setTimeout(() => this.#drop(id), STAYS);
		this.#toasts.set(id, { words, timer });
		for (const old of [...this.#toasts.keys()].slice(0, -MOST)) this.#drop(old);
		this.#paint();
		if (document.hidden) this.mark(++this.#unseen);
		if (chosen.sound) this.#beep();
		if (chosen.notify && document.hidden) this.#notify(id, words);
	}

	/** @param {string} id */
	#drop(id) {
		clearTimeout(this.#toasts.get(id)?.timer);
		if (this.#toasts.delete(id)) this.#paint();
	}

	#see() {
		this.mark(this.#unseen = 0);
	}

	#beep() {
		const now = Date.now();
		// before a first click the browser lets no page be heard
		if (now - this.#heard < SILENCE || !navigator.userActivation?.hasBeenActive) return;
		this.#heard = now;
		const audio = this.#audio ??= new AudioContext(), tone = audio.createOscillator();
		const volume = audio.createGain();
		volume.gain.setValueAtTime(0.1, audio.currentTime);
		volume.gain.exponentialRampToValueAtTime(0.001, audio.currentTime + 0.3);
		tone.frequency.value = 660;
		tone.connect(volume).connect(audio.destination);
		tone.start();
		tone.stop(audio.currentTime + 0.3);
	}

	/** @param {string} tag @param {string} body */
	#notify(tag, body) {
		try {
			const title = document.title.replace(/^\(\d+\) /, "");
			new Notification(title, { body, tag }).onclick = () => window.focus();
		} catch {
			// some systems have none for pages
		}
	}

	#paint() {
		render([...this.#toasts].map(([id, { words }]) => html`<p>${words} <button
			aria-label=${`${text.dismiss}: ${words}`} @click=${() => this.#drop(id)}>✕</button></p>`),
			this.place);
	}
}

/**
 * whatOf says what has happened to an order that was open; "": nothing that is told.
 * @param {Order} was
 * @param {Order} is
 * @param {import("../account.js").Trade[]} trades of the event
 * @param {Pair} pair
 * @param {string | false | undefined} why it was cancelled
 */
function whatOf(was, is, trades, pair, why) {
	const said = was.triggered === false && is.triggered ? [text.triggered] : [];
	if (is.amount_filled !== was.amount_filled) {
		const { filled, average } = fillOf(trades.filter((t) => t.order === is.id), pair);
		const at = !filled ? "" : filled === parse(is.amount_filled) ? text.averageAt(average)
			: text.nowAt(shortest(filled), average);
		said.push((is.status === "3" ? text.filledAll
			: text.filledOf(exactly(is.amount_filled), exactly(is.amount_original))
				.replace(/\.$/, "")) + at);
	}
	said.push(doneOf({ ...is, trades: [], cancel_reason: why }, pair));
	return said.filter(Boolean).join("; ");
}
