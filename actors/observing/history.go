package observing

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"exchange/persistence"
)

// Kinds of queries.
const (
	askTrades = iota + 1
	askOrders
	askOrder
	askOrdersByID
	askClientOrder
	askDeposits
	askWithdrawals
	askWithdrawal
	askCandles
)

// Messages on rows, each with the number of its query.
const (
	rowsQuery = iota + 1 // kind, horizon, query
	rowsMore             // the next page
	rowsStop             // no more pages
	rowsPage             // from the member: outcome, whether it is the last, text, rows
)

// The queries that have no struct of package persistence.
type (
	orderQuery struct {
		Account uint32
		ID      uint64
	}
	ordersQuery struct {
		Account uint32
		IDs     []uint64
	}
	clientQuery struct {
		Watermark uint64
		Account   uint32
		Client    string
	}
	idQuery struct{ ID uint64 }
)

// A query is on its way to the member.
type query struct {
	number uint64
	pages  chan page // capacity 1: the member sends no page that was not asked for
	lost   chan struct{}
}

func (q *query) lose() { close(q.lost) }

// A page is an answer.
type page struct {
	outcome byte
	last    bool
	why     string
	rows    []byte
}

// An asker asks for rows, as they were at a horizon.
type asker struct {
	*Store
	at *persistence.Horizon
}

// At implements persistence.LentHistory.
func (s *Store) At(h *persistence.Horizon) persistence.History { return asker{s, h} }

// everything is the horizon of a reader without one.
var everything = &persistence.Horizon{Seq: ^uint64(0), Deposits: ^uint64(0)}

// ready waits for a member that has all rows that were left to the members.
func (s *Store) ready(ctx context.Context) (l *link, err error) {
	err = s.until(ctx, func() (bool, error) {
		l = s.link
		return l != nil && l.watermark >= s.dropped.Load(), nil
	})
	return l, err
}

// ask sends a query. The caller ends it.
func (l *link) ask(kind byte, h *persistence.Horizon, what any) (*query, error) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	switch {
	case l.over:
		return nil, errLost
	case len(l.queries) >= maxQueries:
		return nil, errRowsBusy
	}
	l.number++
	q := &query{l.number, make(chan page, 1), make(chan struct{})}
	err := l.rows.Send(func(b []byte) []byte {
		b = append(binary.AppendUvarint(append(b, rowsQuery), q.number), kind)
		return appendValue(appendValue(b, h), what)
	})
	if err == nil {
		l.queries[q.number] = q
	}
	return q, err
}

// errRowsBusy: too many queries wait.
var errRowsBusy = errors.New("too many lists are asked for at the member that is followed")

// tell sends a word about a query.
func (l *link) tell(q *query, word byte) error {
	return l.rows.Send(func(b []byte) []byte {
		return binary.AppendUvarint(append(b, word), q.number)
	})
}

// end ends a query whose last page has not come.
func (l *link) stop(q *query) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if _, open := l.queries[q.number]; open {
		delete(l.queries, q.number)
		if l.tell(q, rowsStop) != nil {
			l.rows.Close()
		}
	}
}

// receiveRows takes what the member says on rows.
func (l *link) receiveRows(message []byte) error {
	p := parse(message)
	kind, number := p.Byte(), p.Uint()
	answer := page{outcome: p.Byte(), last: p.Byte() == 1, why: p.text()}
	answer.rows = append([]byte(nil), p.Rest()...)
	if p.Bad() || kind != rowsPage || answer.outcome != answerGood && !answer.last {
		return errSense
	}
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	q := l.queries[number]
	if q == nil {
		return nil // it was stopped
	}
	if answer.last {
		delete(l.queries, number)
	}
	select {
	case q.pages <- answer:
		return nil
	default:
		return fmt.Errorf("%w: a page that was not asked for", errSense)
	}
}

// errors of a page.
func (a *page) err(node string) error {
	kind := errors.New("it says")
	switch a.outcome {
	case answerGood:
		return nil
	case answerUnknown:
		return persistence.ErrNotFound
	case answerGap:
		kind = persistence.ErrGap
	case answerCorrupt:
		kind = persistence.ErrCorrupt
	case answerInvalid:
		kind = persistence.ErrInvalid
	}
	return fmt.Errorf("the rows of member %s: %w: %s", node, kind, a.why)
}

