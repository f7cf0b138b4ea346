// Times with date and second, as the reader's locale writes them.
import { date, time, zone } from "../format.js";
import { text } from "../text/en.js";

/** atTime is the title of instants. */
export const atTime = `${text.time} (${zone})`;

/** instant writes date and time. @param {number} seconds since 1970 */
export const instant = (seconds) => `${date.format(seconds * 1000)} ${time(seconds)}`;
