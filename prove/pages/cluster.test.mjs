// The pages as served by followers of a cluster.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch, shows, visit } from "./helpers/browser.mjs";
import { Exchange, freePort, run, until } from "./helpers/exchange.mjs";
import { says } from "./helpers/traders.mjs";

const folder = mkdtempSync(join(tmpdir(), "exchange-cluster-"));
/** The processes by name; o is the observer. */
const processes = {};
let browser, leader;

/** leads returns the leader's name; undefined: none. */
async function leads() {
	for (const name of ["a", "b", "c"]) {
		const answer = await fetch(`${processes[name].base}/leaderz`).catch(() => undefined);
		if (answer?.ok) return name;
	}
}

before(async () => {
	const nodes = [];
	for (const name of ["a", "b", "c"]) nodes.push(`${name}=127.0.0.1:${await freePort()}`);
	await run(["cluster", "init", join(folder, "all"), ...nodes]);
	await run(["cluster", "certify", join(folder, "all"), "o", "--observer"]);
	for (const name of ["a", "b", "c", "o"]) {
		const isNode = name !== "o";
		processes[name] = new Exchange({
			args: ["--node", name, ...isNode ? ["--nodes", nodes.join()]
				: ["--observer", "--follow", nodes.join()]],
			env: { EXCHANGE_CLUSTER_FOLDER: join(folder, "all", name),
				EXCHANGE_CLUSTER_TICK_MS: "100", // elections are rare on a busy machine
				...isNode && { EXCHANGE_CLUSTER_OBSERVERS: "o" } } });
	}
	await Promise.all(["a", "b", "c"].map((name) => processes[name].start()));
	// The nodes agree on the configuration again once all have reported the newest format. A later
	// term keeps it, so that sockets stay open.
	await until("the newest format may be written", async () => {
		leader = await leads();
		if (!leader) return false;
		const { stdout } = await processes[leader].operator("cluster", "status", "--json");
		const { format, nodes } = JSON.parse(stdout);
		return format > 0 && format === nodes[0].reads;
	});
	const before = leader;
	await processes[before].operator("cluster", "transfer");
	await until("another node leads", async () => (leader = await leads()) && leader !== before);
	await processes.o.start();
	browser = await launch();
});
after(async () => {
	await browser?.close();
	await Promise.all(Object.values(processes).map((each) => each.end()));
	rmSync(folder, { recursive: true });
});

/** through gives a test the base of a follower or the observer. */
const through = (who, body) => test(`through ${who}`, () => body(who === "an observer"
	? processes.o : processes[["a", "b", "c"].find((name) => name !== leader)]));

for (const who of ["an observer", "a node that follows"]) {
	through(who, (at) => visit(browser, `${at.base}/trade`, { name: who }, async (page) => {
		await shows(page, "live");
		await page.click(".account");
		await page.click('dialog .demo button:has-text("alice")');
		await page.waitForSelector("body.trader");
		await says(page, ".sums", "Available.*\\d");
		const price = who === "an observer" ? "64000.5" : "64001.5";
		await page.click("#form-side-sell");
		await page.fill("#form-price", price);
		await page.fill("#form-amount", "0.25");
		await page.click("#panel-form button.main");
		await says(page, ".outcome", "Order placed: \\d+\\.");
		await says(page, "#panel-own .orders", "Open\\s.*0\\.25\\s+0\\.00");
		await says(page, "#panel-book .sell", "64,00\\d\\.50\\s+0\\.25000");
		await processes[leader].order("bob", "BTC_USDT", "buy", "0.1", price);
		await says(page, "#panel-own .orders", "Open\\s.*0\\.25\\s+0\\.10\\s+avg\\. [\\d,.]+");
		await page.click('button:has-text("My trades")'); // by REST, then by events
		await says(page, "#panel-own .trades", "Sell\\s+64,00\\d\\.50\\s+0\\.10");
		await page.click('button:has-text("Open orders")');
		await page.click('#panel-own tbody button:has-text("Cancel")');
		await says(page, "#panel-own .told", "Order \\d+ cancelled");
		await page.goto(`${at.base}/account`);
		await shows(page, "live");
		await says(page, "#header > .account", "alice"); // a log-in is of both pages
		await says(page, ".balances", "BTC\\s+99\\.[89]0\\s+0\\.00\\s");
		await says(page, ".history", "Trade \\d+\\s+BTC\\s+-0\\.1.*Deposit 1");
		await processes[leader].operator("deposit", "alice", "ETH", "0.5");
		await says(page, ".history tbody tr", "Deposit \\d+\\s+ETH\\s+\\+0\\.5");
		await page.click('#sections a[href="#orders"]');
		await says(page, "#main", "BTC/USDT.*Cancelled");
		await page.click('#sections a[href="#withdraws"]');
		await page.click('#sections a[href="#key"]');
		await says(page, "#main", "Read the account");
		assert.equal((await at.get("alice", "/api/v1/orders/own/?status=1")).length, 0);
	}));
}
