// What panels share on the page.

/**
 * inFrame returns what calls a function in the next frame, once however often it is asked to.
 * @param {() => void} paint
 * @param {(paint: () => void) => unknown} wait for something else than the next frame
 */
export function inFrame(paint, wait = requestAnimationFrame) {
	let isWaiting = false;
	return () => {
		if (isWaiting) return;
		isWaiting = true;
		wait(() => {
			isWaiting = false;
			paint();
		});
	};
}

/** later calls a function after the least time between two pictures of a book, or estimates. */
export const later = (/** @type {() => void} */ paint) => setTimeout(paint, 250);

/**
 * What closes each thing that is open, in the order in which they were opened.
 * @type {(() => void)[]}
 */
const opened = [];
let isOurs = false; // the step back that is on its way is not the reader's

/**
 * backCloses lets Back close what was opened, and stay on the page. It returns what is to be called
 * when that is closed, by Back or otherwise.
 * @param {() => void} close
 */
export function backCloses(close) {
	addEventListener("popstate", stepped); // once, however often it is asked for
	opened.push(close);
	if (!isOurs) settle();
	return () => {
		const at = opened.indexOf(close);
		if (at >= 0) opened.splice(at, 1);
		if (!isOurs) settle();
	};
}

/** depth is how much was open at this place of the browser's history. */
const depth = () => history.state?.opened ?? 0;

/** settle has one place in the browser's history for each thing that is open. */
function settle() {
	isOurs = depth() > opened.length;
	if (isOurs) history.back();
	else if (depth() < opened.length) history.pushState({ opened: opened.length }, "");
}

function stepped() {
	while (!isOurs && opened.length > depth()) opened.pop()?.();
	settle();
}

/** stopsOf returns what can have the focus in a row: itself, and its buttons. @param {HTMLElement} row */
const stopsOf = (row) => [row, .../** @type {NodeListOf<HTMLElement>} */ (
	row.querySelectorAll("button:not(:disabled)"))];

/**
 * A Roving is the focus in a grid, which is one stop of the tabulator key. The rows of a grid have
 * data-id. Arrows up and down, Home and End move among them, left and right to a row's buttons.
 */
export class Roving {
	#id = ""; // of the row that the tabulator key leads to

	/**
	 * @param {HTMLElement} place has the grid
	 * @param {(row: HTMLElement) => void} act is called for Enter
	 * @param {string} first the row that is the stop at first
	 */
	constructor(place, act, first = "[data-id]") {
		this.place = place;
		this.first = first;
		this.act = act;
		place.addEventListener("keydown", (event) => this.#key(event));
		place.addEventListener("focusin", () => {
			this.#id = this.row()?.dataset.id ?? this.#id;
			this.mark();
		});
	}

	/** row returns the row that has the focus. */
	row() {
		const row = document.activeElement?.closest("[data-id]");
		return row instanceof HTMLElement && this.place.contains(row) ? row : undefined;
	}

	#rows() {
		return [.../** @type {NodeListOf<HTMLElement>} */ (
			this.place.querySelectorAll("[data-id]"))];
	}

	/** mark lets one row alone be a stop. It returns the row that was one before. */
	mark() {
		const rows = this.#rows(), was = rows.find((row) => row.dataset.id === this.#id);
		const stop = was ?? this.place.querySelector(this.first) ?? rows[0];
		for (const each of this.place.querySelectorAll("[data-id], [data-id] button")) {
			const tab = each === stop ? "0" : "-1";
			if (each.getAttribute("tabindex") !== tab) each.setAttribute("tabindex", tab);
		}
		return was;
	}

	/**
	 * keep draws the rows anew. The focus stays with its row wherever that is now. It does not go to
	 * another one when its row is gone: the next key would mean that.
	 * @param {() => void} draw
	 */
	keep(draw) {
		const had = this.row(), id = had?.dataset.id, at = document.activeElement;
		draw();
		const is = this.mark();
		if (!had || this.row()?.dataset.id === id && document.activeElement === at
			&& !at?.matches(":disabled")) return;
		(is ?? /** @type {HTMLElement} */ (this.place.querySelector(".list") ?? this.place)).focus();
	}

	/** @param {KeyboardEvent} event */
	#key(event) {
		const at = /** @type {HTMLElement} */ (event.target);
		if (!at.closest(".list, [role=grid]")) return;
		const row = this.row(), rows = this.#rows(), from = row ? rows.indexOf(row) : -1;
		const stops = row ? stopsOf(row) : [], beside = stops.indexOf(at);
		const to = { ArrowDown: rows[from + 1], ArrowUp: rows[from - 1], Home: rows[0],
			End: rows.at(-1), ArrowRight: stops[beside + 1],
			ArrowLeft: stops[beside - 1] }[event.key];
		if (to) {
			event.preventDefault();
			to.focus();
		} else if (event.key === "Enter" && row && at === row) this.act(row);
	}
}
