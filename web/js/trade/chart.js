// Candles and volume.
import { html, nothing, render } from "../../vendor/lit-html/lit-html.js";
import { CandlestickSeries, createChart, HistogramSeries } from "../../vendor/lightweight-charts/lightweight-charts.standalone.production.mjs";
import { AGAIN, get } from "../api.js";
import { append, filled } from "../candles.js";
import { number } from "../decimal.js";
import { fixed, moment, pairOf, tick, zone } from "../format.js";
import { text } from "../text/en.js";
import { colour } from "../settings.js";

/** @typedef {import("../api.js").Pair} Pair */
/** @typedef {import("../stream.js").Stream} Stream */
/** @typedef {import("../candles.js").Candle} Candle */
/** @typedef {keyof typeof text.frames} Frame */

const FRAMES = /** @type {Frame[]} */ (/** @type {unknown} */ (["1", "5", "15", "30", "60", "240", "D"]));
const FIRST = 500; // candles of the first request, and of each one for older ones
const MOST_ROWS = 300;

export class Chart {
	/** @type {Candle[]} oldest first, without a gap */
	#candles = [];
	/** @type {Pair | undefined} */
	#pair;
	#frame = FRAMES[2];
	#isAll = true; // there are no older ones
	#isAsking = false;
	/** @type {Candle | undefined} the one below the crosshair */
	#marked;
	#isTable = false;
	#isFailed = false;
	#isEmpty = false; // there was no trade yet
	#turn = 0; // of the last load

