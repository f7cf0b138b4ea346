package actors

import (
	"slices"

	"exchange/core/event"
	"exchange/core/ledger"
)

// cancelAllWidth bounds the cancels of one cancelAll in flight. They take no slots of clients'
// commands, and a journal batch holds some thousands. Each cancelAll may have one; the others share
// Limits.InFlight over all accounts.
const cancelAllWidth = 256

// releasedCancel returns a cancel of a cancelAll to its wallet. The cancel is then durable and
// folded.
type releasedCancel struct{ command *Command }

// beginCancelAll begins a client's or an operator's cancelAll.
func (w *wallet) beginCancelAll(c *Command) {
	f := ledger.OpenFilter{Side: c.order.side}
	if c.pair != nil {
		f.Pair = c.pair.Number
	}
	c.outcome = Accepted
	if w.startCancels(c, f, c.order.clientID); w.cancellingAll == nil {
		w.refuse(c, event.RefusedNoOrders)
	}
}

// startCancels lists the open orders that pass a filter, and begins to cancel them. With none, no
// cancelAll is running afterwards. Everything the wallet sent before is released by then, so the
// list contains every earlier open order, and no later one.
func (w *wallet) startCancels(c *Command, f ledger.OpenFilter, prefix event.ClientID) {
	s := &cancelAll{parent: c}
	for o := range w.open.Orders().NewestOf(f) {
		if w.clientIDs.Of(o.ID).HasPrefix(prefix) {
			s.ids = append(s.ids, o.ID)
		}
	}
	if len(s.ids) == 0 {
		return
	}
	slices.Reverse(s.ids) // oldest first
	w.cancellingAll = s
	w.sendCancels()
}

// sendCancels sends cancels up to the limit in flight. Each carries the nonce of the cancelAll. An
// order that has closed meanwhile needs none.
func (w *wallet) sendCancels() {
	s := w.cancellingAll
	for len(s.ids) > 0 && s.out < cancelAllWidth {
		id := s.ids[0]
		if w.open.Pair(id) == 0 {
			s.ids = s.ids[1:]
			continue
		}
		if s.out > 0 && !w.out.takeCancelSlot() {
			return
		}
		s.ids = s.ids[1:]
		c := newCommand(event.KindCancel)
		c.key, c.account, c.operator = s.parent.key, s.parent.account, s.parent.operator
		c.order.nonce, c.order.id, c.partOf = s.parent.order.nonce, id, s
		if fires := s.parent.switchRequest.fires; fires != (switchID{}) {
			c.switchReason, c.switchRequest.fires = fires.reason(), fires
			c.timeUs = max(c.timeUs, s.parent.timeUs) // not before the switch was due
		}
		s.out++
		w.cancel(c)
	}
}

// countReleased counts a released cancel, or its refusal if the order closed meanwhile, and sends
// the next ones. It returns the cancel-all command once all its cancels are released, else nil.
func (w *wallet) countReleased(c *Command) (ended *Command) {
	s := w.cancellingAll
	if c.outcome == Accepted && c.switchReason == 0 {
		s.parent.cancelledOrders = append(s.parent.cancelledOrders, c.record.Cancel.Order)
	}
	c.Free()
	if s.out--; s.out > 0 {
		w.out.returnCancelSlot()
	}
	if w.sendCancels(); s.out > 0 {
		return nil
	}
	w.cancellingAll = nil
	return s.parent
}

func (w *wallet) cancel(c *Command) {
	w.resolveOrderID(c)
	pair := w.open.Pair(c.order.id)
	if pair == 0 {
		w.refuse(c, event.RefusedNotOpen)
		return
	}
	c.record.Pair = pair
	c.ticket = w.tickets.draw()
	w.out.toBook(c)
}
