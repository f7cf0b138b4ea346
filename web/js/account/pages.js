// A list of the account's, which is read in pages, newest first.

/** PAGE is how many rows are read, and shown, at once. */
export const PAGE = 100;

/**
 * read asks the exchange for a list. most: the longest page. accepts: whether a row belongs to the
 * list. isPast: whether all rows behind this one do not. legs: what each row is shown as.
 * @template {{id: string}} T
 * @typedef {{read: (path: string) => Promise<T[]>, path: string, most: number,
 *   accepts?: (row: T) => boolean, isPast?: (row: T) => boolean, legs?: (rows: T[]) => T[]}} Origin
 */

/** @template {{id: string}} T */
export class Pages {
	/** The oldest row is here. */
	isDone = false;
	/** @type {Map<string, T>} */
	#byId = new Map();
	/** @type {T[] | undefined} */
	#sorted;
	#oldest = ""; // id of the last row that was read; "": none was
	/** The newest task: they go one by one, so that no page puts back what an event has changed. */
	#tasks = Promise.resolve();

	/** @param {Origin<T>} origin */
	constructor(origin) {
		this.origin = origin;
	}

	/** The rows that are here, newest first. */
	get rows() {
		const { legs = (rows) => rows } = this.origin;
		return this.#sorted ??= legs([...this.#byId.values()]
			.sort((a, b) => Number(b.id) - Number(a.id)));
	}

	/** more reads the next page. @param {number} [size] */
	more(size = PAGE) {
		return this.#inTurn(async () => {
			if (this.isDone) return;
			const limit = Math.min(size, this.origin.most);
			const page = await this.#read(limit, this.#oldest), last = page.at(-1);
			for (const row of page) this.#put(row);
			this.#oldest = last?.id ?? this.#oldest;
			this.isDone = !last || page.length < limit || (this.origin.isPast?.(last) ?? false);
		});
	}

	/** fresh reads the newest rows, back to one that is here. */
	fresh() {
		return this.#inTurn(async () => {
			if (!this.isDone && !this.#oldest) return;
			for (let before = "", isKnown = false; !isKnown;) {
				const page = await this.#read(PAGE, before), last = page.at(-1);
				isKnown = !last || page.length < PAGE || page.some(({ id }) => this.#byId.has(id));
				for (const row of page) this.#put(row);
				before = last?.id ?? "";
			}
		});
	}

	/** put takes a row that an event has told of. @param {T} row */
	put(row) {
		return this.#inTurn(async () => {
			const isHere = this.isDone || this.#oldest && Number(row.id) > Number(this.#oldest);
			if (isHere || this.#byId.has(row.id)) this.#put(row);
		});
	}

	/** @param {T} row */
	#put(row) {
		if (this.origin.accepts?.(row) ?? true) this.#byId.set(row.id, row);
		else this.#byId.delete(row.id);
		this.#sorted = undefined;
	}

	/** @param {number} limit @param {string} before */
	#read(limit, before) {
		const { read, path } = this.origin;
		return read(`${path}${path.includes("?") ? "&" : "?"}limit=${limit}${
			before && `&before=${before}`}`);
	}

	/** @param {() => Promise<void>} task */
	#inTurn(task) {
		const done = this.#tasks.then(task);
		this.#tasks = done.catch(() => {});
		return done;
	}
}