// list calls fn for each row of a query. If the member goes before there was a row, another one is
// asked.
func list[T any](ctx context.Context, a asker, kind byte, what any, fn func(*T) bool) error {
	passed := false
	for {
		l, err := a.ready(ctx)
		if err != nil {
			return fmt.Errorf("no member is followed that has the rows: %w", err)
		}
		q, err := l.ask(kind, a.at, what)
		if err == nil {
			err = pages(ctx, l, q, func(row *T) bool {
				passed = true
				return fn(row)
			})
			l.stop(q)
		}
		if passed || !errors.Is(err, errLost) {
			return err
		}
	}
}

// pages calls fn for each row of the pages of a query.
func pages[T any](ctx context.Context, l *link, q *query, fn func(*T) bool) error {
	for {
		var a page
		select {
		case a = <-q.pages:
		case <-q.lost:
			select {
			case a = <-q.pages: // it came before
			default:
				return errLost
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := a.err(l.node); err != nil {
			return err
		}
		for p := parse(a.rows); p.Len() > 0; {
			var row T
			if p.value(&row); p.Bad() {
				l.rows.Close()
				return errSense
			}
			if !fn(&row) {
				return nil
			}
		}
		if a.last {
			return nil
		}
		if err := persistence.GoOn(ctx); err != nil {
			return err
		}
		if err := l.tell(q, rowsMore); err != nil {
			return errLost
		}
	}
}

// one returns the only row of a query.
func one[T any](ctx context.Context, a asker, kind byte, what any) (row T, err error) {
	found := false
	err = list(ctx, a, kind, what, func(r *T) bool {
		row, found = *r, true
		return false
	})
	if err == nil && !found {
		err = persistence.ErrNotFound
	}
	return row, err
}

func (a asker) Trades(ctx context.Context, q persistence.TradeQuery,
	fn func(*persistence.Trade) bool) error {
	return list(ctx, a, askTrades, &q, fn)
}

func (a asker) Orders(ctx context.Context, q persistence.OrderQuery,
	fn func(*persistence.Order) bool) error {
	return list(ctx, a, askOrders, &q, fn)
}

func (a asker) Order(ctx context.Context, account uint32, id uint64) (persistence.Order, error) {
	return one[persistence.Order](ctx, a, askOrder, &orderQuery{account, id})
}

func (a asker) OrdersByID(ctx context.Context, account uint32, ids []uint64,
	fn func(*persistence.Order) bool) error {
	for len(ids) > 0 {
		n, more := min(len(ids), maxIDs), true
		err := list(ctx, a, askOrdersByID, &ordersQuery{account, ids[:n]},
			func(o *persistence.Order) bool {
				more = fn(o)
				return more
			})
		if ids = ids[n:]; err != nil || !more {
			return err
		}
	}
	return nil
}

// maxIDs is how many orders are asked for at once.
const maxIDs = 10_000

func (a asker) ClientOrder(ctx context.Context, watermark uint64, account uint32,
	client string) (persistence.Order, error) {
	return one[persistence.Order](ctx, a, askClientOrder, &clientQuery{watermark, account, client})
}

func (a asker) Deposits(ctx context.Context, q persistence.DepositQuery,
	fn func(*persistence.Deposit) bool) error {
	return list(ctx, a, askDeposits, &q, fn)
}

func (a asker) Withdrawals(ctx context.Context, q persistence.WithdrawalQuery,
	fn func(*persistence.Withdrawal) bool) error {
	return list(ctx, a, askWithdrawals, &q, fn)
}

func (a asker) Withdrawal(ctx context.Context, id uint64) (persistence.Withdrawal, error) {
	return one[persistence.Withdrawal](ctx, a, askWithdrawal, &idQuery{id})
}

func (a asker) Candles(ctx context.Context, q persistence.CandleQuery,
	fn func(*persistence.Candle) bool) error {
	return list(ctx, a, askCandles, &q, fn)
}

// References, and what operators have done, are not for observers.

func (a asker) Reference(context.Context, uint64, string) (persistence.Deposit, error) {
	return persistence.Deposit{}, errObserver
}
func (a asker) References(context.Context, func(*persistence.Deposit) bool) error {
	return errObserver
}
func (a asker) CountReferences(context.Context) (uint64, error) { return 0, errObserver }
func (a asker) Actions(context.Context, persistence.ActionQuery,
	func(*persistence.Action) bool) error {
	return errObserver
}
