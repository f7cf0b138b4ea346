// Changes of open orders: the form for one, and what has become of it.
import { html, render } from "../../vendor/lit-html/lit-html.js";
import { parse, plain } from "../decimal.js";
import { typed } from "../format.js";
import { Sender } from "../sender.js";
import { open } from "../settings.js";
import { text } from "../text/en.js";
import { doneOf, sideOf, typeOf, wordsOf } from "../words.js";
import { focusWrong, input } from "./form.js";

/** @typedef {import("../account.js").Order} Order */
/** @typedef {keyof typeof text.changes} Name a field that may be changed */

/**
 * valuesOf returns what can be changed of an order, by the names of the API. A price that slid is
 * the one that was asked for.
 * @param {Order} o
 * @returns {Partial<Record<Name, string>>}
 */
const valuesOf = (o) => ({ price: o.price_asked ?? o.price, amount: o.amount_original,
	...o.triggered === false && { trigger_price: o.oco_trigger_price ?? o.trigger_price },
	...o.order_type !== "market" && { display_amount: o.display_amount ?? "" } });

/**
 * became says what has become of a change for which there was no answer; undefined: the order is
 * open, and is not changed yet.
 * @param {Order} o the order as it is now
 * @param {Record<string, string>} fields of the change
 */
export function became(o, fields) {
	const { order: _, pair: __, ...asked } = fields, is = valuesOf(o);
	const isAsked = Object.entries(asked).every(([name, value]) =>
		parse(is[/** @type {Name} */ (name)] || "0") === parse(value));
	const isOpen = o.status === "1";
	if (!isAsked && isOpen) return undefined;
	return `${isAsked ? text.isAmended(o.id) : ""} ${
		isOpen ? "" : text.isClosed(o.id, o.amount_filled, o.amount_original)}`.trim();
}

/**
 * The exchange has no names for changes. A change says what is to be, so a second one changes
 * nothing. What refuses it may be what the first has done.
 * @type {import("../sender.js").Kind}
 */
const CHANGES = { kept: "amends", name: "amend", beside: [400, 401, 403, 429, 503],
	send: (session, { amend: _, pair: __, ...fields }) => session.command("order-amend", fields),
	find: async (session, _, fields) =>
		became(await session.read(`/api/v1/order/${fields.order}/`), fields) };

export class Amend {
	/** The form that is open. @type {Form | undefined} */
	#form;

	/** @param {import("./desk.js").Desk} desk */
	constructor(desk) {
		this.desk = desk;
		this.sender = new Sender(desk.session, CHANGES);
		this.sender.onChange = () => desk.own.change();
		this.sender.onOutcome = (outcome) => this.#outcome(outcome);
	}

	/** of returns the change of an order that is on its way. @param {string} id */
	of(id) {
		return this.sender.mine().find((p) => p.fields.order === id);
	}

	/** told takes orders as an event has told of them. @param {Order[]} orders */
	told(orders) {
		for (const o of orders) {
			const p = this.of(o.id), words = p && became(o, p.fields);
			if (words) this.sender.seen(p.id, words);
		}
	}

	/** change tells that the account, or the connection, is another. */
	change() {
		if (this.desk.session.state === "out") this.#form?.dialog.close();
		this.#form?.paint();
	}

	/** open opens the form for an order that is open. @param {string} id */
	open(id) {
		const o = this.desk.account.orders.get(id);
		if (!o || this.#form || this.of(id) || !this.desk.session.may("trade")) return;
		this.#form = new Form(this, o);
		this.#form.dialog.addEventListener("close", () => (this.#form = undefined));
	}

	/** @param {import("../sender.js").Outcome} outcome */
	#outcome({ pending: p, answer, order: found }) {
		const { account, own } = this.desk, id = p.fields.order;
		const { status, body } = answer ?? { status: 0, body: {} };
		const pair = /** @type {import("../api.js").Pair} */ (
			this.desk.terminal.pairs.get(p.fields.pair));
		const form = this.#form?.order.id === id ? this.#form : undefined;
		const isLeft = !["refused", "unknown"].includes(p.state);
		if (form && isLeft && status >= 400 && !body.order) return form.refuse(answer, account);
		form?.dialog.close();
		own.say(found ? found
			: !answer ? p.state === "unknown" ? text.amendUnknown(id) : ""
			: p.state === "unknown" ? text.stillUnknown
			: status === 200 ? text.amended(body, doneOf(body, pair))
			: body.order ? text.notAmended(id, [body.order].flat().join(" "))
			: wordsOf(answer, account));
	}
}

