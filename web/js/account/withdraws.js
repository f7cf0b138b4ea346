// Withdrawals: the form that asks for one, its code from the mail, its cancel, and what became of
// all of them. docs/web.md has the table of answers.
import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { readable, wordsOf, wrongOf } from "../words.js";
import { padded, plain, shortest, typed } from "../format.js";
import { Sender } from "../session.js";
import { words } from "../text/account.en.js";
import { text } from "../text/en.js";
import { utc } from "./csv.js";
import { atTime, instant } from "./exact.js";
import { List } from "./list.js";
import { Pages } from "./pages.js";
import { WITHDRAWALS } from "./sending.js";

/**
 * @typedef {{id: string, timestamp: string, currency: string, amount: string, status: string,
 *   address: string, adjustment?: boolean, details?: string, client_id?: string}} Withdrawal
 * @typedef {"currency" | "amount" | "address"} Field
 */

/** States in which the owner may still cancel. */
const NEW = "10", VERIFIED = "20";

/**
 * In files, which programs read: as the exchange's own programs name them.
 * @type {Record<string, string>}
 */
const STATUSES = { 10: "new", 20: "verified", 30: "approved", 40: "refused", 50: "canceled" };

export class Withdraws {
	/** What is typed. */
	#typed = { currency: "", amount: "", address: "" };
	/** @type {Partial<Record<Field, string>>} */
	#wrong = {};
	/** The fields of the newest withdrawal that was sent from the form. @type {unknown} */
	#sent;
	#isSending = false;
	#isClosed = false; // the operator takes none
	#isGood = true;
	#words = "";
	/**
	 * By id: the code that is typed, and what was wrong with one.
	 * @type {Map<string, {code: string, wrong: string}>}
	 */
	#codes = new Map();
	/** Ids of withdrawals of which a change is on its way. */
	#moving = new Set();

