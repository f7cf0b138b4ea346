// What the terminal says that an order would do, against what the real program does with it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible, painted, shows, visit } from "./helpers/browser.mjs";
import { until } from "./helpers/exchange.mjs";
import { fill, open, says, send, served, trade, unreachable } from "./helpers/traders.mjs";

const own = served(), { exchange, relay } = own;
const question = "dialog[open]";

/** terminal gives alice's terminal to a test, and cancels all orders after it. */
const terminal = (name, options, body) => test(name, async () => {
	try {
		await visit(own.browser, `${(options.base ?? (() => exchange.base))()}/trade`,
			{ name, ...options, base: undefined }, async (page) => {
				await shows(page, "live");
				if (!options.isVisitor) await trade(page, "alice");
				await body(page);
			});
	} finally {
		for (const each of ["alice", "bob"]) {
			await exchange.post(each, "/api/v1/order-cancel-all/", { all: 1 });
		}
	}
});

const place = (account, type, amount, price) =>
	exchange.order(account, "BTC_USDT", type, amount, price);
const order = (id) => exchange.get("alice", `/api/v1/order/${id}/`);
const type = (page, name) => page.selectOption("[name=type]", name);
const no = async (page) => {
	await page.keyboard.press("Escape");
	await page.waitForSelector("dialog", { state: "detached" });
};
const mode = async (page, name) => {
	await page.$eval(".more", (fold) => (fold.open = true));
	await page.selectOption("[name=self]", name);
};

/** sum returns the number of a row of the form. */
const sum = async (page, label) => {
	await painted(page);
	const [, is = ""] = new RegExp(`${label}\\s+([\\d,.]+)`, "i").exec(await page.innerText(".sums")) ?? [];
	return Math.round(Number(is.replaceAll(",", "") || NaN));
};

terminal("a stop at the market says what it would take at its trigger, and asks when that is far", {},
	async (page) => {
		await place("bob", "buy", "1", "64000");
		await place("bob", "buy", "0.1", "63000");
		await place("bob", "buy", "0.1", "62000");
		await says(page, "#panel-book .buy", "64,000.*63,000.*62,000");
		await page.click("#form-side-sell");
		await type(page, "stopMarket");
		await page.fill("#form-trigger", "63000");
		await page.fill("#form-amount", "0.15");
		const estimate = "worst\\s+62,666\\.66 / 62,000\\.00\\s+Price protection\\s+59,850\\.00\\s+"
			+ "Est\\. total\\s+9,400\\.00 USDT";
		await says(page, ".sums", estimate);
		await send(page);
		await says(page, question, "up to 1\\.59% worse than the trigger");
		await says(page, question, estimate);
		await accessible(page, "a stop that goes far");
		await no(page);
		await page.fill("#form-amount", "0.3");
		await send(page);
		await says(page, question, "Only 0\\.20 BTC is there beyond the trigger");
		await no(page);
		await page.fill("#form-trigger", "50000");
		await send(page);
		await says(page, question, "trigger is 21\\.88% from the market's price, 64,000\\.00.*"
			+ "Only 0\\.00 BTC is there beyond");
		await no(page);
		await page.fill("#form-trigger", "63000");
		await page.fill("#form-amount", "0.1"); // no slip
		await send(page);
		await says(page, ".outcome", "Order placed");
		await page.selectOption("[name=when]", "profit"); // nobody knows what will be there
		await page.fill("#form-trigger", "65000");
		await page.fill("#form-amount", "5");
		await says(page, ".sums", "worst\\s+–");
		await send(page);
		await says(page, question, "takes the whole side: 1\\.20 BTC");
		await no(page);
		await type(page, "oco"); // its stop is one at the market
		await page.fill("#form-price", "70000");
		await page.fill("#form-trigger", "63000");
		await page.fill("#form-amount", "0.3");
		await send(page);
		await says(page, question, "Only 0\\.20 BTC is there beyond the trigger");
		await no(page);
		await open(page, 0);
		await page.click("#panel-own .amend"); // it waits
		await page.fill("dialog [name=amount]", "0.3");
		await page.click("dialog .main");
		await says(page, "dialog:last-of-type", "Only 0\\.20 BTC is there beyond the trigger");
	});

