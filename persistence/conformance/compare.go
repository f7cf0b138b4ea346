package conformance

import (
	"fmt"
	"math"
	"math/rand/v2"

	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
)

func (w *world) lists() { w.compare(3, persistence.Retention{}, 12, 150) }

// trimmedLists also turns retention down: that takes effect with the next rows of each list.
func (w *world) trimmedLists() {
	m, id := w.compare(4, persistence.Retention{Trades: 137, Orders: 41, Candles: 5}, 12, 150)
	m.keep.Trades, m.keep.Orders = 3, 2
	w.again(m.keep)
	writes, late := flush(newRand(w.T, 13), &id, 13, 150, nil)
	writes.Trades = append(writes.Trades, late...)
	m.add(&writes)
	w.apply(1, &writes)
	w.wantEverything(m)
}

// compare compares answers of the store and the model, before and after the store is opened again.
// It returns the model, and an ID above all.
func (w *world) compare(stream uint64, keep persistence.Retention, flushes, n int) (m *model,
	above uint64) {
	w.open(keep)
	m = &model{keep: keep}
	q := &questions{Rand: newRand(w.T, stream), flushes: flushes, trades: flushes * n}
	w.fill(q.Rand, m, flushes, n)
	q.top = m.orders[len(m.orders)-1].ID + 10
	for round := range 2 {
		w.wantVerified()
		w.wantDrawn(q, m)
		w.wantEverything(m)
		w.wantTrades(persistence.TradeQuery{Before: math.MaxUint64},
			m.tradesOf(persistence.TradeQuery{}))
		w.wantOrders(persistence.OrderQuery{Account: 1, Before: math.MaxUint64},
			m.ordersOf(persistence.OrderQuery{Account: 1}))
		w.wantDeposits(persistence.DepositQuery{Account: 1, Before: math.MaxUint64},
			m.depositsOf(persistence.DepositQuery{Account: 1}))
		// no prefix of one
		w.wantOrders(persistence.OrderQuery{Account: 1, ClientID: "client"}, nil)
		if round == 0 {
			w.again(keep)
		}
	}
	w.wantListsToStop()
	return m, q.top
}

// questions draws queries at random.
type questions struct {
	*rand.Rand
	flushes, trades int    // size of the store's content
	top             uint64 // above all ids
}

func (w *world) wantDrawn(q *questions, m *model) {
	w.Helper()
	for range 400 {
		trades := q.drawTrades()
		w.wantTrades(trades, m.tradesOf(trades))
	}
	for range 300 {
		orders := q.drawOrders()
		w.wantOrders(orders, m.ordersOf(orders))
	}
	for range 50 {
		deposits := q.drawDeposits()
		w.wantDeposits(deposits, m.depositsOf(deposits))
	}
	for range 200 {
		withdrawals := q.drawWithdrawals()
		w.wantWithdrawals(withdrawals, m.withdrawalsOf(withdrawals))
	}
	for range 100 {
		w.wantCandles(q.drawCandles(), m)
	}
	for range 30 {
		actions := persistence.ActionQuery{Before: q.Uint64N(q.top)}
		w.wantActions(actions, m.actionsOf(actions))
	}
}

func (r *questions) drawTrades() persistence.TradeQuery {
	q := persistence.TradeQuery{Ascending: r.IntN(2) == 0}
	if r.IntN(2) == 0 {
		q.Pair = uint16(1 + r.IntN(pairs+1))
	}
	if r.IntN(2) == 0 {
		q.Account = 1 + r.Uint32N(accounts+1)
		q.MySide = trading.Side(r.IntN(3))
	}
	if r.IntN(2) == 0 {
		q.TakerSide = trading.Side(r.IntN(3))
	}
	if r.IntN(2) == 0 {
		q.Before = 1 + r.Uint64N(r.top)
	}
	if r.IntN(3) == 0 {
		q.After = r.Uint64N(r.top)
	}
	if q.Pair != 0 && r.IntN(2) == 0 {
		q.SinceUs = tradeTime(r.Uint64N(r.top), q.Pair)
	}
	if q.Pair != 0 && r.IntN(2) == 0 {
		q.UntilUs = tradeTime(r.Uint64N(r.top), q.Pair)
	}
	if r.IntN(2) == 0 {
		q.Offset = r.IntN(r.trades / 2)
	}
	return q
}

