package operator

import "exchange/gateway/openapi"

// An example is a body or a query, and the text of its refusal.
type example struct{ ask, text string }

// refusalsOf returns the examples of a route.
func refusalsOf(name string) (list []openapi.Refusal) {
	for _, x := range refusals[name] {
		list = append(list, openapi.Refusal{Ask: x.ask, Text: x.text})
	}
	return list
}

// refusals are examples for the document. A test asks an exchange without accounts, on one machine.
var refusals = map[string][]example{
	"GET /operator/v1/actions": {
		{`limit=0`, "limit: 1 to 100000"},
		{`before=0`, "before: the sequence of an action"},
	},
	"GET /operator/v1/accounts": {
		{`limit=0`, "limit: 1 to 100000"},
		{`after=x`, "after: the id of an account"},
		{`frozen=2`, "frozen: 1, 0, true or false"},
	},
	"POST /operator/v1/accounts": {
		{`{"name":"Alice"}`,
			`account name "Alice": 1 to 64 of a-z, 0-9, '.', '_' and '-', beginning with ` +
				"a letter or a digit"},
		{`{"name":"alice","email":"alice"}`, `"alice" is not an e-mail address`},
		{`{"nane":"alice"}`,
			`the body is not the JSON object that is expected: json: unknown field "nane"`},
		{`{"name":"alice"`, "the body is not the JSON object that is expected: unexpected EOF"},
	},
	"GET /operator/v1/account": {
		{`name=nobody`, `there is no account "nobody"`},
	},
	"POST /operator/v1/accounts/freeze": {
		{`{"account":"nobody","on":true}`, `there is no account "nobody"`},
		{`{"account":"alice"}`, "on: true or false is required"},
	},
	"POST /operator/v1/accounts/email": {
		{`{"account":"nobody","email":"alice@new.example"}`, `there is no account "nobody"`},
	},
	"POST /operator/v1/accounts/close": {
		{`{"account":"nobody"}`, `there is no account "nobody"`},
	},
	"GET /operator/v1/keys": {
		{`account=nobody`, `there is no account "nobody"`},
	},
	"POST /operator/v1/keys": {
		{`{"account":"nobody","permissions":["read"]}`, `there is no account "nobody"`},
		{`{"account":"alice","permissions":["write"]}`,
			`there is no permission "write": there are read, trade and withdraw`},
	},
	"POST /operator/v1/keys/revoke": {
		{`{"key":"none"}`, `there is no key "none"`},
	},
	"POST /operator/v1/deposits": {
		{`{"account":"nobody","currency":"BTC","amount":"1"}`, `there is no account "nobody"`},
		{`{"account":"alice","currency":"BTC","amount":"one"}`,
			"amount: A valid number is required."},
	},
	"POST /operator/v1/adjustments": {
		{`{"account":"nobody","currency":"BTC","amount":"-1","reason":"paid twice"}`,
			`there is no account "nobody"`},
		{`{"account":"alice","currency":"BTC","amount":"1","reason":"paid twice"}`,
			`amount: "1" is not below 0, and an adjustment only takes money: to credit ` +
				"an account use a deposit (exchange deposit)"},
		{`{"account":"alice","currency":"BTC","amount":"-1"}`,
			"reason: required, 1 to 1024 bytes; the owner receives it"},
	},
	"GET /operator/v1/withdraws": {
		{`account=nobody`, `there is no account "nobody"`},
		{`limit=0`, "limit: 1 to 100000"},
	},
	"POST /operator/v1/withdraws/approve": {
		{`{"withdraw":1}`, "there is no withdrawal 1"},
		{`{"withdraw":1,"details":"late"}`,
			"details: only of a refusal; an approval has a reference"},
	},
	"POST /operator/v1/withdraws/refuse": {
		{`{"withdraw":1}`, "details: required; the owner receives them"},
		{`{"withdraw":1,"details":"unknown address"}`, "there is no withdrawal 1"},
	},
	"GET /operator/v1/orders": {
		{`account=nobody`, `there is no account "nobody"`},
		{`pair=X`, `there is no pair "X"`},
		{`before=0`, "before: the id of an order"},
	},
	"POST /operator/v1/orders/cancel": {
		{`{"order":1}`, "order 1 is not open"},
	},
	"POST /operator/v1/orders/cancel-all": {
		{`{"account":"nobody"}`, `there is no account "nobody"`},
	},
	"GET /operator/v1/switches": {
		{`account=nobody`, `there is no account "nobody"`},
	},
	"POST /operator/v1/pairs/halt": {
		{`{"pair":"X","on":true}`, `there is no pair "X"`},
		{`{"pair":"BTC_USDT"}`, "on: true or false is required"},
		{`{"pair":"BTC_USDT","all":true,"on":true}`, "all: without pair, which names one"},
	},
	"GET /operator/v1/fees": {
		{`after=x`, "after: the id of an account"},
	},
	"POST /operator/v1/fees": {
		{`{"account":"nobody","pair":"BTC_USDT","usual":true}`, `there is no account "nobody"`},
		{`{"account":"alice","pair":"BTC_USDT","maker":"2","taker":"0"}`,
			"maker: a fraction from 0 to 1 with at most 8 digits, such as 0.001: The " +
				"number is too large."},
		{`{"account":"alice","pair":"BTC_USDT","maker":"0","usual":true}`,
			"usual: without maker and taker, which are rates of the account's own"},
	},
	"POST /operator/v1/maintenance": {
		{`{"message":"back soon"}`, "on: true or false is required"},
		{`{"on":false,"cancels":true}`,
			"cancels: with on true, for a maintenance in which clients may cancel"},
	},
	"POST /operator/v1/config/reload": {
		{`{}`, "this process has no configuration to take up"},
	},
	"POST /operator/v1/audit": {
		{`{"archive":"/archive"}`,
			"the server runs without --archive: the first records may be gone"},
		{`{"without_authentication":true}`,
			"without_authentication needs archive"},
	},
	"GET /operator/v1/statement": {
		{`account=nobody`, `there is no account "nobody"`},
	},
	"GET /operator/v1/trades": {
		{`pair=X`, `there is no pair "X"`},
		{`from=now`, `from: "now" is no time such as 2026-11-21 or 2026-11-21T08:00:00Z`},
	},
	"GET /operator/v1/cluster": {
		{``, "this exchange is no node of a cluster: it runs on one machine"},
	},
	"GET /operator/v1/cluster/hash": {
		{``, "this exchange is no node of a cluster: it runs on one machine"},
	},
	"POST /operator/v1/cluster/transfer": {
		{`{"to":"b"}`, "this exchange is no node of a cluster: it runs on one machine"},
	},
	"POST /operator/v1/cluster/add": {
		{`{"node":"d","address":"10.0.0.4:7000"}`,
			"this exchange is no node of a cluster: it runs on one machine"},
	},
	"POST /operator/v1/cluster/replace": {
		{`{"node":"d","old":"c","address":"10.0.0.4:7000"}`,
			"this exchange is no node of a cluster: it runs on one machine"},
	},
	"POST /operator/v1/cluster/remove": {
		{`{"node":"c"}`, "this exchange is no node of a cluster: it runs on one machine"},
	},
}
