package matching

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"exchange/core/money"
	"exchange/core/trading"
)

// rest adds an order of the amount.
func rest(b *Book, side trading.Side, id uint64, price, amount int64) {
	b.Add(trading.Order{ID: id, Account: uint32(id % 100), Side: side, Price: money.Price(price),
		Amount: money.Amount(amount), Remaining: money.Amount(amount)})
}

func ids(b *Book, side trading.Side) (ids []uint64) {
	for o := range b.Orders(side) {
		ids = append(ids, o.ID)
	}
	return ids
}

// holds fails the test when the book is inconsistent or a side's orders differ.
func holds(t *testing.T, b *Book, side trading.Side, want ...uint64) {
	t.Helper()
	if err := checkInvariants(b); err != nil {
		t.Fatal(err)
	}
	if got := ids(b, side); !slices.Equal(got, want) {
		t.Fatalf("%v orders are %v, want %v", side, got, want)
	}
}

func TestFillRefusesMismatches(t *testing.T) {
	b := New()
	rest(b, trading.Buy, 1, 100, 10)
	rest(b, trading.Buy, 2, 101, 10)
	rest(b, trading.Buy, 3, 101, 10)
	rest(b, trading.Sell, 4, 102, 10)
	f := func(id uint64, price, amount int64, want string) {
		t.Helper()
		o, err := b.Fill(id, money.Price(price), money.Amount(amount))
		if err == nil || !strings.Contains(err.Error(), want) || o != (trading.Order{}) {
			t.Errorf("%+v, %v; want an error with %q", o, err, want)
		}
		holds(t, b, trading.Buy, 2, 3, 1)
	}
	f(9, 101, 1, "fill of order 9: it is not in the book")
	f(1, 100, 1, "order 2 at price 101 is the next to trade")  // not the best level
	f(3, 101, 1, "order 2 at price 101 is the next to trade")  // not the front of it
	f(2, 100, 1, "fill of order 2 at price 100: its price is") // another price
	f(2, 101, 11, "by 11: it has 10 remaining")
	f(2, 101, 0, "by 0: it has 10 remaining")
	f(2, 101, -1, "by -1: it has 10 remaining")

	if o, err := b.Fill(2, 101, 4); err != nil ||
		o != (trading.Order{ID: 2, Account: 2, Side: trading.Buy, Price: 101, Amount: 10,
			Remaining: 6}) {
		t.Fatalf("%+v, %v", o, err)
	}
	f(2, 101, 7, "by 7: it has 6 remaining")
	if l := b.AppendLevels(nil, trading.Buy,
		1); l[0] != (trading.Level{Price: 101, Amount: money.Amount(16).Total(), Orders: 2}) {
		t.Fatalf("%+v", l)
	}
	if o, err := b.Fill(2, 101, 6); err != nil || o.Remaining != 0 || o.ID != 2 {
		t.Fatalf("%+v, %v", o, err)
	}
	holds(t, b, trading.Buy, 3, 1)
	if _, err := b.Fill(4, 102, 10); err != nil {
		t.Fatal(err)
	}
	holds(t, b, trading.Sell)
}

func TestViolatedPreconditionsPanicAndChangeNothing(t *testing.T) {
	b := New()
	rest(b, trading.Buy, 1, 100, 10)
	rest(b, trading.Sell, 2, 102, 10)
	f := func(want string, call func()) {
		t.Helper()
		defer func() {
			t.Helper()
			if text, _ := recover().(string); !strings.HasPrefix(text, "BUG: ") ||
				!strings.Contains(text, want) {
				t.Errorf("panic %q, want one with %q", text, want)
			}
			holds(t, b, trading.Buy, 1)
			holds(t, b, trading.Sell, 2)
		}()
		call()
	}
	add := func(o trading.Order) func() { return func() { b.Add(o) } }
	f("added twice", add(trading.Order{ID: 1, Side: trading.Buy, Price: 99, Amount: 1,
		Remaining: 1}))
	f("added twice", add(trading.Order{ID: 2, Side: trading.Buy, Price: 100, Amount: 1,
		Remaining: 1}))
	f("price 0", add(trading.Order{ID: 3, Side: trading.Buy, Price: 0, Amount: 1, Remaining: 1}))
	f("price -5", add(trading.Order{ID: 3, Side: trading.Sell, Price: -5, Amount: 1, Remaining: 1}))
	f("0 remaining", add(trading.Order{ID: 3, Side: trading.Buy, Price: 99, Amount: 1,
		Remaining: 0}))
	f("2 remaining of 1", add(trading.Order{ID: 3, Side: trading.Buy, Price: 99, Amount: 1,
		Remaining: 2}))
	f("crosses", add(trading.Order{ID: 3, Side: trading.Buy, Price: 102, Amount: 1, Remaining: 1}))
	f("crosses", add(trading.Order{ID: 3, Side: trading.Sell, Price: 100, Amount: 1, Remaining: 1}))
	f("neither buy nor sell", add(trading.Order{ID: 3, Price: 99, Amount: 1, Remaining: 1}))
	f("neither buy nor sell", func() { b.Best(3) })
	f("limit 0", func() { b.Match(trading.Buy, 0, 1, 1, nil) })
	f("amount -1", func() { b.Match(trading.Buy, 102, -1, 1, nil) })
	f("-1 fills", func() { b.Match(trading.Buy, 102, 1, -1, nil) })
	f("neither buy nor sell", func() { b.Match(0, 102, 1, 1, nil) })
}

