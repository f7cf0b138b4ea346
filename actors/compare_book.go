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

// A bookPart is a part of what a book has, as its actor has it: some orders or, after all of them,
// some stops, each with what is known of it; each time also whether the pair is halted, and of how
// many orders more is known.
type bookPart struct {
	pair    *directory.Pair
	halted  bool
	known   int
	orders  compare.Lists[matching.Resting]
	stops   compare.Lists[matching.Stop]
	onStops bool
}

// take copies the next n, on the turn of the book.
func (b *bookPart) take(from *book, n int) {
	b.halted, b.known = from.halted, len(from.standing)
	orders, stops := sidesOf(from.orders, from.stops, func(o trading.Order) any {
		if s := from.standing[o.ID]; s != nil {
			return s.detail()
		}
		return nil
	})
	if b.onStops {
		b.stops.Take(stops, n)
	} else {
		b.orders.Take(orders, n)
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
	if n := market.InstructedOrders(); n != b.known {
		return true, fmt.Errorf("%s: the working book knows more of %d orders, the committed one "+
			"of %d", b.pair.Name, b.known, n)
	}
	orders, stops := sidesOf(market.Book, market.Stops, func(o trading.Order) any {
		if x := market.Instructed(o.ID); x != nil {
			is := standingOf(x, s.Account(o.Account).ClientIDs.Of(o.ID))
			return is.detail()
		}
		return nil
	})
	var left int
	var differ *compare.Difference
	if b.onStops {
		left, differ = b.stops.With(stops)
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

// sidesOf returns a pair's orders and stops for a comparison, with what more is known of an order.
func sidesOf(orders *matching.Book, stops *matching.Stops, more func(trading.Order) any) (
	compare.Side[matching.Resting], compare.Side[matching.Stop]) {
	return compare.Side[matching.Resting]{After: orders.Open,
			More: func(o matching.Resting) any { return more(o.Order) }},
		compare.Side[matching.Stop]{After: stops.All,
			More: func(s matching.Stop) any { return more(s.Order) }}
}

// standingOf returns what a book must know of an order that the state has.
func standingOf(x *trading.Instructed, id event.ClientID) standing {
	s := standing{Instructions: x.Instructions, clientID: id, triggered: x.Triggered,
		prevented: len(x.Prevented) > 0}
	s.Prevented, s.Cancelled = nil, 0
	return s
}

// An orderDetail is what a book knows of an open order beside what lists have.
type orderDetail struct {
	ClientID event.ClientID
	Says     trading.Packed
}

func (s *standing) detail() orderDetail {
	x := trading.Instructed{Instructions: s.Instructions, Triggered: s.triggered}
	return orderDetail{s.clientID, x.Pack()}
}

func (d orderDetail) String() string {
	return fmt.Sprintf("client id %q, instructions %x", d.ClientID.String(), string(d.Says))
}
