package conformance

import (
	"slices"

	"exchange/core/money"
	"exchange/persistence"
)

// candle returns one with plain values.
func candle(pair uint16, frame uint8, time int64) persistence.Candle {
	p := money.Price(5_000_000_000_000 + time%1000*100_000_000)
	return persistence.Candle{Pair: pair, Frame: frame, Time: time, Open: p, High: p + 2e8,
		Low: p - 3e8, Close: p + 1e8, Volume: money.Amount(1 + time).Total()}
}

func (w *world) candles(q persistence.CandleQuery) []persistence.Candle {
	w.Helper()
	var all []persistence.Candle
	w.must(w.s.Candles(w.ctx, q, func(c *persistence.Candle) bool {
		all = append(all, *c)
		return true
	}))
	return all
}

// wantCandles wants at least the candles that retention keeps, and none that the model lacks.
func (w *world) wantCandles(q persistence.CandleQuery, m *model) {
	w.Helper()
	got, least, all := w.candles(q), m.candlesOf(q, m.keep.Candles), m.candlesOf(q, 0)
	if len(got) < len(least) || len(got) > len(all) || !slices.Equal(got, all[:len(got)]) {
		w.Fatalf("%+v answers %s, want at least %s of %s", q, ids(got, candleID),
			ids(least, candleID), ids(all, candleID))
	}
}

func (w *world) candleRetention() {
	const limit = 50
	keep := persistence.Retention{Candles: limit}
	w.open(keep)
	m := &model{keep: keep}
	q := persistence.CandleQuery{Pair: 1, Frame: 1}
	for time := range int64(10 * limit) {
		// Each period is written while it lasts and once more after its end.
		writes := persistence.Writes{Candles: []persistence.Candle{candle(1, 1, time),
			candle(1, 1, max(time-1, 0)), candle(1, 2, time/20)}}
		w.apply(1, &writes)
		m.add(&writes)
		w.wantCandles(q, m)
	}
	if got := w.candles(q); len(got) > 2*limit {
		w.Fatalf("%d candles are kept, want about %d", len(got), limit)
	}
	w.wantCandles(persistence.CandleQuery{Pair: 1, Frame: 2}, m)
	// One older than all stored ones does not evict a newer one.
	w.apply(1, &persistence.Writes{Candles: []persistence.Candle{candle(1, 1, 1)}})
	w.wantCandles(q, m)
	// Many at once.
	var writes persistence.Writes
	for time := range int64(3 * limit) {
		writes.Candles = append(writes.Candles, candle(1, 1, 10*limit+3*limit-time))
	}
	w.apply(1, &writes)
	m.add(&writes)
	w.wantCandles(q, m)
	w.again(keep)
	w.wantCandles(q, m)
	// Turned off again.
	m.keep = persistence.Retention{}
	w.again(m.keep)
	n := len(w.candles(q))
	w.apply(1, &persistence.Writes{Candles: []persistence.Candle{candle(1, 1, 100_000)}})
	if got := len(w.candles(q)); got != n+1 {
		w.Fatalf("%d candles, want %d", got, n+1)
	}
}
