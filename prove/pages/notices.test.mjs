// The terminal's notices of own resting orders: fills, triggers, ends.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible, shows, visit } from "./helpers/browser.mjs";
import { until } from "./helpers/exchange.mjs";
import { fill, open, says, send, served, trade, unreachable } from "./helpers/traders.mjs";

const own = served(), { exchange, relay } = own;
const toasts = (page) => page.innerText("#toasts");
const toast = (page, form) => says(page, "#toasts", form);

const terminal = (name, options, body) => test(name, async () => {
	try {
		await visit(own.browser, `${(options.base ?? (() => exchange.base))()}/trade`,
			{ name, ...options, base: undefined }, async (page) => {
				await shows(page, "live");
				await trade(page, "alice");
				await body(page);
			});
	} finally {
		for (const each of ["alice", "bob"]) {
			await exchange.post(each, "/api/v1/order-cancel-all/", { all: 1 });
		}
	}
});

const place = async (fields, account = "alice") => (await exchange.post(account,
	"/api/v1/order/", { pair: "BTC_USDT", ...fields })).oid;

/** hide hides the page, or shows it again, as a browser does with a tab. */
const hide = (page, hidden) => page.evaluate((hidden) => {
	Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
	document.dispatchEvent(new Event("visibilitychange"));
}, hidden);

terminal("a fill, a trigger, an expiry and a cancel of a resting order are announced", {},
	async (page) => {
		const sell = await place({ type: "sell", amount: "0.3", price: "64000" });
		const stop = await place({ type: "buy", amount: "0.1", price: "62000", trigger_price: "65000",
			time_in_force: "gtd", expire_time: Math.floor(Date.now() / 1000) + 300 });
		await open(page, 1);
		assert.equal(await toasts(page), "");
		await exchange.order("bob", "BTC_USDT", "buy", "0.1", "64000");
		await toast(page, `Order ${sell}, Sell BTC/USDT, Limit: Filled: 0\\.10 of 0\\.30 BTC avg. `
			+ "64,000\\.00\\.");
		await exchange.order("bob", "BTC_USDT", "buy", "0.2", "64000");
		await toast(page, `Order ${sell}, .*: Filled completely, 0\\.20 BTC of it now at 64,000`);
		assert.equal((await toasts(page)).match(/Order \d+/g).length, 1, "one for each order");
		await accessible(page, "a toast");
		await exchange.order("bob", "BTC_USDT", "sell", "0.1", "65000");
		await place({ type: "buy", amount: "0.1", price: "65000" });
		await toast(page, `Order ${stop}, Buy BTC/USDT, Stop-limit.*: Triggered`);
		const plain = await place({ type: "buy", amount: "0.1", price: "59000" });
		for (const id of [stop, plain]) {
			await exchange.operator("order", "cancel", String(id));
			await toast(page, `Order ${id}, .*: cancelled: by the operator`);
		}
		const due = await place({ type: "buy", amount: "0.1", price: "60000", time_in_force: "gtd",
			expire_time: Math.floor(Date.now() / 1000) + 3 });
		await toast(page, `Order ${due}, .*: cancelled: expired`);
		await page.click("#toasts p:last-child button");
		await page.waitForFunction((id) =>
			!document.querySelector("#toasts").innerText.includes(id), String(due));
		await fill(page, "buy", "61000", "0.1");
		await send(page);
		await says(page, ".outcome", "^Order placed: \\d+\\.$");
		const before = await toasts(page);
		await open(page, 1);
		await page.click("#panel-own .cancel"); // said beside the table
		await says(page, "#panel-own .told", "Order \\d+ cancelled");
		await open(page, 0);
		assert.equal(await toasts(page), before);
	});

/** hidden returns which of the elements of a page toasts hide. */
const hidden = (page, elements) => page.evaluate((elements) => {
	const seen = (e) => e.offsetHeight > 0;
	return [...document.querySelectorAll("#toasts p")].filter(seen).flatMap((toast) => {
		const a = toast.getBoundingClientRect();
		return [...document.querySelectorAll(elements)].filter(seen).filter((e) => {
			const b = e.getBoundingClientRect();
			return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
		}).map((e) => e.id || e.className);
	});
}, elements);

