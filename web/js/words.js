// Words for answers, and for rows of an account's lists; and the dialogs of an account: to log in
// with a key, and to leave. They are one file because they pack better so.
import { html, nothing, render } from "../vendor/lit-html/lit-html.js";
import { Refusal } from "./api.js";
import { forget, found, importSecret, legsOf } from "./session.js";
import { open, otherPage } from "./settings.js";
import { decimal, editable, exactly, moment, padded, pairOf, parse, read, shortest } from "./format.js";
import { text } from "./text/en.js";

/** @typedef {import("./session.js").Order} Order */
/** @typedef {import("./session.js").Trade} Trade */

/**
 * readable writes what the exchange says with pairs and numbers as readers know them, and as fields
 * take them. Ids and dates stay as they are.
 * @param {unknown} words
 */
export const readable = (words) => pairOf([words].flat().join(" ")).replace(
	/(?<![\w.:-]|order |draw )\d+(\.\d+)?(?![\w:-]|\.\d)/g,
	(n) => (n.length > 3 ? padded : exactly)(n));

/**
 * refused tells what is missing, or the market's refusal as it is.
 * @param {string} error
 * @param {import("./session.js").Account} account
 */
function refused(error, account) {
	const [, missing, currency] = /^Out of balance -?([\d.]+) (\w+)$/.exec(error) ?? [];
	if (!missing) return readable(error);
	const free = account.free(currency);
	const needed = free + parse(missing.replace(/(\.\d{8})\d+$/, "$1"));
	return text.notEnough(currency, shortest(free), shortest(needed));
}

/**
 * fillOf sums trades up: the amount, and at which price on average.
 * @param {Trade[]} trades
 * @param {import("./api.js").Pair} pair
 * @param {string} [order] without one: all of them
 */
export function fillOf(trades, { priceDigits }, order) {
	let filled = 0n, value = 0n;
	for (const t of legsOf(trades)) {
		if (order && t.order !== order) continue;
		filled += parse(t.amount);
		value += parse(t.amount) * parse(t.price);
	}
	return { filled, average: filled ? decimal(value / filled, priceDigits) : "" };
}

/**
 * doneOf says what was done at once by an order, or by a change of one.
 * @param {any} body of the answer
 * @param {import("./api.js").Pair} pair
 * @param {boolean} [isProtected] the price of an order at the market is the exchange's
 */
export function doneOf(body, pair, isProtected = false) {
	const { trades, prevented, cancel_reason: why, amount_filled: inAll } = body;
	const { filled, average } = fillOf(trades, pair);
	const said = filled ? [text.filledAt(`${shortest(filled)} ${pair.base}`, average)] : [];
	if (prevented) {
		said.push(text.prevented(prevented.map((/** @type {Record<string, string>} */ p) =>
			`${p.o_id} (${padded(p.amount)} ${pair.base})`).join(", ")));
	}
	if (why) {
		const reason = why === "ioc" && isAtMarket(body) && body.price
			? text.beyond(isProtected || body.oco_trigger_price, priced(body.price, pair))
			: text.reasons[/** @type {keyof typeof text.reasons} */ (why)] ?? why;
		const isRest = filled || parse(inAll ?? "0");
		said.push((isRest ? text.restCancelled : text.allCancelled)(reason));
	}
	return said.join("; ");
}

/**
 * wordsOf says why something was not done.
 * @param {import("./session.js").Answer} answer
 * @param {import("./session.js").Account} account
 */
export function wordsOf({ status, body, retryAfter }, account) {
	if (status === 400 && body.error) return refused(body.error, account);
	if (status === 400 && !body.detail) return readable(Object.values(body).flat());
	if (status === 401) return text.keyEnded;
	if (status === 429) return text.tooOften(String(retryAfter || ""));
	if (status === 503) return text.nothingDone(readable(body.detail ?? "").replace(/[^.!?]$/, "$&."));
	return readable(body.detail ?? text.noAnswer);
}

/** wrongOf says what is wrong with a number that was typed. @param {string} typed */
export function wrongOf(typed) {
	if (!typed.trim()) return text.empty;
	const { n, two } = read(typed);
	return two ? text.twoNumbers(editable(two[0]), editable(two[1]))
		: n === 0n ? text.isZero : text.notANumber(decimal(123_450_000_000n, 2));
}

/** sideOf shows a side, in words and with a sign. @param {string} side */
export const sideOf = (side) => html`<span class=${side === "buy" ? "up" : "down"}
	><span aria-hidden="true">${side === "buy" ? "▲" : "▼"}</span> ${
	side === "buy" ? text.buy : text.sell}</span>`;

/**
 * priced writes a price with the digits of its pair.
 * @param {string} price
 * @param {import("./api.js").Pair | undefined} pair
 */
export const priced = (price, pair) => (pair ? decimal(parse(price), pair.priceDigits) : padded(price));

/**
 * isAtMarket reports whether an order has no limit but a worst price, as what a triggered OCO without
 * a limit of its own has become.
 * @param {Partial<Order>} o
 */
export const isAtMarket = (o) => o.order_type === "market"
	|| !!(o.oco_trigger_price && o.triggered && !o.oco_price);

/**
 * priceOf shows the limit of an order.
 * @param {Partial<Order>} o
 * @param {import("./api.js").Pair | undefined} pair
 */
export const priceOf = (o, pair) => (isAtMarket(o) ? text.types.market
	: o.price ? priced(o.price, pair) : text.none);

/** signOf says to which side of a trigger the price goes. @param {boolean} isRise */
export const signOf = (isRise) => (isRise ? "≥" : "≤");

/**
 * typeOf says which order it is: what it waits for, what it shows, and how long it stays.
 * @param {Partial<Order>} o
 * @param {import("./api.js").Pair} [pair]
 */
export function typeOf(o, pair) {
	const { trigger_price: at, oco_trigger_price: leg, oco_price: second, display_amount } = o;
	const isMarket = isAtMarket(o);
	const kind = leg ? text.types.oco : at ? text.types[isMarket ? "stopMarket" : "stop"]
		: text.types[isMarket ? "market" : "limit"];
	const isRise = (o.trigger_when ?? (o.type === "buy" ? "rise" : "fall")) === "rise";
	const { time_in_force: is = "gtc" } = o, force = o.post_only ? "post" : is;
	return [kind, at && text.triggerAt(signOf(isRise), priced(at, pair)),
		leg && text.otherLeg(priced(leg, pair), second ? priced(second, pair) : ""),
		isMarket && o.price && text.atWorst(priced(o.price, pair)),
		display_amount && text.shows(padded(display_amount)),
		force === "gtd" && o.expire_time ? text.untilTime(moment(Number(o.expire_time), false))
			: force === "gtc" || isMarket && force === "ioc" ? ""
				: (text.forces[/** @type {"fok"} */ (force)] ?? force).toLowerCase()].filter(Boolean).join(", ");
}

/** isWaiting reports whether a stop was not triggered yet. @param {Partial<Order>} o */
export const isWaiting = (o) => o.triggered === false && !o.oco_trigger_price;

/** @typedef {import("./session.js").Session} Session */
/** @typedef {{account: string, key: string, secret: string}} DemoKey */

/** failedBy says why a log-in has failed. @param {unknown} failed */
export function failedBy(failed) {
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
			words = failedBy(failed);
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
