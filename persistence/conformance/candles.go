package conformance

import (
	"math"
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

func (w *world) candleReplaced() {
	w.open(persistence.Retention{})
	q := persistence.CandleQuery{Pair: 1, Frame: 2}
	want := func(list ...persistence.Candle) {
		w.Helper()
		if got := w.candles(q); !slices.Equal(got, list) {
			w.Fatalf("candles are %+v, want %+v", got, list)
		}
	}
	put := func(list ...persistence.Candle) { w.apply(1, &persistence.Writes{Candles: list}) }
	a, b, c, d := candle(1, 2, 60), candle(1, 2, 120), candle(1, 2, 180), candle(1, 2, 240)
	put(b)
	want(b)
	b.Close, b.Volume = b.Close+5, money.Amount(77).Total()
	put(b)
	want(b)
	first := b
	b.High, b.Close = 9e12, 8e12
	put(first, b) // the later of two
	want(b)
	b.Low, c.Open = 1, c.Low
	put(d, b) // the newest again, and a newer one
	want(d, b)
	put(c, a) // late ones, between and in front
	want(d, c, b, a)
	a.Volume, c.Volume = money.TotalFromBits(1, 2), money.TotalFromBits(3, 4)
	put(c)
	put(a)
	// other lists, and the first second of all
	put(candle(1, 3, 120), candle(2, 2, 120), candle(1, 2, 0))
	want(d, c, b, a, candle(1, 2, 0))
	w.again(persistence.Retention{})
	want(d, c, b, a, candle(1, 2, 0))
	q.Since, q.Until = 60, 180
	want(c, b, a)
	q.Since, q.Until = 61, 179
	want(b)
	q.Since, q.Until = 120, 120
	want(b)
	q.Since, q.Until = 121, 120
	want()
	q.Since, q.Until = -100, -1
	want()
	q.Since, q.Until = -100, math.MaxInt64
	want(d, c, b, a, candle(1, 2, 0))
	q.Since, q.Until = 240, 0
	want(d)
	q.Since, q.Until = math.MaxInt64, 0
	want()
}

func (w *world) candleRetention() {
	const limit = 50
	keep := persistence.Retention{Candles: limit}
	w.open(keep)
	m := &model{keep: keep}
	q := persistence.CandleQuery{Pair: 1, Frame: 1}
	for time := range int64(10 * limit) {
		// Each period is written while it lasts and once more behind its end.
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
	// One that is older than all that are kept does not push a newer one out.
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
