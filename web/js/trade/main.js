// The terminal: the line at the top, the order book, its depth, the newest trades, candles and
// volume; and what loads the pair, holds the stream, and tells each panel what it shows. It is one
// file because it packs better so.
import { html, nothing, render } from "../../vendor/lit-html/lit-html.js";
import { CandlestickSeries, createChart, HistogramSeries } from "../../vendor/lightweight-charts/lightweight-charts.standalone.production.mjs";
import { AGAIN, get, load } from "../api.js";
import { append, Book, filled } from "../book.js";
import { decimal, fixed, fromNumber, moment, number, offset, pairOf, percent, plain, tick, time } from "../format.js";
import { backCloses, chosen, colour, inFrame, later, openHelp, Roving, settingsButton, singleKey } from "../settings.js";
import { stateLine, Status, Stream } from "../stream.js";
import { text } from "../text/en.js";

/** @typedef {import("../api.js").Pair} Pair */
/**
 * @typedef {{timestamp: number, pair: string, last: number, diff: number, vol: number,
 *   high: number, low: number}} Ticker
 */
/** @typedef {{id: number, buys: boolean, price: bigint, amount: bigint, at: number}} Trade */

const GROUPS = [1n, 5n, 10n, 50n, 100n, 500n, 1000n, 10000n, 100000n];
const LEVELS = 250;
const RANGE = 100n; // one part in so many, on both sides of the middle
const MOST = 40;

/** Ladder is the order book: asks above bids, as many rows as fit. */
class Ladder {
	book = new Book();
	/** Called when the book has changed. */
	onChange = () => {};
	/** Called with the price of a row that was clicked. */
	onPick = (/** @type {bigint} */ _) => {};
	/** Called when the whole book is asked for again. */
	onWhole = () => {};
	/** Prices of the account's own orders in the book. @type {Record<"sell" | "buy", bigint[]>} */
	#own = { sell: [], buy: [] };
	/** @type {Pair | undefined} */
	#pair;
	#step = 1n;
	/** Rows from the top: the worst ask first. @type {Record<"sell" | "buy", RowView[]>} */
	#rows = { sell: [], buy: [] };

