// Package api is the public API without a transport. It has the table of operations, the fields and
// failures of each, and the handlers, which turn a Call into a command or a query to the engine and
// the result into an answer. It depends on neither HTTP nor sockets.
//
// An edge is a transport of the API; package gateway is the edge of HTTP. For each request an edge
// finds the operation in the table, does its transport's checks in the documented order, gives the
// Call its parameters, and runs it. Then it sends the answer: Status with Body, or a Large one,
// which it closes. So an order means the same over each transport.
//
//	call.go        Call: one use of an operation, its queries to the engine, its failures
//	api.go         API: the shared state of one engine's answers
//	operations.go  Operation, the table of all, and the state of the service
//	failure.go     every way to fail, and the failure for an error of the engine
//	login.go       the answers to a socket that logs in
//	field.go       parameters of queries, texts of bad fields
//	text.go        large and shared answers: texts, pieces, and their Budget
//	packing.go     large public answers for clients that take gzip
//	encode.go      rows in JSON, written with encode/
//	info.go        the time, and all rules and limits
//	market.go      pairs, currencies, books, trades
//	ticker.go      tickers and charts
//	account.go     lists of an account's own
//	own.go         their rows, shared with the event stream
//	orders.go      placing and cancelling
//	instructions.go  parameters that make an order more than a plain one
//	special.go     orders with instructions: their rules
//	worst.go       the price of a market order
//	special_answer.go  the fields of answers about orders with instructions
//	amend.go       changing an open order
//	batch.go      several orders, changes and cancels in one call
//	derive.go     the commands of a call, which are sent elsewhere
//	trial.go       testing an order
//	settings.go    defaults of an account's orders
//	switches.go    the dead man's switch of a key
//	withdrawals.go    deposits, withdrawals and fees
//	version.go     the version of the program
//	testing.go     exports for tests of other packages
package api
