// A trader's account in a browser, against the real program: log-in, orders, own tables.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { accessible, painted, shows, visit } from "./helpers/browser.mjs";
import { until } from "./helpers/exchange.mjs";
import { fill, open, says, script, send, served, trade, unreachable } from "./helpers/traders.mjs";

const own = served(), { exchange, relay } = own;

// Console messages of a refused key.
const refused = [/^Failed to load resource: the server responded with a status of 401/];

/** terminal gives a live terminal to a test. */
const terminal = (name, options, body) => test(name, () =>
	visit(own.browser, `${(options.base ?? (() => exchange.base))()}/trade`,
		{ name, ...options, base: undefined }, async (page) => {
			await shows(page, "live");
			await body(page);
		}));

/** enter types a key and its secret. */
async function enter(page, key, secret) {
	if (!await page.$("dialog")) await page.click("#header > .account");
	await page.fill("[name=key]", key);
	await page.fill("[name=secret]", secret);
	await page.press("[name=secret]", "Enter");
}

const rows = (page) => page.$$eval("#panel-own tbody tr", (list) =>
	list.map((row) => [...row.cells].map((cell) => cell.innerText.trim()).join("|")));
const cancelAll = (account) => exchange.post(account, "/api/v1/order-cancel-all/", { all: 1 });

/** newKey makes a key of alice's, and returns it with its secret. */
async function newKey(...flags) {
	const { stdout } = await exchange.operator("key", "create", "alice", "--json", ...flags);
	return JSON.parse(stdout);
}

terminal("a key logs in, and nothing has the text of its secret", { allowed: refused,
	init: (page) => {
		page.sent = [];
		page.on("request", (r) =>
			page.sent.push(r.url(), r.postData() ?? "", JSON.stringify(r.headers())));
		page.on("websocket", (socket) =>
			socket.on("framesent", ({ payload }) => page.sent.push(String(payload))));
	} }, async (page) => {
	const { key, secret } = await newKey("--permissions", "read,trade");
	await enter(page, key, "not-the-secret");
	await says(page, ".login .wrong", "another secret");
	await enter(page, "no-such-key", secret);
	await says(page, ".login .wrong", "is unknown, or was revoked");
	await accessible(page, "the log-in");
	await page.check("[name=keep]");
	await enter(page, key, secret);
	await page.waitForSelector("body.trader");
	assert.equal(await page.innerText("#header > .account"), "alice");
	const kept = () => page.evaluate(async () => {
		const request = indexedDB.open("key");
		await new Promise((done) => (request.onsuccess = done));
		const got = request.result.transaction("key").objectStore("key").get("key");
		await new Promise((done) => (got.onsuccess = done));
		request.result.close();
		const exported = await crypto.subtle.exportKey("raw", got.result.secret)
			.catch((e) => e.name);
		return { exported, shown: JSON.stringify([got.result, { ...localStorage },
			{ ...sessionStorage }, document.cookie, document.documentElement.outerHTML,
			[...document.querySelectorAll("input")].map((input) => input.value)]) };
	});
	const { exported, shown } = await kept();
	assert.equal(exported, "InvalidAccessError");
	assert(!shown.includes(secret) && !page.sent.join().includes(secret));
	assert(page.sent.join().includes(key));
	await page.reload();
	await page.waitForSelector("body.trader");
	await page.click("#header > .account");
	await accessible(page, "the account");
	await page.click("dialog .forget");
	await page.waitForFunction(async () => (await indexedDB.databases()).length === 0);
	await page.reload();
	await shows(page, "live");
	assert.equal(await page.innerText("#header > .account"), "Log in");
	assert(!await page.isVisible("#panel-own") && !await page.isVisible("#panel-form"));
});