	/** @param {HTMLElement} place @param {Stream} stream */
	constructor(place, stream) {
		this.stream = stream;
		render(html`
			<div class="bar"><h2>${text.book}</h2><b class="not-live">${text.notLive}</b>
				<label><span class="unseen">${text.group}</span><select class="group" title=${text.group} @change=${this.#regroup.bind(this)}></select></label></div>
			<p class="short" hidden>${text.best20} <button @click=${() => this.onWhole()}
				>${text.wholeBook}</button></p>
			<div class="table" role="grid" tabindex="-1" aria-label=${text.book}>
				<div role="rowgroup"><div role="row" class="head"></div></div>
				<div role="rowgroup" class="side sell" aria-label=${text.asks}></div>
				<div role="rowgroup"><div role="row" class="middle"><span role="gridcell" aria-colspan="3"></span></div></div>
				<div role="rowgroup" class="side buy" aria-label=${text.bids}></div>
			</div>`, place);
		/** @param {string} name */
		const find = (name) => /** @type {HTMLElement} */ (place.querySelector(name));
		this.table = find(".table");
		this.short = find(".short");
		this.middle = find(".middle span");
		this.head = find(".head");
		this.group = /** @type {HTMLSelectElement} */ (find(".group"));
		this.places = { sell: find(".side.sell"), buy: find(".side.buy") };
		/** @param {Element | null} row */
		const pick = (row) => {
			const view = [...this.#rows.sell, ...this.#rows.buy].find((each) => each.row === row);
			if (view?.price) this.onPick(view.price);
		};
		this.table.addEventListener("click", (event) =>
			pick(/** @type {Element} */ (event.target).closest("[data-id]")));
		this.rows = new Roving(this.table, pick, ".buy [data-id]");
		new ResizeObserver(() => this.#fit()).observe(this.table);
		stream.on("orderbook.20", (event) => {
			if (event.pair !== this.#pair?.name || !this.book.isShort) return;
			this.book.replace(event);
			this.change();
		});
		stream.on("depth", (event) => {
			if (event.pair !== this.#pair?.name || this.book.isShort) return;
			if (!event.snapshot) stream.came(event.timestamp);
			if (!this.book.apply(event)) stream.subscribe(`depth.${event.pair}`);
			this.change();
		});
	}

	/** @param {Pair} pair */
	show(pair) {
		this.#listen(pair, this.book.isShort);
		this.#step = pair.tick;
		this.book.sides = { sell: [], buy: [] };
		render(GROUPS.map((n) => html`<option value=${n}>${plain(n * pair.tick)}</option>`), this.group);
		this.group.value = "1";
		render([[text.price, pair.quote], [text.amount, pair.base], [text.total, pair.base]].map(
			([title, unit]) => html`<span role="columnheader">${title} (${unit})</span>`), this.head);
		this.change();
	}

	/** @param {Pair} pair @param {boolean} isShort the best prices of its book alone */
	#listen(pair, isShort) {
		const name = () => `${this.book.isShort ? "orderbook.20" : "depth"}.${this.#pair?.name}`;
		if (this.#pair) this.stream.unsubscribe(name());
		this.#pair = pair;
		this.book.isShort = isShort;
		this.book.forget();
		this.stream.subscribe(name());
	}

	/** shorten shows the best 20 prices alone, or all of them. @param {boolean} isShort */
	shorten(isShort) {
		this.short.hidden = !isShort;
		if (this.#pair) this.#listen(this.#pair, isShort);
		else this.book.isShort = isShort;
	}

	/**
	 * mark marks the prices of an account's own orders.
	 * @param {Record<"sell" | "buy", bigint[]>} own
	 */
	mark(own) {
		this.#own = own;
		this.#wait();
	}

	change() {
		this.onChange();
		this.#wait();
	}

	#wait = inFrame(() => this.#paint());

	#regroup() {
		if (this.#pair) this.#step = BigInt(this.group.value) * this.#pair.tick;
		this.change();
	}

	/** fit makes as many rows as there is room for. */
	#fit() {
		const height = this.places.sell.clientHeight;
		const row = parseFloat(getComputedStyle(this.table).getPropertyValue("--row"));
		const n = Math.max(1, Math.min(100, Math.floor(height / row)));
		for (const side of /** @type {const} */ (["sell", "buy"])) {
			const rows = this.#rows[side];
			while (rows.length < n) {
				const view = new RowView(`${side}-${rows.length}`);
				rows.push(view);
				this.places[side].append(view.row);
			}
			while (rows.length > n) rows.pop()?.row.remove();
		}
		this.#paint();
	}

	#paint() {
		this.rows.keep(() => this.#draw());
	}

	#draw() {
		const pair = this.#pair;
		if (!pair) return;
		const n = this.#rows.sell.length;
		const asks = this.book.rows("sell", this.#step, n), bids = this.book.rows("buy", this.#step, n);
		const most = Math.max(number(asks.at(-1)?.total ?? 0n), number(bids.at(-1)?.total ?? 0n));
		// asks are rounded up, bids down
		const step = this.#step, up = step - 1n;
		const own = { sell: new Set(this.#own.sell.map((price) => (price + up) / step * step)),
			buy: new Set(this.#own.buy.map((price) => price / step * step)) };
		for (let i = 0; i < n; i++) {
			this.#rows.sell[n - 1 - i].show(asks[i], pair, most, own.sell);
			this.#rows.buy[i].show(bids[i], pair, most, own.buy);
		}
		const [ask] = this.book.sides.sell, [bid] = this.book.sides.buy;
		write(this.middle, ask && bid ? `${text.spread} ${decimal(ask.price - bid.price, pair.priceDigits)}`
			: this.book.updateId === null ? "" : ask ? text.emptySide.buy : bid ? text.emptySide.sell
				: text.emptyBook);
	}
}

/** write changes a text only if it differs. @param {Node} cell @param {string} words */
function write(cell, words) {
	if (cell.textContent !== words) cell.textContent = words;
}

class RowView {
	row = document.createElement("div");
	#cells = [0, 1, 2].map(() => document.createElement("span"));
	#bar = document.createElement("i");
	#mark = Object.assign(document.createElement("b"), { className: "mark", title: text.ownOrder,
		role: "img", ariaLabel: text.ownOrder, textContent: "●", hidden: true });
	#width = -1;
	/** @type {bigint | undefined} */
	price;

	/** @param {string} id */
	constructor(id) {
		this.id = id;
		this.row.role = "row";
		for (const cell of this.#cells) cell.role = "gridcell";
		this.#bar.ariaHidden = "true";
		this.#cells[0].append(this.#bar, this.#mark, "");
		this.row.append(...this.#cells);
	}

	/**
	 * @param {import("../book.js").Row | undefined} level
	 * @param {Pair} pair
	 * @param {number} most
	 * @param {Set<bigint>} own
	 */
	show(level, pair, most, own) {
		const [price, amount, total] = this.#cells;
		this.price = level?.price;
		if (!level) this.row.removeAttribute("data-id");
		else if (!this.row.dataset.id) this.row.dataset.id = this.id;
		const isOwn = level !== undefined && own.has(level.price);
		if (this.#mark.hidden === isOwn) this.#mark.hidden = !isOwn;
		write(/** @type {Node} */ (price.lastChild), level ? decimal(level.price, pair.priceDigits) : "");
		write(amount, level ? size(level.amount, pair) : "");
		write(total, level ? size(level.total, pair) : "");
		const width = level && most > 0 ? Math.round((number(level.total) / most) * 1000) / 1000 : 0;
		if (width === this.#width) return;
		this.#width = width;
		this.#bar.style.transform = `scaleX(${width})`;
	}
}

/**
 * size writes an amount for a narrow column: what is too small for its digits is told as such.
 * @param {bigint} amount
 * @param {Pair} pair
 */
function size(amount, pair) {
	const digits = Math.min(pair.amountDigits, 5), least = 10n ** BigInt(8 - digits);
	return amount > 0n && amount < least ? `<${decimal(least, digits)}` : decimal(amount, digits);
}

/** Depth is the book as a picture: what could be bought and sold up to each price. */
class Depth {
	/** @type {Pair | undefined} */
	#pair;

	/** @param {HTMLElement} place @param {Book} book */
	constructor(place, book) {
		this.book = book;
		render(html`<div class="bar"><h2>${text.depth}</h2><b class="not-live">${text.notLive}</b>
			<span class="muted words"></span></div><div class="picture"><canvas></canvas></div>`, place);
		this.canvas = /** @type {HTMLCanvasElement} */ (place.querySelector("canvas"));
		this.words = /** @type {HTMLElement} */ (place.querySelector(".words"));
		new ResizeObserver(() => this.#paint()).observe(/** @type {HTMLElement} */ (this.canvas.parentElement));
	}

	/** @param {Pair} pair */
	show(pair) {
		this.#pair = pair;
		this.change();
	}

	change = inFrame(() => this.#paint(), later);

	#paint() {
		const pair = this.#pair;
		const box = /** @type {HTMLElement} */ (this.canvas.parentElement);
		const width = box.clientWidth, height = box.clientHeight, ratio = devicePixelRatio;
		if (!pair || !width || !height) return;
		this.canvas.width = Math.round(width * ratio);
		this.canvas.height = Math.round(height * ratio);
		const draw = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
		draw.scale(ratio, ratio);
		const { sides: { sell, buy }, updateId, isShort } = this.book;
		const middle = this.book.middle() ?? sell[0]?.price ?? buy[0]?.price ?? 0n;
		const [asks, bids] = /** @type {const} */ (["sell", "buy"]).map((side) =>
			this.book.rows(side, 1n, LEVELS).filter(({ price }) =>
				(side === "sell" ? price - middle : middle - price) * RANGE <= middle));
		const [ask, bid] = [asks, bids].map((rows) => rows.at(-1)?.total ?? 0n);
		write(this.words, middle ? text.depthOf(decimal(bid, 2), decimal(ask, 2), pair.base, isShort)
			: updateId === null ? "" : text.emptyBook);
		if (!middle) return;
		const centre = number(middle);
		const reach = Math.max(...[...asks, ...bids].map((r) => Math.abs(number(r.price) - centre)), centre / 1e4);
		const most = Math.max(number(ask), number(bid));
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
		for (const [at, align] of /** @type {[number, CanvasTextAlign][]} */ (
			[[-1, "left"], [0, "center"], [1, "right"]])) {
			draw.textAlign = align;
			draw.fillText(fixed(centre + at * reach, pair.priceDigits),
				width / 2 + at * (width / 2 - 4), height - 4);
		}
	}
}

/** Trades shows the newest trades of the pair. */
class Trades {
	/** Newest first. @type {Trade[]} */
	#trades = [];
	/** @type {Pair | undefined} */
	#pair;
	#isLoaded = false;

	/** @param {HTMLElement} place @param {Stream} stream */
	constructor(place, stream) {
		this.stream = stream;
		render(html`<div class="bar"><h2>${text.trades}</h2><b class="not-live">${text.notLive}</b></div>
			<div class="table" tabindex="0"></div>`, place);
		this.table = /** @type {HTMLElement} */ (place.querySelector(".table"));
		stream.on("trades", (t) => {
			if (t.pair === this.#pair?.name) this.#add([t]);
		});
	}

	/** @param {Pair} pair */
	show(pair) {
		if (this.#pair) this.stream.unsubscribe(`trades.${this.#pair.name}`);
		this.#pair = pair;
		this.#trades = [];
		this.#isLoaded = false;
		this.stream.subscribe(`trades.${pair.name}`);
		this.change();
		if (this.stream.state === "live") this.load();
	}

	/** load reads the newest trades. It is for those that were made while there was no connection. */
	async load() {
		const pair = this.#pair;
		if (!pair) return;
		let list;
		try {
			list = await get(`/api/v1/exchanges/?pair=${pair.name}&limit=${MOST}`);
		} catch {
			setTimeout(() => pair === this.#pair && this.stream.state === "live" && this.load(), AGAIN);
			return; // what is not live any more loads again when it is
		}
		if (pair !== this.#pair) return;
		this.#isLoaded = true;
		this.#add(list);
	}

	/** add adds trades of the API, whose numbers are texts, or of the stream. @param {any[]} list */
	#add(list) {
		const trades = list.map((t) => ({ id: Number(t.id), buys: t.type === "buy",
			price: fromNumber(+t.price), amount: fromNumber(+t.amount), at: Number(t.timestamp) }));
		const byId = new Map([...this.#trades, ...trades].map((t) => [t.id, t]));
		this.#trades = [...byId.values()].sort((a, b) => b.id - a.id).slice(0, MOST);
		this.change();
	}

	change = inFrame(() => this.#paint());

	#paint() {
		const pair = this.#pair;
		if (!pair) return;
		render(this.#trades.length === 0 ? html`<p class="muted">${this.#isLoaded ? text.noTrades : ""}</p>` : html`
			<table><thead><tr><th>${text.price}</th><th>${text.amount}</th>
				<th>${text.time} (${offset()})</th></tr></thead><tbody>
			${this.#trades.map((t) => html`<tr class=${t.buys ? "buy" : "sell"}>
				<td><small>${t.buys ? text.buy : text.sell}</small> ${decimal(t.price, pair.priceDigits)}</td>
				<td>${size(t.amount, pair)}</td><td>${time(t.at)}</td></tr>`)}
			</tbody></table>`, this.table);
	}
}

/**
 * changeOf returns the share by which a price has changed; undefined: there was no price before.
 */
function changeOf(/** @type {Ticker} */ t) {
	const before = t.last - t.diff;
	return t.last > 0 && before > 0 ? Math.round(t.diff / before * 1e4) / 1e4 : undefined;
}

/** signOf returns a class, and a sign for readers who do not see its colour. @param {number} n */
const signOf = (n) => (n > 0 ? ["up", "▲"] : n < 0 ? ["down", "▼"] : ["", ""]);

/** Header is the line at the top: the pair and its day, the state of the market, the settings. */
class Header {
	/** @type {Pair[]} */
	all = [];
	/** Names of pairs. */
	halted = () => /** @type {Set<string>} */ (new Set());
	/** @type {Pair | undefined} */
	pair;
	/** @type {Map<string, Ticker>} */
	#tickers = new Map();
	/** @type {keyof typeof text.states} */
	state = "connecting";
	#search = "";
	#at = 0; // place of the marked pair in the list
	#isOpen = false;
	#closed = () => {}; // tells that the list was closed
	account = text.logIn;
	unseen = 0; // events while the page was hidden, as the title tells

	/**
	 * @param {HTMLElement} place
	 * @param {(name: string) => void} choose
	 * @param {() => void} openAccount
	 */
	constructor(place, choose, openAccount) {
		this.place = place;
		this.openAccount = openAccount;
		this.choose = choose;
		addEventListener("keydown", (event) => this.#key(event));
		addEventListener("pointerdown", (event) => {
			if (this.#isOpen && !(event.target instanceof Element && event.target.closest(".picker"))) this.#close();
		});
		this.#paint();
	}

	/** tell changes what is shown. @param {Partial<Header>} news */
	tell(news) {
		Object.assign(this, news);
		this.#paint();
	}

	/** lastOf returns a pair's last price; undefined: there is none. @param {string} name */
	lastOf(name) {
		const last = this.#tickers.get(name)?.last;
		return last ? fromNumber(last) : undefined;
	}

	/**
	 * ticker takes a pair's ticker; one paint follows for all that come together.
	 * @param {Ticker} ticker
	 */
	ticker(ticker) {
		this.#tickers.set(ticker.pair, ticker);
		this.#wait();
	}

	#wait = inFrame(() => this.#paint());

	/** @param {KeyboardEvent} event */
	#key(event) {
		const key = singleKey(event);
		if (key === "/") this.#open();
		else if (key === "?") openHelp();
		else return;
		event.preventDefault();
	}

	#open() {
		if (this.#isOpen) return;
		this.#isOpen = true;
		this.#closed = backCloses(() => this.#close());
		this.#search = "";
		this.#at = Math.max(0, this.all.findIndex((p) => p === this.pair));
		this.#paint();
		this.place.querySelector("input")?.focus();
	}

	#close() {
		const hadFocus = this.place.querySelector(".picker")?.contains(document.activeElement);
		if (!this.#isOpen) return;
		this.#isOpen = false;
		this.#closed();
		this.#paint();
		if (hadFocus) /** @type {HTMLElement} */ (this.place.querySelector(".pair")).focus();
	}

	#found() {
		const words = this.#search.toUpperCase().replace(/[^A-Z0-9]/g, "");
		return this.all.filter((p) => p.name.toUpperCase().replace(/[^A-Z0-9]/g, "").includes(words));
	}

	/** @param {Pair | undefined} pair */
	#take(pair) {
		if (!pair) return;
		this.choose(pair.name); // first: see there
		this.#close();
	}

	/** @param {KeyboardEvent} event */
	#move(event) {
		const found = this.#found();
		const last = found.length - 1;
		if (event.key === "Tab") return this.#close();
		if (!["ArrowDown", "ArrowUp", "Enter", "Escape"].includes(event.key)) return;
		event.preventDefault();
		if (event.key === "Enter") return this.#take(found[this.#at]);
		if (event.key === "Escape") return this.#close();
		this.#at = event.key === "ArrowDown" ? Math.min(last, this.#at + 1) : Math.max(0, this.#at - 1);
		this.#paint();
	}

	#paint() {
		const pair = this.pair;
		const t = pair && this.#tickers.get(pair.name);
		const isTraded = t !== undefined && t.last > 0;
		const change = t && changeOf(t);
		const [colour, sign] = signOf(change ?? 0);
		/** @param {"last" | "high" | "low" | "vol"} of */
		const shown = (of, digits = pair?.priceDigits ?? 0) =>
			(isTraded ? decimal(fromNumber(t[of]), digits) : text.none);
		const last = shown("last");
		const mark = this.unseen ? `(${this.unseen}) ` : "";
		const name = pairOf(pair?.name ?? "");
		if (pair) document.title = mark + (isTraded ? `${last} ${name}` : name);
		render(html`
			<div class="picker">
				<button class="pair" aria-haspopup="listbox" aria-expanded=${this.#isOpen}
					@click=${() => (this.#isOpen ? this.#close() : this.#open())}>
					<span class="unseen">${text.pair}</span>${pair ? html`<b>${pair.base}</b><span class="muted">/${pair.quote}</span>` : text.loading}
					<span aria-hidden="true" class="muted">▾</span>
				</button>
				${this.#isOpen ? this.#list() : nothing}
			</div>
			<dl class="day">
				<div class="last"><dt class="unseen">${text.last}</dt><dd class=${colour}>${last}</dd></div>
				<div class="change"><dt>${text.change}</dt><dd class=${colour}>${change === undefined ? text.none : html`<span aria-hidden="true">${sign}</span> ${percent(change)}`}</dd></div>
				<div><dt>${text.high}</dt><dd>${shown("high")}</dd></div>
				<div><dt>${text.low}</dt><dd>${shown("low")}</dd></div>
				<div><dt>${text.volume(pair?.base ?? "")}</dt><dd>${shown("vol", 4)}</dd></div>
			</dl>
			${stateLine(this.state)}
			<a class="wide" href="/account">${text.accountPage}</a>
			<button class="account" @click=${this.openAccount}>${this.account}</button>
			<button class="help" title=${text.help} aria-label=${text.help} @click=${openHelp}>?</button>
			${settingsButton}`, this.place);
	}

	#list() {
		const found = this.#found();
		return html`<div class="pairs fields">
			<input type="search" role="combobox" aria-label=${text.searchPairs} aria-expanded="true" aria-controls="pairs"
				aria-activedescendant=${found[this.#at] ? `pair-${this.#at}` : nothing} placeholder=${text.searchPairs}
				autocomplete="off" spellcheck="false" .value=${this.#search} @keydown=${this.#move.bind(this)}
				@input=${(/** @type {InputEvent} */ event) => {
					this.#search = /** @type {HTMLInputElement} */ (event.target).value;
					this.#at = 0;
					this.#paint();
				}}>
			<ul id="pairs" role="listbox" aria-label=${text.pairs}>
				${found.map((p, i) => {
					const t = this.#tickers.get(p.name);
					const change = t && changeOf(t);
					const isHalted = this.halted().has(p.name), [colour, sign] = signOf(change ?? 0);
					return html`<li role="option" id="pair-${i}" aria-selected=${i === this.#at} @click=${() => this.#take(p)}>
						<span><b>${p.base}</b><span class="muted">/${p.quote}</span></span>
						<span>${t && t.last > 0 ? decimal(fromNumber(t.last), p.priceDigits) : text.none}</span>
						<span class=${isHalted ? "" : colour}>${isHalted ? text.states.halted
							: change === undefined ? text.none : `${sign} ${percent(change)}`}</span></li>`;
				})}
			</ul>
			${found.length ? nothing : html`<p class="muted" role="status">${text.noPair}</p>`}
		</div>`;
	}
}

/** @typedef {import("../book.js").Candle} Candle */
/** @typedef {keyof typeof text.frames} Frame */

const FRAMES = /** @type {Frame[]} */ (
	/** @type {unknown} */ (["1", "5", "15", "30", "60", "240", "D"]));
const FIRST = 500; // candles of the first request, and of each one for older ones
const MOST_ROWS = 300;

class Chart {
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
		const chart = this.chart = createChart(this.canvas, {
			autoSize: true,
			layout: { attributionLogo: false, fontSize: 11 },
			rightPriceScale: { borderVisible: false, entireTextOnly: true,
				scaleMargins: { top: 0.08, bottom: 0.24 } },
			timeScale: { borderVisible: false, timeVisible: true, secondsVisible: false, rightOffset: 4,
				tickMarkFormatter: (/** @type {number} */ at, /** @type {number} */ kind) => tick(at, kind) },
			localization: { timeFormatter: (/** @type {number} */ at) => moment(at, this.#frame === "D") },
			handleScale: { axisPressedMouseMove: true },
		});
		this.candles = chart.addSeries(CandlestickSeries, { priceLineStyle: 2 });
		this.volume = chart.addSeries(HistogramSeries, { priceScaleId: "",
			lastValueVisible: false, priceLineVisible: false, priceFormat: { type: "volume" } });
		this.volume.priceScale().applyOptions({ scaleMargins: { top: 0.82, bottom: 0 } });
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

	/** @param {Pair} pair */
	show(pair) {
		this.#unsubscribe();
		this.#pair = pair;
		const digits = pair.priceDigits;
		this.candles.applyOptions({ priceFormat: { type: "custom", minMove: number(pair.tick),
			formatter: (/** @type {number} */ n) => fixed(n, digits) } });
		this.#begin();
	}

	#begin() {
		this.#turn++; // what is in flight is of another chart
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

	/** load reads the newest candles again. */
	async load() {
		const turn = ++this.#turn;
		const list = await this.#read("");
		if (turn !== this.#turn) return;
		this.#isFailed = list === null;
		if (!list) {
			setTimeout(() => turn === this.#turn && this.stream.state === "live" && this.load(),
				AGAIN);
		}
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
			const path = `/api/charts/${this.#pair?.name}/${this.#frame}/chart/`;
			const list = await get(`${path}?limit=${FIRST}${more}`);
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
		return { time: c.time, value: c.volume,
			color: this.colours[c.close >= c.open ? "up" : "down"] };
	}

	/** mark gives the line of the last price the colour of its candle, which may be hollow. */
	#mark() {
		const c = this.#candles.at(-1);
		if (!c) return;
		const priceLineColor = this.colours[c.close >= c.open ? "rises" : "falls"];
		this.candles.applyOptions({ priceLineColor });
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
		/** @param {string} is */
		const pale = (is) => is.replace("b", "ba").replace(")", ", .35)"); // rgb to rgba
		this.colours = { up: pale(up), down: pale(down),
			// on which the last price is written in white: the others are too light for that
			rises: colour("--up", "light"), falls: colour("--down", "light") };
		this.chart.applyOptions({
			layout: { background: { color: "transparent" }, textColor: colour("--muted"),
				fontFamily: getComputedStyle(document.body).fontFamily },
			grid: { vertLines: { color: line }, horzLines: { color: line } },
		});
		// an up candle is hollow, so that it differs without its colour
		this.candles.applyOptions({ upColor: colour("--panel"), downColor: down, borderUpColor: up,
			borderDownColor: down, wickUpColor: up, wickDownColor: down });
		this.#set();
	}

	#visible() {
		const range = this.chart.timeScale().getVisibleLogicalRange();
		if (!range) return [];
		return this.#candles.slice(Math.max(0, Math.ceil(range.from)), Math.floor(range.to) + 1)
			.slice(-MOST_ROWS).reverse();
	}

	#paint() {
		const pair = this.#pair, c = this.#marked ?? this.#candles.at(-1);
		render(html`
			<div class="bar">
				<h2 class="unseen">${text.chart}</h2>
				<div role="group" aria-label=${text.period} class="frames">
					${FRAMES.map((f) => html`<button aria-pressed=${f === this.#frame}
						@click=${() => this.#choose(f)}>${text.frames[f]}</button>`)}
				</div>
				<button class="as-table" aria-pressed=${this.#isTable} @click=${() => {
					this.#isTable = !this.#isTable;
					this.#paint();
				}}>${text.table}</button>
			</div>
			<p class="legend">${c && pair ? this.#legend(c, pair) : nothing}</p>
			${this.#isFailed ? html`<p role="status">${text.chartFailed}</p>` : nothing}
			${this.#isEmpty ? html`<p class="muted empty">${text.emptyMarket}</p>` : nothing}
			<div class="picture" role="img"
				aria-label=${text.chartOf(pairOf(pair?.name ?? ""))}>${this.canvas}</div>
			${this.#isTable && pair ? this.#table(pair) : nothing}
			<p class="foot muted"><span>${text.zone(offset(c && c.time * 1000))}</span>
				<a href="https://www.tradingview.com/" target="_blank"
					rel="noreferrer">${text.chartsBy}</a></p>`, this.place);
	}

	/** @param {Candle} c @param {Pair} pair */
	#legend(c, pair) {
		const side = c.close >= c.open ? "up" : "down";
		return html`<span class="muted">${moment(c.time, this.#frame === "D")}</span>
			${/** @type {const} */ (["open", "high", "low", "close"]).map((k) => html`<span><span
				class="muted">${text.legend[k]}</span> <span
				class=${side}>${fixed(c[k], pair.priceDigits)}</span></span> `)}
			<span><span class="muted">${text.legend.volume}</span> ${fixed(c.volume, 4)}</span>`;
	}

	/** @param {Pair} pair */
	#table(pair) {
		return html`<div class="candles" tabindex="0" role="region" aria-label=${text.candles}><table>
			<thead><tr>${[text.time, text.open, text.highest, text.lowest, text.close,
				text.volumeShort].map((t) => html`<th>${t}</th>`)}</tr></thead>
			<tbody>${this.#visible().map((c) => html`<tr><th scope="row">${moment(c.time, this.#frame === "D")}</th>
				${[c.open, c.high, c.low, c.close].map((n) =>
					html`<td>${fixed(n, pair.priceDigits)}</td>`)}
				<td>${fixed(c.volume, 4)}</td></tr>`)}</tbody>
		</table></div>`;
	}
}

/** candleOf reads a candle of the API or of the stream. @param {any} c @returns {Candle} */
const candleOf = (c) => /** @type {any} */ (Object.fromEntries(["time", "open", "high", "low", "close",
	"volume"].map((name) => [name, Number(c[name])])));

const app = /** @type {HTMLElement} */ (document.getElementById("app"));
document.getElementById("loading")?.remove();
app.hidden = false;

const tabs = /** @type {const} */ (["chart", "book", "trades", "own"]);
render(html`
	<header id="header"></header>
	<p id="notice" role="status" hidden></p>
	<nav aria-label=${text.panels}><div id="tabs" role="tablist" @keydown=${moveTab}>
		${tabs.map((name) => html`<button role="tab" id="tab-${name}" aria-controls="panel-${name}"
			@click=${() => showTab(name)}>${name === "own" ? text.orders : text[name]}</button>`)}
	</div><a href="/account">${text.accountPage}</a></nav>
	<main>
		<h1 class="unseen">${text.market}</h1>
		<div class="left" id="panel-chart">
			<section id="chart" aria-label=${text.chart}></section>
			<section id="depth" aria-label=${text.depth}></section>
		</div>
		<div class="right">
			<section id="panel-book" aria-label=${text.book}></section>
			<section id="panel-form" aria-label=${text.order} hidden></section>
			<section id="panel-trades" aria-label=${text.trades}></section>
		</div>
		<section id="panel-own" aria-label=${text.account} hidden></section>
		<div id="toasts" role="status"></div>
	</main>
	<footer id="sides" hidden></footer>`, app);

/** @param {string} id */
const element = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @type {Map<string, Pair>} */
const pairs = new Map();
/** @type {Pair | undefined} */
let pair;
/** Keys that everybody may know; none: this is no demo. @type {import("../words.js").DemoKey[]} */
let demo = [];
/** What an account needs, once it is asked for. @type {Promise<Desk | undefined> | undefined} */
let loading;
/** @type {Desk | undefined} */
let desk;
/** @typedef {import("./desk.js").Desk} Desk */

const stream = new Stream();
const status = new Status(stream, element("notice"));
const header = new Header(element("header"), choose, () => openDesk().then((desk) => desk?.open()));
const ladder = new Ladder(element("panel-book"), stream);
const depth = new Depth(element("depth"), ladder.book);
const trades = new Trades(element("panel-trades"), stream);
const chart = new Chart(element("chart"), stream);
ladder.onChange = () => {
	depth.change();
	desk?.form.book();
};
/** @param {boolean} is */
const slow = (is) => {
	status.isSlow = is;
	ladder.shorten(is);
	tell();
};
stream.onSlow = () => slow(true);
ladder.onWhole = () => slow(false);
chosen.onChange = () => {
	chart.recolour();
	depth.change();
};

stream.on("ticker", (ticker) => header.ticker(ticker));
status.onChange = tell;
stream.onState = () => {
	tell();
	desk?.connection();
	if (stream.state !== "live") ladder.book.forget(); // what is shown stays
	else if (pair) {
		trades.load();
		chart.load();
		status.connected();
	}
};

/** tell shows what the market and the connection are like. */
function tell() {
	const shown = status.tell(pair?.name ?? "", pair !== undefined);
	header.tell({ state: shown });
	desk?.market(shown);
}

/** choose shows a pair. @param {string} name @param {boolean} [isNew] false: the address has it already */
function choose(name, isNew = true) {
	const to = pairs.get(name);
	if (!to || to === pair) return;
	pair = to;
	// the list of pairs has a place in the history while it is open: the pair takes it over
	if (isNew) history[history.state?.opened ? "replaceState" : "pushState"](null, "",
		`?pair=${encodeURIComponent(name)}`);
	header.tell({ pair });
	ladder.show(pair);
	depth.show(pair);
	trades.show(pair);
	chart.show(pair);
	desk?.show(pair);
	tell();
}

/** openDesk loads what an account needs. Visitors of the market never ask for it. */
function openDesk() {
	return loading ??= (async () => {
		try {
			const { Desk } = await import("./desk.js");
			desk = new Desk({ stream, status, header, ladder, pairs, demo, element });
			if (pair) desk.show(pair);
			tell();
			return desk;
		} catch {
			loading = undefined; // the next click tries again
			element("notice").hidden = false;
			render(text.notLoaded, element("notice"));
		}
	})();
}

/** asked returns the pair that the address names, or the first one. */
function asked() {
	const name = new URLSearchParams(location.search).get("pair") ?? "";
	return pairs.has(name) ? name : pairs.keys().next().value ?? "";
}
addEventListener("popstate", () => choose(asked(), false));

/** start reads the pairs as soon as the exchange has them. */
async function start() {
	const info = await load(stream, tell);
	for (const [name, p] of info.pairs) pairs.set(name, p);
	status.learn(info);
	demo = info.demo;
	header.tell({ all: [...pairs.values()], halted: () => status.halted });
	stream.subscribe("ticker", "status");
	stream.open();
	choose(asked(), false);
	enter();
	addEventListener("storage", ({ key }) => key === "session" && enter());
}

/** enter logs in with the key of another tab, or of this device. */
async function enter() {
	if (await isKept()) (await openDesk())?.session.resumeKept();
}

/** isKept reports whether a key is kept on this device: see session.js. */
async function isKept() {
	try {
		return (await indexedDB.databases()).some(({ name }) => name === "key");
	} catch {
		return false; // where a browser lets pages keep nothing
	}
}

/** @param {string} name */
function showTab(name) {
	for (const tab of tabs) {
		const button = element(`tab-${tab}`);
		button.ariaSelected = String(tab === name);
		button.tabIndex = tab === name ? 0 : -1;
	}
	document.body.dataset.tab = name;
}
/** @param {KeyboardEvent} event */
function moveTab(event) {
	const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
	if (!step) return;
	const shown = tabs.filter((name) => !element(`tab-${name}`).hidden);
	const at = shown.findIndex((name) => document.body.dataset.tab === name);
	const to = shown[(at + step + shown.length) % shown.length];
	showTab(to);
	element(`tab-${to}`).focus();
}

element("tab-own").hidden = true;
showTab("chart");
tell();
start();

export { Header, ladder, Ladder }; // a test compares its book with the exchange's
