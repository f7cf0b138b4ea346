// Helpers of the tests of pages with an account.
import { after, before } from "node:test";
import { launch } from "./browser.mjs";
import { Exchange } from "./exchange.mjs";
import { Relay } from "./relay.mjs";

/** script would run if a page did not treat it as text. */
export const script = "<img src=x onerror=alert(1)>";

/** unreachable matches the console messages of a lost connection. */
export const unreachable = [/^WebSocket connection to .* failed/, /^Failed to load resource/];

/** served runs the program, a relay before it and a browser for the tests of a file. */
export function served() {
	const all = { exchange: new Exchange(), relay: new Relay(), browser: undefined };
	before(async () => {
		await all.exchange.start();
		await all.relay.start(all.exchange.port);
		all.browser = await launch();
	});
	after(async () => {
		await all.browser?.close();
		all.relay.end();
		await all.exchange.end();
	});
	return all;
}

/** says waits until the text of an element has a form. */
export const says = (page, selector, form) => page.waitForFunction(
	([selector, form]) =>
		new RegExp(form, "s").test(document.querySelector(selector)?.innerText ?? ""),
	[selector, form]);

/** trade logs in as an account of the demo. */
export async function trade(page, account) {
	await page.click(".account");
	await page.click(`dialog .demo button:has-text("${account}")`);
	await page.waitForSelector("body.trader");
	await page.waitForSelector("dialog", { state: "detached" });
	await says(page, ".sums", "Available.*\\d");
}

/** fill types a limit order. */
export async function fill(page, side, price, amount) {
	await page.click(`#form-side-${side}`);
	await page.fill("#form-price", String(price));
	await page.fill("#form-amount", String(amount));
}

/** send sends the order in the form. */
export const send = (page) => page.click("#panel-form button.main");

/** open waits until a number of orders is open. */
export const open = (page, n) => page.waitForFunction((n) =>
	document.querySelectorAll('#panel-own tr[data-state="open"]').length === n, n);