terminal("a change that goes through the market asks what the same order would", {}, async (page) => {
	await place("bob", "sell", "0.3", "64000");
	const { oid } = await place("alice", "buy", "1.1", "60000");
	await place("bob", "sell", "0.1", "60000");
	await says(page, "#panel-own .orders", "0\\.10\\s+avg");
	await page.click("#panel-own .amend");
	await page.fill("dialog [name=price]", "68000");
	await page.click("dialog .main");
	const asked = "dialog:last-of-type";
	await says(page, asked, `^Amend order ${oid}: Buy BTC.*6\\.25% worse than the market's`
		+ ".*Price\\s+68,000\\.00 USDT\\s+Amount\\s+1\\.10 BTC\\s+Total\\s+68,000\\.00 USDT"
		+ ".*worst\\s+64,000\\.00 / 64,000\\.00"
		+ ".*Fills now\\s+0\\.30 of 1\\.00 BTC; the rest rests");
	await accessible(page, "a change through the market");
	await place("bob", "sell", "0.2", "64000"); // it says what is so now
	await says(page, asked, "Fills now\\s+0\\.50 of 1\\.00 BTC");
	await page.click(`${asked} .yes`);
	await says(page, "#panel-own .told", `Order ${oid} amended.* 0\\.50 BTC filled at 64,000\\.00`);
});

terminal("an order that ends at an own one is shown as the exchange does it", {}, async (page) => {
	await place("bob", "sell", "0.1", "64000");
	const { oid: first } = await place("alice", "sell", "0.5", "66000");
	const { oid: second } = await place("alice", "sell", "0.5", "66100");
	await place("bob", "sell", "1", "67000");
	await says(page, "#panel-book .sell", "67,000.*66,100.*66,000.*64,000");
	await type(page, "market");
	await mode(page, "cancel_newest");
	await page.fill("#form-amount", "1");
	await says(page, ".sums", "worst\\s+64,000\\.00 / 64,000\\.00.*0\\.10 of 1\\.00 BTC; the rest "
		+ `is cancelled.*Meets your own order ${first}: what is left of the new order`);
	await send(page); // there is no slip in it
	await says(page, ".outcome", "0\\.10 BTC filled at 64,000\\.00.*self-trade prevention");
	assert.equal(await page.$("dialog"), null);
	assert.deepEqual([(await order(first)).status, (await order(second)).status], [1, 1]);

	await place("bob", "sell", "0.1", "64000");
	await mode(page, "cancel_both");
	await page.fill("#form-amount", "1");
	await says(page, ".sums", `0\\.10 of 1\\.00 BTC.*Meets your own order ${first}: both`);
	await send(page);
	await says(page, ".outcome", "0\\.10 BTC filled at 64,000\\.00");
	assert.deepEqual([(await order(first)).status, (await order(second)).status], [2, 1]);

	await place("bob", "sell", "0.1", "64000");
	await mode(page, "cancel_oldest");
	await type(page, "limit");
	await fill(page, "buy", "67000", "0.5");
	await says(page, ".sums", "worst\\s+66,400\\.00 / 67,000\\.00\\s+Fills now\\s+0\\.50 BTC"
		+ `.*Meets your own order ${second}: the resting order is cancelled`);
	await page.selectOption("[name=force]", "fok");
	await page.fill("#form-amount", "1.2"); // without the own one that is too much
	await says(page, ".sums", "Fills now\\s+Nothing; it is cancelled\\s+Max");
	await page.selectOption("[name=force]", "gtc");
	await page.fill("#form-amount", "0.5");
	await send(page);
	await says(page, ".outcome", "0\\.50 BTC filled at 66,400\\.00");
	assert.equal((await order(second)).status, 2);

	await place("alice", "sell", "0.1", "66500");
	await place("bob", "sell", "0.1", "66500"); // which of both comes first, the page does not know
	await mode(page, "cancel_newest");
	await page.fill("#form-amount", "0.1");
	await says(page, ".sums", "worst\\s+–.*May meet your own order");
});

