// What an account has, held by the events of own: docs/stream.md has the rules.
import { BALANCE_DIGITS, FINER, parse } from "./format.js";

/**
 * @typedef {{id: string, pair: string, type: "buy" | "sell", status: string, price: string,
 *   amount: string, amount_filled: string, amount_original: string, date: string,
 *   client_order_id?: string, order_type?: string, time_in_force?: string, expire_time?: string,
 *   post_only?: boolean | string, display_amount?: string, trigger_price?: string,
 *   price_asked?: string, trigger_when?: string, average_price?: string, cancel_reason?: string,
 *   triggered?: boolean, oco_trigger_price?: string, oco_price?: string}} Order
 * @typedef {{id: string, pair: string, my_side: "buy" | "sell", price: string, amount: string,
 *   timestamp: string, fee: string, fee_currency: string, order: string, maker: boolean,
 *   client_order_id?: string}} Trade
 * @typedef {{currency: string, balance: string, reserve: string}} Balance
 * @typedef {{sequence: string, prev: string | null, snapshot?: boolean, part?: string,
 *   parts?: string, orders?: Order[], trades?: Trade[], balances?: Balance[],
 *   orders_complete?: boolean, cause?: string, cancel_reason?: string}} Event
 */

/** LATER is the pause before a subscription that was put off is tried again, in milliseconds. */
const LATER = 1000;

/** Most trades of a pair that are held. Older ones are read again. */
const TRADES = 5000;

export class Account {
	/** Open orders by id. @type {Map<string, Order>} */
	orders = new Map();
	/** @type {Map<string, Balance>} */
	balances = new Map();
	/** Trades by pair and id. @type {Map<string, Map<string, Trade>>} */
	trades = new Map();
	/** The newest event that was applied. @type {string | undefined} */
	sequence;
	/** How often trades were let go. */
	trims = 0;
	/** All open orders are here, not the newest 2,000 alone. */
	isComplete = true;
	/** @type {Event[]} */
	#parts = [];

	/**
	 * apply applies an event. It returns false if one is missing before it: subscribe again.
	 * @param {Event} event
	 */
	apply(event) {
		if (event.parts) {
			if (event.part === "1") this.#parts = [];
			this.#parts.push(event);
			if (event.part !== event.parts) return true;
			if (String(this.#parts.length) !== event.parts) return this.#lose();
		} else this.#parts = [event];
		const [first] = this.#parts;
		if (first.snapshot) this.#clear();
		else if (this.sequence !== (first.prev ?? "0")) return this.#lose();
		for (const part of this.#parts) this.#put(part);
		this.sequence = first.sequence;
		return true;
	}

	/** free returns what an account can spend, rounded down. @param {string} currency */
	free(currency) {
		return this.exact(currency) / FINER;
	}

	/** exact returns what an account can spend, in 1e-16. @param {string} currency */
	exact(currency) {
		const b = this.balances.get(currency);
		return b ? parse(b.balance, BALANCE_DIGITS) - parse(b.reserve, BALANCE_DIGITS) : 0n;
	}

	/** add adds trades that were read. @param {Trade[]} list */
	add(list) {
		for (const trade of list) {
			const all = this.trades.get(trade.pair) ?? new Map();
			this.trades.set(trade.pair, all.set(trade.id, trade));
		}
	}

	/** trim lets the oldest trades of a pair go. @param {string} pair */
	#trim(pair) {
		const all = /** @type {Map<string, Trade>} */ (this.trades.get(pair));
		if (all.size <= 2 * TRADES) return;
		const ids = [...all.keys()].sort((a, b) => Number(a) - Number(b));
		for (const id of ids.slice(0, -TRADES)) all.delete(id);
		this.trims++;
	}

	#lose() {
		this.sequence = undefined;
		return false;
	}

	#clear() {
		this.orders.clear();
		this.balances.clear();
		this.trades.clear(); // those made meanwhile are missing
	}

	/** @param {Event} part */
	#put({ orders = [], trades = [], balances = [], orders_complete }) {
		for (const order of orders) {
			if (order.status === "1") this.orders.set(order.id, order);
			else this.orders.delete(order.id);
		}
		for (const trade of trades) {
			this.add([trade]);
			this.#trim(trade.pair);
		}
		for (const balance of balances) this.balances.set(balance.currency, balance);
		if (orders_complete !== undefined) this.isComplete = orders_complete;
	}
}

/** Live is the account of the key that is logged in, held by its events over lost connections. */
export class Live {
	account = new Account();
	/**
	 * Called with each event that was applied.
	 * @type {(event: Event) => void}
	 */
	onEvent = () => {};
	#key = ""; // whose events the account has
	#isIn = false;

	/** @param {import("./session.js").Session} session */
	constructor(session) {
		this.session = session;
		session.stream.on("own", (event) => this.#apply(event));
	}

	/** changed tells that the log-in has changed. */
	changed() {
		const { state } = this.session, wasIn = this.#isIn;
		this.#isIn = state === "in";
		if (this.#isIn && !wasIn) this.#subscribe();
		if (state !== "out") return;
		this.account = new Account();
		this.#key = "";
	}

	/** subscribe asks for the account's events, behind those that it has. */
	async #subscribe() {
		const { session } = this;
		if (!session.may("read")) return;
		if (this.#key !== session.key) this.account = new Account();
		this.#key = session.key;
		const { sequence } = this.account;
		try {
			const { status } = await session.command("own.subscribe",
				sequence === undefined ? {} : { after: Number(sequence) });
			if (status >= 429) {
				setTimeout(() => session.state === "in" && this.#subscribe(), LATER);
			}
		} catch {
			// the next connection logs in and subscribes
		}
	}

	/** @param {Event} event */
	#apply(event) {
		if (this.session.state === "out") return;
		if (this.account.apply(event)) this.onEvent(event);
		else this.#subscribe();
	}
}
