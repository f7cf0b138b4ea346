// A local order book by the channel depth, of which docs/stream.md has the rules; and rows of
// candles without a gap: a period without trades has none, and is shown flat. They are one file
// because they pack better so.
import { fromNumber, ONE, parse } from "./format.js";

/**
 * @typedef {{price: bigint, amount: bigint, text: string}} Level
 * @typedef {{price: string, amount: string}} Change
 * @typedef {{price: number, amount: number}} Best
 * @typedef {{pair: string, update_id: number, prev_update_id: number | null, snapshot?: boolean,
 *   sell: Change[], buy: Change[], checksum?: number}} Event
 * @typedef {{price: bigint, amount: bigint, total: bigint}} Row
 * @typedef {Map<bigint, {ids: string[], amount: bigint}>} Own an account's own orders by their price
 */

/** How many prices of a side a short book has, if there are so many. */
const SHORT = 20;

export class Book {
	/** Levels of a side, best first. @type {Record<"sell" | "buy", Level[]>} */
	sides = { sell: [], buy: [] };
	/** The number of the last change; null: the whole book is in flight. @type {number | null} */
	updateId = null;

	/** It takes the best SHORT prices of each side alone. */
	isShort = false;

	/** forget begins anew: the next event that counts is a whole book. */
	forget() {
		this.updateId = null;
	}

	/**
	 * apply applies an event. It returns false if the book is lost: subscribe again.
	 * @param {Event} event
	 */
	apply(event) {
		if (event.snapshot) this.sides = { sell: [], buy: [] };
		else if (this.updateId === null) return true;
		else if (event.prev_update_id !== this.updateId) {
			this.forget();
			return false;
		}
		for (const change of event.sell) put(this.sides.sell, change, 1n);
		for (const change of event.buy) put(this.sides.buy, change, -1n);
		this.updateId = event.update_id;
		if (event.checksum === undefined || event.checksum === this.checksum()) return true;
		this.forget();
		return false;
	}

	/**
	 * replace takes the best prices of both sides, of orderbook.20.
	 * @param {{update_id: number, sell: Best[], buy: Best[]}} event
	 */
	replace(event) {
		for (const side of /** @type {const} */ (["sell", "buy"])) {
			this.sides[side] = event[side].map(({ price, amount }) =>
				({ price: fromNumber(price), amount: fromNumber(amount), text: "" }));
		}
		this.updateId = event.update_id;
	}

	/** checksum returns the CRC-32 of the best ten levels, as docs/stream.md defines it. */
	checksum() {
		const { sell, buy } = this.sides;
		const parts = [];
		for (let i = 0; i < 10; i++) {
			if (i < buy.length) parts.push(buy[i].text);
			if (i < sell.length) parts.push(sell[i].text);
		}
		return crc32(parts.join(":"));
	}

	/**
	 * rows returns at most n rows of a side, best first, with cumulative totals. Prices are rounded
	 * to multiples of step, asks up and bids down, so that no row looks better than its orders.
	 * @param {"sell" | "buy"} side
	 * @param {bigint} step
	 * @param {number} n
	 * @returns {Row[]}
	 */
	rows(side, step, n) {
		/** @type {Row[]} */
		const rows = [];
		let total = 0n;
		for (const level of this.sides[side]) {
			let price = level.price - (level.price % step);
			if (side === "sell" && price < level.price) price += step;
			const last = rows[rows.length - 1];
			if (last?.price !== price && rows.length === n) break;
			total += level.amount;
			if (last?.price === price) {
				last.amount += level.amount;
				last.total = total;
			} else rows.push({ price, amount: level.amount, total });
		}
		return rows;
	}

