// The depth of the book as a picture: what could be bought and sold up to each price.
import { html, render } from "../../vendor/lit-html/lit-html.js";
import { number } from "../decimal.js";
import { decimal, fixed } from "../format.js";
import { text } from "../text/en.js";
import { colour } from "../settings.js";

/** @typedef {import("../api.js").Pair} Pair */
/** @typedef {import("../book.js").Book} Book */

const PAUSE = 250; // milliseconds between two pictures
const LEVELS = 250;
const RANGE = 100n; // one part in so many, on both sides of the middle

export class Depth {
	/** @type {Pair | undefined} */
	#pair;
	#isWaiting = false;
	#words = "";

	/** @param {HTMLElement} place @param {Book} book */
	constructor(place, book) {
		this.book = book;
		render(html`<div class="bar"><h2>${text.depth}</h2><span class="muted words"></span></div><div class="picture"><canvas></canvas></div>`, place);
		this.canvas = /** @type {HTMLCanvasElement} */ (place.querySelector("canvas"));
		this.words = /** @type {HTMLElement} */ (place.querySelector(".words"));
		new ResizeObserver(() => this.#paint()).observe(/** @type {HTMLElement} */ (this.canvas.parentElement));
	}

	/** @param {Pair} pair */
	show(pair) {
		this.#pair = pair;
		this.change();
	}

	change() {
		if (this.#isWaiting) return;
		this.#isWaiting = true;
		setTimeout(() => {
			this.#isWaiting = false;
			this.#paint();
		}, PAUSE);
	}

	/** within returns a side's rows that are near the middle. @param {"sell" | "buy"} side @param {bigint} middle */
	#within(side, middle) {
		const range = middle / RANGE;
		return this.book.rows(side, 1n, LEVELS).filter((r) => (side === "sell" ? r.price - middle : middle - r.price) <= range);
	}

	#paint() {
		const pair = this.#pair;
		const box = /** @type {HTMLElement} */ (this.canvas.parentElement);
		const width = box.clientWidth, height = box.clientHeight, ratio = devicePixelRatio;
		if (!pair || !width || !height) return;
		this.canvas.width = Math.round(width * ratio);
		this.canvas.height = Math.round(height * ratio);
		const draw = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
		draw.scale(ratio, ratio);
		const middle = this.book.middle();
		const asks = middle === null ? [] : this.#within("sell", middle), bids = middle === null ? [] : this.#within("buy", middle);
		this.#say(asks.at(-1)?.total ?? 0n, bids.at(-1)?.total ?? 0n, pair);
		if (middle === null || asks.length + bids.length === 0) return;
		const centre = number(middle);
		const reach = Math.max(...[...asks, ...bids].map((r) => Math.abs(number(r.price) - centre)), centre / 1e4);
		const most = Math.max(number(asks.at(-1)?.total ?? 0n), number(bids.at(-1)?.total ?? 0n));
		const x = (/** @type {number} */ price) => width / 2 + ((price - centre) / reach) * (width / 2);
		const bottom = height - 18;
		const y = (/** @type {number} */ total) => bottom - (total / most) * (bottom - 8);
		const side = (/** @type {import("../book.js").Row[]} */ rows, /** @type {string} */ name, /** @type {number} */ edge) => {
			if (rows.length === 0) return;
			draw.beginPath();
			draw.moveTo(x(number(rows[0].price)), bottom);
			let last = bottom;
			for (const r of rows) {
				const at = x(number(r.price));
				draw.lineTo(at, last);
				draw.lineTo(at, (last = y(number(r.total))));
			}
			draw.lineTo(edge, last);
			draw.strokeStyle = colour(`--${name}`);
			draw.lineWidth = 1.5;
			draw.stroke();
			draw.lineTo(edge, bottom);
			draw.fillStyle = colour(`--${name}-bar`);
			draw.fill();
		};
		side(bids, "up", 0);
		side(asks, "down", width);
		draw.fillStyle = colour("--muted");
		draw.font = `11px ${getComputedStyle(document.body).fontFamily}`;
		for (const [at, align] of /** @type {[number, CanvasTextAlign][]} */ ([[-1, "left"], [-0.5, "center"], [0, "center"], [0.5, "center"], [1, "right"]])) {
			draw.textAlign = align;
			draw.fillText(fixed(centre + at * reach, pair.priceDigits), width / 2 + (at * width) / 2 + (at === -1 ? 4 : at === 1 ? -4 : 0), height - 4);
		}
	}

	/** @param {bigint} asks @param {bigint} bids @param {Pair} pair */
	#say(asks, bids, pair) {
		const words = text.depthOf(decimal(bids, 2), decimal(asks, 2), pair.base);
		if (words !== this.#words) this.words.textContent = this.#words = words;
	}
}
