// The forms of orders: what is typed, what it would cost, what could be a slip, and what becomes
// of it.
import { html, nothing, render } from "../../vendor/lit-html/lit-html.js";
import { OTHER, Sender } from "../session.js";
import { furthest } from "../book.js";
import { decimal, DIGITS, editable, exactly, FINER, moment, offset, ONE, pairOf, parse, percent, plain, shortest, typed } from "../format.js";
import { backCloses, chosen, inFrame, later, open } from "../settings.js";
import { text } from "../text/en.js";
import { doneOf, isWaiting, readable, sideOf, signOf, typeOf, wordsOf, wrongOf } from "../words.js";

/** @typedef {import("../api.js").Pair} Pair */
/** @typedef {import("./desk.js").Desk} Desk */
/** @typedef {import("../session.js").Order} Order */
/** @typedef {keyof typeof text.changes} Name a field that may be changed */
/** @typedef {"limit" | "market" | "stop" | "stopMarket" | "oco"} Type */
/** @typedef {keyof typeof text.forces} Force */
/** @typedef {"price" | "amount" | "total" | "trigger" | "second" | "display" | "until"} Field */

const TYPES = /** @type {const} */ (["limit", "market", "stop", "stopMarket", "oco"]);
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

/** over divides and rounds up. @param {bigint} a @param {bigint} b */
const over = (a, b) => (a + b - 1n) / b;

/**
 * input is a field with its label, and what is wrong with it below. empty: what it means to leave
 * it so.
 * @param {{id: string, name: string, label: string, unit?: string, value?: string, wrong?: string,
 *   type: string, empty: string, onInput: (value: string) => void,
 *   onKey?: (event: KeyboardEvent) => void}} field
 */
function input({ id, name, label, unit, value, wrong, type, empty, onInput, onKey }) {
	return html`<label><span>${label}${type === "text" ? ""
			: ` (${offset(value ? +new Date(value) : undefined)})`}</span><span
			class="typed"><input id=${id} name=${name}
			type=${type} inputmode="decimal" autocomplete="off" .value=${value ?? ""}
			aria-invalid=${wrong ? "true" : "false"}
			aria-describedby=${wrong ? `wrong-${id}` : nothing}
			placeholder=${empty} @keydown=${onKey ?? nothing}
			@input=${(/** @type {Event} */ event) =>
				onInput(/** @type {HTMLInputElement} */ (event.target).value)}>
			<span class="muted" aria-hidden="true">${unit}</span></span></label>
		${wrong ? html`<p class="wrong" id="wrong-${id}">${wrong}</p>` : nothing}`;
}

/**
 * blame puts the exchange's words below the fields that it means. It returns those that mean none.
 * @param {Record<string, string | string[]>} body of a refusal
 * @param {(name: string) => string | false | undefined} of a field of the form, by its name in the API
 * @param {Record<string, string>} wrong
 * @param {string | undefined} quote currency of a least value
 */
function blame(body, of, wrong, quote) {
	let rest = "";
	for (const [name, words] of Object.entries(body)) {
		const why = readable(words).replace(/least \d.*(?=\.$)/, `$& ${quote}`), field = of(name);
		if (field) wrong[field] = why;
		else rest += `${name}: ${why} `;
	}
	return rest;
}

/** secondsOf returns the time in a field, since 1970. NaN: it is none. @param {string} is */
const secondsOf = (is) => new Date(is).getTime() / 1000;

