// Package api is the public API without a transport: its table of operations, the fields and
// failures of each, and the handlers that turn a Call into a command or a question to the engine
// and the engine's word into an answer. It knows neither HTTP nor sockets.
//
// An edge is a transport of the API; package gateway is the edge of HTTP. For each request an edge
// finds the operation in the table, checks what its transport needs and in the order that its
// clients know, gives the Call its parameters, and runs it. Then it sends the answer: Status with
// Body, or a Large one, which it closes. So an order means the same over each transport.
//
//	call.go        Call: one use of an operation, its questions to the engine, its failures
//	api.go         API: what answers of one engine share
//	operations.go  Operation, the table of all, and the state of the service
//	failure.go     every way to fail, and the failure for an error of the engine
//	login.go       the answers to a socket that logs in
//	field.go       parameters of questions, texts of bad fields
//	text.go        large and shared answers: texts, pieces, and their Budget
//	packing.go     large public answers for clients that take gzip
//	encode.go      rows in JSON, written with encode/
//	info.go        the time, and all rules and limits that hold
//	market.go      pairs, currencies, books, trades
//	ticker.go      tickers and charts
//	account.go     lists of an account's own
//	own.go         their rows, which the event stream has, too
//	orders.go      placing and cancelling
//	instructions.go  parameters that make an order more than a plain one
//	special.go     orders with instructions: their rules
//	worst.go       the price of a market order
//	special_answer.go  the fields of answers about orders with instructions
//	amend.go       changing an open order
//	batch.go      several orders, changes and cancels in one call
//	derive.go     the commands of a call, which are sent elsewhere
//	trial.go       testing an order
//	settings.go    what an account's orders do that say nothing about it
//	switches.go    the dead man's switch of a key
//	withdrawals.go    deposits, withdrawals and fees
//	version.go     the version of the program
//	testing.go     exports for tests of other packages
package api
