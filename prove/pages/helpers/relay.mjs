// A relay between a page and the exchange, to lose data in flight.
import { connect, createServer } from "node:net";

export class Relay {
	#pairs = new Set();
	#server;
	/** The forwarded directions: both, or one of them. */
	up = true;
	down = true;
	/** Milliseconds for which each part from the exchange is kept. */
	delay = 0;

	/** @param {number} port of the exchange */
	async start(port) {
		this.#server = createServer((from) => {
			const to = connect(port, "127.0.0.1"), pair = [from, to];
			this.#pairs.add(pair);
			from.on("data", (part) => this.up && to.write(part));
			to.on("data", (part) => {
				if (!this.down) return;
				if (!this.delay) from.write(part);
				else setTimeout(() => from.destroyed || from.write(part), this.delay);
			});
			for (const socket of pair) {
				socket.on("error", () => {});
				socket.on("close", () => {
					for (const each of pair) each.destroy();
					this.#pairs.delete(pair);
				});
			}
		});
		await new Promise((done) => this.#server.listen(0, "127.0.0.1", done));
		this.base = `http://127.0.0.1:${this.#server.address().port}`;
	}

	/** cut ends all connections. Later ones work. */
	cut() {
		for (const [from] of this.#pairs) from.destroy();
		this.up = this.down = true;
	}

	end() {
		this.cut();
		this.#server.close();
	}
}
