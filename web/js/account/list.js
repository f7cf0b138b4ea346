// A list of the account's on the page: read in pages, shown as a table, saved as CSV.
import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { AGAIN, Refusal } from "../api.js";
import { text } from "../text/en.js";
import { words } from "../text/account.en.js";
import { csv, save } from "./csv.js";
import { PAGE } from "./pages.js";

/**
 * @typedef {{rows: any[], isDone: boolean, more: (size?: number) => Promise<unknown>,
 *   fresh: () => Promise<unknown>, put?: (row: any) => Promise<unknown>,
 *   ready?: () => Promise<unknown>}} Source
 */
/**
 * columns: titles and cells. csv: titles and texts. ready reads what a file has beside the rows.
 * @typedef {{name: string, title: string, columns: [string, (row: any) => unknown][],
 *   csv: [string, (row: any) => string][], open: () => Source}} Kind
 */

/** Rows of one CSV, of which the browser has to hold all. */
const MOST = 200_000;
/** Rows of a page that is read for a CSV. The exchange's own limits are lower for some lists. */
const LONG = 2000;

export class List {
	/** @type {Source | undefined} */
	source;
	#most = PAGE; // rows that are shown
	#isReading = false;
	#hasFailed = false;
	#isStale = false; // there is something new
	/** The file that is being made. @type {object | undefined} */
	#saving;
	#words = "";

	/** @param {import("./main.js").Page} page @param {Kind} kind */
	constructor(page, kind) {
		this.page = page;
		this.kind = kind;
	}

	/** load begins anew. */
	load() {
		this.clear();
		if (!this.page.session.may("read")) return;
		this.source = this.kind.open();
		this.#more();
	}

	/** resume reads what is missing, after a log-in. */
	resume() {
		if (!this.source) return this.load();
		if (this.#hasFailed) this.#more();
		this.fresh();
	}

	/** again begins anew if there was a beginning. */
	again() {
		if (this.source) this.load();
	}

	/** put takes rows that an event has told of. @param {{id: string}[]} rows */
	async put(rows) {
		const { source } = this;
		if (!source || !rows.length) return;
		await Promise.all(rows.map((row) => source.put?.(row)));
		this.page.change();
	}

	/** clear forgets what was read. */
	clear() {
		this.source = undefined;
		this.#most = PAGE;
		this.#isReading = this.#hasFailed = this.#isStale = false;
		this.#saving = undefined;
		this.#words = "";
		this.page.change();
	}

	/** fresh reads what is new. */
	async fresh() {
		const { source, page } = this;
		if (!source || this.#isStale) return;
		this.#isStale = true; // one read follows for all that come together
		await undefined;
		this.#isStale = false;
		try {
			await source.fresh();
		} catch {
			// the next log-in reads it
			setTimeout(() => page.session.state === "in" && source === this.source && this.fresh(),
				AGAIN);
		}
		page.change();
	}

	async #more() {
		const { source } = this;
		if (!source || this.#isReading) return;
		this.#isReading = true;
		this.#hasFailed = false;
		this.page.change();
		try {
			while (!source.isDone && source.rows.length < this.#most) await source.more();
		} catch {
			if (source === this.source) this.#hasFailed = true;
		}
		if (source === this.source) this.#isReading = false;
		this.page.change();
	}

	/** save reads all rows, and makes a file of them. */
	async #save() {
		const { source, kind } = this, mine = {};
		if (!source) return;
		this.#saving = mine;
		let said = "";
		try {
			for (;;) {
				this.#say(words.reading(source.rows.length));
				if (source.isDone || source.rows.length >= MOST) break;
				await this.#patiently(() => source.more(LONG));
				if (this.#saving !== mine) return;
			}
			for (let isReady = !source.ready; !isReady;) {
				isReady = await this.#patiently(() => source.ready?.());
				if (this.#saving !== mine) return;
			}
			const rows = source.rows.slice(0, MOST);
			save(`${kind.name}.csv`, csv([kind.csv.map(([title]) => title),
				...rows.map((row) => kind.csv.map(([, of]) => of(row)))]));
			said = source.isDone ? words.saved(rows.length) : words.cut(rows.length);
		} catch {
			said = `${words.failed} ${words.stopped}`;
		}
		if (this.#saving === mine) this.#stop(said);
	}

	/** stop ends the making of a file. @param {string} said */
	#stop(said) {
		this.#saving = undefined;
		this.#say(said);
	}

	/** @param {string} said */
	#say(said) {
		this.#words = said;
		this.page.change();
	}

	/**
	 * patiently waits when the exchange is asked too often. False: it was.
	 * @param {() => Promise<unknown> | undefined} ask
	 */
	async #patiently(ask) {
		try {
			await ask();
			return true;
		} catch (failed) {
			if (!(failed instanceof Refusal && failed.status === 429)) throw failed;
			await new Promise((again) => setTimeout(again, AGAIN));
			return false;
		}
	}

	view() {
		const { source, kind } = this, rows = source?.rows ?? [], isDone = source?.isDone ?? false;
		if (!this.page.session.may("read")) return html`<p>${words.mayNot.read}</p>`;
		const shown = rows.slice(0, this.#most), hasMore = !isDone || rows.length > shown.length;
		return html`<div class="bar">
				<span class="muted">${rows.length ? words.count(rows.length, isDone) : nothing}</span>
				<span role="status" class="told">${this.#words}</span>
				${this.#saving ? html`<button type="button" class="stop"
					@click=${() => this.#stop(words.stopped)}>${words.stop}</button>`
				: html`<button type="button" class="csv" ?disabled=${!rows.length}
					aria-label=${words.csvOf(kind.title)} @click=${() => this.#save()}>${words.csv}</button>`}
			</div>
			${rows.length ? html`<table role="table" class=${kind.name}><thead><tr role="row">
				${kind.columns.map(([title]) => html`<th role="columnheader">${title}</th>`)}</tr>
				</thead><tbody>${shown.map((row) => html`<tr role="row" data-id=${row.id}>${
					kind.columns.map(([title, cell]) =>
						html`<td role="cell" data-title=${title}>${cell(row)}</td>`)}</tr>`)}</tbody>
			</table>` : html`<p class="muted">${isDone ? words.empty
				: this.#hasFailed ? nothing : text.loading}</p>`}
			${this.#hasFailed ? html`<p class="wrong" role="alert">${words.failed}
				<button type="button" @click=${() => this.#more()}>${text.tryAgain}</button></p>`
			: hasMore && rows.length ? html`<button type="button" class="more"
				?disabled=${this.#isReading} @click=${() => {
					this.#most += PAGE;
					this.#more();
				}}>${words.more}</button>` : nothing}`;
	}
}
