// Tables as CSV, for programs and for spreadsheets.

/** What a spreadsheet would take for a formula. A number is none, whatever its sign. */
const FORMULA = /^[=+\-@\t\r]/, NUMBER = /^-?\d+(\.\d+)?$/;

/** cell writes one cell. What would be a formula gets an apostrophe. @param {string} text */
export function cell(text) {
	const safe = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
	return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** csv writes a table, with its titles first. @param {string[][]} table */
export const csv = (table) => table.map((row) => `${row.map(cell).join(",")}\r\n`).join("");

/** utc writes seconds since 1970 as a time, with microseconds. @param {string} seconds */
export function utc(seconds) {
	const [whole, fraction = ""] = seconds.split(".");
	const time = new Date(Number(whole) * 1000).toISOString().slice(0, -".000Z".length);
	return `${time}.${fraction.padEnd(6, "0").slice(0, 6)}Z`;
}

/** save gives a text to the reader as a file. @param {string} name @param {string} text */
export function save(name, text) {
	const link = document.createElement("a");
	link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
	link.download = name;
	link.click();
	URL.revokeObjectURL(link.href);
}
