package actors

import (
	"fmt"

	"exchange/actors/directory"
	"exchange/core/compare"
	"exchange/core/event"
	"exchange/core/matching"
	"exchange/core/state"
	"exchange/core/trading"
)

// A bookPart is a copy of part of a book, as its actor holds it: some orders or, after all of them,
// some stops, each with its extra. Each part also has the pair's halt, and the number of extras.
type bookPart struct {
	pair      *directory.Pair
	halted    bool
	known     int
	orders    compare.Lists[matching.Resting]
	stopLists compare.Lists[matching.Stop]
	onStops   bool
}

// copyFrom copies the next n, on the turn of the book.
func (b *bookPart) copyFrom(from *book, n int) {
	b.halted, b.known = from.halted, len(from.extras)
	orders, stops := sidesOf(from.orders, from.stopBook, func(o trading.Order) any {
		if s := from.extras[o.ID]; s != nil {
			return s.detail()
		}
		return nil
	})
	if b.onStops {
		b.stopLists.Take(stops, n)
	} else {
		b.orders.Take(orders, n)
	}
}

// compareWith compares the copies with the pair's committed side, which has exactly the book's
// decisions. It reports whether these were the last.
func (b *bookPart) compareWith(s *state.State) (done bool, err error) {
	market := s.Pair(b.pair.Number)
	if b.halted != market.Halted {
		return true, fmt.Errorf("%s: the working book is halted: %v, the committed one: %v",
			b.pair.Name, b.halted, market.Halted)
	}
	if n := market.InstructedOrders(); n != b.known {
		return true, fmt.Errorf("%s: the working book has extras of %d orders, the committed one "+
			"of %d", b.pair.Name, b.known, n)
	}
	orders, stops := sidesOf(market.Book, market.Stops, func(o trading.Order) any {
		if x := market.Instructed(o.ID); x != nil {
			is := extraOf(x, s.Account(o.Account).ClientIDs.Of(o.ID))
			return is.detail()
		}
		return nil
	})
	var left int
	var differ *compare.Difference
	if b.onStops {
		left, differ = b.stopLists.With(stops)
	} else {
		left, differ = b.orders.With(orders)
	}
	if differ != nil {
		return true, fmt.Errorf("%s: the working book has %s where the committed one has %s",
			b.pair.Name, differ.One, differ.Other)
	}
	done = b.onStops && left > 0
	b.onStops = b.onStops || left > 0
	return done, nil
}

// sidesOf returns a pair's orders and stops for a comparison, with their extras.
func sidesOf(orders *matching.Book, stops *matching.Stops, more func(trading.Order) any) (
	compare.Side[matching.Resting], compare.Side[matching.Stop]) {
	return compare.Side[matching.Resting]{After: orders.Open,
			More: func(o matching.Resting) any { return more(o.Order) }},
		compare.Side[matching.Stop]{After: stops.All,
			More: func(s matching.Stop) any { return more(s.Order) }}
}

// extraOf returns the extra of an order of the state.
func extraOf(x *trading.Instructed, id event.ClientID) orderExtra {
	s := orderExtra{Instructions: x.Instructions, clientID: id, triggered: x.Triggered,
		prevented: len(x.Prevented) > 0}
	s.Prevented, s.Cancelled = nil, 0
	return s
}

// An orderDetail is an open order's extra in a book, beyond the compared lists.
type orderDetail struct {
	ClientID event.ClientID
	Says     trading.Packed
}

func (s *orderExtra) detail() orderDetail {
	x := trading.Instructed{Instructions: s.Instructions, Triggered: s.triggered}
	return orderDetail{s.clientID, x.Pack()}
}

func (d orderDetail) String() string {
	return fmt.Sprintf("client id %q, instructions %x", d.ClientID.String(), string(d.Says))
}
