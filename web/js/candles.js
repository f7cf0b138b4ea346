// Rows of candles without a gap: a period without trades has none, and is shown flat.

/** @typedef {{time: number, open: number, high: number, low: number, close: number, volume: number}} Candle */

/** A gap of more periods than that stays a gap, because filling it would fill memory. */
const WIDEST = 2000;

/** length returns the seconds of a timeframe. @param {string | number} frame */
export const length = (frame) => (frame === "D" ? 86400 : Number(frame) * 60);

/**
 * append adds a candle behind others, or puts it in the place of the last one. It returns the first
 * place that has changed; -1: the candle is older, and nothing has.
 * @param {Candle[]} candles
 * @param {Candle} next
 * @param {string | number} frame
 */
export function append(candles, next, frame) {
	const last = candles.at(-1);
	if (last && next.time < last.time) return -1;
	if (last?.time === next.time) candles.pop();
	const from = candles.length;
	if (last && next.time > last.time) {
		const step = length(frame), { close } = last;
		if ((next.time - last.time) / step <= WIDEST) {
			for (let time = last.time + step; time < next.time; time += step) {
				candles.push({ time, open: close, high: close, low: close, close, volume: 0 });
			}
		}
	}
	candles.push(next);
	return from;
}

/**
 * filled returns a row with its gaps filled.
 * @param {Candle[]} candles oldest first
 * @param {string | number} frame
 */
export function filled(candles, frame) {
	/** @type {Candle[]} */
	const row = [];
	for (const c of candles) append(row, c, frame);
	return row;
}
