package observing

import (
	"context"
	"fmt"

	"exchange/core/wire"
	"exchange/persistence"
	"exchange/persistence/line"
)

// A cursor is the answer to one query.
type cursor struct {
	*observer
	q    *line.Question
	at   persistence.Horizon
	scan Scan
	page []byte
	rows int
}

// rows answers a query.
func (x *observer) rows(q *line.Question) (last []byte, err error) {
	l := &cursor{observer: x, q: q}
	run, err := l.parse()
	if err != nil {
		return nil, err
	}
	select {
	case x.slots <- struct{}{}:
		defer func() { <-x.slots }()
	case <-q.Ctx.Done():
		return nil, q.Ctx.Err()
	}
	l.scan = x.host.Scan(q.Ctx)
	defer l.scan.End()
	err = run(persistence.WithPace(q.Ctx, l.scan.TakeTurn), l)
	return l.page, err
}

// An answerFunc answers a query from the store.
type answerFunc func(ctx context.Context, l *cursor) error

// answerRows returns the answerFunc of a query, for rows within the horizon.
func answerRows[Q, T any](p *wire.Reader,
	ask func(ctx context.Context, q Q, fn func(*T) bool) error,
	has func(h *persistence.Horizon, row *T) bool, offset func(q *Q) *int) answerFunc {
	var query Q
	p.Value(&query)
	return func(ctx context.Context, l *cursor) error {
		skip := 0
		if offset != nil && !l.whole() { // rows after the horizon must not count
			skip = *offset(&query)
			*offset(&query) = 0
		}
		var failed error
		err := ask(ctx, query, func(row *T) bool {
			switch {
			case !l.whole() && !has(&l.at, row):
				return true
			case skip > 0:
				skip--
				return true
			}
			failed = l.add(row)
			return failed == nil
		})
		if failed != nil {
			return failed
		}
		return err
	}
}

// whole reports whether the reader has no horizon.
func (l *cursor) whole() bool { return l.at.Seq == everything.Seq }

func tradeHas(h *persistence.Horizon, t *persistence.Trade) bool { return h.HasTrade(t) }
func orderHas(h *persistence.Horizon, o *persistence.Order) bool { return o.ClosedSeq <= h.Seq }
func withdrawalHas(h *persistence.Horizon, w *persistence.Withdrawal) bool {
	return w.ClosedSeq <= h.Seq
}
func candleHas(*persistence.Horizon, *persistence.Candle) bool { return true }

// parse reads a query.
func (l *cursor) parse() (run answerFunc, err error) {
	r := wire.Read(l.q.Body)
	p, store := &r, l.store
	p.Value(&l.at)
	switch l.q.Kind {
	case askTrades:
		run = answerRows(p, store.Trades, tradeHas,
			func(q *persistence.TradeQuery) *int { return &q.Offset })
	case askOrders:
		run = answerRows(p, store.Orders, orderHas, nil)
	case askOrder:
		run = answerRows(p, single(func(ctx context.Context,
			q orderQuery) (persistence.Order, error) {
			return store.Order(ctx, q.Account, q.ID)
		}), orderHas, nil)
	case askWithdrawal:
		run = answerRows(p, single(func(ctx context.Context,
			q idQuery) (persistence.Withdrawal, error) {
			return store.Withdrawal(ctx, q.ID)
		}), withdrawalHas, nil)
	case askCandles:
		run = answerRows(p, store.Candles, candleHas, nil)
	}
	if run == nil || !p.End() {
		err = fmt.Errorf("%w: a query of kind %d", line.ErrMalformed, l.q.Kind)
	}
	return run, err
}

// single adapts a query for one row to a list.
func single[Q, T any](ask func(ctx context.Context, q Q) (T, error)) func(ctx context.Context, q Q,
	fn func(*T) bool) error {
	return func(ctx context.Context, q Q, fn func(*T) bool) error {
		row, err := ask(ctx, q)
		if err == nil {
			fn(&row)
		}
		return err
	}
}

// add adds a row. It sends a full page, and waits until the observer takes it.
func (l *cursor) add(row any) error {
	l.page = wire.AppendValue(l.page, row)
	if l.rows++; l.rows < pageRows && len(l.page) < pageBytes {
		return nil
	}
	l.scan.ReleaseTurn()
	err := l.q.Send(l.page)
	l.page, l.rows = l.page[:0], 0
	return err
}
