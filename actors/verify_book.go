package actors

import (
	"fmt"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/matching"
	"exchange/core/state"
	"exchange/core/trading"
)

// A bookPart is a part of what a book has, as its actor has it: some orders, then some stops, then
// what is known of some orders; each time also whether the pair is halted.
type bookPart struct {
	pair   *directory.Pair
	halted bool
	step   bookStep
	orders matching.Comparison
	stops  matching.StopComparison

	listed bool
	ids    []uint64 // of the orders of which more is known, those not compared yet
	known  []knownOrder
	count  int // of all orders of which more is known
}

// A bookStep is the subject of a part.
type bookStep int

const (
	stepOrders bookStep = iota
	stepStops
	stepStanding
)

// A knownOrder is what a book knows of an open order beyond side, price and amount.
type knownOrder struct {
	id uint64
	standing
}

// take copies the next n, on the turn of the book.
func (b *bookPart) take(from *book, n int) {
	b.halted = from.halted
	switch b.step {
	case stepOrders:
		b.orders.Take(from.orders, n)
	case stepStops:
		b.stops.Take(from.stops, n)
	case stepStanding:
		if !b.listed {
			b.listed = true
			for id := range from.standing { // those that come later are not compared
				b.ids = append(b.ids, id)
			}
		}
		n = min(n, len(b.ids))
		b.known, b.count = b.known[:0], len(from.standing)
		for _, id := range b.ids[:n] {
			if s := from.standing[id]; s != nil {
				b.known = append(b.known, knownOrder{id, *s})
			}
		}
		b.ids = b.ids[n:]
	}
}

// with compares the copies with the committed side of the pair, which has all that the book had
// decided, and no more. It reports whether these were the last.
func (b *bookPart) with(s *state.State) (done bool, err error) {
	market := s.Pair(b.pair.Number)
	if b.halted != market.Halted {
		return true, fmt.Errorf("%s: the working book is halted: %v, the committed one: %v",
			b.pair.Name, b.halted, market.Halted)
	}
	var working, committed string
	switch b.step {
	case stepOrders:
		over, differ := b.orders.With(market.Book)
		if differ != nil {
			working, committed = differ.Texts()
		} else if over {
			b.step = stepStops
		}
	case stepStops:
		over, differ := b.stops.With(market.Stops)
		if differ != nil {
			working, committed = differ.Texts()
		} else if over {
			b.step = stepStanding
		}
	case stepStanding:
		if err := b.compareKnown(s, market); err != nil {
			return true, err
		}
		return len(b.ids) == 0, nil
	}
	if working != "" {
		return true, fmt.Errorf("%s: the working book has %s where the committed one has %s",
			b.pair.Name, working, committed)
	}
	return false, nil
}

// compareKnown compares what both sides know of some open orders.
func (b *bookPart) compareKnown(s *state.State, market *state.Pair) error {
	if n := market.InstructedOrders(); n != b.count {
		return fmt.Errorf("%s: the working book knows more of %d orders, the committed one of %d",
			b.pair.Name, b.count, n)
	}
	for i := range b.known {
		k := &b.known[i]
		var is knownOrder
		if x := market.Instructed(k.id); x != nil {
			o, _ := market.Open(k.id)
			is = knownOrder{k.id, standingOf(x, s.Account(o.Account).ClientIDs.Of(k.id))}
		}
		if !k.equal(&is.standing) {
			return fmt.Errorf("%s: of order %d the working book knows %+v, the committed one %+v",
				b.pair.Name, k.id, k.standing, is.standing)
		}
	}
	return nil
}

// standingOf returns what a book must know of an order that the state has.
func standingOf(x *trading.Instructed, id event.ClientID) standing {
	s := standing{Instructions: x.Instructions, clientID: id, triggered: x.Triggered}
	s.Prevented, s.Cancelled = nil, 0
	return s
}

// equal reports whether both sides know the same.
func (s *standing) equal(t *standing) bool {
	one := trading.Instructed{Instructions: s.Instructions, Triggered: s.triggered}
	other := trading.Instructed{Instructions: t.Instructions, Triggered: t.triggered}
	return s.clientID == t.clientID && one.Pack() == other.Pack()
}
