// Everything that the pages say, in English. Another language is another file.

export const text = {
	loading: "Loading",
	market: "Market",
	none: "–",
	pair: "Pair",
	pairs: "Pairs",
	searchPairs: "Search pairs",
	noPair: "No pair has this name.",
	last: "Last",
	change: "24 h change",
	high: "24 h high",
	low: "24 h low",
	/** @param {string} currency */
	volume: (currency) => `24 h volume, ${currency}`,

	states: {
		connecting: "Connecting",
		live: "Live",
		reconnecting: "Reconnecting",
		starting: "Starting",
		halted: "Halted",
		maintenance: "Maintenance",
	},
	notLive: "Not live",
	reconnecting: "The connection is lost. What is shown is not live; the page reconnects.",
	tooSlow: "Too slow: the page did not keep up. It asks for the best 20 prices now.",
	starting: "The exchange is starting. The page resumes by itself.",
	/** @param {string} pair */
	halted: (pair) => `${pair} is halted: it takes no orders now. You can cancel or reduce yours.`,
	/** @param {{message: string, cancels?: boolean}} is */
	maintenance: ({ message, cancels }) =>
		`Maintenance: ${cancels ? "only cancels are" : "nothing is"} taken now. ${message}`,
	newVersion: "There is a new version of this page.",
	reload: "Reload",
	/** @param {number} seconds */
	clock: (seconds) =>
		`The clock of this device is ${Math.abs(seconds)} s ${seconds > 0 ? "ahead of" : "behind"} the exchange's.`,

	book: "Order book",
	asks: "Sell orders",
	bids: "Buy orders",
	price: "Price",
	amount: "Amount",
	total: "Total",
	group: "Group by",
	spread: "Spread",
	emptyBook: "No orders",
	emptySide: { buy: "No buy orders", sell: "No sell orders" },
	best20: "The best 20 prices only.",
	wholeBook: "Show the whole book",

	trades: "Trades",
	time: "Time",
	buy: "Buy",
	sell: "Sell",
	noTrades: "No trades yet",

	chart: "Chart",
	period: "Period",
	frames: { 1: "1m", 5: "5m", 15: "15m", 30: "30m", 60: "1h", 240: "4h", D: "1D" },
	candles: "Candles",
	table: "Table",
	open: "Open",
	close: "Close",
	highest: "High",
	lowest: "Low",
	volumeShort: "Volume",
	legend: { open: "O", high: "H", low: "L", close: "C", volume: "V" },
	/** @param {string} zone */
	zone: (zone) => `Times in ${zone}`,
	chartsBy: "Charts by TradingView",
	chartFailed: "No candles were read.",
	/** @param {string} pair */
	chartOf: (pair) => `Chart of ${pair}, also as a table.`,
	depth: "Depth",
	/** @param {string} bids @param {string} asks @param {string} currency @param {boolean} isShort */
	depthOf: (bids, asks, currency, isShort) => `Within 1%${isShort ? ", of the best 20 prices" : ""}: bids ${bids} ${currency}, asks ${asks} ${currency}`,

	account: "Account",
	accountPage: "Account page",
	logIn: "Log in",
	logOut: "Log out",
	key: "API key",
	secret: "Secret",
	secretTaken: "Taken; type to replace it",
	dropKey: "Or paste or drop a text or file with both.",
	noKeyInFile: "It has no key and secret.",
	keyAndSecret: "Type both key and secret.",
	remember: "Remember on this device",
	aboutKeys: "The secret stays in this browser. You stay logged in until you log out or close the last tab of the exchange. If this key is not made for parallel use, use it here alone.",
	notSecure: "A log-in needs https, or localhost on the exchange's own machine.",
	demo: "This is a demo. Its accounts are for everybody:",
	/** @param {string} account */
	tradeAs: (account) => `Trade as ${account}`,
	wrongSecret: "That key has another secret.",
	unknownKey: "This key is unknown, or was revoked.",
	noAnswer: "The exchange does not answer. Try again.",
	/** @param {string} seconds */
	tooOften: (seconds) => `Too many requests. Try again ${seconds ? `in ${seconds} s` : "later"}.`,
	permissions: "Permissions",
	alone: "If this key is not made for parallel use, use it here alone.",
	shared: "The exchange has refused a nonce of this key: another browser or program uses it, too. "
		+ "Use it here alone, or have a key made for parallel use.",
	forget: "Forget the key",
	aboutForget: "“Log out” is for all tabs. “Forget” also removes the key from this device, "
		+ "and it stays valid.",
	notLoaded: "A part of this page did not load. Reload.",

	own: { orders: "Open orders", trades: "My trades", balances: "Balances" },
	orders: "Orders",
	onePair: "This pair only",
	ownOrder: "Your order",
	order: "Order",
	/** @param {string} zone */
	orderAt: (zone) => `Order, time (${zone})`,
	side: "Side",
	type: "Type",
	filled: "Filled",
	state: "State",
	fee: "Fee",
	role: "Role",
	maker: "Maker",
	taker: "Taker",
	currency: "Currency",
	reserved: "Reserved",
	free: "Available",
	cancel: "Cancel",
	/** @param {string} id */
	cancelOrder: (id) => `Cancel order ${id}`,
	/** @param {string} pair */
	cancelAll: (pair) => `Cancel all of ${pair}`,
	/** @param {string} id */
	cancelled: (id) => `Order ${id} cancelled.`,
	/** @param {number} n @param {string} pair */
	cancelledAll: (n, pair) => `${n} ${n === 1 ? "order" : "orders"} of ${pair} cancelled.`,
	cancelUnknown: "No answer to the cancel.",

	amend: "Amend",
	/** @param {string} id */
	amendOrder: (id) => `Amend order ${id}`,
	aboutAmend: "The amount includes what is filled. The order keeps its queue position if the price "
		+ "stays and the amount does not grow.",
	/** @param {string} filled @param {string} of */
	filledOf: (filled, of) => `Filled: ${filled} of ${of}.`,
	/** @param {string} id */
	isOver: (id) => `Order ${id} is no longer open.`,
	/** @param {string} id @param {string} filled @param {string} of */
	isClosed: (id, filled, of) => `Order ${id} is no longer open; ${filled} of ${of} were filled.`,
	nothingChanged: "Nothing is changed yet.",
	/**
	 * @param {string} id
	 * @param {string} price
	 * @param {string} amount
	 * @param {string} priority
	 * @param {string} done
	 */
	amended: (id, price, amount, priority, done) =>
		`Order ${id} amended: ${price}, amount ${amount}. Queue position ${priority}.${done && ` ${done}.`}`,
	/** @param {string} id */
	isAmended: (id) => `Order ${id} amended.`,
	/** @param {string} id @param {string} why */
	notAmended: (id, why) => `Order ${id} was not amended, because it is not open: ${why}.`,
	/** @param {string} id */
	amendUnknown: (id) => `No answer: whether order ${id} was amended is unknown.`,
	amendStates: {
		sending: "Amending",
		refused: "Not amended",
		unknown: "Amend unknown",
		unseen: "Amend not seen yet",
	},

	noOrders: "No open orders",
	moreOrders: "There are older open orders, too.",
	mayNotRead: "This key may not read the account.",
	mayNotTrade: "This key may not trade.",
	orderStates: {
		open: "Open",
		waiting: "Waiting",
		cancelling: "Cancelling",
		sending: "Sending",
		refused: "Not done",
		unknown: "Unknown",
		unseen: "Not seen yet",
	},
	tryAgain: "Try again",
	sendAgain: "Send again",

	types: { limit: "Limit", market: "Market", stop: "Stop-limit", stopMarket: "Stop-market", oco: "OCO" },
	/** @param {string} sign @param {string} price */
	triggerAt: (sign, price) => `trigger\u00a0${sign}\u00a0${price}`,
	/** @param {string} trigger @param {string} price "": at the market */
	otherLeg: (trigger, price) => `stop\u00a0≤\u00a0${trigger} at\u00a0${price || "market"}`,
	/** @param {string} price */
	atWorst: (price) => `price\u00a0limit\u00a0${price}`,
	/** @param {string} amount */
	shows: (amount) => `iceberg: visible ${amount}`,
	iceberg: ", iceberg",
	/** @param {string} time */
	untilTime: (time) => `good till ${time}`,
	average: "Average",
	forces: {
		gtc: "Good till cancelled",
		gtd: "Good till date",
		ioc: "Immediate or cancel",
		fok: "Fill or kill",
		post: "Post-only",
		slide: "Post-only: slides",
	},
	timeInForce: "Time in force",
	selfTrade: "Self-trade prevention",
	/** @param {string} is */
	byDefault: (is) => `Default: ${is}`,
	selfTrades: {
		"": "the account's",
		none: "Allow",
		cancel_newest: "Cancel new",
		cancel_oldest: "Cancel resting",
		cancel_both: "Cancel both",
	},
	ownMet: "Self-trade",
	/** @param {string} orders */
	prevented: (orders) => `self-trade prevention has cancelled your order ${orders}`,
	when: "Trigger type",
	/** @param {string} loss @param {string} profit signs of where the price is */
	whens: (loss, profit) => ({ loss: `Stop-loss (${loss})`, profit: `Take-profit (${profit})` }),
	fields: {
		price: "Price",
		amount: "Amount",
		total: "Total",
		trigger: "Trigger price",
		display: "Iceberg: visible amount",
		until: "Good till",
	},
	worst: "Price limit",
	protection: "Price protection",
	ocoPrice: "Stop-limit price",
	atMarket: "At market",
	optional: "Optional",
	/** @param {string} currency */
	share: (currency) => `Share of the available ${currency}`,
	feeAtMost: "Max. fee",
	left: "After order",
	estimatedLeft: "Est. after order",
	/** @param {"buy" | "sell"} side @param {string} currency */
	send: (side, currency) => `${side === "buy" ? "Buy" : "Sell"} ${currency}`,
	more: "More",
	estimated: { prices: "Est. avg. / worst", amount: "Est. amount", total: "Est. total" },
	fillsNow: "Fills now",
	/** @param {string} part "": nothing @param {string} of @param {boolean} isResting */
	partNow: (part, of, isResting) => `${part ? `${part} of ${of}; the rest` : "Nothing; it"} ${
		isResting ? "rests in the book" : "is cancelled"}`,
	/** @param {string} part */
	atLeast: (part) => `At least ${part}; unknown beyond the best 20 prices`,
	/** @param {string} currency */
	tooLittle: (currency) => `Not enough ${currency}`,
	/** @param {string} send */
	confirm: (send) => `Confirm: ${send}`,
	warnings: {
		/** @param {string} share @param {string} price */
		through: (share, price) => `The price is ${share} worse than the market's, ${price}.`,
		/** @param {string} share @param {string} price */
		fromTrigger: (share, price) => `The price is ${share} worse than the trigger, ${price}.`,
		/** @param {boolean} isAbove @param {string} price */
		mayRest: (isAbove, price) => `The stop's limit is ${isAbove ? "above" : "below"} its trigger, ${price}: it may not fill.`,
		/** @param {string} share @param {boolean} isTrigger */
		far: (share, isTrigger) => `The order takes prices up to ${share} worse than the ${isTrigger ? "trigger" : "best"}.`,
		/** @param {string} share @param {string} price */
		farTrigger: (share, price) => `The trigger is ${share} from the market's price, ${price}.`,
		/** @param {string} amount */
		beyond: (amount) => `Only ${amount} is there beyond the trigger.`,
		/** @param {string} name @param {string} price @param {string} amount */
		cut: (name, price, amount) => `${name} ${price}: about ${amount} is filled, and the rest is cancelled.`,
		/** @param {string} price */
		ocoAtOnce: (price) => `The price is not above the market's, ${price}: the order fills at once.`,
		/** @param {string} amount */
		killed: (amount) => `Only ${amount} is there: the order is cancelled.`,
		/** @param {string} amount */
		short: (amount) => `Within the best 20 prices the order finds ${amount}. What it finds beyond them is unknown.`,
		unknown: "Whether an earlier one was placed is unknown.",
		/** @param {string} amount */
		whole: (amount) => `The order takes the whole side: ${amount}.`,
		noBook: "The book is not here yet: what the order takes is unknown.",
	},
	/** @param {string[]} orders @param {string} outcome @param {boolean} [isMaybe] */
	meets: (orders, outcome, isMaybe) => `${isMaybe ? "May meet" : "Meets"} your own ${orders.length === 1 ? "order" : "orders"} ${orders.join(", ")}: ${outcome}.`,
	outcomes: {
		none: "you trade with yourself",
		cancel_newest: "what is left of the new order is cancelled there",
		cancel_oldest: "the resting order is cancelled",
		cancel_both: "both are cancelled",
	},
	meetsUnknown: "the account's own setting decides",
	/** @param {string} pair @param {number} n @param {boolean} isAll */
	askCancelAll: (pair, n, isAll) => `Cancels ${isAll ? "" : "more than "}${n} open ${
		n === 1 ? "order" : "orders"} of ${pair}.`,
	/** @param {string} pair */
	noneToCancel: (pair) => `There are no open orders of ${pair}.`,
	keep: "Keep them",
	goBack: "Go back",
	triggered: "Triggered",
	filledAll: "Filled completely",
	dismiss: "Dismiss",
	sound: "Sound when an order fills or ends",
	notify: "System notification when an order fills or ends",
	emptyMarket: "No trades yet: the chart begins with the first one.",
	empty: "Type a number; this field is empty.",
	isZero: "Type a number above 0.",
	/** @param {string} one @param {string} other */
	twoNumbers: (one, other) => `This could be ${one} or ${other}: type the one you mean.`,
	/** @param {string} example */
	notANumber: (example) => `Type a number such as ${example}, with at most 8 decimals.`,
	notATime: "Choose date and time.",
	/** @param {string} amount @param {string} price */
	filledAt: (amount, price) => `${amount} filled at ${price} on average`,
	/** @param {string} reason */
	restCancelled: (reason) => `the rest is cancelled: ${reason}`,
	/** @param {string} reason */
	allCancelled: (reason) => `cancelled: ${reason}`,
	/** @param {boolean} isProtected @param {string} price */
	beyond: (isProtected, price) => `nothing more within the price ${isProtected ? "protection" : "limit"}, ${price}`,
	/** @param {string} price */
	averageAt: (price) => ` avg. ${price}`,
	/** @param {string} amount @param {string} price */
	nowAt: (amount, price) => `, ${amount} of it now at ${price} on average`,
	reasons: {
		ioc: "not filled at once",
		fok: "not filled at once as a whole",
		max_fills: "too many fills for one order",
		self_trade: "self-trade prevention",
		post_only: "post-only, and it would have traded at once",
		expired: "expired",
		amended: "amended to what was filled",
		owner: "by you",
		operator: "by the operator",
		switch: "by the dead man's switch",
		disconnect: "the connection was lost",
	},
	/** @param {string} id @param {string} done */
	placed: (id, done) => `Order placed: ${id}${done && `; ${done}`}.`,
	neverIn: "The exchange does not have that order.",
	stillUnknown: "This try was refused. Whether an earlier one was placed is unknown.",
	/** @param {string} currency @param {string} free @param {string} needed */
	notEnough: (currency, free, needed) => `Not enough ${currency}: available ${free}, needed ${needed}.`,
	keyEnded: "Key revoked. Log in again.",
	/** @param {string} why */
	nothingDone: (why) => `${why} Nothing was done: try again.`,
	unknown: "No answer: whether the order was placed is unknown; the page asks.",

	settings: "Settings",
	theme: "Theme",
	themes: { "": "As the system", dark: "Dark", light: "Light" },
	palette: "Up and down colours",
	palettes: { "": "Green and red", blue: "Blue and orange" },
	singleKeys: "Single-key shortcuts",
	confirms: "Confirm orders",
	help: "Keyboard",
	done: "Close",
	keys: [
		["/", "Choose a pair"],
		["b  s", "Buy, sell"],
		["p  a", "Type a price, an amount"],
		["↑ ↓", "Move a price by a tick, with Shift by ten"],
		["Enter", "Place the order"],
		["o", "Go to the newest open order"],
		["↑ ↓ ← →", "Move in the book or a table; Enter takes a price, or amends"],
		["e", "Amend the order whose row has the focus"],
		["c", "Cancel the order whose row has the focus"],
		["Shift c", "Cancel all orders of the pair"],
		["?", "Show this list"],
		["Esc", "Close what is open"],
	],
	keysOff: "Single-key shortcuts are switched off in the settings.",
	licenses: "Licences",
	docs: "API documentation",
	panels: "Panels",
};
