// Package committed is the committed side of the engine: one fold of all released records, and all
// derived from it. It answers typed questions and lists at one sequence, makes the shared public
// views, sends released changes to stream channels, and writes projections and snapshots. It has no
// access to wallets, matching or commands.
//
//	recover.go      from the store to the fold
//	committed.go    the fold, its messages, rows the store does not have yet
//	door.go         the entry for reads: slots, limits, questions, views
//	visit.go        one use of the door: its slots, its signature, its queries of the store
//	turns.go        concurrency limit for long store queries
//	read.go         one in-flight question to the fold
//	lists.go        pages of rows; deposits, operators' actions
//	orders.go       orders: open ones from the fold, closed ones from the store, merged
//	trades.go       trades
//	withdrawals.go  withdrawals
//	statement.go    an account's holdings, and everything that changed them
//	exports.go      all rows of all accounts
//	account.go      questions about accounts, and about the whole state
//	everywhere.go   operators' questions about all accounts and all pairs
//	views.go        public answers, shared
//	feed.go         pair changes for stream channels
//	status.go       halts and maintenance for stream channels
//	revocations.go  revoked keys, frozen and closed accounts
//	own.go          events of an account
//	own_buffer.go   recent account events, for clients that reconnect
//	charts.go       candles: the newest in memory, older ones from the store
//	recent.go       the newest trades and closed orders
//	imager.go       a second fold, for images
//	projector.go    the writer of projections and snapshots
//	references.go   deposits by reference
//	history.go      the store's lists, with damage counted
//	horizon.go      a remote history, which may be ahead of this fold
//	settings.go     account settings, and funds and limits for an order
//	workers.go      the actors and the projector goroutine
//	testing.go      helpers for tests of other packages
package committed
