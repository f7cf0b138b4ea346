package audit

import (
	"context"
	"fmt"
	"hash/maphash"

	"exchange/core/market"
	"exchange/core/state"
	"exchange/persistence"
)

// The kinds of lists of the history.
const (
	allTrades = iota
	pairTrades
	accountTrades
	accountOrders // directly after accountTrades: see rowAudit.found
	accountDeposits
	allWithdrawals
	accountWithdrawals
	pairCandles // number: pair << 8 | frame
	allActions
	rowKinds
)

// A rowList is one kind of lists. A number selects one of them: a pair or an account.
type rowList struct {
	name      func(number uint32) string
	keep      int  // number of newest rows kept; 0: all
	permanent bool // no row is ever trimmed
	// anyOrder: rows are not added in the order of their ids. So rows with lower ids than those of
	// trimmed rows may exist, if a later run kept more.
	anyOrder bool
	// earlier reports whether a row is of an earlier run, as far as the replay can tell.
	earlier func(row any) bool
	// read passes the rows below an id (0: all) to fn, newest first; sum is as in a rowRef.
	read func(ctx context.Context, number uint32, before uint64, fn func(id, sum uint64,
		row any) bool) error
}

var rowSeed = maphash.MakeSeed()

func rowSum[T comparable](row *T) uint64 { return maphash.Comparable(rowSeed, *row) }

// listReader makes the read of a rowList from a method of the store.
func listReader[Q any, T comparable](list func(context.Context, Q, func(*T) bool) error,
	query func(number uint32, before uint64) Q,
	id func(*T) uint64, sum func(*T) uint64) func(context.Context, uint32, uint64,
	func(id, sum uint64, row any) bool) error {
	return func(ctx context.Context, number uint32, before uint64, fn func(id, sum uint64,
		row any) bool) error {
		return list(ctx, query(number, before), func(row *T) bool {
			return fn(id(row), sum(row), row)
		})
	}
}

func newRowAudit(a *audit, replayed *state.State) *rowAudit {
	h := &rowAudit{audit: a, replayed: replayed, earlier: replayed.Seq() < a.target.Earlier,
		ends: map[uint64]uint64{}}
	for i := range h.found {
		h.found[i] = make([]bool, len(a.state.Accounts())+1)
	}
	store, keep := a.target.Store, a.target.Retention
	trades := func(name func(uint32) string, query func(n uint32) persistence.TradeQuery) rowList {
		return rowList{name: name, keep: keep.Trades, earlier: h.earlierTrade,
			read: listReader(store.Trades, func(n uint32, before uint64) persistence.TradeQuery {
				q := query(n)
				q.Before = before
				return q
			}, func(t *persistence.Trade) uint64 { return t.ID }, rowSum)}
	}
	withdrawals := func(name func(uint32) string) rowList {
		return rowList{name: name, permanent: true,
			read: listReader(store.Withdrawals, func(n uint32,
				before uint64) persistence.WithdrawalQuery {
				return persistence.WithdrawalQuery{Account: n, Before: before}
			}, func(w *persistence.Withdrawal) uint64 { return w.ID }, rowSum)}
	}
	h.lists = [rowKinds]rowList{
		allTrades: trades(nameOf("trades"), func(uint32) persistence.TradeQuery {
			return persistence.TradeQuery{}
		}),
		pairTrades: trades(func(n uint32) string { return "trades of pair " + h.pairName(n) },
			func(n uint32) persistence.TradeQuery {
				return persistence.TradeQuery{Pair: uint16(n)}
			}),
		accountTrades: trades(h.ofAccount("trades"), func(n uint32) persistence.TradeQuery {
			return persistence.TradeQuery{Account: n}
		}),
		accountOrders: {name: h.ofAccount("closed orders"), keep: keep.Orders, anyOrder: true,
			earlier: h.earlierOrder, read: listReader(store.Orders,
				func(n uint32, before uint64) persistence.OrderQuery {
					return persistence.OrderQuery{Account: n, Before: before}
				},
				func(o *persistence.Order) uint64 { return o.ID }, rowSum)},
		accountDeposits: {name: h.ofAccount("deposits"), permanent: true,
			read: listReader(store.Deposits,
				func(n uint32, before uint64) persistence.DepositQuery {
					return persistence.DepositQuery{Account: n, Before: before}
				},
				func(d *persistence.Deposit) uint64 { return d.ID }, rowSum)},
		allWithdrawals:     withdrawals(nameOf("withdraws")),
		accountWithdrawals: withdrawals(h.ofAccount("withdraws")),
		pairCandles: {name: h.candleName, keep: keep.Candles, earlier: h.earlierCandle,
			read: listReader(store.Candles, func(n uint32, before uint64) persistence.CandleQuery {
				return persistence.CandleQuery{Pair: uint16(n >> 8), Frame: uint8(n),
					Until: max(int64(before)-1, 0)}
			}, func(c *persistence.Candle) uint64 { return uint64(c.Time) }, rowSum)},
		allActions: {name: nameOf("actions"), permanent: true, read: listReader(store.Actions,
			func(_ uint32, before uint64) persistence.ActionQuery {
				return persistence.ActionQuery{Before: before}
			},
			func(x *persistence.Action) uint64 { return x.Seq }, h.actionSum)},
	}
	return h
}

// atStart reports whether the replay has reached the start of the running exchange.
func (h *rowAudit) atStart() bool { return h.replayed.Seq() == h.target.Earlier }

func (h *rowAudit) earlierTrade(row any) bool {
	t := row.(*persistence.Trade)
	p := h.replayed.Pair(t.Pair)
	return !h.atStart() || p != nil && t.ID <= p.LastTrade()
}

func (h *rowAudit) earlierOrder(row any) bool {
	return row.(*persistence.Order).ClosedSeq <= h.target.Earlier
}

func (h *rowAudit) earlierCandle(row any) bool {
	c := row.(*persistence.Candle)
	newest, _ := h.replayed.Pair(c.Pair).Market.Candle(market.Frame(c.Frame))
	return !h.atStart() || c.Time <= newest.Time
}

func nameOf(what string) func(uint32) string { return func(uint32) string { return what } }

func (a *audit) ofAccount(what string) func(uint32) string {
	return func(n uint32) string { return what + " of account " + a.accountName(n) }
}

func (h *rowAudit) candleName(n uint32) string {
	return fmt.Sprintf("candles of pair %s, timeframe %v", h.pairName(n>>8), market.Frame(n))
}

// actionSum leaves out the words of an earlier run, because another version of the exchange may
// have phrased them.
func (h *rowAudit) actionSum(x *persistence.Action) uint64 {
	row := *x
	if h.earlier {
		row.What = ""
	}
	return rowSum(&row)
}
