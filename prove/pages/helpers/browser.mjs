// Pages of a real browser. Whatever one of them writes to its console is a failure.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import axe from "axe-core";
import { chromium } from "playwright-core";

const failures = fileURLToPath(new URL("../failures/", import.meta.url));

/** launch starts the browser. args are more of its command line's. */
export const launch = (...args) =>
	chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
		args: process.getuid() === 0 ? ["--no-sandbox", ...args] : args });

/**
 * visit opens a page of its own, and gives it to a test. allowed are the expected console messages.
 * If the test fails there is a screenshot in test/failures.
 */
export async function visit(browser, address, options, test) {
	const { name, cookies = {}, allowed = [], init, ...context } = options;
	const own = await browser.newContext({ viewport: { width: 1440, height: 900 }, locale: "en-US", ...context });
	await own.addCookies(Object.entries(cookies).map(([name, value]) => ({ name, value, url: address })));
	const page = await own.newPage();
	page.setDefaultTimeout(20_000);
	await slow(own, page);
	const said = [];
	page.on("console", (message) => said.push(message.text()));
	page.on("pageerror", (error) => said.push(`uncaught: ${error.stack}`));
	page.on("dialog", (dialog) => said.push(`a dialog: ${dialog.message()}`));
	try {
		if (init) await init(page);
		await page.goto(address);
		await test(page);
		assert.deepEqual(said.filter((text) => !allowed.some((form) => form.test(text))), []);
	} catch (error) {
		mkdirSync(failures, { recursive: true });
		const path = `${failures}${name.replace(/\W+/g, "-")}.png`;
		await page.screenshot({ path }).catch(() => {});
		error.message += `\nthe page is in ${path}; its console: ${JSON.stringify(said)}`;
		throw error;
	} finally {
		await own.close();
	}
}

/**
 * slow slows a page according to the environment, to find tests that depend on a fast one:
 * EXCHANGE_SLOW_CPU is a factor, EXCHANGE_SLOW_NETWORK_MS the latency of each request.
 */
async function slow(context, page) {
	const { EXCHANGE_SLOW_CPU: rate, EXCHANGE_SLOW_NETWORK_MS: latency } = process.env;
	if (!rate && !latency) return;
	const session = await context.newCDPSession(page);
	if (rate) await session.send("Emulation.setCPUThrottlingRate", { rate: Number(rate) });
	if (latency) {
		await session.send("Network.enable");
		await session.send("Network.emulateNetworkConditions", { offline: false,
			latency: Number(latency), downloadThroughput: -1, uploadThroughput: -1 });
	}
}

/** shows waits until the terminal is in a state. */
export const shows = (page, state) => page.waitForSelector(`body[data-state="${state}"]`);

/** painted waits until the page has painted what has changed: it paints once a frame. */
export const painted = (page) => page.evaluate(() => new Promise((resolve) => {
	requestAnimationFrame(() => requestAnimationFrame(resolve));
}));

/** accessible fails for any finding of axe, or of one rule of axe. */
export async function accessible(page, what, rule) {
	await page.evaluate(axe.source);
	const { violations } = await page.evaluate((only) =>
		window.axe.run(only ? { runOnly: [only] } : {}), rule);
	assert.deepEqual(violations.map((v) => `${what}: ${v.id}: ${v.nodes.map((n) => `${n.target} ${n.any[0]?.message ?? ""}`).join("; ")}`), []);
}
