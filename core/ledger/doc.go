// Package ledger says what a journal record does to wallets.
//
// Settle turns a record into settlements, exactly one for each account it touches, with all the
// record's effects on that account: what is credited and debited, reserved and released, and which
// of its orders closed. Both sides of the exchange use it: the committed state applies settlements
// to its wallets when it folds a record, and the wallet actors apply the same ones when the record
// is released. A record can only move money between accounts, or bring in a deposit: Settle has no
// other way to express a change, so money cannot be made.
//
// The package also has what a wallet keeps beside its holdings, in either place: OpenOrders, the
// ids of an account's open orders, and ClientIDs, which of its client_order_ids are taken.
package ledger