	/** @param {import("./main.js").Page} page */
	constructor(page) {
		this.page = page;
		this.sender = new Sender(page.session, WITHDRAWALS);
		this.sender.onChange = () => page.change();
		this.sender.onOutcome = (outcome) => this.#outcome(outcome);
		/** @type {List} */
		this.list = new List(page, { name: "withdraws", title: words.sections.withdraws,
			columns: [[atTime, (w) => instant(Number(w.timestamp))],
				[words.withdrawId, (w) => w.id], [text.currency, (w) => w.currency],
				[text.amount, (w) => padded(w.amount)], [words.address, (w) => w.address],
				[text.state, (w) => this.#state(w)]],
			csv: [["time", (w) => utc(w.timestamp)], ["id", (w) => w.id],
				["client_id", (w) => w.client_id ?? ""], ["currency", (w) => w.currency],
				["amount", (w) => w.amount], ["address", (w) => w.address],
				["status", (w) => (w.adjustment ? "adjusted" : STATUSES[w.status] ?? w.status)],
				["details", (w) => w.details ?? ""]],
			open: () => new Pages({ read: (path) => page.session.read(path),
				path: "/api/v1/withdraws/", most: 1000 }) });
	}

	/** @param {import("../session.js").Event} event */
	event(event) {
		if (event.snapshot || event.cause === "withdraw") this.list.fresh();
	}

	/** @param {SubmitEvent} event */
	#submit(event) {
		event.preventDefault();
		if (this.#isSending || this.#whyNot()) return;
		const amount = typed(this.#typed.amount), address = this.#typed.address.trim();
		this.#wrong = {};
		if (!amount) this.#wrong.amount = wrongOf(this.#typed.amount);
		if (!address) this.#wrong.address = words.noAddress;
		this.#words = "";
		if (amount && address) {
			const fields = { currency: this.#currency, amount: plain(amount), address };
			this.#sent = fields;
			this.#isSending = true;
			this.sender.send(fields);
		}
		this.page.change(() => this.#focusWrong());
	}

	#focusWrong() {
		const field = document.querySelector('.withdraw [aria-invalid="true"]');
		if (field instanceof HTMLElement) field.focus();
	}

	/**
	 * outcome says what has become of a withdrawal, in words.
	 * @param {import("../session.js").Outcome} outcome
	 */
	#outcome({ pending, answer, order }) {
		const isMine = pending.fields === this.#sent, { account } = this.page.live;
		if (isMine) this.#isSending = false;
		this.#isGood = answer?.status === 201 || order !== undefined;
		let then = () => {};
		if (order) {
			this.#words = words.withdrawIsIn(order);
			this.list.fresh();
		} else if (!answer) this.#words = pending.state === "unknown" ? words.withdrawUnknown : "";
		else if (pending.state === "unknown" && answer.status >= 401) {
			this.#words = text.stillUnknown;
		} else if (answer.status === 201) {
			const { id } = answer.body;
			this.#words = words.asked(id);
			this.list.put([answer.body]).then(() =>
				this.page.change(() => document.getElementById(`code-${id}`)?.focus()));
		} else if (answer.status === 400 && isMine && !answer.body.detail && !answer.body.error) {
			then = () => this.#focusWrong();
			this.#blame(answer.body);
		} else if (answer.status === 503 && /^Withdraws are closed/.test(answer.body.detail)) {
			this.sender.drop(pending); // a second try would do no more
			this.#isClosed = true;
			this.#words = words.closed;
		} else this.#words = wordsOf(answer, account);
		if (this.#isGood && isMine) this.#typed.amount = this.#typed.address = "";
		this.page.change(then);
	}

	/**
	 * blame puts the exchange's words below the fields that it means.
	 * @param {Record<string, string[]>} body
	 */
	#blame(body) {
		const { currency, amount, address, ...others } = body;
		for (const [name, why] of Object.entries({ currency, amount, address })) {
			if (why) this.#wrong[/** @type {Field} */ (name)] = readable(why);
		}
		this.#words = readable(Object.values(others).flat());
	}

	/**
	 * move confirms or cancels. Doing so twice does no harm, because a withdrawal leaves each state
	 * once.
	 * @param {Withdrawal} w
	 * @param {string} path
	 * @param {Record<string, string>} fields
	 * @param {(id: string) => string} done
	 */
	async #move(w, path, fields, done) {
		const { id } = w;
		if (this.#moving.has(id)) return;
		this.#moving.add(id);
		this.#codes.set(id, { code: fields.code ?? "", wrong: "" });
		this.page.change();
		let then = () => {};
		this.#isGood = false;
		try {
			const answer = await this.page.session.post(path, { withdraw: id, ...fields });
			if (answer.status === 200) {
				this.#isGood = true;
				this.#words = done(id);
				this.#codes.delete(id);
				await this.list.put([answer.body]);
			} else if (answer.status === 400 && answer.body.code && fields.code) {
				this.#words = "";
				const wrong = [answer.body.code].flat().join(" ");
				this.#codes.set(id, { code: "", wrong });
				then = () => document.getElementById(`code-${id}`)?.focus();
			} else {
				this.#words = wordsOf(answer, this.page.live.account);
				this.list.fresh();
			}
		} catch {
			this.#words = words.moveUnknown(id);
			this.list.fresh();
		}
		this.#moving.delete(id);
		this.page.change(then);
	}

	/** state says where a withdrawal is, with what its owner may do. @param {Withdrawal} w */
	#state(w) {
		const { id, status, details } = w;
		const said = w.adjustment ? words.adjusted
			: words.withdrawStates[/** @type {"10"} */ (status)] ?? status;
		const mayMove = this.page.session.may("withdraw") && [NEW, VERIFIED].includes(status);
		const shown = html`<span>${details ? `${said}: ${details}` : said}</span>`;
		if (!mayMove) return shown;
		const isMoving = this.#moving.has(id), { code, wrong } = this.#codes.get(id)
			?? { code: "", wrong: "" };
		return html`<div class="moves">${shown}
			${status === NEW ? html`<form class="code" autocomplete="off"
				@submit=${(/** @type {Event} */ event) => {
					event.preventDefault();
					const typed = this.#codes.get(id)?.code.trim();
					if (typed) {
						this.#move(w, "/api/v1/withdraw-confirm/", { code: typed }, words.confirmed);
					}
				}}>
				<input id="code-${id}" aria-label=${words.codeOf(id)} placeholder=${words.code}
					autocomplete="one-time-code" autocapitalize="off" spellcheck="false"
					maxlength="64" .value=${code} aria-invalid=${wrong ? "true" : "false"}
					aria-describedby=${wrong ? `wrong-${id}` : nothing}
					@input=${(/** @type {Event} */ event) => {
						const { value } = /** @type {HTMLInputElement} */ (event.target);
						this.#codes.set(id, { code: value, wrong: "" });
						this.page.change();
					}}><button ?disabled=${isMoving || this.page.status.maintenance !== null}
						aria-label=${words.confirmOf(id)}
					>${words.confirm}</button></form>
				${wrong ? html`<p class="wrong" role="alert" id="wrong-${id}">${wrong}</p>`
				: nothing}` : nothing}
			<button type="button" class="cancel" id="cancel-${id}" ?disabled=${isMoving}
				aria-label=${words.cancelOf(id)} @click=${() => this.#move(w,
					"/api/v1/withdraw-cancel/", {}, words.cancelled)}>${text.cancel}</button></div>`;
	}

	/** The currencies that there are; a key that may not read knows those of the pairs. */
	get #currencies() {
		const { live, info } = this.page, own = [...live.account.balances.keys()];
		return own.length ? own
			: [...new Set([...info?.pairs.values() ?? []].flatMap((p) => [p.base, p.quote]))];
	}

	get #currency() {
		return this.#typed.currency || this.#currencies[0] || "";
	}

