package openapi

import (
	"exchange/core/event"
	"exchange/core/trading"
	"exchange/gateway/api"
)

// Orders with instructions, for the OpenAPI document: their parameters, their answers, and the
// operations that change or try an order.

// flagSchema is a flag of a body; more are further words.
func flagSchema(text string, more ...any) object {
	return object{{"description", text},
		{"enum", append([]any{true, false, 1, 0, "1", "0", "true", "false"}, more...)}}
}

// inAnyCase is appended where words may be written in any case.
const inAnyCase = " Words are possible in upper case, too."

// momentSchema is a moment of a body.
func momentSchema(text string) object {
	return valueSchema([]string{"string", "number"}, text+" Seconds since 1970, fractions are "+
		"possible.", "1900000000")
}

// instructionProperties are the parameters of an order that make it more than a plain one.
func instructionProperties() []property {
	all := []property{
		{name: "order_type", schema: choiceSchema("string", "market: it trades at once, and never "+
			"rests. It needs no price; with one, that is the worst at which it trades, otherwise "+
			"the best price of the other side and the pair's market_collar beyond it."+inAnyCase+
			" Also orderType.", "limit", "market")},
		{name: "time_in_force", schema: choiceSchema("string", "gtc: it rests until it is "+
			"cancelled. ioc: what does not trade at once is cancelled. fok: all of it trades at "+
			"once, or nothing. gtd: it rests until expire_time. po: gtc, and post_only. A market "+
			"order is ioc or fok."+inAnyCase+" Also timeInForce.", "gtc", "ioc", "fok", "gtd",
			"po")},
		{name: "expire_time", schema: momentSchema("Of gtd, and needed there: no trade of the " +
			"order has this time or a later one. From 1 second to 366 days ahead.")},
		{name: "post_only", schema: flagSchema("It never takes: an order that would trade at once "+
			"is refused. slide: it moves to the next price at which it would not. For limit "+
			"orders with gtc or gtd. Also postOnly.", "slide")},
		{name: "quote_amount", schema: decimalSchema("Instead of amount, of a market buy: the sum "+
			"of the second currency to spend. Also cost.", "250")},
		{name: "display_amount", schema: decimalSchema("How much of the order the book shows at a "+
			"time. Below amount, at least minimum_order_size and a twentieth of amount. For limit "+
			"orders with gtc or gtd.", "0.05")},
		{name: "trigger_price", schema: decimalSchema("The order waits outside the book until a "+
			"trade at this price or beyond it. A market order that names no price has its worst "+
			"one the pair's stop_collar beyond it. Also triggerPrice, stopPrice; stopLossPrice "+
			"and takeProfitPrice set trigger_when, too.", "48000")},
		{name: "trigger_when", schema: choiceSchema("string", "Whether a rise or a fall to "+
			"trigger_price triggers. Without it a buy waits for a rise and a sell for a fall: a "+
			"stop-loss. The other one is a take-profit."+inAnyCase, "rise", "fall")},
		{name: "oco_trigger_price", schema: decimalSchema("Of a gtc limit sell, below its price: "+
			"when the price falls to it, what is left of the order leaves the book and enters "+
			"again at oco_price. So one order is take-profit and stop-loss.", "48000")},
		{name: "oco_price", schema: decimalSchema("The limit from then on. Without it the order "+
			"is an ioc, with the pair's stop_collar below oco_trigger_price, so the order cannot "+
			"be post_only.", "47500")},
		{name: "self_trade", schema: choiceSchema("string", "What happens where the order meets "+
			"one of the account's own. none: they trade. cancel_newest: this order ends there. "+
			"cancel_oldest: the other one is cancelled. cancel_both: both. Without it the "+
			"account's setting holds."+inAnyCase+" Also selfTradePrevention; expire_taker, "+
			"expire_maker and expire_both are other words for the last three.", "none",
			"cancel_newest", "cancel_oldest", "cancel_both", "expire_taker", "expire_maker",
			"expire_both")},
	}
	for i := range all {
		all[i].optional = true
	}
	return all
}

