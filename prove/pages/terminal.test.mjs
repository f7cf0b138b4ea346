// The terminal in a browser, against the real program.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { accessible, launch, shows, visit } from "./helpers/browser.mjs";
import { Exchange, until } from "./helpers/exchange.mjs";
import { random } from "./helpers/random.mjs";
import { says } from "./helpers/traders.mjs";

const exchange = new Exchange();
let browser;

before(async () => {
	await exchange.start();
	for (let i = 0; i < 30; i++) {
		await exchange.order("alice", "BTC_USDT", "sell", (0.01 + i / 200).toFixed(5), 64010 + i * 7.5);
		await exchange.order("alice", "BTC_USDT", "buy", (0.01 + i / 300).toFixed(5), 63990 - i * 7.5);
	}
	await exchange.order("bob", "BTC_USDT", "buy", 0.02, 64020);
	await exchange.order("bob", "BTC_USDT", "sell", 0.005, 63980);
	browser = await launch();
});
after(async () => {
	await browser?.close();
	await exchange.end();
});

/** terminal gives a live terminal to a test. */
const terminal = (name, options, body) =>
	test(name, () => visit(browser, `${exchange.base}${options.path ?? "/"}`, { name, ...options, path: undefined }, async (page) => {
		if (options.state !== null) await shows(page, options.state ?? "live");
		await body(page);
	}));

const texts = (page, selector) => page.$$eval(selector, (list) => list.map((e) => e.innerText.trim()));

// Console messages of an unreachable or failing server.
const unreachable = [/^WebSocket connection to .* failed/, /^Failed to load resource/];

terminal("a visitor sees the market without a key", {}, async (page) => {
	assert.equal(new URL(page.url()).pathname, "/trade");
	await page.waitForFunction(() => document.querySelectorAll("#panel-trades tbody tr").length === 3);
	assert.match((await texts(page, "#panel-trades tbody tr"))[0], /^Sell\s+63,990\.00\s+0\.00500\s+\d\d:\d\d:\d\d$/);
	await page.waitForFunction(() => document.querySelector(".day .last dd").textContent === "63,990.00");
	assert.equal(await page.title(), "63,990.00 BTC/USDT");
	await page.waitForFunction(() => /\d/.test(document.querySelector("#panel-book .buy [role=row]")?.innerText) && /[1-9]/.test(document.querySelector("#depth .words")?.textContent.replace("1%", "")));
	const rows = await texts(page, "#panel-book .buy [role=row]");
	assert.equal(rows[0].replace(/\s+/g, " "), "63,990.00 0.00500 0.00500");
	const asks = (await texts(page, "#panel-book .sell [role=row]")).filter(Boolean);
	assert.equal(asks.at(-1).replace(/\s+/g, " "), "64,017.50 0.00500 0.00500");
	await page.waitForFunction(() => /O.*63,990\.00.*V.*0\.0250/s.test(document.querySelector(".legend").innerText));
	assert.match(await page.textContent("#depth .words"), /^Within 1%: bids [\d.]+ BTC, asks [\d.]+ BTC$/);
	assert.equal(await page.getAttribute('a[target="_blank"]', "href"), "https://www.tradingview.com/");
});

terminal("the depth counts from the middle of the spread", { path: "/trade?pair=ETH_USDT" },
	async (page) => {
		for (const [away, amount] of [[10, 1], [29, 2], [31, 4]]) { // 30 of 3,000 is 1 %
			await exchange.order("alice", "ETH_USDT", "buy", amount, 3000 - away);
			await exchange.order("alice", "ETH_USDT", "sell", amount, 3000 + away);
		}
		await says(page, "#depth .words", "^Within 1%: bids 3\\.00 ETH, asks 3\\.00 ETH$");
		await exchange.order("bob", "ETH_USDT", "buy", 3, 3029);
		await exchange.order("bob", "ETH_USDT", "sell", 3, 2971);
		await says(page, "#depth .words", "^Within 1%: bids 0\\.00 ETH, asks 0\\.00 ETH$");
		await exchange.post("alice", "/api/v1/order-cancel-all/", { pair: "ETH_USDT" });
	});

terminal("amounts have their currency, and times their zone", { timezoneId: "Asia/Kolkata" },
	async (page) => {
		await says(page, "#panel-book .head",
			"Price \\(USDT\\)\\s+Amount \\(BTC\\)\\s+Total \\(BTC\\)");
		await says(page, "#panel-trades thead", "Time \\(UTC\\+5:30\\)");
		const [is, may] = await page.$eval("#panel-trades .table", (e) =>
			[e.scrollWidth, e.clientWidth]);
		assert(is <= may, `${is} px`);
	});

