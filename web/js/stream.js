// The one connection to the event stream, and what it is like.
import { io } from "../vendor/socket.io-client/socket.io.esm.min.js";
import { get, Refusal } from "./api.js";

/** @typedef {"connecting" | "live" | "reconnecting" | "starting"} State */

export class Stream {
	/** @type {State} */
	state = "connecting";
	/** Called when the state has changed, and when a lost connection is back. */
	onState = () => {};
	#channels = new Set();
	#was = false; // connected before
	#socket;

	constructor() {
		this.#socket = io({ path: "/socket.v2/", transports: ["websocket", "polling"], tryAllTransports: true,
			reconnectionDelay: 200, reconnectionDelayMax: 2000, timeout: 10000, autoConnect: false });
		this.#socket.on("connect", () => {
			if (this.#channels.size) this.#socket.emit("subscribe", ...this.#channels);
			this.#was = true;
			this.#become("live");
		});
		this.#socket.on("disconnect", (reason) => {
			this.#become("reconnecting");
			// the client does not come back by itself from an end that the server chose
			if (reason === "io server disconnect") this.#socket.connect();
		});
		this.#socket.on("connect_error", () => this.#ask());
	}

	open() {
		this.#socket.connect();
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

	/** ask finds out why there is no connection: an exchange that starts says so. */
	async #ask() {
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
