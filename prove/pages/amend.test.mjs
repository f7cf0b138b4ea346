// Changes of own orders in a browser, against the real program.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible, shows, visit } from "./helpers/browser.mjs";
import { until } from "./helpers/exchange.mjs";
import { open, says, served, trade, unreachable } from "./helpers/traders.mjs";

const own = served(), { exchange, relay } = own;
const message = "#panel-own .told", form = "dialog .amend";

/** terminal gives alice's terminal to a test, and cancels her orders and bob's after it. */
const terminal = (name, options, body) => test(name, async () => {
	try {
		await visit(own.browser, `${(options.base ?? (() => exchange.base))()}/trade`,
			{ name, ...options, base: undefined }, async (page) => {
				await shows(page, "live");
				await trade(page, "alice");
				await body(page);
			});
	} finally {
		for (const account of ["alice", "bob"]) {
			await exchange.post(account, "/api/v1/order-cancel-all/", { all: 1 });
		}
	}
});

/** place places an order of alice's, and waits until the page shows it. */
async function place(page, fields) {
	const { oid } = await exchange.post("alice", "/api/v1/order/",
		{ pair: "BTC_USDT", type: "sell", ...fields });
	await page.waitForSelector(`#panel-own tr[data-id="${oid}"]`);
	return oid;
}

/** change opens the form of the only order, and types into it. */
async function change(page, fields) {
	await page.click("#panel-own .amend");
	await retype(page, fields);
}

async function retype(page, fields) {
	for (const [name, value] of Object.entries(fields)) {
		await page.fill(`${form} [name=${name}]`, String(value));
	}
	await page.click(`${form} .main`);
}

const order = (id) => exchange.get("alice", `/api/v1/order/${id}/`);
const closed = (page) => page.waitForSelector("dialog", { state: "detached" });
const row = (page, state) => page.waitForSelector(`#panel-own tr[data-state="${state}"]`);

terminal("an order is amended, and its queue position is reported", {}, async (page) => {
	await exchange.order("bob", "BTC_USDT", "buy", "0.1", "63000");
	const id = await place(page, { amount: "1", price: "64000.5" });
	await page.click("#panel-own .amend");
	assert.deepEqual(await page.$$eval(`${form} input`, (list) => list.map((e) => e.value)),
		["64000.5", "1", ""]);
	assert.equal(await page.evaluate(() => document.activeElement.name), "price");
	await accessible(page, "the form of a change");
	await page.click(`${form} .main`);
	await says(page, form, "Nothing is changed yet");
	await page.fill(`${form} [name=amount]`, "0.4");
	await page.press(`${form} [name=amount]`, "Enter");
	await closed(page);
	await says(page, message, `^Order ${id} amended: price 64,000.50, amount 0.40. Queue position kept`);
	await says(page, "#panel-own .orders", "Open\\s.*64,000\\.50\\s+0\\.40\\s+0\\.00");
	await page.keyboard.press("o");
	await page.keyboard.press("e");
	await page.waitForSelector(form);
	await page.keyboard.press("ControlOrMeta+A");
	await page.keyboard.type("63000");
	await page.keyboard.press("Enter");
	await says(page, message, "Queue position lost\\. 0\\.10 BTC filled at 63,000\\.00 on average");
	await says(page, "#panel-own .orders",
		"Open\\s.*63,000\\.00\\s+0\\.40\\s+0\\.10\\s+avg. 63,000\\.00");
	await exchange.operator("pair", "halt", "BTC_USDT");
	await page.click("#panel-own .amend"); // the price is not asked for that would be refused
	await page.waitForSelector(`${form}:not(:has([name=price])) [name=amount]`);
	await says(page, "#notice", "You can cancel or reduce yours");
	await exchange.operator("pair", "resume", "BTC_USDT");
	await page.waitForSelector(`${form} [name=price]`);
	await page.keyboard.press("Escape");
	await change(page, { amount: "0.1" });
	await says(page, message, `Order ${id} amended.*the rest is cancelled: amended to what was`);
	await open(page, 0);
});

