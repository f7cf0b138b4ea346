// Orders in flight, whose answers are late, lost or about another order.
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { WITHDRAWALS } from "../../web/js/account/sending.js";
import { importSecret, Sender, Session } from "../../web/js/session.js";

const fields = { pair: "BTC_USDT", type: "buy", price: "1", amount: "1" };
const busy = { status: 503, body: { detail: "Overloaded" }, retryAfter: 1 };

/** begin creates a sender with answers by the test, and collects its outcomes. */
function begin() {
	mock.timers.enable({ apis: ["setTimeout"] });
	const asked = [], outcomes = [];
	const session = { state: "in", key: "k", read: async () => [],
		command: (event, sent) => new Promise((answer, lose) =>
			asked.push({ event, sent, answer, lose })) };
	const sender = new Sender(session);
	sender.onOutcome = (outcome) => outcomes.push(outcome);
	return { sender, asked, outcomes, session };
}
const rest = () => new Promise((done) => setImmediate(done));

/** lost sends an order that gets no answer. */
async function lost(exchange) {
	exchange.sender.send(fields);
	exchange.asked.shift().lose(new Error("the connection is lost"));
	await rest();
	const [pending] = exchange.sender.mine();
	assert.equal(pending.state, "unknown");
	return pending;
}

test("what refuses a second try does not settle the first one", async () => {
	for (const status of [401, 403, 429, 503]) {
		const exchange = begin(), pending = await lost(exchange);
		exchange.sender.again(pending);
		await rest(); // it is looked for
		const { sent, answer } = exchange.asked.shift();
		assert.equal(sent.client_order_id, pending.id);
		answer({ ...busy, status });
		await rest();
		assert.equal(pending.state, "unknown", `${status}`);
		assert.equal(exchange.sender.mine().length, 1, `${status}`);
		mock.timers.reset();
	}
});

test("the refusal of the only try says that nothing was done", async () => {
	const exchange = begin();
	exchange.sender.send(fields);
	exchange.asked.shift().answer(busy);
	await rest();
	assert.equal(exchange.sender.mine()[0].state, "refused");
	await exchange.sender.cancel(exchange.sender.mine()[0]);
	assert.equal(exchange.sender.mine().length, 0);
	assert.equal(exchange.asked.length, 0);
	mock.timers.reset();
});

test("an order that is being taken back is sent by nothing else", async () => {
	const exchange = begin(), pending = await lost(exchange);
	exchange.sender.cancel(pending);
	exchange.sender.cancel(pending);
	exchange.sender.again(pending);
	await rest();
	assert.deepEqual(exchange.asked.map((a) => a.event), ["order-cancel"]);
	exchange.asked.shift().answer({ ...busy, status: 429 });
	await rest();
	assert.equal(exchange.outcomes.at(-1).answer.status, 429, "a refused cancel is reported");
	assert.equal(exchange.sender.mine().length, 1);
	exchange.sender.cancel(pending);
	exchange.asked.shift().answer({ status: 200, body: { order: "7" }, retryAfter: 0 });
	await rest();
	assert.equal(exchange.sender.mine().length, 0);
	mock.timers.reset();
});

test("nothing is sent again while nobody is logged in", async () => {
	const exchange = begin(), pending = await lost(exchange);
	exchange.session.state = "waiting";
	exchange.sender.again(pending);
	await rest();
	assert.equal(exchange.asked.length, 0);
	assert.equal(pending.state, "unknown");
	mock.timers.reset();
});

test("an order that is not seen is asked for by a change of nothing, which tells for certain",
	async () => {
		for (const [status, body, order] of [[200, { oid: "7" }],
			[400, { client_order_id: ["Order already done"] }],
			[400, { client_order_id: ["Order not found"] }, "gone"]]) {
			const exchange = begin(), pending = await lost(exchange);
			for (const wait of [500, 1000, 2000, 4000, 8000]) {
				mock.timers.tick(wait);
				await rest();
			}
			assert.equal(pending.state, "unseen");
			assert.equal(exchange.asked.length, 0, "in the first half minute the order may come");
			mock.timers.tick(16_000);
			await rest();
			const { event, sent, answer } = exchange.asked.shift();
			assert.deepEqual([event, sent],
				["order-amend", { client_order_id: pending.id, amount: "1" }]);
			answer({ status, body, retryAfter: 0 });
			await rest();
			assert.equal(exchange.sender.mine().length, order ? 0 : 1);
			if (order) assert.equal(exchange.outcomes.at(-1).answer.status, 400);
			mock.timers.reset();
		}
	});

