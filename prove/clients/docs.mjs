// Sends requests as the page at /docs does, which signs them by itself:
//
//	node docs.mjs ADDRESS
//
// The page's script runs in a context that has what a page of a browser has of it. Its storage, its cookies and its
// addresses must stay untouched.
import { runInNewContext } from "node:vm";

const [base] = process.argv.slice(2);
const text = async (path) => (await fetch(base + path)).text();
const page = await text("/docs");
const paths = (await fetch(base + "/api/openapi.json").then((r) => r.json())).paths;

const fail = (why) => {
	console.error(why);
	process.exit(1);
};
const untouched = (name) => new Proxy({}, { get: () => fail(`the page reads ${name}`), set: () => fail(`the page writes ${name}`) });
const elements = {};
for (const [, id] of page.matchAll(/id="(sign-[a-z]+)"/g)) elements[id] = { value: "", listeners: {}, addEventListener(name, listener) { this.listeners[name] = listener; } };
for (const id of ["sign-key", "sign-secret", "sign-state"]) if (!elements[id]) fail(`the page has no ${id}`);
let loaded;
const window = {
	location: new URL(base + "/docs"),
	crypto,
	ui: { specSelectors: { specJson: () => ({ toJS: () => ({ paths }) }) } },
	addEventListener: (name, listener) => (loaded = listener),
};
const document = { getElementById: (id) => elements[id] };
for (const name of ["cookie"]) Object.defineProperty(document, name, { get: () => fail(`the page reads ${name}`), set: () => fail(`the page writes ${name}`) });
const context = { window, document, crypto, fetch, TextEncoder, URL, URLSearchParams, console };
for (const name of ["localStorage", "sessionStorage", "indexedDB", "history", "navigator"]) context[name] = window[name] = untouched(name);
runInNewContext(await text("/docs/sign.js"), context);
loaded();

const keys = (name, secret) => {
	elements["sign-key"].value = name;
	elements["sign-secret"].value = secret;
	return elements["sign-secret"].listeners.change();
};
// send has the page sign a request, and sends it.
async function send(method, path, body, type) {
	const asked = { url: base + path, method, headers: type ? { "Content-Type": type } : {}, body };
	const request = await context.signRequest(asked);
	if (request.url !== base + path || request.body !== body) fail(`the page changed ${path}`);
	const signed = "X-SIGN" in request.headers;
	const response = await (request.userFetch ?? fetch)(request.url, { method, headers: request.headers, body });
	return { signed, status: response.status, body: await response.text() };
}
async function expect(status, signed, method, path, body, type) {
	const got = await send(method, path, body, type);
	if (got.status !== status || got.signed !== signed) fail(`${method} ${path} ${body}: signed ${got.signed}, ${got.status} ${got.body}`);
}

const json = "application/json", form = "application/x-www-form-urlencoded";
await expect(401, false, "GET", "/api/v1/wallets/"); // without a key nothing is signed
await keys("demo-alice", "demo-alice-secret");
if (elements["sign-secret"].value !== "") fail("the secret stays in its field");
await expect(200, true, "GET", "/api/v1/wallets/");
await expect(200, true, "GET", "/api/v1/orders/own/?pair=BTC_USDT&limit=5");
await expect(404, true, "GET", "/api/v1/order/123456/");
await expect(200, false, "GET", "/api/v1/ticker/");
await expect(200, false, "GET", "/api/v1/orderbook/BTC_USDT/");
await expect(201, true, "POST", "/api/v1/order/", '{"type":"sell", "amount" : 0.50,\n"pair":"BTC\\u005fUSDT","price":"90000","post_only":true, "note":"a b!\'()*é&=", "more":{"a":["}",1]}}', json);
await expect(201, true, "POST", "/api/v1/order/", "type=sell&amount=0.5&pair=BTC_USDT&price=90001&note=a+b%26", form);
await expect(200, true, "POST", "/api/v1/order-batch/", '{"orders": [ {"do":"place", "pair":"BTC_USDT","type":"sell","amount":1.50,"price":90002}, {"do":"cancel","order":1} ]}', json);
await expect(200, true, "POST", "/api/v1/order-cancel-all/", "all=1", form);
await Promise.all(Array.from({ length: 3 }, () => context.signRequest({ url: base + "/api/v1/wallets/", headers: {} }))).then((list) => {
	if (new Set(list.map((r) => r.headers["X-NONCE"])).size !== 3) fail("a nonce is given twice");
	if (list.some((r) => Math.abs(r.headers["X-NONCE"] - Date.now()) > 3.6e6 && !process.argv.includes("--ahead"))) fail("a nonce is no time in milliseconds");
});
const elsewhere = await context.signRequest({ url: "http://elsewhere.example/api/v1/wallets/", method: "GET", headers: {} });
if ("X-SIGN" in elsewhere.headers) fail("a request to another host is signed");
await keys("demo-alice", "wrong");
await expect(401, true, "GET", "/api/v1/wallets/");
await keys("demo-alice", "");
await expect(401, false, "GET", "/api/v1/wallets/");
console.log("signed");
