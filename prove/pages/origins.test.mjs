// Pages of other origins that try to read the key stored by a page of the exchange in the same browser.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { shows, visit } from "./helpers/browser.mjs";
import { served } from "./helpers/traders.mjs";

const own = served(), { exchange } = own;
const foreign = createServer((_, answer) =>
	answer.setHeader("Content-Type", "text/html").end("<!doctype html><title>a foreign page</title>"));
before(() => new Promise((done) => foreign.listen(0, "127.0.0.1", done)));
after(() => foreign.close());

/** Attacks from a page; each returns its result. */
const tries = {
	databases: () => indexedDB.databases().then((all) => all.length),
	key: () => new Promise((done) => {
		const request = indexedDB.open("key", 1);
		request.onupgradeneeded = () => done("a new one");
		request.onsuccess = () => done("the key's");
	}),
	storage: () => localStorage.length,
	page: ({ base }) => fetch(`${base}/trade`).then((answer) => answer.text()),
	blindPage: ({ base }) => fetch(`${base}/trade`, { mode: "no-cors" }).then((answer) => answer.type),
	module: ({ program }) => import(program).then(() => "imported"),
	script: ({ program }) => new Promise((done, failed) => {
		const script = document.createElement("script");
		script.src = program;
		script.onload = () => done("loaded");
		script.onerror = () => failed(new TypeError("no script"));
		document.head.append(script);
	}),
	wallets: ({ base }) => fetch(`${base}/api/v1/wallets/`, { credentials: "include" })
		.then((answer) => answer.status),
	frame: ({ base }) => new Promise((done, failed) => {
		const frame = document.createElement("iframe");
		frame.src = `${base}/trade`;
		frame.onload = () => {
			try {
				done(frame.contentWindow.document.body.className);
			} catch (refused) {
				failed(refused);
			}
		};
		document.body.append(frame);
	}),
};

/** attempt runs all attacks from a page, and returns each one's result or refusal. */
async function attempt(page, base, program) {
	const got = {};
	for (const [name, body] of Object.entries(tries)) {
		got[name] = await page.evaluate(body, { base, program })
			.catch((refused) => /(\w+): /.exec(refused.message.replace(/^page\.evaluate: /, ""))[1]);
	}
	return got;
}

test("a page of another origin or port reaches neither the key nor the page that keeps it", () =>
	visit(own.browser, `${exchange.base}/trade`, { name: "origins" }, async (page) => {
		await shows(page, "live");
		await page.click("#header > .account");
		const { stdout } = await exchange.operator("key", "create", "alice", "--json");
		const { key, secret } = JSON.parse(stdout);
		await page.fill("[name=key]", key);
		await page.fill("[name=secret]", secret);
		await page.check("[name=keep]");
		await page.press("[name=secret]", "Enter");
		await page.waitForSelector("body.trader");
		const program = await page.getAttribute('script[type="module"]', "src");
		const { port } = foreign.address();
		const context = page.context();
		for (const host of ["127.0.0.1", "localhost"]) {
			const other = await context.newPage();
			await other.goto(`http://${host}:${port}/`);
			const got = await attempt(other, exchange.base, new URL(program, exchange.base).href);
			assert.deepEqual(got, { databases: 0, key: "a new one", storage: 0, page: "TypeError",
				blindPage: "TypeError", module: "TypeError", script: "TypeError", wallets: "TypeError",
				frame: "SecurityError" }, host);

			// A page that it opens has the key, and is out of its reach.
			const [opened] = await Promise.all([context.waitForEvent("page"),
				other.evaluate((address) => {
					window.opened = window.open(address);
				}, `${exchange.base}/trade`)]);
			await opened.waitForSelector("body.trader");
			assert.equal(await opened.evaluate(() => window.opener), null);
			assert.equal(await other.evaluate(() => window.opened.closed), true);
			await opened.close();
			await other.close();
		}
	}));