class Form {
	/** @type {Partial<Record<Name, string>>} */
	#wrong = {};
	#words = "";

	/** @param {Amend} amend @param {Order} order as it was when the form was opened */
	constructor(amend, order) {
		this.amend = amend;
		this.order = order;
		this.was = valuesOf(order);
		/** What is typed. */
		this.is = { ...this.was };
		this.content = document.createElement("div");
		this.paint();
		this.dialog = open(text.amendOrder(order.id), this.content);
		this.content.querySelector("input")?.focus();
	}

	/** @param {SubmitEvent} event */
	#submit(event) {
		event.preventDefault();
		const { order: { id, pair }, was, is } = this;
		/** @type {Record<string, string>} */
		const fields = { order: id, pair };
		this.#wrong = {};
		this.#words = "";
		for (const [name, value] of /** @type {[Name, string][]} */ (Object.entries(is))) {
			if (value.trim() === was[name]) continue;
			const n = typed(value);
			if (!n) this.#wrong[name] = text.notANumber;
			else if (n !== parse(was[name] || "0")) fields[name] = plain(n);
		}
		const isWrong = Object.keys(this.#wrong).length > 0;
		if (isWrong) return this.#blame();
		if (Object.keys(fields).length === 2) this.#words = text.nothingChanged;
		else this.amend.sender.send(fields);
		this.paint();
	}

	/**
	 * refuse shows why the change was refused: below the fields that the exchange means.
	 * @param {any} answer
	 * @param {import("../account.js").Account} account
	 */
	refuse(answer, account) {
		const { status, body } = answer;
		this.#words = "";
		if (status !== 400 || body.error || body.detail) this.#words = wordsOf(answer, account);
		else for (const [name, words] of Object.entries(body)) {
			if (name in this.is) this.#wrong[/** @type {Name} */ (name)] = [words].flat().join(" ");
			else this.#words += `${name}: ${[words].flat().join(" ")} `;
		}
		this.#blame();
	}

	#blame() {
		this.paint();
		focusWrong(this.content);
	}

	paint() {
		const { order: o, amend: { desk } } = this, pair = desk.terminal.pairs.get(o.pair);
		const now = desk.account.orders.get(o.id);
		const isSending = this.amend.of(o.id)?.state === "sending";
		const whyNot = isSending ? text.amendStates.sending
			: desk.session.state !== "in" ? text.notLive : "";
		const names = /** @type {Name[]} */ (Object.keys(this.is));
		render(html`<form class="fields amend" novalidate autocomplete="off"
				@submit=${this.#submit.bind(this)}>
			<p>${o.pair}, ${sideOf(o.type)}, ${typeOf(o)}. ${now
				? text.filledOf(now.amount_filled, now.amount_original) : text.isOver(o.id)}</p>
			${names.map((name) => input({ id: `amend-${name}`, name, label: text.changes[name],
				value: this.is[name], wrong: this.#wrong[name], isFree: name === "display_amount",
				unit: name.endsWith("amount") ? pair?.base : pair?.quote, onInput: (value) => {
					this.is[name] = value;
					delete this.#wrong[name];
					this.paint();
				} }))}
			<p class="muted">${text.aboutAmend}</p>
			<button class="main" ?disabled=${!now || whyNot !== ""}>${whyNot || text.amend}</button>
			<p role="status" class="outcome wrong">${this.#words}</p></form>`, this.content);
	}
}
