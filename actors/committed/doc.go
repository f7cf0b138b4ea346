// Package committed is the committed side of the engine: one fold of all released records, and all
// that is fed from it. It answers reads and lists at one sequence, makes the views that everybody
// asks for, tells stream channels what is released, and writes projections and snapshots. It knows
// no wallet, no book and no command.
//
//	recover.go     from the store to the fold
//	committed.go   the fold, its messages, what the store does not know yet
//	door.go        the way in for reads: places, limits, waits
//	read.go        one question, and its answer from the state
//	views.go       public answers, shared
//	feed.go        what stream channels are told
//	charts.go      the newest candles
//	recent.go      the newest trades and closed orders
//	imager.go      a second fold, which makes images
//	projector.go   the writer of projections and snapshots
//	references.go  which deposit has a reference
//	history.go     the store's lists, with damage counted
//	testing.go     what tests of package actors need
package committed
