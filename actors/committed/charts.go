package committed

import (
	"context"
	"fmt"
	"slices"

	"exchange/actors/directory"
	"exchange/actors/rows"
	"exchange/core/market"
	"exchange/core/state"
	"exchange/persistence"
)

// A chart caches the newest candles of one pair and frame, which most clients ask for. The store
// keeps the rest. The committed actor owns it.
type chart struct {
	list    []market.Candle // oldest first
	older   bool            // the store has older ones
	unsaved int             // index of the first candle that the store has in no or an older form
}

type charts [market.FrameCount]chart

// recentCandles is the number of candles that a trimmed chart keeps: the default length of an
// answer. A chart holds at most twice that.
const recentCandles = 720

// put adds or updates the newest candle. At least keep candles stay.
func (l *chart) put(c market.Candle, keep int) {
	n := len(l.list)
	if n > 0 && l.list[n-1].Time == c.Time {
		l.list[n-1] = c
		l.unsaved = min(l.unsaved, n-1)
		return
	}
	if drop := min(n-keep, l.unsaved); n >= 2*keep && drop > 0 {
		l.list = l.list[:copy(l.list, l.list[drop:])]
		l.unsaved -= drop
		l.older = true
		n -= drop
	}
	l.list = append(l.list, c)
	l.unsaved = min(l.unsaved, n)
}

// newest returns a copy of up to most of the newest candles.
func (l *chart) newest(most int) (list []market.Candle, older bool) {
	from := max(0, len(l.list)-most)
	return slices.Clone(l.list[from:]), l.older || from > 0
}

// since returns a copy of the candles from begin (epoch seconds) on, always including the newest.
func (l *chart) since(begin int64) []market.Candle {
	from := max(0, len(l.list)-1)
	for from > 0 && l.list[from-1].Time >= begin {
		from--
	}
	return slices.Clone(l.list[from:])
}

// noteCandles records the candles of a pair that has traded.
func (c *Side) noteCandles(p *state.Pair) {
	k := c.charts[p.Number-1]
	for f := range k {
		candle, _ := p.Market.Candle(market.Frame(f))
		k[f].put(candle, c.candles)
	}
	c.candlePairs[p.Number] = struct{}{}
}

// stepCandles writes the candles that changed since the last step into the rows of this step.
func (c *Side) stepCandles(w *persistence.Writes) {
	for pair := range c.candlePairs {
		k := c.charts[pair-1]
		for f := range k {
			l := &k[f]
			for i := l.unsaved; i < len(l.list); i++ {
				w.Candles = append(w.Candles, rows.Candle(pair, market.Frame(f), &l.list[i]))
			}
			l.unsaved = len(l.list)
		}
	}
	clear(c.candlePairs)
}

// loadCandles reads the newest candles from the history. Later candles, and the newest form of the
// last, were recorded while folding.
func (c *Side) loadCandles(ctx context.Context, history persistence.History) error {
	for i, k := range c.charts {
		for f := range k {
			l := &k[f]
			if c.remoteHistory != nil && len(l.list) == 0 {
				continue // the pair had not traded yet: all stored candles are later
			}
			var stored []market.Candle // newest first
			err := history.Candles(ctx, persistence.CandleQuery{Pair: uint16(i + 1),
				Frame: uint8(f)}, func(x *persistence.Candle) bool {
				if len(l.list) > 0 && x.Time >= l.list[0].Time {
					return true
				}
				if len(stored) == c.candles {
					l.older = true
					return false
				}
				stored = append(stored, market.Candle{Time: x.Time, Open: x.Open, High: x.High,
					Low: x.Low, Close: x.Close, Volume: x.Volume})
				return true
			})
			if err != nil {
				return fmt.Errorf("reading the newest candles: %w", err)
			}
			slices.Reverse(stored)
			l.list = append(stored, l.list...)
			l.unsaved += len(stored)
		}
	}
	return nil
}

// newestCandles takes the newest candle of each chart from the state, because a remote history may
// have a later form of it.
func (c *Side) newestCandles() {
	for i, p := range c.state.Pairs() {
		for f := range c.charts[i] {
			l := &c.charts[i][f]
			if candle, ok := p.Market.Candle(market.Frame(f)); ok && len(l.list) == 0 {
				l.put(candle, c.candles)
			}
		}
	}
}

// A ChartQuery selects candles of a pair, newest first.
type ChartQuery struct {
	Pair         *directory.Pair
	Frame        market.Frame
	Since, Until int64 // epoch seconds, both included
	Limit        int
}

// A Chart holds the candles [From, To) of a view, preceded by those of Older.
type Chart struct {
	View     *View
	From, To int
	Older    *List[market.Candle] // newest first; nil: none
}

var candleLists pool[List[market.Candle]]

// Candles returns a pair's chart. Unless Older is nil, the caller frees it.
func (d *Door) Candles(by Client, q ChartQuery) (Chart, error) {
	v, err := d.View(ViewCandles, q.Pair, q.Frame, 0, 0)
	if err != nil {
		return Chart{}, err
	}
	c := Chart{View: v}
	c.From, c.To = candlesWithin(v.Candles, q.Since, q.Until, q.Limit)
	// to the store an Until of 0 means no bound
	if n := c.To - c.From; n < q.Limit && v.Older && q.Since < v.Candles[0].Time &&
		q.Since <= q.Until && q.Until > 0 {
		c.Older, err = d.olderCandles(by, persistence.CandleQuery{Pair: q.Pair.Number,
			Frame: uint8(q.Frame), Since: q.Since, Until: min(q.Until, v.Candles[0].Time-1)},
			q.Limit-n)
	}
	return c, err
}

func (d *Door) olderCandles(by Client, q persistence.CandleQuery,
	limit int) (*List[market.Candle], error) {
	v, err := d.enter(by)
	if err != nil {
		return nil, err
	}
	defer v.end()
	if _, err := v.awaitHistory(); err != nil {
		return nil, err
	}
	list := newList(&candleLists)
	return finished(list, v.query(func(ctx context.Context, h persistence.History) error {
		return h.Candles(ctx, q, func(c *persistence.Candle) bool {
			return list.add(&market.Candle{Time: c.Time, Open: c.Open, High: c.High, Low: c.Low,
				Close: c.Close, Volume: c.Volume}, limit)
		})
	}))
}

// candlesWithin returns the index range of the newest candles within inclusive times. An empty
// range is always (0, 0).
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