// instructedProperties are the members of answers about an order with instructions. Each is present
// only if it applies.
func instructedProperties() []property {
	only := "Only of an order with instructions. "
	all := []property{
		{name: "order_type", schema: choiceSchema("string", only+"Its type.", "limit", "market")},
		{name: "time_in_force", schema: choiceSchema("string", only+"How long it may stay.",
			"gtc", "ioc", "fok", "gtd")},
		{name: "expire_time", schema: timeSchema("When it ends.")},
		{name: "post_only", schema: object{{"description", "It never takes; slide: it moves out " +
			"of the way instead of being refused."}, {"enum", []any{true, "slide"}}}},
		{name: "price_asked", schema: numberSchema("Price that was asked for, of an order that "+
			"has moved to another.", 50000)},
		{name: "quote_amount", schema: numberSchema("Sum that it may spend.", 250)},
		{name: "quote_filled", schema: numberSchema("Sum that it has spent; up to 16 decimals.",
			249.75)},
		{name: "average_price", schema: numberSchema("Mean price of its trades, rounded down to "+
			"8 decimals. After an amend only where the answer has all of its trades.", 49950)},
		{name: "display_amount", schema: numberSchema("How much the book shows at a time.", 0.05)},
		{name: "trigger_price", schema: numberSchema("Price that triggers it.", 48000)},
		{name: "trigger_when", schema: choiceSchema("string", "Whether a rise or a fall does.",
			"rise", "fall")},
		{name: "oco_trigger_price", schema: numberSchema("Price that triggers its other half.",
			48000)},
		{name: "oco_price", schema: numberSchema("Limit of its other half.", 47500)},
		{name: "triggered", schema: object{{"type", "boolean"},
			{"description", "Whether it has entered the book by its trigger."}}},
		{name: "self_trade", schema: choiceSchema("string", "What happens where it meets an "+
			"order of the account's own.", api.SelfTradeName(trading.SelfTradeCancelNewest),
			api.SelfTradeName(trading.SelfTradeCancelOldest),
			api.SelfTradeName(trading.SelfTradeCancelBoth))},
		{name: "prevented", schema: listSchema("PreventedOrder")},
		{name: "amount_cancelled", schema: numberSchema("What was cancelled of it.", 0.1)},
		{name: "cancel_reason", schema: reasonSchema()},
	}
	for i := range all {
		all[i].optional = true
	}
	return all
}

// reasonSchema is the reason why an order was cancelled.
func reasonSchema() object {
	var all []any
	for r := trading.CancelledIOC; r.String() != ""; r++ {
		all = append(all, r.String())
	}
	return choiceSchema("string", "Why it, or its rest, was cancelled. max_fills: it met as many "+
		"orders as one order may. amended: an amend left nothing of it. switch: by the key's dead "+
		"man's switch.", all...)
}

// placedProperties are the members of the answer to an order. statusToo is of an answer about
// instructions: status comes after trades there.
func placedProperties() []property {
	all := []property{
		{name: "success", schema: object{{"type", "boolean"}, {"const", true}}},
		{name: "type", schema: sideSchema("What it does.")},
		{name: "date", schema: timeSchema("When it came.")},
		{name: "oid", schema: idSchema("Id of the order.", 78)},
		{name: "price", schema: numberSchema("Its limit.", 50100)},
		{name: "amount", schema: numberSchema(
			"What is left of it and rests in the book, or waits; 0: it is done or cancelled.",
			0.3)},
		{name: "amount_filled", schema: numberSchema("What was traded at once.", 0.2)},
		{name: "amount_original", schema: numberSchema("What was asked for; of an order that "+
			"spends a sum, what it has bought.", 0.5)},
		{name: "client_order_id",
			schema: clientIDSchema("The name that the client gave it."), optional: true},
		{name: "trades", schema: listSchema("Execution")},
		{name: "status", schema: choiceSchema("integer", "Only of an order with instructions. "+
			"1: active, or waiting for its trigger. 2: cancelled. 3: done.", trading.StatusActive,
			trading.StatusCancelled, trading.StatusDone), optional: true},
	}
	return append(all, instructedProperties()...)
}

