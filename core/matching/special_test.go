package matching

import (
	"strings"
	"testing"

	"exchange/core/money"
	"exchange/core/trading"
)

// iceberg adds an order that displays a part of its amount.
func iceberg(b *Book, side trading.Side, id uint64, price, amount, display int64) {
	b.AddIceberg(trading.Order{ID: id, Account: uint32(id), Side: side, Price: money.Price(price),
		Amount: money.Amount(amount), Remaining: money.Amount(amount)},
		Iceberg{money.Amount(display), money.Amount(amount - display)})
}

func TestViolatedPreconditionsOfSpecialOrdersPanicAndChangeNothing(t *testing.T) {
	b := New()
	iceberg(b, trading.Sell, 1, 100, 40, 10)
	b.Match(trading.Buy, 100, 4, 10, nil)
	var r Result
	f := func(call func()) {
		t.Helper()
		defer func() {
			t.Helper()
			if text, _ := recover().(string); !strings.HasPrefix(text, "BUG: ") {
				t.Errorf("panic %q", text)
			}
			if o, _ := b.Get(1); o.Remaining != 36 || b.Iceberg(1) != (Iceberg{10, 30}) {
				t.Errorf("the book has changed: %+v", o)
			}
			holds(t, b, trading.Sell, 1)
		}()
		call()
	}
	add := func(remaining money.Amount, i Iceberg) func() {
		return func() {
			b.AddIceberg(trading.Order{ID: 2, Side: trading.Sell, Price: 100, Amount: 10,
				Remaining: remaining}, i)
		}
	}
	f(add(10, Iceberg{0, 5}))
	f(add(10, Iceberg{5, 10}))
	f(add(10, Iceberg{5, -1}))
	f(add(11, Iceberg{5, 5}))
	f(func() { b.Amend(1, 41, 0) })
	f(func() { b.Amend(1, 4, 0) })
	f(func() { b.Amend(1, 20, -1) })
	good := Taker{Side: trading.Buy, Limit: 100, Amount: 1, MaxFills: 1}
	match := func(change func(t *Taker)) {
		t.Helper()
		bad := good
		change(&bad)
		f(func() { b.MatchWith(&bad, &r) })
		f(func() { b.Fillable(&bad) })
	}
	match(func(t *Taker) { t.Limit = 0 })
	match(func(t *Taker) { t.Amount = 0 })
	match(func(t *Taker) { t.MaxFills = -1 })
	match(func(t *Taker) { t.SelfTrade = 4 })
	match(func(t *Taker) { t.Side = 0 })
	match(func(t *Taker) { t.Money = money.Amount(1).Balance() })
	match(func(t *Taker) {
		t.Side, t.Step, t.Money = trading.Sell, 1, money.Amount(1).Balance()
	})
}

// Orders with instructions allocate nothing either, once warm.
func TestWarmSpecialPathsAllocateNothing(t *testing.T) {
	b := New()
	var r Result
	id := uint64(0)
	round := func() {
		for i := range int64(20) {
			id++
			iceberg(b, trading.Sell, id, 100+i%3, 100, 10)
			id++
			rest(b, trading.Sell, id, 100, 10)
		}
		b.Amend(id, 9, 0)
		b.Amend(id-1, 95, 9)
		b.Slide(trading.Buy, 100, 1)
		taker := Taker{Side: trading.Buy, Limit: 200, Amount: 1000, Account: uint32(id),
			SelfTrade: trading.SelfTradeCancelOldest, MaxFills: 1000}
		b.Fillable(&taker)
		b.MatchWith(&taker, &r)
		taker.Amount, taker.Money, taker.Step = money.MaxAmount, money.MaxSupply, 1
		b.Fillable(&taker)
		b.MatchWith(&taker, &r)
	}
	for range 300 {
		round()
	}
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
	if b.Len() != 0 || len(b.icebergs) != 0 {
		t.Errorf("%d orders, %d icebergs are left", b.Len(), len(b.icebergs))
	}
}
