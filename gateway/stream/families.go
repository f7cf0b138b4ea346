package stream

import (
	"exchange/actors/committed"
	"exchange/core/market"
	"exchange/gateway/socketio"
)

// A family is a kind of channel.
type family uint8

const (
	ticker family = iota
	diff
	trades
	top // orderbook.20
	book
	depth
	full // trades.full
	bbo
	// of the shortest timeframe; there is one family for each, in their order
	candles
	// one channel, which belongs to no pair
	status   = candles + market.FrameCount
	families = status + 1
)

// A kind contains the common properties of a family's channels.
type kind struct {
	// name of the channels of all pairs; followed by a dot and a pair, of one pair. book has none,
	// and status only this one
	plain string
	event string // name of the events; for book that of the channel
	// treatment of events for a slow subscriber: only the newest state is kept, a whole book may
	// replace differences, and trades and orders are never dropped
	policy     socketio.Policy
	stateFirst bool // the first event of each new subscriber is the state
	soon       bool // events may be delayed to share a write with other channels
	text       bool // prices and amounts of levels are text, and batches have a checksum
	// a channel's request to the committed actor, without its pair
	watch committed.Watch
}

// bookPrefix followed by a pair is the name of the channel and of its events.
const bookPrefix = "book_"

var kinds = withCandles([families]kind{
	ticker: {plain: "ticker", event: "ticker", policy: socketio.Latest, stateFirst: true,
		soon:  true,
		watch: committed.Watch{Kind: committed.WatchChanges, View: committed.WatchTicker}},
	diff: {plain: "diff", event: "depth.diff", policy: socketio.Resync, stateFirst: true,
		watch: committed.Watch{Kind: committed.WatchLevels, View: committed.WatchBook,
			Levels: -1}},
	trades: {plain: "trades", event: "trades", policy: socketio.Keep,
		watch: committed.Watch{Kind: committed.WatchUpdates}},
	top: {plain: "orderbook.20", event: "orderbook.20", policy: socketio.Latest, stateFirst: true,
		soon: true,
		watch: committed.Watch{Kind: committed.WatchChanges, View: committed.WatchBook,
			Levels: shownTop}},
	book: {policy: socketio.Keep, watch: committed.Watch{Kind: committed.WatchUpdates}},
	depth: {plain: "depth", event: "depth", policy: socketio.Resync, stateFirst: true, text: true,
		watch: committed.Watch{Kind: committed.WatchDepth, View: committed.WatchBook,
			Levels: -1}},
	full: {plain: "trades.full", event: "trades.full", policy: socketio.Keep,
		watch: committed.Watch{Kind: committed.WatchUpdates}},
	bbo: {plain: "bbo", event: "bbo", policy: socketio.Latest, stateFirst: true,
		watch: committed.Watch{Kind: committed.WatchBest, View: committed.WatchTop}},
	status: {plain: "status", event: "status", policy: socketio.Keep, stateFirst: true,
		watch: committed.Watch{Kind: committed.WatchStatus}},
})

func withCandles(list [families]kind) [families]kind {
	for f := range market.Frame(market.FrameCount) {
		list[candles+family(f)] = kind{plain: "candles." + f.String(), event: "candles",
			policy: socketio.Latest, stateFirst: true, soon: true,
			watch: committed.Watch{Kind: committed.WatchTrades, View: committed.WatchChart,
				Frame: f}}
	}
	return list
}

// isState reports whether each event is a whole state.
func (k *kind) isState() bool { return k.policy == socketio.Latest }

// hasCandles reports whether the events are candles.
func (k *kind) hasCandles() bool { return k.watch.View == committed.WatchChart }

// label names a family in counts; candles of all timeframes have one name.
func (f family) label() string {
	switch k := &kinds[f]; {
	case f == book:
		return "book"
	case k.hasCandles():
		return k.event
	default:
		return k.plain
	}
}
