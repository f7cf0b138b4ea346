// Package market keeps what the public sees of one pair beside its book: the depth counter, the
// depth itself in the two forms that are shown, the newest candles, and the ticker. It is part of
// the committed fold: it learns of the world through records only.
//
// # Life cycle
//
// The fold tells a Market of each record of its pair, in their order, after the book has it:
//
//	var m market.Market                        // a pair without history
//	m.Order(r)                                 // an accepted order; or m.Cancel(r)
//	for _, t := range r.Order.Trades {
//		m.Trade(r.TimeUs, t.Price, t.Amount)   // each trade, in its order
//	}
//	m.Best(r.TimeUs, buy, sell)                // the book's best prices now
//
// Whoever reads copies: Levels and Orders into a Depth, Candle and Ticker as values. A Market has
// no clock, so Ticker is told the time: the window moves on when nothing happens.
//
// Only the newest candle of each frame is here. Candle after the trades of a record shows each
// frame's candle as the record left it; whoever stores that under its frame and Time, over what was
// there, has the whole history. All trades of a record have one time, so no candle comes and goes
// unseen.
//
// A snapshot is AppendTo; Decode makes an equal Market of it: equal in everything that its methods
// can show, now and after any further calls.
//
// # Rules
//
// Times are microseconds since the epoch and never fall. A frame's periods are aligned to UTC, each
// is whole minutes, and each lies within one period of every longer frame. A period without trades
// has no candle. Prices and amounts of trades are at least 1 unit; a price of 0 says "none".
//
// The ticker's window is the current UTC minute and the 1,439 before it, whole minutes always: it
// moves at minute boundaries only. So a ticker is a function of what happened and of the minute.
//
// # Memory and complexity
//
// What is kept is a candle for each minute with trades, of the window that ends at the newest
// trade, and the last price before them. That is enough for any later window, which ends later and
// so begins later too; and for the newest candle of every frame, as none is longer than the window.
// So an image holds these minutes only, and no two things in it can contradict each other.
//
// A minute takes 56 bytes: a pair that trades in every minute has 80 kB, one that never trades
// nothing. The memory of a busy day is kept for the next one. Trade and Candle are O(1), and Trade
// allocates only while there are more minutes than ever before. Ticker looks at each minute.
//
// A Market belongs to one goroutine at a time, reads included. A broken promise of the caller
// panics with "BUG:" before anything has changed.
package market