terminal("the last price can be read on the chart's axis", { cookies: { theme: "dark" } },
	(page) => page.waitForFunction(() => [...document.querySelectorAll("#chart canvas")].some((c) => {
		const { data } = c.getContext("2d").getImageData(0, 0, c.width, c.height);
		for (let i = 0; i < data.length; i += 4) {
			if (["0,120,90", "200,30,60"].includes(`${data.slice(i, i + 3)}`)) return true;
		}
		return false;
	})));

test("the terminal keeps its budget of bytes and requests", () => {
	const asked = [], sizes = {};
	return visit(browser, `${exchange.base}/trade`, { name: "budget", init: (page) => {
		page.on("request", (request) => asked.push(new URL(request.url()).pathname));
		page.on("websocket", () => asked.push("websocket"));
	} }, async (page) => {
		await shows(page, "live");
		await page.waitForSelector("#panel-trades tbody tr");
		assert(asked.length <= 25, `${asked.length} requests: ${asked}`);
		for (const path of new Set(asked.filter((p) => p.startsWith("/web/")))) {
			const answer = await fetch(exchange.base + path, { headers: { "Accept-Encoding": "gzip" } });
			sizes[path] = Number(answer.headers.get("content-length"));
			await answer.arrayBuffer();
		}
		const sum = (paths) => paths.reduce((n, path) => n + sizes[path], 0);
		const all = sum(Object.keys(sizes)), own = sum(Object.keys(sizes).filter((p) => !p.includes("/vendor/")));
		assert(all > 50_000 && all <= 140_000, `${all} bytes`);
		assert(own > 5_000 && own <= 52_000, `${own} bytes of its own`);
	});
});

terminal("the local book is the exchange's under the same update id", {}, async (page) => {
	await page.evaluate(async () => {
		const { ladder } = await import(document.querySelector('script[type="module"]').src);
		const original = ladder.onChange;
		window.books = new Map();
		const keep = () => window.books.set(ladder.book.updateId, ["sell", "buy"].map((side) => ladder.book.sides[side].map((l) => l.text)));
		ladder.onChange = () => (original(), keep());
		keep();
	});
	const next = random(11), same = new Set();
	for (let round = 0; same.size < 25; round++) {
		assert(round < 400, `${same.size} books were compared`);
		const type = next(2) ? "buy" : "sell";
		await exchange.order(next(2) ? "alice" : "bob", "BTC_USDT", type, ((1 + next(500)) / 1e5).toFixed(5), (64000 + (type === "buy" ? -1 : 1) * (next(9000) / 100 - 10)).toFixed(2));
		const answer = await fetch(`${exchange.base}/api/v1/orderbook/BTC_USDT/?group=1`);
		const id = Number(answer.headers.get("x-update-id")), body = await answer.text();
		const levels = (side) => [...body.match(new RegExp(`"${side}":\\[(.*?)\\]`))[1].matchAll(/"price":([\d.]+),"amount":([\d.]+)/g)].map((m) => `${m[1]}:${m[2]}`);
		await page.waitForFunction((id) => Math.max(...window.books.keys()) >= id, id);
		const local = await page.evaluate((id) => window.books.get(id), id);
		if (!local) continue; // several changes came as one
		assert.deepEqual(local, [levels("sell"), levels("buy")], `update id ${id}`);
		same.add(id);
	}
});

terminal("halts and maintenance are seen live, and a message is text", {}, async (page) => {
	await exchange.operator("pair", "halt", "BTC_USDT");
	await shows(page, "halted");
	assert.match(await page.textContent("#notice"), /BTC\/USDT is halted/);
	await accessible(page, "halted");
	await page.click(".pair");
	assert.match(await page.textContent("#pair-0"), /BTC\/USDT.*Halted/s);
	await page.keyboard.press("Escape");
	await exchange.operator("pair", "resume", "BTC_USDT");
	await shows(page, "live");
	const script = "<img src=x onerror=alert(1)><script>alert(2)</script>";
	await exchange.operator("maintenance", "on", "--message", script);
	await shows(page, "maintenance");
	assert.equal((await page.textContent("#notice")).trim(), `Maintenance: nothing is taken now. ${script}`);
	assert.equal(await page.$("#notice img, #notice script"), null);
	await accessible(page, "maintenance");
	await exchange.operator("maintenance", "off");
	await exchange.operator("maintenance", "on", "--cancels");
	await page.waitForFunction(() => document.querySelector("#notice").textContent.includes(
		"Maintenance: only cancels are taken now."));
	await exchange.operator("maintenance", "off");
	await shows(page, "live");
	assert(!await page.isVisible("#notice"));
});

