// The order form in a browser, against the real program: remembered input, questions, layout.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible, painted, shows, visit } from "./helpers/browser.mjs";
import { fill, open, says, send, served, trade } from "./helpers/traders.mjs";

const own = served(), { exchange } = own;
const question = "dialog[open]";

/** terminal gives an account's terminal to a test, and cancels all orders after it. */
const terminal = (name, { account = "alice", ...options }, body) => test(name, async () => {
	try {
		await visit(own.browser, `${exchange.base}/trade`, { name, ...options }, async (page) => {
			await shows(page, "live");
			await trade(page, account);
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
const newest = async (account) =>
	(await exchange.get(account, "/api/v1/orders/own/?limit=1"))[0];
const type = (page, name) => page.selectOption("[name=type]", name);
const no = async (page) => {
	await page.keyboard.press("Escape");
	await page.waitForSelector("dialog", { state: "detached" });
};

terminal("each type remembers how long its orders stay, and no price that means another", {},
	async (page) => {
		const value = async (field) => {
			await painted(page);
			return page.inputValue(field);
		};
		const force = () => value("[name=force]");
		await type(page, "market");
		assert.equal(await force(), "ioc");
		await type(page, "limit");
		assert.equal(await force(), "gtc");
		await page.selectOption("[name=force]", "post");
		await type(page, "stopMarket");
		await page.fill("#form-second", "58000");
		await type(page, "stop");
		assert.equal(await force(), "gtc");
		await type(page, "market");
		assert.equal(await value("#form-second"), "");
		await type(page, "limit");
		assert.equal(await force(), "post");
		await page.click("#form-side-sell");
		await type(page, "oco");
		await page.click("#form-side-buy"); // there is none
		assert.deepEqual([await value("[name=type]"), await force()], ["limit", "post"]);
	});

for (const [width, height] of [[1366, 650], [1280, 600], [1024, 768], [1080, 700], [390, 844]]) {
	terminal(`an order can be sent at ${width}x${height}, whatever the form has`,
		{ viewport: { width, height } }, async (page) => {
			await place("bob", "sell", "1", "64000");
			await exchange.post("alice", "/api/v1/order/", { pair: "BTC_USDT", type: "sell",
				price: "71000.55", amount: "1.123456", oco_trigger_price: "58000.01",
				oco_price: "57000.01" });
			if (width < 720) await page.click("#sides .sell");
			else await page.waitForSelector('#panel-own tr[data-state="open"]');
			assert(await page.$eval("#panel-own .list", (list) =>
				list.scrollWidth <= list.clientWidth), "buttons cover the end of each row");
			for (const name of ["limit", "market", "stop", "stopMarket", "oco"]) {
				await page.click("#form-side-sell");
				await type(page, name);
				await page.$eval(".more", (fold) => (fold.open = true));
				await page.$eval("#panel-form", (form) => (form.scrollTop = 0));
				const hit = (selector) => page.$eval(selector, (e) => {
					const { left, right, top, bottom } = e.getBoundingClientRect();
					return [top, bottom - 1].every((y) =>
						document.elementFromPoint((left + right) / 2, y) === e);
				});
				assert(await hit("#panel-form .main"), name);
				await page.$eval(".more", (fold) => (fold.open = false));
				assert(await hit(".more summary"), `${name}: what is folded can be found`);
				if (width < 720) continue;
				assert(await page.$$eval("#panel-book .sell > div", (rows) => rows.length > 5), name);
				await says(page, "#panel-own tbody small", "\\d\\d:\\d\\d:\\d\\d");
			}
			await page.$eval(".more", (fold) => (fold.open = false));
			await page.fill("#form-price", "70000");
			await page.focus(".more summary");
			await page.keyboard.press("Enter");
			await page.fill("#form-display", "0.1");
			assert(await page.isVisible("[name=self]"));
			await says(page, ".more summary", "0\\.1"); // folded, it is still shown
			await accessible(page, `${width}x${height}`);
		});
}

for (const [width, height] of [[768, 1024], [844, 390], [1024, 768], [1280, 720], [1440, 900]]) {
	terminal(`no number of an open order is cut at ${width}x${height}`,
		{ viewport: { width, height } }, async (page) => {
			const place = (fields) => exchange.post("alice", "/api/v1/order/",
				{ pair: "BTC_USDT", type: "sell", ...fields });
			await place({ price: "64000.01", amount: "0.12345678" });
			await place({ type: "buy", price: "64000.01", amount: "1.2" });
			for (const end of [{}, { oco_price: "57000.01" }]) {
				await place({ price: "71000.55", amount: "1.12345678", oco_trigger_price: "58000.01", ...end });
			}
			await place({ amount: "0.5", order_type: "market", trigger_price: "50000" });
			await place({ type: "buy", price: "0.01", amount: "934567.5" });
			await page.waitForSelector("#panel-own tbody tr:nth-child(5)");
			await painted(page);
			assert.deepEqual(await page.$$eval("#panel-own tbody tr", (rows) => rows.flatMap((row) => {
				const list = row.closest(".list").getBoundingClientRect();
				const boxes = [...row.cells].map((cell) => {
					const range = document.createRange();
					range.selectNodeContents(cell);
					const { left, right, top, bottom } = range.getBoundingClientRect();
					return { cell, left, right, top, bottom };
				});
				const buttons = boxes.at(-1);
				return boxes.filter((a) => a.left < list.left || a.right > list.right
					|| a !== buttons && a.right > buttons.left && a.left < buttons.right
						&& a.bottom > buttons.top && a.top < buttons.bottom).map((a) => a.cell.innerText);
			})), []);
			const numbers = (n) => page.$$eval(`#panel-own tbody td:nth-child(${n})`, (list) =>
				list.map((e) => /\.(\d+)/.exec(e.innerText)[1].length));
			assert.deepEqual([...new Set([...await numbers(6), ...await numbers(7)])], [8]);
			await accessible(page, `open orders at ${width}x${height}`);
		});
}

terminal("the button is filled, and room goes to orders, not to the depth", {}, async (page) => {
	const look = (selector) => page.$eval(selector, (e) => ({ height: e.offsetHeight,
		fill: getComputedStyle(e).backgroundColor, words: getComputedStyle(e).color }));
	const panel = (await look("#panel-form")).fill;
	for (const side of ["buy", "sell"]) {
		await page.click(`#form-side-${side}`);
		const { fill, words } = await look("#panel-form .main");
		assert.equal(words, panel);
		assert.notEqual(fill, panel);
		assert(!/, 0\)/.test(fill), fill);
	}
	assert((await look("#depth")).height <= 110);
	for (let i = 0; i < 10; i++) await place("alice", "buy", "0.1", `${60000 + i}`);
	await open(page, 10);
	assert(await page.$eval("#panel-own .list", (list) => list.scrollHeight <= list.clientHeight));
});

for (const theme of ["dark", "light"]) {
	terminal(`no word of the form is cut, and a box is filled when it is checked, ${theme}`,
		{ cookies: { theme }, viewport: { width: 1024, height: 768 } }, async (page) => {
			// by canvas: what a list or a date shows has no element
			const cut = () => page.$$eval("#panel-form select, #form-until", (list) => list.filter((e) => {
				const style = getComputedStyle(e), draw = document.createElement("canvas").getContext("2d");
				draw.font = style.font;
				const words = e.selectedOptions?.[0].innerText ?? "12/31/2026, 11:59 PM";
				return draw.measureText(words).width + 32 > e.clientWidth;
			}).map((e) => e.name));
			for (const force of ["gtc", "gtd", "ioc", "fok", "post", "slide"]) {
				await page.selectOption("[name=force]", force);
				await painted(page);
				assert.deepEqual(await cut(), [], force);
			}
			await page.click(".settings");
			const confirm = "dialog [name=confirm]";
			const box = () => page.$eval(confirm, (e) => getComputedStyle(e).appearance);
			assert.equal(await box(), "none");
			await page.check(confirm);
			assert.equal(await box(), "auto");
		});
}

terminal("what an order takes at once is told apart from its rest", { account: "bob" },
	async (page) => {
		await place("alice", "sell", "0.2", "64000");
		await says(page, "#panel-book .sell", "64,000");
		await fill(page, "buy", "64000", "0.5");
		const now = (form) => says(page, ".sums", `Fills now\\s+${form}\\s+Max`);
		await now("0\\.20 of 0\\.50 BTC; the rest rests in the book");
		await page.selectOption("[name=force]", "ioc");
		await now("0\\.20 of 0\\.50 BTC; the rest is cancelled");
		await page.selectOption("[name=force]", "fok");
		await now("Nothing; it is cancelled");
		await page.selectOption("[name=force]", "gtc");
		await page.fill("#form-amount", "0.1");
		await now("0\\.10 BTC");
		await page.fill("#form-price", "63000");
		await now("Nothing; it rests in the book");
		await type(page, "market");
		await page.fill("#form-total", "20000");
		await says(page, ".sums", "Fills now\\s+12,800\\.00 of 20,000\\.00 USDT; the rest is cancelled");
	});

terminal("the outcome of an order goes when the next one is typed", {}, async (page) => {
	for (const [field, is] of [["price", "60001"], ["amount", "0.2"]]) {
		await fill(page, "buy", "60000", "0.1");
		await send(page);
		await says(page, ".outcome", "Order placed");
		await page.fill(`#form-${field}`, is);
		await says(page, ".outcome", "^$");
	}
	await fill(page, "buy", "60000", "0.1");
	await send(page);
	await says(page, ".outcome", "Order placed");
	await page.click(".more summary");
	await page.selectOption("[name=self]", "cancel_both");
	await says(page, ".outcome", "^$");
});

terminal("a question has all that the order says", { timezoneId: "Asia/Kolkata" }, async (page) => {
	await page.click(".settings");
	await page.check("dialog [name=confirm]");
	await page.click(".done");
	await fill(page, "buy", "60000", "1");
	await page.selectOption("[name=force]", "gtd");
	await page.fill("#form-until", "2027-12-31T23:59");
	await page.click(".more summary");
	await page.fill("#form-display", "0.1");
	await send(page);
	await says(page, question, "BTC/USDT, Limit, iceberg\\s.*Good till\\s+Dec 31, 2027 23:59 "
		+ "\\(UTC\\+5:30\\)");
	assert.doesNotMatch(await page.innerText(question), /prevention/);
	await no(page);
	await page.selectOption("[name=self]", "cancel_oldest");
	await send(page);
	await says(page, question, "Self-trade prevention\\s+Cancel resting");
	await no(page);
	await type(page, "market"); // hides nothing
	await page.fill("#form-amount", "0.1");
	await send(page);
	await says(page, question, "BTC/USDT, Market\\s");
});

terminal("what the exchange says has sentences, and numbers as the page writes them", {},
	async (page) => {
		const said = await page.evaluate(async () => {
			const { name } = performance.getEntriesByType("resource")
				.find((each) => each.name.endsWith("/words.js"));
			const { readable, wordsOf } = await import(name);
			const of = (detail) => wordsOf({ status: 503, body: { detail } });
			return [of("The exchange is in maintenance. Back at noon"), of("It is paused."),
				readable(["At least 60800.5 on BTC_USDT.", "0.00001 is too little, 1000 is enough."]),
				readable("Already used by order 12345"),
				readable("Held until 2026-12-01T10:00:00Z, from 192.168.0.1")];
		});
		assert.deepEqual(said, [
			"The exchange is in maintenance. Back at noon. Nothing was done: try again.",
			"It is paused. Nothing was done: try again.",
			"At least 60,800.50 on BTC/USDT. 0.00001 is too little, 1,000.00 is enough.",
			"Already used by order 12345", "Held until 2026-12-01T10:00:00Z, from 192.168.0.1"]);
	});

terminal("a share of nothing cannot be taken, and a refusal has grouped numbers", {},
	async (page) => {
		const off = () => page.$$eval(".shares button:disabled", (list) => list.length);
		assert.equal(await off(), 0);
		await exchange.order("bob", "BTC_USDT", "sell", "0.01", "64000");
		await says(page, "#panel-book .sell", "64,000");
		await fill(page, "buy", "164000", "0.1"); // the band ends below
		await exchange.order("alice", "BTC_USDT", "sell", "100", "90000");
		await page.click("#form-side-sell");
		await page.waitForFunction(() =>
			document.querySelectorAll(".shares button:disabled").length === 4);
		await page.click("#form-side-buy");
		await page.waitForFunction(() => !document.querySelector(".shares button:disabled"));
		await page.fill("#form-amount", "1000000000");
		await page.fill("#form-price", "0.01");
		await send(page);
		await says(page, "#wrong-form-amount", "\\d,\\d\\d\\d");
		await fill(page, "sell", "", "");
		await type(page, "stopMarket");
		await says(page, ".sums", "Max\\. fee\\s+0%"); // of what cannot be known yet
	});

terminal("a limit far through the market, or its trigger, asks", {}, async (page) => {
	await place("bob", "sell", "1", "64000");
	await says(page, "#panel-book .sell", "64,000");
	await fill(page, "buy", "67201", "0.1");
	await page.press("#form-amount", "Enter");
	await says(page, question, "5\\.01% worse than the market's, 64,000\\.00");
	await says(page, question, "Amount\\s+0\\.10 BTC.*worst\\s+64,000\\.00 / 64,000\\.00");
	assert.equal(await page.evaluate(() => document.activeElement.className), "done");
	await accessible(page, "a dangerous order");
	await no(page);
	await page.selectOption("[name=force]", "post"); // takes nothing
	await send(page);
	await says(page, ".outcome", "post-only");
	await page.selectOption("[name=force]", "gtc");
	await fill(page, "buy", "67200", "0.1"); // no more than 5 %
	await send(page);
	await says(page, ".outcome", "Order placed: \\d+; 0\\.1.* filled at 64,000");
	await type(page, "stop");
	await page.fill("#form-trigger", "65000");
	await fill(page, "buy", "64999.99", "0.1");
	await send(page);
	await says(page, question, "below its trigger, 65,000\\.00: it may not fill");
	await no(page);
	await fill(page, "buy", "650000", "0.1");
	await send(page);
	await says(page, question, "900\\.00% worse than the trigger, 65,000\\.00");
	await page.click(`${question} .yes`);
	await says(page, ".outcome", "Order placed");
	await page.click("#panel-own .amend");
	await page.fill("dialog [name=trigger]", "66000");
	await page.fill("dialog [name=price]", "70000");
	await page.click("dialog .main");
	await says(page, "dialog:last-of-type", "6\\.07% worse than the trigger, 66,000\\.00");
	await page.click("dialog .yes");
	await says(page, "#panel-own .told", "amended: price 70,000\\.00, amount 0\\.10");
	await page.click("#panel-own .amend");
	await page.fill("dialog [name=trigger]", "70001");
	await page.click("dialog .main");
	await says(page, "dialog:last-of-type", "below its trigger, 70,001\\.00");
});

terminal("a market order shows what it would do, and asks when it goes far", { account: "bob" },
	async (page) => {
		await place("alice", "sell", "0.1", "64000");
		await place("alice", "sell", "0.1", "64700");
		await place("alice", "sell", "0.1", "65000");
		await says(page, "#panel-book .sell", "65,000.*64,000");
		await type(page, "market");
		await page.fill("#form-amount", "0.15");
		await says(page, ".sums", "worst\\s+64,233\\.33 / 64,700.*total\\s+9,635");
		await send(page);
		await says(page, question, "up to 1\\.10% worse");
		await place("alice", "sell", "0.2", "64000"); // it says what is so now
		await page.waitForFunction(() => !document.querySelector("dialog li"));
		await no(page);
		await page.fill("#form-total", "30000");
		await says(page, ".sums", "amount\\s+0\\.4");
		await page.fill("#form-total", "40000");
		await send(page);
		await says(page, question, "whole side: 0\\.5");
		await no(page);
		await page.selectOption("[name=force]", "fok");
		await page.fill("#form-amount", "2");
		await send(page);
		await says(page, question, "Only 0\\.50 BTC is there: the order is cancelled");
		assert.doesNotMatch(await page.innerText(question), /whole side/);
		await no(page);
		await page.selectOption("[name=force]", "ioc");
		await page.fill("#form-amount", "0.1");
		await send(page);
		await says(page, ".outcome", "0\\.1.* filled at 64,000");
		assert.equal((await newest("bob")).order_type, "market");
		await page.click("#form-side-sell");
		assert.equal(await page.$("#form-total"), null, "nothing is sold by its price");
	});

terminal("a market order ends where the price protection does, and says so", { account: "bob" },
	async (page) => {
		await place("bob", "sell", "5", "69000"); // it is not met
		await place("alice", "sell", "0.1", "64000");
		await place("alice", "sell", "0.1", "66000");
		await says(page, "#panel-book .sell", "69,000.*64,000");
		await type(page, "market");
		await page.fill("#form-amount", "1");
		await says(page, ".sums", "worst\\s+65,000\\.00 / 66,000\\.00.*protection\\s+67,200\\.00"
			+ ".*total\\s+13,000\\.00");
		await send(page);
		await says(page, question,
			"Price protection 67,200\\.00: about 0\\.20 BTC is filled, and the rest is cancelled");
		assert.doesNotMatch(await page.innerText(question), /whole side|own order/);
		await accessible(page, "a market order that is cut");
		await page.click(`${question} .yes`);
		await says(page, ".outcome", "0\\.20 BTC filled at 65,000\\.00 on average; the rest is "
			+ "cancelled: nothing more within the price protection, 67,200\\.00");
		await page.fill("#form-second", "68000"); // the trader's own
		await place("alice", "sell", "0.1", "67000");
		await page.fill("#form-amount", "0.5");
		await says(page, ".sums", "worst\\s+67,000\\.00");
		await send(page);
		await says(page, question, "Price limit 68,000\\.00: about 0\\.10 BTC");
		await no(page);
		await type(page, "stopMarket");
		await page.fill("#form-trigger", "70000");
		await page.fill("#form-amount", "0.1");
		await says(page, ".sums", "protection\\s+73,500\\.00.*Reserved\\s+7,350\\.00 USDT");
		await says(page, "#panel-form", "Stop-loss \\(≥\\)");
	});

terminal("a limit names own orders only if it reaches them", {}, async (page) => {
	const { oid: far } = await place("alice", "sell", "0.5", "66000");
	const { oid: farther } = await place("alice", "sell", "0.5", "66100");
	await place("bob", "sell", "0.1", "64000");
	await says(page, "#panel-book .sell", "66,100.*66,000.*64,000");
	await fill(page, "buy", "66100", "0.05");
	await says(page, ".sums", "worst\\s+64,000\\.00 / 64,000\\.00");
	assert.doesNotMatch(await page.innerText(".sums"), /own order/);
	await page.fill("#form-amount", "1");
	await says(page, ".sums", `your own orders ${far}, ${farther}: you trade with yourself`);
	await says(page, ".sums", "worst\\s+65,8\\d\\d\\.\\d\\d / 66,100\\.00.*Fills now\\s+1\\.00 BTC");
	await page.click(".more summary");
	await page.selectOption("[name=self]", "cancel_both");
	await says(page, ".sums", "worst\\s+64,000\\.00 / 64,000\\.00.*0\\.10 of 1\\.00 BTC; the rest is "
		+ `cancelled.*your own order ${far}: both are cancelled`);
	await says(page, "#panel-own .orders", `${farther}\\s.*${far}\\s`); // where they can be found
});

terminal("an OCO that would fill at once asks, and takes no price over", {}, async (page) => {
	await place("bob", "buy", "1", "64000");
	await says(page, "#panel-book .buy", "64,000");
	await fill(page, "sell", "63000", "0.1");
	await type(page, "oco");
	await painted(page);
	assert.equal(await page.inputValue("#form-price"), "");
	await page.fill("#form-price", "63500");
	await page.fill("#form-trigger", "60000");
	await send(page);
	await says(page, question, "not above the market's, 64,000\\.00: the order fills at once");
});

terminal("an OCO says when its stop comes, and what it is without a limit", {}, async (page) => {
	const placeholder = () => page.getAttribute("#form-second", "placeholder");
	await fill(page, "sell", "", "0.1");
	await type(page, "oco");
	await page.fill("#form-price", "70000");
	await page.fill("#form-trigger", "60000");
	await says(page, "#panel-form", "Trigger price \\(≤\\)");
	assert.equal(await placeholder(), "At market");
	await says(page, ".sums", "protection\\s+57,000\\.00");
	await page.selectOption("[name=force]", "post"); // what is sold at the market takes
	await page.waitForSelector('#form-second[placeholder=""]');
	await send(page);
	await says(page, "#wrong-form-second", "this field is empty");
	await page.selectOption("[name=force]", "gtc");
	await page.fill("#form-second", "60000.01");
	assert.doesNotMatch(await page.innerText(".sums"), /protection/);
	await send(page);
	await says(page, question, "above its trigger, 60,000\\.00: it may not fill");
	await no(page);
	await page.fill("#form-second", "");
	await page.click(".settings");
	await page.check("dialog [name=confirm]");
	await page.click(".done");
	await send(page);
	await says(page, question, "\\(≤\\)\\s+60,000\\.00 USDT\\s+Stop-limit price\\s+At market");
	await page.click(`${question} .yes`);
	await says(page, "#panel-own .orders", "stop\\s≤\\s60,000\\.00\\sat\\smarket");
});

terminal("what cannot be sent has no estimate, and a button that is off looks so", {},
	async (page) => {
		const edge = () => page.$eval("#panel-own .amend", (e) => getComputedStyle(e).borderColor);
		await place("bob", "sell", "1", "64000");
		await place("alice", "buy", "0.1", "60000");
		await says(page, "#panel-book .sell", "64,000");
		await open(page, 1);
		const is = await edge();
		await type(page, "market");
		await page.fill("#form-amount", "0.1");
		const estimate = "worst\\s+64,000\\.00 / 64,000\\.00.*protection\\s+67,200.*total\\s+6,400";
		await says(page, ".sums", estimate);
		try {
			await exchange.operator("maintenance", "on");
			await says(page, ".sums", "worst\\s+–\\s+.*protection\\s+–\\s.*total\\s+–\\s");
			await page.waitForSelector("#panel-own .amend:disabled");
			assert.notEqual(await edge(), is);
		} finally {
			await exchange.operator("maintenance", "off");
		}
		await says(page, ".sums", estimate);
	});

terminal("without a price a share of the money blames the price alone", {}, async (page) => {
	await page.click(".shares button:nth-child(2)");
	await says(page, ".sums", "Available");
	assert.match(await page.inputValue("#form-total"), /^\d+(\.\d{1,2})?$/);
	await send(page);
	await says(page, "#wrong-form-price", "this field is empty");
	assert.equal(await page.$("#wrong-form-amount"), null);
});

terminal("an order that would meet an own one says what becomes of it", {}, async (page) => {
	const { oid } = await place("alice", "sell", "0.5", "64000");
	await says(page, "#panel-book .sell", "64,000");
	await fill(page, "buy", "64000", "0.2");
	await says(page, ".sums", `your own order ${oid}: you trade with yourself`);
	await page.click(".more summary");
	await says(page, "[name=self]", "^Default: Allow");
	await page.selectOption("[name=self]", "cancel_newest");
	await says(page, ".sums", "what is left of the new order is cancelled");
	await page.selectOption("[name=force]", "post");
	await page.waitForFunction(() => !/own order/.test(document.querySelector(".sums").innerText));
});

terminal("too little money disables the button, and no amount is negative", { account: "bob" },
	async (page) => {
		await place("alice", "sell", "1", "64000");
		await fill(page, "buy", "60000", "1000");
		await says(page, "#panel-form .main", "^Not enough USDT$");
		assert(await page.isDisabled("#panel-form .main"));
		assert(!/[-−]\d/.test(await page.innerText(".sums")));
		await accessible(page, "too little money");
		await page.press("#form-amount", "Enter");
		await page.click(".shares button:last-child"); // all of it is enough
		await says(page, "#panel-form .main", "^Buy BTC$");
		await type(page, "market");
		await page.fill("#form-amount", "1000");
		await says(page, "#panel-form .main", "^Not enough USDT$");
		const free = Number(/Available\s+([\d,.]+)/.exec(await page.innerText(".sums"))[1].replaceAll(",", ""));
		const some = (price) => (free / price).toFixed(4), enough = "^Buy BTC$";
		const market = { pair: "BTC_USDT", type: "buy", order_type: "market", amount: some(65_000) };
		await assert.rejects(exchange.post("bob", "/api/v1/order/", market), /Out of balance/);
		await page.fill("#form-amount", market.amount); // its worst price is 67,200
		await says(page, "#panel-form .main", "^Not enough USDT$");
		await says(page, ".sums", "Reserved\\s+1\\d,\\d\\d\\d,\\d");
		await page.fill("#form-amount", some(67_201));
		await says(page, "#panel-form .main", enough);
		await page.fill("#form-amount", market.amount);
		await page.fill("#form-second", "64500");
		await says(page, "#panel-form .main", enough);
		await type(page, "stopMarket");
		await page.fill("#form-trigger", "66000");
		await page.fill("#form-amount", some(67_000)); // its worst price is 69,300
		await says(page, "#panel-form .main", "^Not enough USDT$");
		await page.fill("#form-second", "66500");
		await says(page, "#panel-form .main", enough);
		await type(page, "market");
		await page.fill("#form-amount", "1000");
		await page.click("#form-side-sell");
		await says(page, "#panel-form .main", "^Not enough BTC$");
		await page.fill("#form-amount", "0.1");
		await says(page, "#panel-form .main", "^Sell BTC$");
	});

terminal("all orders are cancelled only after a question", {}, async (page) => {
	await page.keyboard.press("Shift+C");
	await says(page, "#panel-own .told", "There are no open orders of BTC/USDT");
	await place("alice", "buy", "0.1", "60000");
	await place("alice", "buy", "0.1", "61000");
	await open(page, 2);
	await page.keyboard.press("Shift+C");
	await says(page, question, "Cancels 2 open orders of BTC/USDT\\.");
	assert.equal(await page.evaluate(() => document.activeElement.className), "done");
	await accessible(page, "a question");
	await no(page);
	await page.click("#panel-own .all");
	await says(page, question, "Cancels 2 open orders");
	assert.equal((await exchange.get("alice", "/api/v1/orders/own/?status=1")).length, 2);
	await page.keyboard.press("Enter"); // the safe answer
	await page.waitForSelector("dialog", { state: "detached" });
	await exchange.post("alice", "/api/v1/order/", { pair: "BTC_USDT", type: "sell", amount: "0.1",
		price: "50000", trigger_price: "51000" });
	await says(page, "#panel-own .orders", "Waiting");
	await page.click("#panel-own .all");
	await says(page, question, "Cancels 3 open orders of BTC/USDT\\.");
	await page.click(`${question} .yes`);
	await says(page, "#panel-own .told", "3 orders of BTC/USDT cancelled");
	await open(page, 0);
});

terminal("numbers are taken as the page shows them, and what could be two asks", {},
	async (page) => {
		await fill(page, "buy", "60,100.00", "0.1");
		await says(page, ".sums", "After order\\s+\\d");
		await send(page);
		await says(page, ".outcome", "Order placed");
		assert.equal((await newest("alice")).price, 60100);
		const wrong = async (field, is, form) => {
			await page.fill(`#form-${field}`, is);
			await send(page);
			await says(page, `#wrong-form-${field}`, form);
		};
		await wrong("amount", "1,234", "could be 1234 or 1\\.234");
		await wrong("amount", "", "this field is empty");
		await wrong("amount", "0", "above 0");
		await wrong("price", "abc", "such as 1,234\\.50");
		await page.click("#panel-own .amend");
		await page.fill("dialog [name=price]", "60,200.5");
		await page.click("dialog .main");
		await says(page, "#panel-own .told", "price 60,200\\.50");
		await page.click(".settings");
		await page.check("dialog [name=confirm]");
		await page.click(".done");
		await page.click("#panel-own .amend");
		await page.fill("dialog [name=price]", "60,100.00");
		await page.click("dialog .main");
		await says(page, "dialog:last-of-type", "^Amend order \\d+: Buy BTC.*Price\\s+60,100\\.00");
		await page.click("dialog .yes");
		await says(page, "#panel-own .told", "price 60,100\\.00");
	});

terminal("a page in German writes what it reads itself", { locale: "de-DE", account: "bob" },
	async (page) => {
		await place("bob", "sell", "0.1", "64000.5");
		await page.waitForFunction(() => document.querySelector("#panel-book .sell [data-id]"));
		await page.click("#panel-book .sell [data-id]");
		assert.equal(await page.inputValue("#form-price"), "64000,5");
		await page.fill("#form-price", "2.000,5");
		await page.fill("#form-amount", "0,5");
		assert.equal(await page.inputValue("#form-total"), "1000,25");
		await page.fill("#form-price", "1.234");
		await send(page);
		await says(page, "#wrong-form-price", "could be 1234 or 1,234");
	});

terminal("words are a trader's, pairs are BTC/USDT, and what does nothing is not there",
	{ account: "bob" }, async (page) => {
		assert.equal(await page.innerText("#header > .account"), "bob");
		await says(page, "#panel-own", "No open orders");
		assert.equal(await page.$("#panel-own .all"), null);
		const { oid } = await exchange.post("bob", "/api/v1/order/", { pair: "BTC_USDT",
			type: "sell", amount: "1", price: "90000", display_amount: "0.1" });
		await says(page, "#panel-own .orders", "BTC/USDT.*Limit, iceberg: visible 0\\.1");
		await says(page, "#panel-own .all", "Cancel all of BTC/USDT");
		assert.equal(await page.innerText("#panel-own thead tr > :last-child"), "");
		await says(page, "#panel-own thead", "^Order, time \\(UTC[-+\\d:]*\\)");
		const one = page.getByRole("switch", { name: "This pair only" });
		await one.check();
		await page.keyboard.press("o"); // it is no field of text
		await page.waitForSelector("tr[data-id]:focus");
		await one.uncheck();
		await page.click("#form-side-sell");
		await page.click(".more summary");
		for (const type of ["limit", "market", "stop", "stopMarket", "oco"]) {
			await page.selectOption("[name=type]", type);
			const said = await page.innerText("body");
			assert.doesNotMatch(said, /[A-Z]_[A-Z]|Stays|Meets own|\bFree\b|Show only|As a$/m, type);
			assert.match(said, /Time in force.*Self-trade\s+prevention.*Available.*After order/si, type);
		}
		await page.selectOption("[name=force]", "slide");
		await page.click(".amend");
		await says(page, "dialog", "BTC/USDT, .*Limit, iceberg: visible 0\\.1.*queue position");
		await page.click("dialog .done");
		await exchange.post("bob", "/api/v1/order-cancel/", { order: oid });
		await page.waitForSelector("#panel-own .all", { state: "detached" });
	});
