// A page that receives everything late, or nothing more, against the real program. The relay ends
// its connection as the exchange does for a client that reads too slowly: without a close frame.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { accessible, launch, shows, visit } from "./helpers/browser.mjs";
import { Exchange, until } from "./helpers/exchange.mjs";
import { Relay } from "./helpers/relay.mjs";
import { says, unreachable } from "./helpers/traders.mjs";

const exchange = new Exchange({ env: { EXCHANGE_LIMITS_COMMAND_RATE: "0" } });
const relay = new Relay();
let browser;

before(async () => {
	await exchange.start();
	await relay.start(exchange.port);
	browser = await launch();
});
after(async () => {
	await browser?.close();
	relay.end();
	await exchange.end();
});

/** batch places orders of an account at once. */
const batch = (account, orders) => exchange.post(account, "/api/v1/order-batch/", { orders:
	JSON.stringify(orders.map((o) => ({ do: "place", pair: "BTC_USDT", ...o }))) });

/** cut cuts the page's connection, and waits for the book by the next one. */
async function cut(page) {
	const id = await page.evaluate(() => window.stream.id);
	relay.cut();
	await page.waitForFunction((id) => ![id, ""].includes(window.stream.id)
		&& window.book.updateId !== null && document.body.dataset.state === "live", id);
}

test("a page that is too slow says so, and comes back with the best 20 prices", () =>
	visit(browser, `${relay.base}/trade`, { name: "too slow", allowed: unreachable },
		async (page) => {
			await shows(page, "live");
			for (let i = 0; i < 1500; i += 50) {
				await batch("alice", Array.from({ length: 50 }, (_, n) => ({ type: "sell",
					amount: "0.00112233", price: (70000 + (i + n) * 1.13).toFixed(2) })));
			}
			await page.evaluate(async () => {
				const { ladder } = await import(document.querySelector('script[type="module"]').src);
				window.book = ladder.book;
				window.stream = ladder.stream;
			});
			await page.waitForFunction(() => window.book.sides.sell.length === 1500);
			for (const [delay, price] of [[1500, 69900], [3000, 69800]]) { // ever later, never silent
				relay.delay = delay;
				await exchange.order("alice", "BTC_USDT", "sell", "0.5", price);
				await says(page, "#panel-book .sell", `${price / 1000 | 0},${price % 1000}\\.00`);
			}
			relay.delay = 4500;
			await exchange.order("alice", "BTC_USDT", "sell", "0.5", "69500");
			await says(page, "#panel-book .sell", "69,500\\.00");
			relay.delay = 0;
			relay.cut();
			await says(page, "#notice", "Too slow");
			await shows(page, "live");
			await page.waitForFunction(() => window.book.sides.sell.length === 20);
			await says(page, "#panel-book .short", "The best 20 prices only");
			await says(page, "#depth .words", "of the best 20 prices");
			assert.match(await page.textContent("#notice"), /^Too slow: /);
			await accessible(page, "a page that is too slow");
			await exchange.order("alice", "BTC_USDT", "sell", "0.5", "69000");
			await says(page, "#panel-book .sell", "69,000\\.00");
			await cut(page);
			assert.equal(await page.evaluate(() => window.book.sides.sell.length), 20);
			await page.click("#panel-book .short button");
			await page.waitForFunction(() => window.book.sides.sell.length > 1000);
			assert(!await page.isVisible("#panel-book .short") && !await page.isVisible("#notice"));
			await cut(page); // a lost connection is no slow one
			assert(await page.evaluate(() => window.book.sides.sell.length > 1000));
			assert(!await page.isVisible("#panel-book .short") && !await page.isVisible("#notice"));
		}));

for (const path of ["/trade", "/account"]) {
	const heard = [];
	test(`a network that falls silent without a close is not live, ${path}`, () =>
		visit(browser, `${relay.base}${path}`, { name: `silent ${path}`, allowed: unreachable,
			init: (page) => page.on("websocket", (socket) =>
				socket.on("framereceived", ({ payload }) => heard.push(payload))) },
		async (page) => {
			await shows(page, "live");
			// a quiet market is no silent network
			await until("answers", () => heard.filter((text) => /^43\d+\[/.test(text)).length > 2);
			assert.equal(await page.getAttribute("body", "data-state"), "live");
			relay.up = relay.down = false;
			await shows(page, "reconnecting"); // the exchange's own pings would take 45 s
			assert.equal(await page.isVisible(path === "/trade" ? "#depth .not-live" : "#notice"), true);
			relay.cut(); // what hangs ends, and what comes later passes
			await shows(page, "live");
		}));
}
