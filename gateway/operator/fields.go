package operator

import (
	"exchange/actors"
	"exchange/core/event"
	"exchange/gateway/api"
	"exchange/gateway/openapi"
)

// What the document says of the members of bodies and answers: of one type's, or of those of all
// types with that name. Each member has a text, and each text has a member.

// said describes a member of answers.
func said(text string) openapi.Field { return openapi.Field{Text: text} }

// needed describes a member that a body must have.
func needed(text string) openapi.Field { return openapi.Field{Text: text, Required: true} }

var permissionNames = []any{api.PermissionName(event.PermissionRead),
	api.PermissionName(event.PermissionTrade), api.PermissionName(event.PermissionWithdraw)}

var fields = join(bodyFields, accountFields, moneyFields, tradingFields, stateFields, reportFields,
	clusterFields)

// join returns the entries of several maps, which have no name in common.
func join(parts ...map[string]openapi.Field) map[string]openapi.Field {
	all := map[string]openapi.Field{}
	for _, part := range parts {
		for name, f := range part {
			if _, twice := all[name]; twice {
				panic("BUG: " + name + " is described twice")
			}
			all[name] = f
		}
	}
	return all
}

var bodyFields = map[string]openapi.Field{
	"accountRequest.name": {Text: "Name of the new account.", Required: true, Length: 64,
		Pattern: "^[a-z0-9][a-z0-9._-]{0,63}$"},
	"accountRequest.email":  said("E-mail address; left out or empty: none."),
	"emailRequest.account":  needed("Name of the account."),
	"emailRequest.email":    needed("The new e-mail address, another than the one that it has."),
	"closeRequest.account":  needed("Name of the account."),
	"freezeRequest.account": needed("Name of the account."),
	"freezeRequest.on":      needed("true: freeze it. false: end that."),
	"keyRequest.account":    needed("Name of the account."),
	"keyRequest.permissions": {Text: "What the key may do: at least one of these.", Required: true,
		Enum: permissionNames},
	"keyRequest.allow": {Text: "Addresses, or CIDR prefixes such as 10.0.0.0/8, from which the " +
		"key works. Left out or empty: from all.", Length: 100},
	"keyRequest.parallel": {Text: "How many of its greatest nonces the key keeps, so that its " +
		"requests may overtake each other. Left out: each nonce is greater than the one before.",
		Minimum: 1, Maximum: event.MaxParallel},
	"revokeRequest.key":       needed("The key."),
	"depositRequest.account":  needed("Name of the account."),
	"depositRequest.currency": needed("Code of the currency."),
	"depositRequest.reference": {Text: "Name of the deposit, with which a repeat is safe. Left " +
		"out: the exchange makes one.", Length: actors.MaxReference},
	"depositRequest.amount": needed("Amount, above 0. Text keeps all digits in any program."),
	"adjustment.account":    needed("Name of the account."),
	"adjustment.currency":   needed("Code of the currency."),
	"adjustment.reference": {Text: "Name of the correction, with which a repeat is safe. Left " +
		"out: the exchange makes one.", Length: event.MaxClientID},
	"adjustment.reason": {Text: "Why, on one line: the owner is told.", Required: true,
		Length: actors.MaxDetails},
	"adjustment.amount": needed("Amount, below 0: a correction only takes money."),
	"decision.withdraw": needed("Id of the withdraw."),
	"decision.details": {Text: "Why it is refused, on one line: the owner is told. Required of " +
		"a refusal, and not for an approval.", Length: actors.MaxDetails},
	"decision.reference": {Text: "The transaction that pays it, on one line: the owner is told. " +
		"Not for a refusal.", Length: actors.MaxDetails},
	"decision.despite_freeze":  said("Approve it although the account is frozen."),
	"cancelRequest.order":      needed("Id of the order."),
	"cancelAllRequest.account": needed("Name of the account."),
	"cancelAllRequest.pair":    said("Only orders of this pair; left out or empty: all."),
	"haltRequest.pair":         said("Name of the pair; left out with `all`."),
	"haltRequest.all":          said("All pairs, one after the other."),
	"haltRequest.on":           needed("true: halt it. false: resume it."),
	"maintenanceRequest.on":    needed("true: begin. false: end."),
	"maintenanceRequest.message": {Text: "What clients are told, on one line.",
		Length: actors.MaxMessage},
	"maintenanceRequest.cancels": said("Clients may cancel in it; only with `on` true."),
	"feesRequest.account":        needed("Name of the account."),
	"feesRequest.pair":           needed("Name of the pair."),
	"feesRequest.maker": said("Fraction that the account pays as the maker, 0 to 1 with at most " +
		"8 digits: 0.001 is 0.1 %."),
	"feesRequest.taker": said("The same as the taker."),
	"feesRequest.usual": said("The pair's rates count again; without `maker` and `taker`."),
	"auditRequest.archive": said("Folder of the archive, which must be the one that the server " +
		"archives to. Left out or empty: none is read."),
	"auditRequest.without_authentication": said("Take the archive's parts as they are."),
	"transferRequest.to":                  said("Name of the node; left out or empty: any."),
	"applyRequest.market": needed("The market part of a configuration, packed " +
		"as gzip."),
	"wish.node": needed("Name of the node."),
	"wish.address": said("Where it listens for the other nodes. Of a node that is removed: left " +
		"out."),
	"wish.old":   said("Of a replacement, the voter that leaves. Otherwise left out."),
	"wish.begun": said("An earlier request of the same change was answered."),
}

