// An account maintained by its events, and a trader's input: pure modules.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Account, found } from "../../web/js/session.js";
import { number, reader } from "../../web/js/format.js";

const order = (id, status = "1") => ({ id, pair: "BTC_USDT", type: "sell", status, price: "1",
	amount: "1", amount_filled: "0", amount_original: "1", date: "0" });
const snapshot = { snapshot: true, sequence: "7", prev: null, orders: [order("1")],
	balances: [{ currency: "BTC", balance: "1.0000000099999999", reserve: "0.5" }],
	orders_complete: true };

test("an account follows its events, and reports a missing one", () => {
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

test("available amounts are rounded down", () => {
	const account = new Account();
	account.apply(snapshot);
	assert.equal(account.free("BTC"), 50_000_000n);
	assert.equal(account.free("ETH"), 0n);
});

test("what a locale writes is read, and what could be two numbers is not", () => {
	for (const [locale, list] of Object.entries({
		"en-US": [["1.5", 1.5], [" .00000001 ", 1e-8], ["2.", 2], ["123456789", 123456789],
			["64,100.00", 64100], ["1,234,567", 1234567], ["1,234", [1234, 1.234]], ["1,50"], ["0,123"],
			["1,00.5"], ["1.000.000"], ["1e5"], ["-1"], [""], ["0.000000001"], ["1 000"]],
		"de-DE": [["64.100,00", 64100], ["1,234", 1.234], ["1.234", [1234, 1.234]], ["0.123", 0.123],
			["1234.567", 1234.567], ["64,100.00"]],
		"fr-FR": [["64\u202f100,5", 64100.5], ["64 100", 64100]], "de-CH": [["64’100.50", 64100.5]],
		"en-IN": [["12,34,567.5", 1234567.5]], "ar-EG": [["٦٤٬١٠٠٫٥", 64100.5]] })) {
		for (const [typed, is = null] of list) {
			const { n, two } = reader(locale).read(typed);
			assert.deepEqual(two?.map(number) ?? (n === null ? n : number(n)), is, `${locale} ${typed}`);
		}
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
