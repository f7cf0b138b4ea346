package matching

import (
	"fmt"
	"runtime"
	"testing"

	"exchange/core/trading"
)

// bench plays the messages of a shape. It makes them, and fills the book, with the timer stopped.
func (s shape) bench(b *testing.B) {
	f := newFlow(s, 1)
	book := New()
	var fills []Fill
	const batch = 1 << 16
	for f.orders < 2*s.resting {
		for _, m := range f.next(s.resting) {
			fills, _ = play(book, m, fills[:0])
		}
	}
	b.ReportAllocs()
	runtime.GC()
	b.ResetTimer()
	orders := f.orders
	var messages []message
	var taken, cancels, misses int
	for done := 0; done < b.N; done += len(messages) {
		b.StopTimer()
		messages = f.next(min(batch, b.N-done))
		messages = messages[:min(len(messages), b.N-done)]
		b.StartTimer()
		for _, m := range messages {
			var ok bool
			if fills, ok = play(book, m, fills[:0]); !ok {
				misses++
			}
			if m.limit == 0 {
				cancels++
			}
			taken += len(fills)
		}
	}
	b.StopTimer()
	if misses > 0 {
		b.Fatalf("%d cancels missed", misses)
	}
	orders = f.orders - orders
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
	b.ReportMetric(float64(book.LevelCount(trading.Buy)+book.LevelCount(trading.Sell)), "levels")
	b.ReportMetric(100*float64(taken)/float64(b.N), "fills/100msgs")
	b.ReportMetric(100*float64(cancels)/float64(orders), "cancels/100orders")
	f, messages = nil, nil
	b.ReportMetric(heapPerOrder(&book), "B/order")
}

// heapPerOrder returns the live heap that a book holds, by releasing it.
func heapPerOrder(book **Book) float64 {
	n := (*book).Len()
	with := liveHeap()
	runtime.KeepAlive(*book)
	*book = nil
	return float64(with-liveHeap()) / float64(n)
}

func liveHeap() int64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// BenchmarkMix runs 50 % resting orders, 45 % cancels and 5 % crossing orders.
func BenchmarkMix(b *testing.B) {
	for _, resting := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("resting=%d", resting), mixed(resting, 1000).bench)
	}
	b.Run("a level for each", mixed(100_000, flowMid/10).bench)
}

// BenchmarkMarkets runs flows that are costly for a book. Two million messages are about a million
// new orders, in which a price moves by the distance in the name.
func BenchmarkMarkets(b *testing.B) {
	for _, s := range markets(1_000_000) {
		b.Run(s.name, s.bench)
	}
}
