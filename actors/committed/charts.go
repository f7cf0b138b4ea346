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

// A chart has the newest candles of one pair and frame in memory, because most clients ask for
// them. The store keeps the rest. The committed actor owns it.
type chart struct {
	list    []market.Candle // oldest first
	older   bool            // there are older ones, which only the store has
	unsaved int             // from this place on the store does not have them as they are
}

type charts [market.FrameCount]chart

// recentCandles is the least number of candles that a chart keeps once it had as many: the default
// length of an answer. It holds twice as many at most.
const recentCandles = 720

// put takes the newest candle, or its newest form. At least keep candles stay.
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

// newest returns a copy of the newest candles, at most that many.
func (l *chart) newest(most int) (list []market.Candle, older bool) {
	from := max(0, len(l.list)-most)
	return slices.Clone(l.list[from:]), l.older || from > 0
}

// since returns a copy of the candles that begin at a time or later, in seconds since the epoch,
// and in any case of the newest.
func (l *chart) since(begin int64) []market.Candle {
	from := max(0, len(l.list)-1)
	for from > 0 && l.list[from-1].Time >= begin {
		from--
	}
	return slices.Clone(l.list[from:])
}

// noteCandles takes the candles of a pair that has traded.
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

// loadCandles takes the newest candles from the history. Later candles, and the newest form of the
// last, were noted while folding.
func (c *Side) loadCandles(ctx context.Context, history persistence.History) error {
	for i, k := range c.charts {
		for f := range k {
			l := &k[f]
			if c.remoteHistory != nil && len(l.list) == 0 {
				continue // the pair had not traded: all candles are from later
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

// newestCandles takes the newest candle of each chart from the state: a history that is lent may
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

// A Chart has the candles [From, To) of a view, and before them those of Older.
type Chart struct {
	View     *View
	From, To int
	Older    *List[market.Candle] // newest first; nil: there are none to show
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
	// an Until of 0 would be no bound to the store
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
