// The local book against random histories, with a minimal book as reference.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Book, crc32, furthest } from "../../web/js/book.js";
import { parse, plain } from "../../web/js/format.js";
import { random } from "./helpers/random.mjs";

/** levels are a side of the reference: texts of prices and amounts, best first. */
const levels = (side, name) => [...side].filter(([, amount]) => amount !== "0")
	.sort(([a], [b]) => Number(a) - Number(b)).map(([price, amount]) => `${price}:${amount}`)[name === "sell" ? "slice" : "toReversed"]();

test("a book follows its events, over any history", () => {
	for (let seed = 1; seed <= 30; seed++) {
		const next = random(seed);
		const book = new Book(), reference = { sell: new Map(), buy: new Map() };
		const event = (snapshot) => {
			const changes = { sell: [], buy: [] };
			for (const side of ["sell", "buy"]) {
				if (snapshot) reference[side].clear();
				for (let n = next(snapshot ? 40 : 4); n > 0; n--) {
					// both sides have prices of one, two and three digits: text sorts otherwise than numbers
					const price = plain(BigInt(side === "sell" ? 500 + next(900) : 1 + next(499)) * 1_000_000n);
					const amount = snapshot || next(3) ? plain(BigInt(1 + next(1e9))) : "0";
					if (snapshot && reference[side].has(price)) continue;
					changes[side].push({ price, amount });
					reference[side].set(price, amount);
				}
			}
			return changes;
		};
		let id = next(1000);
		assert(book.apply({ snapshot: true, update_id: id, prev_update_id: null, ...event(true) }));
		for (let step = 0; step < 100; step++) {
			const isWhole = next(50) === 0, prev = id;
			id += 1 + (isWhole ? next(100) : 0);
			assert(book.apply({ snapshot: isWhole || undefined, update_id: id, prev_update_id: isWhole ? null : prev, ...event(isWhole) }), `seed ${seed}, step ${step}`);
			for (const side of ["sell", "buy"]) {
				assert.deepEqual(book.sides[side].map((l) => l.text), levels(reference[side], side), `seed ${seed}, step ${step}`);
				assert.deepEqual(book.sides[side].map((l) => `${plain(l.price)}:${plain(l.amount)}`), book.sides[side].map((l) => l.text));
			}
			assert.equal(book.updateId, id);
		}
	}
});

const whole = { snapshot: true, update_id: 7, prev_update_id: null, sell: [{ price: "50000", amount: "0.3" }], buy: [{ price: "49999", amount: "1" }, { price: "49998.5", amount: "2" }] };

test("an event that does not follow loses the book, and only a whole book brings it back", () => {
	const book = new Book();
	assert(book.apply({ update_id: 6, prev_update_id: 5, sell: [], buy: [] })); // the whole book is in flight
	assert.equal(book.updateId, null);
	assert(book.apply(whole));
	assert.equal(book.apply({ update_id: 9, prev_update_id: 8, sell: [], buy: [{ price: "1", amount: "1" }] }), false);
	assert.equal(book.updateId, null);
	assert(book.apply({ update_id: 10, prev_update_id: 9, sell: [], buy: [{ price: "1", amount: "1" }] }));
	assert.equal(book.sides.buy.length, 2);
	assert(book.apply({ ...whole, update_id: 11 }));
	assert.equal(book.updateId, 11);
});

test("a checksum that differs loses the book", () => {
	const text = "49999:1:50000:0.3:49998.5:2"; // the example of docs/stream.md
	const book = new Book();
	assert(book.apply({ ...whole, checksum: 2840604215 }));
	assert.equal(book.checksum(), crc32(text));
	assert.equal(book.apply({ update_id: 8, prev_update_id: 7, sell: [], buy: [], checksum: 1 }), false);
	assert.equal(book.updateId, null);
	assert.equal(crc32("123456789"), 0xcbf43926); // the check value of CRC-32
	assert.equal(new Book().checksum(), 0);
});