var accountFields = map[string]openapi.Field{
	"account":                 said("Name of the account."),
	"id":                      said("Id of the account."),
	"email":                   said("E-mail address; \"\": none."),
	"frozen":                  said("Whether the account is frozen."),
	"held_until":              said("Until when no money is withdrawn from the account."),
	"accountLine.closed":      said("When the account was closed."),
	"portrait.closed":         said("When the account was closed."),
	"endAnswer.closed":        said("Always true."),
	"emailAnswer.before":      said("The e-mail address before. Empty: there was none."),
	"accountsAnswer.accounts": said("The page."),
	"accountsAnswer.next":     said("Id of the last account, if more may follow it."),
	"holdings":                said("What it has, by currency."),
	"balance":                 said("All that the account has of the currency."),
	"reserve":                 said("The part that open orders and pending withdraws hold."),
	"available":               said("The rest."),
	"newest_orders":           said("The newest of its open orders."),
	"portrait.open_orders":    said("Number of its open orders."),
	"pending_withdraws":       said("Its withdraws that have come to no end."),
	"sequence":                said("Sequence of the journal, of whose moment this is."),
	"on":                      said("The state after the request."),
	"switchAnswer.account":    said("Name of the account; only of a freeze."),
	"switchAnswer.pair":       said("Name of the pair; only of a halt."),
	"message":                 said("What clients are told."),
	"cancels":                 said("Whether clients may cancel."),
	"repeated":                said("It was so already: the request changed nothing."),
	"key":                     said("The key."),
	"secret":                  said("Its secret; only of a new key."),
	"permissions":             {Text: "What it may do.", Enum: permissionNames},
	"allow":                   said("Addresses and prefixes from which it works; empty: all."),
	"parallel":                said("How many nonces it keeps; left out: they grow."),
	"keyAnswer.revoked":       said("Whether it is revoked; only in the list."),
	"keys":                    said("The keys."),
	"revokedAnswer.revoked":   said("true."),
}

var moneyFields = map[string]openapi.Field{
	"currency":              said("Code of the currency."),
	"amount":                said("Amount."),
	"reference":             said("Name of the deposit or the correction."),
	"reason":                said("Why the account was corrected."),
	"deposit":               said("Id of the deposit."),
	"depositAnswer.balance": said("The balance after it."),
	"adjustment":            said("Id of the correction."),
	"adjustmentAnswer.amount": {Text: "Amount, below 0.",
		Maximum: 0},
	"adjustmentAnswer.balance":    said("The balance after it."),
	"withdraw":                    said("Id of the withdraw."),
	"withdrawalAnswer.status":     said("State, as the public API has it: 10, 20, 30, 40, 50."),
	"state":                       said("State, in a word."),
	"address":                     said("Where the money goes."),
	"details":                     said("Reason of a refusal, or reference of an approval."),
	"withdrawalAnswer.frozen":     said("Whether the account is frozen."),
	"withdrawalAnswer.amount":     said("Amount."),
	"withdrawalsAnswer.withdraws": said("The withdraws."),
}

