// What a reader has chosen: colours, in cookies, so that a page comes in them; keys and lists. And
// what panels share: frames, dialogs, the focus in a grid. They are one file because they pack better
// so.
import { html, nothing, render } from "../vendor/lit-html/lit-html.js";
import { text } from "./text/en.js";

const root = document.documentElement;

/**
 * isOn reports what was chosen under a name: what it is at first where a browser keeps nothing.
 * @param {string} name
 * @param {boolean} first
 */
function isOn(name, first) {
	try {
		return (localStorage.getItem(name) ?? (first ? "on" : "off")) === "on";
	} catch {
		return first;
	}
}

/**
 * turn keeps a choice for the next page.
 * @param {"singleKeys" | "confirm" | "onePair" | "sound" | "notify"} name
 * @param {boolean} is
 */
export function turn(name, is) {
	chosen[name] = is;
	try {
		localStorage.setItem(name, is ? "on" : "off");
	} catch {
		// it counts for this page alone
	}
}

export const chosen = {
	singleKeys: isOn("singleKeys", true),
	/** Each order is asked about before it is sent. */
	confirm: isOn("confirm", false),
	/** Of own orders and trades those of the pair that is shown are listed alone. */
	onePair: isOn("onePair", false),
	/** Own orders that fill or end are heard, or told by the system. */
	sound: isOn("sound", false),
	notify: isOn("notify", false),
	/** Called when the colours have changed. */
	onChange: () => {},
};

/** singleKey returns the key of a shortcut; "": the event is none. @param {KeyboardEvent} event */
export function singleKey(event) {
	const { target } = event;
	const isTyping = target instanceof HTMLElement
		&& target.matches("input:not([type=checkbox]), select, textarea");
	const isNone = isTyping || event.ctrlKey || event.metaKey || event.altKey
		|| !chosen.singleKeys || document.querySelector("dialog[open]");
	return isNone ? "" : event.key;
}

matchMedia("(prefers-color-scheme: light)").addEventListener("change", () => chosen.onChange());

/**
 * choose keeps a choice of colours for the next page, and shows it.
 * @param {"theme" | "palette"} name
 * @param {string} value
 */
function choose(name, value) {
	root.dataset[name] = value;
	document.cookie = `${name}=${value}; Path=/; Max-Age=${value ? 31536000 : 0}; SameSite=Strict`;
	chosen.onChange();
}

/**
 * open shows a dialog until it is closed.
 * @param {string} title
 * @param {unknown} content
 * @param {string} [done] what closes it
 */
export function open(title, content, done = text.done) {
	const dialog = document.createElement("dialog");
	dialog.setAttribute("aria-label", title);
	render(html`<h2>${title}</h2>${content}<form method="dialog"><button
		class="done">${done}</button></form>`, dialog);
	const closed = backCloses(() => dialog.close());
	dialog.addEventListener("close", () => {
		dialog.remove();
		closed();
	});
	dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
	document.body.append(dialog);
	dialog.showModal();
	return dialog;
}

/**
 * @param {"theme" | "palette"} name
 * @param {string} label
 * @param {Record<string, string>} values
 */
const choice = (name, label, values) => html`<label class="choice"><span>${label}</span>
	<select name=${name} @change=${(/** @type {Event} */ event) => choose(name, /** @type {HTMLSelectElement} */ (event.target).value)}>
		${Object.entries(values).map(([value, words]) => html`<option value=${value} ?selected=${root.dataset[name] === value}>${words}</option>`)}
	</select></label>`;

/** @param {"singleKeys" | "confirm" | "sound" | "notify"} name @param {string} label */
const check = (name, label) => html`<label class="choice"><span>${label}</span>
	<input type="checkbox" name=${name} ?checked=${chosen[name]}
		@change=${async (/** @type {Event} */ event) => {
			const box = /** @type {HTMLInputElement} */ (event.target);
			// the browser asks, too
			box.checked &&= name !== "notify"
				|| await Notification.requestPermission() === "granted";
			turn(name, box.checked);
		}}></label>`;

/** otherPage leads from the market to the account, and back. */
export const otherPage = () => (location.pathname === "/account"
	? html`<a href="/trade">${text.market}</a>` : html`<a href="/account">${text.accountPage}</a>`);

export async function openSettings() {
	const dialog = open(text.settings, html`
		${choice("theme", text.theme, text.themes)}
		${choice("palette", text.palette, text.palettes)}
		${check("singleKeys", text.singleKeys)}
		${check("confirm", text.confirms)}
		${check("sound", text.sound)}
		${"Notification" in window ? check("notify", text.notify) : nothing}
		<p>${otherPage()} · <a href="/licenses">${text.licenses}</a>
			<span class="docs" hidden>· <a href="/docs">${text.docs}</a></span></p>`);
	// an exchange may be without them
	const { ok } = await fetch("/docs", { method: "HEAD" }).catch(() => ({ ok: false }));
	/** @type {HTMLElement} */ (dialog.querySelector(".docs")).hidden = !ok;
}

export const settingsButton = html`<button class="settings" title=${text.settings}
		aria-label=${text.settings} @click=${openSettings}>
	<svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round">
		<path d="M2 4.5h7M13 4.5h1M2 11.5h1M7 11.5h7"></path><circle cx="11" cy="4.5" r="2"></circle><circle cx="5" cy="11.5" r="2"></circle></svg>
</button>`;

export function openHelp() {
	open(text.help, html`<dl class="keys">${text.keys.map(([key, words]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${words}</dd></div>`)}</dl>
		${chosen.singleKeys ? nothing : html`<p>${text.keysOff}</p>`}`);
}

const probe = document.createElement("span");
probe.hidden = true;
document.body.append(probe);

/**
 * colour returns what the name of a colour means in the theme that is shown, for canvases.
 * @param {string} name
 * @param {string} [theme] without one: that which is shown
 */
export function colour(name, theme = "") {
	probe.style.colorScheme = theme;
	probe.style.color = `var(${name})`;
	return getComputedStyle(probe).color;
}

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
