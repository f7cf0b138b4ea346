// Draws the README's picture of the terminal: lets the demo's market trade for a while, gives
// an account of the demo some orders, and takes a screenshot.
//
//	EXCHANGE_PROGRAM=FILE node prove/pages/helpers/picture.mjs FILE.png [MINUTES]
import { launch, shows, visit } from "./browser.mjs";
import { Exchange } from "./exchange.mjs";

const [file, minutes = "1"] = process.argv.slice(2);
const exchange = new Exchange({ hasMarket: true });
await exchange.start();
await new Promise((done) => setTimeout(done, Number(minutes) * 60_000));
for (const [pair, type, amount, price] of [["BTC_USDT", "buy", "0.4", "60500"],
	["BTC_USDT", "sell", "0.25", "60000"], ["ETH_USDT", "buy", "12", "3100"]]) {
	await exchange.order("alice", pair, type, amount, price);
}
const browser = await launch();
const options = { name: "picture", cookies: { theme: "dark" } };
await visit(browser, `${exchange.base}/trade`, options, async (page) => {
	await shows(page, "live");
	await page.click(".account");
	await page.click('dialog .demo button:has-text("alice")');
	await page.waitForSelector('#panel-own tr[data-state="open"]');
	await page.click(".frames button:nth-child(3)");
	await page.waitForFunction(() =>
		/O.*C/s.test(document.querySelector(".legend").innerText));
	await page.waitForTimeout(1500);
	await page.screenshot({ path: file });
});
await browser.close();
await exchange.end();
