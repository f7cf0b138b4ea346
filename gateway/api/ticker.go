package api

import (
	"errors"
	"slices"

	"exchange/actors/committed"
	"exchange/core/market"
	"exchange/core/money"
	"exchange/gateway/encode"
)

// A tickerList is the answer for all pairs, until one of their tickers changes.
type tickerList struct {
	views []*committed.View
	shown shownView
}

func (c *Call) ticker() {
	number := c.pair()
	if c.failOnBadFields() {
		return
	}
	views := make([]*committed.View, 0, 16)
	for _, p := range c.public.Pairs() {
		if number != 0 && p.Number != number {
			continue
		}
		v, err := c.public.View(committed.ViewTicker, p, 0, 0, 0)
		if err != nil {
			c.failRead(err)
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
		list = &tickerList{views: views}
		c.api.tickers.Store(list)
	}
	c.shown, c.span = &list.shown, span{}
	c.pieces = append(c.pieces, list.shown.body(func() []byte {
		b := []byte{'['}
		for i, p := range c.public.Pairs() {
			if i > 0 {
				b = append(b, ',')
			}
			b = encode.Ticker(b, p.Name, &list.views[i].Ticker)
		}
		return append(b, ']')
	}))
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
	pair := c.public.Pair([]byte(c.Path.Pair))
	frame, known := market.ParseFrame(c.Path.Timeframe)
	if pair == nil || !known {
		c.Fail(NotFound, "")
		return
	}
	limit := c.limit("limit", DefaultCandles, MaxCandles)
	since, until := c.moment("since", true, 0), c.moment("until", false, noMoment)
	if c.failOnBadFields() {
		return
	}
	chart, err := c.public.Candles(c.readingClient(), committed.ChartQuery{Pair: pair, Frame: frame,
		Since: firstStart(frame, since), Until: until, Limit: limit})
	if err != nil {
		c.failRead(err)
		return
	}
	v, from, to := chart.View, chart.From, chart.To
	if chart.Older != nil {
		b := appendCandles(append(c.body, '['), v.Candles[from:to])
		for i := range chart.Older.Rows {
			if i > 0 || from < to {
				b = append(b, ',')
			}
			b = appendCandle(b, &chart.Older.Rows[i])
		}
		c.body = append(b, ']')
		chart.Older.Free()
		return
	}
	n := len(v.Candles)
	c.shown, c.span = shown(v), span{{n - to, n - from}}
	part := c.shown.part(0, n-to, n-from, func(b []byte, i int) []byte {
		return appendCandle(b, &v.Candles[n-1-i])
	})
	c.pieces = append(c.pieces, listBegin, part, listEnd)
}

// noMoment is later than any candle.
const noMoment = 1 << 60

// firstStart returns the first start of a period from since on. No candle of the range is earlier.
func firstStart(f market.Frame, since int64) int64 {
	if start := f.Start(since * 1_000_000); start < since {
		return start + f.Seconds()
	}
	return since
}

// moment returns a time in whole seconds: a fraction is rounded up or down. A time too large for a
// number is ignored.
func (c *Call) moment(name string, up bool, unset int64) int64 {
	p, ok := c.Query.Get(name)
	if !ok {
		return unset
	}
	n, ok := c.instant(name, p.Value, second, up)
	if !ok {
		return unset
	}
	return n
}

// momentUs returns a time in microseconds, rounded as moment rounds, 0 without the parameter or for
// a time too large for a number. The beginning of 1970 is 1, because no trade is that old.
func (c *Call) momentUs(name string, up bool) int64 {
	p, ok := c.Query.Get(name)
	if !ok {
		return 0
	}
	us, ok := c.instant(name, p.Value, second/1_000_000, up)
	if !ok {
		return 0
	}
	return max(us, 1)
}

// second is a second in the units of a parsed number.
const second = int64(money.MaxRate)

// instant parses seconds since 1970 as a number of units, rounded up or down. It returns false for
// a time too large for a number, and after adding a field error for a bad one.
func (c *Call) instant(name string, text []byte, unit int64, up bool) (n int64, ok bool) {
	v, err := money.ParsePrice(text)
	if errors.Is(err, money.ErrRange) { // some clients send milliseconds
		return 0, false
	}
	if err != nil {
		c.addError(name, err.Error()+" It is a time in seconds since 1970.")
		return 0, false
	}
	if n = int64(v) / unit; up && int64(v)%unit > 0 {
		n++
	}
	return n, true
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
	return append(encode.Candle(b, candle), '}')
}
