package matching

import (
	"fmt"
	"iter"

	"exchange/core/trading"
)

// A Resting order is one with its hidden part, which its remaining amount includes.
type Resting struct {
	trading.Order
	Iceberg
}

func (r Resting) String() string {
	if r.Hidden == 0 {
		return fmt.Sprintf("%+v", r.Order)
	}
	return fmt.Sprintf("%+v, %+v", r.Order, r.Iceberg)
}

// Open yields the orders of both sides, buys first, each side in the order of Orders. The remaining
// amounts include the hidden parts. Adding them to a new book with AddIceberg makes an equal book.
// The book must not change meanwhile. It yields only orders after those in before; all if before is
// empty.
func (b *Book) Open(before []Resting) iter.Seq[Resting] {
	return func(yield func(Resting) bool) {
		side, best, first := trading.Buy, ^uint64(0), uint32(0)
		if last := len(before) - 1; last >= 0 {
			side = before[last].Side
			best = keyOf(side, before[last].Price)
			first = b.lastInPlace(before)
		}
		for ; side <= trading.Sell; side++ {
			for ln := range b.side(side).bestFrom(best) {
				at := b.levels.at(ln).head
				if first != 0 {
					at, first = b.orders.at(first).next, 0
				}
				for ; at != 0; at = b.orders.at(at).next {
					if !yield(Resting{b.order(at), b.icebergs[at]}) {
						return
					}
				}
			}
			best = ^uint64(0)
		}
	}
}

// lastInPlace returns the record of the last of the orders that is still unchanged and at its
// position, among those at the price of the last. It returns 0 when there is none: Open then starts
// over at their level, with fewer orders left. An order that a taker moved back in its level, or
// its owner in the book, counts as changed.
func (b *Book) lastInPlace(orders []Resting) uint32 {
	last := len(orders) - 1
	for i := last; i >= 0 && orders[i].Price == orders[last].Price; i-- {
		o := &orders[i]
		if n := b.ids.lookup(o.ID, &b.orders); n != 0 && b.order(n) == o.Order {
			return n
		}
	}
	return 0
}

// bestFrom yields the numbers of the levels whose keys are at most key, best first.
func (l *ladder) bestFrom(key uint64) func(yield func(level uint32) bool) {
	return func(yield func(level uint32) bool) {
		if len(l.runs) == 0 {
			return
		}
		for i := countUpTo(l.firsts, key) - 1; i >= 0; i-- {
			r := l.runs[i]
			for pos := countUpTo(r.keys[:r.n], key) - 1; pos >= 0; pos-- {
				if !yield(r.levels[pos]) {
					return
				}
			}
		}
	}
}

// All yields the stops: rising, falling, then queued ones, each in the order of Trade. Adding them
// to new Stops in this order makes equal Stops. They must not change meanwhile. It yields only
// stops after those in before; all if before is empty. A stop triggered since then is yielded
// again.
func (s *Stops) All(before []Stop) iter.Seq[Stop] {
	return func(yield func(Stop) bool) {
		list, from := s.placeAfter(before)
		for ; list < 3; list++ {
			for e := range [...]*sorted{&s.rising, &s.falling, &s.queue}[list].from(from) {
				if !yield(s.records.at(s.numbers[e.id]).Stop) {
					return
				}
			}
			from = entry{}
		}
	}
}

// placeAfter returns the list, and the place in it, after some stops. In the queue that is after
// the last one that is unchanged, ignoring turns, which differ between sides. Without any it is the
// start of the queue, which then has fewer left.
func (s *Stops) placeAfter(stops []Stop) (list int, place entry) {
	last := len(stops) - 1
	if last < 0 {
		return 0, entry{}
	}
	if stop := stops[last]; !stop.Queued {
		e := (&waiting{Stop: stop}).entry()
		return int(stop.Trigger.When - trading.Rise), entry{e.key, e.id + 1}
	}
	for i := last; i >= 0 && stops[i].Queued; i-- {
		id := stops[i].Order.ID
		if n, ok := s.numbers[id]; ok && s.records.at(n).Stop == stops[i] {
			return 2, entry{s.records.at(n).turn, id + 1}
		}
	}
	return 2, entry{}
}
