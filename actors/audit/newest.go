package audit

import (
	"context"
	"fmt"

	"exchange/actors/rows"
	"exchange/core/market"
	"exchange/persistence"
)

// finish checks the last rows, and rows that must exist even if nothing was replayed.
func (h *rowAudit) finish(ctx context.Context) error {
	err := h.checkRows(ctx)
	if err == nil {
		err = h.checkStarted(ctx)
	}
	if err == nil {
		err = h.deposits(ctx)
	}
	if err == nil {
		err = h.newestCandles(ctx)
	}
	return err
}

// checkStarted checks for any row of each list that is not empty according to the state: the newest
// row of a list is never trimmed.
func (h *rowAudit) checkStarted(ctx context.Context) error {
	s, empty := h.replayed, map[uint64]bool{}
	err := concurrently(func(yield func(list uint64) bool) {
		_, trade, _ := s.LastIDs()
		more := trade == 0 || yield(allTrades<<32)
		for _, p := range s.Pairs() {
			more = more && (p.LastTrade() == 0 || yield(pairTrades<<32|uint64(p.Number)))
		}
		for _, a := range s.Accounts() {
			trades := s.TradeCount(a.ID)
			for kind, n := range [len(h.found)]uint64{trades, a.Closed} {
				more = more && (n == 0 || h.found[kind][a.ID] ||
					yield(uint64(accountTrades+kind)<<32|uint64(a.ID)))
			}
		}
	}, func(list uint64) error {
		l, number, some := &h.lists[list>>32], uint32(list), false
		err := l.read(ctx, number, 0, func(uint64, uint64, any) bool { some = true; return false })
		if err != nil {
			return fmt.Errorf("reading %s: %w", l.name(number), err)
		}
		if !some {
			h.mu.Lock()
			defer h.mu.Unlock()
			empty[list] = true
		}
		return nil
	})
	if err == nil && len(empty) > 0 {
		err = h.empty(ctx, empty)
	}
	return err
}

// empty adds a difference for each empty list that should have rows. A backup has the trades that
// the list of all trades keeps. So a list with only older trades is empty after a restore.
func (h *rowAudit) empty(ctx context.Context, lists map[uint64]bool) error {
	wrong := func(list uint64) {
		if lists[list] {
			delete(lists, list)
			h.differ("%s: all are missing", h.lists[list>>32].name(uint32(list)))
		}
	}
	for list := range lists {
		if list>>32 == allTrades || list>>32 == accountOrders {
			wrong(list)
		}
	}
	if len(lists) == 0 {
		return nil
	}
	err := h.target.Store.Trades(ctx,
		persistence.TradeQuery{}, func(t *persistence.Trade) bool {
			wrong(pairTrades<<32 | uint64(t.Pair))
			wrong(accountTrades<<32 | uint64(t.Taker))
			wrong(accountTrades<<32 | uint64(t.Maker))
			return len(lists) > 0
		})
	if err != nil {
		return fmt.Errorf("reading trades: %w", err)
	}
	return nil
}

// newestCandles compares the newest candle of each list, which may have changed since.
func (h *rowAudit) newestCandles(ctx context.Context) error {
	type newest struct {
		number uint32
		want   persistence.Candle
		is     persistence.Candle // zero: no candle
	}
	var list []newest
	for _, p := range h.replayed.Pairs() {
		for f := range market.Frame(market.FrameCount) {
			c, ok := p.Market.Candle(f)
			if !ok {
				continue
			}
			n := newest{number: uint32(p.Number)<<8 | uint32(f), want: rows.Candle(p.Number, f, &c)}
			q := persistence.CandleQuery{Pair: p.Number, Frame: uint8(f), Since: c.Time,
				Until: c.Time}
			err := h.target.Store.Candles(ctx, q, func(row *persistence.Candle) bool {
				if row.Time == c.Time {
					n.is = *row
				}
				return row.Time > c.Time
			})
			if err != nil {
				return fmt.Errorf("reading candles: %w", err)
			}
			list = append(list, n)
		}
	}
	// A pair whose newest trade is unchanged had the same candles throughout.
	trades, _, err := h.target.Present.Newest()
	if err != nil {
		return err
	}
	for _, n := range list {
		name := h.lists[pairCandles].name(n.number)
		changed := trades[n.want.Pair-1] != h.replayed.Pair(n.want.Pair).LastTrade()
		switch {
		case n.is == n.want || changed && extends(&n.is, &n.want):
			h.report.Rows++
		case n.is != persistence.Candle{}:
			h.stored(name, uint64(n.want.Time), &n.is)
		default:
			kept, err := h.kept(ctx, pairCandles<<32|uint64(n.number),
				[]rowRef{{id: uint64(n.want.Time)}}, 0)
			if err != nil {
				return err
			}
			if len(kept) > 0 {
				h.missing(name, uint64(n.want.Time))
			} else {
				h.report.Trimmed++
			}
		}
	}
	return nil
}

// extends reports whether later trades may have turned the candle was into the candle is.
func extends(is, was *persistence.Candle) bool {
	return is.Time == was.Time && is.Open == was.Open && is.High >= was.High && is.Low <= was.Low &&
		is.Volume.Cmp(was.Volume) > 0
}