func (r *questions) drawOrders() persistence.OrderQuery {
	q := persistence.OrderQuery{Account: 1 + r.Uint32N(accounts+1),
		Side: trading.Side(r.IntN(3)), MaxSeq: r.Uint64N(uint64(r.flushes) + 1)}
	if r.IntN(2) == 0 {
		q.Pair = uint16(1 + r.IntN(pairs+1))
	}
	if r.IntN(2) == 0 {
		q.Status = uint8(trading.StatusCancelled + r.IntN(2))
	}
	if r.IntN(2) == 0 {
		q.ClientID = clientID(r.IntN(clientIDs + 1))
	}
	if r.IntN(2) == 0 {
		q.Before = 1 + r.Uint64N(r.top)
	}
	return q
}

func (r *questions) drawDeposits() persistence.DepositQuery {
	q := persistence.DepositQuery{Account: 1 + r.Uint32N(accounts+1), Offset: r.IntN(30)}
	if r.IntN(2) == 0 {
		q.Currency, q.Offset = uint16(1+r.IntN(currencies+1)), r.IntN(10)
	}
	if r.IntN(2) == 0 {
		q.Before, q.Offset = 1+r.Uint64N(r.top), r.IntN(3)
	}
	return q
}

func (r *questions) drawWithdrawals() persistence.WithdrawalQuery {
	q := persistence.WithdrawalQuery{Account: r.Uint32N(accounts + 2),
		Currency: uint16(r.IntN(currencies + 2)), MaxSeq: r.Uint64N(uint64(r.flushes) + 1)}
	if r.IntN(2) == 0 {
		q.Status = uint8(10 * (3 + r.IntN(4)))
	}
	if r.IntN(2) == 0 {
		q.Before = 1 + r.Uint64N(1_000_003)
	}
	if r.IntN(2) == 0 {
		q.Offset = r.IntN(20)
	}
	return q
}

func (r *questions) drawCandles() persistence.CandleQuery {
	q := persistence.CandleQuery{Pair: uint16(1 + r.IntN(3)), Frame: uint8(r.IntN(3))}
	if r.IntN(2) == 0 {
		q.Since = r.drawTime()
	}
	if r.IntN(2) == 0 {
		q.Until = r.drawTime()
	}
	return q
}

// drawTime draws a time that is a candle's, or next to one, or beyond all.
func (r *questions) drawTime() int64 {
	if r.IntN(10) == 0 {
		return []int64{math.MinInt64, math.MaxInt64}[r.IntN(2)]
	}
	return 60*r.Int64N(int64(r.flushes)+1) + r.Int64N(3) - 1
}

// wantListsToStop checks that each list ends as soon as its function returns false.
func (w *world) wantListsToStop() {
	w.Helper()
	seen := 0
	w.must(w.s.Trades(w.ctx, persistence.TradeQuery{}, func(*persistence.Trade) bool {
		seen++
		return seen < 5
	}))
	w.must(w.s.Orders(w.ctx, persistence.OrderQuery{Account: 1}, func(*persistence.Order) bool {
		seen++
		return seen < 10
	}))
	w.must(w.s.Deposits(w.ctx, persistence.DepositQuery{Account: 1},
		func(*persistence.Deposit) bool { seen++; return seen < 15 }))
	w.must(w.s.Withdrawals(w.ctx, persistence.WithdrawalQuery{},
		func(*persistence.Withdrawal) bool {
			seen++
			return seen < 20
		}))
	w.must(w.s.Candles(w.ctx, persistence.CandleQuery{Pair: 1}, func(*persistence.Candle) bool {
		seen++
		return seen < 23
	}))
	w.must(w.s.Actions(w.ctx, persistence.ActionQuery{}, func(*persistence.Action) bool {
		seen++
		return seen < 28
	}))
	if seen != 28 {
		w.Fatalf("fn was called %d times, want 28", seen)
	}
}

