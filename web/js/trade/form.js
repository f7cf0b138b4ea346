// The forms of orders: what is typed, what it would cost, what could be a slip, and what becomes
// of it.
import { html, nothing, render } from "../../vendor/lit-html/lit-html.js";
import { OTHER, Sender } from "../session.js";
import { furthest } from "../book.js";
import { decimal, DIGITS, editable, FINER, moment, offset, ONE, padded, pairOf, parse, percent, plain, shortest, typed } from "../format.js";
import { backCloses, chosen, inFrame, later, open } from "../settings.js";
import { text } from "../text/en.js";
import { doneOf, isAtMarket, isWaiting, priced, readable, sideOf, signOf, typeOf, wordsOf, wrongOf } from "../words.js";

/** @typedef {import("../api.js").Pair} Pair */
/** @typedef {import("./desk.js").Desk} Desk */
/** @typedef {import("../session.js").Order} Order */
/**
 * What may be changed of an order, as the API names it.
 * @typedef {"price" | "amount" | "trigger_price" | "display_amount" | "expire_time"} Name
 */
/** @typedef {"limit" | "market" | "stop" | "stopMarket" | "oco"} Type */
/** @typedef {keyof typeof text.forces} Force */
/** @typedef {"price" | "amount" | "total" | "trigger" | "second" | "display" | "until"} Field */

/**
 * What may be said of how long an order stays.
 * @type {Record<Type, Force[]>}
 */
const FORCES = { limit: ["gtc", "gtd", "ioc", "fok", "post", "slide"], market: ["ioc", "fok"],
	stop: ["gtc", "gtd", "ioc", "fok", "post", "slide"], stopMarket: ["ioc", "fok"],
	oco: ["gtc", "post", "slide"] };
/** Fields of an order, in the order of the form. @type {Record<Type, Field[]>} */
const FIELDS = { limit: ["price", "amount", "total"], market: ["second", "amount", "total"],
	stop: ["trigger", "price", "amount", "total"], stopMarket: ["trigger", "second", "amount"],
	oco: ["price", "trigger", "second", "amount", "total"] };

/** @type {Record<Field, string>} */
const EMPTY = { price: "", amount: "", total: "", trigger: "", second: "", display: "", until: "" };

/** over divides and rounds up. @param {bigint} a @param {bigint} b */
const over = (a, b) => (a + b - 1n) / b;

/** secondsOf returns the time in a field, since 1970. NaN: it is none. @param {string} is */
const secondsOf = (is) => new Date(is).getTime() / 1000;

/** A Draft is an order before it is sent: what it would do now, and what could be a slip. */
class Draft {
	/** The pair, once one is shown. @type {Pair} */
	pair = /** @type {any} */ (undefined);
	/** @type {"buy" | "sell"} */
	side = "buy";
	/** @type {Type} */
	type = "limit";
	/** How long an order stays, of each type: the first at first. @type {Record<Type, Force>} */
	forces = { limit: "gtc", market: "ioc", stop: "gtc", stopMarket: "ioc", oco: "gtc" };
	/** @type {"loss" | "profit"} */
	when = "loss"; // its trigger comes
	/** What happens when it meets an own order; "": what the account has set. @type {keyof typeof text.selfTrades} */
	self = "";
	/** What is typed. @type {Record<Field, string>} */
	typed = { ...EMPTY };
	byTotal = false; // of amount and total the one that was typed last

	/** @type {Partial<Record<Field, string>>} */
	wrong = {};
	words = "";

	/** @param {Desk} desk @param {string} id begins those of fields @param {HTMLElement} place */
	constructor(desk, id, place) {
		this.desk = desk;
		this.id = id;
		this.place = place;
	}

	paint() {}

	/** What happens when the order meets an own one; "": it is not known. */
	get mode() {
		return this.self || this.desk.form.fees.selfTrade;
	}

	get force() {
		return this.forces[this.type];
	}

	/**
	 * @param {{side?: "buy" | "sell", type?: Type, force?: Force, when?: Draft["when"],
	 *   self?: Draft["self"]}} to
	 */
	choose({ side = this.side, type = this.type, force, when = this.when, self = this.self }) {
		const was = this.type;
		this.side = side;
		this.when = when;
		this.self = self;
		// the reserve of a buy would not be known when it is placed
		this.type = type === "oco" && side === "buy" ? "limit" : type;
		if (force) this.forces[this.type] = force;
		if (was !== this.type) {
			this.typed.second = ""; // it means another price there
			// that of an OCO is beyond the market: a bid's or a stop's would fill at once
			if (this.type === "oco") this.typed.price = "";
		}
		if (!this.shown().includes("total")) this.byTotal = false;
	}

	/** n returns the number in a field; null: there is none. @param {Field} field */
	n(field) {
		return typed(this.typed[field]);
	}

	/** has reports whether orders of the type have a field. @param {Field} field */
	has(field) {
		return FIELDS[this.type].includes(field);
	}

	/** shown returns the fields of the order in the form. */
	shown() {
		return FIELDS[this.type].filter((field) => field !== "total" || this.type !== "market"
			|| this.side === "buy"); // nothing is sold by its price
	}

	/** price returns the price that amount and total follow; null: there is none. */
	price() {
		return this.has("price") ? this.n("price") : null;
	}

	/** isPost reports whether the order takes nothing. */
	isPost() {
		return ["post", "slide"].includes(this.force);
	}

	/** mayRest reports whether a part of the order can stay in the book, and be hidden there. */
	mayRest() {
		return this.has("price") && !["ioc", "fok"].includes(this.force);
	}

	isStop() { return this.type === "stop" || this.type === "stopMarket"; }

	/** all returns all fields of the order. */
	all() {
		return /** @type {Field[]} */ ([...this.shown(), this.mayRest() && "display",
			this.force === "gtd" && "until"].filter(Boolean));
	}