terminal("errors of a change are shown at their fields", {}, async (page) => {
	await place(page, { amount: "1", price: "64000" });
	await change(page, { price: "1,000" });
	await says(page, "#wrong-amend-price", "could be 1000 or 1:");
	assert.equal(await page.evaluate(() => document.activeElement.id), "amend-price");
	await retype(page, { price: "64000.123" });
	await says(page, "#wrong-amend-price", "\\w+");
	await accessible(page, "a refused change");
	await retype(page, { price: "64000", amount: "1000" });
	await says(page, form, "Not enough BTC: available 9[\\d.]+, needed 999");
	await retype(page, { amount: "1.00000001", display: "0.00000001" });
	await says(page, "#wrong-amend-display", "\\w+");
	await page.keyboard.press("Escape");
	await open(page, 1);
	assert.equal((await exchange.get("alice", "/api/v1/orders/own/?status=1"))[0].amount, 1);
});

terminal("triggers and an iceberg's displayed amount are amended", {}, async (page) => {
	const other = await exchange.post("bob", "/api/v1/order/",
		{ pair: "BTC_USDT", type: "sell", amount: "0.01", price: "64000" });
	await exchange.order("alice", "BTC_USDT", "buy", "0.01", "64000");
	assert(other.oid);
	let id = await place(page, { amount: "1", order_type: "market", trigger_price: "60000" });
	await change(page, { second: "58000" });
	await page.click("dialog .yes"); // there are no bids
	await says(page, message, `Order ${id} amended: price\\slimit\\s58,000.00, amount 1.00`);
	await page.click("#panel-own .cancel");
	await page.waitForSelector(`tr[data-id="${id}"]`, { state: "detached" });
	id = await place(page, { amount: "1", price: "59000", trigger_price: "60000" });
	await change(page, { trigger: "65000" });
	await page.click("dialog .yes"); // the limit is far from it
	await says(page, form, "would trigger the order at once");
	await retype(page, { trigger: "61000" });
	await closed(page);
	await says(page, "#panel-own .orders", "Stop-limit, trigger\\s≤\\s61,000\\.00.*Waiting");
	assert.equal((await order(id)).trigger_price, 61000);
	await page.click("#panel-own .cancel");
	await open(page, 0);
	await page.waitForSelector(`tr[data-id="${id}"]`, { state: "detached" });
	id = await place(page, { amount: "1", price: "70000", display_amount: "0.1",
		oco_trigger_price: "60000", oco_price: "59000" });
	await change(page, { trigger: "61500", display: "0.2" });
	await closed(page);
	await says(page, message, `Order ${id} amended`);
	const { oco_trigger_price, display_amount } = await order(id);
	assert.deepEqual([oco_trigger_price, display_amount], [61500, 0.2]);
});

terminal("the end of an order is changed, in the reader's own time", { timezoneId: "Asia/Kolkata" },
	async (page) => {
		const day = Math.floor(Date.now() / 864e5) * 86400; // seconds
		const id = await place(page, { amount: "1", price: "64000", time_in_force: "gtd",
			expire_time: day + 5 * 86400 + 30 }); // seconds that the form does not show
		const written = (seconds) => new Date((seconds + 5.5 * 3600) * 1000).toISOString()
			.slice(0, 16);
		await page.click("#panel-own .amend");
		assert.equal(await page.inputValue(`${form} [name=until]`),
			written(day + 5 * 86400));
		await page.click(`${form} .main`);
		await says(page, form, "Good till \\(UTC\\+5:30\\).*Nothing is changed yet");
		await retype(page, { until: "" });
		await says(page, "#wrong-amend-until", "Choose date and time");
		await retype(page, { until: written(day - 86400) });
		await says(page, "#wrong-amend-until", "\\w");
		await accessible(page, "a refused end");
		await retype(page, { until: written(day + 7 * 86400) });
		await closed(page);
		await says(page, message, `^Order ${id} amended`);
		assert.equal((await order(id)).expire_time, day + 7 * 86400);
	});

terminal("an order that is filled while its form is open says so", {}, async (page) => {
	await place(page, { amount: "1", price: "64000" });
	await page.click("#panel-own .amend");
	await exchange.order("bob", "BTC_USDT", "buy", "0.25", "64000");
	await says(page, form, "Filled: 0\\.25 of 1\\.00 BTC");
	await exchange.order("bob", "BTC_USDT", "buy", "0.75", "64000");
	await says(page, form, "is no longer open");
	assert(await page.isDisabled(`${form} .main`));
});

/**
 * between lets a test answer changes instead of the exchange, and hold back events of own. answer
 * returns the acknowledgement; undefined: the exchange answers. passes: the exchange gets it, too.
 */
