// Orders that the real program temporarily refuses, and log-ins other than by typing.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { accessible, launch, shows, visit } from "./helpers/browser.mjs";
import { Exchange, until } from "./helpers/exchange.mjs";
import { says } from "./helpers/traders.mjs";

/** slow takes one command of an account a second, busy has one of an account in flight. */
const slow = new Exchange({ env: { EXCHANGE_LIMITS_COMMAND_RATE: "1",
	EXCHANGE_LIMITS_COMMAND_BURST: "1" } });
const busy = new Exchange({ args: ["--no-rate-limits"],
	env: { EXCHANGE_LIMITS_IN_FLIGHT_PER_ACCOUNT: "1" } });
const folder = mkdtempSync(join(tmpdir(), "exchange-keys-"));
/** A name that is not this machine's to a browser, though it leads here. */
const elsewhere = "exchange.example";
let browser;

before(async () => {
	await Promise.all([slow.start(), busy.start()]);
	browser = await launch(`--host-resolver-rules=MAP ${elsewhere} 127.0.0.1`);
});
after(async () => {
	await browser?.close();
	await Promise.all([slow.end(), busy.end()]);
	rmSync(folder, { recursive: true });
});

/** orders collects the orders that a page sends. */
function orders(page) {
	page.orders = [];
	page.on("websocket", (socket) => socket.on("framesent", ({ payload }) => {
		const [, sent] = /^42\d+(\["order",.*)$/s.exec(payload) ?? [];
		if (sent) page.orders.push(JSON.parse(sent)[1]);
	}));
}

/** alice gives a test a terminal in which alice trades. */
const alice = (name, exchange, init, body) => test(name, () =>
	visit(browser, `${exchange.base}/trade`, { name, init }, async (page) => {
		await shows(page, "live");
		await page.click(".account");
		await page.click('dialog .demo button:has-text("alice")');
		await page.waitForSelector("body.trader");
		await page.waitForSelector("dialog", { state: "detached" });
		await says(page, ".sums", "Available.*\\d");
		await body(page);
	}));

/** send sends an order by hand, and returns the page's message. */
async function send(page) {
	await page.click("#form-side-buy");
	await page.fill("#form-price", "100");
	await page.fill("#form-amount", "0.5");
	await page.click("#panel-form button.main");
	await says(page, ".outcome", "\\S");
	return page.innerText(".outcome");
}

/**
 * crowded sends orders until one is refused with words of a form, while programs of alice's send
 * others, which trade nothing and are also refused. It returns the number of sent orders.
 */
async function crowded(page, exchange, status, form) {
	let isCrowded = true, sent = 0;
	const { stdout } = await exchange.operator("key", "create", "alice", "--json", "--parallel", "16");
	const key = JSON.parse(stdout);
	const others = Array.from({ length: 2 }, async () => {
		while (isCrowded) {
			await exchange.post("alice", "/api/v1/order/", { pair: "ETH_USDT", type: "buy",
				amount: "1", price: "10", time_in_force: "ioc" }, key).catch((failed) => {
				if (!failed.message.includes(`: ${status} `)) throw failed;
			});
		}
	});
	try {
		await until(`an order is refused: ${form}`, async () => {
			sent++;
			return form.test(await send(page));
		});
	} finally {
		isCrowded = false;
		await Promise.all(others);
	}
	return sent;
}

alice("an order above the rate limit shows when to retry, and is not resent automatically", slow,
	async (page) => {
		orders(page);
		await page.clock.install();
	}, async (page) => {
		let sent = await crowded(page, slow, 429, /^Too many requests\. Try again in 1 s\.$/);
		await accessible(page, "too many requests");
		assert.equal(await page.inputValue("#form-amount"), "0.5");
		await page.clock.fastForward(10_000); // each timer that would send it has come
		await until("the next order is taken", async () => {
			sent++;
			return /^Order placed: \d+\./.test(await send(page));
		});
		assert.equal(page.orders.length, sent);
		assert.equal(new Set(page.orders.map((o) => o.client_order_id)).size, sent);
	});

alice("an order that was not done is tried again under its name, and placed once", busy, orders,
	async (page) => {
		const sent = await crowded(page, busy, 503, /Nothing was done: try again\.$/);
		await page.waitForSelector('#panel-own tr[data-state="refused"]');
		await accessible(page, "an order that was not done");
		const { client_order_id } = page.orders.at(-1);
		assert.equal(page.orders.length, sent);
		assert.equal((await own(client_order_id)).length, 0);
		await page.click("#panel-own .again");
		await says(page, ".outcome", "Order placed: \\d+\\.");
		await page.waitForSelector('#panel-own tr[data-state="refused"]', { state: "detached" });
		assert.deepEqual(page.orders.at(-1), page.orders.at(-2));
		assert.equal((await own(client_order_id)).length, 1);
		assert.equal((await busy.get("alice", "/api/v1/orders/own/?status=1")).length, sent);
	});

/** own returns alice's orders of a name. */
const own = (name) => busy.get("alice", `/api/v1/orders/own/?client_order_id=${name}`);

/** drop drops a file of this machine as a hand would. */
async function drop(page, selector, file) {
	const { x, y, width, height } = await (await page.waitForSelector(selector)).boundingBox();
	const browsing = await page.context().newCDPSession(page);
	for (const type of ["dragEnter", "dragOver", "drop"]) {
		await browsing.send("Input.dispatchDragEvent", { type, x: x + width / 2, y: y + height / 2,
			data: { items: [], files: [file], dragOperationsMask: 1 } });
	}
}

/** kept writes a file, and returns its path. */
function kept(name, content) {
	const path = join(folder, name);
	writeFileSync(path, content);
	return path;
}

for (const [form, ...flags] of [["text"], ["JSON", "--json"]]) {
	test(`a file with a key as ${form} that is dropped on the log-in logs in`, () =>
		visit(browser, `${busy.base}/trade`, { name: `dropped ${form}` }, async (page) => {
			const { stdout } = await busy.operator("key", "create", "bob", ...flags);
			await shows(page, "live");
			await page.click(".account");
			await drop(page, "dialog .fields", kept(`key.${form}`, stdout));
			await page.waitForSelector("[name=secret][placeholder*=Taken]");
			const key = await page.inputValue("[name=key]");
			assert(key.length > 10 && stdout.includes(key), key);
			assert.equal(await page.inputValue("[name=secret]"), "");
			await page.click(".login .main");
			await page.waitForSelector("body.trader");
			assert.equal(await page.innerText("#header > .account"), "bob");
		}));
}

test("a file that has no key is refused in words, wherever it is dropped", () =>
	visit(browser, `${busy.base}/trade`, { name: "no key" }, async (page) => {
		const { stdout } = await busy.operator("key", "create", "bob");
		const huge = kept("huge", stdout), within = join(folder, "folder");
		truncateSync(huge, 2 ** 31); // of which nothing may be read
		mkdirSync(within);
		await shows(page, "live");
		await page.click(".account");
		for (const file of [kept("empty", ""), kept("other", "\0\u00ff key secret\n<b>"), huge,
			within]) {
			for (const place of ["dialog .fields", "dialog h2"]) {
				await page.fill("[name=key]", "a");
				await page.press("[name=key]", "Enter"); // other words than those of before
				await says(page, ".login .wrong", "Type both");
				await drop(page, place, file);
				await says(page, ".login .wrong", "It has no key and secret");
			}
		}
		assert.equal(await page.getAttribute("[name=secret]", "placeholder"), "");
		await accessible(page, "a file without a key");
	}));

// A browser's console messages about the page's headers at an untrusted address.
const untrusted = [/^The Cross-Origin-Opener-Policy header has been ignored/];

test("a page that comes from another machine without TLS takes no key, and shows the market",
	async () => {
		for (const [path, place] of [["/trade", ".account"], ["/account", ".enter"]]) {
			await visit(browser, `http://${elsewhere}:${busy.port}${path}`,
				{ name: `insecure ${path}`, allowed: untrusted }, async (page) => {
					await shows(page, "live");
					assert.equal(await page.evaluate(() => isSecureContext), false);
					await page.click(place);
					await says(page, "dialog.login", "https.*localhost");
					assert.equal(await page.$("dialog input"), null);
					await accessible(page, "without TLS");
					await page.keyboard.press("Escape");
					if (path !== "/trade") return;
					await busy.order("bob", "BTC_USDT", "sell", "0.125", "65000.5");
					await says(page, "#panel-book .sell", "65,000\\.50\\s+0\\.12500");
				});
		}
	});
