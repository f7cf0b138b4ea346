// Package api is the public API without a transport. It has the table of operations, the fields and
// failures of each, and the handlers, which turn a Call into a command or a query to the engine and
// the result into an answer. It depends on neither HTTP nor sockets.
//
// An edge is a transport of the API; package edge is the one for HTTP. For each request an edge
// finds the operation in the table, does its transport's checks in the documented order, sets the
// Call's parameters, and runs the operation. Then it sends the answer: Status with Body or, for a
// large answer, a Large, which the edge must close. So an order means the same over each transport.
//
//	call.go        Call: one use of an operation, its queries to the engine, its failures
//	api.go         API: the shared state of one engine's answers
//	operations.go  Operation, the table of operations, and the probes
//	failure.go     every way to fail, and the failure for an error of the engine
//	login.go       the answers to a socket that logs in
//	field.go       parameters of queries, texts of bad fields
//	text.go        large and shared answers: texts, pieces, and their Budget
//	packing.go     gzip of large public answers
//	encode.go      rows in JSON, written with encode/
//	info.go        the time, and all rules and limits
//	market.go      pairs, currencies, books, trades
//	ticker.go      tickers and charts
//	account.go     lists of the account's own orders and trades
//	own.go         rows of those lists, shared with the event stream
//	orders.go      placing and cancelling
//	instructions.go  parameters of orders that are not plain limit orders
//	special.go     orders with instructions: their rules
//	worst.go       the price of a market order
//	special_answer.go  the fields of answers about orders with instructions
//	amend.go       changing an open order
//	batch.go      several orders, changes and cancels in one call
//	derive.go     extracts a call's commands without sending them
//	trial.go       testing an order
//	settings.go    defaults of an account's orders
//	switches.go    the dead man's switch of a key
//	withdrawals.go    deposits, withdrawals and fees
//	version.go     the version of the program
//	testing.go     exports for tests of other packages
package api
