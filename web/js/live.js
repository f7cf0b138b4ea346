// The account of the key that is logged in, held by its events over lost connections.
import { Account } from "./account.js";

/** LATER is the pause before a subscription that was put off is tried again, in milliseconds. */
const LATER = 1000;

export class Live {
	account = new Account();
	/**
	 * Called with each event that was applied.
	 * @type {(event: import("./account.js").Event) => void}
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

	/** @param {import("./account.js").Event} event */
	#apply(event) {
		if (this.session.state === "out") return;
		if (this.account.apply(event)) this.onEvent(event);
		else this.#subscribe();
	}
}