// wantEverything compares each list as a whole.
func (w *world) wantEverything(m *model) {
	w.Helper()
	f := func(trades persistence.TradeQuery) {
		w.Helper()
		w.wantTrades(trades, m.tradesOf(trades))
	}
	f(persistence.TradeQuery{})
	for pair := range uint16(pairs + 1) {
		f(persistence.TradeQuery{Pair: 1 + pair})
		for frame := range uint8(2) {
			w.wantCandles(persistence.CandleQuery{Pair: 1 + pair, Frame: frame}, m)
		}
	}
	w.wantWithdrawals(persistence.WithdrawalQuery{}, m.withdrawalsOf(persistence.WithdrawalQuery{}))
	for account := range uint32(accounts + 1) {
		account++
		f(persistence.TradeQuery{Account: account})
		f(persistence.TradeQuery{Account: account, Pair: 1, Ascending: true})
		w.wantOrders(persistence.OrderQuery{Account: account},
			m.ordersOf(persistence.OrderQuery{Account: account}))
		w.wantDeposits(persistence.DepositQuery{Account: account},
			m.depositsOf(persistence.DepositQuery{Account: account}))
		w.wantWithdrawals(persistence.WithdrawalQuery{Account: account},
			m.withdrawalsOf(persistence.WithdrawalQuery{Account: account}))
	}
	w.wantActions(persistence.ActionQuery{}, m.actionsOf(persistence.ActionQuery{}))
	w.wantReferences(m)
	w.wantClientOrders(m)
	w.wantEachOrder(m)
}

// wantEachOrder reads each order by its ID: those that retention has dropped are not found.
func (w *world) wantEachOrder(m *model) {
	w.Helper()
	kept := map[uint64]bool{}
	for account := range uint32(accounts + 1) {
		for _, o := range m.ordersOf(persistence.OrderQuery{Account: account}) {
			kept[o.ID] = true
		}
	}
	for _, want := range m.orders {
		got, err := w.s.Order(w.ctx, want.Account, want.ID)
		if !kept[want.ID] {
			w.is(err, persistence.ErrNotFound)
		} else if err != nil || got != want {
			w.Fatalf("order is %+v, want %+v (%v)", got, want, err)
		}
	}
}

// anyOrder applies rows out of the order of their ids: from the newest on like a restored backup,
// or from both ends, or at random.
func (w *world) anyOrder() {
	r := newRand(w.T, 11)
	const n = 1200
	for _, order := range []string{"falling", "from both ends", "at random"} {
		at := r.Perm(n)
		for i := range at {
			switch order {
			case "falling":
				at[i] = n - 1 - i
			case "from both ends":
				if at[i] = i / 2; i%2 == 1 {
					at[i] = n - 1 - i/2
				}
			}
		}
		w.Log(order)
		w.backend = w.fresh(w.T)
		w.open(persistence.Retention{})
		m := &model{}
		for len(at) > 0 {
			var writes persistence.Writes
			for _, i := range at[:n/8] {
				id := uint64(2 + 3*i)
				writes.Trades = append(writes.Trades, randomTrade(r, id, uint16(1+r.IntN(pairs))))
				writes.Orders = append(writes.Orders, randomOrder(r, id, 1))
				writes.Deposits = append(writes.Deposits,
					persistence.Deposit{ID: id, Account: uint32(1 + id%2), Currency: 1,
						Amount:    money.Amount(id),
						Reference: fmt.Sprint("reference ", id)})
				writes.Withdrawals = append(writes.Withdrawals, randomWithdrawal(r, id, 1))
				writes.Candles = append(writes.Candles, candle(1, 0, int64(id)))
				writes.Actions = append(writes.Actions, action(id))
			}
			at = at[n/8:]
			m.add(&writes)
			w.apply(1, &writes)
		}
		w.wantEverything(m)
	}
}