for (const [width, height] of [[1440, 900], [1366, 650], [1024, 768], [390, 844]]) {
	terminal(`toasts hide no order, no price and no button at ${width}x${height}`,
		{ viewport: { width, height } }, async (page) => {
			if (width < 720) await page.click("#tab-own");
			const ids = [];
			for (let i = 0; i < 12; i++) {
				ids.push(await place({ type: "sell", amount: "0.1", price: `${70_000 + i}` }));
			}
			await open(page, 12);
			for (const id of ids.slice(-4)) await exchange.operator("order", "cancel", String(id));
			await toast(page, `Order ${ids.at(-1)}, .*cancelled`);
			await open(page, 8);
			assert.deepEqual(await hidden(page, "#header, #tabs, #panel-own, #panel-form, "
				+ "#panel-book, #panel-trades, #sides, #chart .bar"), []);
			await page.click("#toasts p:last-child button");
		});
}

terminal("a toast hides neither pair, last price nor form of one who places an order on a phone",
	{ viewport: { width: 390, height: 844 } }, async (page) => {
		await page.click("#sides .sell");
		await page.selectOption("[name=type]", "oco");
		const id = await place({ type: "sell", amount: "0.1", price: "70000",
			oco_trigger_price: "58000.01", oco_price: "57000.01" });
		await open(page, 1);
		await exchange.operator("order", "cancel", String(id));
		await toast(page, `Order ${id}, .*cancelled`);
		assert.deepEqual(await hidden(page, ".pair, .last, #panel-form"), []);
		await page.click("#toasts button");
	});

terminal("events of a hidden page are in its title, and may play a sound", {
	permissions: ["notifications"], init: (page) => page.addInitScript(() => {
		window.said = [];
		const { start } = OscillatorNode.prototype;
		OscillatorNode.prototype.start = function () {
			window.said.push("sound");
			start.call(this);
		};
		window.Notification = class {
			static requestPermission = async () => "granted";
			constructor(title, { body }) {
				window.said.push(body);
			}
		};
	}) }, async (page) => {
	await page.click(".settings");
	for (const name of ["sound", "notify"]) {
		assert(!await page.isChecked(`dialog [name=${name}]`));
		await page.check(`dialog [name=${name}]`);
	}
	await page.click(".done");
	await place({ type: "sell", amount: "0.2", price: "64000" });
	await open(page, 1);
	await hide(page, true);
	await exchange.order("bob", "BTC_USDT", "buy", "0.2", "64000");
	await until("a mark", async () => /^\(1\) .*BTC\/USDT/.test(await page.title()));
	const [sound, body] = await page.evaluate(() => window.said);
	assert.equal(sound, "sound");
	assert.match(body, /^Order \d+, .*Filled completely/);
	await hide(page, false);
	await until("no mark", async () => !/^\(/.test(await page.title()));
});

terminal("events during a lost connection are announced, too",
	{ base: () => relay.base, allowed: unreachable }, async (page) => {
		const id = await place({ type: "sell", amount: "0.2", price: "64000" });
		await open(page, 1);
		relay.down = relay.up = false;
		await exchange.order("bob", "BTC_USDT", "buy", "0.2", "64000");
		relay.cut();
		await toast(page, `Order ${id}, .*Filled completely`);
	});

terminal("an OCO that sells at the market says so, and where it ended", {}, async (page) => {
	await exchange.order("bob", "BTC_USDT", "buy", "0.15", "58000");
	const id = await place({ type: "sell", amount: "0.3", price: "71000", oco_trigger_price: "58000" });
	await open(page, 1);
	await exchange.order("alice", "BTC_USDT", "sell", "0.05", "58000");
	await toast(page, `Order ${id}, Sell BTC/USDT, OCO, stop\\s≤\\s58,000\\.00 at\\smarket, `
		+ "price\\slimit\\s55,100\\.00: Triggered; Filled: 0\\.10 of 0\\.30 BTC avg. 58,000\\.00; the "
		+ "rest is cancelled: nothing more within the price protection, 55,100\\.00\\.");
});
