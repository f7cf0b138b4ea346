package openapi

import (
	"exchange/gateway/api"
)

// The public operations, for the OpenAPI document.

func marketDescriptions() []description {
	return []description{
		{method: "GET", path: "/api/v1/currencies", id: "listCurrencies", tag: tagMarket,
			summary: "Currencies",
			text:    "All currencies of the exchange.",
			status:  200, success: "The currencies.", answer: listSchema("Currency")},
		{method: "GET", path: "/api/v1/pairs", id: "listPairs", tag: tagMarket, summary: "Pairs",
			text: "All pairs, with the rules of their orders.",
			parameters: []parameter{
				currencyParameter("currency1", "Only pairs with this first currency."),
				currencyParameter("currency2", "Only pairs with this second currency.")},
			status: 200, success: "The pairs.", answer: listSchema("Pair"),
			refusals: []refusal{{"UnknownCurrency",
				fieldsExample("currency1", api.FieldCurrency)}}},
		{method: "GET", path: "/api/v1/ticker", id: "listTickers", tag: tagMarket,
			summary:    "Tickers",
			text:       "The last 24 hours of all pairs, or of one: a list in both cases.",
			parameters: []parameter{pairParameter()},
			status:     200, success: "The tickers.", answer: listSchema("Ticker"),
			refusals: []refusal{{"UnknownPair", fieldsExample("pair", api.FieldPair)}},
			failures: engineFailures},
		{method: "GET", path: "/api/charts/{pair}/{timeframe}/chart", id: "getChart",
			tag: tagMarket, summary: "Candles",
			text: "The candles of a pair, newest first, with the one that is not over yet. " +
				"Periods are aligned to UTC; those without trades are left out.",
			parameters: []parameter{pairInPath(), frameInPath(),
				limitParameter("limit", "Most candles; the newest of the range are kept.",
					api.DefaultCandles, api.MaxCandles),
				queryParameter("since",
					"Only periods that start at this time or later: seconds since 1970, "+
						"fractions are possible.", secondsSchema()),
				queryParameter("until", "Only periods that start at this time or earlier.",
					secondsSchema())},
			status: 200, success: "The candles; none if since is after until.",
			answer: listSchema("Candle"),
			refusals: []refusal{{"WrongLimit",
				fieldsExample("limit", api.FieldInteger+" It must be above 0.")}},
			failures: engineFailures},
		{method: "GET", path: "/api/v1/orderbook/{pair}", id: "getOrderBook", tag: tagMarket,
			summary: "Order book",
			text:    "The open orders of a pair, or with `group=1` their sums by price.",
			parameters: []parameter{pairInPath(),
				inQuery("limit_sell",
					"Most entries of sell: orders, or prices with group=1. Without it all.",
					aboveZero),
				inQuery("limit_buy", "Most entries of buy.", aboveZero),
				inQuery("limit_asks", "Another name of limit_sell, which wins if both are there.",
					aboveZero),
				inQuery("limit_bids", "Another name of limit_buy, which wins if both are there.",
					aboveZero),
				inQuery("group", "1: add the orders of each price up.", member{"enum", []any{0, 1}},
					member{"default", 0})},
			status: 200, success: "The order book.", answer: reference("schemas", "OrderBook"),
			headers: []string{"X-Update-Id"},
			refusals: []refusal{{"WrongGroup",
				fieldsExample("group", api.FieldFlag)}},
			failures: engineFailures},
		{method: "GET", path: "/api/v1/exchanges", id: "listTrades", tag: tagMarket,
			summary:    "Trades",
			text:       "The trades of all pairs, or of one.",
			parameters: append([]parameter{pairParameter()}, tradePage()...),
			status:     200, success: "The trades.", answer: listSchema("Trade"),
			refusals: []refusal{{"UnknownPair", fieldsExample("pair", api.FieldPair)},
				needsPair(), wrongOffset()},
			failures: engineFailures},
	}
}

func secondsSchema() object {
	return object{{"type", "number"}, notNegative, {"examples", []any{1570599480}}}
}

// tradePage has the parameters that pick a page of trades.
func tradePage() []parameter {
	return []parameter{limitParameter("limit", "Most trades.", api.DefaultTrades, api.MaxTrades),
		offsetParameter(), beforeParameter(),
		inQuery("after", "Only those with a greater id, oldest first unless ordering says "+
			"otherwise: the next page, with the last id of this one. Within a pair no trade comes "+
			"twice and none is left out. Needs pair.", int64Format, notNegative),
		queryParameter("since", "Only trades at this time or later: seconds since 1970, fractions "+
			"are possible. Needs pair.", secondsSchema()),
		queryParameter("until", "Only trades at this time or earlier. Needs pair.",
			secondsSchema()),
		orderingParameter()}
}

func needsPair() refusal {
	return refusal{"NoPair", fieldsExample("after", api.FieldNeedsPair)}
}
