package openapi

import (
	"strconv"

	"exchange/core/trading"
	"exchange/gateway/api"
)

// The operations that read an account's own data, for the OpenAPI document.

func accountDescriptions() []description {
	return []description{
		{method: "GET", path: "/api/v1/wallets", id: "listWallets", tag: tagAccount,
			summary: "Wallets",
			text: "The account's balances, of every currency. After an answer to an order " +
				"all later reads of the account show its effect.",
			parameters: []parameter{currencyParameter("currency_id", "Only this currency.")},
			status:     200, success: "The wallets.", answer: listSchema("Wallet"),
			refusals: []refusal{{"UnknownCurrency",
				fieldsExample("currency_id", api.FieldCurrency)}}},
		{method: "GET", path: "/api/v1/orders/own", id: "listOwnOrders", tag: tagAccount,
			summary: "Own orders",
			text: "The account's orders, newest first. With `client_order_id` it shows whether " +
				"an order whose answer was lost is in.",
			parameters: []parameter{
				sideParameter("type", "Only orders that do this."),
				pairParameter(),
				inQuery("status", "Only orders that are active (1), cancelled (2) or done (3).",
					member{"enum", []any{trading.StatusActive, trading.StatusCancelled,
						trading.StatusDone}}),
				inQuery("waiting", "1: only orders that wait for a trigger outside the book. 0: "+
					"only others.", member{"enum", []any{0, 1}}),
				queryParameter("client_order_id",
					"Only orders that have had this name, mostly one.",
					clientIDSchema("The name that the client gave it.")),
				limitParameter("limit", "Most orders.", api.MaxOrders, api.MaxOrders),
				offsetParameter(),
				beforeParameter()},
			status: 200, success: "The orders.", answer: listSchema("Order"),
			refusals: []refusal{{"UnknownPair", fieldsExample("pair", api.FieldPair)},
				wrongOffset()}},
		{method: "GET", path: "/api/v1/order/{pk}", id: "getOrder", tag: tagAccount,
			summary: "One order",
			text: "An order of the account. Another account's is answered like one that " +
				"does not exist.",
			parameters: []parameter{pathParameter("pk", "Id of the order.", 78,
				idSchema("A positive integer.", 78))},
			status: 200, success: "The order.", answer: reference("schemas", "Order")},
		{method: "GET", path: "/api/v1/exchanges/own", id: "listOwnTrades", tag: tagAccount,
			summary: "Own trades",
			text:    "The trades in which the account was buyer or seller, with their fees.",
			parameters: append([]parameter{pairParameter(),
				sideParameter("type", "Only trades whose taker did this."),
				sideParameter("my_side", "Only trades in which the account did this."),
				queryParameter("both_sides", "A trade of the account with itself has "+
					"maker_order and maker_fee, too.", object{{"type", "boolean"}})},
				tradePage()...),
			status: 200, success: "The trades.", answer: listSchema("OwnTrade"),
			refusals: []refusal{{"UnknownPair", fieldsExample("pair", api.FieldPair)},
				needsPair(), wrongOffset()}},
		{method: "GET", path: "/api/v1/fees", id: "listFees", tag: tagAccount, summary: "Fees",
			text:   "What trades cost the account, for every pair.",
			status: 200, success: "The fees.", answer: listSchema("Fee")},
		{method: "GET", path: "/api/v1/deposits", id: "listDeposits", tag: tagAccount,
			summary: "Deposits",
			text:    "The account's deposits, newest first.",
			parameters: append([]parameter{
				currencyParameter("currency_id", "Only in this currency.")},
				transferPage("deposits")...),
			status: 200, success: "The deposits.", answer: listSchema("Deposit"),
			refusals: []refusal{{"UnknownCurrency",
				fieldsExample("currency_id", api.FieldCurrency)},
				wrongOffset()}},
	}
}

// transferPage has the parameters that pick a page of deposits or withdrawals.
func transferPage(what string) []parameter {
	return []parameter{limitParameter("limit", "Most "+what+".", api.DefaultTransfers,
		api.MaxTransfers),
		offsetParameter(), beforeParameter()}
}

func wrongOffset() refusal {
	return refusal{"WrongOffset",
		fieldsExample("offset", api.FieldInteger+" It must be 0 to "+strconv.Itoa(api.MaxOffset)+
			".")}
}
