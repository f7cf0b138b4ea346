// Reads and sends a command by REST as the exchange's pages do, with their own code:
//
//	node page.mjs ADDRESS KEY SECRET
import { importSecret, Session } from "../../web/js/session.js";

const [base, key, secret] = process.argv.slice(2);
const { fetch } = globalThis;
// No other tab shares this key, so a lock is free at once. Later versions of Node have a navigator.
Object.defineProperty(globalThis, "navigator", {
	value: { locks: { request: (_, held) => held() } },
});
globalThis.fetch = (path, init) => fetch(base + path, init);
const session = new Session({ on() {}, state: "connecting", ask: async () => ({}) });
session.resume(key, await importSecret(secret));
const wallets = await session.read("/api/v1/wallets/");
const { status } = await session.post("/api/v1/order-cancel-all/", { all: "1" });
console.log(wallets.length, status);
