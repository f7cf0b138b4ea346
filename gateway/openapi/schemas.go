package openapi

import (
	"slices"
	"strconv"

	"exchange/actors"
	"exchange/core/event"
	"exchange/core/trading"
	"exchange/gateway/api"
)

// The shapes of answers and bodies. Schemas of answers do not forbid further members, because a
// later version may add some; the tests do forbid them.

// A property is one member of a schema's object.
type property struct {
	name     string
	schema   any
	optional bool
}

// recordSchema is the schema of an object.
func recordSchema(text string, properties ...property) object {
	var all object
	var required []string
	for _, p := range properties {
		all = append(all, member{p.name, p.schema})
		if !p.optional {
			required = append(required, p.name)
		}
	}
	o := object{{"type", "object"}, {"description", text}}
	if len(required) > 0 {
		o = append(o, member{"required", required})
	}
	return append(o, member{"properties", all})
}

// valueSchema is the schema of a scalar; more are further keywords.
func valueSchema(kind any, text string, example any, more ...member) object {
	return append(object{{"type", kind}, {"description", text}, {"examples", []any{example}}},
		more...)
}

func listSchema(element string) object {
	return object{{"type", "array"}, {"items", reference("schemas", element)}}
}

// choiceSchema is the schema of a scalar with listed values.
func choiceSchema(kind, text string, of ...any) object {
	return object{{"type", kind}, {"description", text}, {"enum", of}}
}

var (
	notNegative = member{"minimum", 0}
	aboveZero   = member{"minimum", 1}
	int64Format = member{"format", "int64"}
)

func idSchema(text string, example int) object {
	return valueSchema("integer", text, example, int64Format, aboveZero)
}

func pairSchema() object { return valueSchema("string", "Name of the pair.", "BTC_USDT") }

func currencySchema(text, example string) object { return valueSchema("string", text, example) }

func sideSchema(text string) object { return choiceSchema("string", text, "sell", "buy") }

func numberSchema(text string, example any) object {
	return valueSchema("number", text, example, notNegative)
}

// timeSchema is a time in the form of nearly all answers.
func timeSchema(text string) object {
	return valueSchema("number", text+" Seconds since 1970, with microseconds.", 1570599531.481437)
}

func clientIDSchema(text string) object {
	return valueSchema("string", text, "bid-1", member{"minLength", 1},
		member{"maxLength", event.MaxClientID}, member{"pattern", "^[A-Za-z0-9_-]+$"})
}

// schemas returns the named schemas, those of answers first.
func schemas() object {
	return slices.Concat(marketSchemas(), infoSchemas(), tradingSchemas(), accountSchemas(),
		specialSchemas(), batchSchemas(), withdrawalSchemas(), bodySchemas(), specialBodies(),
		failureSchemas())
}

func marketSchemas() object {
	return object{
		{"Currency", recordSchema("A currency of the exchange.",
			property{name: "sign", schema: valueSchema("string", "Its symbol.", "₿")},
			property{name: "short_name", schema: currencySchema("Its code.", "BTC")})},
		{"Pair", recordSchema("A market, with the rules of its orders.", pairProperties()...)},
		{"Ticker",
			recordSchema("A pair's last 24 hours: the current UTC minute and the 1,439 before it.",
				property{name: "timestamp", schema: timeSchema("When this state was made.")},
				property{name: "pair", schema: pairSchema()},
				property{name: "last", schema: numberSchema(
					"Price of the last trade ever, 0 if there was none.", 50000)},
				property{name: "diff", schema: valueSchema("number",
					"last less the price 24 hours ago: a difference of prices, no percentage.",
					-120.5)},
				property{name: "vol", schema: numberSchema(
					"Volume of the window, in the first currency.", 1.25)},
				property{name: "high", schema: numberSchema(
					"Highest price of the window, 0 without trades.", 50500)},
				property{name: "low", schema: numberSchema(
					"Lowest price of the window, 0 without trades.", 49800)},
				property{name: "buy", schema: numberSchema("Best bid, 0 if there is none.", 49999)},
				property{name: "sell", schema: numberSchema("Best ask, 0 if there is none.",
					50001)})},
	}
}

