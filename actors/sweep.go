package actors

import (
	"slices"

	"exchange/core/event"
)

// A sweep cancels all open orders of an account, or those of one pair: an order to cancel each,
// some at a time, and one answer when the last is released. Its wallet owns it, and has one at a
// time.
type sweep struct {
	parent *Command
	ids    []uint64 // still to be sent
	out    int      // sent and not released
}

// sweepWidth is how many cancels of one sweep are on their way at once: they take no place in the
// admission limits, and a batch of the journal has room for some thousands. Each sweep may have
// one; the others share as many as there may be commands in flight, over all accounts.
const sweepWidth = 256

// swept gives a cancel of a sweep back to its wallet when it is durable, and known to the committed
// side.
type swept struct{ command *Command }

// cancelAll begins when everything that the wallet sent before has been released: an order that was
// on its way is then open, and is cancelled too. What comes later is not.
func (w *wallet) cancelAll(c *Command) {
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
	c.outcome, w.sweep = Accepted, s
	w.sweepOn()
}

// sweepOn sends as many cancels as may be on their way. All of them carry the nonce that was taken.
// Orders that closed meanwhile need none.
func (w *wallet) sweepOn() {
	s := w.sweep
	for len(s.ids) > 0 && s.out < sweepWidth {
		id := s.ids[0]
		if w.open.Pair(id) == 0 {
			s.ids = s.ids[1:]
			continue
		}
		if s.out > 0 && !w.out.widenSweep() {
			return
		}
		s.ids = s.ids[1:]
		c := newCommand(event.KindCancel)
		c.key, c.account, c.operator, c.sweep = s.parent.key, s.parent.account, s.parent.operator, s
		c.order.nonce, c.order.id = s.parent.order.nonce, id
		s.out++
		w.cancel(c)
	}
}

// swept counts a cancel of the sweep that is durable, or its refusal: the order closed meanwhile.
func (w *wallet) swept(c *Command) {
	s := w.sweep
	if c.outcome == Accepted {
		s.parent.cancelled = append(s.parent.cancelled, c.record.Cancel.Order)
	}
	c.Free()
	if s.out--; s.out > 0 {
		w.out.narrowSweep()
	}
	if w.sweepOn(); s.out > 0 {
		return
	}
	w.sweep = nil
	slices.Sort(s.parent.cancelled)
	w.out.finish(s.parent, Accepted)
	w.goOn()
}
