// What a browser keeps: API keys for the device, and texts for a tab. A secret is held as a key of
// WebCrypto that signs and that no script can read, so it cannot be taken out of the browser.

/** @typedef {{key: string, secret: CryptoKey}} Kept */

const NAME = "key"; // of the database, of its store, and of the one entry

/** importSecret makes a secret's text a key that signs. @param {string} secret */
export const importSecret = (secret) =>
	crypto.subtle.importKey("raw", new TextEncoder().encode(secret),
		{ name: "HMAC", hash: "SHA-256" }, false, ["sign"]);

/**
 * sign returns the signature of a message, in hexadecimal digits.
 * @param {CryptoKey} secret
 * @param {string} message
 */
export async function sign(secret, message) {
	const bytes = await crypto.subtle.sign("HMAC", secret, new TextEncoder().encode(message));
	return [...new Uint8Array(bytes)].map((b) => b.toString(16).padStart(2, "0")).join("");
}

/**
 * done waits for a request to the database.
 * @template T
 * @param {IDBRequest<T>} request
 * @returns {Promise<T>}
 */
const done = (request) => new Promise((resolve, reject) => {
	request.onsuccess = () => resolve(request.result);
	request.onerror = () => reject(request.error);
});

/**
 * within runs one request on the store.
 * @template T
 * @param {IDBTransactionMode} mode
 * @param {(store: IDBObjectStore) => IDBRequest<T>} ask
 */
async function within(mode, ask) {
	const opening = indexedDB.open(NAME);
	opening.onupgradeneeded = () => opening.result.createObjectStore(NAME);
	const database = await done(opening);
	try {
		return await done(ask(database.transaction(NAME, mode).objectStore(NAME)));
	} finally {
		database.close();
	}
}

/** keep keeps a key for the next visits. @param {Kept} kept */
export const keep = (kept) => within("readwrite", (store) => store.put(kept, NAME));

/** kept returns the key that is kept. @returns {Promise<Kept | undefined>} */
export const kept = () => within("readonly", (store) => store.get(NAME));

/** forget removes it, with its database. */
export const forget = () => done(indexedDB.deleteDatabase(NAME));

const PART = {
	key: /(?:^|[^a-z])(?:api[ _-]?)?key["'\s:=]+([\w.-]+)/i,
	secret: /secret["'\s:=]+([\w.-]+)/i,
};

/**
 * found returns key and secret of a text that names both, such as a file or what `exchange key
 * create` prints; undefined: it does not.
 * @param {string} text
 */
export function found(text) {
	const key = PART.key.exec(text)?.[1], secret = PART.secret.exec(text)?.[1];
	return key && secret ? { key, secret } : undefined;
}

/** remember keeps a text; "" forgets it. @param {string} name @param {string} is */
export function remember(name, is) {
	try {
		if (is) sessionStorage.setItem(name, is);
		else sessionStorage.removeItem(name);
	} catch {
		// where a browser lets pages keep nothing, a reload forgets
	}
}

/** remembered returns what is kept; "": nothing. @param {string} name */
export function remembered(name) {
	try {
		return sessionStorage.getItem(name) ?? "";
	} catch {
		return "";
	}
}