func tradingSchemas() object {
	return object{
		{"Candle", recordSchema("The trades of one period of a pair.",
			property{name: "time", schema: valueSchema("integer",
				"Start of the period, in whole seconds since 1970.", 1570599480, int64Format)},
			property{name: "open", schema: numberSchema("Price of its first trade.", 50000)},
			property{name: "high", schema: numberSchema("Highest price.", 50500)},
			property{name: "low", schema: numberSchema("Lowest price.", 49800)},
			property{name: "close", schema: numberSchema("Price of its last trade.", 50100)},
			property{name: "volume", schema: numberSchema("Volume in the first currency.", 1.25)})},
		{"OrderBook",
			recordSchema(
				"Offers, cheapest first, and bids, highest first. Of "+
					"equal prices the oldest is first.",
				property{name: "sell", schema: listSchema("OrderBookEntry")},
				property{name: "buy", schema: listSchema("OrderBookEntry")})},
		{"OrderBookEntry", append(recordSchema(
			"One order; with group=1 all orders of one price, without id and timestamp.",
			property{name: "price", schema: numberSchema("Price.", 50001)},
			property{name: "amount", schema: numberSchema("Remaining amount in the first currency.",
				0.5)},
			property{name: "id", schema: idSchema("The order's id; not with group=1.", 77),
				optional: true},
			property{name: "timestamp", schema: timeSchema(
				"When the order came; not with group=1."), optional: true}),
			member{"dependentRequired", object{{"id", []string{"timestamp"}},
				{"timestamp", []string{"id"}}}})},
		{"Trade", recordSchema("A trade, which the API calls an exchange.", tradeProperties()...)},
		{"OwnTrade", recordSchema("A trade in which the account was buyer or seller.",
			append(tradeProperties(),
				property{name: "my_side", schema: sideSchema(
					"What the account did; of a trade with itself the taker's side.")},
				property{name: "fee", schema: numberSchema(
					"What the account paid for it; up to 16 decimals.", 0.0005)},
				property{name: "fee_currency",
					schema: currencySchema(
						"The currency that the account received, in which the fee is.",
						"BTC")},
				property{name: "order", schema: idSchema("The account's own order.", 78)},
				property{name: "client_order_id", schema: clientIDSchema(
					"The name that the client gave the order."), optional: true},
				property{name: "maker", schema: object{{"type", "boolean"},
					{"description", "Whether the order was there first."}}},
				property{name: "maker_order", schema: idSchema("With both_sides, of a trade "+
					"of the account with itself: its other order, which was there first.", 77),
					optional: true},
				property{name: "maker_fee", schema: numberSchema("Comes with maker_order: the "+
					"fee of that order, in the other currency.", 64), optional: true})...)},
	}
}

func tradeProperties() []property {
	return []property{
		{name: "id", schema: idSchema("Id of the trade.", 1201)},
		{name: "price", schema: numberSchema("Price: that of the order that was there first.",
			50000)},
		{name: "pair", schema: pairSchema()},
		{name: "type", schema: sideSchema("What the taker did, whose order came second.")},
		{name: "timestamp", schema: timeSchema("When it was.")},
		{name: "amount", schema: numberSchema("Amount, in the first currency.", 0.5)},
	}
}

func accountSchemas() object {
	return object{
		{"Wallet",
			recordSchema("An account's balance of one currency. It can spend balance - reserve.",
				property{name: "currency", schema: currencySchema("Code of the currency.", "BTC")},
				property{name: "balance", schema: numberSchema(
					"All that it has; up to 16 decimals.", 99.5)},
				property{name: "reserve", schema: numberSchema(
					"The part that open orders and pending withdrawals hold.", 0.5)})},
		{"Fee",
			recordSchema(
				"What trades on a pair cost the account, as fractions: 0.001 is 0.1 %. Charged "+
					"in the currency received.",
				property{name: "pair", schema: pairSchema()},
				property{name: "maker", schema: valueSchema("number",
					"Of the order that was there first.", 0.001)},
				property{name: "taker", schema: valueSchema("number",
					"Of the order that came second.", 0.002)})},
		{"Order", recordSchema("An order of the account.", append([]property{
			{name: "id", schema: idSchema("Id of the order.", 78)},
			{name: "pair", schema: pairSchema()},
			{name: "type", schema: sideSchema("What it does.")},
			{name: "status", schema: choiceSchema("integer",
				"1: active, also when partly filled. 2: cancelled. 3: done.",
				trading.StatusActive, trading.StatusCancelled, trading.StatusDone)},
			{name: "price", schema: numberSchema("Its limit.", 50000)},
			{name: "amount", schema: numberSchema("Remaining amount.", 0.3)},
			{name: "amount_filled", schema: numberSchema("Traded amount.", 0.2)},
			{name: "amount_original", schema: numberSchema("Original amount.", 0.5)},
			{name: "date", schema: valueSchema("integer",
				"When it came. Milliseconds since 1970, unlike all other times.", 1570599531481,
				int64Format)},
			{name: "client_order_id",
				schema: clientIDSchema("The name that the client gave it."), optional: true}},
			instructedProperties()...)...)},
		{"Execution", recordSchema("One trade of a new order.",
			property{name: "tid", schema: idSchema("Id of the trade.", 1201)},
			property{name: "type", schema: sideSchema("What the counter order does.")},
			property{name: "price", schema: numberSchema("Price: that of the counter order.",
				50000)},
			property{name: "amount", schema: numberSchema("Amount, in the first currency.", 0.2)},
			property{name: "o_id", schema: idSchema("Id of the counter order.", 77)})},
		{"CancelledOrder", recordSchema("An order that was cancelled.",
			property{name: "order", schema: idSchema("Its id.", 78)})},
		{"CancelledOrders", recordSchema("The orders that were cancelled.",
			property{name: "orders", schema: object{{"type", "array"},
				{"description", "Their ids; empty if there were none."},
				{"items", idSchema("Id of an order.", 78)}}})},
	}
}