terminal("a log-in is of all tabs and both pages, until the last one closes or it is ended", {},
	async (page) => {
		const context = page.context(), of = (p) => p.innerText("#header > .account");
		const in_ = (p, key) => says(p, "#header > .account", `^${key}$`);
		const visit = async (path) => {
			const other = await context.newPage();
			await other.goto(exchange.base + path);
			await shows(other, "live");
			return other;
		};
		const early = await visit("/trade"); // before there is a session
		await trade(page, "alice");
		const key = await of(page);
		assert.equal(key, "alice", "the account's name, and not a key");
		await in_(early, key);
		await page.reload();
		await page.waitForSelector("body.trader");
		const account = await visit("/account");
		await in_(account, key);
		// a key whose nonces grow is read by all of them at once
		const plain = await newKey();
		await page.click("#header > .account");
		await page.click("dialog .leave");
		for (const p of [page, early, account]) await in_(p, "Log in");
		await enter(page, plain.key, plain.secret);
		for (const p of [page, early, account]) await in_(p, "alice");
		const refused = [];
		for (const p of [page, early, account]) {
			p.on("response", (answer) => answer.status() === 401 && refused.push(answer.url()));
		}
		for (let i = 0; i < 2; i++) {
			await Promise.all([page, early, account].map(async (p) => {
				await p.reload();
				await in_(p, "alice");
			}));
		}
		await says(account, ".history", "Deposit 1");
		assert.deepEqual(refused, []);
		assert.doesNotMatch(await page.innerText("#panel-own"), /refused a nonce/);
		for (const p of [early, account]) await p.close();
		await page.goto(`${exchange.base}/account`);
		await in_(page, "alice");
		const last = await context.newPage();
		await page.close(); // so there is no tab of the exchange
		await last.goto(`${exchange.base}/trade`);
		await shows(last, "live");
		await last.waitForFunction(async () => (await indexedDB.databases()).length === 0);
		assert.equal(await of(last), "Log in");
	});

