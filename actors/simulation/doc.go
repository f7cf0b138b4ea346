// Package simulation has the model that the simulation checks an exchange against. The Model takes
// the journal's records one after the other. It says whether a record may follow those before it,
// and what the exchange is after it.
//
// It is the sequential specification, written to be right by looking at it: a book is a sorted
// list, money is a big integer, and a reserve is added up anew from open orders and pending
// withdrawals. It shares no code with what it checks but the names of things (event, money,
// trading.Side). The simulation itself, which drives the real engine, is in the tests of package
// actors.
//
//	model.go        the exchange, one record after the other
//	accounts.go     accounts, keys and their nonces
//	trading.go      pairs, orders, cancels, trades and fees    book.go    price-time priority
//	bands.go        the last price, and how far from it a price may be
//	special.go      orders with instructions, and expiries    taker.go  what such an order takes
//	stops.go        orders that wait for a trigger            amend.go  changes of open orders
//	switches.go     dead man's switches, and accounts' settings
//	funds.go        balances, reserves, deposits; money is conserved
//	withdrawals.go  withdrawals, their codes and mails
//	tending.go      e-mail addresses, and accounts that are closed
//	versions.go     what each account was after each record    rows.go    the rows of the history
//	shrink.go       the shortest list of actions that still fails
package simulation
