// Package conformance is the one suite that every store must pass. It states the promises of a
// store, so that callers do not depend on the kind of store.
//
//	conformance.go  the suite, and the world of one test
//	journal.go      owners, appends, reads, trims
//	begin.go        a journal that begins late, after a restore
//	snapshots.go    images
//	projections.go  Apply, its watermark, wallets and nonces
//	trades.go       lists of trades
//	orders.go       lists of closed orders
//	client_ids.go   the index of client ids
//	funds.go        deposits and withdrawals
//	references.go   the index of deposits' references
//	candles.go      charts
//	actions.go      the log of actions
//	model.go        the obvious store, and random rows
//	compare.go      every query against the model
//	cut.go          an Apply that a crash has interrupted
//	together.go     concurrent readers and writers
package conformance
