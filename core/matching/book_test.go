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

func makers(fills []Fill) (ids []uint64) {
	for _, f := range fills {
		ids = append(ids, f.Maker)
	}
	return ids
}

// holds fails the test when the book is inconsistent or a side's orders are others.
func holds(t *testing.T, b *Book, side trading.Side, want ...uint64) {
	t.Helper()
	if err := checkInvariants(b); err != nil {
		t.Fatal(err)
	}
	if got := ids(b, side); !slices.Equal(got, want) {
		t.Fatalf("%v orders are %v, want %v", side, got, want)
	}
}

func TestCancelKeepsTheQueueOfTheOthers(t *testing.T) {
	f := func(cancel uint64, want ...uint64) {
		t.Helper()
		b := New()
		for id := uint64(1); id <= 5; id++ {
			rest(b, trading.Buy, id, 100, 10)
		}
		if o, ok := b.Cancel(cancel); !ok ||
			o != (trading.Order{ID: cancel, Account: uint32(cancel), Side: trading.Buy, Price: 100,
				Amount:    10,
				Remaining: 10}) {
			t.Fatalf("cancelled %+v, %v", o, ok)
		}
		holds(t, b, trading.Buy, want...)
		fills, _, _ := b.Match(trading.Sell, 1, 40, 100, nil)
		if !slices.Equal(makers(fills), want) {
			t.Fatalf("traded with %v, want %v", makers(fills), want)
		}
		holds(t, b, trading.Buy)
	}
	f(1, 2, 3, 4, 5) // head
	f(3, 1, 2, 4, 5) // middle
	f(5, 1, 2, 3, 4) // tail
}

func TestPartlyFilledMakerStaysFirst(t *testing.T) {
	b := New()
	rest(b, trading.Sell, 7, 100, 10)
	rest(b, trading.Sell, 8, 100, 10)
	fills, left, cut := b.Match(trading.Buy, 100, 4, 10, nil)
	if want := []Fill{{Maker: 7, MakerAccount: 7, Price: 100, Amount: 4,
		MakerRemaining: 6}}; !slices.Equal(fills, want) || left != 0 || cut {
		t.Fatalf("%+v, %d, %v", fills, left, cut)
	}
	rest(b, trading.Sell, 9, 100, 10)
	holds(t, b, trading.Sell, 7, 8, 9)
	if o, ok := b.Get(7); !ok || o.Amount != 10 || o.Remaining != 6 {
		t.Fatalf("%+v, %v", o, ok)
	}
	fills, _, _ = b.Match(trading.Buy, 100, 7, 10, nil)
	if !slices.Equal(makers(fills), []uint64{7, 8}) {
		t.Fatalf("traded with %v", makers(fills))
	}
	holds(t, b, trading.Sell, 8, 9)
	if o, _ := b.Cancel(8); o.Remaining != 9 {
		t.Fatalf("%d remaining after cancel, want 9", o.Remaining)
	}
}

func TestTakerTradesAtMakersPricesBestFirst(t *testing.T) {
	b := New()
	rest(b, trading.Sell, 1, 102, 5)
	rest(b, trading.Sell, 2, 101, 5)
	rest(b, trading.Sell, 3, 103, 5)
	fills, left, cut := b.Match(trading.Buy, 102, 20, 10, nil)
	want := []Fill{
		{Maker: 2, MakerAccount: 2, Price: 101, Amount: 5},
		{Maker: 1, MakerAccount: 1, Price: 102, Amount: 5},
	}
	if !slices.Equal(fills, want) || left != 10 || cut {
		t.Fatalf("%+v, %d, %v", fills, left, cut)
	}
	holds(t, b, trading.Sell, 3)
}

