// Times with date and second, as the reader's locale writes them.
import { date, offset, time } from "../format.js";
import { text } from "../text/en.js";

/** atTime is the title of instants. */
export const atTime = `${text.time} (${offset()})`;

/**
 * instant writes date and time, with its zone where that was another one then.
 * @param {number} seconds since 1970
 */
export function instant(seconds) {
	const then = offset(seconds * 1000);
	return `${date.format(seconds * 1000)} ${time(seconds)}${then === offset() ? "" : ` ${then}`}`;
}
