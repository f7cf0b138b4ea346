// How a withdrawal is sent, and found by its name.

/** @type {import("../session.js").Kind} */
export const WITHDRAWALS = { kept: "withdraws", name: "client_id",
	send: (session, fields) => session.post("/api/v1/withdraw/", fields),
	find: async (session, name) => (await session.read("/api/v1/withdraws/?limit=1000"))
		.find((/** @type {any} */ w) => w.client_id === name)?.id };
