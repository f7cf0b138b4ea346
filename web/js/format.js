// Exact decimals: integers of 1e-8, as the exchange counts, while balances and fees count in 1e-16.
// And numbers and times as the reader's locale writes them. They are one file because they pack
// better so.
export const DIGITS = 8;
export const BALANCE_DIGITS = 16;
export const ONE = 10n ** BigInt(DIGITS);
/** FINER is how many units of a balance one of an amount has. */
export const FINER = 10n ** BigInt(BALANCE_DIGITS - DIGITS);
const FORM = /^(-?)(\d+)(?:\.(\d+))?$/;

/**
 * parse returns a decimal's text as units of 1e-8, or of another power of ten. It throws a
 * RangeError for anything else, and for a text with more digits than a unit has.
 * @param {string} text
 * @param {number} [digits]
 * @returns {bigint}
 */
export function parse(text, digits = DIGITS) {
	const parts = FORM.exec(text);
	if (!parts) throw new RangeError(`not a decimal: ${text}`);
	const fraction = (parts[3] ?? "").replace(/0+$/, "");
	if (fraction.length > digits) throw new RangeError(`more than ${digits} decimals: ${text}`);
	const units = BigInt(parts[2] + fraction.padEnd(digits, "0"));
	return parts[1] ? -units : units;
}

/**
 * fromNumber returns the units of a number of the stream. Its shortest text is that of the
 * exchange, if it has 15 digits at most; with more of them it is the nearest that a number can be.
 * @param {number} n
 */
export const fromNumber = (n) => {
	const shortest = String(n); // such as 1e-8, and 0.30000000000000004 of a sum
	return parse(/^-?\d+(\.\d{1,8})?$/.test(shortest) ? shortest : n.toFixed(DIGITS));
};

/**
 * plain returns the shortest text of a decimal, as the exchange writes it.
 * @param {bigint} units
 * @param {number} [digits] of a unit
 */
export function plain(units, digits = DIGITS) {
	const size = (units < 0n ? -units : units).toString().padStart(digits + 1, "0");
	const rest = size.slice(-digits).replace(/0+$/, "");
	return `${units < 0n ? "-" : ""}${size.slice(0, -digits)}${rest && "."}${rest}`;
}

/** number returns the nearest number, for pictures. @param {bigint} units */
export const number = (units) => Number(units) / 1e8;

export const whole = new Intl.NumberFormat();

/**
 * reader returns how a locale writes numbers: the sign before decimals, and what reads them. A
 * separator counts if it can be nothing else: "1,234" is two numbers, because commas are decimal
 * signs elsewhere.
 * @param {string} [locale] without one: the reader's own
 */
export function reader(locale) {
	const writer = new Intl.NumberFormat(locale), parts = writer.formatToParts(1234567.8);
	/** @param {string} type */
	const of = (type) => same(parts.find((part) => part.type === type)?.value ?? "");
	const sign = of("decimal") || ".", group = of("group") || " ";
	const digits = [...new Intl.NumberFormat(locale, { useGrouping: false }).format(9876543210)];
	/** @param {string} text @returns {{n: bigint | null, two?: [bigint, bigint]}} */
	const read = (text) => {
		const is = [...same(text.trim())].map((c) => (digits.includes(c)
			? String(9 - digits.indexOf(c)) : c)).join("");
		const [before, after = "", more] = is.split(sign);
		const bare = before.replaceAll(group, "");
		const isGrouped = bare !== before && more === undefined && (/^[1-9]\d{0,2}$/.test(
			before.split(group)[0]) && before.split(group).slice(1).every((g) => /^\d{3}$/.test(g))
			|| /^\d{1,18}$/.test(bare) && same(writer.format(BigInt(bare))) === before);
		const grouped = isGrouped ? exact(`${bare}.${after}`) : null;
		const pointed = exact(is.replace(sign, "."));
		if (grouped === null) return { n: pointed };
		const other = exact(is.replace(",", "."));
		return other === null ? { n: grouped } : { n: null, two: [grouped, other] };
	};
	return { sign, read };
}

/** same writes signs of one meaning as one. @param {string} text */
const same = (text) => text.replace(/\s/g, " ").replaceAll("’", "'");

/** exact returns the units of digits around a point; null: they are none. @param {string} text */
function exact(text) {
	const is = text.replace(/^\./, "0.").replace(/\.$/, "");
	return /^\d{1,18}(\.\d{1,8})?$/.test(is) ? parse(is) : null;
}

export const { sign, read } = reader();

/**
 * typed returns the units of what a reader has typed; null: it is no number, or could be two.
 * @param {string} text
 */
export const typed = (text) => read(text).n;

/** editable writes units as a field has them. @param {bigint} units */
export const editable = (units) => plain(units).replace(".", sign);

/**
 * decimal writes units of 1e-8 with separators and so many digits, rounded towards zero.
 * @param {bigint} units
 * @param {number} digits
 */
export function decimal(units, digits) {
	const size = units < 0n ? -units : units, before = size / ONE;
	const after = String(size % ONE).padStart(DIGITS, "0").slice(0, digits);
	return (units < 0n ? "-" : "") + (before < 1000n ? before : whole.format(before)) + (after && sign + after);
}

/**
 * exactly writes a decimal's text with separators, and with all its digits. What is no decimal
 * stays as it is.
 * @param {string} text
 */
export function exactly(text) {
	const parts = FORM.exec(text);
	if (!parts) return text;
	const [, minus, before, after] = parts;
	return minus + whole.format(BigInt(before)) + (after ? sign + after : "");
}

/** padded is exactly with two decimals at least. @param {string} text */
export const padded = (text) => exactly(
	text.replace(/^-?\d+$/, "$&.0").replace(/\.\d$/, "$&0"));

/** shortest writes units as padded does. @param {bigint} units */
export const shortest = (units) => padded(plain(units));

/** price writes a number of a picture with fixed digits. @param {number} n @param {number} digits */
export const fixed = (n, digits) =>
	n.toLocaleString(undefined, { minimumFractionDigits: digits, maximumFractionDigits: digits });

/** pairOf writes the names of pairs within a text as readers know them. @param {string} text */
export const pairOf = (text) => text.replace(/\b([A-Z\d]+)_([A-Z\d]+)\b/g, "$1/$2");

/** percent writes a share with its sign. @param {number} n */
export const percent = (n) =>
	n.toLocaleString(undefined, { style: "percent", signDisplay: "exceptZero", minimumFractionDigits: 2, maximumFractionDigits: 2 });

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const minute = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
export const date = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const month = new Intl.DateTimeFormat(undefined, { month: "short", year: "numeric" });

const offsets = new Intl.DateTimeFormat("en", { timeZoneName: "shortOffset" });

/** offset names the reader's time zone by its distance from UTC, as it is at a time. */
export const offset = (at = Date.now()) => offsets.format(at).replace(/.*GMT(\+0$)?/, "UTC");

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