terminal("a script in the address does not run, and an unknown pair leads to the first", {
	path: `/trade?pair=${encodeURIComponent("<img src=x onerror=alert(1)>")}` }, async (page) => {
	assert.equal((await page.innerText(".pair b")), "BTC");
});

terminal("an exchange that starts says so", { state: "starting", allowed: unreachable, path: "/trade", init: async (page) => {
	let refused = 0;
	await page.route("**/api/v1/exchange-info/", (route) => (refused++ < 3
		? route.fulfill({ status: 503, json: { detail: "The exchange is starting." } }) : route.continue()));
} }, async (page) => {
	await shows(page, "live");
});

terminal("a page of an older version offers to reload", { allowed: unreachable, init: async (page) => {
	await page.route("**/js/api.js", (route) => (route.request().method() === "HEAD" ? route.fulfill({ status: 404 }) : route.continue()));
} }, async (page) => {
	await exchange.kill();
	await shows(page, "reconnecting");
	await exchange.start();
	await page.click("#notice button");
	await shows(page, "live");
});

terminal("Back closes the list of pairs, and a pair that is chosen there can be left by it",
	{ viewport: { width: 390, height: 844 } }, async (page) => {
		const shown = (base) => says(page, ".pair b", base);
		const gone = () => page.waitForSelector(".pairs", { state: "detached" });
		const { href } = new URL(page.url());
		await page.click(".pair");
		await page.waitForSelector(".pairs");
		await page.evaluate(() => history.back());
		await gone();
		assert.equal(page.url(), href);
		await page.click(".pair");
		await page.click(".pairs li:has-text('ETH/BTC')");
		await gone();
		await shown("ETH");
		assert.equal(new URL(page.url()).search, "?pair=ETH_BTC");
		await page.evaluate(() => history.back());
		await shown("BTC");
		assert.equal(page.url(), href);
	});

terminal("a pair is chosen by keyboard alone", {}, async (page) => {
	await page.keyboard.press("/");
	await accessible(page, "the list of pairs");
	await page.keyboard.type("ethb");
	await page.keyboard.press("Enter");
	await page.waitForFunction(() => document.querySelector(".pair b").textContent === "ETH");
	assert.equal(new URL(page.url()).search, "?pair=ETH_BTC");
	await page.waitForFunction(() => document.querySelector("#panel-book .middle").textContent === "No orders");
	await page.waitForFunction(() => document.querySelector("#panel-trades .table").textContent === "No trades yet");
	await page.waitForFunction(() => /^No trades yet/.test(document.querySelector("#chart .empty")?.textContent));
	assert.equal(await page.evaluate(() => document.activeElement.className), "pair");
	const depth = (form) => says(page, "#depth .words", form);
	await depth("^No orders$");
	await exchange.order("alice", "ETH_BTC", "sell", "2", "0.07"); // one side of a book, too
	await depth("bids 0\\.00 ETH, asks 2\\.00 ETH");
	await says(page, "#panel-book .middle", "^No buy orders$");
	await page.goBack();
	await page.waitForFunction(() => document.querySelector(".pair b").textContent === "BTC");
	await page.keyboard.press("/");
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("Escape");
	assert.equal(await page.$(".pairs"), null);
	await page.keyboard.press("?");
	await page.waitForSelector("dialog[open]");
	await accessible(page, "the list of keys");
	await page.keyboard.press("Escape");
	await page.click(".settings");
	await accessible(page, "the settings");
	await page.uncheck("dialog [name=singleKeys]");
	await page.click(".done");
	await page.keyboard.press("/");
	await page.keyboard.press("?");
	assert.equal(await page.$(".pairs, dialog"), null);
});

terminal("colours are kept, and stand in the page from its first byte", {}, async (page) => {
	await page.click(".settings");
	await page.selectOption("select[name=theme]", "light");
	await page.selectOption("select[name=palette]", "blue");
	await page.click(".done");
	assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(238, 241, 245)");
	const html = await (await page.reload()).text();
	assert.match(html, /data-theme="light" data-palette="blue"/);
	await page.click(".settings");
	await page.selectOption("select[name=theme]", "");
	await page.selectOption("select[name=palette]", "");
	assert.match(await (await page.reload()).text(), /data-theme="" data-palette=""/);
});