func specialSchemas() object {
	return object{
		{"PlacedOrder", recordSchema("The immediate result of a new order.",
			placedProperties()...)},
		{"AmendedOrder", recordSchema("The result of a changed order.",
			append(placedProperties(), property{name: "priority", schema: choiceSchema("string",
				"Whether it has kept its place in the book.", "kept", "lost")})...)},
		{"PreventedOrder", recordSchema("An order of the account's own that was cancelled "+
			"because this one met it.",
			property{name: "o_id", schema: idSchema("Id of the order.", 76)},
			property{name: "amount", schema: numberSchema("What was left of it.", 0.25)})},
		{"TestedOrder", recordSchema("What an order would do.",
			property{name: "valid", schema: object{{"type", "boolean"}, {"const", true}}},
			property{name: "price", schema: numberSchema("Its limit: of a market order the worst "+
				"price that it would have now.", 52605)},
			property{name: "reserve", schema: recordSchema("The money that it would hold.",
				property{name: "currency", schema: currencySchema("Code of the currency.",
					"USDT")},
				property{name: "amount", schema: numberSchema("Amount; up to 16 decimals.",
					5260.5)})},
			property{name: "available", schema: numberSchema("What the account has of that "+
				"currency and may spend; up to 16 decimals.", 10000)},
			property{name: "would_trade", schema: object{{"type", "boolean"},
				{"description", "Whether it would meet the best price of the other side."}}})},
		{"TradingSettings", recordSchema("What orders of the account do that say nothing about "+
			"it.", property{name: "self_trade", schema: settingSchema()})},
		{"CancelSwitch", recordSchema("The dead man's switch of a key.",
			property{name: "timeout", schema: valueSchema("integer",
				"Seconds from the last call to the cancels; 0: the switch is off.", 60,
				notNegative)},
			property{name: "cancel_at", schema: object{{"description", "When it cancels. " +
				"Seconds since 1970, with microseconds; null: never."},
				{"type", []string{"number", "null"}}, {"examples", []any{1570599591.481437}}}},
			property{name: "pair", schema: pairSchema(), optional: true},
			property{name: "type", schema: sideSchema("Only orders that do this."),
				optional: true},
			property{name: "client_order_id_prefix",
				schema:   clientIDSchema("Only orders whose client_order_id begins so."),
				optional: true})},
	}
}

func settingSchema() object {
	return choiceSchema("string", "What happens where an order meets one of the account's own, "+
		"if it does not say so itself. none: they trade.",
		api.SelfTradeName(trading.SelfTradeNone),
		api.SelfTradeName(trading.SelfTradeCancelNewest),
		api.SelfTradeName(trading.SelfTradeCancelOldest),
		api.SelfTradeName(trading.SelfTradeCancelBoth))
}

// specialBodies are the bodies of these operations, except for a new order.
func specialBodies() object {
	return object{
		{"AmendOrder", recordSchema("Which order to change, and how: order or client_order_id is "+
			"needed.", amendProperties()...)},
		{"NewTradingSettings", recordSchema("The settings from now on.",
			property{name: "self_trade", schema: settingSchema()})},
		{"CancelAfter", recordSchema("When to cancel, and what.",
			property{name: "timeout", schema: object{{"description",
				"Seconds from this call to the cancels; 0: never."},
				{"anyOf", []object{{{"enum", []any{0, "0"}}},
					{{"type", "integer"}, {"minimum", api.LeastSwitch},
						{"maximum", event.MaxSwitchSeconds}},
					{{"type", "string"}, {"pattern", "^[0-9]+$"}}}},
				{"examples", []any{60}}}},
			property{name: "pair", schema: pairSchema(), optional: true},
			property{name: "type", schema: sideSchema("Only orders that do this."),
				optional: true},
			property{name: "client_order_id_prefix",
				schema:   clientIDSchema("Only orders whose client_order_id begins so."),
				optional: true})},
	}
}

func amendProperties() []property {
	all := []property{
		{name: "order", schema: idInputSchema("Id of the order.", 78)},
		{name: "client_order_id",
			schema: clientIDSchema("The client's own name for it; ignored beside order.")},
		{name: "amount", schema: decimalSchema("The new original amount: what was traded counts "+
			"as part of it. At or below that the rest is cancelled.", "0.4")},
		{name: "price", schema: decimalSchema("The new limit.", "49990")},
		{name: "display_amount", schema: decimalSchema(
			"How much the book shows, from the next part on.", "0.1")},
		{name: "trigger_price", schema: decimalSchema("The new trigger, of an order that waits "+
			"for one.", "48500")},
		{name: "expire_time", schema: momentSchema("The new end.")},
		{name: "post_only", schema: flagSchema("It never takes from now on: an amend that would "+
			"make it trade is refused. slide: the order moves instead.", "slide")},
	}
	for i := range all {
		all[i].optional = true
	}
	return all
}

// marketRefusals are examples of the market's refusals.
func marketRefusals(list ...*api.MarketRefusal) (all []refusal) {
	for _, r := range list {
		all = append(all, refusal{r.Name, object{{"date", 1570599531.481437},
			{"error", r.About(refusalAbout[r])}, {"code", r.Code}}})
	}
	return all
}

// refusalAbout is the case of a market's refusal in its example.
var refusalAbout = map[*api.MarketRefusal]string{api.WouldTrigger: "50010",
	api.NoLiquidity: "BTC_USDT", api.PriceBand: "most 52500", api.TooManyStops: "BTC_USDT",
	api.TooManyGTD: "BTC_USDT"}

