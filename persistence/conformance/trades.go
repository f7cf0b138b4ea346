package conformance

import (
	"errors"
	"math/rand/v2"
	"slices"

	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
)

// trade returns one with plain values.
func trade(id uint64, pair uint16, taker, maker uint32) persistence.Trade {
	return persistence.Trade{
		ID: id, Pair: pair, TakerSide: trading.Side(1 + id%2), Price: money.Price(id * 1000),
		Amount: money.Amount(id * 7),
		TimeUs: 1_700_000_000_000_000 + int64(id), Taker: taker, Maker: maker, TakerOrder: id + 1,
		MakerOrder: id + 2,
	}
}

// tradeTime is a time that grows with ids within a pair, but not over all pairs. Neighbours may
// have the same.
func tradeTime(id uint64, pair uint16) int64 {
	return 1_700_000_000_000_000 + int64(id/3) + 40*int64(pair%3)
}

func randomTrade(r *rand.Rand, id uint64, pair uint16) persistence.Trade {
	t := trade(id, pair, 1+r.Uint32N(accounts), 1+r.Uint32N(accounts))
	t.TakerSide = trading.Side(1 + r.IntN(2))
	t.TimeUs = tradeTime(id, pair)
	if r.IntN(3) == 0 {
		t.TakerFee = money.BalanceFromBits(r.Uint64N(1<<56), r.Uint64())
		t.MakerFee = money.BalanceFromBits(0, r.Uint64N(100))
	}
	return t
}

// Reading lists.

func (w *world) trades(q persistence.TradeQuery) []persistence.Trade {
	w.Helper()
	var all []persistence.Trade
	w.must(w.s.Trades(w.ctx, q, func(t *persistence.Trade) bool {
		all = append(all, *t)
		return true
	}))
	return all
}

func (w *world) wantTrades(q persistence.TradeQuery, want []persistence.Trade) {
	w.Helper()
	if got := w.trades(q); !slices.Equal(got, want) {
		w.Fatalf("%+v answers %s, want %s", q, ids(got, tradeID), ids(want, tradeID))
	}
}

func (w *world) longOffset() {
	w.open(persistence.Retention{Trades: 9_000})
	m := &model{keep: persistence.Retention{Trades: 9_000}}
	r := newRand(w.T, 6)
	var id uint64
	for range 4 {
		var writes persistence.Writes
		for range 3000 {
			id += 1 + r.Uint64N(2)*r.Uint64N(3)
			writes.Trades = append(writes.Trades, randomTrade(r, id, uint16(1+r.IntN(100)/95)))
		}
		w.apply(1, &writes)
		m.add(&writes)
	}
	for range 120 {
		q := persistence.TradeQuery{Offset: r.IntN(12_000), Ascending: r.IntN(2) == 0,
			Pair: uint16(r.IntN(3)), TakerSide: trading.Side(r.IntN(3))}
		if r.IntN(2) == 0 { // an account has fewer
			q.Account, q.MySide, q.Offset = 1+r.Uint32N(accounts), trading.Side(r.IntN(3)),
				q.Offset/4
		}
		if r.IntN(3) == 0 {
			q.Before = r.Uint64N(id + 3000)
		}
		w.wantTrades(q, m.tradesOf(q))
	}
	for _, before := range []uint64{999, 1000, 1001, 5000, 7000, id / 1000 * 1000, id, id + 1} {
		for _, ascending := range []bool{false, true} {
			q := persistence.TradeQuery{Offset: 2500, Before: before, Ascending: ascending}
			w.wantTrades(q, m.tradesOf(q))
		}
	}
}

// pacedQueries reads long lists whole, in part, and without a match.
func (w *world) pacedQueries() {
	w.open(persistence.Retention{})
	var writes persistence.Writes
	for id := range uint64(9000) {
		t := trade(id+1, 1, 1, 2)
		t.TakerSide = trading.Buy
		writes.Trades = append(writes.Trades, t)
		writes.Orders = append(writes.Orders, order(id+1, 1, 1))
	}
	w.apply(1, &writes)
	pauses, over := 0, error(nil)
	ctx := persistence.WithPace(w.ctx, func() error {
		pauses++
		return over
	})
	trades := func(q persistence.TradeQuery, most int) error {
		return w.s.Trades(ctx, q, func(*persistence.Trade) bool { most--; return most > 0 })
	}
	for _, q := range []persistence.TradeQuery{{}, {Pair: 1}, {Account: 1}, {Account: 1, Pair: 1},
		{Account: 2, MySide: trading.Buy}, {Pair: 1, TakerSide: trading.Sell, Ascending: true}} {
		if q.TakerSide == 0 && q.MySide == 0 {
			w.must(trades(q, 100))
			if pauses > 0 {
				w.Errorf("a short query %+v paused %d times", q, pauses)
			}
		}
		if w.must(trades(q, 9000)); pauses == 0 {
			w.Errorf("a long query %+v was not paused", q)
		}
		over = errors.New("over")
		w.is(trades(q, 9000), over)
		pauses, over = 0, nil
	}
	w.must(w.s.Orders(ctx, persistence.OrderQuery{Account: 1, Status: trading.StatusCancelled},
		func(*persistence.Order) bool { return true }))
	if pauses == 0 {
		w.Error("a long query of orders was not paused")
	}
}
