// Lists of an account that are read in pages, merged, and written as CSV: pure modules.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cell, csv, utc } from "../../web/js/account/csv.js";
import { exactly, plain } from "../../web/js/format.js";
import { changesOf, History } from "../../web/js/account/history.js";
import { Pages } from "../../web/js/account/pages.js";
import { random } from "./helpers/random.mjs";

/** exchange answers as a list does: newest first, below an id, up to a limit. */
function exchange(rows) {
	const asked = [];
	const read = async (path) => {
		asked.push(path);
		const q = new URLSearchParams(path.split("?")[1]);
		const before = Number(q.get("before") ?? Infinity);
		return rows().filter((row) => Number(row.id) < before)
			.sort((a, b) => Number(b.id) - Number(a.id)).slice(0, Number(q.get("limit")));
	};
	return { read, asked };
}
const numbers = (from, to) =>
	Array.from({ length: to - from + 1 }, (_, i) => ({ id: String(from + i) }));
const ids = (pages) => pages.rows.map(({ id }) => Number(id));

test("pages follow each other without a gap, and the last one is recognized", async () => {
	const { read, asked } = exchange(() => numbers(1, 250));
	const pages = new Pages({ read, path: "/x/?pair=A_B", most: 1000 });
	await pages.more();
	assert.equal(pages.rows.length, 100);
	await Promise.all([pages.more(), pages.more()]);
	assert.deepEqual(ids(pages), numbers(1, 250).map(({ id }) => Number(id)).reverse());
	assert(pages.isDone);
	await pages.more();
	assert.deepEqual(asked, ["/x/?pair=A_B&limit=100", "/x/?pair=A_B&limit=100&before=151",
		"/x/?pair=A_B&limit=100&before=51"]);
});

test("a page is no longer than the exchange allows, else it would seem to be the last", async () => {
	const { read } = exchange(() => numbers(1, 40));
	const pages = new Pages({ read, path: "/x/", most: 30 });
	await pages.more(2000);
	assert(!pages.isDone);
	await pages.more(2000);
	assert(pages.isDone && pages.rows.length === 40);
});

test("new rows are read back to those that are here", async () => {
	let to = 50;
	const { read, asked } = exchange(() => numbers(1, to));
	const pages = new Pages({ read, path: "/x/", most: 1000 });
	await pages.fresh();
	assert.equal(asked.length, 0, "nothing is here yet");
	await pages.more();
	to = 400;
	await pages.fresh();
	assert.equal(pages.rows.length, 400);
	assert.equal(asked.length, 1 + 4);
});

test("a row of an event changes, joins and leaves a list, and is applied after a page in flight",
	async () => {
	let answer;
	const pages = new Pages({ path: "/x/", most: 1000, accepts: ({ status }) => status === "1",
		read: () => new Promise((done) => (answer = done)) });
	const page = pages.more(2), event = pages.put({ id: "9", status: "2" });
	await undefined;
	answer([{ id: "9", status: "1" }, { id: "8", status: "1" }]);
	await Promise.all([page, event]);
	assert.deepEqual(ids(pages), [8]);
	await pages.put({ id: "7", status: "1" });
	assert.deepEqual(ids(pages), [8], "its page was not read yet");
	await pages.put({ id: "10", status: "1" });
	assert.deepEqual(ids(pages), [10, 8]);
});

test("a failed read leaves the list unchanged, and the next one continues", async () => {
	let fails = true;
	const { read } = exchange(() => numbers(1, 5));
	const pages = new Pages({ path: "/x/", most: 9, read: async (path) => {
		if (fails) throw new Error("no answer");
		return read(path);
	} });
	await assert.rejects(pages.more());
	assert(!pages.isDone);
	fails = false;
	await pages.more();
	assert.equal(pages.rows.length, 5);
});

test("rows beyond the range of a list end it", async () => {
	const { read } = exchange(() => numbers(1, 500));
	const pages = new Pages({ read, path: "/x/", most: 1000, accepts: ({ id }) => Number(id) > 420,
		isPast: ({ id }) => Number(id) <= 420 });
	await pages.more();
	assert(pages.isDone);
	assert.equal(pages.rows.length, 80);
});

test("a trade changes two balances, exactly, and its fee the one that grows", () => {
	const trade = { id: "7", pair: "BTC_USDT", my_side: "buy", price: "64000.5",
		amount: "0.12345678", fee: "0.0000000000000001", fee_currency: "BTC", timestamp: "1.5" };
	const shown = (row) => changesOf("trades", row).map((e) => `${plain(e.change, 16)} ${e.currency}`);
	assert.deepEqual(shown(trade), ["0.1234567799999999 BTC", "-7901.29564839 USDT"]);
	assert.deepEqual(shown({ ...trade, my_side: "sell", fee: "0.5" }),
		["7900.79564839 USDT", "-0.12345678 BTC"]);
	const [out] = changesOf("withdraws", { id: "1", currency: "BTC", amount: "2", timestamp: "1" });
	assert.equal(plain(out.change, 16), "-2");
});

test("the history is one list in the order of time, however its pages come", async () => {
	const next = random(5), all = { deposits: [], withdraws: [], exchanges: [] };
	for (let id = 1; id <= 900; id++) {
		const name = Object.keys(all)[next(3)], base = { id: String(id), timestamp: `${id}.25` };
		all[name].push(name === "exchanges" ? { ...base, pair: "A_B", my_side: "buy", price: "1",
			amount: "1", fee: "0", fee_currency: "A" } : { ...base, currency: "A", amount: "1" });
	}
	const read = (path) =>
		exchange(() => all[/v1\/(\w+)/.exec(path)[1]]).read(path);
	const history = new History(read, "A");
	assert.deepEqual(history.rows, []);
	for (let shown = 0; !history.isDone;) {
		await history.more(37);
		const { rows } = history;
		assert.deepEqual(rows.map((e) => Number(e.id)),
			Array.from({ length: rows.length }, (_, i) => 900 - i), "nothing is left out");
		assert(rows.length >= shown);
		shown = rows.length;
	}
	assert.equal(history.rows.length, 900);
});

test("a cell that a spreadsheet would run is a text, and a number stays one", () => {
	for (const [text, want] of [["=1+1", "'=1+1"], ["+x", "'+x"], ["-x", "'-x"], ["@a", "'@a"],
		["\tx", "'\tx"], ["-1.5", "-1.5"], ["12", "12"], ["a,b", '"a,b"'], ['=a"b', `"'=a""b"`],
		["a\nb", '"a\nb"'], ["-1e5", "'-1e5"], ["-", "'-"], ["", ""]]) {
		assert.equal(cell(text), want);
	}
	assert.equal(csv([["a", "b"], ["1", "=x"]]), "a,b\r\n1,'=x\r\n");
});

test("times and numbers lose no digit", () => {
	assert.equal(utc("1795745915.632785"), "2026-11-27T02:18:35.632785Z");
	assert.equal(utc("0.5"), "1970-01-01T00:00:00.500000Z");
	assert.equal(utc("7"), "1970-01-01T00:00:07.000000Z");
	for (const text of ["1234567.0123456789012345", "-0.0000000000000001", "999", "-1234"]) {
		assert.equal(exactly(text).replaceAll(",", ""), text);
	}
	for (const text of ["", "1e-8", "null"]) assert.equal(exactly(text), text);
	assert.equal(plain(-1n, 16), "-0.0000000000000001");
	assert.equal(plain(10n ** 16n, 16), "1");
	assert.equal(plain(150_000_000n), "1.5");
	assert.equal(plain(0n), "0");
});
