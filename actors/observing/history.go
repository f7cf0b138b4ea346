package observing

import (
	"context"
	"errors"
	"fmt"
	"io"

	"exchange/core/wire"
	"exchange/persistence"
	"exchange/persistence/line"
)

// A historyClient queries rows as of a horizon.
type historyClient struct {
	*Store
	at *persistence.Horizon
}

// At implements persistence.RemoteHistory.
func (s *Store) At(h *persistence.Horizon) persistence.History { return historyClient{s, h} }

// everything is the horizon of a reader without one.
var everything = &persistence.Horizon{Seq: ^uint64(0)}

// ready waits for a member that has all dropped rows, over another connection than lost.
func (s *Store) ready(ctx context.Context, lost *link) (l *link, err error) {
	err = s.until(ctx, func() (bool, error) {
		l = s.link
		return l != nil && l != lost && l.watermark >= s.dropped.Load(), nil
	})
	return l, err
}

// errRowsBusy: too many queries are waiting.
var errRowsBusy = errors.New("too many concurrent queries at the followed member")

// ErrBusy: too many reads are in flight.
var ErrBusy = errors.New("too many concurrent reads at the followed member")

var errLongRead = fmt.Errorf("a read of more than %d bytes", longestRead)

// Ask has the followed member answer a client's signed read. A member that is lost is not replaced,
// because the read's nonce may be used. ctx bounds it.
func (s *Store) Ask(ctx context.Context, read []byte) (whole []byte, err error) {
	if len(read) > longestRead {
		return nil, errLongRead
	}
	select {
	case s.reads <- struct{}{}:
		defer func() { <-s.reads }()
	default:
		return nil, ErrBusy
	}
	l, err := s.ready(ctx, nil)
	if err != nil {
		return nil, err
	}
	answer, err := l.session.Ask(askRead, 1, read)
	if err != nil {
		return nil, err
	}
	defer answer.End()
	for {
		page, err := answer.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return whole, nil
		case err != nil:
			return nil, fmt.Errorf("the answer of member %s: %w", l.node, err)
		}
		whole = append(whole, page...)
	}
}

// list calls fn for each row of a query. If the member is lost before the first row, another one is
// queried.
func list[T any](ctx context.Context, a historyClient, kind byte, query any,
	fn func(*T) bool) error {
	select {
	case a.queries <- struct{}{}:
		defer func() { <-a.queries }()
	default:
		return errRowsBusy
	}
	body := wire.AppendValue(wire.AppendValue(nil, a.at), query)
	var l *link
	for passed := false; ; {
		var err error
		if l, err = a.ready(ctx, l); err != nil {
			return fmt.Errorf("no followed member has the rows: %w", err)
		}
		answer, err := l.session.Ask(kind, 1, body)
		if err == nil {
			err = pages(ctx, l, answer, func(row *T) bool {
				passed = true
				return fn(row)
			})
			answer.End()
		}
		if passed || !errors.Is(err, line.ErrLost) {
			return err
		}
	}
}

// pages calls fn for each row of the pages of a query.
func pages[T any](ctx context.Context, l *link, answer *line.Answer, fn func(*T) bool) error {
	for {
		page, err := answer.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("the rows of member %s: %w", l.node, err)
		}
		for p := wire.Read(page); p.Len() > 0; {
			var row T
			if p.Value(&row); p.Bad() {
				l.session.Close(line.ErrMalformed)
				return line.ErrMalformed
			}
			if !fn(&row) {
				return nil
			}
		}
		if answer.More() {
			if err := persistence.Pace(ctx); err != nil {
				return err
			}
		}
	}
}

// one returns the only row of a query.
func one[T any](ctx context.Context, a historyClient, kind byte, query any) (row T, err error) {
	found := false
	err = list(ctx, a, kind, query, func(r *T) bool {
		row, found = *r, true
		return false
	})
	if err == nil && !found {
		err = persistence.ErrNotFound
	}
	return row, err
}

func (a historyClient) Trades(ctx context.Context, q persistence.TradeQuery,
	fn func(*persistence.Trade) bool) error {
	return list(ctx, a, askTrades, &q, fn)
}

func (a historyClient) Orders(ctx context.Context, q persistence.OrderQuery,
	fn func(*persistence.Order) bool) error {
	return list(ctx, a, askOrders, &q, fn)
}

func (a historyClient) Order(ctx context.Context, account uint32, id uint64) (persistence.Order,
	error) {
	return one[persistence.Order](ctx, a, askOrder, &orderQuery{account, id})
}

func (a historyClient) Withdrawal(ctx context.Context, id uint64) (persistence.Withdrawal, error) {
	return one[persistence.Withdrawal](ctx, a, askWithdrawal, &idQuery{id})
}

func (a historyClient) Candles(ctx context.Context, q persistence.CandleQuery,
	fn func(*persistence.Candle) bool) error {
	return list(ctx, a, askCandles, &q, fn)
}

// Members answer private lists themselves. References and operators' actions are not available to
// observers.

func (a historyClient) OrdersByID(context.Context, uint32, []uint64,
	func(*persistence.Order) bool) error {
	return errObserver
}
func (a historyClient) Deposits(context.Context, persistence.DepositQuery,
	func(*persistence.Deposit) bool) error {
	return errObserver
}
func (a historyClient) Withdrawals(context.Context, persistence.WithdrawalQuery,
	func(*persistence.Withdrawal) bool) error {
	return errObserver
}

func (a historyClient) Reference(context.Context, uint64, string) (persistence.Deposit, error) {
	return persistence.Deposit{}, errObserver
}
func (a historyClient) References(context.Context, func(*persistence.Deposit) bool) error {
	return errObserver
}
func (a historyClient) CountReferences(context.Context) (uint64, error) { return 0, errObserver }
func (a historyClient) Actions(context.Context, persistence.ActionQuery,
	func(*persistence.Action) bool) error {
	return errObserver
}
