package observing

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"exchange/actors/duplex"
	"exchange/persistence"
)

// A lender answers the queries of one observer.
type lender struct {
	*Server
	line  *duplex.Line
	ctx   context.Context // until the connection is over
	slots chan struct{}   // held by queries that are under way

	mu   sync.Mutex
	open map[uint64]*loan // by number; guarded by mu
	all  sync.WaitGroup
}

// A loan is one query.
type loan struct {
	l      *lender
	number uint64
	more   chan struct{} // capacity 1: the next page is asked for
	ctx    context.Context
	stop   context.CancelFunc
	at     persistence.Horizon
	scan   Scan

	page []byte
	rows int
}

// pageWait is how long a query stays open for an observer that does not ask for the next page.
const pageWait = 10 * time.Second

// rows answers the queries of an observer.
func (s *Server) rows(conn net.Conn) error {
	ctx, cancel := context.WithCancel(context.Background())
	l := &lender{Server: s, line: duplex.New(conn, lineOptions(longestRows, s.silence)), ctx: ctx,
		slots: make(chan struct{}, atOnce), open: map[uint64]*loan{}}
	err := l.line.Run(l.receive)
	cancel()
	l.all.Wait()
	return err
}

// receive begins what an observer asks for. It does not wait.
func (l *lender) receive(message []byte) error {
	p := parse(message)
	kind, number := p.Byte(), p.Uint()
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.open[number]
	switch kind {
	case rowsQuery:
		q, run, err := l.parse(p, number)
		if err != nil || l.open[number] != nil || l.full() {
			return fmt.Errorf("%w: query %d of %d", errSense, number, len(l.open)+1)
		}
		l.open[number] = q
		l.all.Go(func() { q.run(run) })
		return nil
	case rowsMore, rowsStop:
		if err := p.done(); err != nil {
			return err
		}
		if q == nil {
			return nil // it is over by now
		}
		if kind == rowsStop {
			q.stop()
			return nil
		}
		select {
		case q.more <- struct{}{}:
			return nil
		default:
		}
	}
	return errSense
}

// full reports whether more queries are open than an observer may ask. The caller holds mu.
func (l *lender) full() bool {
	asked := 0
	for _, q := range l.open {
		if q.ctx.Err() == nil {
			asked++
		}
	}
	return asked >= maxQueries || len(l.open) >= maxLeft
}

// A running answers a query from the store.
type running func(ctx context.Context, q *loan) error

// lend returns how a query is answered whose rows pass a filter.
func lend[Q, T any](p *parser, ask func(ctx context.Context, q Q, fn func(*T) bool) error,
	has func(h *persistence.Horizon, row *T) bool, offset func(q *Q) *int) running {
	var what Q
	p.value(&what)
	return func(ctx context.Context, q *loan) error {
		skip := 0
		if offset != nil && !q.whole() { // rows that do not pass must not count
			skip = *offset(&what)
			*offset(&what) = 0
		}
		var failed error
		err := ask(ctx, what, func(row *T) bool {
			switch {
			case !q.whole() && !has(&q.at, row):
				return true
			case skip > 0:
				skip--
				return true
			}
			failed = q.add(row)
			return failed == nil
		})
		if failed != nil {
			return failed
		}
		return err
	}
}

// whole reports whether the reader has no horizon.
func (q *loan) whole() bool { return q.at.Seq == everything.Seq }

func tradeHas(h *persistence.Horizon, t *persistence.Trade) bool     { return h.HasTrade(t) }
func orderHas(h *persistence.Horizon, o *persistence.Order) bool     { return o.ClosedSeq <= h.Seq }
func depositHas(h *persistence.Horizon, d *persistence.Deposit) bool { return d.ID <= h.Deposits }
func withdrawalHas(h *persistence.Horizon, w *persistence.Withdrawal) bool {
	return w.ClosedSeq <= h.Seq
}
func candleHas(*persistence.Horizon, *persistence.Candle) bool { return true }

