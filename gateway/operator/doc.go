// Package operator answers the operator's requests: accounts, keys and deposits, trading and its
// halts, withdrawals, and reports. Its clients are the commands of the exchange program and
// operators' scripts. The listener belongs to package edge, which also bounds bodies, counts
// requests and logs failures. This package checks by token or user whether a client may operate,
// and runs the handler.
//
//	server.go      admission, a handler's errors
//	relay.go       a follower relays requests to the leader
//	token.go       bearer tokens, and the limit on wrong ones
//	request.go     one request: its body, its query, its account
//	answer.go      answers and failures
//	accounts.go    accounts, keys, deposits
//	adjustments.go corrections of accounts
//	orders.go      open orders, and dead man's switches
//	status.go      the state of the exchange on one page; sums over all accounts
//	markets.go     current pairs and fees
//	trading.go     halts, maintenance, cancels, fees
//	withdrawals.go withdrawals: lists and decisions
//	reports.go     the log of actions, the audit, backups
//	exports.go     all trades, orders, deposits, withdrawals, balances
//	tasks.go       the last backup and the last audit
//	statement.go   an account's statement
//	cluster.go     the nodes that share a journal
//	reload.go      reload of a process's configuration
//	members.go     membership of the cluster
//	routes.go      the groups of routes, and the document of them, as OpenAPI
//	words.go       texts and bounds shared by several types
//	refusals.go    the document's examples of refusals
//	lines.go       long answers, which are streamed line by line
//	testing.go     for tests of other packages
package operator