	/** nameOf returns a field's name in the API. @param {Field} field */
	nameOf(field) {
		const isOco = this.type === "oco";
		return { price: "price", amount: "amount", total: "quote_amount",
			trigger: isOco ? "oco_trigger_price" : "trigger_price",
			second: isOco ? "oco_price" : "price", display: "display_amount",
			until: "expire_time" }[field];
	}

	/**
	 * put puts a field into what is sent, or says what is wrong with it.
	 * @param {Record<string, string>} order
	 * @param {Field} field
	 * @param {boolean} [isNeeded]
	 */
	put(order, field, isNeeded = !this.emptyOf(field)) {
		const is = this.typed[field], n = typed(is), at = secondsOf(is);
		if (field === "until" ? at : n) order[this.nameOf(field)] = n ? plain(n) : String(at);
		else if (is.trim() || isNeeded) {
			this.wrong[field] = field === "until" ? text.notATime : wrongOf(is);
		}
	}

	/** balance lets the one of amount and total follow that was not typed. */
	balance() {
		const { byTotal } = this, price = this.price(), step = this.pair?.step ?? 1n;
		const given = this.n(byTotal ? "total" : "amount");
		this.typed[byTotal ? "amount" : "total"] = !price || given === null ? ""
			: editable(byTotal ? given * ONE / price / step * step : over(given * price, ONE));
	}

	/** @param {Field} field @param {string} value */
	set(field, value) {
		this.typed[field] = value;
		delete this.wrong[field];
		this.words = ""; // of the order before
		if (field === "amount" || field === "total") this.byTotal = field === "total";
		this.balance();
		this.paint();
	}

	/**
	 * step moves a price by ticks with the arrows.
	 * @param {Field} field
	 * @param {KeyboardEvent} event
	 */
	step(field, event) {
		const way = { ArrowUp: 1n, ArrowDown: -1n }[event.key], now = this.n(field);
		if (!way || now === null || field === "amount" || field === "total") return;
		event.preventDefault();
		const to = now + way * this.pair.tick * (event.shiftKey ? 10n : 1n);
		if (to > 0n) this.set(field, editable(to));
	}

	/** look shows what is wrong, and brings the focus to the first of it. */
	look() {
		this.paint();
		/** @type {HTMLElement | null} */
		const first = this.place.querySelector("[aria-invalid=true]");
		const fold = first?.closest("details");
		if (fold) fold.open = true;
		first?.focus();
	}

	/**
	 * refuse says why the order was refused: below the fields that the exchange means.
	 * @param {import("../session.js").Answer} answer
	 */
	refuse(answer) {
		const { status, body } = answer, isOfFields = status === 400 && !body.error && !body.detail;
		this.words = isOfFields ? "" : wordsOf(answer, this.desk.account);
		for (const [name, words] of isOfFields ? Object.entries(body) : []) {
			const why = readable(words).replace(/least \d.*(?=\.$)/, `$& ${this.pair?.quote}`);
			const field = this.all().find((each) => this.nameOf(each) === name.replace("when", "price"));
			if (field) this.wrong[field] = why;
			else this.words += `${name}: ${why} `;
		}
		this.look();
	}

	/** input is a field with its label, and what is wrong with it below. @param {Field} field */
	input(field) {
		const id = `${this.id}-${field}`, value = this.typed[field], wrong = this.wrong[field];
		const isTime = field === "until";
		return html`<label><span>${this.labelOf(field)}${isTime
				? ` (${offset(value ? +new Date(value) : undefined)})` : ""}</span><span
				class="typed"><input id=${id} name=${field} type=${isTime ? "datetime-local" : "text"}
				inputmode="decimal" autocomplete="off" .value=${value}
				aria-invalid=${wrong ? "true" : "false"}
				aria-describedby=${wrong ? `wrong-${id}` : nothing} placeholder=${this.emptyOf(field)}
				@keydown=${(/** @type {KeyboardEvent} */ event) => this.step(field, event)}
				@input=${(/** @type {Event} */ event) =>
					this.set(field, /** @type {HTMLInputElement} */ (event.target).value)}>
				<span class="muted" aria-hidden="true">${this.unitOf(field)}</span></span></label>
			${wrong ? html`<p class="wrong" id="wrong-${id}">${wrong}</p>` : nothing}`;
	}

	/** best returns the best price that the order meets now. */
	best() {
		return this.desk.bookOf(this.pair)?.sides[OTHER[this.side]][0]?.price;
	}

	/**
	 * take returns what an order of the side gets from the book now; undefined: it is not known.
	 * @param {Parameters<import("../book.js").Book["take"]>[1]} order
	 */
	take(order) {
		const { side, mode, desk } = this;
		/** @type {import("../book.js").Own} */
		const own = new Map();
		for (const o of [...desk.account.orders.values()].sort((a, b) => Number(a.id) - Number(b.id))) {
			if (o.pair !== this.pair?.name || o.type === side || isWaiting(o)) continue;
			const price = parse(o.price), { ids = [], amount = 0n } = own.get(price) ?? {};
			const all = parse(o.amount), part = parse(o.display_amount ?? o.amount);
			own.set(price, { ids: [...ids, o.id], amount: amount + (part < all ? part : all) });
		}
		return desk.bookOf(this.pair)?.take(OTHER[side], { ...order, own, mode });
	}

	/**
	 * atTrigger returns what a stop at the market would take if the price went to its trigger in the
	 * book of now. What a take-profit will find there is not in the book: it takes from the best on.
	 */
	atTrigger() {
		const trigger = this.n("trigger"), amount = this.n("amount");
		return trigger && amount ? this.take(this.isProfit() ? { amount } : { amount, from: trigger,
			limit: this.n("second") ?? this.protection() }) : undefined;
	}

