// The account page in a browser, against the real program.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { accessible, launch, shows, visit } from "./helpers/browser.mjs";
import { Exchange } from "./helpers/exchange.mjs";

const exchange = new Exchange();
let browser;

before(async () => {
	await exchange.start();
	browser = await launch();
});
after(async () => {
	await browser?.close();
	await exchange.end();
});

// What a browser writes when a connection is lost.
const unreachable = [/^WebSocket connection to .* failed/, /^Failed to load resource/];

/** account gives a live page to a test. */
const account = (name, options, body) => test(name, () =>
	visit(browser, `${(options.base ?? (() => exchange.base))()}/account${options.at ?? ""}`,
		{ name: `account page ${name}`, ...options, base: undefined, at: undefined },
		async (page) => {
			await shows(page, "live");
			await body(page);
		}));

const says = (page, selector, form) => page.waitForFunction(
	([selector, form]) =>
		new RegExp(form, "s").test(document.querySelector(selector)?.innerText ?? ""),
	[selector, form]);

/** enter logs in as an account of the demo. */
async function enter(page, name) {
	await page.click("#header > .account");
	await page.click(`dialog .demo button:has-text("${name}")`);
	await page.waitForSelector("dialog", { state: "detached" });
	await says(page, "#header > .account", name);
}

/** enterWith types a key and its secret. */
async function enterWith(page, { key, secret }) {
	await page.click("#header > .account");
	await page.fill("[name=key]", key);
	await page.fill("[name=secret]", secret);
	await page.press("[name=secret]", "Enter");
	await page.waitForSelector("dialog", { state: "detached" });
}

/** newKey makes a key, and returns it with its secret. */
async function newKey(name, ...flags) {
	const { stdout } = await exchange.operator("key", "create", name, "--json", ...flags);
	return JSON.parse(stdout);
}

/** go shows a section. */
const go = (page, section) => page.click(`#sections a[href="#${section}"]`);

/** rows returns the cells of a table, joined. */
const rows = (page, table) => page.$$eval(`table.${table} tbody tr`, (list) =>
	list.map((row) => [...row.cells].map((cell) => cell.innerText.trim()).join("|")));

const fits = async (page) => {
	const [is, may] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
	assert(is <= may, `${is} px`);
};

account("without a key the page explains itself, and leads to the market", {}, async (page) => {
	await says(page, "#main", "API key");
	await accessible(page, "without a key");
	await page.click(".enter");
	await page.waitForSelector("dialog.login");
	await page.keyboard.press("Escape");
	await page.click("#header .market");
	await page.waitForURL("**/trade");
	await shows(page, "live");
	await page.click("#header a:has-text('Account page')");
	await page.waitForURL("**/account");
	await says(page, "#main", "API key");
});

account("balances are exact and live, and each change of them is told", {}, async (page) => {
	await enter(page, "alice");
	await says(page, ".balances", "BTC\\s+100\\s+0\\s+100\\s");
	await says(page, ".history", "Deposit 3.*Deposit 2.*Deposit 1");
	await exchange.order("bob", "BTC_USDT", "sell", "0.12345678", "64000.01");
	await exchange.order("alice", "BTC_USDT", "buy", "0.12345678", "64000.01");
	await says(page, ".balances", "BTC\\s+100\\.12345678\\s+0\\s+100\\.12345678");
	await says(page, ".balances", "USDT\\s+9,992,098\\.7648454322\\s");
	await page.waitForFunction(() => document.querySelectorAll(".history tbody tr").length === 5);
	const [got, paid] = await rows(page, "history");
	assert.match(got, /\|Trade 1\|BTC\|\+0\.12345678\|BTC_USDT, order \d+, at 64,000\.01$/);
	assert.match(paid, /\|Trade 1\|USDT\|-7,901\.2351545678\|/);
	await exchange.operator("deposit", "alice", "ETH", "0.5");
	await says(page, ".history tbody tr", "Deposit \\d+\\s+ETH\\s+\\+0\\.5");
	await page.selectOption("[name=currency]", "ETH");
	await page.waitForFunction(() => document.querySelectorAll(".history tbody tr").length === 2);
	await accessible(page, "balances");
});

account("a key is told what it may, and is remembered and forgotten", {}, async (page) => {
	const key = await newKey("alice", "--permissions", "read");
	await enterWith(page, key);
	await go(page, "key");
	await says(page, "#main", "Read the account.*not remembered.*Orders and withdraws\\s+100 a second");
	assert.equal(await page.innerText(".facts li"), "Read the account");
	await page.click(".keep");
	await says(page, "#main", "The key is remembered");
	await accessible(page, "the key");
	await page.reload();
	await says(page, "#header > .account", key.key);
	await says(page, "#main", "The key is remembered");
	await page.goto(`${exchange.base}/trade`); // the same key is remembered there
	await says(page, "#header > .account", key.key);
	await page.goBack();
	await page.click(".forget");
	await page.waitForFunction(async () => (await indexedDB.databases()).length === 0);
	await says(page, "#main", "You log in with an API key");
});

account("sections have addresses, and a lost connection is told and found again",
	{ at: "#key", allowed: unreachable }, async (page) => {
		await enter(page, "alice");
		await says(page, "h2", "Key");
		await go(page, "balances");
		await says(page, "h2", "Balances");
		assert.equal(new URL(page.url()).hash, "#balances");
		await says(page, ".history", "Deposit 1");
		await page.goBack();
		await says(page, "h2", "Key");
		await page.goForward();
		await exchange.kill();
		await shows(page, "reconnecting");
		await says(page, "h2", "Not live");
		await accessible(page, "without a connection");
		await exchange.start();
		await shows(page, "live");
		await exchange.operator("deposit", "alice", "BTC", "0.25");
		await says(page, ".history tbody tr", "BTC\\s+\\+0\\.25");
	});

for (const [width, height] of [[1440, 900], [768, 1024], [390, 844]]) {
	for (const theme of ["dark", "light"]) {
		account(`each section is accessible and no wider than ${width} px, ${theme}`,
			{ viewport: { width, height }, cookies: { theme } }, async (page) => {
				await fits(page);
				await enter(page, "alice");
				for (const link of await page.$$("#sections a")) {
					await link.click();
					await page.waitForFunction(() => !/Loading/.test(document.body.innerText));
					await accessible(page, `${width} ${theme} ${await link.innerText()}`);
					await fits(page);
				}
			});
	}
}

test("the account page keeps its budget of bytes", () => {
	const asked = new Set();
	return visit(browser, `${exchange.base}/account`, { name: "budget of the account page",
		init: (page) => page.on("request", (request) => asked.add(new URL(request.url()).pathname)),
	}, async (page) => {
		await shows(page, "live");
		await enter(page, "alice");
		let own = 0;
		for (const path of asked) {
			if (!path.startsWith("/web/") || path.includes("/vendor/")) continue;
			const answer = await fetch(exchange.base + path,
				{ headers: { "Accept-Encoding": "gzip" } });
			own += Number(answer.headers.get("content-length"));
		}
		assert(own > 10_000 && own <= 30_000, `${own} bytes`);
		assert(asked.size <= 40, `${asked.size} requests`);
	});
});
