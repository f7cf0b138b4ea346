// The log-in with one key, over the one connection, and what is asked for in its name.
import { bodyOf, Refusal, request } from "./api.js";
import { begin, end, join, keep, kept, remember, remembered, sign } from "./keys.js";
import { text } from "./text/en.js";

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

/** LATER is the pause before a log-in that was put off is tried again, in milliseconds. */
const LATER = 1000;

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