// codesSchema is the code of a market's refusal.
func codesSchema() object {
	text := "The reason, if not funds."
	var codes []any
	for _, r := range api.MarketRefusals {
		codes = append(codes, r.Code)
		text += " " + r.Code + ": " + r.About(refusalAbout[r]) + "."
	}
	return choiceSchema("string", text, codes...)
}

// orderRefusals are those of an order that is placed, tried or changed.
func orderRefusals() []refusal {
	return append([]refusal{
		{"WrongFields", fieldsExample("amount", "The smallest amount is 0.0001.", "price",
			"At most 2 fractional digits are possible.")},
		{"WrongCombination", fieldsExample("post_only",
			"Not possible with time_in_force ioc.")},
		anyDuplicate, outOfFunds}, marketRefusals(api.WouldTrade, api.WouldTrigger,
		api.PriceBand, api.TooManyStops, api.TooManyGTD)...)
}

func specialDescriptions() []description {
	return []description{amendDescription(), batchDescription(),
		{method: "POST", path: "/api/v1/order-test", id: "testOrder", tag: tagOrders,
			summary: "Try an order",
			text: "Takes what placing an order takes, and places none. It returns the price " +
				"and the money that the order would have, and whether it would trade at once. " +
				"Refusals are those of placing it, except those that depend " +
				"on the book.",
			body: "NewOrder", status: 200, success: "The order is possible.",
			answer: reference("schemas", "TestedOrder"),
			refusals: append(orderRefusals()[:4:4], append(marketRefusals(api.NoLiquidity,
				api.PriceBand, api.TooManyStops, api.TooManyGTD),
				refusal{"ClientOrderIDTaken", fieldsExample("client_order_id",
					"Already used by order 78")})...),
			failures: []*api.Failure{api.PairHalted, api.TooManyOpenOrders, api.TooManyInBook,
				api.BookFull}},
		{method: "GET", path: "/api/v1/trading-settings", id: "getTradingSettings",
			tag: tagOrders, summary: "Trading settings",
			text:   "Defaults for orders of the account that do not set them.",
			status: 200, success: "The settings.",
			answer: reference("schemas", "TradingSettings")},
		{method: "POST", path: "/api/v1/trading-settings", id: "setTradingSettings",
			tag: tagOrders, summary: "Change trading settings",
			text: "Holds for orders that come from now on, and for those that are amended.",
			body: "NewTradingSettings", status: 200, success: "They hold.",
			answer:   reference("schemas", "TradingSettings"),
			refusals: []refusal{{"Nothing", fieldsExample("self_trade", api.FieldRequired)}}},
		{method: "GET", path: "/api/v1/order-cancel-after", id: "getCancelSwitch",
			tag: tagOrders, summary: "Dead man's switch",
			text:   "Shows the switch of the key.",
			status: 200, success: "The switch.", answer: reference("schemas", "CancelSwitch")},
		{method: "POST", path: "/api/v1/order-cancel-after", id: "setCancelSwitch",
			tag: tagOrders, summary: "Set a dead man's switch",
			text: "Cancels open orders of the account unless the key calls again in time: all, " +
				"or those that pass each of the filters. Each key has a switch of its own. It " +
				"outlives restarts of the exchange. In maintenance it does not fire, unless " +
				"cancels are taken.",
			body: "CancelAfter", status: 200, success: "The switch is set.",
			answer: reference("schemas", "CancelSwitch"),
			refusals: []refusal{{"WrongTimeout", fieldsExample("timeout",
				api.FieldInteger+" It must be 0, or 5 to 86400.")}, anyDuplicate}},
	}
}

func amendDescription() description {
	return description{method: "POST", path: "/api/v1/order-amend", id: "amendOrder",
		tag: tagOrders, summary: "Change an order",
		text: "Changes an open order, named by its id or, without `order`, by its " +
			"`client_order_id`. It keeps its place in the book if its price stays and its amount " +
			"does not grow. Otherwise it goes after all others at its price or, where it meets " +
			"the other side, trades first. On a halted pair only what keeps its place can be " +
			"changed, and orders that wait for a trigger.",
		body: "AmendOrder", status: 200, success: "The order is changed.",
		answer: reference("schemas", "AmendedOrder"),
		refusals: append(orderRefusals(),
			refusal{"AlreadyDone", fieldsExample("order", "Order already done")},
			refusal{"AlreadyCancelled", fieldsExample("order", "Order already cancelled")},
			refusal{"UnknownOrder", fieldsExample("order", "Order not found")}),
		failures: []*api.Failure{api.PairHalted, api.BookFull}}
}
