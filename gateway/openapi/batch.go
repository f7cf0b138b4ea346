package openapi

import "exchange/gateway/api"

func batchDescription() description {
	return description{method: "POST", path: "/api/v1/order-batch", id: "sendBatch",
		tag: tagOrders, summary: "Place, cancel and change several orders",
		text: "Takes up to 50 items (`limits.batch` of exchange-info/) under one signature and " +
			"one nonce. Each is answered with the status and the body that its own path would " +
			"answer with, in their order. They reach each book in their order, and nothing else " +
			"of the account comes between them. They do not depend on each other: one that is " +
			"refused stops no other. To move an order, amend it. The rates count each item, and " +
			"so does the bound of commands in flight: 429 and 503 are for all items.",
		body: "OrderBatch", status: 200, success: "The result of each item.",
		answer: reference("schemas", "BatchResults"),
		refusals: []refusal{{"NoItems", fieldsExample("orders", "At least one item is required.")},
			{"TooManyItems", fieldsExample("orders", "At most 50 items are possible.")},
			anyDuplicate},
		failures: []*api.Failure{}}
}

func batchSchemas() object {
	return object{
		{"BatchResults", recordSchema("The results of the items of a batch.",
			property{name: "results", schema: object{{"type", "array"},
				{"description", "In the order of the items."},
				{"items", recordSchema("The result of an item.",
					property{name: "status", schema: valueSchema("integer",
						"Status that its own path would answer with.", 201)},
					property{name: "body", schema: object{{"type", "object"},
						{"description", "Body that its own path would answer with: " +
							"PlacedOrder, CancelledOrder, AmendedOrder, or a refusal."}}})}}})},
		{"OrderBatch", recordSchema("Orders, cancels and changes of orders.",
			property{name: "orders", schema: object{
				{"description", "A JSON array, or its text."},
				{"oneOf", []object{
					{{"type", "array"}, {"minItems", 1}, {"items", recordSchema(
						"An item: the fields of NewOrder, CancelOrder or AmendOrder beside `do`.",
						property{name: "do", schema: choiceSchema("string",
							"What to do.", "place", "cancel", "amend")})}},
					{{"type", "string"}, {"description", "The text of such an array: forms " +
						"have no arrays."}}}}}})},
	}
}
