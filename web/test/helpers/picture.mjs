// Draws the README's picture of the terminal: lets two accounts of the demo trade, and takes a
// screenshot. The candles of a minute need some minutes.
//
//	node web/test/helpers/picture.mjs FILE.png [MINUTES]
import { launch, shows, visit } from "./browser.mjs";
import { Exchange } from "./exchange.mjs";
import { random } from "./random.mjs";

const [file, minutes = "25"] = process.argv.slice(2);
const exchange = new Exchange(), next = random(5);
const share = () => next(1e6) / 1e6;
await exchange.start();

const price = { BTC_USDT: 64000, ETH_USDT: 3400, ETH_BTC: 0.053 }, digits = { BTC_USDT: 2, ETH_USDT: 2, ETH_BTC: 6 };
// an account whose money is all in open orders waits until some of them trade
const isPoor = (error) => {
	if (!error.message.includes("Out of balance")) throw error;
};
const first = { ...price };
const place = (account, pair, type, away, amount) => exchange.order(account, pair, type, amount.toFixed(5),
	(price[pair] * (1 + (type === "buy" ? -away : away))).toFixed(digits[pair]));
for (const pair of Object.keys(price)) {
	const size = pair === "BTC_USDT" ? 1 : 15;
	for (let i = 0; i < 70; i++) for (const type of ["buy", "sell"]) {
		await place("alice", pair, type, 0.0002 + i * 0.00014 + share() * 0.0001, (0.02 + share() * 0.25 * (1 + i / 20)) * size);
	}
}
for (const end = Date.now() + Number(minutes) * 60_000; Date.now() < end;) {
	for (const pair of Object.keys(price)) {
		price[pair] *= 1 + (share() - 0.5) * 0.0011 + (first[pair] / price[pair] - 1) * 0.004;
		const size = pair === "BTC_USDT" ? 1 : 15;
		for (const type of ["buy", "sell"]) {
			await place("alice", pair, type, 0.0001 + share() * 0.0012, (0.01 + share() * 0.3) * size).catch(isPoor);
		}
		await place("bob", pair, next(2) ? "buy" : "sell", -0.0002 - share() * 0.0008, (0.001 + share() * share() * 0.6) * size).catch(isPoor);
	}
	await new Promise((done) => setTimeout(done, 700));
}
const browser = await launch();
await visit(browser, `${exchange.base}/trade`, { name: "picture", cookies: { theme: "dark" } }, async (page) => {
	await shows(page, "live");
	await page.click(".frames button:first-child");
	await page.waitForFunction(() => /O.*C/s.test(document.querySelector(".legend").innerText));
	await page.waitForTimeout(1500);
	await page.screenshot({ path: file });
});
await browser.close();
await exchange.end();