func withdrawalSchemas() object {
	return object{
		{"Deposit", recordSchema("Money that came in.",
			property{name: "id", schema: idSchema("Id of the deposit.", 12)},
			property{name: "timestamp", schema: timeSchema("When it was credited.")},
			property{name: "currency", schema: currencySchema("Code of the currency.", "BTC")},
			property{name: "amount", schema: numberSchema("Amount.", 1.5)})},
		{"Withdraw", recordSchema("A withdrawal, pending or closed.",
			property{name: "id", schema: idSchema("Id of the withdrawal.", 5)},
			property{name: "timestamp", schema: timeSchema("When it was asked for.")},
			property{name: "currency", schema: currencySchema("Code of the currency.", "BTC")},
			property{name: "amount", schema: numberSchema("Amount.", 0.25)},
			property{name: "status", schema: withdrawalStatusSchema(
				"10: new, waits for its code. 20: verified, waits for approval. 30: approved, it " +
					"has left the balance. 40: refused. 50: cancelled. New and verified ones " +
					"hold their amount in reserve.")},
			property{name: "address", schema: valueSchema("string", "Where it goes.",
				"bc1qexample")},
			property{name: "adjustment", schema: valueSchema("boolean",
				"Only there, and true, if this is no withdrawal, but a correction: the exchange "+
					"took the amount. Its address is empty.", true), optional: true},
			property{name: "details", schema: valueSchema("string",
				"Why it was refused, why the amount was taken, or which transaction pays it.",
				"The address is unknown."), optional: true},
			property{name: "client_id", schema: clientIDSchema(
				"The client's own id for it, if it gave one."), optional: true})},
	}
}

func withdrawalStatusSchema(text string) object {
	return choiceSchema("integer", text, event.WithdrawalNew, event.WithdrawalVerified,
		event.WithdrawalApproved, event.WithdrawalRefused, event.WithdrawalCancelled)
}

func newOrderProperties() []property {
	return append([]property{
		{name: "type", schema: sideSchema("What it does.")},
		{name: "pair", schema: pairSchema()},
		{name: "amount", schema: decimalSchema(
			"Amount of the first currency, within the pair's minimum_order_size, "+
				"maximum_order_size, amount_precision and amount_step.", "0.5"), optional: true},
		{name: "price", schema: decimalSchema(
			"Limit, in the second currency, within the pair's price_precision and price_tick; "+
				"price x amount is at least its minimum_order_value. A market order needs none.",
			"50000"), optional: true},
		{name: "client_order_id",
			schema: clientIDSchema(
				"A name of the client's own. No other open order of the account may have it, " +
					"none that closed within 2 minutes, and none of its newest 256 closed " +
					"ones with a name. With it the order can be found when its answer was lost."),
			optional: true}}, instructionProperties()...)
}

