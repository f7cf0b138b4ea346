// Package spec is a naive specification of the exchange, the tests' reference. An Exchange applies
// the journal's records one by one, and checks whether each may follow those before it; or it
// decides the outcome of an accepted command itself. It is written to be obviously correct: a book
// is a sorted list, money is a big integer, and a reserve is summed from open orders and pending
// withdrawals each time. It shares with the checked code only names (packages event, money and
// trading). A Market, without money and records, and a Book, without triggers, may be used alone.
//
// Tests import it, and packages that only tests use: nothing of the program does.
//
//	exchange.go     the exchange, one record after the other, checked or decided
//	accounts.go     accounts, keys and their nonces
//	book.go         one pair's book: price-time priority, and matching
//	market.go       a book with triggers, last price and band: the outcome of an order
//	trading.go      records of orders, cancels, trades, fees    amend.go  changes of open orders
//	switches.go     dead man's switches, and accounts' settings
//	funds.go        balances, reserves, deposits; money is conserved
//	withdrawals.go  withdrawals and their codes    mails.go  the mails to be sent
//	tending.go      e-mail addresses, and accounts that are closed
//	versions.go     accounts and pairs after each record
//	history.go      trades, closed orders, candles
package spec
