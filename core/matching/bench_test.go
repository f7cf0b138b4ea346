package matching

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"exchange/core/money"
)

// A message of a benchmark: a cancel when limit is 0, else an order that matches and rests.
type message struct {
	id     uint64
	limit  money.Price
	amount money.Amount
	side   Side
}

// A flow makes messages for a shape of market. It needs to know which ids are alive to cancel
// them, so it runs every message on a book of its own first, outside the clock.
type flow struct {
	shape
	rng   *rand.Rand
	twin  *Book
	fills []Fill
	live  []uint64 // and ids that were filled since: looked up when picked
	id    uint64
	steps int
}

// A shape is a market. Of its messages half are orders that rest, cancels of a random order are as
// many as keep the book at its size, and the rest cross.
type shape struct {
	name     string
	resting  int
	depth    float64 // mean distance of a resting order from the mid price, in ticks
	crossing float64 // share of messages that cross
	reprice  float64 // share of cancels that are followed by an order near the mid price of now
	mid      func(step int) float64
}

const (
	benchTick = 1_000_000
	benchMid  = 5_000_000 // ticks: 50,000.00
	benchTrip = 1_000_000 // messages until a moving price has made its way, there and back
)

func fixedMid(int) float64 { return benchMid }

// moving goes from 1 to 1+by of the mid price within the given share of the messages of a trip, back
// in the others, and again.
func moving(by, share float64, trip int) func(int) float64 {
	return func(step int) float64 {
		at := float64(step%trip) / float64(trip)
		if at < share {
			return benchMid * (1 + by*at/share)
		}
		return benchMid * (1 + by*(1-at)/(1-share))
	}
}

func newFlow(s shape) *flow {
	return &flow{shape: s, rng: rand.New(rand.NewPCG(1, 2)), twin: New()}
}

func (f *flow) order(away float64) message {
	f.id += 1 + f.rng.Uint64N(5)
	m := message{id: f.id, side: Buy + Side(f.rng.IntN(2)), amount: 1 + money.Amount(f.rng.Int64N(1e8))}
	if m.side == Buy {
		away = -away
	}
	ticks := max(1, math.Round(f.mid(f.steps)+away))
	m.limit = money.Price(ticks) * benchTick
	return m
}

// resting is an order that usually does not cross: as far from the mid price as chance has it.
func (f *flow) restingOrder() message { return f.order(1 + f.rng.ExpFloat64()*f.depth) }

// crossing is an order that takes the best of the other side, at any price, and never rests.
func (f *flow) crossingOrder() message {
	m := f.order(0)
	best, ok := f.twin.Best(m.side.Opposite())
	if !ok {
		return f.restingOrder()
	}
	for o := range f.twin.Orders(m.side.Opposite()) {
		m.amount = o.Remaining
		break
	}
	m.limit = best
	return m
}

// cancel is of a random live order.
func (f *flow) cancel() message {
	for {
		i := f.rng.IntN(len(f.live))
		id := f.live[i]
		f.live[i] = f.live[len(f.live)-1]
		f.live = f.live[:len(f.live)-1]
		if _, ok := f.twin.Get(id); ok {
			return message{id: id}
		}
	}
}

func (f *flow) run(m message, dst []message) []message {
	f.steps++
	f.fills, _ = play(f.twin, m, f.fills[:0])
	if m.limit != 0 {
		if _, ok := f.twin.Get(m.id); ok {
			f.live = append(f.live, m.id)
		}
	}
	return append(dst, m)
}

// rest runs an order that rests. Where the price has moved, it first meets orders that are in its
// way: their owners have seen it too and re-price them.
func (f *flow) rest(dst []message) []message {
	m := f.restingOrder()
	moved := 0
	for o := f.inTheWay(m); o != 0; o = f.inTheWay(m) {
		dst = f.run(message{id: o}, dst)
		moved++
	}
	dst = f.run(m, dst)
	for ; moved > 0; moved-- {
		if m = f.restingOrder(); f.inTheWay(m) == 0 {
			dst = f.run(m, dst)
		}
	}
	return dst
}

// inTheWay is the id of an order that m would trade with, 0 when there is none.
func (f *flow) inTheWay(m message) uint64 {
	for o := range f.twin.Orders(m.side.Opposite()) {
		if m.side == Buy && o.Price <= m.limit || m.side == Sell && o.Price >= m.limit {
			return o.ID
		}
		break
	}
	return 0
}

