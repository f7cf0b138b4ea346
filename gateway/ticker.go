package gateway

import (
	"errors"
	"exchange/actors"
	"exchange/actors/directory"
	"exchange/core/market"
	"exchange/core/money"
	"exchange/gateway/encode"
	"exchange/persistence"
	"slices"
	"strconv"
)

// A tickerList is the answer for all pairs, as long as none of their tickers has changed.
type tickerList struct {
	views []*actors.View
	body  []byte
}

func (g *Gateway) ticker(r *request) {
	number := r.pair()
	if r.badFields() {
		return
	}
	views := make([]*actors.View, 0, 16)
	for _, p := range r.engine.Pairs() {
		if number != 0 && p.Number != number {
			continue
		}
		v, err := r.engine.View(actors.ReadTicker, p, 0, 0, 0)
		if err != nil {
			r.viewFailed(err)
			return
		}
		if number != 0 {
			r.shared = v.Body(func(v *actors.View) []byte {
				return append(encode.Ticker([]byte{'['}, p.Name, &v.Ticker), ']')
			})
			return
		}
		views = append(views, v)
	}
	list := g.tickers.Load()
	if list == nil || !slices.Equal(list.views, views) {
		list = newTickerList(r.engine.Pairs(), views)
		g.tickers.Store(list)
	}
	r.shared = list.body
}

func newTickerList(pairs []*directory.Pair, views []*actors.View) *tickerList {
	b := []byte{'['}
	for i, p := range pairs {
		if i > 0 {
			b = append(b, ',')
		}
		b = encode.Ticker(b, p.Name, &views[i].Ticker)
	}
	return &tickerList{views, append(b, ']')}
}

// What stands around a list.
var listBegin, listEnd = []byte{'['}, []byte{']'}

// Limits of charts.
const (
	defaultCandles = 720
	maxCandles     = 2000
)

// chart answers with candles, newest first.
func (g *Gateway) chart(r *request) {
	name, _ := r.ctx.UserValue("pair").(string)
	text, _ := r.ctx.UserValue("timeframe").(string)
	pair := r.engine.Pair([]byte(name))
	frame, known := market.ParseFrame(text)
	if pair == nil || !known {
		r.fail(NotFound, "")
		return
	}
	limit := r.limit("limit", defaultCandles, maxCandles)
	since, until := r.moment("since", true, 0), r.moment("until", false, noMoment)
	if r.badFields() {
		return
	}
	since = firstStart(frame, since)
	v, err := r.engine.View(actors.ReadCandles, pair, frame, 0, 0)
	if err != nil {
		r.viewFailed(err)
		return
	}
	from, to := candlesWithin(v.Candles, since, until, limit)
	list := v.Candles[from:to]
	// to the store, until 0 is no bound
	if len(list) < limit && v.Older && since < v.Candles[0].Time && since <= until && until > 0 {
		r.olderCandles(list, persistence.CandleQuery{Pair: pair.Number, Frame: uint8(frame),
			Since: since, Until: min(until, v.Candles[0].Time-1)}, limit)
		return
	}
	n := len(v.Candles)
	entries := v.Part(0, n-to, n-from, func(b []byte, i int) []byte {
		return appendCandle(b, &v.Candles[n-1-i])
	})
	r.parts = append(r.parts, listBegin, entries, listEnd)
}

// noMoment is later than any candle.
const noMoment = 1 << 60

// firstStart is the first moment from since on at which a period starts: there are no candles
// before it.
func firstStart(f market.Frame, since int64) int64 {
	if start := f.Start(since * 1_000_000); start < since {
		return start + f.Seconds()
	}
	return since
}

// moment is a time in whole seconds: of a fraction the next one (up) or the one before. One that is
// too large for a number is as if it was not there.
func (r *request) moment(name string, up bool, unset int64) int64 {
	p, ok := r.query.Get(name)
	if !ok {
		return unset
	}
	v, err := money.ParsePrice(p.Value)
	if errors.Is(err, money.ErrRange) { // clients send milliseconds, too
		return unset
	}
	if err != nil {
		r.bad(name, err.Error()+" It is a time in seconds since 1970.")
		return unset
	}
	const second = money.Price(money.MaxRate)
	n, rest := int64(v/second), v%second
	if up && rest > 0 {
		n++
	}
	return n
}

// candlesWithin is where the newest candles within a range are. Times are inclusive. All that is
// empty is one place.
func candlesWithin(all []market.Candle, since, until int64, limit int) (from, to int) {
	to = len(all)
	for to > 0 && all[to-1].Time > until {
		to--
	}
	from = to
	for from > 0 && to-from < limit && all[from-1].Time >= since {
		from--
	}
	if from == to {
		return 0, 0
	}
	return from, to
}

// olderCandles answers with what memory has and what the history has before it.
func (r *request) olderCandles(newer []market.Candle, q persistence.CandleQuery, limit int) {
	barrier := actors.NewRead(actors.ReadHistory)
	if !r.ask(barrier, nil) {
		return
	}
	barrier.Free()
	ctx, cancel := r.storeContext()
	defer cancel()
	b, n := appendCandles(append(r.body, '['), newer), len(newer)
	err := r.engine.History().Candles(ctx, q, func(c *persistence.Candle) bool {
		if n > 0 {
			b = append(b, ',')
		}
		b = appendCandle(b, &market.Candle{Time: c.Time, Open: c.Open, High: c.High, Low: c.Low,
			Close: c.Close, Volume: c.Volume})
		n++
		return n < limit
	})
	if r.body = append(b, ']'); err != nil {
		r.storeFailed(err)
	}
}

// appendCandles writes candles, newest first.
func appendCandles(b []byte, list []market.Candle) []byte {
	for i := len(list) - 1; i >= 0; i-- {
		if i < len(list)-1 {
			b = append(b, ',')
		}
		b = appendCandle(b, &list[i])
	}
	return b
}

func appendCandle(b []byte, c *market.Candle) []byte {
	b = strconv.AppendInt(append(b, `{"time":`...), c.Time, 10)
	b = c.Open.Append(append(b, `,"open":`...))
	b = c.High.Append(append(b, `,"high":`...))
	b = c.Low.Append(append(b, `,"low":`...))
	b = c.Close.Append(append(b, `,"close":`...))
	b = c.Volume.Append(append(b, `,"volume":`...))
	return append(b, '}')
}
