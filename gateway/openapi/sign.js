// Signs the private requests that the page sends. The key stays in a field of the page. The secret becomes a key of
// WebCrypto that gives out signatures only, and its field is emptied. Both are gone with the page: nothing is stored, and
// no address has any of it.
"use strict";

const signing = { secret: null, nonces: {} }; // the last nonce of each key

// The parameters of a body, as pairs of a name and the value as it is sent: of a JSON text its characters, of all else
// the JSON itself.
function parametersOf(body, contentType) {
	if (!body) return [];
	if (!/json/i.test(contentType)) return [...new URLSearchParams(body)];
	const names = Object.keys(JSON.parse(body)); // a body that is no JSON is refused here
	if (names.length === 0) return [];
	const list = [];
	let at = body.indexOf("{") + 1;
	for (;;) {
		const name = JSON.parse(take(":"));
		const value = take(",");
		list.push([name, value.startsWith('"') ? JSON.parse(value) : value]);
		if (body[at - 1] !== ",") return list;
	}
	// Takes the text up to a character outside of texts, objects and arrays, or to the end of the object.
	function take(end) {
		const from = at;
		for (let depth = 0; ; at++) {
			const c = body[at];
			if (c === '"') {
				for (at++; body[at] !== '"'; at++) if (body[at] === "\\") at++;
			} else if (c === "{" || c === "[") depth++;
			else if (depth > 0) depth -= c === "}" || c === "]" ? 1 : 0;
			else if (c === end || c === "}") return body.slice(from, at++).trim();
		}
	}
}

const encoded = (text) => encodeURIComponent(text).replace(/[!'()*]/g, (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase());

// What is signed: the key, and the parameters of the body in the order of their names.
function messageOf(key, body, contentType) {
	const sorted = parametersOf(body, contentType).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
	return key + sorted.map(([name, value]) => `${encoded(name)}=${encoded(value)}`).join("&");
}

async function keepSecret(text) {
	signing.secret = text === "" ? null : await crypto.subtle.importKey("raw", new TextEncoder().encode(text), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
}

// Whether an operation of the document needs a signature.
function isPrivate(method, path) {
	const { paths } = window.ui.specSelectors.specJson().toJS();
	for (const [template, operations] of Object.entries(paths)) {
		const pattern = template.replace(/\/$/, "").split(/\{[^}]*\}/).map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("[^/]+");
		if (new RegExp(`^${pattern}/?$`).test(path)) return (operations[method]?.security ?? []).length > 0;
	}
	return false;
}

// The page calls it with each request. It signs private ones to this exchange, once there are a key and a secret.
async function signRequest(request) {
	const key = document.getElementById("sign-key").value.trim();
	const address = new URL(request.url, window.location.href);
	const method = (request.method ?? "GET").toLowerCase();
	if (request.loadSpec || !key || !signing.secret || address.origin !== window.location.origin || !isPrivate(method, address.pathname)) return request;
	const type = Object.entries(request.headers ?? {}).find(([name]) => name.toLowerCase() === "content-type")?.[1] ?? "";
	const message = new TextEncoder().encode(messageOf(key, request.body, type));
	const signature = new Uint8Array(await crypto.subtle.sign("HMAC", signing.secret, message));
	request.headers = { ...request.headers, "X-KEY": key, "X-NONCE": nextNonce(key),
		"X-SIGN": [...signature].map((b) => b.toString(16).padStart(2, "0")).join("") };
	request.userFetch = sendSigned;
	return request;
}

// The time in milliseconds, or one more than the last nonce.
function nextNonce(key) {
	const now = BigInt(Date.now()), last = signing.nonces[key] ?? 0n;
	signing.nonces[key] = now > last ? now : last + 1n;
	return String(signing.nonces[key]);
}

// Sends a signed request. If the key has used a greater nonce already, it goes once more, above it.
async function sendSigned(url, request) {
	const answer = await fetch(url, request), key = request.headers["X-KEY"];
	const last = answer.status === 401 &&
		/"code":"nonce","last":(\d+)/.exec(await answer.clone().text())?.[1];
	if (!last) return answer;
	if (BigInt(last) > signing.nonces[key]) signing.nonces[key] = BigInt(last);
	return fetch(url, { ...request, headers: { ...request.headers, "X-NONCE": nextNonce(key) } });
}

window.addEventListener("DOMContentLoaded", () => {
	const secret = document.getElementById("sign-secret"), state = document.getElementById("sign-state");
	if (!window.crypto?.subtle) {
		state.textContent = "A browser signs only on a page that came by HTTPS, or from this machine.";
		return;
	}
	secret.addEventListener("change", async () => {
		const text = secret.value.trim();
		secret.value = "";
		await keepSecret(text);
		state.textContent = text ? "Private requests are signed until this page is left." : "Private requests are not signed.";
	});
});
