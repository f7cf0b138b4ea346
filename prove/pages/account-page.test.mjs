// The account page in a browser, against the real program.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { accessible, shows, visit } from "./helpers/browser.mjs";
import { until } from "./helpers/exchange.mjs";
import { says, script, served, unreachable } from "./helpers/traders.mjs";

const own = served(), { exchange, relay } = own;

// Console messages of refused requests: for a field, or for a nonce, as these tests share the keys.
const refused = [/^Failed to load resource: the server responded with a status of 40[01]/];

/** account gives a live page to a test. */
const account = (name, options, body) => test(name, () =>
	visit(own.browser, `${(options.base ?? (() => exchange.base))()}/account${options.at ?? ""}`,
		{ name: `account page ${name}`, ...options, base: undefined, at: undefined },
		async (page) => {
			await shows(page, "live");
			await body(page);
		}));

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

account("balances are exact and live, and each change is announced", {}, async (page) => {
	await enter(page, "alice");
	await says(page, ".balances", "BTC\\s+100\\.00\\s+0\\.00\\s+100\\.00\\s");
	await says(page, ".history", "Deposit 3.*Deposit 2.*Deposit 1");
	await exchange.order("bob", "BTC_USDT", "sell", "0.12345678", "64000.01");
	await exchange.order("alice", "BTC_USDT", "buy", "0.12345678", "64000.01");
	await says(page, ".balances", "BTC\\s+100\\.12345678\\s+0\\.00\\s+100\\.12345678");
	await says(page, ".balances", "USDT\\s+9,992,098\\.7648454322\\s");
	await page.waitForFunction(() => document.querySelectorAll(".history tbody tr").length === 5);
	const [got, paid] = await rows(page, "history");
	assert.match(got, /\|Trade 1\|BTC\|\+0\.12345678\|BTC\/USDT, order \d+, at 64,000\.01$/);
	assert.match(paid, /\|Trade 1\|USDT\|-7,901\.2351545678\|/);
	await exchange.operator("deposit", "alice", "ETH", "0.5");
	await says(page, ".history tbody tr", "Deposit \\d+\\s+ETH\\s+\\+0\\.5");
	await page.selectOption("[name=currency]", "ETH");
	await page.waitForFunction(() => document.querySelectorAll(".history tbody tr").length === 2);
	await accessible(page, "balances");
});

account("a trade with oneself adds up, and both of its orders say what they have paid", {},
	async (page) => {
		const place = (type, amount) => exchange.order("bob", "ETH_USDT", type, amount, "3000");
		const { oid: rests } = await place("sell", "0.5"), { oid: takes } = await place("buy", "0.5");
		await enter(page, "bob");
		await says(page, ".history", "Trade 2.*Trade 2.*Trade 2.*Trade 2");
		const changes = (await rows(page, "history")).filter((row) => /Trade 2\|/.test(row))
			.map((row) => row.split("|").slice(2).join("|"));
		assert.deepEqual(changes, [
			`ETH|+0.50|ETH/USDT, order ${takes}, at 3,000.00`,
			`USDT|-1,500.00|ETH/USDT, order ${takes}, at 3,000.00`,
			`USDT|+1,500.00|ETH/USDT, order ${rests}, at 3,000.00`,
			`ETH|-0.50|ETH/USDT, order ${rests}, at 3,000.00`]);
		await go(page, "orders");
		await says(page, ".orders", "Filled.*Filled");
		for (const [row, id] of [[0, takes], [1, rests]]) {
			await page.waitForFunction(([row, id]) => new RegExp(`\\t${id}\\t.*3,000\\.00\\t3,000\\.00\\t.*\\t0\\.00 \\w+\\t`)
				.test(document.querySelectorAll(".orders tbody tr")[row].innerText), [row, id]);
		}
		await go(page, "trades");
		await says(page, ".trades", `Buy.*Taker\\s+${takes}\\s.*Sell.*Maker\\s+${rests}`);
	});

