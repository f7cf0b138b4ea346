// The account of a key: what a browser keeps of it, its log-in over the one connection and what is
// asked for in its name, what it has, and what is on its way. They are one file because together
// they pack better.
import { bodyOf, Refusal, request } from "./api.js";
import { BALANCE_DIGITS, FINER, parse } from "./format.js";
import { text } from "./text/en.js";

// What a browser keeps: API keys for the device and for a session, and texts. A secret is held as a
// key of WebCrypto that signs and that no script can read, so it cannot be taken out of the
// browser.
//
// A session is a log-in of all tabs. Its key is in the database under its id, which each of its
// tabs remembers. Each also holds a shared lock of that name: a session that no tab holds is over.

/** @typedef {{key: string, secret: CryptoKey}} Kept */

const NAME = "key"; // of the database, of its store, and of the entry of the device
const SESSION = "session"; // begins a session's id, which ends with the time when it began

/** importSecret makes a secret's text a key that signs. @param {string} secret */
export const importSecret = (secret) =>
	crypto.subtle.importKey("raw", new TextEncoder().encode(secret),
		{ name: "HMAC", hash: "SHA-256" }, false, ["sign"]);

/**
 * sign returns the signature of a message, in hexadecimal digits.
 * @param {CryptoKey} secret
 * @param {string} message
 */
async function sign(secret, message) {
	const bytes = await crypto.subtle.sign("HMAC", secret, new TextEncoder().encode(message));
	return [...new Uint8Array(bytes)].map((b) => b.toString(16).padStart(2, "0")).join("");
}

/**
 * done waits for a request to the database.
 * @template T
 * @param {IDBRequest<T>} request
 * @returns {Promise<T>}
 */
const done = (request) => new Promise((resolve, reject) => {
	request.onsuccess = () => resolve(request.result);
	request.onerror = () => reject(request.error);
});

/**
 * within runs one request on the store.
 * @template T
 * @param {IDBTransactionMode} mode
 * @param {(store: IDBObjectStore) => IDBRequest<T>} ask
 */
async function within(mode, ask) {
	const opening = indexedDB.open(NAME);
	opening.onupgradeneeded = () => opening.result.createObjectStore(NAME);
	const database = await done(opening);
	try {
		return await done(ask(database.transaction(NAME, mode).objectStore(NAME)));
	} finally {
		database.close();
	}
}

/** keep keeps a key for the next visits. @param {Kept} kept */
const keep = (kept) => within("readwrite", (store) => store.put(kept, NAME));

/** kept returns the key that is kept. @returns {Promise<Kept | undefined>} */
export const kept = () => within("readonly", (store) => store.get(NAME));

/** forget removes it. */
export const forget = () => remove(NAME);

/** all returns the names of all entries. @returns {Promise<string[]>} */
const all = () => within("readonly", (store) => /** @type {any} */ (store.getAllKeys()));

/** remove removes an entry, and the database with the last one. @param {string} name */
async function remove(name) {
	await within("readwrite", (store) => store.delete(name));
	if (!(await all()).length) await done(indexedDB.deleteDatabase(NAME));
}

let release = () => {}; // lets go of the lock of this tab's session

/**
 * hold takes part in a session.
 * @param {string} id
 * @param {() => void} onEnd called when another tab ends it
 */
async function hold(id, onEnd) {
	release();
	await new Promise((held) => {
		navigator.locks.request(id, { mode: "shared" }, () => new Promise((let_go) => {
			release = () => let_go(undefined);
			held(undefined);
		})).catch(onEnd);
	});
	remember(SESSION, id);
}

/**
 * begin begins a session with a key, and tells other tabs.
 * @param {Kept} kept
 * @param {() => void} onEnd
 */
async function begin(kept, onEnd) {
	const id = `${SESSION}-${Date.now()}-${crypto.randomUUID()}`;
	await hold(id, onEnd);
	await within("readwrite", (store) => store.put(kept, id));
	remember(SESSION, id, "localStorage");
}

/**
 * join takes part in the session that this tab has had, or in the newest one of another tab. It
 * returns its key; undefined: there is none. What no tab holds is removed.
 * @param {() => void} onEnd
 * @returns {Promise<Kept | undefined>}
 */