	/**
	 * take returns what an order would get of a side's orders now, best first: its amount, what is
	 * paid (in 1e-16), the worst price, whether it takes all of them, and whether the limit ends it.
	 * isMore: it goes beyond a short book, where it may take more. from: it takes nothing better. met: the account's own orders in its way, which are treated
	 * by the mode of self-trades: isEnded: they end it. isMaybe: it may be filled before the last of
	 * them, since where that stands among those of its price is not known. isSure: nothing of that
	 * matters.
	 * @param {"sell" | "buy"} side
	 * @param {{amount?: bigint, value?: bigint, limit?: bigint | null, from?: bigint, own?: Own,
	 *   mode?: string}} order amount, or what to spend
	 */
	take(side, { amount, value = 0n, limit, from, own, mode }) {
		let got = 0n, paid = 0n, worst = 0n, at = 0;
		let isCut = false, isEnded = false, isMaybe = false, isSure = true;
		/** @type {string[]} */
		const met = [], isLast = mode === "cancel_newest" || mode === "cancel_both";
		/** @param {bigint} a @param {bigint} b */
		const isWorse = (a, b) => (side === "sell" ? a > b : a < b);
		const levels = this.sides[side];
		for (; at < levels.length; at++) {
			const { price, amount: there } = levels[at], mine = own?.get(price);
			if (from && isWorse(from, price)) continue;
			const left = amount === undefined ? (value * ONE - paid) / price : amount - got;
			if (left <= 0n) break;
			isCut = !!limit && isWorse(price, limit);
			if (isCut) break;
			const others = mine ? there - mine.amount : there;
			const most = isLast || mode === "cancel_oldest" ? others > 0n ? others : 0n : there;
			const part = left < most ? left : most;
			got += part;
			paid += part * price;
			if (part) worst = price;
			if (mine) {
				met.push(...isLast ? mine.ids.slice(0, 1) : mine.ids);
				isMaybe = left <= others;
				isSure &&= mode !== "" && !(isLast && part);
				isEnded = !!isLast && !isMaybe;
			}
			if (part < most || mine && isLast) break;
		}
		const isAll = at === levels.length, hasMore = this.isShort && at >= SHORT;
		return { amount: got, paid, worst, met, isCut, isEnded, isMaybe, isSure,
			isWhole: isAll && !hasMore, isMore: isAll && hasMore
				&& (amount === undefined ? paid < value * ONE : got < amount) };
	}

	/** middle returns the price between the best of both sides; null: a side is empty. */
	middle() {
		const [ask] = this.sides.sell, [bid] = this.sides.buy;
		return ask && bid ? (ask.price + bid.price) / 2n : null;
	}
}

/**
 * furthest returns the worst price that the exchange gives to an order which names none: a share of
 * a reference beyond it, rounded towards it to a multiple of the tick, and never beyond it.
 * @param {"buy" | "sell"} side
 * @param {bigint} reference
 * @param {bigint} share
 * @param {bigint} tick
 */
export function furthest(side, reference, share, tick) {
	if (side === "buy") {
		const most = reference * (ONE + share) / ONE / tick * tick;
		return most > reference ? most : reference;
	}
	const least = (reference * (ONE - share) + ONE * tick - 1n) / (ONE * tick) * tick;
	return least < reference ? least || tick : reference;
}

/**
 * put sets the amount at a price. order is 1n if the lowest price is the best.
 * @param {Level[]} levels
 * @param {Change} change
 * @param {bigint} order
 */
function put(levels, change, order) {
	const price = parse(change.price), amount = parse(change.amount);
	let from = 0, to = levels.length;
	while (from < to) {
		const middle = (from + to) >> 1;
		if ((levels[middle].price - price) * order < 0n) from = middle + 1;
		else to = middle;
	}
	const there = from < levels.length && levels[from].price === price;
	if (amount === 0n) {
		if (there) levels.splice(from, 1);
		return;
	}
	const level = { price, amount, text: `${change.price}:${change.amount}` };
	levels.splice(from, there ? 1 : 0, level);
}

const TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
	for (let bit = 0; bit < 8; bit++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
	return n;
});

/** crc32 returns the checksum of zip and PNG of an ASCII text. @param {string} text */
export function crc32(text) {
	let c = -1;
	for (let i = 0; i < text.length; i++) c = (c >>> 8) ^ TABLE[(c ^ text.charCodeAt(i)) & 255];
	return ~c >>> 0;
}
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
