// Orders on their way, of which answers are late, lost or about something else.
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Sender } from "../js/sender.js";

const fields = { pair: "BTC_USDT", type: "buy", price: "1", amount: "1" };
const busy = { status: 503, body: { detail: "Overloaded" }, retryAfter: 1 };

/** begin makes a sender whose answers a test gives, and collects what it tells. */
function begin() {
	mock.timers.enable({ apis: ["setTimeout"] });
	const asked = [], told = [];
	const session = { state: "in", key: "k", read: async () => [],
		command: (event, sent) => new Promise((answer, lose) =>
			asked.push({ event, sent, answer, lose })) };
	const sender = new Sender(session);
	sender.onOutcome = (outcome) => told.push(outcome);
	return { sender, asked, told, session };
}
const rest = () => new Promise((done) => setImmediate(done));

/** lost sends an order of which no answer comes. */
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
	assert.deepEqual(exchange.asked.map((a) => a.event), ["order-cancel"]);
	exchange.asked.shift().answer({ ...busy, status: 429 });
	await rest();
	assert.equal(exchange.told.at(-1).answer.status, 429, "a refused cancel is told");
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
	assert.equal(exchange.asked.length, 0);
	assert.equal(pending.state, "unknown");
	mock.timers.reset();
});
