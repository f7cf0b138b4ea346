// An account held by its events, and what a trader types: pure modules.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Account } from "../../web/js/account.js";
import { typed } from "../../web/js/format.js";
import { found } from "../../web/js/keys.js";

const order = (id, status = "1") => ({ id, pair: "BTC_USDT", type: "sell", status, price: "1",
	amount: "1", amount_filled: "0", amount_original: "1", date: "0" });
const snapshot = { snapshot: true, sequence: "7", prev: null, orders: [order("1")],
	balances: [{ currency: "BTC", balance: "1.0000000099999999", reserve: "0.5" }],
	orders_complete: true };

test("an account follows its events, and tells when one is missing", () => {
	const account = new Account();
	assert(!account.apply({ sequence: "9", prev: "7", orders: [] }), "there was no snapshot");
	assert(account.apply(snapshot));
	assert(account.apply({ sequence: "9", prev: "7", orders: [order("2"), order("1", "2")] }));
	assert.deepEqual([...account.orders.keys()], ["2"]);
	assert.equal(account.sequence, "9");
	assert(!account.apply({ sequence: "12", prev: "10", orders: [order("3")] }));
	assert.equal(account.sequence, undefined);
	assert(account.apply({ ...snapshot, sequence: "12" }));
	assert.deepEqual([...account.orders.keys()], ["1"]);
});

test("an event in parts is applied with its last, or not at all", () => {
	const account = new Account();
	account.apply(snapshot);
	const part = (n, id) => ({ sequence: "8", prev: "7", part: n, parts: "2", orders: [order(id)] });
	assert(account.apply(part("1", "5")));
	assert(!account.orders.has("5"));
	assert(account.apply(part("2", "6")));
	assert(account.orders.has("5") && account.orders.has("6"));
	assert(!account.apply({ ...part("2", "7"), sequence: "9", prev: "8" }), "without its first part");
});

test("what is free is rounded down", () => {
	const account = new Account();
	account.apply(snapshot);
	assert.equal(account.free("BTC"), 50_000_000n);
	assert.equal(account.free("ETH"), 0n);
});

test("typed numbers are exact, and separators are refused", () => {
	for (const [text, units] of [["1.5", 150_000_000n], [" .00000001 ", 1n], ["2.", 200_000_000n],
		["123456789", 12_345_678_900_000_000n], ["1,000", null], ["1.000.000", null], ["1e5", null],
		["-1", null], ["", null], ["0.000000001", null], ["1 000", null]]) {
		assert.equal(typed(text), units, text);
	}
});

test("a text names a key and its secret", () => {
	for (const text of ["key   abc\nsecret  x-y_z\n", '{"account":"a","key":"abc","secret":"x-y_z"}',
		"API key: abc\nSecret: x-y_z"]) {
		assert.deepEqual(found(text), { key: "abc", secret: "x-y_z" }, text);
	}
	assert.equal(found("abc"), undefined);
	assert.equal(found("key abc"), undefined);
});
