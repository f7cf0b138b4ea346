// Fees and limits that an operator changes while pages are open, which apply them automatically.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, shows, visit } from "./helpers/browser.mjs";
import { Exchange, until } from "./helpers/exchange.mjs";
import { Relay } from "./helpers/relay.mjs";
import { fill, says, unreachable } from "./helpers/traders.mjs";

/** config returns the text of a configuration. */
const config = ({ maker = "0", taker, rate = 700 }) => `
currencies: [{code: BTC}, {code: USDT}]
pairs:
  - {name: BTC_USDT, price_precision: 2, amount_precision: 8, minimum_order_size: 0.00001,
     maximum_order_size: 1000, maker_fee: ${maker}, taker_fee: ${taker}}
limits: {read_rate: ${rate}}
`;

const exchange = new Exchange({ config: config({ taker: "0.001" }) }), relay = new Relay();
const keys = {};
let browser;

before(async () => {
	await exchange.start();
	await relay.start(exchange.port);
	for (const [account, permissions] of [["alice", "read,trade"], ["bob", "read,trade"],
		["carol", "trade"]]) {
		await exchange.operator("account", "create", account);
		const { stdout } = await exchange.operator("key", "create", account, "--json",
			"--permissions", permissions);
		keys[account] = JSON.parse(stdout);
	}
	browser = await launch();
});
after(async () => {
	await browser?.close();
	relay.end();
	await exchange.end();
});

/** change lets the exchange reload its file with another configuration, by SIGHUP. */
async function change(options) {
	exchange.write(config(options));
	exchange.signal("SIGHUP");
	await until("clients get the new values", async () => {
		const info = await (await fetch(`${exchange.base}/api/v1/exchange-info/`)).json();
		const [pair] = info.pairs;
		return pair.taker_fee === Number(options.taker)
			&& pair.maker_fee === Number(options.maker ?? 0)
			&& info.limits.rates.reads.per_second === (options.rate ?? 700);
	});
}

/** enter logs in with an account's key. */
async function enter(page, account) {
	await page.click("#header > .account");
	await page.fill("[name=key]", keys[account].key);
	await page.fill("[name=secret]", keys[account].secret);
	await page.press("[name=secret]", "Enter");
	await page.waitForSelector("dialog", { state: "detached" });
}

/** costs waits until the form shows the maximum cost of a trade. */
const costs = (page, fee) => says(page, ".sums", `Max\\. fee\\s+${fee} BTC`);

/** LONG is longer than any timer but that of fees, in milliseconds. */
const LONG = 50_000;

/** holding holds the timer of the next read of fees back: elapse lets it pass. */
const holding = (page) => page.addInitScript((LONG) => {
	const { setTimeout, clearTimeout } = window;
	let id;
	window.setTimeout = (f, ms, ...more) => {
		if (ms <= LONG) return setTimeout(f, ms, ...more);
		window.held = f;
		return (id = setTimeout(() => {}, ms));
	};
	window.clearTimeout = (which) => {
		if (which === id) window.held = undefined;
		clearTimeout(which);
	};
}, LONG);

/** isHeld waits until a read has ended, and the next one is scheduled. */
const isHeld = (page) => page.waitForFunction(() => window.held !== undefined);
async function elapse(page) {
	await isHeld(page);
	await page.evaluate(() => window.held());
}

/** reading counts the reads of fees of a page. */
function reading(page) {
	page.reads = 0;
	page.on("request", (request) => (page.reads += request.url().endsWith("/api/v1/fees/") ? 1 : 0));
}

/** terminal gives a test a terminal with an account, and one bitcoin in its form. */
const terminal = (name, { base = () => exchange.base, ...options }, body) =>
	test(name, async () => {
		await change({ taker: "0.001" });
		await visit(browser, `${base()}/trade`, { name, init: async (page) => {
			reading(page);
			await holding(page);
		}, ...options }, async (page) => {
			await shows(page, "live");
			await enter(page, "alice");
			await page.waitForSelector("body.trader");
			await isHeld(page); // or the form, once it is entered, would ask beside the log-in
			await fill(page, "buy", "50", "1");
			await costs(page, "0.001");
			await isHeld(page);
			await body(page);
		});
	});

