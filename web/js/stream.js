// The one connection to the event stream, and what a page says of it.
import { html, render } from "../vendor/lit-html/lit-html.js";
import { io } from "../vendor/socket.io-client/socket.io.esm.min.js";
import { exact, get, isCurrent, Refusal } from "./api.js";
import { pairOf } from "./format.js";
import { text } from "./text/en.js";

/** @typedef {"connecting" | "live" | "reconnecting" | "starting"} State */

/** ANSWER is how long a command waits for its answer, in milliseconds. */
const ANSWER = 15_000;

/**
 * After how many seconds without a word the exchange is asked for one, and after how many the
 * connection counts as lost: it would take the exchange's own pings 45 to find out.
 */
const ASKED = 2, SILENT = 5;

/**
 * LATE is by how many seconds events come later than the fastest of their connection when the page
 * is too slow.
 */
const LATE = 3;

/** NO_WORD is a browser's code for a websocket that has ended without one. */
const NO_WORD = 1006;

const PACKET = /^(\d)(?:\/[^,]*,)?(\d*)(.*)$/s;

/**
 * The packets of Socket.IO, of which the exchange uses those of text alone. What belongs to an
 * account, answers and the event own, has its numbers as text. All else is read by JSON.parse.
 */
const parser = {
	Encoder: class {
		/** @param {{type: number, id?: number, data?: unknown}} packet */
		encode(packet) {
			const data = packet.data === undefined ? "" : JSON.stringify(packet.data);
			return [`${packet.type}${packet.id ?? ""}${data}`];
		}
	},
	Decoder: class {
		/** @type {(packet: unknown) => void} */
		#take = () => {};
		/** @param {string} text */
		add(text) {
			const [, type, id, json] = PACKET.exec(text) ?? [];
			if (type === undefined) throw new Error("not a packet of Socket.IO");
			const read = id !== "" || json.startsWith('["own"') ? exact : JSON.parse;
			this.#take({ type: Number(type), nsp: "/", id: id === "" ? undefined : Number(id),
				data: json === "" ? undefined : read(json) });
		}
		/** @param {string} _ @param {(packet: unknown) => void} take */
		on(_, take) {
			this.#take = take;
		}
		off() {
			this.#take = () => {};
		}
		destroy() {}
	},
};

export class Stream {
	/** @type {State} */
	state = "connecting";
	/** Called when the state has changed, and when a lost connection is back. */
	onState = () => {};
	/** Called when the connection was lost because this page has read too slowly. */
	onSlow = () => {};
	#fastest = Infinity; // seconds from an event to its arrival, by a clock with any beginning
	#late = 0; // seconds by which the newest event was later than that
	#channels = new Set();
	#was = false; // connected before
	#socket;

