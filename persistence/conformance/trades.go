package conformance

import (
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

// tradeTime is a time that ascends with ids within a pair, and over all pairs does not. Neighbours
// may have the same.
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

func (w *world) retention() {
	const limit = 10
	w.open(persistence.Retention{Trades: limit, Orders: limit})
	var trades []persistence.Trade
	var orders []persistence.Order
	for id := uint64(1); id <= limit; id++ {
		trades = append(trades, trade(id, 1, 1, 2))
		orders = append(orders, order(id, 1, 1))
		w.apply(1, &persistence.Writes{Trades: trades[id-1:], Orders: orders[id-1:]})
	}
	down := func(from int) []persistence.Trade {
		out := slices.Clone(trades[from:])
		slices.Reverse(out)
		return out
	}
	w.wantTrades(persistence.TradeQuery{Pair: 1}, down(0))
	if got := w.orders(persistence.OrderQuery{Account: 1}); len(got) != limit {
		w.Fatalf("%d orders at the limit", len(got))
	}
	// One above, in another pair and of another account on one side.
	trades = append(trades, trade(limit+1, 2, 1, 3))
	orders = append(orders, order(limit+1, 1, 2))
	w.apply(1, &persistence.Writes{Trades: trades[limit:], Orders: orders[limit:]})
	w.wantTrades(persistence.TradeQuery{}, down(1))
	w.wantTrades(persistence.TradeQuery{Account: 1}, down(1))
	w.wantTrades(persistence.TradeQuery{Account: 1, Pair: 1}, down(1)[1:])
	// its own list is not above the limit
	w.wantTrades(persistence.TradeQuery{Pair: 1}, down(0)[1:])
	w.wantTrades(persistence.TradeQuery{Pair: 1, Ascending: true}, trades[:limit])
	w.wantTrades(persistence.TradeQuery{Account: 2}, down(0)[1:])
	w.wantTrades(persistence.TradeQuery{Account: 3}, trades[limit:])
	_, err := w.s.Order(w.ctx, 1, 1)
	w.is(err, persistence.ErrNotFound)
	if got := w.orders(persistence.OrderQuery{Account: 1, Pair: 1}); len(got) != limit-1 ||
		got[0].ID != limit || got[limit-2].ID != 2 {
		w.Fatalf("orders are %s", ids(got, orderID))
	}
	// An order that closes after ten newer ones have is the oldest beyond the limit.
	late := order(1, 1, 3)
	w.apply(1, &persistence.Writes{Orders: []persistence.Order{late}})
	_, err = w.s.Order(w.ctx, 1, 1)
	w.is(err, persistence.ErrNotFound)
	// One apply of more than the limit.
	var many []persistence.Trade
	for id := uint64(100); id < 100+3*limit; id++ {
		many = append(many, trade(id, 1, 1, 2))
	}
	w.apply(1, &persistence.Writes{Trades: many})
	trades = many
	w.wantTrades(persistence.TradeQuery{}, down(2*limit))
	w.wantTrades(persistence.TradeQuery{Pair: 1}, down(2*limit))
	w.wantTrades(persistence.TradeQuery{Account: 2, Pair: 1, Ascending: true}, trades[2*limit:])
	// Retention that is turned down later takes effect with the next row of a list.
	w.again(persistence.Retention{Trades: 3})
	trades = append(trades, trade(200, 1, 1, 2))
	w.apply(1, &persistence.Writes{Trades: trades[len(trades)-1:]})
	w.wantTrades(persistence.TradeQuery{Pair: 1}, down(len(trades)-3))
	w.wantTrades(persistence.TradeQuery{Pair: 1, Ascending: true, Offset: 1},
		trades[len(trades)-2:])
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