var tradingFields = map[string]openapi.Field{
	"order":                   said("Id of the order."),
	"pair":                    said("Name of the pair."),
	"type":                    said("What it does: sell or buy."),
	"price":                   said("Price."),
	"remaining":               said("What is left of the amount."),
	"time":                    said("When it was."),
	"client_order_id":         said("The client's name for it."),
	"waiting":                 said("Whether it waits outside the book for its trigger."),
	"order_type":              said("Type, if it has instructions."),
	"time_in_force":           said("How long it stays, if it has instructions."),
	"expires":                 said("When it ends."),
	"post_only":               said("It is never the taker."),
	"display_amount":          said("Amount that the book shows at once."),
	"trigger_price":           said("Price of its trigger."),
	"trigger_when":            said("Direction of its trigger."),
	"oco_trigger_price":       said("Price of the other trigger."),
	"oco_price":               said("Limit that counts after the other trigger."),
	"openOrdersAnswer.orders": said("The page."),
	"openOrdersAnswer.next":   said("Id of the last order, if more may follow it."),
	"openOrdersAnswer.after":  said("Of all accounts' orders, the account behind which to go on."),
	"keySwitchAnswer.key":     said("Key that armed it."),
	"seconds":                 said("Time without a sign of life after which it cancels."),
	"due":                     said("When it cancels; \"\": when the key's last session ends."),
	"session":                 said("Whether the key's sessions armed it, and not its calls."),
	"keySwitchAnswer.pair":    said("Only orders of this pair."),
	"keySwitchAnswer.type":    said("Only orders that do this."),
	"client_order_id_prefix":  said("Only orders whose name begins so."),
	"switchesAnswer.switches": said("The switches."),
	"pairsAnswer.pairs":       said("The pairs."),
	"price_precision":         said("Decimals of prices."),
	"amount_precision":        said("Decimals of amounts."),
	"price_tick":              said("Prices are multiples of this."),
	"amount_step":             said("Amounts are multiples of this."),
	"minimum_order_size":      said("Least amount."),
	"maximum_order_size":      said("Largest amount."),
	"minimum_order_value":     said("Least value, in the second currency."),
	"price_band":              said("Fraction of the last price that an order may be off; 0: any."),
	"last":                    said("Price of the last trade; 0: there was none."),
	"pairAnswer.open_orders":  said("Number of open orders."),
	"pairAnswer.halted":       said("Whether orders are refused, and cancels taken."),
	"since": said("Since when; \"\": it is not so, or that is not known any " +
		"more."),
	"maker":                  said("Fraction that the maker pays."),
	"taker":                  said("Fraction that the taker pays."),
	"own":                    said("Whether these rates are the account's own."),
	"feesAnswer.pairs":       said("Usual rates; of the first page alone."),
	"feesAnswer.accounts":    said("Accounts with rates of their own."),
	"feesAnswer.next":        said("Id of the last account, if more may follow it."),
	"allAnswer.pairs":        said("State of each pair."),
	"cancelAllAnswer.orders": said("Ids of the orders that were cancelled."),
}

var stateFields = map[string]openapi.Field{
	"error": said("What was wrong, and what to do."),
	"damaged": said("Stored data do not fit together: trying again does " +
		"not help."),
	"failureAnswer.orders":           said("Ids of the orders that were cancelled all the same."),
	"version":                        said("Version of the program."),
	"commit":                         said("Commit of the program; \"\": not known."),
	"go":                             said("Version of Go."),
	"started":                        said("When the process started."),
	"uptime_seconds":                 said("Seconds since then."),
	"ready":                          said("Whether the exchange serves."),
	"store":                          said("The store."),
	"name":                           said("Name."),
	"storeSize.bytes":                said("Its size; null: it does not tell."),
	"statusAnswer.cluster":           said("Place in the cluster; null: there is one machine."),
	"statusAnswer.time":              said("Time of the newest record; \"\": there is none."),
	"statusAnswer.sequence":          said("Sequence of the newest record."),
	"projection_lag":                 said("What the projections lack."),
	"lag.records":                    said("Records."),
	"lag.rows":                       said("Rows."),
	"statusAnswer.snapshot":          said("The newest snapshot."),
	"lag_records":                    said("Records behind it."),
	"age_seconds":                    said("Its age in seconds."),
	"snapshot.bytes":                 said("Its size."),
	"statusAnswer.maintenance":       said("Maintenance."),
	"statusAnswer.halted":            said("Halted pairs."),
	"statusAnswer.frozen":            said("Frozen accounts."),
	"statusAnswer.held":              said("Accounts whose withdraws are held."),
	"closed_accounts":                said("Number of closed accounts."),
	"statusAnswer.pending_withdraws": said("Pending withdraws."),
	"statusAnswer.switches":          said("Number of armed dead man's switches."),
	"statusAnswer.open_orders":       said("Number of open orders."),
	"mails_waiting":                  said("Number of mails that are not sent yet."),
	"last_backup":                    said("The newest backup; null: none that is known."),
	"last_audit":                     said("The newest audit; null: none that is known."),
	"closedAll.on":                   said("Whether there is maintenance."),
	"someOf.accounts":                said("Their number."),
	"first":                          said("Names of the first of them."),
	"new":                            said("Number of those that wait for their code."),
	"verified":                       said("Number of those that wait for an operator."),
	"oldest":                         said("When the oldest was asked for; \"\": there is none."),
	"began":                          said("When it began."),
	"ended":                          said("When it ended."),
	"ok":                             said("Whether it was right."),
	"result":                         said("What came of it."),
	"totals":                         said("Sums over all accounts, by currency."),
	"deposited":                      said("Sum of deposits."),
	"withdrawn":                      said("Sum of approved withdraws."),
	"adjusted":                       said("Sum of corrections."),
	"balances":                       said("Sum of balances."),
	"reserved":                       said("The part that open orders and pending withdraws hold."),
	"actions":                        said("The actions."),
	"actionLine.sequence":            said("Sequence of the action's record."),
	"who":                            said("Operator."),
	"what":                           said("The action, for programs."),
	"words":                          said("The action, for people."),
	"applied":                        said("Options that have another value now."),
	"faults": said("Certificates and tokens that stay as they were, and " +
		"why."),
	"ReloadedOption.key": said("The option."),
	"before":             said("Its value before."),
	"after":              said("Its value now."),
	"origin":             said("Where the value comes from."),
}

