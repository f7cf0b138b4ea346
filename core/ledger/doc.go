// Package ledger derives the effects of a journal record on wallets.
//
// Settle turns a record into settlements, exactly one for each account that it touches. A
// settlement has all the record's effects on its account: credits and debits, reserves and
// releases, and closed orders. Both sides of the exchange use it. The committed state applies
// settlements to its wallets when it folds a record, and the wallet actors apply the same ones when
// the record is released. A record can only move money between accounts, or bring in a deposit.
// Settle has no other way to express a change, so money cannot be made.
//
// The package also has the other parts of a wallet, for both sides. OpenOrders has the ids of an
// account's open orders, and ClientIDs their client_order_ids. OpenTerms is for the wallet alone.
//
//	wallet.go      holdings, and one change of them
//	settle.go      a record's settlements
//	special.go     those of orders with instructions; the money that an amend needs
//	orders.go      OpenOrders
//	terms.go       OpenTerms: open orders with their prices and amounts
//	client_ids.go  ClientIDs
package ledger
