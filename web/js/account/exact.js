// Numbers with all their digits, and times with date and second, as the reader's locale writes them.
import { date, sign, time, whole } from "../format.js";

/**
 * exactly writes a decimal's text with separators, and with all its digits. What is no decimal stays
 * as it is.
 * @param {string} text
 */
export function exactly(text) {
	const parts = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text);
	if (!parts) return text;
	const [, minus, before, after] = parts;
	return minus + whole.format(BigInt(before)) + (after ? sign + after : "");
}

/** instant writes date and time. @param {number} seconds since 1970 */
export const instant = (seconds) => `${date.format(seconds * 1000)} ${time(seconds)}`;
