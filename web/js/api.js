// Requests to the API. Numbers come as text, so no digit is lost.

/** A Refusal is an answer that is no success. */
export class Refusal extends Error {
	/** @param {number} status @param {string} detail */
	constructor(status, detail) {
		super(detail);
		this.status = status;
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
 * get asks for what is public. It throws a Refusal for an answer that is no success, and what fetch
 * throws without an answer.
 * @param {string} path
 * @param {AbortSignal} [signal]
 */
export async function get(path, signal) {
	const response = await fetch(path, { signal });
	const body = await response.text();
	if (response.ok) return exact(body);
	let detail = response.statusText;
	try {
		detail = JSON.parse(body).detail;
	} catch {
		// a proxy's own page
	}
	throw new Refusal(response.status, detail);
}

/** isCurrent reports whether the exchange still has the files that this page runs. */
export async function isCurrent() {
	const response = await fetch(import.meta.url, { method: "HEAD", cache: "no-store" });
	return response.status !== 404;
}