func TestMatchAppendsToWhatIsThere(t *testing.T) {
	b := New()
	rest(b, trading.Sell, 1, 100, 5)
	rest(b, trading.Sell, 2, 100, 5)
	dst, _, cut := b.Match(trading.Buy, 100, 5, 1, []Fill{{Maker: 99}})
	if !slices.Equal(makers(dst), []uint64{99, 1}) || cut {
		t.Fatalf("%+v, %v: fills of before must stay and not count", dst, cut)
	}
}

func TestMatchOfNothingTakesNothing(t *testing.T) {
	b := New()
	rest(b, trading.Buy, 1, 100, 5)
	if fills, left, cut := b.Match(trading.Sell, 100, 0, 0, nil); len(fills) != 0 || left != 0 ||
		cut {
		t.Fatalf("%v, %d, %v", fills, left, cut)
	}
	if fills, left, cut := b.Match(trading.Sell, 101, 5, 0, nil); len(fills) != 0 || left != 5 ||
		cut {
		t.Fatalf("%v, %d, %v", fills, left, cut)
	}
	holds(t, b, trading.Buy, 1)
}

func TestSweepOverThousandsOfOrders(t *testing.T) {
	const levels, each = 2000, 5
	b := New()
	var want []uint64
	for id := uint64(0); id < levels*each; id++ {
		rest(b, trading.Sell, id+1, int64(1000+id%levels), 3)
	}
	for l := range uint64(levels) {
		for i := range uint64(each) {
			want = append(want, i*levels+l+1)
		}
	}
	holds(t, b, trading.Sell, want...)
	fills, left, cut := b.Match(trading.Buy, math.MaxInt64, 3*levels*each+1, levels*each, nil)
	if !slices.Equal(makers(fills), want) || left != 1 || cut {
		t.Fatalf("%d fills, rest %d, cut %v", len(fills), left, cut)
	}
	holds(t, b, trading.Sell)
	if b.Len() != 0 || b.LevelCount(trading.Sell) != 0 {
		t.Fatalf("%d orders, %d levels left", b.Len(), b.LevelCount(trading.Sell))
	}
}

func TestLastOrderTakesItsLevelAway(t *testing.T) {
	f := func(remove func(b *Book)) {
		t.Helper()
		b := New()
		rest(b, trading.Buy, 1, 100, 5)
		rest(b, trading.Buy, 2, 101, 5)
		remove(b)
		holds(t, b, trading.Buy, 1)
		if p, ok := b.Best(trading.Buy); p != 100 || !ok || b.LevelCount(trading.Buy) != 1 {
			t.Fatalf("best %d, %v, %d levels", p, ok, b.LevelCount(trading.Buy))
		}
		b.Cancel(1)
		holds(t, b, trading.Buy)
		if _, ok := b.Best(trading.Buy); ok || b.LevelCount(trading.Buy) != 0 ||
			b.AppendLevels(nil, trading.Buy, -1) != nil {
			t.Fatal("a level is left")
		}
	}
	f(func(b *Book) { b.Cancel(2) })
	f(func(b *Book) { b.Match(trading.Sell, 101, 5, 1, nil) })
	f(func(b *Book) { b.Fill(2, 101, 5) })
}

func TestHintOfALevelThatIsGoneIsNotBelieved(t *testing.T) {
	b := New()
	rest(b, trading.Buy, 1, 200, 5) // the best level needs no hint
	rest(b, trading.Buy, 2, 100, 5)
	rest(b, trading.Buy, 3, 100, 5)
	b.Cancel(2)
	b.Cancel(3)
	rest(b, trading.Buy, 4, 100, 5) // its level is made again
	holds(t, b, trading.Buy, 1, 4)
	b.Cancel(4)
	rest(b, trading.Buy, 5, 150, 5) // takes the record of the level at 100
	rest(b, trading.Buy, 6, 100, 5)
	holds(t, b, trading.Buy, 1, 5, 6)
	if o, _ := b.Get(6); o.Price != 100 {
		t.Fatalf("%+v", o)
	}
	b.Match(trading.Sell, 1, 15, 10, nil)
	rest(b, trading.Sell, 7, 50, 5)
	rest(b, trading.Sell, 8, 100, 5)
	holds(t, b, trading.Sell, 7, 8)
}

