// Words for answers that are no success.
import { parse, plain } from "./decimal.js";
import { text } from "./text/en.js";

/**
 * refused tells what is missing, or the market's refusal as it is.
 * @param {string} error
 * @param {import("./account.js").Account} account
 */
function refused(error, account) {
	const [, missing, currency] = /^Out of balance -?([\d.]+) (\w+)$/.exec(error) ?? [];
	if (!missing) return error;
	const free = account.free(currency);
	const needed = free + parse(missing.replace(/(\.\d{8})\d+$/, "$1"));
	return text.notEnough(currency, plain(free), plain(needed));
}

/**
 * wordsOf says why something was not done.
 * @param {import("./session.js").Answer} answer
 * @param {import("./account.js").Account} account
 */
export function wordsOf({ status, body, retryAfter }, account) {
	if (status === 400 && body.error) return refused(body.error, account);
	if (status === 400 && !body.detail) return Object.values(body).flat().join(" ");
	if (status === 401) return text.keyEnded;
	if (status === 429) return text.tooOften(String(retryAfter || ""));
	if (status === 503) return text.nothingDone(body.detail ?? "");
	return body.detail ?? text.noAnswer;
}