// parse reads a query.
func (l *lender) parse(p *parser, number uint64) (q *loan, run running, err error) {
	q = &loan{l: l, number: number, more: make(chan struct{}, 1)}
	kind := p.Byte()
	p.value(&q.at)
	store := l.store
	switch kind {
	case askTrades:
		run = lend(p, store.Trades, tradeHas,
			func(q *persistence.TradeQuery) *int { return &q.Offset })
	case askOrders:
		run = lend(p, store.Orders, orderHas, nil)
	case askOrder:
		run = lend(p, single(func(ctx context.Context, q orderQuery) (persistence.Order, error) {
			return store.Order(ctx, q.Account, q.ID)
		}), orderHas, nil)
	case askOrdersByID:
		run = lend(p, func(ctx context.Context, q ordersQuery,
			fn func(*persistence.Order) bool) error {
			return store.OrdersByID(ctx, q.Account, q.IDs, fn)
		}, orderHas, nil)
	case askClientOrder:
		run = lend(p, q.clientOrder, orderHas, nil)
	case askDeposits:
		run = lend(p, q.deposits, depositHas,
			func(q *persistence.DepositQuery) *int { return &q.Offset })
	case askWithdrawals:
		run = lend(p, store.Withdrawals, withdrawalHas,
			func(q *persistence.WithdrawalQuery) *int { return &q.Offset })
	case askWithdrawal:
		run = lend(p, single(func(ctx context.Context, q idQuery) (persistence.Withdrawal, error) {
			return store.Withdrawal(ctx, q.ID)
		}), withdrawalHas, nil)
	case askCandles:
		run = lend(p, store.Candles, candleHas, nil)
	default:
		p.fail()
	}
	q.ctx, q.stop = context.WithCancel(l.ctx)
	return q, run, p.done()
}

// single makes a list of a query for one row.
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

// deposits leaves out what only the operator knows.
func (q *loan) deposits(ctx context.Context, what persistence.DepositQuery,
	fn func(*persistence.Deposit) bool) error {
	return q.l.store.Deposits(ctx, what, func(d *persistence.Deposit) bool {
		row := *d
		row.Reference = ""
		return fn(&row)
	})
}

// clientOrder finds the newest order with a client order id that the reader may see: the newest of
// all may be from behind its horizon.
func (q *loan) clientOrder(ctx context.Context, what clientQuery,
	fn func(*persistence.Order) bool) error {
	o, err := q.l.store.ClientOrder(ctx, what.Watermark, what.Account, what.Client)
	if err != nil {
		return err
	}
	if q.whole() || orderHas(&q.at, &o) {
		fn(&o)
		return nil
	}
	return q.l.store.Orders(ctx, persistence.OrderQuery{Account: what.Account,
		ClientID: what.Client, MaxSeq: q.at.Seq}, func(o *persistence.Order) bool {
		fn(o)
		return false
	})
}

// run answers the query.
func (q *loan) run(run running) {
	defer q.stop()
	err := q.wait()
	if err == nil {
		q.scan = q.l.host.Scan(q.ctx)
		err = run(persistence.WithPace(q.ctx, q.scan.GoOn), q)
		q.scan.End()
		<-q.l.slots
	}
	q.l.mu.Lock()
	delete(q.l.open, q.number)
	q.l.mu.Unlock()
	if q.ctx.Err() == nil {
		q.send(err, true)
	}
}

// wait waits for a slot.
func (q *loan) wait() error {
	select {
	case q.l.slots <- struct{}{}:
		return nil
	case <-q.ctx.Done():
		return q.ctx.Err()
	}
}

// add takes a row. When the page is full, it is sent, and the next is waited for.
func (q *loan) add(row any) error {
	q.page = appendValue(q.page, row)
	if q.rows++; q.rows < pageRows && len(q.page) < pageBytes {
		return nil
	}
	q.send(nil, false)
	q.scan.Rest()
	late := time.NewTimer(pageWait)
	defer late.Stop()
	select {
	case <-q.more:
		return nil
	case <-q.ctx.Done():
		return q.ctx.Err()
	case <-late.C:
		return errors.New("the next page was not asked for")
	}
}

// send sends the page.
func (q *loan) send(err error, last bool) {
	outcome, why := byte(answerGood), ""
	switch {
	case err == nil:
	case errors.Is(err, persistence.ErrNotFound):
		outcome = answerUnknown
	case errors.Is(err, persistence.ErrGap):
		outcome = answerGap
	case errors.Is(err, persistence.ErrCorrupt):
		outcome = answerCorrupt
	case errors.Is(err, persistence.ErrInvalid):
		outcome = answerInvalid
	default:
		outcome = answerFailed
	}
	if err != nil {
		why = err.Error()
	}
	sent := q.l.line.Send(func(b []byte) []byte {
		b = append(binary.AppendUvarint(append(b, rowsPage), q.number), outcome)
		if last {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
		b = appendText(b, why)
		if err == nil {
			b = append(b, q.page...)
		}
		return b
	})
	q.page, q.rows = q.page[:0], 0
	if sent != nil {
		q.l.line.Close()
	}
}
