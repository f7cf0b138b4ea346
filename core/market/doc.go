// Package market keeps the public values of one pair beside its book. They are the depth counter,
// the depth in its two public forms, the newest candles, and the ticker. It is part of the
// committed fold, and changes through records only.
//
// # Life cycle
//
// The fold passes a Market each record of its pair, in order, after the book applied it:
//
//	var m market.Market                        // a pair without history
//	for _, t := range r.Order.Trades {
//		m.Trade(r.TimeUs, t.Price, t.Amount)   // each trade, in its order
//	}
//	m.Changed(r.TimeUs)                        // it traded, or changed the displayed book
//	m.Best(r.TimeUs, buy, sell)                // the book's best prices now
//
// Readers get copies: Levels and Orders fill a Depth, Candle and Ticker return values. A Market has
// no clock. The caller passes the time to Ticker, because the window moves even without trades.
//
// A Market keeps only the newest candle of each frame. After the trades of a record, Candle returns
// each frame's candle as the record left it. A caller that stores each candle under its frame and
// Time, over an earlier one, has the whole history. All trades of a record have one time, so no
// candle is missed.
//
// AppendTo writes a snapshot, and Read restores an equal Market: its methods give the same results,
// now and after any further calls.
//
// # Rules
//
// Times are microseconds since the epoch and never fall. A frame's periods are aligned to UTC, each
// is whole minutes, and each lies within one period of every longer frame. A period without trades
// has no candle. Prices and amounts of trades are at least 1 unit; a price of 0 means "none".
//
// The ticker's window is the current UTC minute and the 1,439 before it, always whole minutes. It
// moves at minute boundaries only. So a ticker is a function of the trades and of the minute.
//
// # Memory and complexity
//
// A Market keeps a candle for each minute with trades, of the window that ends at the newest trade,
// and the last price before them. That is enough for any later window, which also begins later. It
// is enough for the newest candle of every frame, because no frame is longer than the window. So an
// image holds these minutes only, and no two parts of it can contradict each other.
//
// A minute takes 56 bytes: a pair that trades in every minute has 80 kB, one that never trades
// nothing. The memory of a busy day is kept for the next one. Trade and Candle are O(1), and Trade
// allocates only while there are more minutes than ever before. Ticker visits each minute.
//
// A Market belongs to one goroutine at a time, reads included. A violated precondition panics with
// "BUG:" before any change.
//
//	market.go   a Market, the depth counter, copies of the depth
//	candles.go  timeframes, the newest candles, the minutes of the window
//	ring.go     the queue of minutes
//	ticker.go   best prices and the ticker
//	image.go    a market as bytes
package market
