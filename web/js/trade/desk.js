// The account on the terminal: its log-in, its events, and the panels that show it. The page loads
// this when an account is asked for.
import { parse } from "../decimal.js";
import { Live } from "../account.js";
import { Sender } from "../sender.js";
import { Session } from "../session.js";
import { text } from "../text/en.js";
import { Amend, Form } from "./form.js";
import { openAccount, openLogin, wordsOf } from "../login.js";
import { Notices, Own } from "./own.js";
import { singleKey } from "../settings.js";

/** @typedef {import("../api.js").Pair} Pair */
/**
 * @typedef {{stream: import("../stream.js").Stream, header: import("./market.js").Header,
 *   ladder: import("./market.js").Ladder, pairs: Map<string, Pair>,
 *   demo: import("../login.js").DemoKey[], element: (id: string) => HTMLElement}} Terminal
 */

export class Desk {
	/** @type {Pair | undefined} */
	#pair;
	/** @type {import("../api.js").Info["maintenance"]} */
	#maintenance = null;

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
		this.notices = new Notices(element("toasts"), pairs, (n) => terminal.header.mark(n));
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

	/** book tells that the book has changed. */
	book() {
		this.form.book();
	}

	/**
	 * marketOf returns the price that an order of a side meets: the best one of the pair that is
	 * shown, else the last one; undefined: there is none.
	 * @param {Pair} pair
	 * @param {string} side
	 */
	marketOf(pair, side) {
		const { ladder: { book }, header } = this.terminal;
		const best = pair === this.#pair && book.sides[side === "buy" ? "sell" : "buy"][0]?.price;
		return best || header.lastOf(pair.name);
	}

	/** connection tells that the connection has come or gone. */
	connection() {
		if (this.terminal.stream.state === "live") this.session.connected();
		else this.session.lost();
	}

	/**
	 * market tells what the market is like.
	 * @param {string} state
	 * @param {import("../api.js").Info["maintenance"]} maintenance
	 */
	market(state, maintenance) {
		this.#maintenance = maintenance;
		this.form.market(state);
		this.own.change();
		this.amend.change();
	}

	/**
	 * whyNot says why an open order cannot be changed now, or not even cancelled; "": it can.
	 * @param {boolean} [isCancel]
	 */
	whyNot(isCancel) {
		if (this.session.state !== "in") return text.notLive;
		const is = this.#maintenance;
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
		terminal.header.account(isIn ? session.name : text.logIn);
		terminal.element("panel-own").hidden = terminal.element("tab-own").hidden = !isIn;
		document.body.classList.toggle("trader", session.may("trade"));
		document.body.classList.toggle("account", isIn);
		if (session.isShared) this.own.say(text.shared);
		if (!isIn) {
			this.notices.forget();
			this.#mark();
			if (document.body.dataset.tab === "own") terminal.element("tab-chart").click();
			if (session.ended) openLogin(session, terminal.demo, wordsOf(session.ended));
		}
		this.form.change();
		this.own.change();
		this.amend.change();
	}

	/** @param {import("../account.js").Event} event */
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