	/** whyNot says why nothing can be asked for now; "": it can. */
	#whyNot() {
		const { live: { account } } = this.page, currency = this.#currency;
		const amount = typed(this.#typed.amount) ?? 0n;
		return this.#closedBy() || (account.balances.has(currency) && amount > account.free(currency)
				? text.tooLittle(currency) : "");
	}

	/** closedBy says why no withdrawal is taken now; "": they are. */
	#closedBy() {
		const { session, status } = this.page;
		return session.state !== "in" ? text.notLive
			: status.maintenance ? text.states.maintenance : "";
	}

	#form() {
		const currency = this.#currency, whyNot = this.#whyNot(), { account } = this.page.live;
		return html`<form class="fields withdraw" novalidate autocomplete="off"
				@submit=${this.#submit.bind(this)}>
			<label><span>${text.currency}</span><select name="of"
				@change=${(/** @type {Event} */ event) => this.#set("currency", event)}>
				${this.#currencies.map((code) => html`<option ?selected=${code === currency}
					>${code}</option>`)}</select></label>
			${this.#wrongOf("currency")}
			${this.#input("amount", text.amount)}
			${account.balances.has(currency) ? html`<p class="muted">${text.free}: ${
				shortest(account.free(currency))} ${currency}</p>` : nothing}
			${this.#input("address", words.address)}
			<button class="main ask" ?disabled=${this.#isSending || whyNot !== ""}
				>${whyNot || words.ask(currency)}</button>
		</form>`;
	}

	/** @param {Field} field @param {Event} event */
	#set(field, event) {
		this.#typed[field] = /** @type {HTMLInputElement} */ (event.target).value;
		this.#wrong[field] = "";
		this.page.change();
	}

	/** @param {Field} field */
	#wrongOf(field) {
		const wrong = this.#wrong[field];
		return wrong ? html`<p class="wrong" id="wrong-${field}">${wrong}</p>` : nothing;
	}

	/** @param {"amount" | "address"} field @param {string} label */
	#input(field, label) {
		const wrong = this.#wrong[field];
		return html`<label><span>${label}</span><input name=${field} autocomplete="off"
				autocapitalize="off" spellcheck="false"
				inputmode=${field === "amount" ? "decimal" : "text"} .value=${this.#typed[field]}
				aria-invalid=${wrong ? "true" : "false"}
				aria-describedby=${wrong ? `wrong-${field}` : nothing}
				@input=${(/** @type {Event} */ event) => this.#set(field, event)}></label>
			${this.#wrongOf(field)}`;
	}

	/** onTheirWay shows withdrawals of which the outcome is not known. */
	#onTheirWay() {
		const { sender } = this;
		const whyNot = this.#closedBy();
		return sender.mine().map((p) => html`<p class="pending" data-state=${p.state}>
			<b>${text.orderStates[p.state]}</b>: ${padded(p.fields.amount)} ${p.fields.currency}
			${words.toAddress(p.fields.address)}
			${p.state === "refused" || p.state === "unseen" ? html`
				<button type="button" class="again" ?disabled=${whyNot !== ""}
					@click=${() => sender.again(p)}
					>${whyNot || (p.state === "refused" ? text.tryAgain : text.sendAgain)}</button>
				<button type="button" @click=${() => sender.drop(p)}>${text.dismiss}</button>`
			: nothing}</p>`);
	}

	view() {
		const may = this.page.session.may("withdraw");
		return html`${may ? html`<p class="muted">${words.aboutWithdraws}</p>
				${this.page.info?.demo.length ? html`<p><a href="/demo/mails" target="_blank"
					rel="noopener">${words.demoMails}</a></p>` : nothing}${this.#isClosed ? nothing : this.#form()}
				${this.#onTheirWay()}
				<p role="status" class=${this.#isGood ? "outcome" : "outcome wrong"}
					>${this.#words}</p>`
			: html`<p>${words.mayNot.withdraw}</p>`}
			<h3>${words.history}</h3>${this.list.view()}`;
	}
}