	constructor() {
		// the browser may have kept the page as it was, for Back and Forward
		addEventListener("pageshow", ({ persisted }) => persisted && location.reload());
		this.#socket = io({ path: "/socket.v2/", transports: ["websocket", "polling"],
			tryAllTransports: true, reconnectionDelay: 200, reconnectionDelayMax: 2000,
			timeout: 10000, autoConnect: false, parser });
		this.#socket.on("connect", () => {
			this.#fastest = Infinity;
			this.#late = 0;
			if (this.#channels.size) this.#socket.emit("subscribe", ...this.#channels);
			this.#was = true;
			this.#become("live");
		});
		this.#socket.on("disconnect", (reason, lost) => {
			// the exchange resets the connection of a page that is too slow, without a word
			const { code = NO_WORD } = /** @type {any} */ (lost)?.context ?? {};
			if (this.#late > LATE && code === NO_WORD) this.onSlow();
			this.#become("reconnecting");
			// the client does not come back by itself from an end that the server chose
			if (reason.startsWith("io")) this.#socket.connect(); // nor from the page's own
		});
		let silent = 0; // seconds that the page has seen
		this.#socket.io.on("packet", () => (silent = 0));
		setInterval(() => {
			silent = document.hidden || !this.#socket.connected ? 1 : silent + 1;
			if (silent >= SILENT) this.#socket.disconnect();
			else if (silent >= ASKED) this.#socket.emit("unsubscribe", () => {}); // from nothing
		}, 1000);
		this.#socket.on("connect_error", () => this.#find());
	}

	open() {
		this.#socket.connect();
	}

	/** came measures how late an event comes. @param {number} timestamp of the event */
	came(timestamp) {
		const took = performance.now() / 1000 - timestamp;
		this.#fastest = Math.min(this.#fastest, took);
		this.#late = took - this.#fastest;
	}

	/**
	 * on hears an event of any channel.
	 * @param {string} event
	 * @param {(event: any) => void} listener
	 */
	on(event, listener) {
		this.#socket.on(event, listener);
	}

	/** subscribe adds channels, or asks for their state anew. @param {string[]} names */
	subscribe(...names) {
		for (const name of names) this.#channels.add(name);
		if (this.#socket.connected) this.#socket.emit("subscribe", ...names);
	}

	/** @param {string[]} names */
	unsubscribe(...names) {
		for (const name of names) this.#channels.delete(name);
		if (this.#socket.connected) this.#socket.emit("unsubscribe", ...names);
	}

	/** The connection's name at the exchange; "" without one. */
	get id() {
		return this.#socket.id ?? "";
	}

	/**
	 * ask sends what wants an answer. It throws when that does not come: the connection is lost, or
	 * it takes too long.
	 * @param {string} event
	 * @param {unknown[]} fields
	 * @returns {Promise<any>}
	 */
	async ask(event, ...fields) {
		if (!this.#socket.connected) throw new Error("there is no connection");
		return this.#socket.timeout(ANSWER).emitWithAck(event, ...fields);
	}

	/** find finds out why there is no connection: an exchange that starts says so. */
	async #find() {
		/** @type {State} */
		let state = this.#was ? "reconnecting" : "connecting";
		try {
			await get("/api/v1/time/");
		} catch (refused) {
			if (refused instanceof Refusal && refused.status === 503) state = "starting";
		}
		if (!this.#socket.connected) this.#become(state);
	}

	/** @param {State} state */
	#become(state) {
		if (this.state === state) return;
		this.state = state;
		this.onState();
	}
}

/** stateLine is the word in the header. @param {keyof typeof text.states} state */
export const stateLine = (state) => html`<p class="state" data-is=${state} role="status"
	><span aria-hidden="true" class="dot"></span>${text.states[state]}</p>`;

/** What the exchange and the connection are like, for a word in the header and a notice. */
export class Status {
	/** Names of pairs. @type {Set<string>} */
	halted = new Set();
	/** @type {import("./api.js").Info["maintenance"]} */
	maintenance = null;
	/** Seconds by which this device's clock is ahead. */
	away = 0;
	/** Called when any of it has changed. */
	onChange = () => {};
	/** The exchange has closed the connection of this page, which was too slow. */
	isSlow = false;
	#wasLive = false;
	#isOld = false; // the exchange has newer pages

	/** @param {Stream} stream @param {HTMLElement} notice */
	constructor(stream, notice) {
		this.stream = stream;
		this.notice = notice;
		stream.on("status", (event) => {
			if (event.snapshot) this.halted = new Set(event.halted);
			else if (event.pair) {
				this.halted[event.status === "halted" ? "add" : "delete"](event.pair);
			}
			if ("maintenance" in event) this.maintenance = event.maintenance;
			this.onChange();
		});
	}

	/** @param {import("./api.js").Info} info */
	learn({ halted, maintenance, away }) {
		this.halted = new Set(halted);
		this.maintenance = maintenance;
		this.away = away;
	}

	/** connected asks for newer pages, which the exchange may have after a lost connection. */
	connected() {
		if (this.#wasLive) isCurrent().then((current) => {
			this.#isOld = !current;
			this.onChange();
		}, () => {});
		this.#wasLive = true;
	}

	/**
	 * tell shows the state, and returns it.
	 * @param {string} pair "": of no pair
	 * @param {boolean} isFull the page shows something that can become old
	 */
	tell(pair, isFull) {
		const { state } = this.stream;
		const shown = state !== "live" ? state : this.maintenance ? "maintenance"
			: this.halted.has(pair) ? "halted" : "live";
		document.body.dataset.state = shown;
		document.body.classList.toggle("stale",
			state === "reconnecting" || state === "starting" && isFull);
		const words = this.isSlow && ["live", "reconnecting"].includes(shown) ? text.tooSlow
			: shown === "reconnecting" ? text.reconnecting
			: shown === "starting" ? text.starting
			: shown === "maintenance" && this.maintenance ? text.maintenance(this.maintenance)
			: shown === "halted" ? text.halted(pairOf(pair))
			: this.#isOld ? text.newVersion
			: Math.abs(this.away) >= 2 ? text.clock(this.away) : "";
		this.notice.hidden = words === "";
		render(html`${words}${this.#isOld && shown === "live" ? html` <button
			@click=${() => location.reload()}>${text.reload}</button>` : ""}`, this.notice);
		return shown;
	}
}
