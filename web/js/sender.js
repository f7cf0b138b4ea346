// Orders, changes of them, or withdrawals, on their way: each has a name before its first try, and
// is kept until its outcome is known.
import { remember, remembered } from "./keys.js";

/** @typedef {import("./session.js").Session} Session */
/** @typedef {import("./session.js").Answer} Answer */
/**
 * sending: the answer is awaited. refused: nothing was done, and the same order may be tried again.
 * unknown: there was no answer. unseen: the exchange had no such order when it was asked.
 * @typedef {"sending" | "refused" | "unknown" | "unseen"} State
 */
/**
 * wasLost: a try had no answer, so the refusal of a later one does not tell of it.
 * @typedef {{id: string, key: string, fields: Record<string, string>, state: State,
 *   wasLost?: boolean}} Pending
 * @typedef {{pending: Pending, answer?: Answer, order?: string}} Outcome
 */

/**
 * What is sent. kept: its name in the tab's memory. name: the field that has the name of one.
 * beside: refusals of a second try that say nothing about the first. find: returns the id that the
 * exchange has given to a name, or whatever else tells that it has taken what was sent.
 * @typedef {{kept: string, name: string, beside?: number[],
 *   send: (session: Session, fields: Record<string, string>) => Promise<Answer>,
 *   find: (session: Session, name: string, fields: Record<string, string>) =>
 *     Promise<string | undefined>}} Kind
 */

/** @type {Kind} */
const ORDERS = { kept: "orders", name: "client_order_id",
	send: (session, fields) => session.command("order", fields),
	find: async (session, name) =>
		(await session.read(`/api/v1/orders/own/?client_order_id=${name}`))[0]?.id };

/** Refusals that say nothing about the order itself. */
const BESIDE = [401, 403, 429, 503];

/** name returns a new name for an order: 128 random bits. */
function name() {
	const bytes = crypto.getRandomValues(new Uint8Array(16));
	const text = btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_");
	return `web-${text.replaceAll("=", "")}`;
}

export class Sender {
	/** By name, oldest first. @type {Map<string, Pending>} */
	pending = new Map();
	/** Called when the list has changed. */
	onChange = () => {};
	/** Called with what has become of an order. @type {(outcome: Outcome) => void} */
	onOutcome = () => {};
	/** Names of orders whose cancel is on its way. */
	#leaving = new Set();

	/** @param {Session} session @param {Kind} [kind] */
	constructor(session, kind = ORDERS) {
		this.session = session;
		this.kind = kind;
		try {
			for (const p of JSON.parse(remembered(kind.kept) || "[]")) {
				this.pending.set(p.id, { ...p, state: "unknown", wasLost: true });
			}
		} catch {
			// it is not what this page has written
		}
		for (const id of this.pending.keys()) this.#find(id, 0);
	}

	/** mine returns what was sent with the key that is logged in. */
	mine() {
		return [...this.pending.values()].filter((p) => p.key === this.session.key);
	}

	/** send sends a new order. @param {Record<string, string>} fields */
	send(fields) {
		const pending = /** @type {Pending} */ (
			{ id: name(), key: this.session.key, fields, state: "sending" });
		this.pending.set(pending.id, pending);
		return this.again(pending);
	}

	/** again sends an order under its name, which the exchange takes once. @param {Pending} p */
	async again(p) {
		if (this.session.state !== "in" || this.#leaving.has(p.id)) return;
		this.#become(p, "sending");
		let answer;
		try {
			answer = await this.kind.send(this.session, { ...p.fields, [this.kind.name]: p.id });
		} catch {
			if (this.pending.has(p.id)) this.#lose(p);
			return;
		}
		if (!this.pending.has(p.id)) return; // the account's events were faster
		const { status, body } = answer;
		const taken = /by (?:order|withdraw) (\d+)/.exec(body?.[this.kind.name]?.[0] ?? "");
		if (taken) return this.#end({ pending: p, order: taken[1] });
		if (p.wasLost && (this.kind.beside ?? BESIDE).includes(status) && body?.code !== "outcome_unknown") {
			this.#become(p, "unknown");
			this.onOutcome({ pending: p, answer });
			return this.#find(p.id, 0);
		}
		if (status === 503 && body.code !== "outcome_unknown") {
			this.#become(p, "refused");
			this.onOutcome({ pending: p, answer });
		} else if (status >= 500) this.#lose(p);
		else this.#end({ pending: p, answer });
	}

	/**
	 * cancel takes back an order without an answer. A name that the exchange does not find will never
	 * come from an earlier connection.
	 * @param {Pending} p
	 */
	async cancel(p) {
		if (p.state === "refused") return this.drop(p);
		if (this.#leaving.has(p.id)) return;
		this.#leaving.add(p.id);
		try {
			const answer = await this.session.command("order-cancel", { client_order_id: p.id });
			const isSettled = answer.status === 200 || answer.body?.client_order_id;
			if (!this.pending.has(p.id)) return; // a look was faster
			if (isSettled) this.#end({ pending: p, answer });
			else this.onOutcome({ pending: p, answer });
		} finally {
			this.#leaving.delete(p.id);
		}
	}

	/** drop lets go of what was sent, whatever becomes of it. @param {Pending} p */
	drop(p) {
		this.#end({ pending: p });
	}

	/**
	 * seen ends the wait for an order that the account's events have told of.
	 * @param {string} id
	 * @param {string} order
	 */
	seen(id, order) {
		const p = this.pending.get(id);
		// a sent one is told by its answer, which has more to say
		if (p && p.state !== "sending") this.#end({ pending: p, order });
	}

	/** @param {Pending} p */
	#lose(p) {
		p.wasLost = true;
		this.#become(p, "unknown");
		this.onOutcome({ pending: p });
		this.#find(p.id, 0);
	}

	/**
	 * find asks for an order by its name: after half a second, one, two, and so on up to thirty.
	 * @param {string} id
	 * @param {number} tried
	 */
	#find(id, tried) {
		setTimeout(async () => {
			const p = this.pending.get(id);
			if (!p || !["unknown", "unseen"].includes(p.state)) return;
			if (this.session.state === "in" && this.session.key === p.key) {
				try {
					const order = await this.kind.find(this.session, id, p.fields);
					if (!this.pending.has(id)) return;
					if (order) return this.#end({ pending: p, order });
					if (p.state === "unknown") this.#become(p, "unseen");
				} catch {
					// asked again below
				}
			}
			this.#find(id, tried + 1);
		}, Math.min(500 * 2 ** tried, 30_000));
	}

	/** @param {Pending} p @param {State} state */
	#become(p, state) {
		p.state = state;
		this.#keep();
	}

	/** @param {Outcome} outcome */
	#end(outcome) {
		this.pending.delete(outcome.pending.id);
		this.#keep();
		this.onOutcome(outcome);
	}

	#keep() {
		remember(this.kind.kept, JSON.stringify([...this.pending.values()]));
		this.onChange();
	}
}
