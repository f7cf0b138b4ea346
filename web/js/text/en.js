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
	reconnecting: "The connection is lost. What is shown is not live; the page connects again by itself.",
	starting: "The exchange is starting. The page goes on by itself.",
	/** @param {string} pair */
	halted: (pair) => `${pair} is halted: it takes no orders now.`,
	/** @param {string} message */
	maintenance: (message) => `Maintenance${message ? `: ${message}` : ". No orders are taken now."}`,
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
	chartFailed: "The candles could not be read.",
	/** @param {string} pair */
	chartOf: (pair) => `Price chart of ${pair}. Its candles are also shown as a table.`,
	depth: "Depth",
	/** @param {string} bids @param {string} asks @param {string} currency */
	depthOf: (bids, asks, currency) => `Within 1%: ${bids} ${currency} to buy, ${asks} ${currency} to sell`,

	settings: "Settings",
	theme: "Theme",
	themes: { "": "As the system", dark: "Dark", light: "Light" },
	palette: "Colours of up and down",
	palettes: { "": "Green and red", blue: "Blue and orange" },
	singleKeys: "Shortcuts of a single key",
	help: "Keyboard",
	done: "Close",
	keys: [
		["/", "Choose a pair"],
		["?", "Show this list"],
		["Esc", "Close what is open"],
	],
	keysOff: "Shortcuts of a single key are switched off in the settings.",
	licenses: "Licences",
	panels: "Panels",
};
