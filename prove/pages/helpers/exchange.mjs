// The real program on a port of its own: the demo, or with a configuration.
import { execFile, spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync,
	writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const program = process.env.EXCHANGE_PROGRAM ?? fileURLToPath(new URL("../../../bin/exchange", import.meta.url));

/** run runs a command of the program in a folder. */
export const run = (args, cwd) => promisify(execFile)(program, args, { cwd });

/** until waits for a condition. */
export async function until(what, condition, seconds = 30) {
	const end = Date.now() + seconds * 1000;
	for (;;) {
		const got = await condition();
		if (got) return got;
		if (Date.now() > end) throw new Error(`not within ${seconds} s: ${what}`);
		await new Promise((done) => setTimeout(done, 20));
	}
}

/**
 * freePort returns a port without a listener, below Linux's ephemeral ports, which could take it
 * while its exchange restarts.
 */
export async function freePort() {
	for (;;) {
		const server = createServer(), port = 10_000 + Math.floor(Math.random() * 22_000);
		const isFree = await new Promise((done) => {
			server.once("error", () => done(false));
			server.listen(port, "127.0.0.1", () => done(true));
		});
		if (!isFree) continue;
		await new Promise((done) => server.close(done));
		return port;
	}
}

/** owns reports whether a process listens on a port: another one's answers would prove nothing. */
function owns(pid, port) {
	const line = readFileSync("/proc/net/tcp", "utf8").split("\n").map((l) => l.trim().split(/\s+/))
		.find((f) => f[3] === "0A" && parseInt(f[1]?.split(":")[1], 16) === port);
	if (!line) return false;
	return readdirSync(`/proc/${pid}/fd`).some((fd) => {
		try {
			return readlinkSync(`/proc/${pid}/fd/${fd}`) === `socket:[${line[9]}]`;
		} catch {
			return false; // it was closed just now
		}
	});
}

/** plain is the plain key of an account of the demo. */
const plain = (account) => ({ key: `demo-${account}`, secret: `demo-${account}-secret` });

export class Exchange {
	folder = mkdtempSync(join(tmpdir(), "exchange-web-"));
	#nonce = 0n;
	#process;

	/**
	 * hasMarket: the demo's market maker trades, too. args and env are more of the program's. With
	 * a config, the text of its file, it is no demo.
	 */
	constructor({ hasMarket = false, args = [], env = {}, config = "" } = {}) {
		statSync(program); // make build
		this.args = config ? ["--config", "exchange.yaml", ...args]
			: ["--demo", ...hasMarket ? [] : ["--no-demo-market"], ...args];
		if (config) this.write(config);
		this.env = { ...process.env, ...env };
	}

	async start() {
		this.port ??= await freePort();
		this.base = `http://127.0.0.1:${this.port}`;
		let log = "";
		const started = spawn(program, ["serve", ...this.args, "--listen",
			`127.0.0.1:${this.port}`], { cwd: this.folder, env: this.env,
			stdio: ["ignore", "pipe", "pipe"] });
		for (const stream of [started.stdout, started.stderr]) stream.on("data", (text) => (log += text));
		this.#process = started;
		await until("the exchange is ready", async () => {
			if (started.exitCode !== null) throw new Error(`the exchange has ended:\n${log}`);
			return fetch(`${this.base}/readyz`).then((answer) => answer.ok, () => false);
		});
		if (!owns(started.pid, this.port)) throw new Error(`another process has port ${this.port}`);
	}

	/** write writes the file of the configuration. */
	write(config) {
		writeFileSync(join(this.folder, "exchange.yaml"), config);
	}

	/** signal sends the process a signal. */
	signal(name) {
		this.#process.kill(name);
	}

	/** kill ends the process as a power failure would. */
	async kill() {
		if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
		const ended = new Promise((done) => this.#process.once("exit", done));
		this.#process.kill("SIGKILL");
		await ended;
	}

	async end() {
		await this.kill();
		rmSync(this.folder, { recursive: true });
	}

	/** operator runs a command of the operator's. */
	operator(...args) {
		return run(args, this.folder);
	}

	/**
	 * post sends a signed request of alice or bob, and returns its answer. Without a key it is that
	 * of one program, which waits for each answer.
	 */
	post(account, path, form, key) {
		const body = new URLSearchParams(Object.entries(form).sort()).toString();
		return this.#signed(account, path, { method: "POST", body }, body, key);
	}

	/** get reads a list of alice's or bob's. */
	get(account, path) {
		return this.#signed(account, path, {}, "");
	}

	async #signed(account, path, init, body, { key, secret } = plain(account)) {
		const now = BigInt(Date.now());
		this.#nonce = now > this.#nonce ? now : this.#nonce + 1n;
		const answer = await fetch(this.base + path, { ...init, headers: {
			"Content-Type": "application/x-www-form-urlencoded", "X-KEY": key,
			"X-NONCE": String(this.#nonce),
			"X-SIGN": createHmac("sha256", secret).update(key + body).digest("hex") } });
		const result = await answer.json();
		if (!answer.ok) throw new Error(`${path} ${body}: ${answer.status} ${JSON.stringify(result)}`);
		return result;
	}

	order(account, pair, type, amount, price) {
		return this.post(account, "/api/v1/order/", { pair, type, amount: String(amount), price: String(price) });
	}
}
