// What only the account page says, in English.

export const words = {
	title: "Account",
	sections: {
		balances: "Balances",
		orders: "Orders",
		trades: "Trades",
		deposits: "Deposits",
		withdraws: "Withdrawals",
		key: "API key",
	},
	sectionsLabel: "Sections",
	whatItIs: "Balances and what has changed them, orders, trades, deposits and withdrawals: what the exchange keeps for your account.",
	howToEnter: "There are no user names and passwords. You log in with an API key and its secret, which the exchange's operator gives you. The secret stays in this browser.",
	mayNot: {
		read: "This key may not read the account.",
		withdraw: "This key may not withdraw.",
	},
	waiting: "Logging in",

	all: "All",
	allCurrencies: "All currencies",
	allPairs: "All pairs",
	more: "More",
	/** @param {number} n @param {boolean} isAll */
	count: (n, isAll) => `${n.toLocaleString()} ${n === 1 ? "row" : "rows"}${isAll ? "" : " or more"}`,
	empty: "Nothing yet",
	failed: "The list could not be read.",
	/** @param {string} list */
	csvOf: (list) => `${list} as CSV`,
	csv: "CSV",
	/** @param {number} n */
	reading: (n) => `${n.toLocaleString()} rows are read`,
	stop: "Cancel",
	stopped: "No file was made.",
	/** @param {number} n */
	saved: (n) => `${n.toLocaleString()} rows are in the file.`,
	/** @param {number} n */
	cut: (n) => `The newest ${n.toLocaleString()} rows are in the file, because it has no more of them. Choose a range of time for the older ones.`,

	history: "History",
	aboutHistory: "Deposits, approved withdrawals, the operator's corrections and own trades, each at the time when it was made or requested. A trade with yourself is listed for both of its orders.",
	what: "Type",
	change: "Change",
	about: "Details",
	/** @param {string} id */
	deposit: (id) => `Deposit ${id}`,
	/** @param {string} id */
	withdraw: (id) => `Withdrawal ${id}`,
	/** @param {string} id */
	adjustment: (id) => `Correction ${id}`,
	/** @param {string} id */
	trade: (id) => `Trade ${id}`,
	/** @param {string} pair @param {string} order @param {string} price */
	tradeOf: (pair, order, price) => `${pair}, order ${order}, at ${price}`,
	/** @param {string} fee @param {string} currency */
	feeOf: (fee, currency) => `, fee ${fee} ${currency}`,
	/** @param {string} address */
	toAddress: (address) => `to ${address}`,

	from: "From",
	to: "To",
	needsPair: "Choose a pair for a range of time.",
	statuses: { 1: "Open", 2: "Cancelled", 3: "Filled" },
	tradeId: "Trade",

	depositId: "Deposit",
	/** @param {string} currency */
	uninstructed: (currency) => `There are no instructions for ${currency}: ask the operator.`,
	noInstructions: "The operator's instructions could not be read.",

	withdrawId: "Withdrawal",
	address: "Address",
	noAddress: "Type the address to which the money goes.",
	aboutWithdraws: "Request a withdrawal and confirm it with the code that comes by mail; then the operator approves or refuses it. Until then you can cancel it. Its amount is reserved as soon as it is requested.",
	demoMails: "The demo sends no mails: read them here, with their codes.",
	/** @param {string} currency */
	ask: (currency) => `Withdraw ${currency}`,
	/** @param {string} id */
	asked: (id) => `Withdrawal ${id} requested. A code was mailed to the account's owner: type it below.`,
	/** @param {string} id */
	withdrawIsIn: (id) => `Withdrawal ${id} requested.`,
	closed: "Withdrawals are closed by the operator. Nothing was done.",
	withdrawUnknown: "There is no answer, so whether the withdrawal was requested is unknown. The page is finding out.",
	/** @param {string} id */
	moveUnknown: (id) => `There was no answer, so what became of withdrawal ${id} is unknown. The list shows it as soon as it can be read.`,
	withdrawStates: {
		10: "New: waits for the code from the mail",
		20: "Verified: waits for the operator",
		30: "Approved",
		40: "Refused",
		50: "Cancelled",
	},
	adjusted: "Taken by the operator, as a correction",
	code: "Code",
	/** @param {string} id */
	codeOf: (id) => `Code of withdrawal ${id}`,
	confirm: "Confirm",
	/** @param {string} id */
	confirmOf: (id) => `Confirm withdrawal ${id}`,
	/** @param {string} id */
	cancelOf: (id) => `Cancel withdrawal ${id}`,
	/** @param {string} id */
	confirmed: (id) => `Withdrawal ${id} verified: it waits for the operator.`,
	/** @param {string} id */
	cancelled: (id) => `Withdrawal ${id} cancelled.`,

	aboutKey: "You are logged in with this key. Its secret is in this browser, where no script can read it.",
	permissions: { read: "Read the account", trade: "Place, amend and cancel orders", withdraw: "Request, confirm and cancel withdrawals" },
	rates: "Request limits",
	aboutRates: "How many requests of each kind are accepted; more are refused as “too many requests”. Orders and cancels count per account, reads per key, public requests per address.",
	rateKinds: { public: "Public requests", reads: "Reads", commands: "Orders and withdrawals", cancels: "Cancels" },
	/** @param {string} perSecond @param {string} burst */
	rate: (perSecond, burst) => `${perSecond} a second, ${burst} at once`,
	noRate: "no limit",
	parallel: "Parallel use",
	aboutParallel: "Each signed request has a number. With an ordinary key the numbers must increase, so two browsers or programs that share it get each other's requests refused. A key that the operator has made for parallel use accepts its numbers in any order, each once, and works in several places.",
	device: "This device",
	kept: "The key is remembered on this device: the next visit logs in by itself.",
	notKept: "The key is not remembered on this device: it is gone when the last tab of the exchange is closed.",
	remember: "Remember on this device",
	aboutLeave: "“Log out” does so in all tabs. The key itself stays valid: only the operator can revoke it.",
	notRemembered: "This browser lets pages keep nothing.",
};