test("a withdrawal that is sent again under its name is found as the one that it was", async () => {
	mock.timers.enable({ apis: ["setTimeout"] });
	const asked = [], outcomes = [];
	let list = [];
	const session = { state: "in", key: "k", read: async () => list,
		post: (path, sent) => new Promise((answer, lose) =>
			asked.push({ path, sent, answer, lose })) };
	const sender = new Sender(session, WITHDRAWALS);
	sender.onOutcome = (outcome) => outcomes.push(outcome);
	sender.send({ currency: "BTC", amount: "1", address: "a" });
	asked.shift().lose(new Error("the connection is lost"));
	await rest();
	const [pending] = sender.mine();
	mock.timers.tick(500);
	await rest();
	assert.equal(pending.state, "unseen");
	assert.equal(asked.length, 0, "nothing is sent again by itself");
	sender.again(pending);
	await rest();
	const { path, sent, answer } = asked.shift();
	assert.deepEqual([path, sent.client_id], ["/api/v1/withdraw/", pending.id]);
	answer({ status: 400, body: { client_id: ["Already used by withdraw 7"] }, retryAfter: 0 });
	await rest();
	assert.equal(outcomes.at(-1).order, "7");
	assert.equal(sender.mine().length, 0);
	sender.send({ currency: "BTC", amount: "2", address: "a" });
	const second = asked.shift();
	second.lose(new Error("the connection is lost"));
	await rest();
	list = [{ id: "9", client_id: "other" }, { id: "8", client_id: second.sent.client_id }];
	mock.timers.tick(500);
	await rest();
	assert.equal(outcomes.at(-1).order, "8");
	mock.timers.reset();
});

// Node has neither locks across tabs nor storage.
let last = Promise.resolve();
Object.defineProperty(globalThis, "navigator", { configurable: true, value: { locks: {
	request: (_, run) => (last = last.then(run, run)) } } });

test("signed requests go one by one, and one whose nonce was refused goes once more", async () => {
	const sent = [], answers = [];
	mock.method(globalThis, "fetch", async (path, { method, body, headers }) => {
		sent.push({ path, method, body, nonce: BigInt(headers["X-NONCE"]) });
		const { status, json } = answers.shift();
		return { status, ok: status < 300, statusText: "", headers: new Headers(
			{ "Retry-After": "3" }), text: async () => json };
	});
	const session = new Session({ on() {}, state: "connecting", ask: async () => ({}) });
	session.resume("k", await importSecret("s"));
	const last = 10n ** 17n;
	answers.push({ status: 401, json: `{"detail":"x","code":"nonce","last":${last}}` },
		{ status: 429, json: '{"detail":"wait"}' }, { status: 200, json: "[1]" });
	const [answer, list] = await Promise.all([session.post("/p/", { b: "x y&", a: "1" }),
		session.read("/r/")]);
	assert.deepEqual(answer, { status: 429, body: { detail: "wait" }, retryAfter: 3 });
	assert.deepEqual(list, ["1"]);
	assert.deepEqual(sent.map((s) => s.path), ["/p/", "/p/", "/r/"]);
	assert.deepEqual([sent[1].method, sent[1].body, sent[1].nonce],
		["POST", "a=1&b=x%20y%26", last + 1n]);
	assert.equal(sent[2].nonce, last + 2n);
	assert(session.isShared);
	session.resume("other", await importSecret("s")); // the nonces of another key are its own
	for (let i = 0; i < 3; i++) {
		answers.push({ status: 200, json: "[]" });
		await session.read("/r/");
	}
	const [a, b, c] = sent.slice(3).map((s) => s.nonce);
	assert(a < b && b < c && Math.abs(Number(c) - Date.now()) < 60_000, `${a} ${b} ${c}`);
	for (const json of ["<html>", "{}"]) { // a proxy's, so the exchange may have the command
		answers.push({ status: 502, json });
		await assert.rejects(session.post("/p/", { a: "1" }));
	}
	mock.restoreAll();
});
