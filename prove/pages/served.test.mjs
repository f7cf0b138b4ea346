// Which pages the program serves: its own, or none.
import assert from "node:assert/strict";
import { test } from "node:test";
import { launch, shows, visit } from "./helpers/browser.mjs";
import { Exchange } from "./helpers/exchange.mjs";
import { unreachable } from "./helpers/traders.mjs";

test("a page that was open before an upgrade offers to reload", async () => {
	const exchange = new Exchange(), browser = await launch();
	try {
		await exchange.start();
		await visit(browser, `${exchange.base}/trade`, { name: "upgrade", allowed: unreachable },
			async (page) => {
				await shows(page, "live");
				await exchange.kill();
				await shows(page, "reconnecting");
				// another program has no files below the hash of this one's
				await page.route("**/js/api.js", (route) => route.fulfill({ status: 404 }),
					{ times: 1 });
				await exchange.start();
				await page.click("#notice button");
				await shows(page, "live");
				assert(await page.isHidden("#notice"));
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
	} finally {
		await exchange.end();
	}
});