terminal("what stays after an order is what the estimate says", {}, async (page) => {
	await place("bob", "sell", "1", "64000");
	await says(page, "#panel-book .sell", "64,000");
	const free = await sum(page, "Available");
	await fill(page, "buy", "66000", "0.5");
	await until("the estimate", async () => await sum(page, "After order") === free - 32_000);
	await fill(page, "buy", "66000", "1.5"); // a third rests
	await until("the rest", async () => await sum(page, "After order") === free - 64_000 - 33_000);
	await page.selectOption("[name=force]", "ioc");
	await until("no rest", async () => await sum(page, "After order") === free - 64_000);
	await page.selectOption("[name=force]", "fok");
	await until("nothing", async () => await sum(page, "After order") === free);
	await page.selectOption("[name=force]", "ioc");
	await fill(page, "buy", "63000", "1.5");
	await until("nothing at once", async () => await sum(page, "After order") === free);
	await fill(page, "buy", "66000", "0.5");
	await send(page);
	await says(page, ".outcome", "Order placed");
	await until("the balance", async () => await sum(page, "Available") === free - 32_000);
});

terminal("past the best 20 prices nothing is claimed that is not known", {}, async (page) => {
	await exchange.post("bob", "/api/v1/order-batch/", { orders: JSON.stringify(
		Array.from({ length: 22 }, (_, i) => ({ do: "place", pair: "BTC_USDT", type: "sell",
			amount: "0.1", price: `${64000 + i}` }))) });
	await page.evaluate(async () => {
		const { ladder } = await import(document.querySelector('script[type="module"]').src);
		ladder.shorten(true);
	});
	await says(page, "#depth .words", "of the best 20 prices");
	await type(page, "market");
	const claims = /whole side|Only|cancelled|killed/;
	for (const [amount, words] of [["2", "Fills now\\s+2\\.00 BTC"],
		["2.1", "worst\\s+–.*Fills now\\s+At least 2\\.00 BTC; unknown beyond the best 20 prices"]]) {
		await page.fill("#form-amount", amount);
		await says(page, ".sums", words);
		assert.doesNotMatch(await page.innerText(".sums"), claims);
	}
	await accessible(page, "an order beyond a short book");
	for (const force of ["ioc", "fok"]) {
		await page.selectOption("[name=force]", force);
		await send(page);
		await says(page, question, "Within the best 20 prices the order finds 2\\.00 BTC\\. "
			+ "What it finds beyond them is unknown\\.");
		assert.doesNotMatch(await page.innerText(`${question} ul`), claims);
		await no(page);
	}
	await says(page, ".sums", "Fills now\\s+–");
	await page.selectOption("[name=force]", "ioc");
	await page.fill("#form-total", "200000");
	await says(page, ".sums", "Fills now\\s+At least 128,019\\.00 USDT; unknown");
	await type(page, "stopMarket");
	await page.fill("#form-trigger", "64021");
	await page.fill("#form-amount", "0.2");
	await send(page);
	await says(page, question, "the order finds 0\\.00 BTC\\. What it finds beyond them is unknown");
	assert.doesNotMatch(await page.innerText(`${question} ul`), claims);
	await no(page);
	await type(page, "limit");
	await fill(page, "buy", "64030", "2.2");
	await says(page, ".sums", "Fills now\\s+At least 2\\.00 BTC");
	await page.fill("#form-price", "64010");
	await says(page, ".sums", "Fills now\\s+1\\.10 of 2\\.20 BTC; the rest rests");
	await page.fill("#form-price", "64030");
	await page.selectOption("[name=force]", "fok");
	await send(page); // which the exchange can do
	await says(page, ".outcome", "2\\.20 BTC filled");
});

