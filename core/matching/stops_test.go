package matching

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"exchange/core/compare"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/prove/spec"
)

// stop returns an order that waits for a price.
func stop(id uint64, when trading.Direction, trigger int64) Stop {
	return Stop{Trigger: trading.Trigger{Price: money.Price(trigger), When: when},
		Order: trading.Order{ID: id, Account: 1, Side: trading.Buy, Price: 5, Amount: 2,
			Remaining: 2}}
}

// queued returns the ids of the queue in order, and empties it.
func queued(s *Stops) (ids []uint64) {
	for s.Queued() > 0 {
		head, _ := s.Head()
		ids = append(ids, head.Order.ID)
		if removed, ok := s.Remove(head.Order.ID); !ok || removed != head || !head.Queued {
			panic(fmt.Sprintf("the head is %+v, removed was %+v", head, removed))
		}
	}
	return ids
}

// waitFor makes stops: three rise and three fall at 100 to 102, ids 1 to 6 outwards.
func waitFor() *Stops {
	s := NewStops()
	for i := range int64(3) {
		s.Add(stop(uint64(1+i), trading.Rise, 100+i))
		s.Add(stop(uint64(4+i), trading.Fall, 102-i))
	}
	return s
}

func TestImpossibleStopsAreRefused(t *testing.T) {
	s := waitFor()
	before := slices.Collect(s.All(nil))
	f := func(want string, change func(s *Stop)) {
		t.Helper()
		defer func() {
			t.Helper()
			if text, _ := recover().(string); !strings.HasPrefix(text, "BUG: ") ||
				!strings.Contains(text, want) {
				t.Errorf("panic %q, want one with %q", text, want)
			}
			if !slices.Equal(slices.Collect(s.All(nil)), before) {
				t.Error("a stop that was refused changed something")
			}
		}()
		impossible := stop(20, trading.Rise, 100)
		change(&impossible)
		s.Add(impossible)
	}
	f("added twice", func(s *Stop) { s.Order.ID = 3 })
	f("trigger", func(s *Stop) { s.Trigger.Price = 0 })
	f("trigger", func(s *Stop) { s.Trigger.When = 3 })
	f("neither buy nor sell", func(s *Stop) { s.Order.Side = 0 })
	f("price 0", func(s *Stop) { s.Order.Price = 0 })
	f("0 remaining", func(s *Stop) { s.Order.Remaining = 0 })
	f("3 remaining of 2", func(s *Stop) { s.Order.Remaining = 3 })
	f("rests: true", func(s *Stop) { s.InBook = true })
}

// stopOf returns the stop of an open order of the specification.
func stopOf(o *spec.Order) Stop {
	if o.Waits {
		return Stop{Order: orderOf(o), Trigger: o.Trigger, Queued: o.Queued}
	}
	return Stop{Order: trading.Order{ID: o.ID, Account: o.Account, Side: o.Side},
		Trigger: trading.Trigger{Price: o.Says.OCO.Trigger, When: trading.Fall},
		InBook:  true, Queued: o.Queued}
}

// sameStops compares stops with those of the specification, as sets and in the order of their
// queues.
func sameStops(s *Stops, k *spec.Market) error {
	var queue, ids []uint64
	open := map[uint64]*spec.Order{}
	for _, o := range k.Open() {
		open[o.ID] = o
	}
	for got := range s.All(nil) {
		o := open[got.Order.ID]
		if again, ok := s.Get(got.Order.ID); !ok || again != got || o == nil || stopOf(o) != got {
			return fmt.Errorf("stop %+v is %+v, %v; want %+v", got, again, ok, o)
		}
		if ids = append(ids, o.ID); got.Queued {
			queue = append(queue, o.ID)
		}
	}
	if !slices.Equal(queue, k.Queue()) {
		return fmt.Errorf("the queue is %v, want %v", queue, k.Queue())
	}
	slices.Sort(ids)
	if want := k.StopIDs(); !slices.Equal(ids, want) || s.Len() != len(ids) ||
		s.Queued() != len(queue) {
		return fmt.Errorf("%d stops, %d queued, are %v; want %v, %v", s.Len(), s.Queued(), ids,
			want, k.Queue())
	}
	return nil
}

// restoredStops returns new stops made from others.
func restoredStops(s *Stops) *Stops {
	r := NewStops()
	for stop := range s.All(nil) {
		r.Add(stop)
	}
	return r
}

// waitIn adds a stop to the specification, too.
func waitIn(k *spec.Market, w *Stop) {
	o := &spec.Order{ID: w.Order.ID, Account: 1, Side: w.Order.Side, Price: 5, Amount: 2,
		Remaining: 2}
	if w.InBook {
		o.Says.OCO.Trigger = w.Trigger.Price
		k.Rest(o)
	} else {
		o.Trigger = w.Trigger
		k.Wait(o)
	}
}

