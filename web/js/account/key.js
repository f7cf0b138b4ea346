// The key that is logged in: what it may, how often, and where it is kept.
import { html } from "../../vendor/lit-html/lit-html.js";
import { ask } from "../api.js";
import { forget, kept } from "../session.js";
import { text } from "../text/en.js";
import { words } from "../text/account.en.js";

/** @typedef {keyof typeof words.permissions} Permission */

export class Key {
	#keptKey = ""; // the key that this device remembers
	#words = "";

	/** @param {import("./main.js").Page} page */
	constructor(page) {
		this.page = page;
	}

	/** enter looks again which key is kept, and what the rates are now. */
	async enter() {
		this.#words = "";
		// where a browser lets pages keep nothing there is none
		this.#keptKey = (await kept().catch(() => undefined))?.key ?? "";
		this.page.change();
		// without an answer those that are shown stay
		this.page.info = await ask().catch(() => this.page.info);
		this.page.change();
	}

	async #keep() {
		try {
			await this.page.session.keep();
			await this.enter();
		} catch {
			this.#words = words.notRemembered;
			this.page.change();
		}
	}

	async #forget() {
		this.page.session.leave();
		await forget().catch(() => {}); // with what the browser did not keep
	}

	view() {
		const { session, info } = this.page, isKept = this.#keptKey === session.key;
		const kinds = /** @type {const} */ (["public", "reads", "commands", "cancels"]);
		return html`<dl class="facts"><div><dt>${text.key}</dt><dd>${session.key}</dd></div>
				<div><dt>${text.permissions}</dt><dd><ul>${session.permissions.map((p) => html`<li>${
					words.permissions[/** @type {Permission} */ (p)] ?? p}</li>`)}</ul></dd></div>
			</dl>
			<p class="muted">${words.aboutKey}</p>
			<h3>${words.device}</h3>
			<p>${isKept ? words.kept : words.notKept}</p>
			<p class="demo">${isKept ? html`<button type="button" class="forget"
					@click=${() => this.#forget()}>${text.forget}</button>`
				: html`<button type="button" class="keep" @click=${() => this.#keep()}
					>${words.remember}</button>`}
				<button type="button" class="leave" @click=${() => session.leave()}
					>${text.logOut}</button></p>
			<p role="status" class="wrong">${this.#words}</p>
			<p class="muted">${isKept ? text.aboutForget : words.aboutLeave}</p>
			<h3>${words.parallel}</h3>
			<p>${words.aboutParallel}</p>
			<p class=${session.isShared ? "wrong" : "muted"}>${session.isShared ? text.shared
				: text.alone}</p>
			<h3>${words.rates}</h3>
			<p class="muted">${words.aboutRates}</p>
			<dl class="facts">${kinds.map((kind) => {
				const rate = info?.rates[kind];
				return html`<div><dt>${words.rateKinds[kind]}</dt><dd>${rate
					? words.rate(rate.per_second, rate.burst) : words.noRate}</dd></div>`;
			})}</dl>`;
	}
}