	isProfit() { return this.isStop() && this.when === "profit"; }

	/**
	 * farFrom says that a price is far through the market, or its trigger, or on the side of its
	 * trigger where it may not be filled; "": it is not.
	 * @param {bigint | null} price
	 * @param {bigint | null} [trigger]
	 */
	farFrom(price, trigger) {
		const { pair, side } = this, than = trigger ?? this.desk.marketOf(pair, side);
		if (!price || !than) return "";
		const by = worse(side, price, than), { through, fromTrigger, mayRest } = text.warnings;
		const is = decimal(than, pair.priceDigits);
		if (trigger && price !== than && (side === "buy") === price < than) {
			return mayRest(price > than, is);
		}
		return by > THROUGH ? (trigger ? fromTrigger : through)(shareOf(by), is) : "";
	}

	/** dangers says what could be a slip. */
	dangers() {
		const { type, side, desk } = this, pair = this.pair;
		const { warnings } = text, isStop = this.isStop(), isOco = type === "oco";
		const trigger = this.n("trigger"), second = this.n("second"), best = this.best();
		const { take, isKilled, limit } = this.plan();
		const isLate = type === "stopMarket" || isOco && !second;
		const there = isLate ? this.atTrigger() : type === "market" ? take : undefined;
		const amount = `${shortest(there?.amount ?? take?.amount ?? 0n)} ${pair.base}`;
		/** @param {bigint} price */
		const written = (price) => decimal(price, pair.priceDigits);
		/** @type {(string | false | 0n | null)[]} */
		const said = [!this.isPost() && this.farFrom(this.price() ?? (isStop ? second : null),
			isStop ? trigger : null), isOco && this.farFrom(second, trigger),
			isOco && take?.amount && best ? warnings.ocoAtOnce(written(best)) : "",
			isKilled ? warnings.killed(amount) : ""];
		const market = desk.marketOf(pair, side);
		if (isLate && trigger && market) {
			const by = worse(trigger < market ? "sell" : "buy", trigger, market);
			said.push(by > THROUGH && warnings.farTrigger(shareOf(by), written(market)));
		}
		if (there && !isKilled) {
			const isLoss = isLate && !this.isProfit(), than = isLoss ? trigger : best;
			const by = there.amount && than ? worse(side, there.worst, than) : 0n;
			const end = isOco ? this.protection() : limit;
			said.push(by > FAR && !there.isMore && warnings.far(shareOf(by), isLoss),
				there.isMore ? warnings.short(amount) : (there.amount || isLoss) && (there.isWhole ? warnings[isLoss ? "beyond" : "whole"](amount)
				: there.isCut && end && warnings.cut(second ? text.worst : text.protection,
					written(end), amount)));
		} else if (type === "market" && !isKilled) said.push(warnings.noBook);
		return /** @type {string[]} */ (said.filter(Boolean));
	}

	/** summary says what is asked about. @returns {[string, unknown][]} */
	summary() {
		const pair = this.pair, mayRest = this.mayRest();
		const { self } = this;
		return /** @type {[string, string][]} */ ([[text.type, `${pairOf(pair.name)}, ${
			text.types[this.type]}${mayRest && this.typed.display.trim() ? text.iceberg : ""}`],
			...this.all().filter((field) => this.typed[field] || this.emptyOf(field) === text.atMarket)
				.map((field) => [this.labelOf(field), this.typed[field]
					? `${this.written(field)} ${this.unitOf(field)}` : text.atMarket]),
			this.isStop() && [text.when, this.whens()[this.when]],
			[text.timeInForce, text.forces[this.force]],
			self && [text.selfTrade, text.selfTrades[self]], ...this.estimates()].filter(Boolean));
	}

	/** written writes a field's number as the page writes numbers. @param {Field} field */
	written(field) {
		const is = this.typed[field], at = secondsOf(is), n = typed(is);
		return field === "until" ? `${moment(at, false)} (${offset(at * 1000)})`
			: n === null ? is : shortest(n);
	}

	/** whens names the two triggers of a stop, with the side of the price that each waits for. */
	whens() {
		const isBuy = this.side === "buy";
		return text.whens(signOf(isBuy), signOf(!isBuy));
	}

	/**
	 * protection returns the worst price at the market that the exchange gives to the order if none
	 * is typed; null: it is not known, or there is none.
	 */
	protection() {
		const { side, desk } = this, isMarket = this.type === "market";
		const { name, tick, band, collar, stopCollar } = this.pair;
		const from = this.has("second") && (isMarket ? this.best() : this.n("trigger"));
		if (!from) return null;
		const price = furthest(side, from, isMarket ? collar : stopCollar, tick);
		const last = isMarket ? desk.terminal.header.lastOf(name) : from;
		const bound = band && last ? furthest(side, last, band, tick) : price;
		return (side === "buy") === bound < price ? bound : price;
	}

