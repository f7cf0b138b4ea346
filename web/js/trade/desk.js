// The account on the terminal: its log-in, its events, and what shows it: open orders, trades and
// balances; and what has become of orders, as toasts, a mark in the title, a sound, by the system.
// The page loads this when an account is asked for. It is one file because it packs better so.
import { html, nothing, render } from "../../vendor/lit-html/lit-html.js";
import { legsOf, Live, OTHER, Sender, Session } from "../session.js";
import { AGAIN } from "../api.js";
import { BALANCE_DIGITS, decimal, FINER, moment, offset, padded, pairOf, parse, plain, shortest, time } from "../format.js";
import { chosen, inFrame, Roving, singleKey, turn } from "../settings.js";
import { text } from "../text/en.js";
import { doneOf, failedBy, fillOf, isWaiting, openAccount, openLogin, priced, priceOf, readable, sideOf, typeOf } from "../words.js";
import { Amend, ask, Form } from "./form.js";

/** @typedef {import("../api.js").Pair} Pair */
/**
 * @typedef {{stream: import("../stream.js").Stream, status: import("../stream.js").Status,
 *   header: import("./main.js").Header,
 *   ladder: import("./main.js").Ladder, pairs: Map<string, Pair>,
 *   demo: import("../words.js").DemoKey[], element: (id: string) => HTMLElement}} Terminal
 */

export class Desk {
	/** @type {Pair | undefined} */
	#pair;
	state = "live"; // of the market

	/** @param {Terminal} terminal */
	constructor(terminal) {
		this.terminal = terminal;
		const { stream, ladder, element, pairs } = terminal;
		this.session = new Session(stream);
		this.live = new Live(this.session);
		this.sender = new Sender(this.session);
		this.amend = new Amend(this);
		this.form = new Form(element("panel-form"), element("sides"), this);
		this.own = new Own(element("panel-own"), this, pairs);
		this.notices = new Notices(element("toasts"), this);
		this.session.onChange = () => this.#changed();
		this.sender.onChange = () => this.own.change();
		this.sender.onOutcome = (outcome) => this.form.outcome(outcome);
		ladder.onPick = (price) => this.form.setPrice(price);
		this.live.onEvent = (event) => this.#apply(event);
		addEventListener("keydown", (event) => {
			if (this.session.state === "out") return;
			const key = event.repeat ? "" : singleKey(event);
			if (key && (this.form.key(key) || this.own.key(key, event.shiftKey))) {
				event.preventDefault();
			}
		});
	}

	get account() {
		return this.live.account;
	}

	/** open leads into the account, or to its log-in. */
	open() {
		if (this.session.state !== "out") return openAccount(this.session);
		openLogin(this.session, this.terminal.demo);
	}

	/**
	 * marketOf returns the price that an order of a side meets: the best one of the pair that is
	 * shown, else the last one; undefined: there is none.
	 * @param {Pair} pair
	 * @param {"buy" | "sell"} side
	 */
	marketOf(pair, side) {
		return this.bookOf(pair)?.sides[OTHER[side]][0]?.price
			?? this.terminal.header.lastOf(pair.name);
	}

	/** bookOf returns the book in which an order is placed now; undefined: it is not known. */
	bookOf(/** @type {Pair | undefined} */ pair) {
		const { book } = this.terminal.ladder;
		return this.state === "live" && pair === this.#pair && book.updateId !== null ? book : undefined;
	}

	/** connection tells that the connection has come or gone. */
	connection() {
		if (this.terminal.stream.state === "live") this.session.connected();
		else this.session.lost();
	}

	/** market tells what the market is like. @param {string} state */
	market(state) {
		this.state = state;
		this.form.change();
		this.own.change();
		this.amend.change();
	}

	/**
	 * whyNot says why an open order cannot be changed now, or not even cancelled; "": it can.
	 * @param {boolean} [isCancel]
	 */
	whyNot(isCancel) {
		if (this.session.state !== "in") return text.notLive;
		const is = this.terminal.status.maintenance;
		return is && !(isCancel && is.cancels) ? text.states.maintenance : "";
	}

	/** @param {Pair} pair */
	show(pair) {
		this.#pair = pair;
		this.form.show(pair);
		this.own.show(pair);
		this.#mark();
	}