const between = (state) => (page) => page.routeWebSocket(/socket\.v2/, (socket) => {
	const server = socket.connectToServer(), mine = new Set();
	socket.onMessage((packet) => {
		const [, id] = /^42(\d+)\["order-amend"/.exec(packet) ?? [];
		const answer = id && state.answer;
		if (!answer || state.passes) server.send(packet);
		if (!answer) return;
		mine.add(id);
		socket.send(`43${id}[${JSON.stringify(answer)}]`);
	});
	server.onMessage((packet) => {
		const [, id] = /^43(\d+)/.exec(packet) ?? [];
		if (!mine.has(id) && !(state.holds && packet.startsWith('42["own"'))) socket.send(packet);
	});
});

const mocked = {};
terminal("each answer to a change is reported", { init: between(mocked) }, async (page) => {
	const id = await place(page, { amount: "1", price: "64000" });
	const answers = [[429, { detail: "Throttled" }, "Too many requests. Try again in 3 s"],
		[401, { detail: "Unknown key" }, "Key revoked"],
		[403, { detail: "The account is frozen." }, "The account is frozen"],
		[400, { error: "The order would trade at once, and is post-only" }, "would trade at once"]];
	for (const [status, body, words] of answers) {
		mocked.answer = { status, body, ...status === 429 && { retry_after: 3 } };
		await change(page, { amount: "0.9" });
		await says(page, form, words);
		await page.keyboard.press("Escape");
		await closed(page);
	}
	mocked.answer = { status: 503, body: { detail: "Overloaded." }, retry_after: 1 };
	await change(page, { amount: "0.9" });
	await row(page, "refused");
	await says(page, message, "Overloaded. Nothing was done");
	await accessible(page, "a change that was not done");
	mocked.answer = undefined;
	await page.click("#panel-own .again");
	await says(page, message, `Order ${id} amended: price 64,000.00, amount 0.90`);

	const unknown = { status: 503, body: { detail: "No answer", code: "outcome_unknown" } };
	Object.assign(mocked, { answer: unknown, passes: true, holds: true });
	await change(page, { amount: "0.8" });
	await says(page, message, `Order ${id} amended`); // asked by REST
	await page.waitForFunction(() => sessionStorage.getItem("amends") === "[]");
	assert.equal((await order(id)).amount_original, 0.8);

	Object.assign(mocked, { passes: false, holds: false });
	await change(page, { amount: "0.7" });
	await row(page, "unknown");
	await says(page, message, "whether order \\d+ was amended is unknown");
	await row(page, "unseen");
	mocked.answer = { status: 429, body: {}, retry_after: 1 }; // does not tell of the first
	await page.click("#panel-own .again");
	await says(page, message, "Whether an earlier one was placed is unknown");
	await row(page, "unseen");
	await page.click("#panel-own .drop");
	assert.equal((await order(id)).amount_original, 0.8);
});

const held = { holds: false };
terminal("a change of an order that is already closed is reported", { init: between(held) },
	async (page) => {
		const id = await place(page, { amount: "1", price: "64000" });
		held.holds = true; // the answer comes before the event
		await exchange.order("bob", "BTC_USDT", "buy", "1", "64000");
		await change(page, { price: "65000" });
		await says(page, message, `Order ${id} was not amended, because it is not open: Order already`);
	});

terminal("a change without an answer is found, and is sent again only by hand",
	{ base: () => relay.base, allowed: unreachable }, async (page) => {
		const id = await place(page, { amount: "1", price: "64000" });
		relay.down = false; // the change arrives, its answer does not
		await change(page, { price: "65000" });
		await row(page, "sending");
		await says(page, "#panel-own .orders", "Amending\\s.*64,000\\.00");
		await until("the order is changed", async () => (await order(id)).price === 65000);
		relay.cut();
		await says(page, message, `Order ${id} amended`);
		await says(page, "#panel-own .orders", "Open\\s.*65,000\\.00");
		await page.waitForFunction(() =>
			!document.querySelector("#panel-form .main").disabled);
		relay.up = false; // the change does not arrive
		await change(page, { price: "66000" });
		await row(page, "sending");
		relay.cut();
		await row(page, "unseen");
		await page.reload(); // over which it is known
		await row(page, "unseen");
		assert.equal((await order(id)).price, 65000);
		await page.click("#panel-own .again");
		await says(page, message, `Order ${id} amended: price 66,000.00`);
		relay.up = false;
		await change(page, { price: "67000" });
		await row(page, "sending");
		await exchange.order("bob", "BTC_USDT", "buy", "1", "66000");
		relay.cut();
		await says(page, message, `Order ${id} is no longer open; 1.00 of 1.00 were filled`);
	});
