package actors

import (
	"slices"

	"exchange/core/event"
)

// A sweep cancels all open orders of an account, or those of one pair: an order to cancel each, a few at
// a time, and one answer when the last is released. The wallet owns ids; the journal's writer the rest.
type sweep struct {
	parent *Command
	ids    []uint64 // still to be sent
	left   int      // not released yet
}

// sweepWidth is how many cancels of one sweep are on their way at once: they take no place in the
// admission limits.
const sweepWidth = 64

// cancelAll begins when everything that the wallet sent before has been released: an order that is on its
// way is then open, and is cancelled too.
func (w *wallet) cancelAll(c *Command) {
	if w.tickets.out() > 0 {
		w.held = append(w.held, heldBack{upTo: w.tickets.last(), command: c})
		return
	}
	w.sweep(c)
}

func (w *wallet) sweep(c *Command) {
	s := &sweep{parent: c}
	for o := range w.open.Newest() {
		if c.pair == nil || o.Pair == c.pair.Number {
			s.ids = append(s.ids, o.ID)
		}
	}
	if len(s.ids) == 0 {
		w.refuse(c, event.RefusedNoOrders)
		return
	}
	slices.Reverse(s.ids) // oldest first
	c.outcome, s.left = Accepted, len(s.ids)
	for range sweepWidth {
		w.sendNext(s)
	}
}

// sendNext sends the cancel of one more order. All of them carry the nonce that was taken.
func (w *wallet) sendNext(s *sweep) {
	if len(s.ids) == 0 {
		return
	}
	c := newCommand(event.KindCancel)
	c.key, c.account, c.who, c.sweep = s.parent.key, s.parent.account, s.parent.who, s
	c.order.nonce, c.order.id = s.parent.order.nonce, s.ids[0]
	s.ids = s.ids[1:]
	w.cancel(c)
}

// released counts a cancel of the sweep that is durable, or its refusal: the order closed meanwhile. True:
// it was the last.
func (s *sweep) released(c *Command) bool {
	if c.outcome == Accepted {
		s.parent.orders = append(s.parent.orders, c.record.Cancel.Order)
	}
	c.Free()
	if s.left--; s.left > 0 {
		return false
	}
	slices.Sort(s.parent.orders)
	return true
}