/** hide hides the page, or shows it again, as a browser does with a tab. */
const hide = (page, hidden) => page.evaluate((hidden) => {
	Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
	document.dispatchEvent(new Event("visibilitychange"));
}, hidden);

const usual = () => exchange.operator("fees", "reset", "alice", "BTC_USDT");

terminal("an open page applies changed fees of the pair, and of its account", {}, async (page) => {
	await change({ taker: "0.002" });
	await elapse(page);
	await costs(page, "0.002");
	await change({ taker: "0.002", maker: "0.003" });
	await elapse(page);
	await costs(page, "0.003"); // an order that rests may cost more
	await exchange.operator("fees", "set", "alice", "BTC_USDT", "--maker", "0", "--taker", "0.005");
	await elapse(page);
	await costs(page, "0.005");
	await usual();
	await elapse(page);
	await costs(page, "0.003");
});

test("a key that may not read is shown no fee, and asks for none", () => visit(browser,
	`${exchange.base}/trade`, { name: "no fee", init: reading }, async (page) => {
		await shows(page, "live");
		await enter(page, "carol");
		await page.waitForSelector("body.trader");
		await fill(page, "buy", "50", "1");
		await says(page, ".sums", "Max\\. fee\\s+–\\s");
		assert.equal(page.reads, 0);
	}));

terminal("a page that is hidden asks for no fees, and does when it is seen again", {},
	async (page) => {
		const { reads } = page, wait = await page.evaluateHandle(() => window.held);
		await hide(page, true);
		await change({ taker: "0.002" });
		assert.equal(await page.evaluate(() => window.held), undefined); // no timer is left
		await wait.evaluate((held) => held()); // one that was due as the page was hidden
		await hide(page, false);
		await costs(page, "0.002");
		assert.equal(page.reads, reads + 1);
	});

terminal("the form asks for fees when it is entered, and not with each key", {}, async (page) => {
	const { reads } = page;
	await change({ taker: "0.002" });
	await page.fill("#form-price", "60");
	await page.press("#form-price", "Tab");
	await costs(page, "0.001");
	await page.evaluate(() => document.activeElement.blur());
	await page.fill("#form-amount", "2");
	await costs(page, "0.004");
	assert.equal(page.reads, reads + 1);
});

terminal("fees are asked for after a lost connection, and are those of the account that is in",
	{ base: () => relay.base, allowed: unreachable }, async (page) => {
		await exchange.operator("fees", "set", "alice", "BTC_USDT", "--maker", "0", "--taker",
			"0.005");
		relay.cut();
		await costs(page, "0.005");
		await page.click("#header > .account");
		await page.click("dialog .leave");
		await page.waitForSelector("body:not(.trader)");
		let pass;
		await page.route("**/api/v1/fees/", (route) => (pass = () => route.continue()), { times: 1 });
		await enter(page, "bob");
		await page.waitForSelector("body.trader");
		await until("fees are asked for", () => pass);
		await says(page, ".sums", "Max\\. fee\\s+–\\s"); // none of another account's
		await pass();
		await costs(page, "0.001");
		await usual();
	});

test("the account page shows the rates that count now", async () => {
	await change({ taker: "0.001" });
	await visit(browser, `${exchange.base}/account#key`, { name: "rates" }, async (page) => {
		await shows(page, "live");
		await enter(page, "alice");
		await says(page, "#main", "\\b700\\b");
		await change({ taker: "0.001", rate: 650 });
		await page.click('#sections a[href="#orders"]');
		await page.click('#sections a[href="#key"]');
		await says(page, "#main", "\\b650\\b");
	});
});
