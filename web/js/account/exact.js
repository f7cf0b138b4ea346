// Times with date and second, as the reader's locale writes them.
import { date, time } from "../format.js";

/** instant writes date and time. @param {number} seconds since 1970 */
export const instant = (seconds) => `${date.format(seconds * 1000)} ${time(seconds)}`;