// fill makes about n messages.
func (f *flow) fill(dst []message, n int) []message {
	for len(dst) < n {
		switch u := f.rng.Float64(); {
		case f.twin.Len() == 0 || f.twin.Len() < f.resting && u >= f.crossing:
			dst = f.rest(dst)
		case u < f.crossing:
			dst = f.run(f.crossingOrder(), dst)
		case u < f.crossing+0.5 && f.twin.Len() < f.resting*101/100:
			dst = f.rest(dst)
		default:
			dst = f.run(f.cancel(), dst)
			if f.rng.Float64() < f.reprice {
				dst = f.rest(dst)
			}
		}
	}
	if len(f.live) > 2*f.twin.Len()+1000 {
		f.live = slices.DeleteFunc(f.live, func(id uint64) bool { _, ok := f.twin.Get(id); return !ok })
	}
	return dst
}

// play is what a book's owner does with a message.
func play(b *Book, m message, fills []Fill) ([]Fill, bool) {
	if m.limit == 0 {
		_, ok := b.Cancel(m.id)
		return fills, ok
	}
	fills, rest, cut := b.Match(m.side, m.limit, m.amount, 10_000, fills)
	if rest > 0 && !cut {
		b.Add(Order{ID: m.id, Side: m.side, Price: m.limit, Amount: m.amount, Remaining: rest})
	}
	return fills, true
}

func (s shape) bench(b *testing.B) {
	f := newFlow(s)
	book := New()
	var fills []Fill
	const batch = 1 << 16
	// The book is filled and warm before the clock starts.
	messages := make([]message, 0, batch+1)
	for done := 0; done < 2*s.resting+benchTrip; {
		messages = f.fill(messages[:0], batch)
		for _, m := range messages {
			fills, _ = play(book, m, fills[:0])
		}
		done += len(messages)
	}
	b.ReportAllocs()
	runtime.GC()
	b.ResetTimer()
	var taken, cancels, misses int
	for done := 0; done < b.N; done += len(messages) {
		b.StopTimer()
		messages = f.fill(messages[:0], min(batch, b.N-done))
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
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
	b.ReportMetric(float64(book.LevelCount(Buy)+book.LevelCount(Sell)), "levels")
	b.ReportMetric(100*float64(taken)/float64(b.N), "fills/100msgs")
	b.ReportMetric(100*float64(cancels)/float64(b.N), "cancels/100msgs")
	f.twin, f.live, messages = nil, nil, nil
	b.ReportMetric(heapPerOrder(&book), "B/order")
}

// heapPerOrder is the live heap that a book holds, by letting it go.
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

// BenchmarkMix is 50 % resting orders, 45 % cancels and 5 % crossing orders.
func BenchmarkMix(b *testing.B) {
	for _, resting := range []int{10_000, 1_000_000} {
		s := shape{resting: resting, depth: 1000, crossing: 0.05, mid: fixedMid}
		b.Run(fmt.Sprintf("resting=%d", resting), s.bench)
	}
}

// BenchmarkRestore is a book of a million orders made from the orders of another, best first.
func BenchmarkRestore(b *testing.B) {
	f := newFlow(shape{resting: 1_000_000, depth: 1000, mid: fixedMid})
	f.fill(nil, f.resting)
	var orders []Order
	for _, side := range []Side{Buy, Sell} {
		orders = f.twin.AppendOrders(orders, side, -1)
	}
	for b.Loop() {
		book := New()
		for _, o := range orders {
			book.Add(o)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(orders)), "ns/order")
}

// BenchmarkShapes is what markets do that hurts: about 95 % of orders end by a cancel, a fifth of
// them to come back at another price.
func BenchmarkShapes(b *testing.B) {
	for _, s := range []shape{
		{name: "quiet", resting: 200, depth: 20, mid: fixedMid},
		{name: "deep", resting: 100_000, depth: 20_000, mid: fixedMid},
		{name: "up25", resting: 10_000, depth: 1000, mid: moving(0.25, 0.5, benchTrip)},
		{name: "up40", resting: 10_000, depth: 1000, mid: moving(0.40, 0.5, benchTrip)},
		{name: "crash60", resting: 10_000, depth: 1000, mid: moving(-0.60, 0.02, benchTrip)},
		{name: "crash60deep", resting: 100_000, depth: 100_000, mid: moving(-0.60, 0.02, benchTrip)},
	} {
		s.crossing, s.reprice = 0.025, 0.2
		b.Run(s.name, s.bench)
	}
}
