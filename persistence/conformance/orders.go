package conformance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
)

// order returns a closed one with plain values.
func order(id uint64, account uint32, pair uint16) persistence.Order {
	return persistence.Order{
		ID: id, Account: account, Pair: pair, Side: trading.Side(1 + id%2),
		Status: trading.StatusDone,
		Price:  money.Price(id * 1000), Amount: money.Amount(id * 7),
		TimeUs:   1_700_000_000_000_000 + int64(id),
		ClosedUs: 1_700_000_000_500_000 + int64(id), ClosedSeq: id,
	}
}

// clientIDs is the number of client ids of random orders.
const clientIDs = 5

func clientID(n int) string { return fmt.Sprintf("client-%d", n) }

func randomOrder(r *rand.Rand, id, seq uint64) persistence.Order {
	o := order(id, 1+r.Uint32N(accounts), uint16(1+r.IntN(pairs)))
	o.Side = trading.Side(1 + r.IntN(2))
	o.Status = uint8(trading.StatusCancelled + r.IntN(2))
	o.ClosedSeq = seq
	if o.Status == trading.StatusCancelled {
		o.Remaining = o.Amount / 2
	}
	if r.IntN(2) == 0 {
		o.ClientID = clientID(r.IntN(clientIDs)) // reused
	}
	if r.IntN(3) == 0 {
		o.Instructed = (&trading.Instructed{Instructions: trading.Instructions{IOC: true,
			Quote: money.Amount(1 + r.IntN(1000)), Cancelled: trading.CancelledIOC},
			Value: money.BalanceFromBits(r.Uint64(), r.Uint64())}).Pack()
	}
	return o
}

func (w *world) orders(q persistence.OrderQuery) []persistence.Order {
	w.Helper()
	var all []persistence.Order
	w.must(w.s.Orders(w.ctx, q, func(o *persistence.Order) bool {
		all = append(all, *o)
		return true
	}))
	return all
}

func (w *world) wantOrders(q persistence.OrderQuery, want []persistence.Order) {
	w.Helper()
	if got := w.orders(q); !slices.Equal(got, want) {
		w.Fatalf("%+v answers %s, want %s", q, ids(got, orderID), ids(want, orderID))
	}
}

// wantOrdersByID reads orders of account 1 by their ids.
func (w *world) wantOrdersByID(ids []uint64, want []persistence.Order) {
	w.Helper()
	var got []persistence.Order
	w.must(w.s.OrdersByID(w.ctx, 1, ids, func(o *persistence.Order) bool {
		got = append(got, *o)
		return true
	}))
	if !slices.Equal(got, want) {
		w.Fatalf("orders are %+v, want %+v", got, want)
	}
}

func (w *world) oneOrder() {
	w.open(persistence.Retention{})
	a, b, c := order(10, 1, 1), order(11, 2, 1), order(12, 1, 1)
	w.apply(1, &persistence.Writes{Orders: []persistence.Order{c, b}})
	w.apply(1, &persistence.Writes{Orders: []persistence.Order{a}}) // older, closed later
	for _, id := range []uint64{0, 9, 11, 13, math.MaxUint64} {
		_, err := w.s.Order(w.ctx, 1, id)
		w.is(err, persistence.ErrNotFound)
	}
	w.wantOrdersByID([]uint64{12, 0, 9, 10, 11, 13, math.MaxUint64, 12},
		[]persistence.Order{c, a, c})
	w.wantOrdersByID(nil, nil)
	many := make([]uint64, 2500) // more than a store reads at once
	many[0], many[2499] = 10, 12
	w.wantOrdersByID(many, []persistence.Order{a, c})
	n := 0
	w.must(w.s.OrdersByID(w.ctx, 1, []uint64{10, 12}, func(*persistence.Order) bool {
		n++
		return false
	}))
	if n != 1 {
		w.Fatalf("an order was passed after the end: %d", n)
	}
}