/** focusWrong brings the focus to the first field that is wrong. @param {HTMLElement} place */
function focusWrong(place) {
	const first = place.querySelector("[aria-invalid=true]");
	const fold = first?.closest("details");
	if (fold) fold.open = true;
	if (first instanceof HTMLElement) first.focus();
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
		const [all, { self_trade: selfTrade }] = await Promise.all([
			session.read("/api/v1/fees/").catch(() => this.#all),
			session.read("/api/v1/trading-settings/").catch(() => ({ self_trade: this.selfTrade }))]);
		if (session.key !== key) return;
		clearTimeout(this.#timer);
		this.#timer = setTimeout(() => this.read(), PERIOD * (1 + Math.random()));
		this.#all = all;
		this.selfTrade = selfTrade;
		this.change();
	}
}

/** Form is the form for a new order. */
export class Form {
	/** @type {Pair | undefined} */
	#pair;
	/** @type {"buy" | "sell"} */
	#side = "buy";
	/** @type {Type} */
	#type = "limit";
	/** How long an order stays, of each type: the first at first. @type {Record<Type, Force>} */
	#forces = { limit: "gtc", market: "ioc", stop: "gtc", stopMarket: "ioc", oco: "gtc" };
	#isRise = false; // a trigger that is no stop-loss
	#selfTrade = ""; // what happens when it meets an own order; "": what the account has set
	/** What is typed. @type {Record<Field, string>} */
	#typed = { price: "", amount: "", total: "", trigger: "", second: "", display: "", until: "" };
	#byTotal = false; // of amount and total the one that was typed last
	/** @type {Partial<Record<Field, string>>} */
	#wrong = {};
	#words = "";
	#isGood = true;
	#isSending = false;
	/** The question that is open. @type {ReturnType<typeof ask> | undefined} */
	#question;
	/** Of the order that the form waits for. @type {Record<string, string> | undefined} */
	#sent;
	#market = "live";

	/**
	 * @param {HTMLElement} place
	 * @param {HTMLElement} sides the bar of a narrow page, which opens the form as a sheet
	 * @param {Desk} desk
	 */
	constructor(place, sides, desk) {
		this.place = place;
		this.sides = sides;
		this.desk = desk;
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
		this.#pair = pair;
		const names = /** @type {Field[]} */ (Object.keys(this.#typed));
		for (const name of names) this.#typed[name] = "";
		this.#wrong = {};
		this.#words = "";
		this.#question?.dialog.close();
		this.change();
	}

	/** book tells that the book has changed, and with it what an order would do. */
	book = inFrame(() => this.place.hidden || this.change(), later);

	/** market tells whether orders are taken. @param {string} state */
	market(state) {
		this.#market = state;
		this.change();
	}

	/** setPrice takes a price from the book. @param {bigint} price */
	setPrice(price) {
		if (FIELDS[this.#type].includes("price")) this.#set("price", editable(price));
	}

	/** @param {string} key */
	key(key) {
		if (this.place.hidden) return false;
		const to = { b: "side-buy", s: "side-sell", p: "price", a: "amount" }[key.toLowerCase()];
		if (!to || key !== key.toLowerCase()) return false;
		if (to === "side-buy") this.#choose({ side: "buy" });
		if (to === "side-sell") this.#choose({ side: "sell" });
		this.#paint();
		const at = /** @type {HTMLElement | null} */ (this.place.querySelector(`#form-${to}`));
		at?.focus();
		return true;
	}

	change = inFrame(() => this.#paint());

	/**
	 * outcome says what has become of an order, in words.
	 * @param {import("../session.js").Outcome} outcome
	 */
	outcome({ pending, answer, order }) {
		const { status, body } = answer ?? { status: 0, body: {} };
		const isMine = pending.fields === this.#sent;
		const isHere = isMine && pending.fields.pair === this.#pair?.name;
		if (isMine) this.#isSending = false;
		this.#isGood = status === 201 || status === 200 || order !== undefined;
		if (order) this.#words = text.placed(order, "");
		else if (!answer) this.#words = pending.state === "unknown" ? text.unknown : "";
		else if (pending.state === "unknown" && status >= 401) this.#words = text.stillUnknown;
		else if (status === 201) {
			const pair = this.desk.terminal.pairs.get(pending.fields.pair);
			this.#words = text.placed(body.oid, doneOf(body, /** @type {Pair} */ (pair),
				!pending.fields.price));
		}
		else if (status === 200) this.#words = text.cancelled(body.order);
		else if (status === 400 && body.client_order_id) {
			const [why] = body.client_order_id; // of a cancel by name
			this.#words = why === "Order not found" ? text.neverIn : `${why}.`;
		} else if (status === 400 && !body.error && !body.detail && isHere) this.#blame(body);
		else this.#words = wordsOf(answer, this.desk.account);
		if (status === 201 && isHere) this.#typed.amount = this.#typed.total = "";
		this.change();
	}

	/**
	 * blame puts the exchange's words below the fields that it means.
	 * @param {Record<string, string[]>} body
	 */
	#blame(body) {
		const isStop = this.#isStop();
		/** @type {Record<string, Field>} */
		const fields = { price: FIELDS[this.#type].includes("price") ? "price" : "second",
			amount: "amount", quote_amount: "total", trigger_price: "trigger",
			oco_trigger_price: "trigger", oco_price: "second", display_amount: "display",
			expire_time: "until", trigger_when: isStop ? "trigger" : "price" };
		this.#words = blame(body, (name) => fields[name], this.#wrong, this.#pair?.quote);
		this.#paint();
		focusWrong(this.place);
	}

	/** What happens when the order meets an own one; "": it is not known. */
	get #mode() {
		return this.#selfTrade || this.fees.selfTrade;
	}

	get #force() {
		return this.#forces[this.#type];
	}

	/** @param {{side?: "buy" | "sell", type?: Type, force?: Force}} to */
	#choose({ side = this.#side, type = this.#type, force }) {
		const was = this.#type;
		this.#side = side;
		// the reserve of a buy would not be known when it is placed
		this.#type = type === "oco" && side === "buy" ? "limit" : type;
		if (force) this.#forces[this.#type] = force;
		if (was !== this.#type) this.#typed.second = ""; // it means another price there
		// that of an OCO is beyond the market: a bid's or a stop's would fill at once
		if (was !== this.#type && this.#type === "oco") this.#typed.price = "";
		if (!this.#shown().includes("total")) this.#byTotal = false;
		this.#wrong = {};
		this.#words = "";
		this.#balance();
		this.change();
	}

	/** shown returns the fields of the order in the form. */
	#shown() {
		return FIELDS[this.#type].filter((field) => field !== "total" || this.#type !== "market"
			|| this.#side === "buy"); // nothing is sold by its price
	}

	/** @param {Field} field @param {string} value */
	#set(field, value) {
		this.#typed[field] = value;
		delete this.#wrong[field];
		this.#words = ""; // of the order before
		if (field === "amount" || field === "total") this.#byTotal = field === "total";
		this.#balance();
		this.#paint();
	}

	/** price returns the price that amount and total follow; null: there is none. */
	#price() {
		return FIELDS[this.#type].includes("price") ? typed(this.#typed.price) : null;
	}

	/** balance lets the one of amount and total follow that was not typed. */
	#balance() {
		const price = this.#price(), step = this.#pair?.step ?? 1n;
		const given = typed(this.#byTotal ? this.#typed.total : this.#typed.amount);
		const other = this.#byTotal ? "amount" : "total";
		if (!price || given === null) {
			this.#typed[other] = "";
			return;
		}
		this.#typed[other] = editable(this.#byTotal ? given * ONE / price / step * step
			: over(given * price, ONE));
	}

	/** share puts a part of what is free into the form. @param {bigint} percent */
	#share(percent) {
		const pair = /** @type {Pair} */ (this.#pair);
		if (this.#side === "sell") {
			const amount = this.desk.account.free(pair.base) * percent / 100n;
			return this.#set("amount", editable(amount / pair.step * pair.step));
		}
		const unit = 10n ** BigInt(DIGITS - Math.max(pair.priceDigits, 2));
		const total = this.desk.account.free(pair.quote) * percent / 100n / unit * unit;
		if (this.#type === "stopMarket") {
			const worst = this.#plan().limit ?? typed(this.#typed.trigger);
			if (worst) this.#set("amount", editable(total * ONE / worst / pair.step * pair.step));
			return;
		}
		this.#set("total", editable(total));
	}

	/**
	 * step moves a price by ticks with the arrows.
	 * @param {Field} field
	 * @param {KeyboardEvent} event
	 */
	#step(field, event) {
		const way = { ArrowUp: 1n, ArrowDown: -1n }[event.key];
		const now = typed(this.#typed[field]);
		if (!way || now === null || field === "amount" || field === "total") return;
		event.preventDefault();
		const { tick } = /** @type {Pair} */ (this.#pair);
		const to = now + way * tick * (event.shiftKey ? 10n : 1n);
		if (to > 0n) this.#set(field, editable(to));
	}

	/** fields returns the order as the API takes it; undefined: something typed is wrong. */
	#fields() {
		const pair = /** @type {Pair} */ (this.#pair), type = this.#type, side = this.#side;
		/** @type {Record<string, string>} */
		const order = { pair: pair.name, type: side };
		this.#wrong = {};
		/** @param {Field} field @param {string} name */
		const take = (field, name) => {
			const is = typed(this.#typed[field]);
			if (is) order[name] = plain(is);
			else if (this.#typed[field].trim() || !this.#emptyOf(field)) {
				this.#wrong[field] = wrongOf(this.#typed[field]);
			}
		};
		const isSum = type === "market" && side === "buy" && this.#byTotal;
		if (isSum) take("total", "quote_amount");
		// without a price the one that was typed is not wrong
		else if (this.#byTotal && !this.#price()) take("total", "quote_amount");
		else take("amount", "amount");
		if (FIELDS[type].includes("price")) take("price", "price");
		if (type === "oco") {
			take("trigger", "oco_trigger_price");
			take("second", "oco_price");
		} else if (FIELDS[type].includes("second")) take("second", "price");
		if (this.#isStop()) {
			take("trigger", "trigger_price");
			if (this.#isRise) order.trigger_when = side === "sell" ? "rise" : "fall";
		}
		if (type === "market" || type === "stopMarket") order.order_type = "market";
		if (this.#mayHide()) take("display", "display_amount");
		if (this.#selfTrade) order.self_trade = this.#selfTrade;
		this.#enforce(order);
		return Object.keys(this.#wrong).length ? undefined : order;
	}

	/** enforce says how long the order stays. @param {Record<string, string>} order */
	#enforce(order) {
		const force = this.#force;
		if (force === "post") order.post_only = "1";
		else if (force === "slide") order.post_only = "slide";
		else if (force === "fok" || force === "ioc" && FIELDS[this.#type].includes("price")) {
			order.time_in_force = force;
		} else if (force === "gtd") {
			order.time_in_force = "gtd";
			const at = secondsOf(this.#typed.until);
			if (at) order.expire_time = String(at);
			else this.#wrong.until = text.notATime;
		}
	}

	/** isPost reports whether the order takes nothing. */
	#isPost() {
		return ["post", "slide"].includes(this.#force);
	}

	#mayHide() {
		return FIELDS[this.#type].includes("price") && !["ioc", "fok"].includes(this.#force);
	}

	/** @param {SubmitEvent} event */
	#submit(event) {
		event.preventDefault();
		if (this.#isSending || this.#whyNot()) return;
		const order = this.#fields();
		this.#words = "";
		if (order && (chosen.confirm || this.#dangers().length)) this.#ask(order);
		else if (order) this.#send(order);
		this.#paint();
		if (!order) focusWrong(this.place);
	}

	/** @param {Record<string, string>} order */
	#send(order) {
		if (this.#isSending || this.#whyNot()) return;
		this.#isSending = true;
		this.#sent = order;
		this.desk.sender.send(order);
		this.#paint();
	}

	/** @param {Record<string, string>} order */
	#ask(order) {
		const yes = text.send(this.#side, /** @type {Pair} */ (this.#pair).base);
		this.#question = ask({ title: text.confirm(yes), side: this.#side, yes,
			act: () => this.#send(order), whyNot: () => this.#whyNot(),
			dangers: () => this.#dangers(), rows: () => this.#summary() });
		this.#question.dialog.addEventListener("close", () => (this.#question = undefined));
	}

	/** dangers says what could be a slip. */
	#dangers() {
		const pair = /** @type {Pair} */ (this.#pair), type = this.#type, side = this.#side;
		const { book } = this.desk.terminal.ladder, isStop = this.#isStop();
		const trigger = typed(this.#typed.trigger), second = typed(this.#typed.second);
		const { take, isPart, limit } = this.#plan();
		const amount = take ? `${shortest(take.amount)} ${pair.base}` : "";
		const isKilled = this.#force === "fok" && isPart;
		const far = this.#isPost() ? "" : farFrom(this.desk, pair, { side,
			price: this.#price() ?? (isStop ? second : null), trigger: isStop ? trigger : null });
		return [far, type === "oco" ? farFrom(this.desk, pair, { side, price: second, trigger }) : "",
			type === "oco" && take?.amount ? text.warnings.ocoAtOnce(decimal(
				book.sides[OTHER[side]][0].price, pair.priceDigits)) : "",
			isKilled ? text.warnings.killed(amount) : "",
			...type !== "market" || isKilled ? [] : take
				? [...dangersOf(take, side, book.sides[OTHER[side]][0]?.price, amount),
					take.isCut && take.amount && limit ? text.warnings.cut(second ? text.worst
						: text.protection, decimal(limit, pair.priceDigits), amount) : ""]
				: [text.warnings.noBook]].filter(Boolean);
	}

	/** summary says what is asked about. @returns {[string, unknown][]} */
	#summary() {
		const pair = /** @type {Pair} */ (this.#pair);
		const mode = /** @type {keyof typeof text.selfTrades} */ (this.#selfTrade);
		const isIceberg = this.#mayHide() && this.#typed.display.trim();
		return [[text.type, `${pairOf(pair.name)}, ${text.types[this.#type]}${
			isIceberg ? text.iceberg : ""}`],
			...[...this.#shown(), .../** @type {Field[]} */ (this.#mayHide() ? ["display"] : []),
				.../** @type {Field[]} */ (this.#force === "gtd" ? ["until"] : [])]
				.filter((field) => this.#typed[field] || this.#emptyOf(field) === text.atMarket)
				.map((field) => /** @type {[string, string]} */ ([this.#labelOf(field),
					this.#typed[field] ? `${this.#written(field)} ${this.#unitOf(field)}`
						: text.atMarket])),
			...this.#isStop() ? /** @type {[string, string][]} */ (
				[[text.when, this.#whens()[this.#isRise ? "profit" : "loss"]]]) : [],
			[text.timeInForce, text.forces[this.#force]],
			...mode ? /** @type {[string, string][]} */ (
				[[text.selfTrade, text.selfTrades[mode]]]) : [], ...this.#estimates(pair)];
	}

	/** written writes a field's number as the page writes numbers. @param {Field} field */
	#written(field) {
		const is = this.#typed[field], at = secondsOf(is), n = typed(is);
		return field === "until" ? `${moment(at, false)} (${offset(at * 1000)})`
			: n === null ? is : shortest(n);
	}

	/** whens names the two triggers of a stop, with the side of the price that each waits for. */
	#whens() {
		const isBuy = this.#side === "buy";
		return text.whens(signOf(isBuy), signOf(!isBuy));
	}

	/**
	 * protection returns the worst price at the market that the exchange gives to the order in the
	 * form if none is typed; null: it is not known, or there is none.
	 */
	#protection() {
		const pair = /** @type {Pair} */ (this.#pair), side = this.#side, { tick, band } = pair;
		const { ladder: { book }, header } = this.desk.terminal, isMarket = this.#type === "market";
		if (!FIELDS[this.#type].includes("second")) return null;
		const from = isMarket ? this.#market === "live" && book.sides[OTHER[side]][0]?.price
			: typed(this.#typed.trigger);
		if (!from) return null;
		const price = furthest(side, from, isMarket ? pair.collar : pair.stopCollar, tick);
		const last = isMarket ? header.lastOf(pair.name) : from;
		if (!band || !last) return price;
		const bound = furthest(side, last, band, tick);
		return (side === "buy") === bound < price ? bound : price;
	}

	/**
	 * plan returns what the order in the form would take from the book now, and what it gives and
	 * gets, in 1e-16; null: it is not known. At least so much has to be free. limit: the worst price
	 * that it takes. isPart: it takes less than is asked for. isSure: no order of the account's own
	 * changes that.
	 */
	#plan() {
		const type = this.#type, isBuy = this.#side === "buy", isMarket = type === "market";
		const { book } = this.desk.terminal.ladder, price = this.#price();
		const amount = typed(this.#typed.amount), total = typed(this.#typed.total);
		const worst = isMarket || type === "stopMarket" ? typed(this.#typed.second) : null;
		const bySum = isMarket && this.#byTotal, given = bySum ? total : amount;
		const limit = price ?? worst ?? this.#protection();
		const mayTake = this.#market === "live"
			&& (isMarket || type !== "stop" && price && !this.#isPost());
		const take = given && mayTake && book.updateId !== null
			? book.take(OTHER[this.#side], { ...bySum ? { value: total ?? 0n } : { amount: given },
				limit: limit ?? undefined }) : undefined;
		const { account } = this.desk, { name } = /** @type {Pair} */ (this.#pair);
		const met = take?.amount ? ownMet(account, name, this.#side, take.worst) : [];
		const isSure = !met.length || this.#mode === "none", mayGet = isSure && take?.amount;
		const most = type === "stopMarket" && isBuy ? limit : price; // what it may cost
		const value = isMarket ? mayGet ? take.paid : null
			: most && amount ? most * amount : null;
		const size = isMarket ? mayGet || null : amount;
		const sized = size && size * ONE;
		const least = price ?? worst ?? (isMarket ? book.sides.sell[0]?.price
			: typed(this.#typed.trigger));
		const isPart = take && (bySum ? take.isCut || take.isWhole : take.amount < (amount ?? 0n));
		return { take, met, isSure, isPart, limit,
			gives: isBuy ? value : sized, gets: isBuy ? sized : value,
			needs: !isBuy ? amount && amount * ONE : bySum ? total && total * ONE
				: least && amount ? least * amount : null };
	}

	/** whyNot says why the order cannot be sent now; "": it can. */
	#whyNot() {
		const market = this.#market, { session, account } = this.desk;
		if (market === "halted" || market === "maintenance") return text.states[market];
		if (market !== "live" || session.state !== "in") return text.notLive;
		const { needs } = this.#plan(), currency = this.#currency();
		return needs && this.#isKnown() && needs > account.exact(currency)
			? text.tooLittle(currency) : "";
	}

	/** currency returns what an order is paid with. */
	#currency() {
		const { base, quote } = /** @type {Pair} */ (this.#pair);
		return this.#side === "buy" ? quote : base;
	}

	#isStop() { return this.#type === "stop" || this.#type === "stopMarket"; }

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

	#paint() {
		const pair = this.#pair, may = this.desk.session.may("trade");
		this.place.hidden = this.sides.hidden = !may || !pair;
		if (!may || !pair) {
			this.#isSending = false;
			this.#question?.dialog.close();
			return this.#sheet(false);
		}
		const whyNot = this.#whyNot(), words = text.send(this.#side, pair.base);
		const types = TYPES.filter((type) => type !== "oco" || this.#side === "sell");
		const sides = /** @type {const} */ (["buy", "sell"]);
		render(html`<form class="fields order" data-side=${this.#side} novalidate
				autocomplete="off" @submit=${this.#submit.bind(this)}>
			<div class="sides" role="group" aria-label=${text.side}>${sides.map((side) => html`
				<button type="button" id="form-side-${side}" class=${side}
					aria-pressed=${side === this.#side} @click=${() => this.#choose({ side })}
					>${text[side]}</button>`)}
				<button type="button" class="close" aria-label=${text.done}
					@click=${() => this.#sheet(false)}>✕</button></div>
			${this.#select(text.type, "type", types, text.types, this.#type,
				(/** @type {any} */ type) => this.#choose({ type }))}
			${this.#shown().map((field) => this.#input(field))}
			<div class="shares" role="group" aria-label=${text.share(this.#currency())}
				>${[25n, 50n, 75n, 100n].map((percent) => html`<button type="button"
					?disabled=${!this.desk.account.free(this.#currency())}
					@click=${() => this.#share(percent)}>${percent}%</button>`)}</div>
			${this.#isStop() ? this.#select(text.when, "when",
				["loss", "profit"], this.#whens(), this.#isRise ? "profit" : "loss", (when) => {
					this.#isRise = when === "profit";
				}) : nothing}
			${this.#select(text.timeInForce, "force", FORCES[this.#type], text.forces, this.#force,
				(/** @type {any} */ force) => this.#choose({ force }))}
			${this.#force === "gtd" ? this.#input("until") : nothing}
			${this.#more()}
			<div class="foot-of-form">${this.#sums(pair)}<button class="main ${this.#side}"
				?disabled=${this.#isSending || whyNot !== ""}>${whyNot || words}</button>
			<p role="status" class=${this.#isGood ? "outcome" : "outcome wrong"}>${this.#words}</p></div>
		</form>`, this.place);
		// options that were chosen by hand do not follow their templates any more
		for (const [name, is] of [["type", this.#type], ["force", this.#force]]) {
			const select = this.place.querySelector(`[name=${name}]`);
			if (select instanceof HTMLSelectElement) select.value = is;
		}
		render(sides.map((side) => html`<button class="main ${side}" @click=${() => {
			this.#choose({ side });
			this.#sheet(true);
			this.#paint();
			/** @type {HTMLElement} */ (this.place.querySelector(`#form-side-${side}`)).focus();
		}}>${text[side]}</button>`), this.sides);
		this.#question?.paint();
	}

	/** more has what few orders need. What is chosen there can be seen while it is folded. */
	#more() {
		const display = this.#mayHide() ? this.#typed.display.trim() : "";
		const mode = /** @type {keyof typeof text.selfTrades} */ (this.#selfTrade);
		const names = { ...text.selfTrades, "": text.byDefault(
			text.selfTrades[/** @type {typeof mode} */ (this.fees.selfTrade)]) };
		const is = [display && `${text.fields.display} ${display}`,
			mode && `${text.selfTrade}: ${text.selfTrades[mode]}`];
		return html`<details class="more" @toggle=${(/** @type {Event} */ { target }) =>
			/** @type {HTMLElement} */ (target).scrollIntoView(false)}><summary>${
				[text.more, is.filter(Boolean).join(", ")]
				.filter(Boolean).join(": ")}</summary><div class="fields">
			${this.#mayHide() ? this.#input("display") : nothing}
			${this.#select(text.selfTrade, "self", Object.keys(names), names, this.#selfTrade,
				(mode) => {
					this.#selfTrade = mode;
				})}</div></details>`;
	}

	/**
	 * @param {string} label
	 * @param {string} name
	 * @param {readonly string[]} values
	 * @param {Record<string, string>} words
	 * @param {string} chosen
	 * @param {(value: string) => void} choose
	 */
	#select(label, name, values, words, chosen, choose) {
		return html`<label><span>${label}</span><select name=${name} .value=${chosen}
			@change=${(/** @type {Event} */ event) => {
				choose(/** @type {HTMLSelectElement} */ (event.target).value);
				this.#words = "";
				this.change();
			}}>${values.map((value) => html`<option value=${value} ?selected=${value === chosen}
				>${words[value]}</option>`)}</select></label>`;
	}

	/** @param {Field} field */
	#input(field) {
		return input({ id: `form-${field}`, name: field, label: this.#labelOf(field),
			unit: this.#unitOf(field), value: this.#typed[field], wrong: this.#wrong[field],
			type: field === "until" ? "datetime-local" : "text", empty: this.#emptyOf(field),
			onKey: (event) => this.#step(field, event),
			onInput: (value) => this.#set(field, value) });
	}

	/** emptyOf says what it means that a field is empty; "": it may not be. @param {Field} field */
	#emptyOf(field) {
		return field === "second" && this.#type === "oco"
			? this.#isPost() ? "" : text.atMarket // what is sold there takes
			: field === "second" || field === "display" ? text.optional : "";
	}

	/** @param {Field} field */
	#labelOf(field) {
		const isOco = this.#type === "oco";
		return field === "second" ? isOco ? text.ocoPrice : text.worst
			: isOco && field === "trigger" ? `${text.fields.trigger} (${signOf(false)})`
			: text.fields[field];
	}

	/** @param {Field} field */
	#unitOf(field) {
		const { base, quote } = /** @type {Pair} */ (this.#pair);
		return field === "until" ? "" : field === "amount" || field === "display" ? base : quote;
	}

	/** estimates says what the order would do at once, by the book. @param {Pair} pair */
	#estimates({ base, quote, priceDigits }) {
		const { take, met, isSure, isPart, gives } = this.#plan(), worst = this.#protection();
		const { prices, amount, total } = text.estimated;
		const isMarket = this.#type === "market", digits = Math.max(priceDigits, 2);
		/** @type {[string, string][]} */
		const limited = !FIELDS[this.#type].includes("second") || typed(this.#typed.second)
			|| !this.#emptyOf("second") ? []
			: [[text.protection, worst ? decimal(worst, priceDigits) : text.none]];
		if (this.#type === "stopMarket" && this.#side === "buy") {
			limited.push([text.reserved, gives === null ? text.none
				: `${decimal(over(gives, ONE), digits)} ${quote}`]);
		}
		if (this.#isStop()) return limited;
		// rows are there without a number, too, so that the button does not move as the market does
		const is = take?.amount && isSure ? { prices: `${
			decimal(take.paid / take.amount, priceDigits)} / ${decimal(take.worst, priceDigits)}`,
		amount: `${shortest(take.amount)} ${base}`,
		total: `${decimal(take.paid / ONE, digits)} ${quote}` } : undefined;
		/** @type {[string, string][]} */
		const rows = [[prices, is?.prices ?? text.none], ...limited];
		if (this.#type !== "oco") {
			const [now, of, unit] = isMarket && this.#byTotal
				? [(take?.paid ?? 0n) / ONE, this.#typed.total, quote]
				: [take?.amount ?? 0n, this.#typed.amount, base];
			const part = now && !(isPart && this.#force === "fok") ? shortest(now) : "";
			rows.push([text.fillsNow, !take || !isSure ? text.none : isPart ? text.partNow(part,
				`${shortest(typed(of) ?? 0n)} ${unit}`, this.#mayHide()) : `${part} ${unit}`]);
		}
		if (isMarket) {
			rows.push(this.#byTotal ? [amount, is?.amount ?? text.none]
				: [total, is?.total ?? text.none]);
		}
		if (met.length) {
			rows.push([text.ownMet, text.meets(met, text.outcomes[
				/** @type {keyof typeof text.outcomes} */ (this.#mode)] ?? text.meetsUnknown)]);
		}
		return rows;
	}

	/** sums shows what is free, the fee, and what stays. @param {Pair} pair */
	#sums(pair) {
		const { name, base, quote, priceDigits } = pair, isBuy = this.#side === "buy";
		const currency = this.#currency(), exact = this.desk.account.exact(currency);
		const { gives, gets, met } = this.#plan(), rate = this.fees.most(name);
		/** @param {bigint} n */
		const sum = (n) => `${currency === quote ? decimal(n / FINER, Math.max(priceDigits, 2))
			: shortest(n / FINER)} ${currency}`;
		const fee = gets === null || rate === undefined ? null : over(gets * rate, ONE * ONE);
		/** @type {[string, string][]} */
		const rows = [[text.free, this.#isKnown() ? sum(exact) : text.none],
			...this.#estimates(pair),
			[text.feeAtMost, fee !== null ? `${plain(fee)} ${isBuy ? base : quote}`
				: rate === undefined ? text.none : `${editable(rate * 100n)}%`],
			[this.#type === "market" ? text.estimatedLeft : text.left,
				gives === null || gives > exact || met.length || !this.#isKnown() ? text.none
					: sum(exact - gives)]];
		return html`<dl class="sums">${rows.map(([label, is]) => html`<div><dt>${label}</dt><dd>${is
			}</dd></div>`)}</dl>`;
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
		isOpen ? "" : text.isClosed(o.id, exactly(o.amount_filled), exactly(o.amount_original))}`.trim();
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
		const isLeft = !["refused", "unknown"].includes(p.state);
		if (form && isLeft && status >= 400 && !body.order) return form.refuse(answer, account);
		form?.dialog.close();
		own.say(found ? found
			: !answer ? p.state === "unknown" ? text.amendUnknown(id) : ""
			: p.state === "unknown" ? text.stillUnknown
			: status === 200 ? text.amended(body.oid, exactly(body.price),
				exactly(body.amount_original), body.priority, doneOf(body, pair))
			: body.order ? text.notAmended(id, [body.order].flat().join(" "))
			: wordsOf(answer, account));
	}
}

/** A Change is the form for a change of an open order. */
class Change {
	/** @type {Partial<Record<Name, string>>} */
	#wrong = {};
	#words = "";

	/** @param {Amend} amend @param {Order} order as it was when the form was opened */
	constructor(amend, order) {
		this.amend = amend;
		this.order = order;
		this.was = valuesOf(order);
		for (const [name, is] of /** @type {[Name, string][]} */ (Object.entries(this.was))) {
			if (is && name !== "expire_time") this.was[name] = editable(parse(is));
		}
		const { expire_time } = this.was;
		if (expire_time) this.was.expire_time = timeOf(Number(expire_time));
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
		for (const name of this.#names()) {
			const value = is[name] ?? "";
			if (value.trim() === was[name]) continue;
			const n = typed(value), at = secondsOf(value);
			if (name === "expire_time") {
				if (at) fields[name] = String(at);
				else this.#wrong[name] = text.notATime;
			} else if (!n) this.#wrong[name] = wrongOf(value);
			else if (n !== (typed(was[name] ?? "") ?? 0n)) fields[name] = plain(n);
		}
		const isWrong = Object.keys(this.#wrong).length > 0;
		if (isWrong) return this.#blame();
		if (Object.keys(fields).length === 2) this.#words = text.nothingChanged;
		else this.#send(fields);
		this.paint();
	}

	/** send sends a change, and asks before it takes a price that could be a slip. */
	#send(/** @type {Record<string, string>} */ fields) {
		const { order: o, amend: { desk, sender } } = this, yes = text.amend;
		const pair = /** @type {Pair} */ (desk.terminal.pairs.get(o.pair));
		const stop = o.triggered === false && !o.oco_trigger_price
			? fields.trigger_price ?? o.trigger_price : undefined;
		const price = fields.price ?? (fields.trigger_price && stop && o.price);
		const dangers = () => (o.post_only ? [] : [farFrom(desk, pair, { side: o.type,
			price: price && o.order_type !== "market" ? parse(price) : null,
			trigger: stop ? parse(stop) : null })].filter(Boolean));
		const act = () => {
			sender.send(fields);
			this.paint();
		};
		if (dangers().length) ask({ title: text.amendOrder(o.id), yes, act, dangers });
		else act();
	}

	/**
	 * refuse shows why the change was refused: below the fields that the exchange means.
	 * @param {any} answer
	 * @param {import("../session.js").Account} account
	 */
	refuse(answer, account) {
		const { status, body } = answer;
		this.#words = status !== 400 || body.error || body.detail ? wordsOf(answer, account)
			: blame(body, (name) => name in this.is && name, this.#wrong,
				this.order.pair.split("_")[1]);
		this.#blame();
	}

	/** names returns what may be changed now: a halted pair leaves the price of what rests. */
	#names() {
		const { order: o, amend: { desk } } = this;
		return /** @type {Name[]} */ (Object.keys(this.is)).filter((name) => name !== "price"
			|| isWaiting(o) || !desk.terminal.status.halted.has(o.pair));
	}

	#blame() {
		this.paint();
		focusWrong(this.content);
	}

	paint() {
		const { order: o, amend: { desk } } = this, pair = desk.terminal.pairs.get(o.pair);
		const now = desk.account.orders.get(o.id);
		const isSending = this.amend.of(o.id)?.state === "sending";
		const whyNot = isSending ? text.amendStates.sending : desk.whyNot();
		render(html`<form class="fields amend" novalidate autocomplete="off"
				@submit=${this.#submit.bind(this)}>
			<p>${pairOf(o.pair)}, ${sideOf(o.type)}, ${typeOf(o, pair)}. ${now
				? text.filledOf(exactly(now.amount_filled), exactly(now.amount_original)) : text.isOver(o.id)}</p>
			${this.#names().map((name) => input({ id: `amend-${name}`, name,
				label: text.changes[name], value: this.is[name], wrong: this.#wrong[name],
				empty: name === "display_amount" ? text.optional : "",
				unit: name.endsWith("amount") ? pair?.base : name.endsWith("price") ? pair?.quote : "",
				type: name === "expire_time" ? "datetime-local" : "text", onInput: (value) => {
					this.is[name] = value;
					delete this.#wrong[name];
					this.paint();
				} }))}
			<p class="muted">${text.aboutAmend}</p>
			<button class="main" ?disabled=${!now || whyNot !== ""}>${whyNot || text.amend}</button>
			<p role="status" class="outcome wrong">${this.#words}</p></form>`, this.content);
	}
}

/** @typedef {ReturnType<import("../book.js").Book["take"]>} Take */

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

/**
 * farFrom says that a price is far through the market, or its trigger, or on the side of its
 * trigger where it may not be filled; "": it is not.
 * @param {Desk} desk
 * @param {Pair} pair
 * @param {{side: string, price: bigint | null, trigger?: bigint | null}} order
 */
function farFrom(desk, pair, { side, price, trigger }) {
	if (!price) return "";
	const than = trigger ?? desk.marketOf(pair, side);
	if (!than) return "";
	const by = worse(side, price, than), { through, fromTrigger, mayRest } = text.warnings;
	const is = decimal(than, pair.priceDigits);
	if (trigger && price !== than && (side === "buy") === price < than) {
		return mayRest(price > than, is);
	}
	return by > THROUGH ? (trigger ? fromTrigger : through)(shareOf(by), is) : "";
}

/**
 * dangersOf says what is dangerous about what a market order would take now.
 * @param {Take} take
 * @param {string} side
 * @param {bigint | undefined} best
 * @param {string} amount as it is written
 */
function dangersOf(take, side, best, amount) {
	if (!best || !take.amount) return [];
	const by = worse(side, take.worst, best);
	return [by > FAR ? text.warnings.far(shareOf(by)) : "",
		take.isWhole ? text.warnings.whole(amount) : ""].filter(Boolean);
}

/**
 * ownMet returns the ids of own orders that an order of a side would meet, up to a price.
 * @param {import("../session.js").Account} account
 * @param {string} pair
 * @param {string} side
 * @param {bigint} limit
 */
const ownMet = (account, pair, side, limit) => [...account.orders.values()].filter((o) =>
	o.pair === pair && o.type !== side && (o.triggered !== false || o.oco_trigger_price)
	&& (side === "buy" ? parse(o.price) <= limit : parse(o.price) >= limit)).map((o) => o.id);

/**
 * ask shows a question in a dialog. The one who answers yes has seen what it says now: it is
 * painted again as the market moves. With dangers the safe answer has the focus.
 * @param {{title: string, side?: string, yes: string, no?: string, act: () => void,
 *   whyNot?: () => string, rows?: () => [string, unknown][], dangers?: () => string[]}} question
 */
export function ask({ title, side = "", yes, no = text.goBack, act, whyNot = () => "",
	rows = () => [], dangers = () => [] }) {
	const place = document.createElement("div");
	place.className = "question";
	const dialog = open(title, place, no);
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
	return { dialog, paint };
}