terminal("the book is grouped, asks up and bids down", {}, async (page) => {
	await page.selectOption(".group", "1000");
	await page.waitForFunction(() => {
		const prices = [...document.querySelectorAll("#panel-book .side [role=gridcell]:first-child")].map((cell) => cell.innerText);
		return prices.some(Boolean) && prices.every((price) => /^$|0\.00$/.test(price));
	});
	const number = (text) => Number(text.split(/\s+/)[0].replace(/,/g, ""));
	const asks = (await texts(page, "#panel-book .sell [role=row]")).filter(Boolean).map(number);
	const bids = (await texts(page, "#panel-book .buy [role=row]")).filter(Boolean).map(number);
	const book = await (await fetch(`${exchange.base}/api/v1/orderbook/BTC_USDT/?group=1`)).json();
	assert.equal(asks.at(-1), Math.ceil(book.sell[0].price / 10) * 10);
	assert.equal(bids[0], Math.floor(book.buy[0].price / 10) * 10);
});

/** ahead sets the clock of a page. */
const ahead = (ms) => (page) => page.addInitScript((ms) => {
	const { now } = Date;
	Date.now = () => now() + ms;
}, ms);

terminal("a clock that is ahead is reported", { init: ahead(5000) }, async (page) => {
	assert.match(await page.textContent("#notice"), /^The clock of this device is [456] s ahead of/);
	await accessible(page, "a clock that is ahead");
});

terminal("a clock that is slow is reported", { init: ahead(-5000) }, async (page) => {
	assert.match(await page.textContent("#notice"), /^The clock of this device is [456] s behind/);
});

terminal("a correct clock is not reported", {}, async (page) => {
	assert(!await page.isVisible("#notice"));
});

terminal("a page that comes back by Back, or from its cache, reads again", {}, async (page) => {
	await page.goto(`${exchange.base}/licenses`);
	await page.goBack();
	await shows(page, "live");
	await page.waitForSelector("#panel-trades tbody tr");
	const cached = await page.evaluate(() => performance.getEntriesByType("resource")
		.filter((e) => e.name.includes("/api/") && e.transferSize === 0).map((e) => e.name));
	assert.deepEqual(cached, []);
	await page.evaluate(() => {
		window.isOld = true;
		dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }));
	});
	await page.waitForFunction(() => !window.isOld);
	await shows(page, "live");
});

terminal("the candles that are shown are also a table", {}, async (page) => {
	await page.click(".frames button:first-child");
	await page.click(".as-table");
	await page.waitForSelector(".candles tbody tr");
	const [newest] = await texts(page, ".candles tbody tr:first-child td:nth-child(5)");
	await page.waitForFunction((close) => document.querySelector(".legend").innerText.includes(close), newest);
	await accessible(page, "the table of candles");
});

/** axis returns the contrast of the chart's axis while the data is not live. */
const axis = (page) => page.evaluate(() => {
	document.body.classList.add("stale");
	const { opacity } = getComputedStyle(document.querySelector("#chart .picture"));
	const parts = (colour) => colour.match(/\d+/g).map(Number);
	const over = parts(getComputedStyle(document.querySelector("#chart .foot")).color);
	const below = parts(getComputedStyle(document.querySelector("#chart")).backgroundColor);
	const light = (rgb) => rgb.map((c) => (c / 255) ** 2.2)
		.reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0.05);
	const [least, most] = [light(below), light(over.map((c, i) =>
		c * opacity + below[i] * (1 - opacity)))].sort((a, b) => a - b);
	return most / least;
});

for (const [width, height] of [[1440, 900], [768, 1024], [390, 844]]) {
	for (const theme of ["dark", "light"]) {
		for (const palette of width === 1440 ? ["", "blue"] : [""]) {
			terminal(`the page is accessible and no wider than ${width} px, ${theme} ${palette}`, { viewport: { width, height }, cookies: { theme, ...(palette && { palette }) } }, async (page) => {
				const shown = width < 720 ? ["chart", "book", "trades"] : [""];
				for (const tab of shown) {
					if (tab) await page.click(`#tab-${tab}`);
					for (const panel of ["chart", "book", "trades"]) {
						assert.equal(await page.isVisible(`#panel-${panel}`), !tab || tab === panel, `${panel} beside ${tab}`);
					}
					await accessible(page, `${width} ${theme} ${tab}`);
					const [is, may] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
					assert(is <= may, `${is} px`);
				}
				assert(await axis(page) >= 4.5);
			});
		}
	}
}

