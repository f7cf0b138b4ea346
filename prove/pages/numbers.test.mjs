// Exact numbers, their texts, and candles.
import assert from "node:assert/strict";
import { test } from "node:test";
import { exact } from "../../web/js/api.js";
import { append, filled } from "../../web/js/book.js";
import { decimal, fromNumber, number, parse, percent, plain } from "../../web/js/format.js";
import { random } from "./helpers/random.mjs";

test("a decimal is read to its last digit, or not at all", () => {
	for (const [text, units] of [["0", 0n], ["1", 100000000n], ["0.00000001", 1n], ["-0.5", -50000000n],
		["12345678901234.12345678", 1234567890123412345678n], ["1.500000000000", 150000000n], ["007.10", 710000000n]]) {
		assert.equal(parse(text), units);
	}
	for (const text of ["", ".5", "5.", "1e3", "1,5", "+1", " 1", "0.000000001", "NaN", "--1", "1.2.3", "٣"]) {
		assert.throws(() => parse(text), RangeError, text);
	}
	for (let seed = 1; seed < 2000; seed++) {
		const next = random(seed), units = BigInt(next(2 ** 31)) * BigInt(next(2 ** 31)) * (next(2) ? 1n : -1n);
		assert.equal(parse(plain(units)), units);
	}
});

test("numbers of the stream keep their fifteen digits", () => {
	for (const text of ["0.00000001", "0.1", "64000.01", "1000000.12345678", "9999999.99999999", "123456789.1", "1023456789.3", "123456789012345", "0"]) assert.equal(plain(fromNumber(Number(text))), text);
	assert.equal(number(parse("64000.5")), 64000.5);
});

test("a decimal is cut, never rounded up", () => {
	assert.equal(decimal(parse("-0.99999999"), 2), "-0.99");
	assert.equal(decimal(parse("0.99999999"), 2), "0.99");
	assert.equal(decimal(parse("1234567.5"), 2), "1,234,567.50");
	assert.equal(decimal(parse("-1234.567"), 0), "-1,234");
	assert.equal(decimal(parse("5"), 8), "5.00000000");
	assert.equal(percent(-0.0123), "-1.23%");
	assert.equal(percent(0), "0.00%");
	assert.equal(percent(0.5), "+50.00%");
});

test("answers keep every digit of their numbers, and every text", () => {
	assert.deepEqual(exact('{"balance":12345678.12345678,"list":[1,-2.50,1e-8],"name":"1.5 \\"2\\" \\\\","none":null,"yes":true,"7":"8"}'),
		{ balance: "12345678.12345678", list: ["1", "-2.50", "1e-8"], name: '1.5 "2" \\', none: null, yes: true, 7: "8" });
	assert.equal(exact('{"balance":9007199254740993.00000001}').balance, "9007199254740993.00000001");
	assert.throws(() => exact("<html>"));
});

const candle = (time, close, volume = 1) => ({ time, open: close, high: close, low: close, close, volume });

test("periods without trades are flat, and wide gaps stay gaps", () => {
	const row = filled([candle(0, 5), candle(60, 6), candle(240, 7)], "1");
	assert.deepEqual(row, [candle(0, 5), candle(60, 6), candle(120, 6, 0), candle(180, 6, 0), candle(240, 7)]);
	assert.equal(filled([candle(0, 5), candle(86400 * 3, 6)], "D").length, 4);
	assert.equal(filled([candle(0, 5), candle(60 * 1e6, 6)], "1").length, 2);
});

test("the newest candle takes the place of its earlier form, and an older one changes nothing", () => {
	const row = [candle(0, 5)];
	assert.equal(append(row, candle(0, 6), "5"), 0);
	assert.equal(append(row, candle(900, 7), "5"), 1);
	assert.deepEqual(row, [candle(0, 6), candle(300, 6, 0), candle(600, 6, 0), candle(900, 7)]);
	assert.equal(append(row, candle(600, 1), "5"), -1);
	assert.equal(row.length, 4);
	assert.equal(append([], candle(60, 1), "1"), 0);
});
