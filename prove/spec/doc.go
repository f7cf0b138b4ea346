// Package spec is the exchange told naively: what the tests take for right. An Exchange takes the
// journal's records one after the other, and says whether a record may follow those before it and
// what the exchange is after it; or it decides itself what an accepted command comes to. It is
// written to be right by looking at it: a book is a sorted list, money is a big integer, and a
// reserve is added up anew from open orders and pending withdrawals. It shares no code with what it
// checks but the names of things (packages event, money and trading). A Market, which knows nothing
// of money and of records, and a Book, which has no triggers, may be used alone.
//
// Tests import it, and packages that only tests use: nothing of the program does.
//
//	exchange.go     the exchange, one record after the other, checked or decided
//	accounts.go     accounts, keys and their nonces
//	book.go         one pair's book: price-time priority, and what a taker takes of it
//	market.go       a book with triggers, last price and band: what becomes of an order
//	trading.go      records of orders, cancels, trades, fees    amend.go  changes of open orders
//	switches.go     dead man's switches, and accounts' settings
//	funds.go        balances, reserves, deposits; money is conserved
//	withdrawals.go  withdrawals and their codes    mails.go  the mails to be sent
//	tending.go      e-mail addresses, and accounts that are closed
//	versions.go     accounts and pairs after each record
//	history.go      trades, closed orders, candles
package spec
