package actors

import (
	"fmt"

	"exchange/core/event"
)

// remember notes an order with a client order id that the newest record has closed.
func (w *wallet) remember(id event.ClientID, order uint64, placedUs int64) {
	if w.closed == nil {
		w.closed = new(closedIDs)
		w.out.remembers(w.account, w.applied)
	}
	c := w.closed
	if older, there := c.newest.Order(id); there {
		c.newest.Close(older)
	}
	c.newest.Open(order, id, placedUs)
	c.line.Push(closedOrder{order, w.applied})
}

// forget drops the orders that closed up to a sequence, which each look knows.
func (w *wallet) forget(known uint64) {
	w.forgotten = max(w.forgotten, known)
	c := w.closed
	for c.line.Len() > 0 && c.line.First().seq <= known {
		c.newest.Close(c.line.Pop().id) // unless a later order with its id has closed
	}
	if w.closed = nil; c.line.Len() > 0 {
		w.closed = c
		w.out.remembers(w.account, c.line.Last().seq)
	}
}

// takenBy returns the order that has the client order id of a command; 0: it is free.
func (w *wallet) takenBy(c *Command) uint64 {
	id, look := c.order.clientID, &c.order.look
	if look.Seq < w.forgotten {
		panic(fmt.Sprintf("BUG: wallet %s has forgotten orders that closed up to sequence %d, and "+
			"a handler looked at %d", w.account.Name, w.forgotten, look.Seq))
	}
	if order, open := w.clientIDs.Order(id); open {
		return order
	}
	if w.closed != nil {
		if order, there := w.closed.newest.Order(id); there &&
			w.closed.newest.PlacedUs(order) > w.out.limits().placedAfter(c.timeUs) {
			return order
		}
	}
	return look.Order
}
