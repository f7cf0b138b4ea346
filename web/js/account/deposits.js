// Deposits, and how the operator takes them.
import { html } from "../../vendor/lit-html/lit-html.js";
import { words } from "../text/account.en.js";
import { padded } from "../format.js";
import { text } from "../text/en.js";
import { utc } from "./csv.js";
import { atTime, instant } from "./exact.js";
import { List } from "./list.js";
import { Pages } from "./pages.js";

export class Deposits {
	/** The operator's words by currency. @type {Record<string, string> | undefined} */
	#instructions;
	#hasFailed = false;

	/** @param {import("./main.js").Page} page */
	constructor(page) {
		this.page = page;
		/** @type {List} */
		this.list = new List(page, { name: "deposits", title: words.sections.deposits,
			columns: [[atTime, (d) => instant(Number(d.timestamp))],
				[words.depositId, (d) => d.id], [text.currency, (d) => d.currency],
				[text.amount, (d) => padded(d.amount)]],
			csv: [["time", (d) => utc(d.timestamp)], ["id", (d) => d.id],
				["currency", (d) => d.currency], ["amount", (d) => d.amount]],
			open: () => new Pages({ read: (path) => page.session.read(path),
				path: "/api/v1/deposits/", most: 1000 }) });
	}

	/** enter reads the instructions, which only a key is told. */
	async enter() {
		if (!this.page.session.may("read")) return;
		this.#hasFailed = false;
		try {
			const info = await this.page.session.read("/api/v1/exchange-info/");
			this.#instructions = info.deposit_instructions ?? {};
		} catch {
			this.#hasFailed = true;
		}
		this.page.change();
	}

	/** @param {import("../session.js").Event} event */
	event(event) {
		if (event.snapshot || event.cause === "deposit") this.list.fresh();
	}

	/** @param {string} currency */
	#words(currency) {
		const all = this.#instructions;
		if (!all) return this.#hasFailed ? words.noInstructions : text.loading;
		return Object.hasOwn(all, currency) ? all[currency] : words.uninstructed(currency);
	}

	view() {
		return html`<dl class="facts instructions">${[...this.page.live.account.balances.keys()]
				.map((currency) => html`<div><dt>${currency}</dt><dd>${
					this.#words(currency)}</dd></div>`)}</dl>
			${this.#hasFailed ? html`<button type="button" @click=${() => this.enter()}
				>${text.tryAgain}</button>` : ""}
			<h3>${words.history}</h3>${this.list.view()}`;
	}
}
