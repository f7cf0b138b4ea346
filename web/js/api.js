// Requests to the API. Numbers come as text, so no digit is lost.

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
 * get asks for what is public, or with a signature among the headers for what is an account's. It
 * throws a Refusal for an answer that is no success, and what fetch throws without an answer.
 * @param {string} path
 * @param {AbortSignal} [signal]
 * @param {Record<string, string>} [headers]
 */
export async function get(path, signal, headers) {
	const response = await fetch(path, { signal, headers });
	const text = await response.text();
	if (response.ok) return exact(text);
	let body;
	try {
		body = exact(text);
	} catch {
		// a proxy's own page
	}
	throw new Refusal(response.status, body?.detail ?? response.statusText, body);
}

/** isCurrent reports whether the exchange still has the files that this page runs. */
export async function isCurrent() {
	const response = await fetch(import.meta.url, { method: "HEAD", cache: "no-store" });
	return response.status !== 404;
}
