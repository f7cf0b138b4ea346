// Numbers and times as the reader's locale writes them.
import { DIGITS, parse, split } from "./decimal.js";

export const whole = new Intl.NumberFormat();
/** The sign before decimals. */
export const sign = new Intl.NumberFormat(undefined, { minimumFractionDigits: 1 }).formatToParts(0.1)
	.find((part) => part.type === "decimal")?.value ?? ".";

/**
 * decimal writes units of 1e-8 with separators and so many digits, rounded down.
 * @param {bigint} units
 * @param {number} digits
 */
export function decimal(units, digits) {
	const [before, after] = split(units, digits);
	const minus = units < 0n ? "-" : "";
	return minus + (before < 1000n ? before.toString() : whole.format(before)) + (after && sign + after);
}

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

/**
 * typed returns the units of what a reader has typed: digits, with the sign of the locale or a point
 * before the decimals. Separators are refused, never guessed: null.
 * @param {string} text
 */
export function typed(text) {
	const plain = text.trim().replace(sign, ".").replace(/^\./, "0.").replace(/\.$/, "");
	const isDecimal = /^\d{1,18}(\.\d+)?$/.test(plain);
	return isDecimal && (plain.split(".")[1] ?? "").length <= DIGITS ? parse(plain) : null;
}

/** price writes a number of a picture with fixed digits. @param {number} n @param {number} digits */
export const fixed = (n, digits) =>
	n.toLocaleString(undefined, { minimumFractionDigits: digits, maximumFractionDigits: digits });

/** percent writes a share with its sign. @param {number} n */
export const percent = (n) =>
	n.toLocaleString(undefined, { style: "percent", signDisplay: "exceptZero", minimumFractionDigits: 2, maximumFractionDigits: 2 });

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const minute = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
export const date = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const month = new Intl.DateTimeFormat(undefined, { month: "short", year: "numeric" });

/** The name of the reader's time zone. */
export const zone = clock.resolvedOptions().timeZone;

/** time writes the time of a day. @param {number} seconds since 1970 */
export const time = (seconds) => clock.format(seconds * 1000);

/** moment writes date and minute; a whole day has no minute. @param {number} seconds @param {boolean} whole */
export function moment(seconds, whole) {
	const at = new Date(seconds * 1000);
	return whole ? new Date(at.getTime()).toLocaleDateString(undefined, { dateStyle: "medium", timeZone: "UTC" })
		: `${date.format(at)} ${minute.format(at)}`;
}

/**
 * tick writes a mark of the time axis. The kinds are those of lightweight-charts: year, month, day,
 * time, time with seconds.
 * @param {number} seconds
 * @param {number} kind
 */
export function tick(seconds, kind) {
	const at = seconds * 1000;
	if (kind === 0) return String(new Date(at).getFullYear());
	return (kind === 1 ? month : kind === 2 ? day : minute).format(at);
}