	/** @param {HTMLElement} place @param {Stream} stream */
	constructor(place, stream) {
		this.place = place;
		this.stream = stream;
		this.canvas = document.createElement("div");
		this.canvas.className = "canvas";
		this.#paint();
		const { chart, candles, volume } = this.#make();
		this.chart = chart;
		this.candles = candles;
		this.volume = volume;
		this.recolour();
		chart.subscribeCrosshairMove((at) => {
			this.#marked = at.time === undefined ? undefined : this.#candles.find((c) => c.time === at.time);
			this.#paint();
		});
		chart.timeScale().subscribeVisibleLogicalRangeChange((range) => {
			if (range && range.from < 50) this.#older();
			if (this.#isTable) this.#paint();
		});
		stream.on("candles", (event) => {
			if (event.pair === this.#pair?.name && event.timeframe === this.#frame) this.#next(event);
		});
	}

	#make() {
		const chart = createChart(this.canvas, {
			autoSize: true,
			layout: { attributionLogo: false, fontSize: 11 },
			rightPriceScale: { borderVisible: false, scaleMargins: { top: 0.08, bottom: 0.24 } },
			timeScale: { borderVisible: false, timeVisible: true, secondsVisible: false, rightOffset: 4,
				tickMarkFormatter: (/** @type {number} */ at, /** @type {number} */ kind) => tick(at, kind) },
			localization: { timeFormatter: (/** @type {number} */ at) => moment(at, this.#frame === "D") },
			handleScale: { axisPressedMouseMove: true },
		});
		const candles = chart.addSeries(CandlestickSeries, { priceLineStyle: 2 });
		const volume = chart.addSeries(HistogramSeries, { priceScaleId: "", lastValueVisible: false, priceLineVisible: false,
			priceFormat: { type: "volume" } });
		volume.priceScale().applyOptions({ scaleMargins: { top: 0.82, bottom: 0 } });
		return { chart, candles, volume };
	}

	/** @param {Pair} pair */
	show(pair) {
		this.#unsubscribe();
		this.#pair = pair;
		const digits = pair.priceDigits;
		this.candles.applyOptions({ priceFormat: { type: "custom", minMove: number(pair.tick), formatter: (/** @type {number} */ n) => fixed(n, digits) } });
		this.#begin();
	}

	#begin() {
		this.#turn++; // what is on its way is of another chart
		this.#candles = [];
		this.#isAll = true; // until the newest are there
		this.#marked = undefined;
		this.#isEmpty = false;
		this.#set();
		this.stream.subscribe(this.#channel());
		this.#paint();
		if (this.stream.state === "live") this.load();
	}

	#channel() {
		return `candles.${this.#frame}.${this.#pair?.name}`;
	}

	#unsubscribe() {
		if (this.#pair) this.stream.unsubscribe(this.#channel());
	}

	/** @param {Frame} frame */
	#choose(frame) {
		if (frame === this.#frame || !this.#pair) return;
		this.#unsubscribe();
		this.#frame = frame;
		this.#begin();
	}

	/** load reads the newest candles anew. */
	async load() {
		const turn = ++this.#turn;
		const list = await this.#read("");
		if (turn !== this.#turn) return;
		this.#isFailed = list === null;
		if (!list) setTimeout(() => turn === this.#turn && this.stream.state === "live" && this.load(), AGAIN);
		if (list) {
			const isFirst = this.#candles.length === 0;
			this.#isAll = list.length < FIRST;
			this.#candles = filled(list, this.#frame);
			this.#isEmpty = list.length === 0;
			this.#set();
			if (isFirst) this.#window();
			this.stream.subscribe(this.#channel()); // its state may be newer than what was read
		}
		this.#paint();
	}

	/** window shows the newest candles, as many as can be told apart. */
	#window() {
		const n = this.#candles.length;
		const shown = Math.max(30, Math.min(120, n + 5, Math.floor(this.canvas.clientWidth / 7)));
		this.chart.timeScale().setVisibleLogicalRange({ from: n - shown, to: n + 3 });
	}

	/** older reads candles before the first one, if there are any. */
	async #older() {
		if (this.#isAsking || this.#isAll || this.#candles.length === 0) return;
		this.#isAsking = true;
		const turn = this.#turn, first = this.#candles[0];
		const list = await this.#read(`&until=${first.time - 1}`);
		this.#isAsking = false;
		if (turn !== this.#turn || !list || this.#candles[0] !== first) return;
		this.#isAll = list.length < FIRST;
		this.#candles = filled([...list, ...this.#candles], this.#frame);
		this.#set();
	}

	/** read returns candles, oldest first; null: there was no answer. @param {string} more */
	async #read(more) {
		try {
			const list = await get(`/api/charts/${this.#pair?.name}/${this.#frame}/chart/?limit=${FIRST}${more}`);
			return /** @type {any[]} */ (list).map((c) => candleOf(c)).reverse();
		} catch {
			return null;
		}
	}

	/** next takes the newest candle, or the one that has closed. @param {any} event */
	#next(event) {
		const from = this.#candles.length;
		const changed = append(this.#candles, candleOf(event), this.#frame);
		if (changed < 0) return;
		this.#isEmpty = false;
		if (from === 0) this.#set();
		else for (const c of this.#candles.slice(changed)) {
			this.candles.update(/** @type {any} */ (c));
			this.volume.update(/** @type {any} */ (this.#bar(c)));
		}
		this.#mark();
		this.#paint();
	}

	/** @param {Candle} c */
	#bar(c) {
		return { time: c.time, value: c.volume, color: c.close >= c.open ? this.colours.up : this.colours.down };
	}

	/** mark gives the line of the last price the colour of its candle, which may be hollow. */
	#mark() {
		const c = this.#candles.at(-1);
		if (c) this.candles.applyOptions({ priceLineColor: c.close >= c.open ? this.colours.rises : this.colours.falls });
	}

	#set() {
		this.candles.setData(/** @type {any} */ (this.#candles));
		this.#mark();
		this.volume.setData(/** @type {any} */ (this.#candles.map((c) => this.#bar(c))));
	}

	/** The colours of volume, and of the last price. */
	colours = { up: "", down: "", rises: "", falls: "" };

	/** recolour takes over the colours of the page. */
	recolour() {
		const up = colour("--up"), down = colour("--down"), line = colour("--line");
		this.colours = { up: colour("--up-volume"), down: colour("--down-volume"), rises: up, falls: down };
		this.chart.applyOptions({
			layout: { background: { color: colour("--panel") }, textColor: colour("--muted"), fontFamily: getComputedStyle(document.body).fontFamily },
			grid: { vertLines: { color: line }, horzLines: { color: line } },
		});
		// an up candle is hollow, so that it differs without its colour
		this.candles.applyOptions({ upColor: colour("--panel"), downColor: down, borderUpColor: up, borderDownColor: down, wickUpColor: up, wickDownColor: down });
		this.#set();
	}

	#visible() {
		const range = this.chart.timeScale().getVisibleLogicalRange();
		if (!range) return [];
		return this.#candles.slice(Math.max(0, Math.ceil(range.from)), Math.floor(range.to) + 1).slice(-MOST_ROWS).reverse();
	}

	#paint() {
		const pair = this.#pair;
		render(html`
			<div class="bar">
				<h2 class="unseen">${text.chart}</h2>
				<div role="group" aria-label=${text.period} class="frames">
					${FRAMES.map((f) => html`<button aria-pressed=${f === this.#frame} @click=${() => this.#choose(f)}>${text.frames[f]}</button>`)}
				</div>
				<button class="as-table" aria-pressed=${this.#isTable} @click=${() => {
					this.#isTable = !this.#isTable;
					this.#paint();
				}}>${text.table}</button>
			</div>
			<p class="legend">${this.#legend()}</p>
			${this.#isFailed ? html`<p role="status">${text.chartFailed}</p>` : nothing}
			${this.#isEmpty ? html`<p class="muted empty">${text.emptyMarket}</p>` : nothing}
			<div class="picture" role="img" aria-label=${text.chartOf(pairOf(pair?.name ?? ""))}>${this.canvas}</div>
			${this.#isTable && pair ? this.#table(pair) : nothing}
			<p class="foot muted"><span>${text.zone(zone)}</span><a href="https://www.tradingview.com/" target="_blank" rel="noreferrer">${text.chartsBy}</a></p>`, this.place);
	}

	#legend() {
		const c = this.#marked ?? this.#candles.at(-1);
		const pair = this.#pair;
		if (!c || !pair) return html`<span class="muted">${text.none}</span>`;
		const side = c.close >= c.open ? "up" : "down";
		return html`<span class="muted">${moment(c.time, this.#frame === "D")}</span>
			${/** @type {const} */ (["open", "high", "low", "close"]).map((k) => html`<span><span class="muted">${text.legend[k]}</span> <span class=${side}>${fixed(c[k], pair.priceDigits)}</span></span> `)}
			<span><span class="muted">${text.legend.volume}</span> ${fixed(c.volume, 4)}</span>`;
	}

	/** @param {Pair} pair */
	#table(pair) {
		return html`<div class="candles" tabindex="0" role="region" aria-label=${text.candles}><table>
			<thead><tr>${[text.time, text.open, text.highest, text.lowest, text.close, text.volumeShort].map((t) => html`<th>${t}</th>`)}</tr></thead>
			<tbody>${this.#visible().map((c) => html`<tr><th scope="row">${moment(c.time, this.#frame === "D")}</th>
				${[c.open, c.high, c.low, c.close].map((n) => html`<td>${fixed(n, pair.priceDigits)}</td>`)}<td>${fixed(c.volume, 4)}</td></tr>`)}</tbody>
		</table></div>`;
	}
}

/** candleOf reads a candle of the API or of the stream. @param {any} c @returns {Candle} */
const candleOf = (c) => ({ time: Number(c.time), open: Number(c.open), high: Number(c.high), low: Number(c.low), close: Number(c.close), volume: Number(c.volume) });