	#changed() {
		const { session, terminal } = this, isIn = session.state !== "out";
		this.live.changed();
		this.form.fees.changed();
		terminal.header.tell({ account: isIn ? session.name : text.logIn });
		terminal.element("panel-own").hidden = terminal.element("tab-own").hidden = !isIn;
		document.body.classList.toggle("trader", session.may("trade"));
		document.body.classList.toggle("account", isIn);
		if (session.isShared) this.own.say(text.shared);
		if (!isIn) {
			this.notices.forget();
			this.#mark();
			if (document.body.dataset.tab === "own") terminal.element("tab-chart").click();
			if (session.ended) openLogin(session, terminal.demo, failedBy(session.ended));
		}
		this.form.change();
		this.own.change();
		this.amend.change();
	}

	/** @param {import("../session.js").Event} event */
	#apply(event) {
		for (const o of event.orders ?? []) {
			if (o.client_order_id) this.sender.seen(o.client_order_id, o.id);
		}
		this.amend.told(event.orders ?? []);
		this.notices.tell(event);
		if (event.snapshot) this.own.load();
		this.#mark();
		this.form.change();
		this.own.change();
		this.amend.change();
	}

	/** mark marks the account's orders in the book. */
	#mark() {
		/** @type {Record<"sell" | "buy", bigint[]>} */
		const own = { sell: [], buy: [] };
		for (const o of this.account.orders.values()) {
			const rests = o.triggered !== false || o.oco_trigger_price !== undefined;
			if (o.pair === this.#pair?.name && rests) own[o.type].push(parse(o.price));
		}
		this.terminal.ladder.mark(own);
	}
}

/** @typedef {import("../session.js").Order} Order */

const PAGE = 100;
const TABS = /** @type {const} */ (["orders", "trades", "balances"]);

/**
 * at shows a time of today as such, and an older one with its date, and with its zone where that
 * was another one then: in summer, or in winter.
 * @param {number} seconds
 */
function at(seconds) {
	if (Date.now() / 1000 - seconds < 43_200) return time(seconds);
	const then = offset(seconds * 1000);
	return `${moment(seconds, false)} ${then === offset() ? "" : then}`;
}

/**
 * digitsOf returns how many decimals a column needs to show its numbers as they are.
 * @param {string[]} column
 */
const digitsOf = (column) => Math.max(2, ...column.map((n) => n.split(".")[1]?.length ?? 0));

/** headOf titles a table. @param {string[]} titles */
const headOf = (titles) => html`<tr role="row">${titles.map((t) => (t
	? html`<th role="columnheader">${t}</th>` : html`<td role="gridcell"></td>`))}</tr>`;

/**
 * cell is one of a row, with its title for a narrow page, where rows are no columns.
 * @param {string} title
 * @param {unknown} shown
 * @param {string} [exact]
 */
const cell = (title, shown, exact) => html`<td role="gridcell" data-title=${title}
	title=${exact ?? nothing}>${shown}</td>`;

export class Own {
	/** @type {(typeof TABS)[number]} */
	#tab = "orders";
	/** @type {Pair | undefined} */
	#pair;
	/** Ids of orders whose cancel is in flight. */
	#cancelling = new Set();
	/**
	 * How far back trades were read, of a pair or ("") of all: the oldest id; 0: all of them.
	 * @type {Map<string, number>}
	 */
	#read = new Map();
	#trims = 0; // of the account's trades that are in it
	#isReading = false;
	#round = 0; // of reads: what was read before the trades were read again does not count
	#most = PAGE; // rows that are shown
	words = "";

	/** @param {HTMLElement} place @param {Desk} desk @param {Map<string, Pair>} pairs */
	constructor(place, desk, pairs) {
		this.place = place;
		this.desk = desk;
		this.pairs = pairs;
		this.rows = new Roving(place, (row) => this.desk.amend.open(row.dataset.id ?? ""));
	}

	/** @param {Pair} pair */
	show(pair) {
		this.#pair = pair;
		this.#begin();
	}

	/** load reads the newest trades again. */
	load() {
		this.#read.clear();
		this.#round++;
		this.#older();
	}

	/** begin shows another list. */
	#begin() {
		if (!this.#read.has(this.#scope)) this.#older();
		this.change();
	}