terminal("a silent market fills a window that grows", { path: "/trade?pair=BTC_USDT", viewport: { width: 1440, height: 400 } }, async (page) => {
	const count = () => page.$$eval("#panel-book .buy [role=row]", (rows) => rows.filter((r) => r.innerText.trim()).length);
	await page.waitForFunction(() => document.querySelector("#panel-book .buy [role=row]").innerText.trim());
	const few = await count();
	await page.setViewportSize({ width: 1440, height: 900 });
	await until("more rows", async () => await count() > few);
});

terminal("colours may be forced, and motion unwanted", { forcedColors: "active", reducedMotion: "reduce" }, async (page) => {
	await accessible(page, "forced colours");
});

test("the licences are shown", () => visit(browser, `${exchange.base}/licenses`, { name: "licences" }, async (page) => {
	assert.match(await page.innerText("body"), /TradingView, Inc\./);
	await accessible(page, "licences");
}));

test("the page of the API works in its sandbox, and reaches nothing of the other pages", () =>
	visit(browser, `${exchange.base}/trade`, { name: "docs", allowed: [/blocked by CORS policy/, /^Failed to load resource: net::ERR_FAILED$/] }, async (page) => {
		await shows(page, "live");
		await page.evaluate(() => localStorage.setItem("secret", "of the terminal"));
		await page.goto(`${exchange.base}/docs`);
		await page.waitForSelector(".opblock", { timeout: 60_000 }); // it is large
		assert.equal(await page.evaluate(() => self.origin), "null");
		assert.equal(await page.evaluate(() => fetch("/api/v1/time/").then((answer) => answer.status)), 200);
		assert.equal(await page.evaluate(() => {
			try {
				return localStorage.getItem("secret");
			} catch (refused) {
				return refused.name;
			}
		}), "SecurityError");
		assert.equal(await page.evaluate(() => fetch("/trade").then(() => "read", () => "refused")), "refused");
	}));

for (const theme of ["dark", "light"]) {
	terminal(`the page of the API is in the pages' colours, and fits a phone, ${theme}`,
		{ cookies: { theme }, viewport: { width: 390, height: 844 } }, async (page) => {
			await page.click("#header .settings");
			await page.click('dialog a[href="/docs"]');
			await page.waitForSelector(".opblock", { timeout: 60_000 }); // it is large
			const fits = async () => {
				const [is, may] = await page.evaluate(() =>
					[document.documentElement.scrollWidth, document.documentElement.clientWidth]);
				assert(is <= may && may <= 390, `${is} px of ${may}`);
			};
			await fits();
			for (const path of ["/api/v1/order/", "/api/v1/exchange-info/"]) {
				await page.click(`.opblock-summary:has([data-path="${path}"]) button`);
			}
			await page.waitForSelector(".opblock-body .responses-table");
			await fits();
			await accessible(page, "the API", "color-contrast");
			assert.deepEqual(await page.evaluate(() => ["body", ".info p", ".opblock-body p"].map((s) =>
				getComputedStyle(document.querySelector(s))[s === "body" ? "backgroundColor" : "color"])),
			theme === "dark" ? ["rgb(10, 13, 18)", "rgb(232, 236, 243)", "rgb(232, 236, 243)"]
				: ["rgb(238, 241, 245)", "rgb(19, 24, 34)", "rgb(19, 24, 34)"]);
			await page.click('.top a[href="/trade"]');
			await shows(page, "live");
		});
}

terminal("an exchange that is killed and restarts is reported, and the page resumes without a reload", { allowed: unreachable }, async (page) => {
	await page.evaluate(() => (window.same = true));
	await exchange.kill();
	await shows(page, "reconnecting");
	assert(await page.isVisible(".not-live"));
	assert.match(await page.textContent("#notice"), /not live/);
	assert.equal(await page.textContent(".state"), "Reconnecting");
	await accessible(page, "reconnecting");
	await exchange.start();
	await exchange.order("bob", "BTC_USDT", "buy", 0.001, 65000);
	await shows(page, "live");
	assert(!await page.isVisible(".not-live"));
	const [newest] = await (await fetch(`${exchange.base}/api/v1/exchanges/?pair=BTC_USDT&limit=1`)).json();
	const price = newest.price.toLocaleString("en-US", { minimumFractionDigits: 2 });
	await page.waitForFunction((price) => document.querySelector("#panel-trades tbody tr").innerText.includes(price), price);
	await page.waitForFunction(async () => {
		const { ladder } = await import(document.querySelector('script[type="module"]').src);
		return ladder.book.updateId !== null;
	});
	assert.equal(await page.evaluate(() => window.same), true);
});
