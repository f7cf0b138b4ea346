// The account page: its log-in, its sections, and the events that keep them as they are.
import { html, nothing, render } from "../../vendor/lit-html/lit-html.js";
import { load } from "../api.js";
import { Live, Session } from "../session.js";
import { failedBy, openAccount, openLogin } from "../words.js";
import { settingsButton } from "../settings.js";
import { stateLine, Status, Stream } from "../stream.js";
import { words } from "../text/account.en.js";
import { text } from "../text/en.js";
import { Balances } from "./balances.js";
import { Deposits } from "./deposits.js";
import { Key } from "./key.js";
import { ordersOf, tradesOf } from "./trading.js";
import { Withdraws } from "./withdraws.js";

/**
 * A section of the page. enter: it is shown, or its account is there. list: what it has read.
 * @typedef {{view: () => unknown, enter?: () => void, list?: import("./list.js").List,
 *   event?: (event: import("../session.js").Event) => void}} Section
 */

const app = /** @type {HTMLElement} */ (document.getElementById("app"));
document.getElementById("loading")?.remove();
app.hidden = false;
render(html`<header id="header"></header>
	<p id="notice" role="status" hidden></p>
	<nav id="sections" aria-label=${words.sectionsLabel}></nav>
	<main id="main"></main>`, app);

/** @param {string} id */
const element = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** What the sections share. */
export class Page {
	stream = new Stream();
	session = new Session(this.stream);
	live = new Live(this.session);
	/** @type {import("../api.js").Info | undefined} */
	info;
	status = new Status(this.stream, element("notice"));
	/** @type {Record<string, Section>} */
	#sections = { balances: new Balances(this), orders: ordersOf(this), trades: tradesOf(this),
		deposits: new Deposits(this), withdraws: new Withdraws(this), key: new Key(this) };
	#isWaiting = false;
	/** What follows the next paint. @type {(() => void)[]} */
	#then = [];
	#wasIn = false;

	constructor() {
		this.status.onChange = () => this.change();
		this.live.onEvent = (event) => {
			for (const section of Object.values(this.#sections)) section.event?.(event);
			this.change();
		};
		this.session.onChange = () => this.#changed();
		this.stream.onState = () => {
			if (this.stream.state === "live") {
				this.status.connected();
				this.session.connected();
			} else this.session.lost();
			this.change();
		};
		addEventListener("hashchange", () => this.#enter());
		this.#paint();
		this.#start();
	}

	/**
	 * change paints soon, once for all that changes together.
	 * @param {() => void} [then] called after it
	 */
	change(then) {
		if (then) this.#then.push(then);
		if (this.#isWaiting) return;
		this.#isWaiting = true;
		requestAnimationFrame(() => {
			this.#isWaiting = false;
			this.#paint();
			for (const each of this.#then.splice(0)) each();
		});
	}

	async #start() {
		this.info = await load(this.stream, () => this.change());
		this.status.learn(this.info);
		this.stream.subscribe("status");
		this.stream.open();
		this.change();
		this.session.resumeKept();
		addEventListener("storage", ({ key }) => key === "session" && this.session.resumeKept());
	}

	/** The name of the section that the address asks for. */
	get #name() {
		const name = location.hash.slice(1);
		return Object.hasOwn(this.#sections, name) ? name : "balances";
	}

	#changed() {
		const { session } = this, isIn = session.state === "in";
		this.live.changed();
		if (session.state === "out") {
			for (const { list } of Object.values(this.#sections)) list?.clear();
			if (session.ended) openLogin(session, this.info?.demo ?? [], failedBy(session.ended));
		} else if (isIn && !this.#wasIn) this.#enter();
		this.#wasIn = isIn;
		this.change();
	}

	/** enter shows the section of the address, with what has been missed. */
	#enter() {
		const section = this.#sections[this.#name];
		if (this.session.state === "in") {
			section.enter?.();
			section.list?.resume();
		}
		this.change();
	}

	#logIn = () => {
		if (this.session.state !== "out") return openAccount(this.session);
		openLogin(this.session, this.info?.demo ?? []);
	};

	#paint() {
		const { session } = this, isOut = session.state === "out", name = this.#name;
		const state = this.status.tell("", !isOut), had = document.activeElement, id = had?.id;
		const title = words.sections[/** @type {keyof typeof words.sections} */ (name)];
		document.title = `${title} · ${words.title}`;
		render(html`<a class="market" href="/trade">${text.market}</a>
			<h1>${words.title}</h1>${stateLine(state)}
			<button class="account" @click=${this.#logIn}
				>${isOut ? text.logIn : session.name}</button>${settingsButton}`, element("header"));
		render(Object.keys(this.#sections).map((is) => html`<a href="#${is}"
			aria-current=${is === name ? "page" : nothing}>${
			words.sections[/** @type {keyof typeof words.sections} */ (is)]}</a>`),
			element("sections"));
		render(html`<section class=${name} aria-labelledby="title">
			<h2 id="title">${title}<b class="not-live"> ${text.notLive}</b></h2>
			${isOut ? this.#welcome()
				: session.permissions.length ? this.#sections[name].view()
				: html`<p class="muted">${words.waiting}</p>`}
			${session.isShared && name !== "key" ? html`<p class="wrong" role="status"
				>${text.shared}</p>` : nothing}</section>`, element("main"));
		// rows are templates by their place: the focus follows the row that it was in
		if (id && had.id !== id) document.getElementById(id)?.focus();
	}

	/** welcome explains the page to a visitor without a key. */
	#welcome() {
		return html`<p>${words.whatItIs}</p><p class="muted">${words.howToEnter}</p>
			<p><button class="main enter" @click=${this.#logIn}>${text.logIn}</button></p>`;
	}
}

export const page = new Page();