// bodySchemas are the shapes of the bodies that clients POST.
func bodySchemas() object {
	return object{
		{"NewOrder", append(recordSchema("An order. Without instructions, which are the "+
			"parameters from order_type on, it is a limit order that rests until it is cancelled. "+
			"It has amount or quote_amount.",
			newOrderProperties()...), member{"examples", []any{object{{"pair", "BTC_USDT"},
			{"type", "buy"}, {"amount", "0.5"}, {"price", "50000"}}}})},
		{"CancelOrder", recordSchema("Which order to cancel: order or client_order_id is needed.",
			property{name: "order", schema: idInputSchema("Id of the order.", 78), optional: true},
			property{name: "client_order_id",
				schema:   clientIDSchema("The client's own name for it; ignored beside order."),
				optional: true})},
		{"CancelAllOrders", recordSchema("Which orders to cancel: all, or one of the filters, is "+
			"needed.",
			property{name: "all", schema: flagSchema("All orders that pass the filters. If it is " +
				"off, it counts as absent."), optional: true},
			property{name: "pair", schema: pairSchema(), optional: true},
			property{name: "type", schema: sideSchema("Only orders that do this."),
				optional: true},
			property{name: "client_order_id_prefix",
				schema:   clientIDSchema("Only orders whose client_order_id begins so."),
				optional: true})},
		{"NewWithdraw", recordSchema("What is to leave.",
			property{name: "currency", schema: currencySchema("Code of the currency.", "BTC")},
			property{name: "amount", schema: decimalSchema(
				"Amount, at least the currency's minimum.", "0.25")},
			property{name: "address", schema: valueSchema("string",
				"Where it goes: printable ASCII without blanks, in the form of the currency's "+
					"addresses.", "bc1qexample", member{"pattern", "^[!-~]+$"},
				member{"minLength", 1}, member{"maxLength", actors.MaxAddress})},
			property{name: "client_id", schema: clientIDSchema(
				"An id of the client's own. No other withdrawal of the account may have it that " +
					"is new or verified, or among the newest " +
					strconv.Itoa(event.KeptWithdrawalIDs) + " with such an id. So sending the " +
					"withdrawal again with it is harmless."),
				optional: true})},
		{"ConfirmWithdraw", recordSchema("The proof that the owner wants it.",
			property{name: "withdraw", schema: idInputSchema("Id of the withdrawal.", 5)},
			property{name: "code", schema: valueSchema("string",
				"The code from the e-mail. Case, blanks and dashes do not matter.",
				"7K2M-9QXD-04TB", member{"minLength", 1}, member{"maxLength", api.MaxCode})})},
		{"CancelWithdraw", recordSchema("Which withdrawal to cancel.",
			property{name: "withdraw", schema: idInputSchema("Id of the withdrawal.", 5)})},
	}
}

// decimalSchema is an exact number of a body: a text keeps its digits in every language.
func decimalSchema(text, example string) object {
	return valueSchema([]string{"string", "number"}, text+" At most 8 decimals.", example)
}

func idInputSchema(text string, example int) object {
	return valueSchema([]string{"integer", "string"}, text, example, aboveZero)
}

func failureSchemas() object {
	return object{
		{"Failure", recordSchema("A request that failed as a whole. These are all:\n\n"+
			failureTable(),
			property{name: "detail", schema: valueSchema("string", "What is wrong, in words.",
				api.Unauthenticated.Detail)},
			property{name: "code", schema: object{{"type", "string"},
				{"description",
					"Only where a program must distinguish this case from others of its status."},
				{"enum", []any{api.OutcomeUnknown.Code, api.WrongNonce.Code}}}, optional: true},
			property{name: "last", schema: object{{"type", "integer"},
				{"description", "Of a wrong nonce: the last one of the key."}, {"minimum", 0},
				{"examples", []any{lastNonceExample}}}, optional: true})},
		{"FieldErrors", object{{"type", "object"},
			{"description",
				"Every field that is wrong, under its name, each with what is wrong with it."},
			{"minProperties", 1},
			{"additionalProperties", object{{"type", "array"}, {"minItems", 1},
				{"items", object{{"type", "string"}}}}},
			{"examples", []any{fieldsExample("amount", api.FieldPositive, "pair",
				api.FieldPair)}}}},
		{"FundsError", recordSchema("The account cannot pay for it, or the market forbids it.",
			property{name: "date", schema: timeSchema("When it was refused.")},
			property{name: "error", schema: valueSchema("string",
				"What is available less what is needed, and the currency; with code, the reason.",
				"Out of balance -9.99243661 BTC")},
			property{name: "code", schema: codesSchema(), optional: true})},
		{"Status", recordSchema("The state of the service.",
			property{name: "status", schema: choiceSchema("string", "The state.", "alive",
				"ready", "leads")})},
	}
}