test("a grouped row looks no better than its orders, and loses none of them", () => {
	for (let seed = 1; seed <= 200; seed++) {
		const next = random(seed), book = new Book(), step = BigInt(1 + next(1000));
		const some = (from) => Array.from({ length: next(50) }, () => ({ price: plain(BigInt(from + next(5000))), amount: plain(BigInt(1 + next(1e9))) }));
		book.apply({ snapshot: true, update_id: 1, prev_update_id: null, sell: some(10000), buy: some(1000) });
		for (const side of ["sell", "buy"]) {
			const all = book.rows(side, step, Infinity);
			let total = 0n;
			for (const row of all) {
				total += row.amount;
				assert.equal(row.total, total);
				assert.equal(row.price % step, 0n);
			}
			assert.equal(total, book.sides[side].reduce((sum, l) => sum + l.amount, 0n));
			for (const level of book.sides[side]) {
				const row = all.find((r) => (side === "sell" ? r.price >= level.price : r.price <= level.price));
				assert(row && (side === "sell" ? row.price - step < level.price : row.price + step > level.price));
			}
			const few = book.rows(side, step, 3);
			assert.deepEqual(few, all.slice(0, 3));
		}
	}
});

test("the middle is between the best prices", () => {
	const book = new Book();
	assert.equal(book.middle(), null);
	book.apply(whole);
	assert.equal(book.middle(), parse("49999.5"));
});

test("the best prices alone are a book, until a whole one comes", () => {
	const book = new Book();
	book.isShort = true;
	book.replace({ update_id: 7, sell: [{ price: 2.5, amount: 1e-8 }, { price: 3, amount: 1 }],
		buy: [{ price: 2, amount: 0.1 }] });
	assert.equal(book.updateId, 7);
	assert.deepEqual(book.rows("sell", 1n, 9).map(({ price, total }) => [price, total]),
		[[250_000_000n, 1n], [300_000_000n, 100_000_001n]]);
	book.apply({ pair: "A_B", update_id: 9, prev_update_id: null, snapshot: true,
		sell: [{ price: "4", amount: "1" }], buy: [] });
	assert.deepEqual([book.sides.sell.length, book.sides.buy.length], [1, 0]);
});

test("what an order takes beyond the best 20 prices is not known", () => {
	const book = new Book();
	const side = (n) => Array.from({ length: n }, (_, i) => ({ price: 100 + i, amount: 1 }));
	const take = (order) => {
		const { amount, isWhole, isMore } = book.take("sell", order);
		return [plain(amount), isWhole, isMore];
	};
	const one = parse("1");
	book.isShort = true;
	book.replace({ update_id: 1, sell: side(20), buy: [] });
	assert.deepEqual(take({ amount: 19n * one }), ["19", false, false]);
	assert.deepEqual(take({ amount: 20n * one }), ["20", false, false]);
	assert.deepEqual(take({ amount: 21n * one }), ["20", false, true]);
	assert.deepEqual(take({ value: 3000n * one }), ["20", false, true]);
	assert.deepEqual(take({ value: 205n * one }), ["2.03921568", false, false]);
	assert.deepEqual(take({ amount: 21n * one, limit: 105n * one }), ["6", false, false]);
	assert.deepEqual(take({ amount: one, from: 200n * one }), ["0", false, true]);
	book.replace({ update_id: 2, sell: side(19), buy: [] }); // there are no more
	assert.deepEqual(take({ amount: 20n * one }), ["19", true, false]);
	book.isShort = false;
	book.replace({ update_id: 3, sell: side(20), buy: [] });
	assert.deepEqual(take({ amount: 21n * one }), ["20", true, false]);
});

test("a price protection is rounded towards its reference, and ends what an order takes", () => {
	const of = (side, from, share, tick) =>
		plain(furthest(side, parse(from), parse(share), parse(tick)));
	assert.deepEqual([of("buy", "64000", "0.05", "0.01"), of("buy", "64000", "0.05", "1000"),
		of("buy", "64000", "0.001", "1000"), of("sell", "64000", "0.05", "0.01"),
		of("sell", "64000", "0.05", "1000"), of("sell", "64000", "0.001", "1000"),
		of("sell", "64000", "1", "0.01")],
	["67200", "67000", "64000", "60800", "61000", "64000", "0.01"]);
	const book = new Book();
	book.apply({ snapshot: true, update_id: 1, prev_update_id: null, buy: [],
		sell: [{ price: "100", amount: "1" }, { price: "110", amount: "1" }] });
	const take = (amount, limit) => {
		const { amount: got, isCut, isWhole } = book.take("sell",
			{ amount: parse(amount), limit: parse(limit) });
		return [plain(got), isCut, isWhole];
	};
	assert.deepEqual([take("2", "105"), take("1", "105"), take("2", "110"), take("3", "110")],
		[["1", true, false], ["1", false, false], ["2", false, true], ["2", false, true]]);
});