async function join(onEnd) {
	const mine = remembered(SESSION), there = await all();
	const held = new Set((await navigator.locks.query()).held?.map(({ name }) => name));
	const ids = there.filter((name) => name !== NAME && (name === mine || held.has(name)));
	for (const name of there) {
		if (name !== NAME && !ids.includes(name)) await remove(name);
	}
	const id = ids.includes(mine) ? mine : ids.at(-1);
	if (!there.length) await remove(""); // the look has made the database
	if (!id) return undefined;
	await hold(id, onEnd);
	return within("readonly", (store) => store.get(id));
}

/** end ends this tab's session. @param {boolean} isForAll its other tabs are told */
async function end(isForAll) {
	const id = remembered(SESSION);
	if (!id) return;
	release();
	remember(SESSION, "");
	await remove(id);
	if (isForAll) await navigator.locks.request(id, { steal: true }, () => {});
}

const PART = {
	key: /(?:^|[^a-z])(?:api[ _-]?)?key["'\s:=]+([\w.-]+)/i,
	secret: /secret["'\s:=]+([\w.-]+)/i,
};

/**
 * found returns key and secret of a text that names both, such as a file or what `exchange key
 * create` prints; undefined: it does not.
 * @param {string} text
 */
export function found(text) {
	const key = PART.key.exec(text)?.[1], secret = PART.secret.exec(text)?.[1];
	return key && secret ? { key, secret } : undefined;
}

/** @typedef {"sessionStorage" | "localStorage"} Place of this tab, or of all */

/**
 * remember keeps a text; "" forgets it.
 * @param {string} name
 * @param {string} is
 * @param {Place} place
 */
function remember(name, is, place = "sessionStorage") {
	try {
		if (is) globalThis[place].setItem(name, is);
		else globalThis[place].removeItem(name);
	} catch {
		// where a browser lets pages keep nothing, a reload forgets
	}
}

/** remembered returns what is kept; "": nothing. @param {string} name @param {Place} place */
function remembered(name, place = "sessionStorage") {
	try {
		return globalThis[place].getItem(name) ?? "";
	} catch {
		return "";
	}
}

/** @typedef {import("./stream.js").Stream} Stream */
/** @typedef {{status: number, body: any, retryAfter: number}} Answer */

/** What the tab remembers: see hasLeft, and the connection that was logged in. */
const LEFT = "left", SOCKET = "socket";

/** NONCE is where the tabs of one key share the newest nonce. */
const NONCE = "nonce";

/** hasLeft reports whether the tab's user has logged out: then a kept key does not log in. */
const hasLeft = () => remembered(LEFT) !== "";

/** isReload reports whether this is the page of before. A copy of a tab is another one. */
const isReload = () =>
	/** @type {any} */ (performance.getEntriesByType("navigation")[0])?.type === "reload";

/** ANSWER is how long a request waits for its answer, in milliseconds. */
const ANSWER = 30_000;

export class Session {
	/**
	 * waiting: the connection is lost, or the log-in on its way.
	 * @type {"out" | "waiting" | "in"}
	 */
	state = "out";
	key = "";
	/** The account's name; a node of a program before tells none. */
	account = "";
	/** @type {string[]} */
	permissions = [];
	/** Why the last log-in has ended, in the exchange's words. @type {Refusal | undefined} */
	ended;
	/** The exchange has refused a nonce: another program uses the key, too. */
	isShared = false;
	onChange = () => {};
	/** @type {CryptoKey | undefined} */
	#secret;
	#nonce = 0n;
	#socket = isReload() ? remembered(SOCKET) : ""; // the connection that was logged in
	#timer = 0; // of the next try
	#round = 0; // of log-ins: an older one's answer does not count

	/** @param {Stream} stream */
	constructor(stream) {
		this.stream = stream;
		stream.on("login.end", ({ detail }) => this.#end(new Refusal(403, detail)));
	}

	/** The account's name, or before it is known what a log-in has. */
	get name() {
		return this.account || text.account;
	}

	/**
	 * take takes a key. Its nonces have nothing to do with those of another.
	 * @param {string} key
	 * @param {CryptoKey} secret
	 */
	#take(key, secret) {
		this.key = key;
		this.#secret = secret;
		this.#nonce = 0n;
	}

	/** may reports whether the key has a permission. @param {string} permission */
	may(permission) {
		return this.state !== "out" && this.permissions.includes(permission);
	}

	/**
	 * enter logs in. It throws a Refusal if the exchange refuses, and another error without an
	 * answer.
	 * @param {string} key
	 * @param {CryptoKey} secret
	 */
	async enter(key, secret) {
		this.#take(key, secret);
		this.ended = undefined;
		this.isShared = false;
		try {
			await this.#logIn();
		} catch (failed) {
			this.#drop();
			this.#end(undefined);
			throw failed;
		}
		remember(LEFT, "");
		await this.#begin();
	}

	/** begin has other tabs, and the next page of this one, log in with this key, too. */
	async #begin() {
		const { key } = this, secret = /** @type {CryptoKey} */ (this.#secret);
		await begin({ key, secret }, this.#leave).catch(() => {}); // where a browser keeps nothing
	}

	/** drop ends a log-in at the exchange of which the page does not know. */
	#drop() {
		this.stream.ask("logout").catch(() => {}); // without a connection there is none
	}

	/**
	 * resume logs in as soon as there is a connection.
	 * @param {string} key
	 * @param {CryptoKey} secret
	 */
	resume(key, secret) {
		this.#take(key, secret);
		this.state = "waiting";
		this.onChange();
		if (this.stream.state === "live") this.connected();
	}

	/** resumeKept logs in with the key of the session, or with the one kept on this device. */
	async resumeKept() {
		if (this.state !== "out") return;
		// where a browser lets pages keep nothing there is none
		const joined = await join(this.#leave).catch(() => undefined);
		const key = joined ?? (hasLeft() ? undefined : await kept().catch(() => undefined));
		if (!key || this.state !== "out") return;
		this.resume(key.key, key.secret);
		if (!joined) await this.#begin();
	}

	/** keep keeps the key on this device. */
	async keep() {
		if (this.#secret) await keep({ key: this.key, secret: this.#secret });
	}

	/** leave logs out, in all tabs. */
	leave() {
		end(true).catch(() => {});
		remember(NONCE, "", "localStorage");
		this.#leave();
	}

	#leave = () => {
		remember(LEFT, "1");
		this.#drop();
		this.#end(undefined);
	};

	/** connected logs in again after the connection was lost, as often as it takes. */
	async connected() {
		clearTimeout(this.#timer);
		if (this.state === "out") return;
		try {
			await this.#logIn();
		} catch (failed) {
			// the next connection logs in
			if (this.state !== "waiting" || this.stream.state !== "live") return;
			if (failed instanceof Refusal && [401, 403].includes(failed.status)) {
				return this.#end(failed);
			}
			this.#drop(); // its answer may have been lost
			this.#timer = setTimeout(() => this.connected(), LATER);
		}
	}

	lost() {
		if (this.state !== "in") return;
		this.state = "waiting";
		this.onChange();
	}

	async #logIn() {
		const round = ++this.#round;
		const secret = /** @type {CryptoKey} */ (this.#secret), { key } = this;
		const first = await this.stream.ask("challenge");
		if (round !== this.#round) return;
		if (!first.challenge) throw refusal(answerOf(first));
		const ends = this.#socket && this.#socket !== this.stream.id ? { ends: this.#socket } : {};
		const signature = await sign(secret, `login\n${key}\n${first.challenge}`);
		if (round !== this.#round) return;
		const answer = answerOf(await this.stream.ask("login", { key, sign: signature, ...ends }));
		if (round !== this.#round) return;
		if (answer.status !== 200) throw refusal(answer);
		this.#socket = this.stream.id;
		remember(SOCKET, this.#socket);
		this.permissions = answer.body.permissions;
		this.account = answer.body.account ?? "";
		this.state = "in";
		this.onChange();
	}

	/** @param {Refusal | undefined} why */
	#end(why) {
		if (!this.key) return;
		if (why) end(false).catch(() => {}); // other tabs are told by the exchange
		this.#round++;
		this.state = "out";
		this.ended = why;
		this.key = "";
		this.#secret = undefined;
		this.account = "";
		this.permissions = [];
		this.onChange();
	}

	/**
	 * command sends what REST has under the same name. It throws without an answer.
	 * @param {string} event
	 * @param {Record<string, unknown>} fields
	 */
	async command(event, fields) {
		return answerOf(await this.stream.ask(event, fields));
	}

	/**
	 * read asks for a list of the account's by REST. It throws a Refusal for an answer that is no
	 * success.
	 * @param {string} path
	 * @returns {Promise<any>}
	 */
	async read(path) {
		return bodyOf(await this.#inTurn(path, ""));
	}

	/**
	 * post sends a command by REST, for those that the socket does not have. It throws without an
	 * answer of the exchange. A command whose nonce was refused goes once more with another one.
	 * The refusal may be that of a repeat by the browser, so a command must do no harm twice.
	 * @param {string} path
	 * @param {Record<string, string>} fields
	 * @returns {Promise<Answer>}
	 */
	async post(path, fields) {
		const { status, body, retryAfter } = await this.#inTurn(path, Object.keys(fields).sort()
			.map((name) => `${name}=${encodeURIComponent(fields[name])}`).join("&"));
		if (status >= 500 && !body.detail) throw new Error("a proxy has answered");
		return { status, body, retryAfter };
	}

	/**
	 * inTurn sends a signed request behind all others of its key, those of other tabs included, so
	 * that nonces arrive in their order.
	 * @param {string} path
	 * @param {string} form
	 */
	#inTurn(path, form) {
		return navigator.locks.request(`${NONCE} ${this.key}`, () => this.#request(path, form));
	}

	/** next takes the next nonce of a key, above those of all tabs. @param {string} key */
	#next(key) {
		const [of, last] = remembered(NONCE, "localStorage").split(" ");
		const told = of === key && /^\d+$/.test(last) ? BigInt(last) : 0n;
		this.#nonce = [BigInt(Date.now()), told + 1n, this.#nonce + 1n].reduce((a, b) =>
			(a > b ? a : b));
		remember(NONCE, `${key} ${this.#nonce}`, "localStorage");
		return String(this.#nonce);
	}

	/**
	 * @param {string} path
	 * @param {string} form of a POST; "": it is a GET
	 * @returns {ReturnType<typeof request>}
	 */
	async #request(path, form, again = false) {
		if (!this.#secret) throw new Error("not logged in");
		const { key } = this;
		const answer = await request(path, { signal: AbortSignal.timeout(ANSWER),
			...form && { method: "POST", body: form },
			headers: { "Content-Type": "application/x-www-form-urlencoded", "X-KEY": key,
				"X-NONCE": this.#next(key), "X-SIGN": await sign(this.#secret, key + form) } });
		if (again || answer.body.code !== "nonce" || key !== this.key) return answer;
		this.isShared = true;
		this.onChange();
		this.#nonce = BigInt(answer.body.last ?? this.#nonce);
		return this.#request(path, form, true);
	}
}

/** @param {{status: string, body: any, retry_after?: string}} ack @returns {Answer} */
const answerOf = (ack) =>
	({ status: Number(ack.status), body: ack.body, retryAfter: Number(ack.retry_after ?? 0) });

/** @param {Answer} answer */
const refusal = ({ status, body }) => new Refusal(status, body?.detail ?? "", body);

// What an account has, held by the events of own: docs/stream.md has the rules.

/**
 * @typedef {{id: string, pair: string, type: "buy" | "sell", status: string, price: string,
 *   amount: string, amount_filled: string, amount_original: string, date: string,
 *   client_order_id?: string, order_type?: string, time_in_force?: string, expire_time?: string,
 *   post_only?: boolean | string, display_amount?: string, trigger_price?: string,
 *   price_asked?: string, trigger_when?: string, average_price?: string, cancel_reason?: string,
 *   self_trade?: "none" | "cancel_newest", triggered?: boolean, oco_trigger_price?: string, oco_price?: string}} Order
 * @typedef {{id: string, pair: string, my_side: "buy" | "sell", price: string, amount: string,
 *   timestamp: string, fee: string, fee_currency: string, order: string, maker: boolean,
 *   client_order_id?: string, maker_order?: string, maker_fee?: string}} Trade
 * @typedef {{currency: string, balance: string, reserve: string}} Balance
 * @typedef {{sequence: string, prev: string | null, snapshot?: boolean, part?: string,
 *   parts?: string, orders?: Order[], trades?: Trade[], balances?: Balance[],
 *   orders_complete?: boolean, cause?: string, cancel_reason?: string}} Event
 */

/** The side of the orders that one meets. */
export const OTHER = /** @type {const} */ ({ buy: "sell", sell: "buy" });

/**
 * legsOf returns trades as the account's orders had them: one with itself is there for both.
 * @param {Trade[]} trades
 */
export const legsOf = (trades) => trades.flatMap((t) => (t.maker_order ? [t, { ...t, maker: true,
	order: t.maker_order, my_side: OTHER[t.my_side], fee: t.maker_fee ?? "",
	fee_currency: t.pair.split("_").find((code) => code !== t.fee_currency) ?? "",
	client_order_id: "" }] : t));

/** LATER is the pause before what was put off is tried again, in milliseconds. */
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

	/** @param {Session} session */
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

// Orders, changes of them, or withdrawals, on their way: each has a name before its first try, and
// is kept until its outcome is known.

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
 * exchange has given to a name, or whatever else tells that it has taken what was sent, or an answer
 * that tells that it never will.
 * @typedef {{kept: string, name: string, beside?: number[],
 *   send: (session: Session, fields: Record<string, string>) => Promise<Answer>,
 *   find: (session: Session, name: string, fields: Record<string, string>, tried: number) =>
 *     Promise<string | Answer | undefined>}} Kind
 */

/** SURE is how many looks for an order it takes until nothing of its connection is on its way. */
const SURE = 5;

/**
 * An order that is not seen after half a minute is amended to what it is. That waits for one that is
 * on its way, changes nothing, and tells for certain if there is none.
 * @type {Kind}
 */
const ORDERS = { kept: "orders", name: "client_order_id",
	send: (session, fields) => session.command("order", fields),
	find: async (session, name, { amount = "1" }, tried) => {
		const seen = async () => (await session.read(`/api/v1/orders/own/?client_order_id=${name}`))[0]?.id;
		const id = await seen();
		if (id || tried < SURE) return id;
		const answer = await session.command("order-amend", { client_order_id: name, amount });
		// it may have come, and ended, between the two
		if (/found/.test(answer.body.client_order_id)) return await seen() ?? answer;
	} };

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

	/**
	 * again sends an order under its name, which the exchange takes once. It looks for it first if a
	 * try had no answer. @param {Pending} p
	 */
	async again(p) {
		if (this.session.state !== "in" || this.#leaving.has(p.id)) return;
		this.#become(p, "sending");
		let answer;
		try {
			if (p.wasLost && await this.#look(p, 0)) return;
			answer = await this.kind.send(this.session, { ...p.fields, [this.kind.name]: p.id });
		} catch {
			if (this.pending.has(p.id)) this.#lose(p);
			return;
		}
		if (!this.pending.has(p.id)) return; // the account's events were faster
		const { status, body } = answer;
		const taken = /by (?:order|withdraw) (\d+)/.exec(body?.[this.kind.name]?.[0] ?? "");
		if (taken) return this.#end({ pending: p, order: taken[1] });
		if (p.wasLost && (this.kind.beside ?? BESIDE).includes(status)
			&& body?.code !== "outcome_unknown") {
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
					if (await this.#look(p, tried)) return;
					if (p.state === "unknown") this.#become(p, "unseen");
				} catch {
					// asked again below
				}
			}
			this.#find(id, tried + 1);
		}, Math.min(500 * 2 ** tried, 30_000));
	}

	/**
	 * look asks once for an order by its name, and reports whether there is nothing more to ask.
	 * @param {Pending} p
	 * @param {number} tried
	 */
	async #look(p, tried) {
		const { state } = p, found = await this.kind.find(this.session, p.id, p.fields, tried);
		if (!this.pending.has(p.id) || p.state !== state) return true;
		if (found) this.#end({ pending: p, [/** @type {any} */ (found).at ? "order" : "answer"]: found });
		return !!found;
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
