// Exact decimals: integers of 1e-8, as the exchange counts. Balances and fees count in 1e-16.

export const DIGITS = 8;
export const BALANCE_DIGITS = 16;
export const ONE = 10n ** BigInt(DIGITS);
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
 * fromNumber returns the units of a number of the stream. Its shortest text is that of the exchange,
 * if it has 15 digits at most; with more of them it is the nearest that a number can be.
 * @param {number} n
 */
export const fromNumber = (n) => {
	const shortest = String(n); // such as 1e-8, and 0.30000000000000004 of a sum
	return parse(/^-?\d+(\.\d{1,8})?$/.test(shortest) ? shortest : n.toFixed(DIGITS));
};

/**
 * split returns a decimal's whole part, and its fraction with so many digits, rounded down towards
 * zero.
 * @param {bigint} units
 * @param {number} digits
 * @returns {[bigint, string]}
 */
export function split(units, digits) {
	const size = units < 0n ? -units : units;
	return [size / ONE, (size % ONE).toString().padStart(DIGITS, "0").slice(0, digits)];
}

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
