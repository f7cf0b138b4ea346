package api

import (
	"errors"
	"exchange/actors/committed"
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
	views []*committed.View
	text  *text
}

func (c *Call) ticker() {
	number := c.pair()
	if c.badFields() {
		return
	}
	views := make([]*committed.View, 0, 16)
	for _, p := range c.engine.Pairs() {
		if number != 0 && p.Number != number {
			continue
		}
		v, err := c.engine.View(committed.ReadTicker, p, 0, 0, 0)
		if err != nil {
			c.viewFailed(err)
			return
		}
		if number != 0 {
			c.pieces = append(c.pieces, shown(v).body(func() []byte {
				return append(encode.Ticker([]byte{'['}, p.Name, &v.Ticker), ']')
			}))
			return
		}
		views = append(views, v)
	}
	list := c.api.tickers.Load()
	if list == nil || !slices.Equal(list.views, views) {
		list = newTickerList(c.engine.Pairs(), views)
		c.api.tickers.Store(list)
	}
	c.pieces = append(c.pieces, piece{list.text.json, list.text})
}

func newTickerList(pairs []*directory.Pair, views []*committed.View) *tickerList {
	b := []byte{'['}
	for i, p := range pairs {
		if i > 0 {
			b = append(b, ',')
		}
		b = encode.Ticker(b, p.Name, &views[i].Ticker)
	}
	return &tickerList{views, &text{json: append(b, ']')}}
}

// The texts around a list.
var listBegin, listEnd = piece{json: []byte{'['}}, piece{json: []byte{']'}}

// Limits of charts.
const (
	DefaultCandles = 720
	MaxCandles     = 2000
)

// chart answers with candles, newest first.
func (c *Call) chart() {
	pair := c.engine.Pair([]byte(c.Names.Pair))
	frame, known := market.ParseFrame(c.Names.Timeframe)
	if pair == nil || !known {
		c.Fail(NotFound, "")
		return
	}
	limit := c.limit("limit", DefaultCandles, MaxCandles)
	since, until := c.moment("since", true, 0), c.moment("until", false, noMoment)
	if c.badFields() {
		return
	}
	since = firstStart(frame, since)
	v, err := c.engine.View(committed.ReadCandles, pair, frame, 0, 0)
	if err != nil {
		c.viewFailed(err)
		return
	}
	from, to := candlesWithin(v.Candles, since, until, limit)
	list := v.Candles[from:to]
	// because an until of 0 is no bound to the store
	if len(list) < limit && v.Older && since < v.Candles[0].Time && since <= until && until > 0 {
		c.olderCandles(list, persistence.CandleQuery{Pair: pair.Number, Frame: uint8(frame),
			Since: since, Until: min(until, v.Candles[0].Time-1)}, limit)
		return
	}
	n := len(v.Candles)
	part := shown(v).part(0, n-to, n-from, func(b []byte, i int) []byte {
		return appendCandle(b, &v.Candles[n-1-i])
	})
	c.pieces = append(c.pieces, listBegin, part, listEnd)
}

// noMoment is later than any candle.
const noMoment = 1 << 60

// firstStart returns the first start of a period from since on. No candle within the range is
// before it.
func firstStart(f market.Frame, since int64) int64 {
	if start := f.Start(since * 1_000_000); start < since {
		return start + f.Seconds()
	}
	return since
}

// moment returns a time in whole seconds: for a fraction, the next second (up) or the second
// before. A time too large for a number counts as if the parameter were not there.
func (c *Call) moment(name string, up bool, unset int64) int64 {
	p, ok := c.Query.Get(name)
	if !ok {
		return unset
	}
	v, err := money.ParsePrice(p.Value)
	if errors.Is(err, money.ErrRange) { // clients send milliseconds, too
		return unset
	}
	if err != nil {
		c.bad(name, err.Error()+" It is a time in seconds since 1970.")
		return unset
	}
	const second = money.Price(money.MaxRate)
	n, rest := int64(v/second), v%second
	if up && rest > 0 {
		n++
	}
	return n
}

// candlesWithin returns the places of the newest candles within a range. Times are inclusive. Each
// empty range is the same place.
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

// olderCandles answers with the candles in memory and the history's candles before them.
func (c *Call) olderCandles(newer []market.Candle, q persistence.CandleQuery, limit int) {
	barrier := committed.NewRead(committed.ReadHistory)
	if !c.ask(barrier, nil) {
		return
	}
	barrier.Free()
	ctx, cancel := c.storeContext()
	defer cancel()
	b, n := appendCandles(append(c.body, '['), newer), len(newer)
	err := c.engine.History().Candles(ctx, q, func(candle *persistence.Candle) bool {
		if n > 0 {
			b = append(b, ',')
		}
		b = appendCandle(b, &market.Candle{Time: candle.Time, Open: candle.Open, High: candle.High,
			Low:   candle.Low,
			Close: candle.Close, Volume: candle.Volume})
		n++
		return n < limit
	})
	if c.body = append(b, ']'); err != nil {
		c.storeFailed(err)
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

func appendCandle(b []byte, candle *market.Candle) []byte {
	b = strconv.AppendInt(append(b, `{"time":`...), candle.Time, 10)
	b = candle.Open.Append(append(b, `,"open":`...))
	b = candle.High.Append(append(b, `,"high":`...))
	b = candle.Low.Append(append(b, `,"low":`...))
	b = candle.Close.Append(append(b, `,"close":`...))
	b = candle.Volume.Append(append(b, `,"volume":`...))
	return append(b, '}')
}
