// What a reader has chosen: colours, in cookies, so that a page comes in them; keys and lists.
import { html, nothing, render } from "../vendor/lit-html/lit-html.js";
import { backCloses } from "./frame.js";
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
