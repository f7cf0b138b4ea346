// Package ledger derives the effects of a journal record on wallets.
//
// Settle turns a record into settlements, exactly one for each account that it touches. A
// settlement holds all the record's effects on its account: credits and debits, reserves and
// releases, and closed orders. Both sides of the exchange use it. The committed state applies
// settlements to its wallets when it folds a record; wallet actors apply the same ones when the
// record is released. A record can only move money between accounts, or bring in a deposit. Settle
// cannot express any other change, so it cannot create money.
//
// The package also holds the other parts of a wallet, for both sides: OpenOrders, the ids of an
// account's open orders, and ClientIDs, their client_order_ids. Only the wallet uses OpenTerms.
//
//	wallet.go      holdings, and one change of them
//	settle.go      a record's settlements
//	special.go     those of orders with instructions; the money that an amend needs
//	orders.go      OpenOrders
//	terms.go       OpenTerms: open orders with their prices and amounts
//	client_ids.go  ClientIDs
package ledger
