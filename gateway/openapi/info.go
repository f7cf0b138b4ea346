package openapi

import "exchange/gateway/api"

// The shapes of rules and limits.

func pairProperties() []property {
	return []property{
		{name: "name", schema: pairSchema()},
		{name: "currency1", schema: currencySchema("What is traded: amounts are in it.", "BTC")},
		{name: "currency2", schema: currencySchema("What is paid: prices are in it.", "USDT")},
		{name: "minimum_order_size", schema: numberSchema("Smallest amount of an order.", 0.0001)},
		{name: "maximum_order_size", schema: numberSchema("Largest amount of an order.", 1000)},
		{name: "minimum_order_value",
			schema: numberSchema("Least price x amount of an order.", 10)},
		{name: "price_precision",
			schema: valueSchema("integer", "Most decimals of a price.", 2, notNegative)},
		{name: "amount_precision",
			schema: valueSchema("integer", "Most decimals of an amount.", 8, notNegative)},
	}
}

func infoSchemas() object {
	rate := func(name string) property {
		return property{name: name, schema: reference("schemas", "Rate")}
	}
	limit := func(name, text string, example int) property {
		return property{name: name, schema: valueSchema("integer", text, example, aboveZero)}
	}
	return object{
		{"Time", recordSchema("The exchange's time.",
			property{name: "time", schema: timeSchema("Now.")})},
		{"ExchangeInfo", recordSchema("Rules and limits.",
			property{name: "time", schema: timeSchema("Now.")},
			property{name: "maintenance", schema: object{
				{"description", "null, or the maintenance that keeps out changes."},
				{"oneOf", []object{{{"type", "null"}}, recordSchema("Maintenance.",
					property{name: "message", schema: valueSchema("string",
						"Of the operator; may be empty.", "Back at 14:00 UTC.")},
					property{name: "cancels", optional: true, schema: valueSchema("boolean",
						"True where cancels are taken, and nothing else that changes something: "+
							"then no order trades, and none is triggered.", true)})}}}},
			property{name: "limits", schema: recordSchema("The limits that hold for each client.",
				property{name: "rates", schema: recordSchema(
					"How often a client may ask, by kind of request. null: as often as it likes.",
					rate("public"), rate("reads"), rate("commands"), rate("cancels"))},
				limit("batch", "Most items of an order-batch/.", 50),
				limit("open_orders_per_account", "Most open orders of an account.", 100000),
				limit("open_orders_per_account_and_book",
					"Most open orders of an account in one pair.", 5000),
				limit("open_orders_per_book", "Most open orders in one pair.", 5000000),
				limit("stops_per_account", "Most orders of an account in one pair that wait for "+
					"a trigger.", 200),
				limit("stops_per_book", "Most orders in one pair that wait for a trigger.",
					100000),
				limit("gtd_per_account", "Most orders of an account in one pair that expire.",
					1000),
				limit("gtd_per_book", "Most orders in one pair that expire.", 100000),
				limit("max_fills", "Most trades of one order at once; the rest is cancelled.",
					10000))},
			property{name: "pairs", schema: listSchema("PairInfo")},
			property{name: "demo", optional: true, schema: demoSchema()},
			property{name: "deposit_instructions", optional: true, schema: depositSchema()})},
		{"Rate", object{{"oneOf", []object{{{"type", "null"}},
			recordSchema("Requests per second in the long run, and a burst at once.",
				limit("per_second", "Requests a second.", 100),
				limit("burst", "Requests at once, after a pause.", 200))}}}},
		{"PairInfo", recordSchema("A market, with all rules of its orders.",
			append(pairProperties(),
				property{name: "price_tick",
					schema: numberSchema("Each price is a multiple of it.", 0.05)},
				property{name: "amount_step",
					schema: numberSchema("Each amount is a multiple of it.", 0.001)},
				property{name: "market_collar", schema: numberSchema(
					"How far beyond the best price the worst price of a market order is that "+
						"names none: a share of the best price.", 0.05)},
				property{name: "stop_collar", schema: numberSchema(
					"The same of an order with a trigger price and no other, from the trigger "+
						"price on.", 0.05)},
				property{name: "price_band", schema: numberSchema(
					"A buy above the last price by more than this share of it is refused, and so "+
						"is a sell below it by more. 0: any price is possible.", 0.05)},
				property{name: "maker_fee", schema: numberSchema(
					"What a trade usually costs the order that was there first: 0.001 is 0.1 %.",
					0.001)},
				property{name: "taker_fee", schema: numberSchema(
					"What it usually costs the order that came second.", 0.002)},
				property{name: "status", schema: choiceSchema("string",
					"Whether the pair takes orders. Cancels always work.", api.StatusTrading,
					api.StatusHalted)})...)},
	}
}

func depositSchema() object {
	return object{{"type", "object"},
		{"description", "In answers to signed requests only: the operator's deposit " +
			"instructions, as text, by currency. A currency without any is left out."},
		{"additionalProperties", object{{"type", "string"}}},
		{"examples", []any{map[string]string{"BTC": "Ask desk@example.org."}}}}
}

func demoSchema() object {
	return object{{"type", "array"},
		{"description", "Of a demo alone: the API keys that anybody may use."},
		{"items", recordSchema("A key of the demo.",
			property{name: "account", schema: valueSchema("string", "Its account.", "alice")},
			property{name: "key", schema: valueSchema("string", "The key.", "demo-alice")},
			property{name: "secret", schema: valueSchema("string", "Its secret.",
				"demo-alice-secret")})}}
}