	/** The pair whose orders and trades are listed; "": all of them. */
	get #scope() {
		return chosen.onePair ? this.#pair?.name ?? "" : "";
	}

	/** @param {string} key @param {boolean} isShift caps lock makes a letter great, too */
	key(key, isShift) {
		if (key === "o") {
			this.#choose("orders");
			/** @type {HTMLElement | null} */ (this.place.querySelector("tr[data-id]"))?.focus();
			return true;
		}
		if (key === "e") {
			this.desk.amend.open(this.#focused());
			return true;
		}
		if (key.toLowerCase() !== "c") return false;
		if (isShift) this.#askCancelAll();
		else this.#cancel(this.#focused());
		return true;
	}

	/** focused returns the id of the order whose row has the focus; "": none has. */
	#focused() {
		return this.rows.row()?.dataset.id ?? "";
	}

	change = inFrame(() => this.#paint());

	/** older reads older trades than those that are here. */
	async #older() {
		const { session, account } = this.desk, scope = this.#scope, round = this.#round;
		const from = this.#read.get(scope);
		if (!this.#pair || this.#isReading || from === 0) return;
		if (session.state !== "in" || !session.may("read")) return;
		this.#isReading = true;
		try {
			const list = await session.read(`/api/v1/exchanges/own/?both_sides=1&limit=${PAGE}${
				scope && `&pair=${scope}`}${from ? `&before=${from}` : ""}`);
			if (round === this.#round) {
				account.add(list);
				this.#read.set(scope, list.length < PAGE ? 0 : Number(list.at(-1).id));
			}
		} catch {
			setTimeout(() => this.#older(), AGAIN);
		} finally {
			this.#isReading = false;
		}
		if (round !== this.#round || scope !== this.#scope) this.#older();
		this.change();
	}

	/** listed returns the trades that are listed, newest first: none is missing between them. */
	#listed() {
		const { trades } = this.desk.account, scope = this.#scope;
		const from = this.#read.get(scope) ?? Infinity;
		const all = scope ? [trades.get(scope) ?? new Map()] : [...trades.values()];
		return legsOf(all.flatMap((of) => [...of.values()]).filter((t) => Number(t.id) >= from)
			.sort((a, b) => Number(b.id) - Number(a.id)));
	}

	/** open returns the open orders that are listed, newest first. */
	#open() {
		const scope = this.#scope;
		return [...this.desk.account.orders.values()].filter((o) => !scope || o.pair === scope)
			.sort((a, b) => Number(b.id) - Number(a.id));
	}

	/** onTheirWay returns the orders on their way of which the account's events do not tell yet. */
	#onTheirWay() {
		const told = new Set([...this.desk.account.orders.values()].map((o) => o.client_order_id));
		return this.desk.sender.mine().filter((p) => !told.has(p.id)).reverse();
	}

	/** say tells of something that concerns the tables. @param {string} words */
	say(words) {
		const { form } = this.desk;
		if (form.isGood) form.say(""); // it is older
		this.words = words;
		this.change();
	}

	/** @param {string} id */
	#cancel(id) {
		if (!this.desk.account.orders.has(id) || this.#cancelling.has(id)
			|| this.desk.whyNot(true)) return;
		this.#ask("order-cancel", { order: id }, () => text.cancelled(id), [id]);
	}

	/** toCancel returns the pair's open orders. */
	#toCancel() {
		return [...this.desk.account.orders.values()].filter((o) => o.pair === this.#pair?.name);
	}

	/** askCancelAll asks before all orders of the pair are cancelled. */
	#askCancelAll() {
		const pair = this.#pair, { session, account } = this.desk, all = this.#toCancel();
		if (!pair || !session.may("trade") || this.desk.whyNot(true)) return;
		const may = session.may("read"); // or the page does not know what is open
		const name = pairOf(pair.name), title = text.cancelAll(name);
		if (may && !all.length && account.isComplete) return this.say(text.noneToCancel(name));
		const dangers = () => [text.askCancelAll(name, all.length, may && account.isComplete)];
		ask({ title, yes: title, no: text.keep, dangers, whyNot: () => this.desk.whyNot(true),
			act: () => this.#ask("order-cancel-all", { pair: pair.name },
				(body) => text.cancelledAll(body.orders.length, name),
				this.#toCancel().map((o) => o.id)) });
	}

	/**
	 * ask sends a cancel. Without an answer the account's events tell what has become of it.
	 * @param {string} event
	 * @param {Record<string, unknown>} fields
	 * @param {(body: any) => string} done
	 * @param {string[]} ids of the orders
	 */
	async #ask(event, fields, done, ids) {
		const { mine } = this.desk.notices;
		for (const id of ids) {
			mine.add(id);
			this.#cancelling.add(id);
		}
		this.change();
		let isDone = false;
		try {
			const { status, body } = await this.desk.session.command(event, fields);
			isDone = status === 200;
			this.say(isDone ? done(body)
				: readable(body.detail ?? body.error ?? Object.values(body).flat()));
		} catch {
			this.say(text.cancelUnknown);
		}
		for (const id of ids) {
			if (!isDone) mine.delete(id);
			this.#cancelling.delete(id);
		}
		this.change();
	}

	/** more shows and reads more rows as one scrolls. @param {Event} event */
	#more(event) {
		const list = /** @type {HTMLElement} */ (event.target);
		if (list.scrollTop + list.clientHeight < list.scrollHeight - 200) return;
		const there = (this.#tab === "orders" ? this.#open() : this.#listed()).length;
		if (this.#most <= there) this.#most += PAGE;
		if (this.#tab === "trades" && this.#most > there) this.#older();
		this.change();
	}

	/** @param {(typeof TABS)[number]} tab */
	#choose(tab) {
		this.#tab = tab;
		this.#most = PAGE;
		this.#paint();
	}

	#paint() {
		this.rows.keep(() => this.#draw());
	}

	#draw() {
		const { session, account } = this.desk, pair = this.#pair;
		if (session.state === "out" || !pair) return;
		if (this.#trims !== account.trims) {
			this.#trims = account.trims;
			this.load();
		}
		const isTrader = session.may("trade");
		const count = this.#open().length + this.#onTheirWay().length;
		render(html`<div class="bar">
				<div class="frames" role="group" aria-label=${text.account}
					>${TABS.map((tab) => html`
					<button aria-pressed=${tab === this.#tab} @click=${() => this.#choose(tab)}
						>${text.own[tab]}${tab === "orders" ? ` (${count})` : ""}</button>`)}</div>
				${this.#tab === "balances" ? nothing : html`<label class="one"><input
					type="checkbox" role="switch" .checked=${chosen.onePair} @change=${() => {
						turn("onePair", !chosen.onePair);
						this.#most = PAGE;
						this.#begin();
					}}>${text.onePair}</label>`}
				<b class="not-live">${text.notLive}</b>
				<span role="status" class="told">${this.words}</span>
				${isTrader && this.#tab === "orders" && this.#toCancel().length
					? html`<button class="all" ?disabled=${this.desk.whyNot(true) !== ""}
					@click=${() => this.#askCancelAll()}
					>${text.cancelAll(pairOf(pair.name))}</button>` : nothing}
			</div>
			<div class="list" @scroll=${this.#more.bind(this)} tabindex="-1" role="region"
				aria-label=${text.own[this.#tab]}>${session.may("read") ? nothing
				: html`<p class="muted">${text.mayNotRead}</p>`}${isTrader ? nothing
				: html`<p class="muted">${text.mayNotTrade}</p>`}${this.#tab === "orders"
				? this.#orders(isTrader) : !session.may("read") ? nothing
				: this.#tab === "trades" ? this.#trades() : this.#balances()}
			</div>`, this.place);
	}

	/** @param {boolean} isTrader */
	#orders(isTrader) {
		const { account } = this.desk;
		const list = this.#open();
		const shown = list.slice(0, this.#most), mine = this.#onTheirWay();
		if (!list.length && !mine.length) {
			return this.desk.session.may("read") ? html`<p class="muted">${text.noOrders}</p>`
				: nothing;
		}
		const digits = digitsOf([...shown.flatMap((o) => [o.amount_original, o.amount_filled]),
			...mine.map((p) => p.fields.amount ?? "")]);
		const titles = [text.orderAt(offset()), text.pair, text.side, text.type, text.price,
			text.amount, text.filled, ...isTrader ? [""] : []];
		return html`<table role="grid" aria-label=${text.own.orders} class="orders">
			<thead>${headOf(titles)}</thead>
			<tbody>
				${mine.map((p) => this.#pending(p, digits))}
				${shown.map((o) => this.#order(o, isTrader, digits))}
			</tbody></table>
			${account.isComplete ? nothing : html`<p class="muted">${text.moreOrders}</p>`}`;
	}

	/** head is how the row of an order begins. @param {any} o @param {unknown} id @param {string} state */
	#head(o, id, state) {
		const pair = this.pairs.get(o.pair);
		return html`${cell(text.order, id)}${cell(text.pair, pairOf(o.pair))}
			${cell(text.side, sideOf(o.type))}
			${cell(text.type, html`${typeOf(o, pair)} <small>${state}</small>`)}
			${cell(text.price, priceOf(o, pair))}`;
	}

	/** @param {Order} o @param {boolean} isTrader @param {number} digits of its amounts */
	#order(o, isTrader, digits) {
		const pair = this.pairs.get(o.pair);
		const isLeaving = this.#cancelling.has(o.id);
		const { amend, account } = this.desk, change = amend.of(o.id);
		const filled = parse(o.amount_filled);
		const fill = pair && fillOf([...account.trades.get(o.pair)?.values() ?? []], pair, o.id);
		const state = isLeaving ? "cancelling" : isWaiting(o) ? "waiting" : "open";
		return html`<tr role="row" data-id=${o.id}
				data-state=${isLeaving ? state : change?.state ?? state}>
			${this.#head(o, html`${o.id} <small>${at(Number(o.date) / 1000)}</small>`, change && !isLeaving
				? text.amendStates[change.state] : text.orderStates[state])}
			${cell(text.amount, decimal(parse(o.amount_original), digits))}
			${cell(text.filled, html`${decimal(filled, digits)} <small>${
				filled && fill?.filled === filled ? text.averageAt(fill.average) : ""}</small>`)}
			${isTrader ? cell("", html`${change ? this.#again(amend.sender, change)
				: html`<button class="amend" aria-label=${text.amendOrder(o.id)}
					?disabled=${this.desk.whyNot() !== ""}
					@click=${() => amend.open(o.id)}>${text.amend}</button>`}
				${change && ["refused", "unseen"].includes(change.state) ? html`<button
					class="drop" @click=${() => amend.sender.drop(change)}>${text.dismiss}</button>`
				: nothing}<button class="cancel"
				?disabled=${isLeaving || this.desk.whyNot(true) !== ""}
				aria-label=${text.cancelOrder(o.id)} @click=${() => this.#cancel(o.id)}
				>${text.cancel}</button>`) : nothing}</tr>`;
	}

	/**
	 * again offers to send once more what was not done.
	 * @param {import("../session.js").Sender} sender
	 * @param {import("../session.js").Pending} p
	 * @param {string} [whyNot]
	 */
	#again(sender, p, whyNot = this.desk.whyNot()) {
		const words = p.state === "refused" ? text.tryAgain
			: p.state === "unseen" ? text.sendAgain : "";
		return words ? html`<button class="again" ?disabled=${whyNot !== ""}
			@click=${() => sender.again(p)}>${whyNot || words}</button>` : nothing;
	}

	/** @param {import("../session.js").Pending} p @param {number} digits of amounts */
	#pending(p, digits) {
		const { sender, terminal } = this.desk, { fields } = p;
		const whyNot = terminal.status.halted.has(fields.pair) ? text.states.halted : undefined;
		return html`<tr role="row" data-id=${p.id} data-state=${p.state}>
			${this.#head(fields, text.none, text.orderStates[p.state])}
			${cell(text.amount, fields.amount ? decimal(parse(fields.amount), digits)
				: text.none)}
			${cell(text.filled, text.none)}
			${cell("", html`${this.#again(sender, p, whyNot)}
				${p.state === "sending" ? nothing : html`<button @click=${async () => {
					try {
						await sender.cancel(p);
					} catch {
						this.say(text.cancelUnknown);
					}
				}}>${text.cancel}</button>`}`)}</tr>`;
	}

	#trades() {
		const shown = this.#listed().slice(0, this.#most);
		const digits = digitsOf(shown.map((t) => t.amount));
		if (!shown.length) {
			const isEmpty = this.#read.get(this.#scope) === 0;
			return html`<p class="muted">${isEmpty ? text.noTrades : text.loading}</p>`;
		}
		const titles = [`${text.time} (${offset()})`, text.pair, text.side, text.price, text.amount,
			text.fee, text.role, text.order];
		return html`<table role="grid" aria-label=${text.own.trades} class="trades">
			<thead>${headOf(titles)}</thead>
			<tbody>${shown.map((t) => html`<tr role="row" data-id="${t.id}-${t.order}">
				${cell(text.time, at(Number(t.timestamp)))}${cell(text.pair, pairOf(t.pair))}
				${cell(text.side, sideOf(t.my_side))}
				${cell(text.price, priced(t.price, this.pairs.get(t.pair)))}
				${cell(text.amount, decimal(parse(t.amount), digits))}
				${cell(text.fee, `${padded(t.fee)} ${t.fee_currency}`)}
				${cell(text.role, t.maker ? text.maker : text.taker)}
				${cell(text.order, t.order)}</tr>`)}
			</tbody></table>`;
	}

	#balances() {
		const { account } = this.desk;
		/** @param {string} title @param {string} exact */
		const shown = (title, exact) =>
			cell(title, shortest(parse(exact, BALANCE_DIGITS) / FINER), exact);
		const titles = [text.currency, text.total, text.reserved, text.free];
		return html`<table role="grid" aria-label=${text.own.balances} class="balances">
			<thead>${headOf(titles)}</thead><tbody>
			${[...account.balances.values()].map((b) => html`<tr role="row"
				data-id="of-${b.currency}">${cell(text.currency, b.currency)}
				${shown(text.total, b.balance)}${shown(text.reserved, b.reserve)}
				${shown(text.free, plain(account.free(b.currency)))}</tr>`)}
			</tbody></table>`;
	}
}

