package config

import (
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// marketOptions configure the market, the kept history, and wrong codes.
var marketOptions = []Option{
	{
		Key: "currencies", named: true, market: firstMarket,
		Brief: "the currencies",
		Help: `What accounts can hold, in the order in which it is listed to clients. code: 1 to 12 of A-Z and 0-9. sign: the
			symbol shown to people, at most 8 characters, may be left out. minimum_withdraw: the least amount of a withdrawal;
			0, or left out, for any. address_pattern: a regular expression (RE2, at most 512 bytes) from ^ to $ that the
			address of a withdrawal must match as a whole, in single quotes; left out, an address is 1 to 256 printable
			ASCII characters without blanks. deposit_instructions: instructions for customers who pay in, at most
			1000 characters, lines separated by \n in double quotes; the page /account and exchange-info/ show it to signed
			requests of keys that may read; left out, nothing is shown. Each node of a cluster shows the text of
			its own file: change all of them; a reload takes them up. A currency of which an account still holds something cannot be
			taken out: the start refuses then.`,
		list: func(c *Config, n ast.Node) (problems problemList) {
			c.Currencies, problems = readEntries("currencies", n, currencyFields, Currency{})
			return problems
		},
		write: func(c *Config, b *strings.Builder) {
			writeEntries(b, c.Currencies, currencyFields)
		},
	},
	{
		Key: "pairs", named: true, market: firstMarket,
		Brief: "the pairs that are traded",
		Help: `The markets. name: BASE_QUOTE, both of them listed under currencies. price_precision and amount_precision: the
			most decimals of an order's price and amount, 0 to 8. minimum_order_size and maximum_order_size: the bounds of an
			order's amount, in the base currency. minimum_order_value: the least price x amount of an order, in the quote currency;
			0, or left out, for none. price_tick and amount_step: an order's price is a multiple of the one, its amount of the other;
			0, or left out, for one unit of the last decimal. price_band: a buy above the price of the last trade by more than this
			share of it is refused, and so is a sell below it by more; 0.05 is 5 %; 0, or left out, for any price. market_collar: the worst price
			of a market order that names none is this share beyond the best price of the other side when it comes; 0 for the best
			price alone; left out, 0.05. More fills larger orders at once; less protects their owners from a thin book. stop_collar:
			the same of an order with a trigger price and no other, from the trigger price on. maker_fee and taker_fee: the share of what each side of a trade receives that goes to
			the account "fees", rounded up to 1e-16; 0.001 is 0.1 %; 0, or left out, for none. A pair with open orders cannot be taken out: the start refuses then. Fees hold
			for later trades, also of open orders. Other changes hold for new orders, and for stops from their trigger on. A reload takes up the sizes and the value, the band, the collars and the fees.`,
		list: func(c *Config, n ast.Node) (problems problemList) {
			c.Pairs, problems = readEntries("pairs", n, pairFields,
				Pair{MarketCollar: usualCollar, StopCollar: usualCollar})
			return problems
		},
		write: func(c *Config, b *strings.Builder) { writeEntries(b, c.Pairs, pairFields) },
	},

	{
		Key: "history.trades_per_pair", Default: "-1", min: -1, max: 1_000_000_000, named: true,
		Brief: "trades kept per pair",
		Help: `How many of its newest trades a pair keeps in the store; each account keeps the same number of its own. More costs disk, or
			the memory of a Redis: about 150 bytes a trade. 0 keeps all. -1 is the store's default: all in the
			embedded store, 1,000,000 in a Redis. What was dropped does not come back when the number is raised.`,
		at: func(c *Config) any { return &c.History.tradesPerPair },
	},
	{
		Key: "history.orders_per_account", Default: "-1", min: -1, max: 1_000_000_000, named: true,
		Brief: "closed orders kept per account",
		Help: `How many of its newest closed orders an account keeps in the store. Open orders do not count and are never
			dropped. 0 keeps all. -1 is the store's default: all in the embedded store, 100,000 in a Redis.`,
		at: func(c *Config) any { return &c.History.ordersPerAccount },
	},
	{
		Key: "history.candles", Default: "50000", min: 0, max: 100_000_000, named: true,
		Brief: "candles kept per pair and timeframe",
		Help: `How many of its newest candles each of the seven timeframes of a pair keeps in the store: 50,000 are a month of
			minutes with trades. About 60 bytes each. 0 keeps all.`,
		at: func(c *Config) any { return &c.History.Candles },
	},

	{
		Key: "withdraw.code_tries", Default: "5", min: 1, max: 100, market: firstMarket,
		Brief: "wrong codes for one withdrawal",
		Help:  `How often a withdrawal may be confirmed with a wrong code. After that it can only be cancelled.`,
		at:    func(c *Config) any { return &c.Withdrawal.CodeTries },
	},
}
