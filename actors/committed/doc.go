// Package committed is the committed side of the engine: one fold of all released records, and all
// that is fed from it. It answers typed questions and lists at one sequence, makes the views that
// all clients share, tells stream channels what is released, and writes projections and snapshots.
// It knows no wallet, no book and no command.
//
//	recover.go      from the store to the fold
//	committed.go    the fold, its messages, what the store does not know yet
//	door.go         the way in for reads: slots, limits, questions, views
//	visit.go        one use of the door: its slots, its signature, its queries of the store
//	turns.go        how many long queries of the store work at once
//	read.go         a question on its way to the fold and back
//	lists.go        pages of rows; deposits, operators' actions
//	orders.go       orders: open ones from the fold, closed ones from the store, merged
//	trades.go       trades
//	withdrawals.go  withdrawals
//	statement.go    what an account has, and all that changed it
//	exports.go      all rows of all accounts
//	account.go      questions about accounts, and about the whole state
//	everywhere.go   operators' questions about all accounts and all pairs
//	views.go        public answers, shared
//	feed.go         what stream channels are told
//	status.go       what they are told of halts and maintenance
//	ends.go         the ends of keys, and freezes
//	own.go          what happens to an account
//	own_buffer.go   and what of it is kept for clients that come back
//	charts.go       candles: the newest in memory, older ones from the store
//	recent.go       the newest trades and closed orders
//	imager.go       a second fold, which makes images
//	projector.go    the writer of projections and snapshots
//	references.go   which deposit has a reference
//	history.go      the store's lists, with damage counted
//	horizon.go      a history that another process keeps, and that may be ahead
//	settings.go     what an account has set, and what it has for an order
//	workers.go      its actors, and the goroutine that writes
//	testing.go      what tests of other rooms need
package committed
