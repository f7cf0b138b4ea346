package committed

import (
	"context"
	"errors"

	"exchange/actors/metrics"
	"exchange/persistence"
)

// A countingHistory counts the queries that fail because of damage.
type countingHistory struct {
	persistence.History
	meter *metrics.Engine
}

func (w countingHistory) note(list metrics.List, err error) error {
	if errors.Is(err, persistence.ErrCorrupt) {
		w.meter.Damaged[list].Add(1)
	}
	return err
}

func (w countingHistory) Trades(ctx context.Context, q persistence.TradeQuery,
	fn func(*persistence.Trade) bool) error {
	return w.note(metrics.ListTrades, w.History.Trades(ctx, q, fn))
}

func (w countingHistory) Orders(ctx context.Context, q persistence.OrderQuery,
	fn func(*persistence.Order) bool) error {
	return w.note(metrics.ListOrders, w.History.Orders(ctx, q, fn))
}

func (w countingHistory) Order(ctx context.Context, account uint32,
	id uint64) (persistence.Order, error) {
	o, err := w.History.Order(ctx, account, id)
	return o, w.note(metrics.ListOrders, err)
}

func (w countingHistory) OrdersByID(ctx context.Context, account uint32, ids []uint64,
	fn func(*persistence.Order) bool) error {
	return w.note(metrics.ListOrders, w.History.OrdersByID(ctx, account, ids, fn))
}

func (w countingHistory) Deposits(ctx context.Context, q persistence.DepositQuery,
	fn func(*persistence.Deposit) bool) error {
	return w.note(metrics.ListDeposits, w.History.Deposits(ctx, q, fn))
}

func (w countingHistory) Withdrawals(ctx context.Context, q persistence.WithdrawalQuery,
	fn func(*persistence.Withdrawal) bool) error {
	return w.note(metrics.ListWithdrawals, w.History.Withdrawals(ctx, q, fn))
}

func (w countingHistory) Withdrawal(ctx context.Context,
	id uint64) (persistence.Withdrawal, error) {
	d, err := w.History.Withdrawal(ctx, id)
	return d, w.note(metrics.ListWithdrawals, err)
}

func (w countingHistory) Candles(ctx context.Context, q persistence.CandleQuery,
	fn func(*persistence.Candle) bool) error {
	return w.note(metrics.ListCandles, w.History.Candles(ctx, q, fn))
}

func (w countingHistory) Actions(ctx context.Context, q persistence.ActionQuery,
	fn func(*persistence.Action) bool) error {
	return w.note(metrics.ListActions, w.History.Actions(ctx, q, fn))
}

func (w countingHistory) Reference(ctx context.Context, watermark uint64,
	reference string) (persistence.Deposit, error) {
	d, err := w.History.Reference(ctx, watermark, reference)
	return d, w.note(metrics.ListReferences, err)
}