var reportFields = map[string]openapi.Field{
	"at":                            said("Records that are replayed."),
	"of":                            said("All records."),
	"replayed_from":                 said("Sequence at which the replay began."),
	"auditAnswer.records":           said("Records that were replayed."),
	"auditAnswer.accounts":          said("Accounts that were compared."),
	"auditAnswer.open_orders":       said("Open orders that were compared."),
	"auditAnswer.pending_withdraws": said("Pending withdraws that were compared."),
	"projections_compared":          said("Projections that were compared."),
	"projections_changed_meanwhile": said("Projections that changed meanwhile, and were not."),
	"rows_compared":                 said("Rows of the history that were compared."),
	"rows_trimmed":                  said("Rows that are not kept any more."),
	"paused_ms":                     said("For how long trading paused, in milliseconds."),
	"differences":                   said("Differences, in words; empty: there are none."),
	"change":                        said("What changed, with its sign."),
	"statementLine.balance":         said("The balance after it."),
	"cause": {Text: "Why.", Enum: []any{"deposit", "withdraw", "adjustment", "trade", "fee",
		"fee income", "brought forward"}},
	"statementLine.id":   said("Id of the deposit, the withdraw or the trade."),
	"statementLine.pair": said("Pair of the trade."),
	"tradeLine.id":       said("Id of the trade."),
	"tradeLine.type":     said("What the taker did: sell or buy."),
	"taker_order":        said("Order that came second."),
	"maker_order":        said("Order that was there first."),
	"tradeLine.taker":    said("Account of the taker."),
	"tradeLine.maker":    said("Account of the maker."),
	"taker_fee":          said("Fee of the taker, in what it received."),
	"maker_fee":          said("Fee of the maker, in what it received."),
	"orderLine.status":   {Text: "State.", Enum: []any{"open", "cancelled", "done"}},
	"closed":             said("When it came to its end."),
	"cancel_reason":      said("Why the exchange cancelled it."),
	"client_id":          said("The client's name for it."),
	"rows":               said("Number of the rows."),
}

var clusterFields = map[string]openapi.Field{
	"node":   said("Name of the node."),
	"role":   said("What it does in the cluster; \"\": it is no member."),
	"leader": said("Node that leads; \"\": none is known."),
	"leader_url": said("Where clients reach the node that leads; \"\": not " +
		"known."),
	"term":                         said("Number of the reign."),
	"log_bytes":                    said("What the node's log takes on its disk."),
	"serves":                       said("Whether the node serves clients."),
	"elections":                    said("Elections that the node has begun since its start."),
	"clusterAnswer.applied":        said("Index of the newest entry that is applied."),
	"committed":                    said("Index of the newest entry that a majority has."),
	"folded":                       said("Newest sequence that is folded."),
	"format":                       said("Newest format that may be written."),
	"clusterAnswer.change":         said("Change of the members that is under way; \"\": none."),
	"fault":                        said("Why the node cannot serve; \"\": it can."),
	"clusterAnswer.config_differs": said("Options in which its file differs from what is applied."),
	"clock_ahead_ms":               said("Its clock less the median of all, in milliseconds."),
	"clock_wrong":                  said("Whether that is too much for it to lead."),
	"tick_ms":                      said("Length of a tick in milliseconds."),
	"nodes":                        said("All nodes, in the order of their names."),
	"replaces":                     said("Voter whose place it comes to take; \"\": none."),
	"match":                        said("Index up to which it has the log; null: not known."),
	"lag":                          said("Entries that it lacks; null: not known."),
	"silent_ticks":                 said("Ticks since it was heard of; null: not known."),
	"reads":                        said("Newest format that its program reads; null: not known."),
	"nodeAnswer.config_differs": said("Whether its file differs from what is applied; null: not " +
		"known."),
	"hash":             said("SHA-256 of the state, in hexadecimal digits."),
	"from":             said("Node that led."),
	"to":               said("Node that leads; \"\": none is known."),
	"applyAnswer.keys": said("Options that differ from the ones before."),
	"done":             said("Whether the change is complete."),
	"says":             said("What is still to come, or what was done."),
}
