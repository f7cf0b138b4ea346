package operator

import (
	"encoding/json"

	"exchange/gateway/openapi"
)

// The description of each route, for the document.

type description = openapi.Route

// answers is the description's list of answers.
func answers(of ...any) []any { return of }

var descriptions = map[string]description{
	"GET " + DocumentPath: {Tag: tagState, Summary: "This document",
		Text:    "Each node answers itself.",
		Answers: answers(json.RawMessage{})},
	"GET /operator/v1/status": {Tag: tagState, Summary: "The exchange on one page",
		Text:    "The parts of the page are each of their own moment.",
		Answers: answers(statusAnswer{})},
	"GET /operator/v1/totals": {Tag: tagState, Summary: "Sums over all accounts",
		Text:    "What all accounts have, by currency, at one sequence.",
		Answers: answers(totalsAnswer{})},
	"GET /operator/v1/actions": {Tag: tagState, Summary: "What operators did",
		Text: "The log of operators' actions, newest first.",
		Query: []openapi.Query{limitQuery, {Name: "before", Type: "integer", Field: openapi.Field{
			Text:    "Only actions with a smaller sequence.",
			Minimum: 1}}},
		Answers: answers(actionsAnswer{})},
	"POST /operator/v1/config/reload": {Tag: tagState, Summary: "Take up the configuration",
		Text: "The process that is asked takes up its own configuration, with its certificates " +
			"and tokens. A configuration that is refused changes nothing.",
		Body: reloadRequest{}, Answers: answers(Reloaded{})},

	"GET /operator/v1/accounts": {Tag: tagAccounts, Summary: "Accounts",
		Text: "A page of the accounts, in order of their ids. `next` is there if more may " +
			"follow: send it as `after`.",
		Query: []openapi.Query{limitQuery, afterQuery, {Name: "frozen", Type: "integer",
			Field: openapi.Field{Text: "Only accounts that are frozen, without closed ones.",
				Enum: []any{1}}}},
		Answers: answers(accountsAnswer{})},
	"POST /operator/v1/accounts": {Tag: tagAccounts, Summary: "Open an account",
		Text: "The name is new. The e-mail address gets the codes of withdraws, and an account " +
			"without one cannot withdraw.",
		Body: accountRequest{}, Answers: answers(accountAnswer{})},
	"GET /operator/v1/account": {Tag: tagAccounts, Summary: "An account at one moment",
		Text: "Its holdings, its newest open orders, and its pending withdraws.",
		Query: []openapi.Query{{Name: "name", Type: "string",
			Field: openapi.Field{Text: "Name of the account.", Required: true}}},
		Answers: answers(portrait{})},
	"POST /operator/v1/accounts/email": {Tag: tagAccounts, Summary: "Change an account's e-mail " +
		"address",
		Text: "Both addresses are told, and the account's withdraws are held for 48 hours. " +
			"With the address that it has, nothing changes.",
		Body: emailRequest{}, Answers: answers(emailAnswer{})},
	"POST /operator/v1/accounts/close": {Tag: tagAccounts, Summary: "Close an account",
		Text: "An account without money, open orders and pending withdraws ends for good, and " +
			"its keys with it.",
		Body: closeRequest{}, Answers: answers(endAnswer{})},
	"POST /operator/v1/accounts/freeze": {Tag: tagAccounts, Summary: "Freeze an account, or end " +
		"that",
		Text: "The keys of a frozen account do nothing, and its withdraws are not approved. " +
			"Open orders stay.",
		Body: freezeRequest{}, Answers: answers(switchAnswer{})},
	"GET /operator/v1/keys": {Tag: tagAccounts, Summary: "API keys of an account",
		Text: "With those that are revoked, and without secrets.",
		Query: []openapi.Query{{Name: "account", Type: "string",
			Field: openapi.Field{Text: "Name of the account.", Required: true}}},
		Answers: answers(keysAnswer{})},
	"POST /operator/v1/keys": {Tag: tagAccounts, Summary: "Make an API key",
		Text: "The answer alone has the secret: it is not told again.",
		Body: keyRequest{}, Answers: answers(keyAnswer{})},
	"POST /operator/v1/keys/revoke": {Tag: tagAccounts, Summary: "Revoke an API key",
		Text: "The key ends for good.",
		Body: revokeRequest{}, Answers: answers(revokedAnswer{})},

	"POST /operator/v1/deposits": {Tag: tagMoney, Summary: "Credit an account",
		Text: "A deposit with the same reference and content is made once. Without a reference " +
			"the exchange makes one.",
		Body: depositRequest{}, Answers: answers(depositAnswer{})},
	"POST /operator/v1/adjustments": {Tag: tagMoney, Summary: "Take money back",
		Text: "A correction takes available money out of an account. One with the same " +
			"reference and content is made once.",
		Body: adjustment{}, Answers: answers(adjustmentAnswer{})},
	"GET /operator/v1/withdraws": {Tag: tagMoney, Summary: "Withdraws",
		Text: "Newest first: the pending ones of all accounts, or all of one account.",
		Query: []openapi.Query{limitQuery, {Name: "account", Type: "string",
			Field: openapi.Field{Text: "Name of an account."}}},
		Answers: answers(withdrawalsAnswer{})},
	"POST /operator/v1/withdraws/approve": {Tag: tagMoney, Summary: "Approve a withdraw",
		Text: "The amount leaves the balance.",
		Body: decision{}, Answers: answers(decisionAnswer{})},
	"POST /operator/v1/withdraws/refuse": {Tag: tagMoney, Summary: "Refuse a withdraw",
		Text: "The amount is available again. `details` is required, and the owner is told.",
		Body: decision{}, Answers: answers(decisionAnswer{})},

	"GET /operator/v1/orders": {Tag: tagTrading, Summary: "Open orders",
		Text: "Of one account, newest first, or of all accounts, account by account. For the " +
			"next page send `next` as `before`, and `after` as `after`, whichever of them are " +
			"there.",
		Query: []openapi.Query{limitQuery, {Name: "account", Type: "string",
			Field: openapi.Field{Text: "Name of an account."}},
			{Name: "pair", Type: "string", Field: openapi.Field{Text: "Only of this pair."}},
			{Name: "before", Type: "integer",
				Field: openapi.Field{Text: "Only orders with a smaller id.",
					Minimum: 1}},
			afterQuery},
		Answers: answers(openOrdersAnswer{})},
	"POST /operator/v1/orders/cancel": {Tag: tagTrading, Summary: "Cancel an order",
		Text: "Of any account.",
		Body: cancelRequest{}, Answers: answers(cancelAnswer{})},
	"POST /operator/v1/orders/cancel-all": {Tag: tagTrading, Summary: "Cancel an account's orders",
		Text: "If only some are known to be cancelled, the answer is 503 and has these as " +
			"`orders`.",
		Body: cancelAllRequest{}, Answers: answers(cancelAllAnswer{})},
	"GET /operator/v1/switches": {Tag: tagTrading, Summary: "Dead man's switches",
		Text: "All that are armed.",
		Query: []openapi.Query{{Name: "account", Type: "string",
			Field: openapi.Field{Text: "Only of this account."}}},
		Answers: answers(switchesAnswer{})},
	"GET /operator/v1/pairs": {Tag: tagTrading, Summary: "Pairs",
		Text:    "All configured pairs with their rules, in the order of the configuration.",
		Answers: answers(pairsAnswer{})},
	"POST /operator/v1/pairs/halt": {Tag: tagTrading, Summary: "Halt a pair, or resume it",
		Text: "A halted pair takes cancels and no orders. With `all` the pairs are halted one " +
			"after the other, and the answer has a list.",
		Body: haltRequest{}, Answers: answers(switchAnswer{}, allAnswer{})},
	"GET /operator/v1/fees": {Tag: tagTrading, Summary: "Fees",
		Text: "The usual rates, on the first page, and a page of the accounts with rates of " +
			"their own. `next` is there if more may follow: send it as `after`.",
		Query: []openapi.Query{limitQuery, afterQuery}, Answers: answers(feesAnswer{})},
	"POST /operator/v1/fees": {Tag: tagTrading, Summary: "Set an account's fees in a pair",
		Text: "Either `maker` and `taker`, or `usual`.",
		Body: feesRequest{}, Answers: answers(setFeesAnswer{})},
	"GET /operator/v1/maintenance": {Tag: tagTrading, Summary: "Is there maintenance?",
		Text:    "And since when.",
		Answers: answers(closedAll{})},
	"POST /operator/v1/maintenance": {Tag: tagTrading, Summary: "Begin or end maintenance",
		Text: "In maintenance clients' commands are refused. It lasts until it is ended, also " +
			"over restarts.",
		Body: maintenanceRequest{}, Answers: answers(switchAnswer{})},

	"POST /operator/v1/audit": {Tag: tagReports, Summary: "Audit the books",
		Text: "Replays the journal and compares. Lines of progress come before the findings. " +
			"With `archive` it starts at the archive's beginning.",
		Body: auditRequest{}, Answers: answers(progressLine{}), End: auditAnswer{}},
	"GET /operator/v1/statement": {Tag: tagReports, Summary: "An account's statement",
		Text: "Every change of the account's balances, newest first, as far as the history " +
			"reaches.",
		Query: []openapi.Query{{Name: "account", Type: "string",
			Field: openapi.Field{Text: "Name of the account.", Required: true}},
			{Name: "currency", Type: "string",
				Field: openapi.Field{Text: "Only changes of this currency."}}},
		Answers: answers(statementLine{}), End: 0},
	"GET /operator/v1/trades": {Tag: tagReports, Summary: "All trades",
		Text: "Pair by pair, oldest first. `end` is the number of rows, as in the other exports.",
		Query: append([]openapi.Query{{Name: "pair", Type: "string",
			Field: openapi.Field{Text: "Only of this pair."}}}, periodQuery...),
		Answers: answers(tradeLine{}), End: 0},
	"GET /operator/v1/export/orders": {Tag: tagReports, Summary: "All orders",
		Text:  "Those that were accepted in a period, account by account, newest first.",
		Query: periodQuery, Answers: answers(orderLine{}), End: 0},
	"GET /operator/v1/export/deposits": {Tag: tagReports, Summary: "All deposits",
		Text:  "Account by account, newest first.",
		Query: periodQuery, Answers: answers(depositLine{}), End: 0},
	"GET /operator/v1/export/withdraws": {Tag: tagReports, Summary: "All withdraws",
		Text:  "Those that were asked for in a period, newest first.",
		Query: periodQuery, Answers: answers(withdrawalLine{}), End: 0},
	"GET /operator/v1/export/balances": {Tag: tagReports, Summary: "All balances",
		Text:    "At one sequence, in order of the accounts' ids, without balances of 0.",
		Answers: answers(balanceLine{}), End: balancesEnd{}},
	"GET /operator/v1/backup": {Tag: tagReports, Summary: "A backup",
		Text: "The state at one sequence, and the history up to it, as one file. A backup that " +
			"breaks off lacks its proof, which `exchange restore` notices.",
		Kind: "application/octet-stream"},

	"GET /operator/v1/cluster": {Tag: tagCluster, Summary: "The nodes of the cluster",
		Text:    "As the node that is asked knows them: each node answers itself.",
		Answers: answers(clusterAnswer{})},
	"GET /operator/v1/cluster/hash": {Tag: tagCluster, Summary: "A digest of a node's state",
		Text:    "Each node answers itself.",
		Answers: answers(hashAnswer{})},
	"POST /operator/v1/cluster/transfer": {Tag: tagCluster, Summary: "Hand the lead over",
		Text: "To a node, or to any.",
		Body: transferRequest{}, Answers: answers(transferAnswer{})},
	"POST /operator/v1/cluster/apply": {Tag: tagCluster, Summary: "Agree on another market part",
		Text: "The nodes use it from the next reign on. The body may be larger than others: 6 MiB.",
		Body: applyRequest{}, Answers: answers(applyAnswer{})},
	"POST /operator/v1/cluster/add": {Tag: tagCluster, Summary: "Add a node",
		Text: "Takes the next step that is possible: repeat it until `done`.",
		Body: wish{}, Answers: answers(wishAnswer{})},
	"POST /operator/v1/cluster/replace": {Tag: tagCluster, Summary: "Replace a node",
		Text: "Takes the next step that is possible: repeat it until `done`. `node` takes the " +
			"place of `old`.",
		Body: wish{}, Answers: answers(wishAnswer{})},
	"POST /operator/v1/cluster/remove": {Tag: tagCluster, Summary: "Remove a node",
		Text: "Repeat it until `done`.",
		Body: wish{}, Answers: answers(wishAnswer{})},
}

var (
	limitQuery = openapi.Query{Name: "limit", Type: "integer", Field: openapi.Field{
		Text:    "Most entries of the list.",
		Minimum: 1, Maximum: maxList, Default: defaultList}}
	afterQuery = openapi.Query{Name: "after", Type: "integer", Field: openapi.Field{
		Text:    "Only accounts with a greater id.",
		Minimum: 0}}
	periodQuery = []openapi.Query{
		{Name: "from", Type: "string", Field: openapi.Field{
			Text: "Only from this time on: 2026-11-21, or 2026-11-21T08:00:00Z."}},
		{Name: "to", Type: "string", Field: openapi.Field{Text: "Only before this time."}},
	}
)