terminal("what was placed is not said again after something newer", {}, async (page) => {
	const { oid } = await place("alice", "sell", "0.1", "70000");
	await open(page, 1);
	await fill(page, "buy", "60000", "0.1");
	await send(page);
	await says(page, ".outcome", "Order placed");
	await exchange.operator("order", "cancel", String(oid));
	await says(page, "#toasts", `Order ${oid}, .*cancelled`);
	await page.click("#toasts button");
	await says(page, ".outcome", "^$");
	await page.fill("#form-amount", "0.2");
	await send(page);
	await says(page, ".outcome", "Order placed");
	await open(page, 2);
	await page.click("#panel-own .cancel");
	await says(page, "#panel-own .told", "cancelled");
	await says(page, ".outcome", "^$");
	await page.fill("#form-amount", "0.3");
	await send(page);
	await says(page, ".outcome", "Order placed");
	await says(page, "#panel-own .told", "^$"); // nor what was said before
	await page.click("#panel-own .amend");
	await page.fill("dialog [name=amount]", "0.4");
	await page.click("dialog .main");
	await says(page, "#panel-own .told", "amended");
	await place("bob", "sell", "0.4", "60000");
	await says(page, "#toasts", "Filled completely");
	await page.click("#toasts button");
	await says(page, "#panel-own .told", "^$");
});

terminal("an order that the exchange does not have is not looked for for ever, nor sent in a halt",
	{ base: () => relay.base, allowed: unreachable, init: (page) => page.clock.install() },
	async (page) => {
		const row = '#panel-own tr[data-state="unseen"]', again = "#panel-own .again";
		relay.up = false; // the order does not arrive
		await fill(page, "buy", "50001", "0.1");
		await send(page);
		await page.waitForSelector('#panel-own tr[data-state="sending"]');
		relay.cut();
		await page.waitForSelector(row);
		await says(page, again, "^Send again$");
		await send(page); // the same again would be a second one
		await says(page, question, "Whether an earlier one was placed is unknown\\.");
		await accessible(page, "a second order, perhaps");
		await no(page);
		await exchange.operator("pair", "halt", "BTC_USDT");
		await says(page, again, "^Halted$");
		assert(await page.isDisabled(again));
		await accessible(page, "an order that cannot be sent again");
		await exchange.operator("pair", "resume", "BTC_USDT");
		await exchange.operator("maintenance", "on");
		await says(page, again, "^Maintenance$");
		await exchange.operator("maintenance", "off");
		await says(page, again, "^Send again$");
		assert(!await page.isDisabled(again));
		await until("it is settled", async () => {
			await page.clock.fastForward(10_000);
			return /The exchange does not have that order/.test(await page.innerText(".outcome"));
		});
		await page.waitForSelector(row, { state: "detached" });
		assert.equal(await page.evaluate(() => sessionStorage.getItem("orders")), "[]");
		assert.equal((await exchange.get("alice", "/api/v1/orders/own/?status=1")).length, 0);
	});

terminal("an order is looked for before it is sent again, and not sent without an answer",
	{ base: () => relay.base, allowed: unreachable }, async (page) => {
		let finds = 0, isOff = false;
		await page.route("**/orders/own/?client_order_id=*", (route) => {
			finds++;
			return isOff ? route.abort() : route.continue();
		});
		relay.up = false;
		await fill(page, "buy", "50001", "0.1");
		await send(page);
		await page.waitForSelector('#panel-own tr[data-state="sending"]');
		relay.cut();
		await page.waitForSelector('#panel-own tr[data-state="unseen"]');
		isOff = true;
		await page.click("#panel-own .again");
		await page.waitForSelector('#panel-own tr[data-state="unknown"]');
		assert.equal((await exchange.get("alice", "/api/v1/orders/own/?status=1")).length, 0);
		isOff = false;
		await page.waitForSelector('#panel-own tr[data-state="unseen"]');
		const before = finds;
		await page.click("#panel-own .again");
		await open(page, 1);
		assert(finds > before);
	});

terminal("a key that may only read says so on a phone, too",
	{ isVisitor: true, viewport: { width: 390, height: 844 } }, async (page) => {
		const { stdout } = await exchange.operator("key", "create", "alice", "--json",
			"--permissions", "read");
		const { key, secret } = JSON.parse(stdout);
		await page.click(".account");
		await page.fill("[name=key]", key);
		await page.fill("[name=secret]", secret);
		await page.click(".login .main");
		await says(page, "#sides", "^This key may not trade\\.$");
		assert(await page.isVisible("#sides"));
		await accessible(page, "a key that may only read");
	});