	/**
	 * plan returns what the order would take from the book now, or at its trigger, and what it gives
	 * and gets, in 1e-16; null: it is not known. needs: so much has to be free. limit: the worst price
	 * that it takes. isPart: it takes less than is asked for. isKilled: so it takes nothing. isRest:
	 * what it does not take stays in the book. met: own orders that it meets. isSure: neither they nor
	 * a short book leave a doubt about what it takes.
	 */
	plan() {
		const { type } = this, isBuy = this.side === "buy", isMarket = type === "market";
		const price = this.price(), amount = this.n("amount"), isLate = type === "stopMarket";
		const worst = isMarket || isLate ? this.n("second") : null, total = this.n("total");
		const bySum = isMarket && this.byTotal, limit = price ?? worst ?? this.protection();
		const take = isLate ? this.atTrigger()
			: (isMarket || price) && type !== "stop" && !this.isPost() && (bySum ? total : amount)
				&& this.take({ ...bySum ? { value: total ?? 0n } : { amount: amount ?? 0n }, limit })
				|| undefined;
		const isPart = take && !take.isMore && (bySum ? take.isCut || take.isWhole || take.isEnded
			: take.amount < (amount ?? 0n));
		const isKilled = isPart && this.force === "fok", met = !isKilled && take?.met || [];
		const isSure = !take?.isMore && (!met.length || take?.isSure), isRest = this.mayRest() && !take?.isEnded;
		const most = isLate && isBuy ? limit : price; // what it may cost
		const held = bySum ? total && total * ONE : amount && (isBuy ? limit && limit * amount : amount * ONE);
		let size = isMarket ? null : amount && amount * ONE;
		let value = most && amount ? most * amount : null;
		if (take && isSure && !isLate) {
			const got = isKilled ? 0n : take.amount, rest = isRest && amount && price ? amount - got : 0n;
			size = (got + rest) * ONE;
			value = (got && take.paid) + rest * (price ?? 0n);
		}
		return { take, met, isSure, isPart, isKilled, isRest, limit,
			gives: isBuy ? value : size, gets: isBuy ? size : value, needs: held };
	}

	/** currency returns what an order is paid with. */
	currency() {
		const { base, quote } = this.pair;
		return this.side === "buy" ? quote : base;
	}

	/** emptyOf says what it means that a field is empty; "": it may not be. @param {Field} field */
	emptyOf(field) {
		return field === "second" && this.type === "oco"
			? this.isPost() ? "" : text.atMarket // what is sold there takes
			: field === "second" || field === "display" ? text.optional : "";
	}

	/** @param {Field} field */
	labelOf(field) {
		const isOco = this.type === "oco";
		return field === "second" ? isOco ? text.ocoPrice : text.worst
			: isOco && field === "trigger" ? `${text.fields.trigger} (${signOf(false)})`
			: text.fields[field];
	}

	/** @param {Field} field */
	unitOf(field) {
		const { base, quote } = this.pair;
		return field === "until" ? "" : field === "amount" || field === "display" ? base : quote;
	}

	/** estimates says what the order would do by the book. @returns {[string, string][]} */
	estimates() {
		const { base, quote, priceDigits } = this.pair;
		const { take, met, isSure, isPart, isKilled, isRest, needs } = this.plan();
		const { prices, amount, total } = text.estimated, { none } = text, { type } = this;
		const isMarket = type === "market", isLate = type === "stopMarket", protection = this.protection();
		/** @param {bigint} n */
		const sum = (n) => `${decimal(n, Math.max(priceDigits, 2))} ${quote}`;
		// rows are there without a number, too, so that the button does not move as the market does
		const is = take?.amount && isSure && !this.isProfit() ? take : undefined;
		const paid = [total, is ? sum(is.paid / ONE) : none];
		/** @type {(false | 0 | string[])[]} */
		const rows = [type !== "stop" && [prices, is ? [is.paid / is.amount, is.worst].map((price) =>
			decimal(price, priceDigits)).join(" / ") : none],
			this.has("second") && !this.n("second") && this.emptyOf("second") !== ""
				&& [text.protection, protection ? decimal(protection, priceDigits) : none],
			isLate && paid, (isLate || isMarket && !this.byTotal) && this.side === "buy"
				&& [text.reserved, needs === null ? none : sum(over(needs, ONE))]];
		if (isMarket || type === "limit") {
			const [now, of, unit] = isMarket && this.byTotal
				? [(take?.paid ?? 0n) / ONE, this.n("total"), quote]
				: [take?.amount ?? 0n, this.n("amount"), base];
			const part = now && !isKilled ? shortest(now) : "", all = `${part} ${unit}`;
			rows.push([text.fillsNow, take?.isMore && take.isSure && this.force !== "fok"
				? text.atLeast(all) : take && isSure ? isPart ? text.partNow(part,
					`${shortest(of ?? 0n)} ${unit}`, isRest) : all : none]);
		}
		rows.push(isMarket && (this.byTotal ? [amount, is ? `${shortest(is.amount)} ${base}` : none]
			: paid), !this.isStop() && met.length && [text.ownMet, text.meets(met, text.outcomes[
			/** @type {keyof typeof text.outcomes} */ (this.mode)] ?? text.meetsUnknown,
			take?.isMaybe)]);
		return /** @type {[string, string][]} */ (rows.filter(Boolean));
	}

	/**
	 * ask asks before the order is sent.
	 * @param {{title: string, yes: string, act: () => void, whyNot: () => string}} question
	 */
	ask(question) {
		ask({ ...question, side: this.side, dangers: () => this.dangers(), rows: () => this.summary() });
	}
}

/** Form is the form for a new order. */
export class Form extends Draft {
	isGood = true;
	#isSending = false;
	/** Of the order that the form waits for. @type {Record<string, string> | undefined} */
	#sent;

	/**
	 * @param {HTMLElement} place
	 * @param {HTMLElement} sides the bar of a narrow page, which opens the form as a sheet
	 * @param {Desk} desk
	 */
	constructor(place, sides, desk) {
		super(desk, "form", place);
		this.sides = sides;
		this.fees = new Fees(desk.session, this.change);
		place.addEventListener("focusin", ({ relatedTarget }) => {
			if (!place.contains(/** @type {Node | null} */ (relatedTarget))) this.fees.read();
		});
		place.addEventListener("keydown", (event) => {
			if (event.key !== "Escape") return;
			this.#sheet(false);
			if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
		});
	}

	/** @param {Pair} pair */
	show(pair) {
		this.pair = pair;
		this.typed = { ...EMPTY };
		this.wrong = {};
		this.words = "";
		asked?.dialog.close();
		this.change();
	}