func TestPricesAtTheExtremes(t *testing.T) {
	b := New()
	rest(b, trading.Buy, 1, 1, 1)
	rest(b, trading.Sell, 2, math.MaxInt64, math.MaxInt64)
	rest(b, trading.Buy, 3, math.MaxInt64-1, math.MaxInt64)
	holds(t, b, trading.Buy, 3, 1)
	holds(t, b, trading.Sell, 2)
	fills, left, _ := b.Match(trading.Sell, 1, math.MaxInt64, 10, nil)
	if !slices.Equal(makers(fills), []uint64{3}) || left != 0 {
		t.Fatalf("%+v, %d", fills, left)
	}
	fills, left, _ = b.Match(trading.Sell, 1, 2, 10, nil)
	if !slices.Equal(makers(fills), []uint64{1}) || left != 1 {
		t.Fatalf("%+v, %d", fills, left)
	}
	rest(b, trading.Sell, 4, 1, 1)
	holds(t, b, trading.Sell, 4, 2)
	fills, left, _ = b.Match(trading.Buy, math.MaxInt64, math.MaxInt64, 10, nil)
	if !slices.Equal(makers(fills), []uint64{4, 2}) || left != 0 || fills[1].MakerRemaining != 1 {
		t.Fatalf("%+v, %d", fills, left)
	}
}

func TestUnknownIDsAreNotThere(t *testing.T) {
	b := New()
	f := func(id uint64) {
		t.Helper()
		if o, ok := b.Cancel(id); ok || o != (trading.Order{}) {
			t.Errorf("cancelled %+v", o)
		}
		if o, ok := b.Get(id); ok || o != (trading.Order{}) {
			t.Errorf("got %+v", o)
		}
	}
	f(0)
	f(1)
	rest(b, trading.Buy, 5, 100, 1)
	rest(b, trading.Buy, 0, 100, 1) // 0 is an id like others
	f(1)
	f(math.MaxUint64)
	b.Cancel(5)
	f(5)
	holds(t, b, trading.Buy, 0)
}

func TestLevelSumsBeyond63And64Bits(t *testing.T) {
	b := New()
	var want money.Total
	for id := uint64(1); id <= 5; id++ {
		rest(b, trading.Sell, id, 100, math.MaxInt64)
		want = want.Add(math.MaxInt64)
		l := b.AppendLevels(nil, trading.Sell, 1)
		if l[0].Amount != want || l[0].Orders != int(id) {
			t.Fatalf("%+v, want %v", l, want)
		}
	}
	if want.String() != "461168601842.73879035" { // 5 x 92233720368.54775807
		t.Fatalf("the sum is %v", want)
	}
	fills, left, _ := b.Match(trading.Buy, 100, math.MaxInt64, 10, nil)
	if len(fills) != 1 || left != 0 {
		t.Fatalf("%v, %d", fills, left)
	}
	b.Match(trading.Buy, 100, 1, 10, nil)
	b.Cancel(4)
	want = money.Total{}.Add(math.MaxInt64).Add(math.MaxInt64 - 1).Add(math.MaxInt64).Sub(
		math.MaxInt64)
	want = want.Add(math.MaxInt64)
	if l := b.AppendLevels(nil, trading.Sell, -1); len(l) != 1 || l[0].Amount != want ||
		l[0].Orders != 3 {
		t.Fatalf("%+v, want %v", l, want)
	}
	holds(t, b, trading.Sell, 2, 3, 5)
}

