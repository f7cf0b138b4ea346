// Which pages the program serves: those of the program before, or none.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import { launch, shows, visit } from "./helpers/browser.mjs";
import { Exchange } from "./helpers/exchange.mjs";
import { unreachable } from "./helpers/traders.mjs";

/** changed returns the kept files of a program whose title line differs, and their hash. */
function changed(packed) {
	const end = packed.indexOf("\n");
	const text = gunzipSync(packed.subarray(end + 1)).toString("latin1")
		.replace('market: "Market"', 'market: "Basket"'); // of the same length
	const hash = createHash("sha256").update(text, "latin1").digest("hex");
	return [hash.slice(0, 16), Buffer.concat([Buffer.from(`exchange pages 1 ${hash}\n`),
		gzipSync(Buffer.from(text, "latin1"))])];
}

test("a page of the program before has its files after an upgrade, and offers to reload",
	async () => {
		const exchange = new Exchange(), browser = await launch();
		const kept = join(exchange.folder, "data", "pages.kept");
		try {
			await exchange.start();
			await exchange.kill();
			const [hash, packed] = changed(readFileSync(kept));
			writeFileSync(kept, packed, { mode: 0o600 }); // as if that program had served last
			await exchange.start();
			const html = await (await fetch(`${exchange.base}/trade`)).text();
			const older = html.replace(/\/web\/[0-9a-f]{16}/g, `/web/${hash}`);
			assert.notEqual(older, html);
			await visit(browser, `${exchange.base}/trade`, { name: "upgrade", allowed: unreachable,
				init: (page) => page.route("**/trade", (route) =>
					route.fulfill({ contentType: "text/html; charset=utf-8", body: older }),
				{ times: 1 }) }, async (page) => {
				await shows(page, "live");
				assert.equal(await page.textContent("h1"), "Basket");
				await page.click(".account"); // loads the rest
				await page.click('dialog .demo button:has-text("alice")');
				await page.waitForSelector("body.trader");
				await exchange.kill();
				await shows(page, "reconnecting");
				await exchange.start();
				await page.click("#notice button");
				await page.waitForFunction(() => document.querySelector("h1")?.textContent === "Market");
				await shows(page, "live");
			});
		} finally {
			await browser.close();
			await exchange.end();
		}
	});

test("without pages their addresses are like those that there are not", async () => {
	const exchange = new Exchange({ args: ["--no-pages"] });
	try {
		await exchange.start();
		const ask = async (path) => {
			const answer = await fetch(exchange.base + path, { redirect: "manual" });
			return [answer.status, await answer.text()];
		};
		const none = await ask("/nowhere");
		assert.equal(none[0], 404);
		for (const path of ["/", "/trade", "/account", "/licenses", "/demo/mails", "/web/",
			"/web/0123456789abcdef/js/api.js"]) assert.deepEqual(await ask(path), none, path);
		for (const path of ["/docs", "/api/v1/time/"]) assert.equal((await ask(path))[0], 200, path);
		assert(!existsSync(join(exchange.folder, "data", "pages.kept")));
	} finally {
		await exchange.end();
	}
});
