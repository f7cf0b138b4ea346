package matching

import (
	"fmt"
	"testing"
	"time"

	"exchange/core/money"
	"exchange/core/trading"
)

// A typeBench compares orders with instructions with plain ones, in a book of 10,000 orders.
type typeBench struct {
	*testing.B
	book *Book
	id   uint64
	r    Result
}

const benchMid = 1_000_000

func (b *typeBench) add(side trading.Side, price money.Price, amount money.Amount) {
	b.id++
	b.book.Add(trading.Order{ID: b.id, Account: 1, Side: side, Price: price, Amount: amount,
		Remaining: amount})
}

// run measures an operation that leaves the book unchanged. It receives prices below the best ones.
func (b *typeBench) run(name string, op func(price money.Price)) {
	b.Run(name, func(one *testing.B) {
		b.book, b.id = New(), 0
		for i := range money.Price(5_000) {
			b.add(trading.Buy, benchMid-1-i%500, 10)
			b.add(trading.Sell, benchMid+1+i%500, 10)
		}
		one.ReportAllocs()
		i := money.Price(0)
		for one.Loop() {
			i++
			op(benchMid - 1 - i%100)
		}
	})
}

// takes measures an order that takes one maker, which a new one replaces.
func (b *typeBench) takes(name string, match func(t *Taker)) {
	t := Taker{Side: trading.Buy, Limit: benchMid + 1, Amount: 10, Account: 2, MaxFills: 1000}
	b.run(name, func(money.Price) {
		match(&t)
		b.add(trading.Sell, benchMid+1, 10)
	})
}

func (b *typeBench) plain(t *Taker) {
	b.r.Fills, _, _ = b.book.Match(t.Side, t.Limit, t.Amount, t.MaxFills, b.r.Fills[:0])
}

// BenchmarkTaking has orders that take.
func BenchmarkTaking(t *testing.B) {
	b := &typeBench{B: t}
	b.takes("plain, market, ioc", b.plain)
	b.takes("fok", func(t *Taker) {
		if b.book.Fillable(t) != EndDone {
			panic("it is not filled")
		}
		b.plain(t)
	})
	b.takes("self-trade mode", func(t *Taker) {
		t.SelfTrade = trading.SelfTradeCancelOldest
		b.book.MatchWith(t, &b.r)
	})
	b.takes("quote amount", func(t *Taker) {
		t.Amount, t.Step, t.Money = money.MaxAmount, 1, t.Limit.Times(10).Balance()
		b.book.MatchWith(t, &b.r)
	})
	hidden := false
	b.takes("plain, an iceberg elsewhere", func(t *Taker) {
		if !hidden {
			b.book.AddIceberg(trading.Order{ID: 1 << 40, Account: 1, Side: trading.Buy, Price: 1,
				Amount: 10, Remaining: 10}, Iceberg{1, 9})
		}
		hidden = true
		b.plain(t)
	})
}

// BenchmarkResting has orders that rest and are cancelled, and amends.
func BenchmarkResting(t *testing.B) {
	b := &typeBench{B: t}
	b.run("plain", func(price money.Price) {
		b.r.Fills, _, _ = b.book.Match(trading.Buy, price, 10, 1000, b.r.Fills[:0])
		b.add(trading.Buy, price, 10)
		b.book.Cancel(b.id)
	})
	b.run("post-only", func(price money.Price) {
		slid, _ := b.book.Slide(trading.Buy, price, 1)
		b.add(trading.Buy, slid, 10)
		b.book.Cancel(b.id)
	})
	b.run("iceberg", func(price money.Price) {
		b.id++
		b.book.AddIceberg(trading.Order{ID: b.id, Account: 1, Side: trading.Buy, Price: price,
			Amount: 10, Remaining: 10}, Iceberg{1, 9})
		b.book.Cancel(b.id)
	})
	b.run("amend that keeps its place", func(money.Price) {
		o, _ := b.book.Get(7)
		b.book.Amend(7, o.Amount, 0)
	})
	b.run("amend that loses its place", func(price money.Price) {
		o, _ := b.book.Cancel(7)
		b.r.Fills, _, _ = b.book.Match(o.Side, price, 10, 1000, b.r.Fills[:0])
		o.Price = price
		b.book.Add(o)
	})
}

// stopsAround returns stops that wait on both sides of the market of a shape, ten ticks apart.
func stopsAround(n int) *Stops {
	s := NewStops()
	for i := range int64(n) {
		away := flowMid/2 + i/20
		w := stop(uint64(i), trading.Rise, (flowMid+away)*flowTick)
		if i%2 == 0 {
			w = stop(uint64(i), trading.Fall, (flowMid-away)*flowTick)
		}
		s.Add(w)
	}
	return s
}

// BenchmarkPlainBesideStops plays plain orders while others wait for prices that never come.
func BenchmarkPlainBesideStops(b *testing.B) {
	for _, waiting := range []int{0, 100_000} {
		b.Run(fmt.Sprintf("stops=%d", waiting), func(b *testing.B) {
			f := newFlow(mixed(10_000, 1000), 1)
			book, stops := New(), stopsAround(waiting)
			var fills []Fill
			for _, m := range f.next(20_000) {
				fills, _ = play(book, m, fills[:0])
			}
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; {
				b.StopTimer()
				messages := f.next(min(1<<16, b.N-done))
				b.StartTimer()
				for _, m := range messages {
					fills, _ = play(book, m, fills[:0])
					if n := len(fills); n > 0 {
						a, z := fills[0].Price, fills[n-1].Price
						if stops.Trade(min(a, z), max(a, z), m.side) != 0 {
							b.Fatal("a stop is triggered")
						}
					}
				}
				done += len(messages)
			}
		})
	}
}

// BenchmarkStop adds a stop to many others and removes it.
func BenchmarkStop(b *testing.B) {
	for _, waiting := range []int{100, 100_000} {
		b.Run(fmt.Sprintf("stops=%d", waiting), func(b *testing.B) {
			s := stopsAround(waiting)
			w := stop(1<<40, trading.Fall, flowMid/2*flowTick)
			b.ReportAllocs()
			for b.Loop() {
				w.Order.ID++
				s.Add(w)
				s.Remove(w.Order.ID)
			}
		})
	}
}

// BenchmarkCascade triggers 10,000 stops by one trade. Each takes one order at its turn, and its
// trade triggers nothing more. The longest wait is that of an order after the trade's record.
func BenchmarkCascade(b *testing.B) {
	const count = 10_000
	var fills []Fill
	var longest time.Duration
	for b.Loop() {
		b.StopTimer()
		book, s := New(), NewStops()
		for i := range uint64(count) {
			s.Add(stop(count+i, trading.Rise, int64(100+i%1000)))
			rest(book, trading.Sell, i, 5, 2)
		}
		b.StartTimer()
		begin := time.Now()
		s.Trade(2000, 2000, trading.Buy)
		longest = max(longest, time.Since(begin))
		for range count {
			head, _ := s.Head()
			s.Remove(head.Order.ID)
			o := &head.Order
			fills, _, _ = book.Match(o.Side, o.Price, o.Remaining, 1000, fills[:0])
			s.Trade(fills[0].Price, fills[0].Price, o.Side)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*count), "ns/stop")
	b.ReportMetric(float64(longest.Microseconds()), "longest-us")
}
