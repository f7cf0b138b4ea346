// Package simulation has what an exchange is checked against in a simulation: a Model, which says
// of each record of the journal whether it may follow on those before it, and what the exchange is
// after it.
//
// It is the sequential specification, written to be right by looking at it: a book is a sorted
// list, money is a big integer, what is reserved is added up anew from open orders and pending
// withdraws. It shares no code with what it checks but the names of things (event, money,
// trading.Side). The simulation itself, which drives the real engine, is in the tests of package
// actors.
//
//	model.go    records, one after the other      book.go    price-time priority
//	funds.go    balances, reserves, conservation  rows.go    the history that they give rise to
//	shrink.go   the shortest list of actions that still fails
package simulation