	/** book tells that the book has changed, and with it what an order would do. */
	book = inFrame(() => this.place.hidden || this.change(), later);

	/** setPrice takes a price from the book. @param {bigint} price */
	setPrice(price) {
		if (this.has("price")) this.set("price", editable(price));
	}

	/** @param {string} key */
	key(key) {
		if (this.place.hidden) return false;
		const to = { b: "side-buy", s: "side-sell", p: "price", a: "amount" }[key];
		/** @type {HTMLElement | null} */
		const at = this.place.querySelector(`#form-${to}`);
		if (at?.matches("button")) at.click();
		at?.focus();
		return to !== undefined;
	}

	change = inFrame(() => this.paint());

	dangers() {
		const isLost = this.desk.sender.mine().some((p) => p.wasLost);
		return [...isLost ? [text.warnings.unknown] : [], ...super.dangers()];
	}

	/** say says something else than before. @param {string} words */
	say(words) {
		this.words = words;
		this.change();
	}

	/**
	 * outcome says what has become of an order, in words.
	 * @param {import("../session.js").Outcome} outcome
	 */
	outcome({ pending, answer, order }) {
		const { status, body } = answer ?? { status: 0, body: {} };
		const isMine = pending.fields === this.#sent;
		const isHere = isMine && pending.fields.pair === this.pair?.name;
		if (isMine) this.#isSending = false;
		this.desk.own.say("");
		this.isGood = status === 201 || status === 200 || order !== undefined;
		if (order) this.words = text.placed(order, "");
		else if (!answer) this.words = pending.state === "unknown" ? text.unknown : "";
		else if (pending.state === "unknown" && status >= 401) this.words = text.stillUnknown;
		else if (status === 201) {
			const pair = this.desk.terminal.pairs.get(pending.fields.pair);
			this.words = text.placed(body.oid, doneOf(body, /** @type {Pair} */ (pair),
				!pending.fields.price));
		}
		else if (status === 200) this.words = text.cancelled(body.order);
		else if (status === 400 && body.client_order_id) {
			const [why] = body.client_order_id; // of a cancel by name
			this.words = /found/.test(why) ? text.neverIn : `${why}.`;
		} else if (isHere) this.refuse(answer);
		else this.words = wordsOf(answer, this.desk.account);
		if (status === 201 && isHere) this.typed.amount = this.typed.total = "";
		this.change();
	}

