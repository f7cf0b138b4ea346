// What a browser keeps: API keys for the device and for a session, and texts. A secret is held as a
// key of WebCrypto that signs and that no script can read, so it cannot be taken out of the
// browser.
//
// A session is a log-in of all tabs. Its key is in the database under its id, which each of its
// tabs remembers. Each also holds a shared lock of that name: a session that no tab holds is over.

/** @typedef {{key: string, secret: CryptoKey}} Kept */

const NAME = "key"; // of the database, of its store, and of the entry of the device
const SESSION = "session"; // begins a session's id, which ends with the time when it began

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

/** forget removes it. */
export const forget = () => remove(NAME);

/** all returns the names of all entries. @returns {Promise<string[]>} */
const all = () => within("readonly", (store) => /** @type {any} */ (store.getAllKeys()));

/** remove removes an entry, and the database with the last one. @param {string} name */
async function remove(name) {
	await within("readwrite", (store) => store.delete(name));
	if (!(await all()).length) await done(indexedDB.deleteDatabase(NAME));
}

let release = () => {}; // lets go of the lock of this tab's session

/**
 * hold takes part in a session.
 * @param {string} id
 * @param {() => void} onEnd called when another tab ends it
 */
async function hold(id, onEnd) {
	release();
	await new Promise((held) => {
		navigator.locks.request(id, { mode: "shared" }, () => new Promise((let_go) => {
			release = () => let_go(undefined);
			held(undefined);
		})).catch(onEnd);
	});
	remember(SESSION, id);
}

/**
 * begin begins a session with a key, and tells other tabs.
 * @param {Kept} kept
 * @param {() => void} onEnd
 */
export async function begin(kept, onEnd) {
	const id = `${SESSION}-${Date.now()}-${crypto.randomUUID()}`;
	await hold(id, onEnd);
	await within("readwrite", (store) => store.put(kept, id));
	remember(SESSION, id, "localStorage");
}

/**
 * join takes part in the session that this tab has had, or in the newest one of another tab. It
 * returns its key; undefined: there is none. What no tab holds is removed.
 * @param {() => void} onEnd
 * @returns {Promise<Kept | undefined>}
 */
export async function join(onEnd) {
	const mine = remembered(SESSION), there = await all();
	const held = new Set((await navigator.locks.query()).held?.map(({ name }) => name));
	const ids = there.filter((name) => name !== NAME && (name === mine || held.has(name)));
	for (const name of there) {
		if (name !== NAME && !ids.includes(name)) await remove(name);
	}
	const id = ids.includes(mine) ? mine : ids.at(-1);
	if (!there.length) await remove(""); // the look has made the database
	if (!id) return undefined;
	await hold(id, onEnd);
	return within("readonly", (store) => store.get(id));
}

/** end ends this tab's session. @param {boolean} isForAll its other tabs are told */
export async function end(isForAll) {
	const id = remembered(SESSION);
	if (!id) return;
	release();
	remember(SESSION, "");
	await remove(id);
	if (isForAll) await navigator.locks.request(id, { steal: true }, () => {});
}

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

/** @typedef {"sessionStorage" | "localStorage"} Place of this tab, or of all */

/**
 * remember keeps a text; "" forgets it.
 * @param {string} name
 * @param {string} is
 * @param {Place} place
 */
export function remember(name, is, place = "sessionStorage") {
	try {
		if (is) globalThis[place].setItem(name, is);
		else globalThis[place].removeItem(name);
	} catch {
		// where a browser lets pages keep nothing, a reload forgets
	}
}

/** remembered returns what is kept; "": nothing. @param {string} name @param {Place} place */
export function remembered(name, place = "sessionStorage") {
	try {
		return globalThis[place].getItem(name) ?? "";
	} catch {
		return "";
	}
}
