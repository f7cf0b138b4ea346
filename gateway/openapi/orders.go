package openapi

import (
	"exchange/gateway/api"
)

// The operations that change an account, for the OpenAPI document.

func orderDescriptions() []description {
	return []description{
		{method: "POST", path: "/api/v1/order", id: "placeOrder", tag: tagOrders,
			summary: "Place an order",
			text: "A limit order, unless its instructions say otherwise. It trades at once with " +
				"what the book has at its price or better; the rest stays in the book. " +
				"Instructions that are not offered (`trailingPercent`, `trailingAmount`, " +
				"`stopLoss`, `takeProfit`) are refused by name, because an order without them " +
				"would not do what is asked for.\n\n" +
				"The answer comes when the order is durable. An order without an answer may be " +
				"in all the same: give it a `client_order_id`, and ask for that before sending " +
				"it again. An order that may not rest and trades nothing is in, and cancelled.",
			body: "NewOrder", status: 201, success: "The order is in.",
			answer: reference("schemas", "PlacedOrder"),
			refusals: append(append(orderRefusals(), marketRefusals(api.NoLiquidity)...),
				refusal{"ClientOrderIDTaken", fieldsExample("client_order_id",
					"Already used by order 78")},
				refusal{"NotOffered", fieldsExample("trailingPercent", api.FieldNotOffered)}),
			failures: []*api.Failure{api.PairHalted, api.TooManyOpenOrders, api.TooManyInBook,
				api.BookFull}},
		{method: "POST", path: "/api/v1/order-cancel", id: "cancelOrder", tag: tagOrders,
			summary: "Cancel an order",
			text: "Cancels what is left of an order, named by its id or, without `order`, by " +
				"its `client_order_id`. It works on a halted pair too.\n\n" +
				"By `client_order_id` it waits for an order under that name which is in flight. " +
				"So \"Order not found\" is final for all that the key sent before, with a lower " +
				"nonce: an order whose answer was lost is not in, and never will be.",
			body: "CancelOrder", status: 200, success: "The order is cancelled.",
			answer: reference("schemas", "CancelledOrder"),
			refusals: []refusal{
				{"AlreadyDone", fieldsExample("order", "Order already done")},
				{"AlreadyCancelled", fieldsExample("order", "Order already cancelled")},
				{"UnknownOrder", fieldsExample("order", "Order not found")},
				{"UnknownClientOrderID", fieldsExample("client_order_id", "Order not found")},
				anyDuplicate}},
		{method: "POST", path: "/api/v1/order-cancel-all", id: "cancelAllOrders", tag: tagOrders,
			summary: "Cancel all or some orders",
			text: "Cancels all open orders of the account, with `all=1`, or those that pass " +
				"each of the filters. One of them, or `all`, is needed.",
			body: "CancelAllOrders", status: 200, success: "They are cancelled.",
			answer: reference("schemas", "CancelledOrders"),
			refusals: []refusal{{"Nothing", fieldsExample("all", api.FieldRequired)},
				{"UnknownPair", fieldsExample("pair", api.FieldPair)}, anyDuplicate}},
	}
}

func withdrawalDescriptions() []description {
	unknown := refusal{"UnknownWithdraw", fieldsExample("withdraw", "Withdraw not found")}
	ended := refusal{"WrongState", fieldsExample("withdraw", "Withdraw is approved")}
	return []description{
		{method: "GET", path: "/api/v1/withdraws", id: "listWithdraws", tag: tagWithdrawals,
			summary: "Withdrawals",
			text:    "The account's withdrawals, newest first.",
			parameters: append([]parameter{
				currencyParameter("currency_id", "Only in this currency."),
				queryParameter("status", "Only withdrawals in this state.",
					withdrawalStatusSchema("As in the answer."))}, transferPage("withdrawals")...),
			status: 200, success: "The withdrawals.", answer: listSchema("Withdraw"),
			refusals: []refusal{{"UnknownCurrency",
				fieldsExample("currency_id", api.FieldCurrency)},
				wrongOffset()}},
		{method: "POST", path: "/api/v1/withdraw", id: "withdraw", tag: tagWithdrawals,
			summary: "Request a withdrawal",
			text: "Reserves the amount and sends the account's owner an e-mail with a code that " +
				"confirms it. " +
				"An exchange without a mail server takes none; what was asked for before can " +
				"still be confirmed or cancelled. With a `client_id` it can be sent again when " +
				"its answer was lost: it is asked for once, and the repeat is refused.",
			body: "NewWithdraw", status: 201,
			success: "The withdrawal is new and waits for its code.",
			answer:  reference("schemas", "Withdraw"),
			refusals: []refusal{{"WrongFields",
				fieldsExample("currency", api.FieldCurrency, "amount", api.FieldPositive)},
				{"ClientIDTaken", fieldsExample("client_id", "Already used by withdraw 5")},
				anyDuplicate,
				outOfFunds},
			failures: []*api.Failure{api.NoEmail, api.TooManyWithdrawals,
				api.WithdrawalsClosed, api.WithdrawalsHeld}},
		{method: "POST", path: "/api/v1/withdraw-confirm", id: "confirmWithdraw",
			tag:     tagWithdrawals,
			summary: "Confirm a withdrawal",
			text: "Confirms a new withdrawal with its code. After too many wrong codes none is " +
				"accepted any more.",
			body: "ConfirmWithdraw", status: 200,
			success: "The withdrawal is verified and waits for approval.",
			answer:  reference("schemas", "Withdraw"),
			refusals: []refusal{
				{"WrongCode", fieldsExample("code", "Wrong code")},
				{"CodeExpired", fieldsExample("code", "Code expired")},
				{"TooManyTries", fieldsExample("code", "Too many tries")},
				unknown, ended, anyDuplicate},
			failures: []*api.Failure{api.WithdrawalsHeld}},
		{method: "POST", path: "/api/v1/withdraw-cancel", id: "cancelWithdraw", tag: tagWithdrawals,
			summary: "Cancel a withdrawal",
			text:    "Cancels a withdrawal that is new or verified and releases its amount.",
			body:    "CancelWithdraw", status: 200, success: "The withdrawal is cancelled.",
			answer:   reference("schemas", "Withdraw"),
			refusals: []refusal{unknown, ended, anyDuplicate}},
	}
}