func TestMaxFillsCutsOnlyWhatWouldHaveCrossed(t *testing.T) {
	f := func(limit, amount int64, maxFills, wantFills int, wantRest int64, wantCut bool) {
		t.Helper()
		b := New()
		for id := uint64(1); id <= 6; id++ {
			// two orders at each of 100, 101, 102
			rest(b, trading.Sell, id, int64(100+(id-1)/2), 10)
		}
		fills, left, cut := b.Match(trading.Buy, money.Price(limit), money.Amount(amount), maxFills,
			nil)
		if len(fills) != wantFills || int64(left) != wantRest || cut != wantCut {
			t.Errorf("%d fills, rest %d, cut %v; want %d, %d, %v", len(fills), left, cut, wantFills,
				wantRest, wantCut)
		}
		if err := checkInvariants(b); err != nil {
			t.Error(err)
		}
	}
	f(102, 30, 3, 3, 0, false)  // exactly enough
	f(102, 31, 3, 3, 1, true)   // one unit over
	f(102, 29, 3, 3, 0, false)  // the last is partial
	f(102, 50, 4, 4, 10, true)  // cut where a level ends and the next crosses
	f(101, 50, 4, 4, 10, false) // cut where the next level does not cross: no cut
	f(102, 60, 6, 6, 0, false)  // the whole side
	f(102, 61, 6, 6, 1, false)  // the whole side and more: nothing left to cross
	f(102, 10, 0, 0, 10, true)
	f(99, 10, 0, 0, 10, false)
}

func TestFillRefusesWhatDoesNotFit(t *testing.T) {
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

func TestBrokenPromisesPanicAndChangeNothing(t *testing.T) {
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

func TestReadsStopWhereAsked(t *testing.T) {
	b := New()
	for id := uint64(1); id <= 6; id++ {
		rest(b, trading.Buy, id, int64(100+id/2), 10) // 100, 101, 101, 102, 102, 103
	}
	f := func(n, wantLevels, wantOrders int) {
		t.Helper()
		levels, orders := b.AppendLevels(make([]trading.Level, 1), trading.Buy, n),
			b.AppendOrders(make([]trading.Order, 1), trading.Buy, n)
		if len(levels) != 1+wantLevels || len(orders) != 1+wantOrders {
			t.Errorf("%d levels, %d orders; want %d, %d", len(levels)-1, len(orders)-1, wantLevels,
				wantOrders)
		}
	}
	f(0, 0, 0)
	f(1, 1, 1)
	f(4, 4, 4)
	f(5, 4, 5)
	f(-1, 4, 6)
	for range b.Orders(trading.Buy) {
		break
	}
	for range b.Levels(trading.Buy) {
		break
	}
}

func TestRecordsAreReusedOverManyCycles(t *testing.T) {
	b := New()
	rng := rand.New(rand.NewPCG(1, 1))
	id := uint64(0)
	for range 200 {
		var live []uint64
		for range 1500 {
			id++
			rest(b, trading.Buy, id, 1+rng.Int64N(700), 10)
			live = append(live, id)
		}
		b.Match(trading.Sell, 1, 10*500, 1000, nil)
		rng.Shuffle(len(live), func(i, j int) { live[i], live[j] = live[j], live[i] })
		for _, id := range live {
			b.Cancel(id)
		}
		holds(t, b, trading.Buy)
	}
	if b.orders.used != 1500 || b.levels.used > 700 || len(b.ids.entries) != 2048 {
		t.Errorf("%d order records, %d level records, %d table entries", b.orders.used,
			b.levels.used, len(b.ids.entries))
	}
	if n := len(b.sides[0].spare); n > 2*700/runCap+2 {
		t.Errorf("%d spare runs", n)
	}
}

// After a burst a book has the memory of what is left, and is the same book.
func TestABookGivesTheMemoryOfABurstBack(t *testing.T) {
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
		var c Comparison
		for done := false; !done; {
			var differ *Difference
			if done, differ = c.Next(b, plain, 100); differ != nil {
				one, other := differ.Texts()
				t.Fatalf("%s: it has %s, want %s", name, one, other)
			}
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