terminal("a pasted text logs in, and a revoked key or a frozen account is reported",
	{ allowed: refused }, async (page) => { // of a read in flight
	const { key, secret } = await newKey();
	await page.click("#header > .account");
	await page.waitForSelector(".login [name=key]");
	await page.evaluate((text) => {
		const clipboardData = new DataTransfer();
		clipboardData.setData("text", text);
		document.querySelector("[name=key]").dispatchEvent(
			new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
	}, `key     ${key}\nsecret  ${secret}\n`);
	assert.equal(await page.inputValue("[name=secret]"), "");
	await page.click(".login .main");
	await page.waitForSelector("body.trader");
	await exchange.operator("key", "revoke", key);
	await says(page, ".login .wrong", "\\w+");
	await enter(page, key, secret);
	await says(page, ".login .wrong", "was revoked");
	await page.click("dialog .done");
	await trade(page, "bob");
	await exchange.operator("account", "freeze", "bob");
	await says(page, ".login .wrong", "frozen");
	await exchange.operator("account", "unfreeze", "bob");
});

terminal("a key that may only read has no form, and one that another program uses says so",
	{ allowed: refused },
	async (page) => {
		const { key, secret } = await newKey("--permissions", "read");
		const answer = await fetch(`${exchange.base}/api/v1/wallets/`, { headers: { "X-KEY": key,
			"X-NONCE": String(BigInt(Date.now()) * 1_000_000n),
			"X-SIGN": createHmac("sha256", secret).update(key).digest("hex") } });
		assert.equal(answer.status, 200);
		await enter(page, key, secret);
		await page.waitForSelector("body.account");
		await says(page, "#panel-own .told", "refused a nonce");
		await says(page, "#panel-own .list", "This key may not trade\\.");
		await page.click('button:has-text("My trades")');
		await says(page, "#panel-own .list", "No trades yet");
		await page.click('button:has-text("Balances")');
		await says(page, "#panel-own .list", "BTC.*100\\.00");
		assert(!await page.isVisible("#panel-form") && !await page.$("#panel-own .all"));
		await page.click("#header > .account");
		await says(page, "dialog", "Use it here alone");
	});

terminal("an order rests, is filled in parts, and is cancelled", {}, async (page) => {
	await trade(page, "alice");
	await fill(page, "sell", "64000.5", "0.3");
	assert.equal(await page.inputValue("#form-total"), "19200.15");
	await send(page);
	await says(page, ".outcome", "Order placed: \\d+\\.");
	await open(page, 1);
	assert.match((await rows(page))[0],
		/\|BTC\/USDT\|▼ Sell\|Limit\s+Open\|64,000\.50\|0\.30\|0\.00\|Amend\s+Cancel$/);
	await page.waitForSelector("#panel-book .sell .mark:not([hidden])");
	await exchange.order("bob", "BTC_USDT", "buy", "0.12345678", "64000.5");
	await says(page, "#panel-own .orders", "Open\\s.*0\\.30000000\\s+0\\.12345678\\s+avg. [\\d,.]+");
	await page.click('button:has-text("My trades")');
	await says(page, "#panel-own .trades",
		"Sell\\s+64,000\\.50\\s+0\\.12345678\\s+0\\.00 USDT\\s+Maker");
	await page.click('button:has-text("Balances")');
	await says(page, "#panel-own .balances",
		"BTC\\s+99\\.87654322\\s+0\\.17654322\\s+99\\.70");
	await page.click('button:has-text("Open orders")');
	await page.click("#panel-own tbody .cancel");
	await says(page, "#panel-own .told", "Order \\d+ cancelled");
	await open(page, 0);
	await exchange.order("bob", "BTC_USDT", "buy", "0.05", "63000");
	await fill(page, "sell", "63000", "0.02");
	await page.press("#form-amount", "Enter");
	await says(page, ".outcome", "0\\.02 BTC filled at 63,000\\.00 on average");
	await cancelAll("bob");
});

terminal("errors are shown at their fields", {}, async (page) => {
	await trade(page, "bob");
	await fill(page, "buy", "1,000", "0.1");
	await send(page);
	await says(page, "#wrong-form-price", "could be 1000 or 1:");
	assert.equal(await page.evaluate(() => document.activeElement.id), "form-price");
	await fill(page, "buy", "1000.123", "0.1");
	await send(page);
	await says(page, "#wrong-form-price", "\\w+");
	assert.equal(await page.getAttribute("#form-price", "aria-invalid"), "true");
	await fill(page, "buy", "0.001", "0.1");
	await send(page);
	await says(page, "#wrong-form-price", "\\w+");
	await accessible(page, "a refused order");
	await fill(page, "buy", "0.5", "0.1");
	await send(page);
	await says(page, "#wrong-form-amount", "at least 1 USDT\\.$");
	await page.selectOption("[name=type]", "market");
	await page.fill("#form-amount", "0.1");
	await send(page);
	await says(page, ".outcome", "Nothing to trade with on BTC/USDT");
	assert.equal((await exchange.get("bob", "/api/v1/orders/own/?status=1")).length, 0);
});

terminal("each type of order is sent as the API has it", {}, async (page) => {
	await exchange.order("alice", "BTC_USDT", "sell", "1", "64000");
	await exchange.order("bob", "BTC_USDT", "buy", "0.1", "64000");
	await trade(page, "bob");
	const outcome = async (what, form) => {
		await send(page);
		await says(page, ".outcome", form);
		return (await exchange.get("bob", "/api/v1/orders/own/?limit=1"))[0] ?? assert.fail(what);
	};
	await page.selectOption("[name=type]", "market");
	await page.fill("#form-total", "6400");
	let order = await outcome("market", "0\\.10 BTC filled at 64,000");
	assert.equal(order.quote_amount, 6400);
	assert.match(await page.innerText(".outcome"), /^Order placed: \d+/);
	await page.selectOption("[name=type]", "stop");
	await page.fill("#form-trigger", "65000");
	await page.fill("#form-price", "65100");
	await page.fill("#form-amount", "0.2");
	order = await outcome("stop", "Order placed: \\d+\\.");
	await says(page, "#panel-own .orders", "Stop-limit, trigger\\s≥\\s65,000\\.00.*Waiting");
	assert.deepEqual([order.trigger_price, order.price, order.triggered], [65000, 65100, false]);
	await page.selectOption("[name=type]", "limit");
	await fill(page, "buy", "63000", "1");
	await page.selectOption("[name=force]", "post");
	await page.click(".more summary");
	await page.fill("#form-display", "0.1");
	order = await outcome("post-only", "Order placed: \\d+\\.");
	await says(page, "#panel-own .orders", "Limit, iceberg: visible 0\\.10, post-only");
	assert.deepEqual([order.post_only, order.display_amount], [true, 0.1]);
	await page.fill("#form-display", "");
	await page.selectOption("[name=force]", "fok");
	await fill(page, "buy", "63000", "1");
	await send(page);
	await page.click("dialog .yes"); // it asks, because too little is there
	await says(page, ".outcome", "\\d; cancelled: not filled at once as a whole");
	await page.selectOption("[name=force]", "gtd");
	await fill(page, "buy", "62000", "1");
	await send(page);
	await says(page, "#wrong-form-until", "Choose");
	await page.fill("#form-until", new Date(Date.now() + 864e5).toISOString().slice(0, 16));
	order = await outcome("gtd", "Order placed: \\d+\\.");
	assert.equal(order.time_in_force, "gtd");
	await page.click("#form-side-sell");
	await page.selectOption("[name=type]", "oco");
	await page.fill("#form-price", "70000");
	await page.fill("#form-trigger", "60000");
	await page.click(".shares button:first-child");
	await send(page);
	await page.click("dialog .yes"); // it asks, because nothing is beyond the trigger
	await says(page, ".outcome", "Order placed: \\d+\\.");
	[order] = await exchange.get("bob", "/api/v1/orders/own/?limit=1");
	assert.equal(order.oco_trigger_price, 60000);
	await page.click("#panel-own .all");
	await page.click("dialog .yes");
	await says(page, "#panel-own .told", "4 orders of BTC/USDT cancelled");
	await open(page, 0);
	await cancelAll("alice");
});

terminal("with confirmation on, each order is asked about, with a summary", {},
	async (page) => {
		await trade(page, "alice");
		await page.click(".settings");
		assert(!await page.isChecked("dialog [name=confirm]"));
		await page.check("dialog [name=confirm]");
		await accessible(page, "the settings");
		await page.click(".done");
		const asks = (form) => says(page, "dialog[open]", `^Confirm: Sell BTC.*${form}`);
		await fill(page, "sell", "64000", "x");
		await page.press("#form-amount", "Enter");
		await says(page, "#wrong-form-amount", "Type a number such as 1,234\\.50"); // and asks nothing
		assert.equal(await page.$("dialog"), null);
		await page.fill("#form-amount", "0.5");
		await page.selectOption("[name=force]", "post");
		await page.press("#form-amount", "Enter");
		await asks("Limit.*Price\\s+64,000\\.00 USDT.*Amount\\s+0\\.50 BTC.*Post-only");
		await accessible(page, "an order to be confirmed");
		await exchange.operator("pair", "halt", "BTC_USDT");
		await says(page, "dialog .yes", "Halted");
		await exchange.operator("pair", "resume", "BTC_USDT");
		await says(page, "dialog .yes", "^Sell BTC$");
		assert.deepEqual(await exchange.get("alice", "/api/v1/orders/own/?status=1"), []);
		await page.keyboard.press("Escape");
		await page.fill("#form-amount", "0.25");
		await page.press("#form-amount", "Enter");
		await asks("0\\.25 BTC");
		await page.keyboard.press("Enter");
		await says(page, ".outcome", "Order placed: \\d+\\.");
		const [order] = await exchange.get("alice", "/api/v1/orders/own/?status=1");
		assert.deepEqual([order.amount, order.post_only], [0.25, true]);
		await page.reload();
		await page.waitForSelector("body.trader");
		await fill(page, "sell", "65000", "0.1");
		await send(page);
		await asks(""); // it is remembered
		await cancelAll("alice");
	});

terminal("self-trade prevention is chosen, and its cancels are reported", {}, async (page) => {
	const { oid } = await exchange.order("alice", "BTC_USDT", "sell", "0.5", "64000");
	await trade(page, "alice");
	await open(page, 1);
	await page.click(".more summary");
	const buys = async (mode, form) => {
		await page.selectOption("[name=self]", mode);
		await fill(page, "buy", "64000", "0.2");
		await send(page);
		await says(page, ".outcome", form);
		return (await exchange.get("alice", "/api/v1/orders/own/?limit=1"))[0];
	};
	let order = await buys("cancel_newest", "\\d; cancelled: self-trade prevention");
	assert.deepEqual([order.self_trade, order.status], ["cancel_newest", 2]);
	order = await buys("", "0\\.20 BTC filled at 64,000");
	assert.equal(order.self_trade, undefined);
	order = await buys("none", "0\\.20 BTC filled at 64,000");
	order = await buys("cancel_oldest",
		`self-trade prevention has cancelled your order ${oid} \\(0\\.10 BTC\\)\\.`);
	assert.equal(order.self_trade, "cancel_oldest");
	await page.click("#panel-own .cancel");
	await open(page, 0);
	await exchange.order("alice", "BTC_USDT", "sell", "0.5", "64000");
	await open(page, 1);
	order = await buys("cancel_both",
		"has cancelled your order \\d+ \\(0\\.50 BTC\\); cancelled: self-trade prevention");
	assert.equal(order.cancel_reason, "self_trade");
	await open(page, 0);
});

terminal("stops have the instructions of limit orders, and one that cancels another is post-only", {},
	async (page) => {
		await trade(page, "alice");
		await page.click("#form-side-sell");
		await page.selectOption("[name=type]", "stop");
		await page.selectOption("[name=force]", "gtd");
		await page.fill("#form-trigger", "60000");
		await page.fill("#form-price", "59000");
		await page.fill("#form-amount", "1");
		await page.click(".more summary");
		await page.fill("#form-display", "0.1");
		await page.fill("#form-until", new Date(Date.now() + 864e5).toISOString().slice(0, 16));
		await send(page);
		await says(page, ".outcome", "Order placed: \\d+\\.");
		const newest = async () => (await exchange.get("alice", "/api/v1/orders/own/?limit=1"))[0];
		let order = await newest();
		assert.deepEqual([order.trigger_price, order.time_in_force, order.display_amount],
			[60000, "gtd", 0.1]);
		await page.selectOption("[name=type]", "stopMarket");
		await page.selectOption("[name=force]", "fok");
		await page.fill("#form-amount", "1");
		await send(page);
		await page.click("dialog .yes"); // it asks, because nothing is beyond the trigger
		await says(page, ".outcome", "Order placed: \\d+\\.");
		order = await newest();
		assert.deepEqual([order.order_type, order.time_in_force], ["market", "fok"]);
		await page.selectOption("[name=type]", "oco");
		await page.selectOption("[name=force]", "post");
		await page.fill("#form-price", "70000");
		await page.fill("#form-second", "58000");
		await page.fill("#form-amount", "1");
		await send(page);
		await says(page, ".outcome", "Order placed: \\d+\\.");
		order = await newest();
		assert.deepEqual([order.post_only, order.oco_price], [true, 58000]);
		await cancelAll("alice");
	});

terminal("own orders and trades are of all pairs or of one, and the choice is kept", {},
	async (page) => {
		for (const [pair, price] of [["BTC_USDT", "64000"], ["ETH_BTC", "0.05"]]) {
			await exchange.order("alice", pair, "buy", "0.5", price);
			await exchange.order("alice", pair, "sell", "0.1", price);
		}
		await trade(page, "alice");
		await says(page, "#panel-own .bar", "Open orders \\(2\\)");
		await page.click('button:has-text("My trades")');
		await says(page, "#panel-own .trades", "ETH/BTC.*BTC/USDT");
		const onePair = page.getByRole("switch", { name: "This pair only" });
		for (const isOn of [false, true]) { // on and off are told apart, and neither looks like a box
			const look = await onePair.evaluate((e) => ({ isWide: e.offsetWidth > 1.5 * e.offsetHeight,
				appearance: getComputedStyle(e).appearance }));
			assert.deepEqual(look, { isWide: true, appearance: "none" });
			await accessible(page, `a switch that is ${isOn}`);
			if (!isOn) await page.click("#panel-own .one");
		}
		await says(page, "#panel-own .bar", "Open orders \\(1\\)");
		const pairs = () => page.$$eval("#panel-own .trades td:nth-child(2)",
			(list) => [...new Set(list.map((cell) => cell.innerText))]);
		await until("one pair", async () => String(await pairs()) === "BTC/USDT");
		await page.keyboard.press("/");
		await page.keyboard.type("ethb");
		await page.keyboard.press("Enter");
		await until("the other pair", async () => String(await pairs()) === "ETH/BTC");
		await page.reload();
		await page.waitForSelector("body.trader");
		await says(page, "#panel-own .bar", "Open orders \\(1\\)");
		assert(await page.isChecked("#panel-own .one"));
		await page.click("#panel-own .one");
		await says(page, "#panel-own .bar", "Open orders \\(2\\)");
		await cancelAll("alice");
		await open(page, 0);
	});

terminal("own trades of all pairs are read to the oldest, however the pairs were read", {},
	async (page) => {
		for (let i = 0; i < 55; i++) {
			for (const [pair, price] of [["BTC_USDT", "64000"], ["ETH_BTC", "0.05"]]) {
				await exchange.order("bob", pair, "sell", "0.01", price);
				await exchange.order("bob", pair, "buy", "0.01", price);
			}
		}
		// one with himself is there for both of its orders
		const all = (await exchange.get("bob", "/api/v1/exchanges/own/?limit=1000&both_sides=1"))
			.flatMap((t) => (t.maker_order ? [t, t] : t));
		assert(all.length >= 220);
		await trade(page, "bob");
		await page.click('button:has-text("My trades")');
		const shown = (n) => page.waitForFunction((n) => {
			const list = document.querySelector("#panel-own .list");
			list.scrollTop = list.scrollHeight; // more come as one scrolls
			return list.querySelectorAll("tbody tr").length === n;
		}, n);
		await page.click("#panel-own .one");
		await shown(all.filter((t) => t.pair === "BTC_USDT").length);
		await page.click("#panel-own .one");
		await shown(all.length);
	});

terminal("the book and the tables are grids of one stop each, and keep the focus", {},
	async (page) => {
		const key = async (...keys) => {
			for (const k of keys) await page.keyboard.press(k);
		};
		const at = () => page.evaluate(() => document.activeElement.dataset.id
			?? document.activeElement.className);
		const stops = (grid) => page.$$eval(`${grid} [tabindex="0"]`, (list) => list.length);
		const place = async (price) =>
			String((await exchange.order("alice", "BTC_USDT", "sell", "0.5", price)).oid);
		const first = await place("64000"), second = await place("65000");
		await exchange.order("bob", "BTC_USDT", "buy", "0.1", "63000");
		await trade(page, "alice");
		await open(page, 2);
		await key("o");
		assert.equal(await at(), second);
		await key("ArrowDown", "ArrowDown");
		assert.equal(await at(), first);
		assert.equal(await stops("#panel-own .list"), 1);
		const third = await place("66000");
		await open(page, 3);
		assert.equal(await at(), first, "the focus is with its row");
		await key("Home");
		assert.equal(await at(), third);
		await key("End", "ArrowRight");
		assert.equal(await at(), "amend");
		await key("ArrowRight");
		assert.equal(await at(), "cancel");
		await key("ArrowLeft", "ArrowLeft", "Enter");
		await page.waitForSelector("dialog .amend");
		assert.equal(await page.inputValue("dialog [name=price]"), "64000");
		await key("Escape", "c");
		await open(page, 2);
		await until("the focus is at no other order", async () => await at() === "list");
		await key("c", "ArrowDown");
		assert.equal(await at(), third);
		await open(page, 2);

		await page.waitForFunction(() =>
			document.querySelectorAll("#panel-book .sell [data-id]").length === 2);
		assert.equal(await stops("#panel-book .table"), 1);
		await page.focus("#panel-book .buy [data-id]");
		assert.equal(await at(), "buy-0");
		await key("ArrowUp");
		const row = () => page.evaluate(() => document.activeElement.innerText.match(/[\d,.]+/)[0]);
		assert.equal(await row(), "65,000.00");
		await key("Enter");
		assert.equal(await page.inputValue("#form-price"), "65000");
		await key("ArrowUp");
		await place("67000");
		await page.waitForFunction(() =>
			document.querySelectorAll("#panel-book .sell [data-id]").length === 3);
		assert.equal(await row(), "66,000.00", "the focus stays while the book changes");
		await key("Home");
		assert.equal(await row(), "67,000.00");
		await key("End");
		assert.equal(await row(), "63,000.00");
		assert.equal(await stops("#panel-book .table"), 1);
		await page.click('button:has-text("Balances")');
		await page.focus("#panel-own tbody tr");
		await key("End", "Home", "c", "e");
		assert.equal(await stops("#panel-own .list"), 1);
		assert.equal(await page.evaluate(() => document.activeElement.localName), "tr");
		await cancelAll("alice");
		await cancelAll("bob");
	});

terminal("an order without an answer is found, once",
	{ base: () => relay.base, allowed: unreachable },
	async (page) => {
		await trade(page, "alice");
		const own = () => exchange.get("alice", "/api/v1/orders/own/?status=1");
		relay.down = false; // the order arrives, its answer does not
		await fill(page, "buy", "50000", "0.1");
		await send(page);
		await page.waitForSelector('#panel-own tr[data-state="sending"]');
		await until("the order is in", async () => (await own()).length === 1);
		relay.cut();
		await says(page, ".outcome", "Order placed: \\d+");
		await open(page, 1);
		await page.waitForFunction(() => sessionStorage.getItem("orders") === "[]");
		await shows(page, "live");
		await page.waitForFunction(() => !document.querySelector("#panel-form .main").disabled);
		relay.up = false; // the order does not arrive
		await fill(page, "buy", "50001", "0.1");
		await send(page);
		await page.waitForSelector('#panel-own tr[data-state="sending"]');
		relay.cut();
		await says(page, ".outcome", "unknown");
		await page.waitForSelector('#panel-own tr[data-state="unseen"]');
		await page.reload(); // over which it is known
		await page.waitForSelector('#panel-own tr[data-state="unseen"]');
		await accessible(page, "an order that was not seen");
		await page.click("#panel-own .again");
		await open(page, 2);
		const ids = (await own()).map((o) => o.client_order_id);
		assert.equal(new Set(ids).size, 2);
		for (const id of ids) assert.match(id, /^web-[\w-]{22}$/);
		await cancelAll("alice");
	});

terminal("an exchange that is killed takes no open order with it", { allowed: unreachable },
	async (page) => {
	await trade(page, "alice");
	await fill(page, "buy", "40000", "0.1");
	await send(page);
	await open(page, 1);
	await exchange.kill();
	await shows(page, "reconnecting");
	assert.equal(await page.innerText("#panel-form .main"), "Not live");
	await accessible(page, "an account without a connection");
	await exchange.start();
	await shows(page, "live");
	await page.waitForFunction(() => !document.querySelector("#panel-form .main").disabled);
	await exchange.order("bob", "BTC_USDT", "sell", "0.04", "40000");
	await says(page, "#panel-own .orders", "Open\\s.*0\\.10\\s+0\\.04\\s+avg. [\\d,.]+");
	await page.click("#panel-own tbody .cancel");
	await open(page, 0);
});

terminal("texts of others are text", {}, async (page) => {
	await page.route("**/api/v1/exchanges/own/**", (route) => route.fulfill({ json: [{ id: 1,
		pair: "BTC_USDT", my_side: "buy", type: "buy", price: 1, amount: 1, timestamp: 1,
		fee: script, fee_currency: script, order: script, maker: true }] }));
	await trade(page, "alice");
	await page.click('button:has-text("My trades")');
	await says(page, "#panel-own .list", "onerror");
	assert.equal(await page.$("#panel-own img"), null);
});

terminal("from the log-in to a cancelled order by keyboard alone", {}, async (page) => {
	const key = async (...keys) => {
		for (const k of keys) await page.keyboard.press(k);
	};
	await page.focus("#header > .account");
	await key("Enter");
	await page.waitForSelector("dialog .demo");
	await page.keyboard.type("demo-alice");
	await key("Tab");
	await page.keyboard.type("demo-alice-secret");
	await key("Enter");
	await page.waitForSelector("body.trader");
	await page.waitForSelector("dialog", { state: "detached" });
	await key("b", "p");
	await page.keyboard.type("39000");
	await key("ArrowUp", "Shift+ArrowUp");
	assert.equal(await page.inputValue("#form-price"), "39000.11");
	await key("Escape", "a");
	await page.keyboard.type("0.01");
	await key("Enter");
	await open(page, 1);
	await key("Escape", "c", "C"); // of no order, and by caps lock
	await key("o", "c");
	await open(page, 0);
	await says(page, "#panel-own .told", "^Order \\d+ cancelled");
});

for (const [width, height] of [[1440, 900], [768, 1024], [390, 844]]) {
	for (const theme of ["dark", "light"]) {
		terminal(`an account is accessible and no wider than ${width} px, ${theme}`,
			{ viewport: { width, height }, cookies: { theme } }, async (page) => {
				await trade(page, "alice");
				if (width < 720) await page.click("#sides .sell");
				await fill(page, "sell", "90000", "1");
				if (width !== 1440) await accessible(page, `${width} ${theme} the form`);
				await send(page);
				await says(page, ".outcome", "Order placed: \\d+");
				if (width < 720) {
					await page.click("#panel-form .close");
					await page.click("#tab-own");
				}
				await page.waitForSelector('#panel-own tr[data-state="open"]');
				for (const tab of ["My trades", "Balances", "Open orders"]) {
					await page.click(`#panel-own button:has-text("${tab}")`);
					if (width !== 768) await accessible(page, `${width} ${theme} ${tab}`);
				}
				const [is, may] = await page.evaluate(() =>
					[document.documentElement.scrollWidth, innerWidth]);
				assert(is <= may, `${is} px`);
				await page.click("#panel-own .all");
				await accessible(page, `${width} ${theme} a question`);
				await page.click("dialog .yes");
				await open(page, 0);
			});
	}
}

for (const [width, height] of [[1366, 650], [1280, 600], [1080, 700], [1024, 768]]) {
	terminal(`a trader sees the newest trades at ${width}x${height}, and can send an order`,
		{ viewport: { width, height } }, async (page) => {
			await exchange.order("bob", "BTC_USDT", "buy", "0.1", "62000");
			await exchange.order("alice", "BTC_USDT", "sell", "0.1", "62000");
			await trade(page, "alice");
			for (const type of ["limit", "market", "stop"]) {
				await page.selectOption("[name=type]", type);
				await painted(page);
				for (const selector of ["#panel-trades tbody td", "#panel-form .main"]) {
					await page.waitForSelector(selector);
					assert(await page.$eval(selector, (e) => {
						const { left, right, top, bottom } = e.getBoundingClientRect();
						return [top, bottom - 1].every((y) => e.contains(
							document.elementFromPoint((left + right) / 2, y)));
					}), `${type}: ${selector}`);
				}
			}
		});
}

terminal("on a phone tables fit, say the type and can cancel, and Back closes what is open",
	{ viewport: { width: 390, height: 844 } }, async (page) => {
		const place = (fields) => exchange.post("alice", "/api/v1/order/",
			{ pair: "BTC_USDT", type: "sell", amount: "1.23456789", ...fields });
		await exchange.order("bob", "BTC_USDT", "buy", "0.00012345", "62000");
		await exchange.order("alice", "BTC_USDT", "sell", "0.00012345", "62000");
		await place({ price: "98765.43", display_amount: "0.5" });
		await place({ price: "71000.01", oco_trigger_price: "58000.01", oco_price: "57000.01" });
		await page.click(".account");
		await page.click('dialog .demo button:has-text("alice")');
		await page.waitForSelector("body.trader");
		await page.click("#tab-own");
		assert.equal(await page.innerText("#tab-own"), "Orders");
		const looks = await page.$$eval('nav a, #header > .account', (list) => list.map((e) => {
			const { borderTopWidth, borderTopColor, textDecorationLine, color } = getComputedStyle(e);
			return [borderTopWidth, borderTopColor, textDecorationLine, color, e.offsetHeight].join();
		}));
		assert.equal(looks[0], looks[1]);
		assert.match(looks[0], /^1px,.*,none,.*,44$/);
		assert.equal(await page.innerText("nav a"), "Account page");
		await open(page, 2);
		const overflows = (selector) => page.$$eval(selector, (list) =>
			list.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.className));
		for (const tab of ["My trades", "Balances", "Open orders"]) {
			await page.click(`#panel-own button:has-text("${tab}")`);
			await page.waitForSelector("#panel-own tbody tr");
			assert.deepEqual(await overflows("#panel-own .list"), [], tab);
		}
		for (const tab of ["chart", "book", "trades"]) {
			await page.click(`#tab-${tab}`);
			if (tab === "chart") await page.click(".as-table");
			assert.deepEqual(await overflows(".candles, .table"), [], tab);
		}
		await page.click("#tab-own");
		await accessible(page, "own orders on a phone");
		for (const type of ["iceberg: visible", "58,000\\.01 at\\s57,000\\.01"]) {
			await says(page, "#panel-own .orders", type);
		}
		for (let n = 1; n >= 0; n--) {
			const button = await page.$("#panel-own .cancel"), box = await button.boundingBox();
			assert(box.x >= 0 && box.x + box.width <= 390 && box.height >= 44, JSON.stringify(box));
			await button.click();
			await open(page, n);
		}
		const at = page.url(), sheet = "#panel-form.open";
		const gone = (selector) => page.waitForSelector(selector, { state: "detached" });
		const back = () => page.evaluate(() => history.back());
		await page.click("#sides .sell");
		await page.waitForSelector(sheet);
		await back();
		await gone(sheet);
		await page.click("#sides .buy");
		await page.click("#panel-form .close");
		await gone(sheet);
		await page.click("#header .settings");
		await page.waitForSelector("dialog");
		await back();
		await gone("dialog");
		await page.click("#sides .buy"); // one opens as soon as another is closed
		await page.evaluate(() => {
			document.querySelector("#panel-form .close").click();
			document.querySelector("#header .settings").click();
		});
		await page.waitForFunction(() => history.state?.opened === 1);
		await page.waitForSelector("dialog[open]");
		await back();
		await gone("dialog");
		assert.equal(page.url(), at);
		await page.waitForFunction(() => !history.state?.opened);
		await page.goBack(); // nothing is open
		await page.waitForURL("about:blank");
	});

test("the terminal with an account keeps its budget of bytes", () => {
	const asked = new Set();
	return visit(own.browser, `${exchange.base}/trade`, { name: "budget of an account",
		init: (page) => page.on("request", (request) => asked.add(new URL(request.url()).pathname)),
	}, async (page) => {
		await shows(page, "live");
		await trade(page, "alice");
		let all = 0, own = 0;
		for (const path of [...asked].filter((p) => p.startsWith("/web/"))) {
			const answer = await fetch(exchange.base + path,
				{ headers: { "Accept-Encoding": "gzip" } });
			const size = Number(answer.headers.get("content-length"));
			all += size;
			if (!path.includes("/vendor/")) own += size;
		}
		assert(all <= 140_000 && own > 20_000 && own <= 52_000, `${all} bytes, ${own} its own`);
	});
});