// TestStopsAgreeWithALoopOverAll plays random stops, removals and trades, and compares the stops
// with a linear search of a list. It sometimes restores the stops from themselves.
func TestStopsAgreeWithALoopOverAll(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		s, slow := NewStops(), &spec.Market{}
		price := func() int64 {
			switch rng.IntN(20) {
			case 0:
				return 1 + rng.Int64N(2)
			case 1:
				return math.MaxInt64 - rng.Int64N(2)
			}
			return 1000 + rng.Int64N(60)
		}
		for step := range 3000 {
			switch k := rng.IntN(20); {
			case k < 13:
				id := uint64(step + 1)
				if rng.IntN(10) == 0 {
					id = 1<<40 - uint64(step)
				}
				w := stop(id, trading.Rise+trading.Direction(rng.IntN(2)), price())
				if w.InBook = rng.IntN(5) == 0; w.InBook {
					w.Order = trading.Order{ID: id, Account: 1, Side: trading.Sell}
					w.Trigger.When = trading.Fall
				}
				waitIn(slow, &w)
				s.Add(w)
			case k < 17:
				id := uint64(rng.IntN(step + 1))
				got, ok := s.Remove(id)
				want := slow.Find(id)
				if ok != (want != nil) || ok && got != stopOf(want) {
					t.Fatalf("removed %+v, %v; want %+v", got, ok, want)
				}
				if ok {
					slow.Cancel(want)
				}
			case k < 19:
				low := money.Price(price())
				high := max(low, money.Price(price()))
				if rng.IntN(2) == 0 {
					high = low
				}
				taker := trading.Buy + trading.Side(rng.IntN(2))
				s.Trade(low, high, taker)
				slow.Trade([]event.Trade{{Price: low}, {Price: high}}, taker)
			default:
				head, ok := s.Head()
				if next := slow.Next(); ok != (next != 0) ||
					ok && head != stopOf(slow.Find(next)) {
					t.Fatalf("the head is %+v, %v; want %+v", head, ok, slow.Queue())
				}
				if s.Remove(head.Order.ID); ok {
					slow.Cancel(slow.Find(head.Order.ID))
				}
			}
			if step%500 == 499 {
				s = restoredStops(s)
			}
			if step%50 == 49 {
				if err := sameStops(s, slow); err != nil {
					t.Fatalf("seed %d, step %d: %v", seed, step, err)
				}
			}
		}
	}
}

// A comparison finds the one stop that differs, while stops are triggered and executed between its
// steps, and the turns of both sides differ.
func TestAComparisonOfStopsFindsEachDifference(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 6))
		one, other := NewStops(), NewStops()
		const count = 200
		victim := uint64(1 + rng.IntN(2*count)) // none in half of all cases
		for i := range uint64(rng.IntN(50)) {
			one.Add(stop(1000+i, trading.Rise, 1)) // turns that the other side never had
		}
		one.Trade(1, 1, trading.Buy)
		queued(one)
		for id := uint64(1); id <= count; id++ {
			w := stop(id, trading.Rise+trading.Direction(id%2), 100+rng.Int64N(9))
			w.Queued = rng.IntN(4) == 0
			one.Add(w)
			if id == victim {
				w.Order.Account = 7
			}
			other.Add(w)
		}
		var lists compare.Lists[Stop]
		var differ *compare.Difference
		n := 1 + rng.IntN(50)
		for left := 0; left == 0; {
			left, differ = lists.Next(compare.Side[Stop]{After: one.All},
				compare.Side[Stop]{After: other.All}, n)
			if left > 0 || rng.IntN(3) > 0 {
				continue
			}
			price := money.Price(100 + rng.IntN(9))
			one.Trade(price, price, trading.Sell)
			other.Trade(price, price, trading.Sell)
			if head, _ := one.Head(); head.Order.ID != victim {
				one.Remove(head.Order.ID)
				other.Remove(head.Order.ID)
			}
		}
		text := fmt.Sprintf("{Order:{ID:%d ", victim)
		if (differ != nil) != (victim <= count) || differ != nil && (differ.One == differ.Other ||
			!strings.HasPrefix(differ.One, text) || !strings.HasPrefix(differ.Other, text)) {
			t.Fatalf("seed %d: stop %d differs: %+v", seed, victim, differ)
		}
	}
}

// Records of stops are reused, and stops in warm memory allocate nothing.
func TestWarmStopsAllocateNothing(t *testing.T) {
	s := NewStops()
	id := uint64(0)
	round := func() {
		for i := range int64(500) {
			id++
			s.Add(stop(id, trading.Rise+trading.Direction(i%2), 1000-i))
		}
		s.Trade(700, 900, trading.Buy)
		for s.Queued() > 0 {
			head, _ := s.Head()
			s.Remove(head.Order.ID)
		}
		for ; s.Len() > 0; id-- {
			s.Remove(id)
		}
		id += 500
	}
	for range 100 {
		round()
	}
	if n := testing.AllocsPerRun(50, round); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
	if s.records.used > 500 {
		t.Errorf("%d records for 500 stops at most", s.records.used)
	}
	if n := testing.AllocsPerRun(50, func() { s.Trade(1, 5, trading.Buy) }); n != 0 {
		t.Errorf("%v allocations of a trade", n)
	}
}

func TestStopsReleaseTheMemoryOfABurst(t *testing.T) {
	s := NewStops()
	for id := range uint64(emptyFrom) {
		s.Add(stop(id+1, trading.Rise, int64(100+id)))
	}
	s.Trade(1, 200, trading.Buy)
	for id := range uint64(emptyFrom) {
		if s.records.used != emptyFrom {
			t.Fatalf("with %d stops left there are %d records", s.Len(), s.records.used)
		}
		if got, ok := s.Remove(id + 1); !ok || got.Order.ID != id+1 {
			t.Fatalf("stop %d is %+v, %v", id+1, got, ok)
		}
	}
	if s.records.used != 0 || s.Queued() != 0 {
		t.Errorf("no stop is left, with %d records and %d queued", s.records.used, s.Queued())
	}
	s.Add(stop(1, trading.Fall, 100))
	if s.Trade(100, 100, trading.Buy) != 1 {
		t.Error("a stop that follows is not triggered")
	}
}