	/** @param {Parameters<Form["choose"]>[0]} to */
	#choose(to) {
		this.choose(to);
		this.wrong = {};
		this.words = "";
		this.balance();
		this.change();
	}

	/** share puts a part of what is free into the form. @param {bigint} percent */
	#share(percent) {
		const pair = this.pair;
		if (this.side === "sell") {
			const amount = this.desk.account.free(pair.base) * percent / 100n;
			return this.set("amount", editable(amount / pair.step * pair.step));
		}
		const unit = 10n ** BigInt(DIGITS - Math.max(pair.priceDigits, 2));
		const total = this.desk.account.free(pair.quote) * percent / 100n / unit * unit;
		const worst = this.plan().limit;
		if (this.type !== "stopMarket") this.set("total", editable(total));
		else if (worst) this.set("amount", editable(total * ONE / worst / pair.step * pair.step));
	}

	/** fields returns the order as the API takes it; undefined: something typed is wrong. */
	#fields() {
		const { type, side, force } = this, { name } = this.pair;
		/** @type {Record<string, string>} */
		const order = { pair: name, type: side };
		this.wrong = {};
		// without a price the one that was typed is not wrong
		const other = this.byTotal && !this.price() ? "amount" : "total";
		for (const field of this.all()) field === other || this.put(order, field);
		if (this.isProfit()) order.trigger_when = side === "sell" ? "rise" : "fall";
		if (type === "market" || type === "stopMarket") order.order_type = "market";
		if (this.self) order.self_trade = this.self;
		if (this.isPost()) order.post_only = force === "post" ? "1" : force;
		else if (force !== "gtc" && (force !== "ioc" || this.has("price"))) order.time_in_force = force;
		return Object.keys(this.wrong).length ? undefined : order;
	}

	/** @param {SubmitEvent} event */
	#submit(event) {
		event.preventDefault();
		if (this.#isSending || this.#whyNot()) return;
		const order = this.#fields();
		this.words = "";
		const yes = text.send(this.side, this.pair.base);
		if (order && (chosen.confirm || this.dangers().length)) this.ask({ yes,
			title: text.confirm(yes), whyNot: () => this.#whyNot(), act: () => this.#send(order) });
		else if (order) this.#send(order);
		this.look();
	}

	/** @param {Record<string, string>} order */
	#send(order) {
		if (this.#isSending || this.#whyNot()) return;
		this.#isSending = true;
		this.#sent = order;
		this.desk.sender.send(order);
		this.paint();
	}

	/** whyNot says why the order cannot be sent now; "": it can. */
	#whyNot() {
		const { session, account, state: market } = this.desk;
		if (market === "halted" || market === "maintenance") return text.states[market];
		if (market !== "live" || session.state !== "in") return text.notLive;
		const { needs } = this.plan(), currency = this.currency();
		return needs && this.#isKnown() && needs > account.exact(currency)
			? text.tooLittle(currency) : "";
	}

	/** isKnown reports whether the account's balances are known: a key may not read them. */
	#isKnown() {
		return this.desk.account.sequence !== undefined;
	}

	#closed = () => {}; // tells that the sheet was closed

	/** sheet opens the form of a narrow page. @param {boolean} isOpen */
	#sheet(isOpen) {
		const { classList } = this.place;
		if (classList.contains("open") === isOpen) return;
		classList.toggle("open", isOpen);
		if (isOpen) this.#closed = backCloses(() => this.#sheet(false));
		else this.#closed();
	}

	paint() {
		const pair = this.pair, may = this.desk.session.may("trade");
		this.place.hidden = !may || !pair;
		this.sides.hidden = !pair || !this.desk.session.permissions.length;
		if (!may || !pair) {
			this.#isSending = false;
			render(text.mayNotTrade, this.sides);
			asked?.dialog.close();
			return this.#sheet(false);
		}
		const whyNot = this.#whyNot(), words = text.send(this.side, pair.base);
		const types = Object.keys(FIELDS).filter((type) => type !== "oco" || this.side === "sell");
		const sides = /** @type {const} */ (["buy", "sell"]);
		render(html`<form class="fields order" data-side=${this.side} novalidate
				autocomplete="off" @submit=${this.#submit.bind(this)}>
			<div class="sides" role="group" aria-label=${text.side}>${sides.map((side) => html`
				<button type="button" id="form-side-${side}" class=${side}
					aria-pressed=${side === this.side} @click=${() => this.#choose({ side })}
					>${text[side]}</button>`)}
				<button type="button" class="close" aria-label=${text.done}
					@click=${() => this.#sheet(false)}>✕</button></div>
			${this.#select(text.type, "type", types, text.types)}
			${this.shown().map((field) => this.input(field))}
			<div class="shares" role="group" aria-label=${text.share(this.currency())}
				>${[25n, 50n, 75n, 100n].map((percent) => html`<button type="button"
					?disabled=${!this.desk.account.free(this.currency())}
					@click=${() => this.#share(percent)}>${percent}%</button>`)}</div>
			${this.isStop() ? this.#select(text.when, "when", ["loss", "profit"], this.whens()) : nothing}
			${this.#select(text.timeInForce, "force", FORCES[this.type], text.forces)}
			${this.force === "gtd" ? this.input("until") : nothing}
			${this.#more()}
			<div class="foot-of-form">${this.#sums()}<button class="main ${this.side}"
				?disabled=${this.#isSending || whyNot !== ""}>${whyNot || words}</button>
			<p role="status" class=${this.isGood ? "outcome" : "outcome wrong"}>${this.words}</p></div>
		</form>`, this.place);
		// options that were chosen by hand do not follow their templates any more
		for (const select of this.place.querySelectorAll("select")) {
			select.value = this[/** @type {"type"} */ (select.name)];
		}
		render(sides.map((side) => html`<button class="main ${side}" @click=${() => {
			this.#sheet(true);
			this.key(side[0]);
		}}>${text[side]}</button>`), this.sides);
		asked?.paint();
	}

	/** more has what few orders need. What is chosen there can be seen while it is folded. */
	#more() {
		const { self } = this, display = this.mayRest() && this.typed.display.trim();
		const names = { ...text.selfTrades, "": text.byDefault(
			text.selfTrades[/** @type {Draft["self"]} */ (this.fees.selfTrade)]) };
		return html`<details class="more" @toggle=${(/** @type {Event} */ { target }) =>
			/** @type {HTMLElement} */ (target).scrollIntoView(false)}><summary>${
				[text.more, display && `${text.fields.display} ${display}`, self
				&& `${text.selfTrade}: ${text.selfTrades[self]}`].filter(Boolean).join(" · ")}</summary><div class="fields">
			${this.mayRest() ? this.input("display") : nothing}
			${this.#select(text.selfTrade, "self", Object.keys(names), names)}</div></details>`;
	}

	/**
	 * @param {string} label
	 * @param {"type" | "when" | "force" | "self"} name
	 * @param {readonly string[]} values
	 * @param {Record<string, string>} words
	 */
	#select(label, name, values, words) {
		return html`<label><span>${label}</span><select name=${name}
			@change=${(/** @type {Event} */ event) => this.#choose(
				{ [name]: /** @type {HTMLSelectElement} */ (event.target).value })}
			>${values.map((value) => html`<option value=${value}
				>${words[value]}</option>`)}</select></label>`;
	}

	/** sums shows what is free, the fee, and what stays. */
	#sums() {
		const { name, base, quote, priceDigits } = this.pair;
		const currency = this.currency(), exact = this.desk.account.exact(currency);
		const { take, gives, gets, met, isSure } = this.plan(), rate = this.fees.most(name);
		/** @param {bigint} n */
		const sum = (n) => `${currency === quote ? decimal(n / FINER, Math.max(priceDigits, 2))
			: shortest(n / FINER)} ${currency}`;
		const fee = gets === null || rate === undefined ? null : over(gets * rate, ONE * ONE);
		/** @type {[string, string][]} */
		const rows = [[text.free, this.#isKnown() ? sum(exact) : text.none],
			...this.estimates(),
			[text.feeAtMost, fee !== null ? `${plain(fee)} ${currency === quote ? base : quote}`
				: rate === undefined ? text.none : `${editable(rate * 100n)}%`],
			// what one sells to oneself comes back
			[this.type === "market" || this.type === "limit" && take?.amount ? text.estimatedLeft
				: text.left, gives === null || gives > exact || !isSure || !this.#isKnown()
				|| met.length && this.mode === "none" ? text.none : sum(exact - gives)]];
		return html`<dl class="sums">${rows.map(([label, is]) => html`<div><dt>${label}</dt><dd>${is
			}</dd></div>`)}</dl>`;
	}
}

/**
 * PERIOD is the least time from one read of fees to the next by itself, in milliseconds. As much
 * again is the most that is added at random, so that pages do not ask together.
 */
const PERIOD = 60_000;

/**
 * The fees and the setting for self-trades of the account that is logged in. No event tells of a
 * change, so the page asks.
 */
class Fees {
	/** @type {{pair: string, maker: string, taker: string}[]} */
	#all = [];
	#state = "out";
	#timer = 0; // of the next read
	/** What the account has set for orders that meet its own; "": it is not known. */
	selfTrade = "";

	/** @param {import("../session.js").Session} session @param {() => void} change tells of fees */
	constructor(session, change) {
		this.session = session;
		this.change = change;
		document.addEventListener("visibilitychange", () => this.read());
	}

	/**
	 * most returns the highest share that a trade can cost; undefined: it is not known.
	 * @param {string} pair
	 */
	most(pair) {
		const fees = this.#all.find((each) => each.pair === pair);
		if (!fees) return undefined;
		const maker = parse(fees.maker), taker = parse(fees.taker);
		return maker > taker ? maker : taker;
	}

	/** changed tells that the log-in has changed. */
	changed() {
		const { state } = this.session, was = this.#state;
		this.#state = state;
		if (state === "out") [this.#all, this.selfTrade] = [[], ""];
		else if (state === "in" && was !== "in") this.read();
	}

	/**
	 * read asks for the fees, and again and again while the page can be seen. A failure leaves those
	 * that are known until the next read.
	 */
	async read() {
		const { session } = this, { key } = session;
		clearTimeout(this.#timer);
		if (document.hidden || session.state !== "in" || !session.may("trade")
			|| !session.may("read")) return;
		const [all, { self_trade }] = await Promise.all([
			session.read("/api/v1/fees/").catch(() => this.#all),
			session.read("/api/v1/trading-settings/").catch(() => ({ self_trade: this.selfTrade }))]);
		if (session.key !== key) return;
		clearTimeout(this.#timer);
		this.#timer = setTimeout(() => this.read(), PERIOD * (1 + Math.random()));
		this.#all = all;
		this.selfTrade = self_trade;
		this.change();
	}
}

/**
 * valuesOf returns what can be changed of an order, by the names of the API. A price that slid is
 * the one that was asked for.
 * @param {Order} o
 * @returns {Partial<Record<Name, string>>}
 */
const valuesOf = (o) => ({ price: o.price_asked ?? o.price, amount: o.amount_original,
	...o.triggered === false && { trigger_price: o.oco_trigger_price ?? o.trigger_price },
	...o.order_type !== "market" && { display_amount: o.display_amount ?? "" },
	...o.expire_time && { expire_time: o.expire_time } });

/** timeOf writes a time as a field for one has it, in minutes. @param {number} seconds */
function timeOf(seconds) {
	const at = new Date(seconds * 1000);
	return new Date(+at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/**
 * became says what has become of a change for which there was no answer; undefined: the order is
 * open, and is not changed yet.
 * @param {Order} o the order as it is now
 * @param {Record<string, string>} fields of the change
 */
function became(o, fields) {
	const { order: _, pair: __, ...asked } = fields, is = valuesOf(o);
	const isAsked = Object.entries(asked).every(([name, value]) =>
		parse(is[/** @type {Name} */ (name)] || "0") === parse(value));
	const isOpen = o.status === "1";
	if (!isAsked && isOpen) return undefined;
	return `${isAsked ? text.isAmended(o.id) : ""} ${
		isOpen ? "" : text.isClosed(o.id, padded(o.amount_filled), padded(o.amount_original))}`.trim();
}

/**
 * The exchange has no names for changes. A change says what is to be, so a second one changes
 * nothing. What refuses it may be what the first has done.
 * @type {import("../session.js").Kind}
 */
const CHANGES = { kept: "amends", name: "amend", beside: [400, 401, 403, 429, 503],
	send: (session, { amend: _, pair: __, ...fields }) => session.command("order-amend", fields),
	find: async (session, _, fields) =>
		became(await session.read(`/api/v1/order/${fields.order}/`), fields) };

/** Amend has the changes of open orders that are on their way. */
export class Amend {
	/** The form that is open. @type {Change | undefined} */
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
		if (!o || this.#form || this.of(id) || !this.desk.session.may("trade")
			|| this.desk.whyNot()) return;
		this.#form = new Change(this, o);
		this.#form.dialog.addEventListener("close", () => (this.#form = undefined));
	}

	/** @param {import("../session.js").Outcome} outcome */
	#outcome({ pending: p, answer, order: found }) {
		const { account, own } = this.desk, id = p.fields.order;
		const { status, body } = answer ?? { status: 0, body: {} };
		const pair = /** @type {import("../api.js").Pair} */ (
			this.desk.terminal.pairs.get(p.fields.pair));
		const form = this.#form?.order.id === id ? this.#form : undefined;
		if (answer && form && p.state === "sending" && status >= 400 && !body.order) return form.refuse(answer);
		form?.dialog.close();
		own.say(found ? found
			: !answer ? p.state === "unknown" ? text.amendUnknown(id) : ""
			: p.state === "unknown" ? text.stillUnknown
			: status === 200 ? text.amended(body.oid, isAtMarket(body) ? text.atWorst(priced(body.price, pair))
				: `${text.price.toLowerCase()} ${priced(body.price, pair)}`,
				padded(body.amount_original), body.priority, doneOf(body, pair))
			: body.order ? text.notAmended(id, [body.order].flat().join(" "))
			: wordsOf(answer, account));
	}
}

/** A Change is the form for a change of an open order. */
class Change extends Draft {
	/** @param {Amend} amend @param {Order} order as it was when the form was opened */
	constructor(amend, order) {
		super(amend.desk, "amend", document.createElement("div"));
		this.amend = amend;
		this.order = order;
		const { oco_trigger_price: leg, oco_price, post_only, trigger_when } = order;
		const isMarket = order.order_type === "market", values = valuesOf(order);
		this.pair = /** @type {Pair} */ (this.desk.terminal.pairs.get(order.pair));
		this.choose({ side: order.type,
			type: leg && !order.triggered ? "oco" : !isWaiting(order) ? "limit" : isMarket ? "stopMarket" : "stop",
			force: post_only ? "post" : /** @type {Force} */ (order.time_in_force),
			when: (trigger_when === "fall") === (order.type === "buy") ? "profit" : "loss",
			self: order.self_trade });
		this.names = /** @type {Field[]} */ ([isMarket ? "second" : "price", "amount", "trigger",
			"display", "until"]).filter((field) => this.nameOf(field) in values);
		for (const field of this.names) {
			const is = values[/** @type {Name} */ (this.nameOf(field))];
			if (is) this.typed[field] = field === "until" ? timeOf(Number(is)) : editable(parse(is));
		}
		if (oco_price) this.typed.second = editable(parse(oco_price));
		this.was = { ...this.typed };
		this.paint();
		this.dialog = open(text.amendOrder(order.id), this.place);
		this.place.querySelector("input")?.focus();
	}

	/** nameOf returns a field's name in the API. @param {Field} field */
	nameOf(field) {
		return super.nameOf(field).replace("oco_", "");
	}

	/** n returns the number in a field. What is filled is no part of what an order would do. @param {Field} field */
	n(field) {
		const n = super.n(field), { id, amount_filled } = this.order;
		return n && field === "amount"
			? n - parse(this.desk.account.orders.get(id)?.amount_filled ?? amount_filled) : n;
	}

	/** @param {SubmitEvent} event */
	#submit(event) {
		event.preventDefault();
		const { order: { id, pair, type }, was, desk } = this, title = text.amendOrder(id);
		/** @type {Record<string, string>} */
		const fields = { order: id, pair };
		this.wrong = {};
		this.words = "";
		for (const field of this.#names()) {
			const is = this.typed[field], n = typed(is);
			if (is.trim() !== was[field] && !(n && n === typed(was[field]))) this.put(fields, field, true);
		}
		if (Object.keys(this.wrong).length) return this.look();
		const act = () => {
			this.amend.sender.send(fields);
			this.paint();
		};
		if (Object.keys(fields).length === 2) this.words = text.nothingChanged;
		else if (chosen.confirm || this.dangers().length) this.ask({ yes: text.amend, act, whyNot: () => desk.whyNot(),
			title: `${title}: ${text.send(type, this.unitOf("amount"))}` });
		else act();
		this.paint();
	}

	/** names returns what may be changed now: a halted pair leaves the price of what rests. */
	#names() {
		const { order: o, desk } = this;
		return this.names.filter((field) => field !== "price" || isWaiting(o)
			|| !desk.terminal.status.halted.has(o.pair));
	}

	paint() {
		const { order: o, desk } = this, now = desk.account.orders.get(o.id);
		const whyNot = this.amend.of(o.id)?.state === "sending" ? text.amendStates.sending
			: desk.whyNot();
		render(html`<form class="fields amend" novalidate autocomplete="off"
				@submit=${this.#submit.bind(this)}>
			<p>${pairOf(o.pair)}, ${sideOf(o.type)}, ${typeOf(o, this.pair)}. ${now
				? text.filledOf(padded(now.amount_filled), `${padded(now.amount_original)} ${this.unitOf("amount")}`) : text.isOver(o.id)}</p>
			${this.#names().map((field) => this.input(field))}
			<p class="muted">${text.aboutAmend}</p>
			<button class="main" ?disabled=${!now || whyNot !== ""}>${whyNot || text.amend}</button>
			<p role="status" class="outcome wrong">${this.words}</p></form>`, this.place);
	}
}

/** How much worse than the market a limit may be, and the last price that a market order takes. */
const THROUGH = 500n, FAR = 100n, PARTS = 10_000n;

/**
 * worse returns by how many parts of 10,000 a price is worse than another one, rounded up.
 * @param {string} side
 * @param {bigint} price
 * @param {bigint} than
 */
const worse = (side, price, than) =>
	((side === "buy" ? price - than : than - price) * PARTS + than - 1n) / than;

/** shareOf writes parts of 10,000. @param {bigint} parts */
const shareOf = (parts) => percent(Number(parts) / 1e4).replace(/^[+-]/, "");

/** The question that is open. @type {{dialog: HTMLDialogElement, paint: () => void} | undefined} */
let asked;

/**
 * ask shows a question in a dialog. The one who answers yes has seen what it says now: it is
 * painted again as the market moves. With dangers the safe answer has the focus.
 * @param {{title: string, side?: string, yes: string, no?: string, act: () => void,
 *   whyNot?: () => string, rows?: () => [string, unknown][], dangers?: () => string[]}} question
 */
export function ask({ title, side = "", yes, no = text.goBack, act, whyNot = () => "",
	rows = () => [], dangers = () => [] }) {
	const place = document.createElement("div"), dialog = open(title, place, no);
	place.className = "question";
	const paint = () => render(html`
		${dangers().length ? html`<ul>${dangers().map((why) => html`<li>${why}</li>`)}</ul>` : nothing}
		<dl class="sums">${rows().map(([name, is]) => html`<div><dt>${name}</dt>
			<dd>${is}</dd></div>`)}</dl>
		<p><button class="main yes ${side}" ?disabled=${whyNot() !== ""} @click=${() => {
			dialog.close();
			act();
		}} @keydown=${(/** @type {KeyboardEvent} */ event) => event.repeat && event.preventDefault()}
			>${whyNot() || yes}</button></p>`, place);
	paint();
	/** @type {HTMLElement | null} */ (dialog.querySelector(dangers().length ? ".done" : ".yes"))
		?.focus();
	asked = { dialog, paint };
	dialog.addEventListener("close", () => (asked = undefined));
}
