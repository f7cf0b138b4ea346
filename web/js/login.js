// The dialogs of an account: to log in with a key, and to leave.
import { html, nothing, render } from "../vendor/lit-html/lit-html.js";
import { Refusal } from "./api.js";
import { forget, found, importSecret } from "./session.js";
import { text } from "./text/en.js";
import { open, otherPage } from "./settings.js";

/** @typedef {import("./session.js").Session} Session */
/** @typedef {{account: string, key: string, secret: string}} DemoKey */

/** wordsOf says why a log-in has failed. @param {unknown} failed */
export function wordsOf(failed) {
	if (!(failed instanceof Refusal)) return text.noAnswer;
	const { status, body, message } = failed;
	if (status === 401) return /signature/i.test(message) ? text.wrongSecret : text.unknownKey;
	if (status === 429) return text.tooOften(body?.retry_after ?? "");
	return message || text.noAnswer;
}

/**
 * openLogin asks for a key.
 * @param {Session} session
 * @param {DemoKey[]} demo
 * @param {string} [why] what has ended the log-in before
 */
export function openLogin(session, demo, why = "") {
	/**
	 * The secret's text is dropped as soon as it is here.
	 * @type {Promise<CryptoKey> | undefined}
	 */
	let secret;
	let words = why, isBusy = false;
	const content = document.createElement("div");
	const dialog = open(text.logIn, content);
	dialog.classList.add("login");

	/** @param {string} name */
	const field = (name) =>
		/** @type {HTMLInputElement} */ (content.querySelector(`[name=${name}]`));

	/** take keeps a secret as a key that signs, and empties its field. @param {string} typed */
	function take(typed) {
		field("secret").value = "";
		if (!typed) return;
		secret = importSecret(typed);
		paint();
	}

	/** takeBoth takes a text that names key and secret. @param {string} told */
	function takeBoth(told) {
		const both = found(told);
		if (!both) return false;
		field("key").value = both.key;
		take(both.secret);
		return true;
	}

	/** @param {string} key @param {CryptoKey} hidden @param {boolean} isKept */
	async function enter(key, hidden, isKept) {
		isBusy = true;
		paint();
		try {
			await session.enter(key, hidden);
			if (isKept) await session.keep().catch(() => {});
			dialog.close();
		} catch (failed) {
			words = wordsOf(failed);
			secret = undefined;
		}
		isBusy = false;
		paint();
		field("secret")?.focus();
	}

	/** @param {SubmitEvent} event */
	async function submit(event) {
		event.preventDefault();
		take(field("secret").value);
		const key = field("key").value.trim();
		if (isBusy) return;
		if (key && secret) return enter(key, await secret, field("keep").checked);
		words = text.keyAndSecret;
		paint();
		field(key ? "secret" : "key").focus();
	}

	/** @param {DragEvent} event */
	async function drop(event) {
		event.preventDefault();
		const [file] = event.dataTransfer?.files ?? [];
		const told = file ? file.size < 4096 && await file.text().catch(() => "") // a folder
			: event.dataTransfer?.getData("text");
		words = told && takeBoth(told) ? "" : text.noKeyInFile;
		paint();
	}

	/** @param {ClipboardEvent} event */
	function paste(event) {
		if (takeBoth(event.clipboardData?.getData("text") ?? "")) event.preventDefault();
	}

	const paint = () => render(!globalThis.isSecureContext ? html`<p>${text.notSecure}</p>` : html`
		${demo.length ? html`<p>${text.demo}</p><p class="demo">${demo.map((d) => html`
			<button type="button" ?disabled=${isBusy}
				@click=${async () => enter(d.key, await importSecret(d.secret), false)}
				>${text.tradeAs(d.account)}</button>`)}</p>` : nothing}
		<form class="fields" autocomplete="off" @submit=${submit} @paste=${paste}>
			<label><span>${text.key}</span><input name="key" spellcheck="false" autocomplete="off"
				autocapitalize="off"></label>
			<label><span>${text.secret}</span><input name="secret" type="password"
				autocomplete="off" placeholder=${secret ? text.secretTaken : ""}
				@change=${() => take(field("secret").value)}></label>
			<p class="muted">${text.dropKey}</p>
			<label class="check"><input type="checkbox" name="keep">
				<span>${text.remember}</span></label>
			<p role="alert" class="wrong">${words}</p>
			<button class="main" ?disabled=${isBusy}>${text.logIn}</button>
		</form>
		<p class="muted">${text.aboutKeys}</p>`, content);
	paint();
	if (!globalThis.isSecureContext) return;
	// of all of the dialog, because a browser opens a file that is dropped beside
	dialog.addEventListener("dragover", (event) => event.preventDefault());
	dialog.addEventListener("drop", drop);
	field("key").focus();
}

/**
 * openAccount shows with which key one is logged in.
 * @param {Session} session
 */
export function openAccount(session) {
	const content = document.createElement("div");
	const dialog = open(text.account, content);
	const leave = () => {
		session.leave();
		dialog.close();
	};
	render(html`
		<dl class="keys"><div><dt>${text.account}</dt><dd>${session.account}</dd></div>
			<div><dt>${text.key}</dt><dd>${session.key}</dd></div>
			<div><dt>${text.permissions}</dt><dd>${session.permissions.join(", ")}</dd></div></dl>
		<p class="muted">${session.isShared ? text.shared : text.alone}</p>
		<p class="demo"><button type="button" class="leave" @click=${leave}>${text.logOut}</button>
			<button type="button" class="forget" @click=${async () => {
				leave();
				await forget().catch(() => {}); // with what the browser did not keep
			}}>${text.forget}</button></p>
		<p class="muted">${text.aboutForget}</p><p>${otherPage()}</p>`, content);
}