// After a burst a book releases memory, and stays equal.
func TestABookReleasesTheMemoryOfABurst(t *testing.T) {
	const burst, left = 2 * shrinkFrom, 1000
	add := func(b *Book, from, to uint64) {
		for id := from; id <= to; id++ {
			o := trading.Order{ID: id, Account: 1, Side: trading.Buy,
				Price: money.Price(1 + id%5000), Amount: 9, Remaining: 9}
			if id%2 == 0 {
				o.Side, o.Price = trading.Sell, o.Price+10_000
			}
			b.AddIceberg(o, Iceberg{Display: 2, Hidden: money.Amount(id % 7)})
		}
	}
	f := func(name string, end, plainEnd func(b *Book)) {
		t.Helper()
		b, plain := New(), New()
		add(b, 1, burst)
		add(plain, 1, left)
		for id := uint64(burst); id > shrinkTo+1; id-- {
			b.Cancel(id)
		}
		if b.orders.used != burst {
			t.Errorf("%s: with %d orders left it shrinks", name, b.Len())
		}
		end(b)
		plainEnd(plain)
		if err := checkInvariants(b); err != nil {
			t.Fatal(err)
		}
		if b.orders.used > shrinkTo || len(b.ids.entries) > 2*shrinkTo {
			t.Errorf("%s: for %d orders there are %d records and %d entries", name, b.Len(),
				b.orders.used, len(b.ids.entries))
		}
		if !slices.Equal(slices.Collect(b.Open(nil)), slices.Collect(plain.Open(nil))) {
			t.Fatalf("%s: it has other orders", name)
		}
	}
	f("a cancel", func(b *Book) {
		for id := uint64(shrinkTo + 1); id > left; id-- {
			b.Cancel(id)
		}
	}, func(*Book) {})
	all := func(b *Book) {
		b.Match(trading.Sell, 1, math.MaxInt64, burst, nil)
		b.Match(trading.Buy, money.MaxPrice, math.MaxInt64, burst, nil)
		add(b, burst+1, burst+1)
	}
	f("an add", all, all)
}

func TestWarmBookAllocatesNothing(t *testing.T) {
	f := func(s shape) {
		t.Helper()
		flow := newFlow(s, 1)
		warm := slices.Clone(flow.next(100_000))
		measured := flow.next(20_000)
		b := New()
		var fills []Fill
		for _, m := range warm {
			fills, _ = play(b, m, fills[:0])
		}
		fills = make([]Fill, 0, 1000)
		levels, orders := make([]trading.Level, 0, 100), make([]trading.Order, 0, 100)
		n := testing.AllocsPerRun(1, func() {
			half := measured[:len(measured)/2] // it is run twice: once to warm up
			measured = measured[len(measured)/2:]
			for _, m := range half {
				fills, _ = play(b, m, fills[:0])
				levels = b.AppendLevels(levels[:0], trading.Buy, 10)
				orders = b.AppendOrders(orders[:0], trading.Sell, 10)
			}
			first := orders[0]
			if _, err := b.Fill(first.ID, first.Price, first.Remaining); err != nil {
				panic(err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations in 10,000 messages", s.name, n)
		}
	}
	f(mixed(10_000, 300))
	f(mixed(10_000, 1e5))
	for _, s := range markets(10_000) { // 100,000 messages are five ways there and back
		s.resting = min(s.resting, 5_000)
		f(s)
	}
}

func TestMemoryOfAMillionOrders(t *testing.T) {
	const n, limit = 1_000_000, 150
	f := func(name string, price func(i int64) int64) {
		t.Helper()
		before := liveHeap()
		b := New()
		for i := range int64(n) {
			rest(b, trading.Buy+trading.Side(i%2), uint64(3*i), price(i), 1000)
		}
		perOrder := float64(liveHeap()-before) / n
		t.Logf("%s: %.1f bytes an order, %d levels", name, perOrder,
			b.LevelCount(trading.Buy)+b.LevelCount(trading.Sell))
		if perOrder > limit || b.Len() != n {
			t.Errorf("%s: %.1f bytes for each of %d orders, limit %d", name, perOrder, b.Len(),
				limit)
		}
		runtime.KeepAlive(b)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	mid := int64(math.MaxInt64 / 2)
	own := func(i, away int64) int64 { return mid + (2*(i%2)-1)*(1+away) }
	f("thousands of levels", func(i int64) int64 { return own(i, int64(rng.ExpFloat64()*1000)) })
	f("a level for every order", func(i int64) int64 { return own(i, rng.Int64N(mid/2)) })
	f("a level for every order, best first", func(i int64) int64 { return own(i, i) })
	f("a level for every order, worst first", func(i int64) int64 { return own(i, n-i) })
}
