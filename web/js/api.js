// Requests to the API. Numbers come as text, so no digit is lost.
import { parse } from "./format.js";

/**
 * @typedef {{name: string, base: string, quote: string, priceDigits: number, amountDigits: number,
 *   tick: bigint, step: bigint, collar: bigint, stopCollar: bigint, band: bigint}} Pair
 * @typedef {{per_second: string, burst: string} | null} Rate
 */
/**
 * away: seconds by which this device's clock is ahead. demo: keys that everybody may know; none:
 * this is no demo.
 * @typedef {{pairs: Map<string, Pair>, halted: string[], maintenance: {message: string,
 *   cancels?: boolean} | null,
 *   demo: import("./words.js").DemoKey[], away: number, rates: Record<string, Rate>}} Info
 */

/** A Refusal is an answer that is no success. */
export class Refusal extends Error {
	/** @param {number} status @param {string} detail @param {any} [body] */
	constructor(status, detail, body = {}) {
		super(detail);
		this.status = status;
		this.body = body;
	}
}

/** AGAIN is the pause before a read that failed is tried again, in milliseconds. */
export const AGAIN = 1000;

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/**
 * exact parses JSON, with each number as the text that stands there.
 * @param {string} json
 * @returns {any}
 */
export const exact = (json) =>
	JSON.parse(json.replace(TOKEN, (token) => (token[0] === '"' ? token : `"${token}"`)));

/**
 * request sends a request, and returns the answer to it, whatever its status. It throws what fetch
 * throws without an answer. No cache answers: one would, however old, after Back and Forward.
 * @param {string} path
 * @param {RequestInit} init
 */
export async function request(path, init) {
	const response = await fetch(path, { cache: "no-store", ...init });
	const text = await response.text();
	let body;
	try {
		body = exact(text);
	} catch (broken) {
		if (response.ok) throw broken;
		body = {}; // a proxy's own page
	}
	return { status: response.status, body, words: response.statusText,
		retryAfter: Number(response.headers.get("Retry-After") ?? 0) };
}

/**
 * bodyOf returns the body of a success. It throws a Refusal for any other answer.
 * @param {Awaited<ReturnType<typeof request>>} answer
 */
export function bodyOf({ status, body, words }) {
	if (status < 300) return body;
	throw new Refusal(status, body.detail ?? words, body);
}

/**
 * get asks for what is public. It throws as request and bodyOf do.
 * @param {string} path
 * @param {AbortSignal} [signal]
 */
export const get = async (path, signal) => bodyOf(await request(path, { signal }));

/** isCurrent reports whether the files that this page runs are those of the exchange's pages now. */
export async function isCurrent() {
	const { status } = await fetch(import.meta.url, { method: "HEAD", cache: "no-store" });
	return status !== 404;
}

/** START is the pause before an exchange that does not answer is asked again, in milliseconds. */
const START = 500;

/**
 * ask asks for all that a page should know first. It throws as get does.
 * @returns {Promise<Info>}
 */
export async function ask() {
	const before = Date.now();
	const info = await get("/api/v1/exchange-info/");
	const away = Math.round((Date.now() + before) / 2000 - Number(info.time));
	/** @type {Info["pairs"]} */
	const pairs = new Map(), halted = [];
	for (const p of info.pairs) {
		pairs.set(p.name, { name: p.name, base: p.currency1, quote: p.currency2,
			priceDigits: Number(p.price_precision), amountDigits: Number(p.amount_precision),
			tick: parse(p.price_tick), step: parse(p.amount_step), collar: parse(p.market_collar),
			stopCollar: parse(p.stop_collar), band: parse(p.price_band) });
		if (p.status === "halted") halted.push(p.name);
	}
	return { pairs, halted, maintenance: info.maintenance, demo: info.demo ?? [], away,
		rates: info.limits.rates };
}

/**
 * load asks again and again until the exchange answers.
 * @param {import("./stream.js").Stream} stream whose state tells of an exchange that starts
 * @param {() => void} tell called when there was no answer
 * @returns {Promise<Info>}
 */
export async function load(stream, tell) {
	for (;;) {
		try {
			return await ask();
		} catch (failed) {
			if (failed instanceof Refusal && failed.status === 503) stream.state = "starting";
			tell();
			await new Promise((again) => setTimeout(again, START));
		}
	}
}