/** @typedef {import("../session.js").Event} Told */

const MOST = 4; // toasts
/** How long a toast stays, and the least time between two sounds, in milliseconds. */
const STAYS = 20_000, SILENCE = 1000;

export class Notices {
	/** Open orders as they were told last. @type {Map<string, Order>} */
	#known = new Map();
	/** Those of before a snapshot. @type {Map<string, Order>} */
	#before = new Map();
	/**
	 * By order, the oldest first. old: what form and tables had said before it.
	 * @type {Map<string, {words: string, timer: number, old: string[]}>}
	 */
	#toasts = new Map();
	/** Orders whose end the page says elsewhere, because it has asked for it. */
	mine = new Set();
	#heard = 0;
	/** @type {AudioContext | undefined} */
	#audio;

	/** @param {HTMLElement} place @param {Desk} desk */
	constructor(place, desk) {
		this.place = place;
		this.desk = desk;
		document.addEventListener("visibilitychange", () => document.hidden || this.#see());
	}

	/** forget lets go of an account. */
	forget() {
		this.#known.clear();
		for (const id of this.#toasts.keys()) this.#drop(id);
		this.#see();
	}

	/** tell says what an event has done to orders that were open. @param {Told} event */
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
			const pair = /** @type {Pair} */ (this.desk.terminal.pairs.get(o.pair));
			const why = o.status === "2" && !isMine
				&& (o.cancel_reason ?? event.cancel_reason ?? event.cause);
			const words = was && whatOf(was, o, trades, pair, why);
			if (words) {
				this.#add(o.id,
					`${text.order} ${o.id}, ${text[o.type]} ${pairOf(o.pair)}, ${typeOf(o, pair)}: ${words}.`);
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
		const timer = setTimeout(() => this.#drop(id), STAYS), { form, own, terminal: { header } } = this.desk;
		this.#toasts.set(id, { words, timer, old: [form.words, own.words] });
		for (const old of [...this.#toasts.keys()].slice(0, -MOST)) this.#drop(old);
		this.#paint();
		if (document.hidden) header.tell({ unseen: header.unseen + 1 });
		if (chosen.sound) this.#beep();
		if (chosen.notify && document.hidden) this.#notify(id, words);
	}

	/** @param {string} id */
	#drop(id) {
		const { form, own } = this.desk, toast = this.#toasts.get(id), [placed, told] = toast?.old ?? [];
		clearTimeout(toast?.timer);
		if (form.words === placed && form.isGood) form.say("");
		if (own.words === told) own.words = "";
		own.change();
		if (this.#toasts.delete(id)) this.#paint();
	}

	#see() {
		this.desk.terminal.header.tell({ unseen: 0 });
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
 * @param {import("../session.js").Trade[]} trades of the event
 * @param {Pair} pair
 * @param {string | false | undefined} why it was cancelled
 */
function whatOf(was, is, trades, pair, why) {
	const said = was.triggered === false && is.triggered ? [text.triggered] : [];
	if (is.amount_filled !== was.amount_filled) {
		const { filled, average } = fillOf(trades, pair, is.id);
		const at = !filled ? "" : filled === parse(is.amount_filled) ? text.averageAt(average)
			: text.nowAt(`${shortest(filled)} ${pair.base}`, average);
		said.push((is.status === "3" ? text.filledAll : text.filledOf(padded(is.amount_filled),
			`${padded(is.amount_original)} ${pair.base}`).replace(/\.$/, "")) + at);
	}
	said.push(doneOf({ ...is, trades: [], cancel_reason: why }, pair));
	return said.filter(Boolean).join("; ");
}