account("a key's permissions are shown, and it is remembered and forgotten", {}, async (page) => {
	const key = await newKey("alice", "--permissions", "read");
	await enterWith(page, key);
	await go(page, "key");
	await says(page, "#main", "Read the account.*not remembered.*Orders and withdrawals\\s+100 a second");
	assert.equal(await page.innerText(".facts li"), "Read the account");
	await page.click(".keep");
	await says(page, "#main", "The key is remembered");
	await accessible(page, "the key");
	await page.reload();
	await says(page, "#header > .account", "alice");
	await says(page, "#main", "The key is remembered");
	await page.goto(`${exchange.base}/trade`); // the same key is remembered there
	await says(page, "#header > .account", "alice");
	await page.goBack();
	await page.click(".forget");
	await page.waitForFunction(async () => (await indexedDB.databases()).length === 0);
	await says(page, "#main", "You log in with an API key");
});

account("sections have addresses, and a lost connection is shown and restored",
	{ at: "#key", allowed: unreachable }, async (page) => {
		await enter(page, "alice");
		await says(page, "h2", "API key");
		await go(page, "balances");
		await says(page, "h2", "Balances");
		assert.equal(new URL(page.url()).hash, "#balances");
		await says(page, ".history", "Deposit 1");
		await page.goBack();
		await says(page, "h2", "API key");
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

/** csv clicks a list's button, and returns the rows of the downloaded file. */
async function csv(page) {
	const [file] = await Promise.all([page.waitForEvent("download"), page.click(".csv")]);
	const content = await readFile(await file.path(), "utf8");
	assert(content.endsWith("\r\n"));
	return [file.suggestedFilename(), ...content.trimEnd().split("\r\n")];
}

account("orders are listed by pair, state and time, live, and as a file", {}, async (page) => {
	const before = new Date(Date.now() - 60_000), local = (at) =>
		new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
	await enter(page, "bob");
	await go(page, "orders");
	await says(page, ".bar", "\\d rows?\\s"); // all of them
	const first = (await rows(page, "orders")).length;
	const { oid } = await exchange.post("bob", "/api/v1/order/", { pair: "ETH_BTC", type: "sell",
		amount: "1.5", price: "0.061234", client_order_id: "-1-x" });
	await says(page, `tr[data-id="${oid}"]`,
		"ETH/BTC\\s+▼ Sell\\s+Limit\\s+0\\.061234\\s+–\\s+1\\.50\\s+0\\.00\\s+–\\s+Open");
	await exchange.order("alice", "ETH_BTC", "buy", "0.5", "0.061234");
	await says(page, `tr[data-id="${oid}"]`, "0\\.061234\\s+0\\.061234\\s+1\\.50\\s+0\\.50\\s+0\\.00 BTC\\s+Open");
	assert.equal((await rows(page, "orders")).length, first + 1);
	await page.focus("[name=from]"); // what is typed applies at once, and keeps the focus
	await page.keyboard.type("01022020");
	await page.keyboard.press("ArrowRight"); // a year may have six digits
	await page.keyboard.type("0304AM");
	await says(page, "#wrong-pair", "Choose a pair");
	assert.equal(await page.inputValue("[name=from]"), "2020-01-02T03:04");
	await accessible(page, "a range without a pair");
	await page.selectOption("[name=pair]", "ETH_BTC");
	await page.selectOption("[name=status]", "1");
	await page.waitForFunction(() => document.querySelectorAll(".orders tbody tr").length === 1);
	await page.fill("[name=from]", local(before));
	await until("the list is read", async () => (await rows(page, "orders")).length === 1);
	const [name, titles, row, ...rest] = await csv(page);
	assert.equal(name, "orders.csv");
	assert.match(titles, /^time,id,client_order_id,pair,side,/);
	assert.match(row, new RegExp("^20..-..-..T..:..:..\\.\\d{3}Z," +
		`${oid},'-1-x,ETH_BTC,sell,limit,gtc,0\\.061234,,0\\.061234,,,1\\.5,0\\.5,0,BTC,,,,active,$`));
	assert.equal(rest.length, 0);
	await exchange.post("bob", "/api/v1/order-cancel/", { order: oid });
	await says(page, "#main", "Nothing yet");
	await page.fill("[name=from]", "");
	await page.fill("[name=to]", local(before));
	await page.selectOption("[name=status]", "2");
	await says(page, "#main", "Nothing yet");
	await page.fill("[name=to]", "");
	await says(page, `tr[data-id="${oid}"]`, "Cancelled: by you"); // an event has said so
	const { oid: other } = await exchange.order("bob", "ETH_BTC", "sell", "1", "0.07");
	await exchange.operator("order", "cancel", String(other));
	await says(page, `tr[data-id="${other}"]`, "0\\.070000\\s.*Cancelled: by the operator");
	await page.reload();
	await says(page, `tr[data-id="${other}"]`, "Cancelled$"); // a list does not
});

account("orders show their type and average fill price, here and in the file", {},
	async (page) => {
		const place = (account, fields) => exchange.post(account, "/api/v1/order/",
			{ pair: "BTC_USDT", ...fields });
		await exchange.operator("fees", "set", "alice", "BTC_USDT", "--maker", "0.001", "--taker", "0.002");
		for (const [price, amount] of [["64000", "0.25"], ["65000", "0.75"]]) {
			await place("bob", { type: "sell", price, amount });
		}
		await place("alice", { type: "buy", price: "60000", amount: "0.1", time_in_force: "ioc" });
		await place("alice", { type: "buy", order_type: "market", amount: "0.5" });
		await place("alice", { type: "buy", price: "65000", amount: "0.5" });
		await place("alice", { type: "sell", price: "66000", amount: "5", display_amount: "0.5" });
		await place("alice", { type: "sell", price: "59000", amount: "1", trigger_price: "60000" });
		await place("alice", { type: "buy", order_type: "market", amount: "0.01",
			trigger_price: "70000" });
		await place("alice", { type: "sell", price: "71000", amount: "1", oco_trigger_price: "58000",
			oco_price: "57000" });
		await place("alice", { type: "sell", price: "72000", amount: "1", time_in_force: "gtd",
			expire_time: String(Math.floor(Date.now() / 1000) + 86_400) });
		await enter(page, "alice");
		await go(page, "orders");
		await page.selectOption("[name=pair]", "BTC_USDT");
			const said = "Limit\\s+65,000\\.00\\s+65,000\\.00\\s+0\\.50\\s+0\\.50\\s+0\\.001 BTC.*" +
			"Market, price\\slimit\\s67,200\\.00\\s+Market\\s+64,500\\.00\\s+0\\.50\\s+0\\.50\\s+0\\.001 BTC";
		await says(page, ".orders tbody", said);
		for (const form of ["Limit, immediate or cancel\\s.*Cancelled: not filled at once",
			"Limit, iceberg: visible 0\\.50\\s+66,000\\.00\\s+–",
			"Stop-limit, trigger\\s≤\\s60,000\\.00\\s+59,000\\.00", "Stop-market, trigger\\s≥\\s70,000\\.00, price\\slimit\\s73,500\\.00\\s+Market\\s+–",
			"stop\\s≤\\s58,000\\.00 at\\s57,000\\.00\\s+71,000",
			"Limit, good till \\w+ \\d.*\\s+72,000"]) await says(page, ".orders tbody", form);
		const [, titles, ...lines] = await csv(page);
		const [, oco, stop, , iceberg, , market] = lines.map((line) =>
			Object.fromEntries(titles.split(",").map((t, i) => [t, line.split(",")[i]])));
		assert.deepEqual([oco.price, oco.oco_trigger_price, oco.oco_price], ["71000", "58000", "57000"]);
		assert.equal(iceberg.visible_amount, "0.5");
		assert.deepEqual([stop.price, stop.price_limit, stop.trigger_price, stop.trigger_when],
			["", "73500", "70000", "rise"]);
		assert.deepEqual([market.price, market.average_price, market.filled, market.fee,
			market.fee_currency], ["", "64500", "0.5", "0.001", "BTC"]);
		await page.goto(`${exchange.base}/trade`);
		await says(page, "#panel-own .orders", "Stop-market, trigger\\s≥\\s70,000\\.00, "
			+ "price\\slimit\\s73,500\\.00\\s+Waiting\\s+Market\\s+0\\.01");
		for (const name of ["alice", "bob"]) {
			await exchange.post(name, "/api/v1/order-cancel-all/", { all: 1 });
		}
	});

account("an OCO that was sold at the market has no price of its own", {}, async (page) => {
	const place = (account, fields) => exchange.post(account, "/api/v1/order/",
		{ pair: "BTC_USDT", ...fields });
	await place("bob", { type: "buy", price: "58000", amount: "0.15" });
	await place("alice", { type: "sell", price: "71000", amount: "0.1", oco_trigger_price: "58000" });
	await place("alice", { type: "sell", price: "58000", amount: "0.05" });
	await enter(page, "alice");
	await go(page, "orders");
	await says(page, ".orders tbody", "OCO, stop\\s≤\\s58,000\\.00 at\\smarket, "
		+ "price\\slimit\\s55,100\\.00\\s+Market\\s+58,000\\.00\\s+0\\.10\\s+0\\.10");
	const [, titles, , line] = await csv(page);
	const oco = Object.fromEntries(titles.split(",").map((t, i) => [t, line.split(",")[i]]));
	assert.deepEqual([oco.order_type, oco.price, oco.price_limit, oco.average_price,
		oco.oco_trigger_price], ["market", "", "55100", "58000", "58000"]);
});

account("trades are paged to the oldest, and their file has every digit", {}, async (page) => {
	const pair = "ETH_USDT", type = "buy";
	const orders = (n) => JSON.stringify(Array.from({ length: n }, (_, i) => ({ do: "place", pair,
		type, amount: `0.0${1_000_001 + i}`, price: "3000.01" })));
	await exchange.order("bob", pair, "sell", "9", "3000.01");
	for (let i = 0; i < 5; i++) {
		await until("the orders are taken", () =>
			exchange.post("alice", "/api/v1/order-batch/", { orders: orders(i < 4 ? 50 : 7) })
				.then(() => true, (failed) => {
					if (!/ 429 /.test(failed.message)) throw failed; // more than may come at once
				}));
	}
	await enter(page, "alice");
	await go(page, "trades");
	await page.selectOption("[name=pair]", pair);
	await page.fill("[name=from]", "2020-01-01T00:00");
	await says(page, ".bar", "100 rows or more");
	await page.click(".more");
	await says(page, ".bar", "200 rows or more");
	const got = [];
	const hold = (route) => got.push(route);
	await page.route("**/exchanges/own/**before=**", hold);
	await page.click(".csv");
	await says(page, ".told", "200 rows are read");
	await page.click(".stop");
	await page.waitForFunction(() => !document.querySelector(".stop"));
	await until("the page has asked", () => got.length);
	await page.unroute("**/exchanges/own/**before=**", hold); // lets them go on
	await says(page, ".told", "No file was made");
	const [name, titles, ...lines] = await csv(page);
	assert.deepEqual([name, lines.length], ["trades.csv", 207]);
	assert.equal(titles, "time,id,pair,side,price,amount,value,fee,fee_currency,role,order," +
		"client_order_id");
	assert.match(lines[0], /^\S{19}\.\d{6}Z,\d+,ETH_USDT,buy,3000\.01,0\.01000007,30\.0003100007,/);
	assert.match(lines[0], /,0,ETH,taker,\d+,$/);
	assert.equal(new Set(lines.map((line) => line.split(",")[1])).size, 207);
	await says(page, ".told", "207 rows are in the file");
	await says(page, ".bar", "207 rows");
	const count = () => page.$$eval(".trades tbody tr", (list) => list.length);
	assert.equal(await count(), 200);
	await page.click(".more");
	await page.waitForFunction(() => !document.querySelector(".more"));
	assert.equal(await count(), 207);
	await exchange.order("alice", pair, "buy", "0.5", "3000.01");
	await says(page, ".trades tbody tr", "0\\.50\\s+1,500\\.005");
});

account("texts of others run nowhere on the page", {}, async (page) => {
	const trade = { id: 1, pair: `${script}_B`, my_side: "buy", price: 1, amount: 1, timestamp: 1,
		fee: 1, fee_currency: script, order: script, maker: true, client_order_id: script };
	await page.route("**/api/v1/exchanges/own/**", (route) => route.fulfill({ json: [trade] }));
	await page.route("**/api/v1/deposits/**", (route) => route.fulfill({ json: [{ id: 1,
		timestamp: 1, currency: script, amount: 1 }] }));
	await page.route("**/api/v1/withdraws/**", (route) => route.fulfill({ json: [{ id: 1,
		timestamp: 1, currency: script, amount: 1, status: 30, address: script,
		details: script }] }));
	await page.route("**/api/v1/orders/own/**", (route) => route.fulfill({ json: [{ id: 1,
		pair: script, type: "buy", status: 2, price: 1, amount: 0, amount_original: 1,
		amount_filled: 1, date: 1, order_type: script, time_in_force: script,
		cancel_reason: script }] }));
	await enter(page, "alice");
	for (const link of await page.$$("#sections a")) {
		await link.click();
		await page.waitForFunction(() => location.hash === "#key"
			|| document.querySelector("#main").innerText.includes("onerror"));
		assert.equal(await page.$("#main img"), null);
	}
});

const BTC = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4";
const withdraws = (name) => exchange.get(name, "/api/v1/withdraws/");

/** ask requests a withdrawal of BTC. */
async function ask(page, amount, address = BTC) {
	await page.fill("[name=amount]", amount);
	await page.fill("[name=address]", address);
	await page.click(".ask");
}

/** codeOf returns the code mailed for a withdrawal. */
const codeOf = (id) => until(`the code of withdraw ${id} is mailed`, async () => {
	const text = await (await fetch(`${exchange.base}/demo/mails`)).text();
	return text.split("<h2>").find((mail) => mail.includes(`confirm withdrawal ${id}</h2>`));
}).then((mail) => /\b\w{4}-\w{4}-\w{4}\b/.exec(mail)[0]);

account("a withdraw goes from the form to the operator's approval, live", { allowed: refused }, async (page) => {
	await enter(page, "alice");
	await go(page, "withdraws");
	await says(page, ".withdraw", "Available: \\d+.*BTC");
	await ask(page, "0.5");
	await says(page, ".outcome", "Withdrawal \\d+ requested");
	await page.waitForFunction(() => document.activeElement?.id.startsWith("code-"));
	const [{ id, status, amount }] = await withdraws("alice");
	assert.deepEqual([status, amount], [10, 0.5]);
	assert.equal(await page.evaluate(() => document.activeElement.id), `code-${id}`);
	const row = `tr[data-id="${id}"]`;
	await page.fill(`#code-${id}`, "wrong");
	await page.press(`#code-${id}`, "Enter");
	await says(page, `#wrong-${id}`, "Wrong code");
	assert.equal(await page.getAttribute(`#code-${id}`, "aria-invalid"), "true");
	await accessible(page, "a wrong code");
	await page.fill(`#code-${id}`, await codeOf(id));
	await page.press(`#code-${id}`, "Enter");
	await says(page, ".outcome", "Withdrawal \\d+ verified: it waits");
	await says(page, row, "Verified: waits for the operator");
	await go(page, "balances");
	await says(page, ".balances tbody tr", "BTC\\s+\\S+\\s+0\\.50\\s");
	await exchange.operator("withdraw", "approve", String(id));
	await says(page, ".balances tbody tr", "BTC\\s+\\S+\\s+0\\.00\\s");
	await says(page, ".history", `Withdrawal ${id}\\s+BTC\\s+-0\\.50\\s+to ${BTC}`);
	await go(page, "withdraws");
	await says(page, row, "Approved");
	assert.equal(await page.$(`${row} .cancel`), null);
	await ask(page, "0.25");
	await says(page, ".withdraws tbody tr", "0\\.25.*New: waits for the code");
	await exchange.operator("withdraw", "refuse", String((await withdraws("alice"))[0].id),
		"--details", script);
	await says(page, ".withdraws tbody tr", "Refused: <img");
	assert.equal(await page.$("#main img"), null);
	const [name, , line] = await csv(page);
	assert.equal(name, "withdraws.csv");
	assert.match(line, new RegExp(`,BTC,0\\.25,${BTC},refused,<img`));
});

account("a correction is in the history and among the withdraws, live", {}, async (page) => {
	await enter(page, "alice");
	await go(page, "balances");
	await says(page, ".history tbody tr", "\\d");
	await exchange.operator("adjust", "alice", "BTC", "-0.0625", "--reason", script);
	await says(page, ".history tbody tr", "Correction \\d+\\s+BTC\\s+-0\\.0625\\s+<img");
	await go(page, "withdraws");
	await says(page, ".withdraws tbody tr", "0\\.0625.*Taken by the operator.*: <img");
	assert.equal(await page.$("#main img, .withdraws tbody tr:first-child .cancel"), null);
});

account("a withdraw is asked for and cancelled by keyboard alone", { allowed: refused }, async (page) => {
	const key = async (...keys) => {
		for (const k of keys) await page.keyboard.press(k);
	};
	await enter(page, "bob");
	await page.focus('#sections a[href="#withdraws"]');
	await key("Enter");
	await says(page, "h2", "Withdrawals");
	await page.waitForSelector(".withdraws .muted, table.withdraws");
	const to = async (selector) => until(`the focus is on ${selector}`, async () => {
		await key("Tab");
		return page.evaluate((s) => document.activeElement.matches(s), selector);
	});
	await to("[name=of]");
	await page.keyboard.type("BTC");
	await to("[name=amount]");
	await page.keyboard.type("1,000");
	await to("[name=address]");
	await page.keyboard.type("not-an-address");
	await key("Enter");
	await says(page, "#wrong-amount", "could be 1000 or 1:");
	assert.equal(await page.evaluate(() => document.activeElement.name), "amount");
	await key("Control+a");
	await page.keyboard.type("1000");
	await says(page, ".ask:disabled", "Not enough BTC");
	await key("Control+a");
	await page.keyboard.type("0.125");
	await key("Enter");
	await says(page, "#wrong-address", "not an address of BTC");
	assert.equal(await page.evaluate(() => document.activeElement.name), "address");
	await accessible(page, "a wrong address");
	await key("Control+a");
	await page.keyboard.type(BTC);
	await key("Enter");
	await page.waitForFunction(() => document.activeElement?.id.startsWith("code-"));
	await to(".cancel");
	await key("Enter");
	await says(page, ".outcome", "Withdrawal \\d+ cancelled");
	await says(page, ".withdraws tbody tr", "0\\.125.*Cancelled");
	assert.equal((await withdraws("bob"))[0].status, 50);
});

account("a key that may only read has no form of a withdraw", {}, async (page) => {
	await enterWith(page, await newKey("bob", "--permissions", "read"));
	await go(page, "withdraws");
	await says(page, "#main", "may not withdraw");
	assert.equal(await page.$(".withdraw, .cancel, .code"), null);
});

account("a withdraw without an answer is found, once",
	{ base: () => relay.base, allowed: unreachable }, async (page) => {
		await enter(page, "bob");
		await go(page, "withdraws");
		await says(page, ".withdraw", "Available: \\d+.*BTC");
		const before = (await withdraws("bob")).length;
		const count = async () => (await withdraws("bob")).length - before;
		let lost; // it arrives, its answer does not
		await page.route("**/api/v1/withdraw/", async (route) => {
			await route.fetch();
			lost = () => route.abort("connectionreset");
		}, { times: 1 });
		await ask(page, "0.01");
		await page.waitForSelector('.pending[data-state="sending"]');
		await until("the withdraw is in", () => lost);
		assert.equal(await count(), 1);
		await lost();
		relay.cut();
		await says(page, ".outcome", "Withdrawal \\d+ requested\\.$");
		await page.waitForFunction(() => sessionStorage.getItem("withdraws") === "[]");
		await shows(page, "live");
		await says(page, ".ask", "Withdraw BTC");
		await page.route("**/api/v1/withdraw/", (route) => route.abort()); // it does not arrive
		await ask(page, "0.02");
		await says(page, ".outcome", "unknown");
		await page.waitForSelector('.pending[data-state="unseen"]');
		assert.equal(await count(), 1, "nothing is sent again by itself");
		await page.unroute("**/api/v1/withdraw/");
		await page.reload(); // over which it is known
		await page.waitForSelector('.pending[data-state="unseen"]');
		await accessible(page, "a withdraw that was not seen");
		await page.click(".pending .again");
		await says(page, ".outcome", "Withdrawal \\d+ requested");
		const [newest, older] = await withdraws("bob");
		assert.equal(await count(), 2);
		for (const w of [newest, older]) assert.match(w.client_id, /^web-[\w-]{22}$/);
		assert.notEqual(newest.client_id, older.client_id);
	});

account("the operator's instructions for deposits are shown as text, and never made up",
	{ init: (page) => page.route("**/api/v1/exchange-info/", async (route) => {
		const response = await route.fetch(), isSigned = route.request().headers()["x-sign"];
		const instructions = JSON.stringify({ BTC: `Send to ${script}\nand wait.` });
		const body = (await response.text()).trimEnd().slice(0, -1);
		await route.fulfill({ response,
			body: `${body}${isSigned ? `,"deposit_instructions":${instructions}` : ""}}` });
	}) }, async (page) => {
		await enter(page, "alice");
		await go(page, "deposits");
		await says(page, ".instructions", "BTC\\s+Send to <img.*wait");
		await says(page, ".instructions", "no instructions for ETH.*no instructions for USDT");
		assert.equal(await page.$("#main img"), null);
		await says(page, ".deposits", "BTC\\s+100");
		await accessible(page, "instructions");
	});

account("nothing is withdrawn in a maintenance, and what waits can be cancelled", {},
	async (page) => {
		await enter(page, "alice");
		await go(page, "withdraws");
		await ask(page, "0.01");
		await page.waitForSelector(".code button:enabled");
		await exchange.operator("maintenance", "on", "--cancels");
		await says(page, ".ask:disabled", "Maintenance");
		await page.waitForSelector(".code button:disabled");
		await page.click(".moves .cancel");
		await says(page, ".outcome", "Withdrawal \\d+ cancelled");
		await exchange.operator("maintenance", "off");
		await says(page, ".ask:enabled", "Withdraw BTC");
	});

account("closed withdrawals are reported once, without a retry", { allowed: [/503/] },
	async (page) => {
		await page.route("**/api/v1/withdraw/", (route) => route.fulfill({ status: 503,
			json: { detail: "Withdraws are closed." } }));
		await enter(page, "alice");
		await go(page, "withdraws");
		await ask(page, "0.01");
		await says(page, ".outcome", "^Withdrawals are closed by the operator\\. Nothing was done\\.$");
		assert.equal(await page.$(".pending, .ask"), null);
	});

for (const width of [1440, 1200, 1024, 390]) {
	account(`no number, pair or side is broken at ${width} px`,
		{ viewport: { width, height: 800 } }, async (page) => {
			for (const account of ["alice", "bob"]) {
				await exchange.order(account, "BTC_USDT", account === "alice" ? "sell" : "buy",
					"0.12345678", "69500.01");
			}
			await exchange.post("alice", "/api/v1/order/", { pair: "BTC_USDT", type: "sell",
				amount: "0.1", order_type: "market", trigger_price: "60000", price: "59000.12" });
			await enter(page, "alice");
			for (const section of ["orders", "trades", "balances"]) {
				await go(page, section);
				await says(page, `#main .${section} tbody`, "\\d");
				await page.waitForFunction(() => !/Loading/.test(document.querySelector("#main").innerText));
				const broken = await page.$$eval("tbody td", (cells) => cells.flatMap((cell) => {
					const words = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), found = [];
					for (let node; (node = words.nextNode());) {
						// an address may break
						for (const { index, 0: word } of node.data.matchAll(/(?<!\S)\S{1,24}(?!\S)/g)) {
							const range = document.createRange();
							range.setStart(node, index);
							range.setEnd(node, index + word.length);
							if (range.getClientRects().length > 1) found.push(word);
						}
					}
					return found;
				}));
				assert.deepEqual(broken, [], section);
				const sides = await page.$$eval("td > :is(.up, .down)", (list) => list.map((side) => {
					const words = document.createRange();
					words.selectNodeContents(side);
					return words.getBoundingClientRect().height;
				}));
				assert(sides.every((height) => height < 27), `${sides}`); // a line has 18
				await fits(page);
			}
		});
}

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

for (const theme of ["dark", "light"]) {
	test(`the demo's mails can be read, ${theme}`, () => visit(own.browser, `${exchange.base}/demo/mails`,
		{ name: `mails ${theme}`, cookies: { theme } }, async (page) => {
			await says(page, "h1", "Mails of the demo");
			await accessible(page, "the mails of the demo");
			await page.click('a[href="/account"]');
			await says(page, "h1", "Account");
		}));
}

test("the account page keeps its budget of bytes", () => {
	const asked = new Set();
	return visit(own.browser, `${exchange.base}/account`, { name: "budget of the account page",
		init: (page) => page.on("request", (request) => asked.add(new URL(request.url()).pathname)),
	}, async (page) => {
		await shows(page, "live");
		await enter(page, "alice");
		let all = 0, own = 0; // with what it shares with the terminal, and without
		for (const path of asked) {
			if (!path.startsWith("/web/") || path.includes("/vendor/")) continue;
			const answer = await fetch(exchange.base + path,
				{ headers: { "Accept-Encoding": "gzip" } });
			const size = Number(answer.headers.get("content-length"));
			all += size;
			if (/\/account[./]/.test(path)) own += size;
		}
		assert(own > 10_000 && own <= 30_000 && all <= 45_000, `${own} bytes, ${all} with others`);
		assert(asked.size <= 40, `${asked.size} requests`);
	});
});
