package committed

import (
	"context"
	"fmt"
	"slices"

	"exchange/actors/rows"
	"exchange/core/market"
	"exchange/core/state"
	"exchange/persistence"
)

// A chart is the newest candles of one pair and frame, in memory: what everybody asks for. The
// store keeps the rest. The committed actor owns it.
type chart struct {
	list    []market.Candle // oldest first
	older   bool            // there are older ones, which only the store has
	unsaved int             // from this place on the store does not have them as they are
}

type charts [market.FrameCount]chart

// recentCandles is how many candles a chart keeps at least, once there were as many: the default
// length of an answer. Twice as many are held at most.
const recentCandles = 720

// put takes the newest candle, or what has become of it; keep is how many stay at least.
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

// newest is a copy of the newest candles, at most so many.
func (l *chart) newest(most int) (list []market.Candle, older bool) {
	from := max(0, len(l.list)-most)
	return slices.Clone(l.list[from:]), l.older || from > 0
}

// noteCandles takes what a record's trades did to the pair's candles.
func (c *Side) noteCandles(p *state.Pair) {
	k := c.charts[p.Number-1]
	for f := range k {
		candle, _ := p.Market.Candle(market.Frame(f))
		k[f].put(candle, c.candles)
	}
	c.traded[p.Number] = struct{}{}
}

// stepCandles writes what changed since the last step into the rows of this one.
func (c *Side) stepCandles(w *persistence.Writes) {
	for pair := range c.traded {
		k := c.charts[pair-1]
		for f := range k {
			l := &k[f]
			for i := l.unsaved; i < len(l.list); i++ {
				w.Candles = append(w.Candles, rows.Candle(pair, market.Frame(f), &l.list[i]))
			}
			l.unsaved = len(l.list)
		}
	}
	clear(c.traded)
}

// loadCandles takes the newest candles from the history; later ones, and what has become of the
// last, were noted while folding.
func (c *Side) loadCandles(ctx context.Context, history persistence.History) error {
	for i, k := range c.charts {
		for f := range k {
			l := &k[f]
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
