package matching

import (
	"math"
	"slices"
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

// amounts returns the amounts of fills.
func amounts(fills []Fill) (list []int64) {
	for _, f := range fills {
		list = append(list, int64(f.Amount))
	}
	return list
}

func TestAnIcebergGoesBehindItsPriceWithEachPart(t *testing.T) {
	b := New()
	iceberg(b, trading.Sell, 1, 100, 25, 10)
	rest(b, trading.Sell, 2, 100, 5)
	rest(b, trading.Sell, 3, 101, 5)
	if l := b.AppendLevels(nil, trading.Sell, 1); l[0].Amount != money.Amount(15).Total() {
		t.Fatalf("%+v displays what is hidden", l)
	}
	fills, left, cut := b.Match(trading.Buy, 101, 29, 10, nil)
	if !slices.Equal(makers(fills), []uint64{1, 2, 1, 1}) ||
		!slices.Equal(amounts(fills), []int64{10, 5, 10, 4}) || left != 0 || cut {
		t.Fatalf("%+v, %d, %v", fills, left, cut)
	}
	if fills[0].MakerRemaining != 15 || fills[2].MakerRemaining != 5 ||
		fills[3].MakerRemaining != 1 {
		t.Fatalf("%+v: the remaining amount includes the hidden part", fills)
	}
	holds(t, b, trading.Sell, 1, 3)
	if o, _ := b.Cancel(1); o.Remaining != 1 || len(b.icebergs) != 0 {
		t.Fatalf("%+v, %d icebergs", o, len(b.icebergs))
	}
}

func TestAnOrderIsWholeToItsOwnerAndAPartToThePublic(t *testing.T) {
	b := New()
	iceberg(b, trading.Buy, 1, 100, 25, 10)
	if o, _ := b.Get(1); o.Remaining != 25 || b.Iceberg(1) != (Iceberg{10, 15}) {
		t.Errorf("%+v, %+v", o, b.Iceberg(1))
	}
	if o, _ := b.Next(trading.Buy); o.Remaining != 25 {
		t.Errorf("%+v", o)
	}
	for o := range b.Orders(trading.Buy) {
		if o.Remaining != 10 {
			t.Errorf("%+v is public", o)
		}
	}
	if o, err := b.Fill(1, 100, 10); err != nil || o.Remaining != 15 {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := b.Fill(1, 100, 11); err == nil || !strings.Contains(err.Error(), "10 remaining") {
		t.Errorf("a fill of more than a part: %v", err)
	}
	if o, _ := b.Cancel(1); o.Remaining != 15 || b.Iceberg(1) != (Iceberg{}) {
		t.Errorf("%+v, %+v", o, b.Iceberg(1))
	}
	if _, ok := b.Next(trading.Buy); ok {
		t.Error("an empty side has a next order")
	}
}

// The edges of the numbers: everything that an amount can hold is hidden, and found again.
func TestTheLargestIceberg(t *testing.T) {
	b := New()
	iceberg(b, trading.Sell, 1, math.MaxInt64, math.MaxInt64, math.MaxInt64/20+1)
	rest(b, trading.Sell, 2, math.MaxInt64, math.MaxInt64)
	taker := Taker{Side: trading.Buy, Limit: money.MaxPrice, Amount: money.MaxAmount, MaxFills: 21}
	if end := b.Fillable(&taker); end != EndDone {
		t.Fatalf("it ends with %d", end)
	}
	fills, left, _ := b.Match(trading.Buy, money.MaxPrice, money.MaxAmount, 3, nil)
	if !slices.Equal(makers(fills), []uint64{1, 2}) || left != 0 {
		t.Fatalf("%+v, %d", fills, left)
	}
	holds(t, b, trading.Sell, 2, 1)
}

func TestSelfTradesArePrevented(t *testing.T) {
	f := func(mode trading.SelfTrade, maxFills int, end End, left int64, fills, prevented,
		rests []uint64) {
		t.Helper()
		b := New()
		for id := uint64(1); id <= 4; id++ {
			o := trading.Order{ID: id, Account: uint32(id % 2), Side: trading.Sell, Price: 100,
				Amount: 10, Remaining: 10}
			b.AddIceberg(o, Iceberg{4, 6 * money.Amount(id%2)}) // 1 and 3 are own icebergs
		}
		taker := Taker{Side: trading.Buy, Limit: 100, Amount: 35, Account: 1, SelfTrade: mode,
			MaxFills: maxFills}
		if got := b.Fillable(&taker); got != end {
			t.Errorf("mode %d: it would end with %d, want %d", mode, got, end)
		}
		var r Result
		b.MatchWith(&taker, &r)
		var gone []uint64
		for _, p := range r.Prevented {
			gone = append(gone, p.Order.ID)
			if p.Order.Remaining != 10 || p.Before > len(r.Fills) {
				t.Errorf("mode %d: %+v", mode, p)
			}
		}
		if r.End != end || int64(r.Rest) != left || !slices.Equal(makers(r.Fills), fills) ||
			!slices.Equal(gone, prevented) {
			t.Errorf("mode %d: %+v", mode, r)
		}
		holds(t, b, trading.Sell, rests...)
	}
	type list = []uint64
	f(trading.SelfTradeNone, 9, EndDone, 0, list{1, 2, 3, 4, 1, 3}, nil, list{3, 1})
	f(trading.SelfTradeNone, 6, EndDone, 0, list{1, 2, 3, 4, 1, 3}, nil, list{3, 1})
	f(trading.SelfTradeNone, 5, EndMaxFills, 3, list{1, 2, 3, 4, 1}, nil, list{3, 1})
	f(trading.SelfTradeCancelNewest, 9, EndSelfTrade, 35, nil, nil, list{1, 2, 3, 4})
	f(trading.SelfTradeCancelNewest, 0, EndMaxFills, 35, nil, nil, list{1, 2, 3, 4})
	f(trading.SelfTradeCancelBoth, 9, EndSelfTrade, 35, nil, list{1}, list{2, 3, 4})
	f(trading.SelfTradeCancelOldest, 9, EndNoMaker, 15, list{2, 4}, list{1, 3}, nil)
	f(trading.SelfTradeCancelOldest, 4, EndNoMaker, 15, list{2, 4}, list{1, 3}, nil)
	f(trading.SelfTradeCancelOldest, 3, EndMaxFills, 25, list{2}, list{1, 3}, list{4})
	f(trading.SelfTradeCancelOldest, 1, EndMaxFills, 35, nil, list{1}, list{2, 3, 4})
}

func TestMoneyBuysWholeSteps(t *testing.T) {
	f := func(sum money.Balance, step, most int64, end End, taken ...int64) {
		t.Helper()
		b := New()
		rest(b, trading.Sell, 1, 100, 7)
		rest(b, trading.Sell, 2, 110, 50)
		rest(b, trading.Sell, 3, 200, math.MaxInt64)
		taker := Taker{Side: trading.Buy, Limit: 200, Amount: money.Amount(most), Money: sum,
			Step: money.Amount(step), MaxFills: 10}
		if got := b.Fillable(&taker); got != end {
			t.Errorf("it would end with %d, want %d", got, end)
		}
		var r Result
		b.MatchWith(&taker, &r)
		spent := money.Balance{}
		for _, f := range r.Fills {
			spent = spent.Add(f.Price.Times(f.Amount).Balance())
		}
		if r.End != end || !slices.Equal(amounts(r.Fills), taken) || sum != spent.Add(r.Money) {
			t.Errorf("%v at steps of %d: %v spent of it, %+v", sum, step, spent, r)
		}
	}
	units := func(n uint64) money.Balance { return money.BalanceFromBits(0, n) }
	const all = math.MaxInt64
	f(units(100), 1, all, EndDone, 1)
	f(units(199), 1, all, EndDone, 1)
	f(units(99), 1, all, EndNoMaker)       // buys nothing
	f(units(299), 3, all, EndNoMaker)      // buys no step
	f(units(700), 1, all, EndDone, 7)      // nothing is left at the last price
	f(units(809), 1, all, EndDone, 7)      // 109 left buy nothing at 110
	f(units(810), 1, all, EndDone, 7, 1)   // to the unit
	f(units(700), 3, all, EndDone, 6)      // a step is 3, so one of the maker stays
	f(units(6200), 1, all, EndDone, 7, 50) // 0 left
	f(units(6399), 1, all, EndDone, 7, 50) // 199 left buy nothing at 200
	f(units(6400), 1, all, EndDone, 7, 50, 1)
	f(units(6400), 1, 10, EndNoMaker, 7, 3) // the amount is used up, the money is not
	f(money.MaxSupply, 1, all, EndNoMaker, 7, 50, all-57)
	f(money.MaxSupply, 1<<62, all, EndNoMaker, 7, 50, all-57)
}

func TestAllOrNothingChangesNothing(t *testing.T) {
	b := New()
	iceberg(b, trading.Sell, 1, 100, 40, 10)
	rest(b, trading.Sell, 2, 100, 10)
	rest(b, trading.Sell, 3, 101, 10)
	before := slices.Collect(b.Orders(trading.Sell))
	f := func(limit, amount int64, maxFills int, want End) {
		t.Helper()
		taker := Taker{Side: trading.Buy, Limit: money.Price(limit), Amount: money.Amount(amount),
			MaxFills: maxFills}
		if got := b.Fillable(&taker); got != want {
			t.Errorf("it ends with %d, want %d", got, want)
		}
		if !slices.Equal(slices.Collect(b.Orders(trading.Sell)), before) {
			t.Error("the book has changed")
		}
	}
	f(100, 50, 5, EndDone)
	f(100, 50, 4, EndMaxFills)
	f(100, 51, 5, EndNoMaker)
	f(101, 51, 5, EndMaxFills)
	f(101, 60, 6, EndDone)
	f(101, 61, 6, EndNoMaker)
	f(99, 1, 5, EndNoMaker)
}

func TestPostOnlyOrdersSlideNextToTheBestPrice(t *testing.T) {
	f := func(side trading.Side, best, limit, tick, want int64, wantOK bool) {
		t.Helper()
		b := New()
		rest(b, side.Opposite(), 1, best, 1)
		got, ok := b.Slide(side, money.Price(limit), money.Price(tick))
		if ok != wantOK || ok && int64(got) != want {
			t.Errorf("%v at %d slides to %d, %v; want %d, %v", side, limit, got, ok, want, wantOK)
		}
		if ok && (b.Crosses(side, got) ||
			b.Crosses(side, money.Price(limit)) == (int64(got) == limit)) {
			t.Errorf("%v at %d slides to %d, which crosses, or need not slide", side, limit, got)
		}
	}
	f(trading.Buy, 100, 99, 5, 99, true) // it rests as it is
	f(trading.Buy, 100, 100, 5, 95, true)
	f(trading.Buy, 102, 120, 5, 100, true) // the best is on no tick
	f(trading.Buy, 5, 5, 5, 0, false)
	f(trading.Buy, 1, math.MaxInt64, 1, 0, false)
	f(trading.Sell, 100, 101, 5, 101, true)
	f(trading.Sell, 100, 100, 5, 105, true)
	f(trading.Sell, 102, 1, 5, 105, true)
	f(trading.Sell, math.MaxInt64, 1, 1, 0, false)
	f(trading.Sell, math.MaxInt64-1, 1, 1, math.MaxInt64, true)
	b := New()
	if b.Crosses(trading.Buy, math.MaxInt64) || b.Crosses(trading.Sell, 1) {
		t.Error("an empty book is crossed")
	}
}

func TestAnAmendTakesFromTheHiddenPartFirst(t *testing.T) {
	f := func(amount, display, wantDisplayed int64, want Iceberg) {
		t.Helper()
		b := New()
		iceberg(b, trading.Sell, 1, 100, 40, 10)
		rest(b, trading.Sell, 2, 100, 10)
		b.Match(trading.Buy, 100, 4, 10, nil)
		o, ok := b.Amend(1, money.Amount(amount), money.Amount(display))
		if !ok || o.Amount != money.Amount(amount) || o.Remaining != o.Amount-4 ||
			b.Iceberg(1) != want {
			t.Errorf("amended to %d: %+v, %v, %+v", amount, o, ok, b.Iceberg(1))
		}
		if first := slices.Collect(b.Orders(trading.Sell))[0]; int64(first.Remaining) !=
			wantDisplayed {
			t.Errorf("amended to %d: %+v is displayed", amount, first)
		}
		holds(t, b, trading.Sell, 1, 2)
	}
	f(40, 0, 6, Iceberg{10, 30})
	f(40, 7, 6, Iceberg{7, 30})
	f(30, 0, 6, Iceberg{10, 20})
	f(11, 0, 6, Iceberg{10, 1})
	f(10, 5, 6, Iceberg{})
	f(5, 0, 1, Iceberg{})
	b := New()
	rest(b, trading.Buy, 1, 100, 10)
	if o, ok := b.Amend(1, 3, 2); !ok || o.Remaining != 3 || b.Iceberg(1) != (Iceberg{}) {
		t.Errorf("%+v, %v", o, ok)
	}
	if _, ok := b.Amend(2, 3, 0); ok {
		t.Error("an unknown order is amended")
	}
	holds(t, b, trading.Buy, 1)
}

func TestSpecialPromisesPanicAndChangeNothing(t *testing.T) {
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

// Orders with instructions cost no allocation either, once their memory is there.
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
