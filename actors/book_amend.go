package actors

import (
	"fmt"

	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/matching"
	"exchange/core/trading"
)

// amend decides a change of an open order. Faults of the change itself come before the wallet's
// refusal.
func (b *book) amend(c *Command) {
	x, open := b.changeOf(c)
	if !open {
		c.refuse(event.RefusedNotOpen)
		return
	}
	if due(x.is.ExpireUs, c.timeUs) {
		b.endByAmend(c, x, trading.CancelledExpired)
		return
	}
	if c.faults = x.faults(c.amend, b.pair); len(c.faults) > 0 {
		c.refuse(event.RefusedRules)
		return
	}
	if x.amount <= x.filledAmount() {
		b.endByAmend(c, x, trading.CancelledAmended)
		return
	}
	if reason := b.refusalOfAmend(c, x); reason != 0 {
		c.refuse(reason)
		return
	}
	if c.denied != 0 {
		c.refuse(c.denied)
		return
	}
	b.checkReserve(c, x)
	switch {
	case x.outside():
		b.amendStop(c, x)
	case x.keepsPriority():
		b.amendInPlace(c, x)
	default:
		b.amendReenter(c, x)
	}
}

// changeOf returns the change that an amend requests; false: the order is not open.
func (b *book) changeOf(c *Command) (*change, bool) {
	o, open := b.find(c.order.id)
	if !open {
		return nil, false
	}
	x, a := &change{was: o, price: o.Price, amount: o.Amount}, c.amend
	x.is.clientID = c.order.clientID
	if s := b.extras[o.ID]; s != nil {
		x.is = *s
	}
	x.stop, _ = b.stopBook.Get(o.ID)
	if x.outside() {
		x.trigger = x.stop.Trigger
	}
	if a.Price != 0 {
		x.price, x.is.Derived = a.Price, false
	}
	if a.Amount != 0 {
		x.amount = a.Amount
	}
	if a.ExpireUs != 0 {
		x.is.ExpireUs = a.ExpireUs
	}
	if a.Display != 0 {
		x.is.Display = a.Display
	}
	if a.Trigger != 0 && x.outside() {
		x.trigger.Price = a.Trigger
	}
	if a.Trigger != 0 && x.stop.InBook {
		x.is.OCO.Trigger = a.Trigger
	}
	x.is.PostOnly = x.is.PostOnly || a.PostOnly || a.Slide
	return x, true
}

// refusalOfAmend returns why a change is refused, 0 if it is not. A post-only order may get another
// price than requested.
func (b *book) refusalOfAmend(c *Command, x *change) uint8 {
	a, lasts := c.amend, x.keepsPriority() || x.outside()
	if b.halted && !lasts {
		return event.RefusedHalted
	}
	if b.wouldTrigger(a, x) {
		c.bound = b.last
		return event.RefusedWouldTrigger
	}
	if c.order.side = x.was.Side; !b.amendedInBand(c, x) {
		return event.RefusedPriceBand
	}
	if a.Slide || x.is.Asked != 0 && a.Price != 0 {
		x.is.Asked = x.price
	}
	if x.is.PostOnly && !lasts {
		price, ok := b.postOnlyPrice(x.was.Side, x.price, x.amount, x.is.Asked != 0)
		if !ok {
			return event.RefusedWouldTrade
		}
		x.price = price
	}
	if s := b.extras[x.was.ID]; a.ExpireUs != 0 && (s == nil || s.ExpireUs == 0) &&
		b.expirySchedule.Len() >= b.limits.Load().GTDPerBook {
		return event.RefusedGTDLimit
	}
	return 0
}

// amendedInBand reports whether the prices that a change moves, or whose references it moves, are
// within the pair's band. As in a placement, a stop's price is checked around its trigger, also
// that of an OCO. A stop price that its owner did not give is clamped into the band.
func (b *book) amendedInBand(c *Command, x *change) bool {
	side, was := x.was.Side, x.stop.Trigger.Price
	switch {
	case !x.outside():
		return (x.price == x.was.Price || b.inBand(c, x.price, b.last)) &&
			(!x.stop.InBook || x.is.OCO.Price == 0 || x.is.OCO.Trigger == was ||
				b.inBand(c, x.is.OCO.Price, x.is.OCO.Trigger))
	case x.price == x.was.Price && x.trigger.Price == was:
		return true
	case x.is.Derived:
		x.price = b.pair.WithinBand(side, x.price, x.trigger.Price)
		return true
	}
	return b.inBand(c, x.price, x.trigger.Price)
}

// wouldTrigger reports whether the last price triggers the change at once, or the order was already
// triggered.
func (b *book) wouldTrigger(a *amendRequest, x *change) bool {
	fall := trading.Trigger{Price: x.is.OCO.Trigger, When: trading.Fall}
	switch {
	case x.outside():
		return a.Trigger != 0 && (x.stop.Queued || b.reached(x.trigger))
	case x.stop.InBook:
		return x.stop.Queued && (a.Trigger != 0 || !x.keepsPriority()) ||
			a.Trigger != 0 && b.reached(fall)
	}
	return false
}

// checkReserve checks that the wallet has reserved enough for the change.
func (b *book) checkReserve(c *Command, x *change) {
	base, quote := b.pair.BaseNumber, b.pair.QuoteNumber
	_, held := ledger.Need(x.was.Side, x.was.Price, x.was.Remaining, base, quote)
	_, need := ledger.Need(x.was.Side, x.price, x.amount-x.filledAmount(), base, quote)
	if need.Cmp(held.Add(c.reserved.amount)) > 0 {
		panic(fmt.Sprintf("BUG: %s: order %d holds %v, its change to %v at %v needs %v, and its "+
			"wallet has reserved %v", b.pair.Name, x.was.ID, held, x.amount, x.price, need,
			c.reserved.amount))
	}
}

// resolveSelfTrade applies the account's current setting to an order without a self-trade mode of
// its own.
func (x *change) resolveSelfTrade(a *amendRequest) {
	if !x.is.SelfTradeOwn {
		x.is.SelfTrade = a.selfTrade
	}
}

// beginAmend begins the record of a change, with the order as changed.
func (b *book) beginAmend(c *Command, x *change) *event.Record {
	o, r := &x.was, c.begin(event.KindAmended, b.pair.Number)
	r.Order = event.Order{ID: o.ID, Account: o.Account, Key: c.keyNumber(), Nonce: c.order.nonce,
		Side: o.Side, Price: x.price, Amount: x.amount, Remaining: x.amount - x.filledAmount(),
		ClientID: x.is.clientID, Trades: r.Order.Trades[:0]}
	r.Amended = event.Amended{ID: b.ids.order.Add(1),
		Was: event.Was{Price: o.Price, Open: o.Remaining}, Kept: x.keepsPriority()}
	r.Trigger, r.Instructions = x.trigger, x.is.Instructions
	c.outcome = Accepted
	return r
}

// endByAmend closes an order instead of changing it. The order keeps its values.
func (b *book) endByAmend(c *Command, x *change, reason trading.Reason) {
	if s := b.extras[x.was.ID]; s != nil {
		x.is = *s
	} else {
		x.is = orderExtra{clientID: c.order.clientID}
	}
	x.price, x.amount = x.was.Price, x.was.Amount
	if x.outside() {
		x.trigger = x.stop.Trigger
	}
	r := b.beginAmend(c, x)
	b.close(x.was.ID)
	cancelRest(r, reason)
	c.encode()
}

// amendStop changes an order that waits outside the book, and keeps waiting.
func (b *book) amendStop(c *Command, x *change) {
	x.resolveSelfTrade(c.amend)
	r := b.beginAmend(c, x)
	o := orderOf(r, x.was.TimeUs)
	b.stopBook.Amend(o.ID, o.Price, o.Amount, o.Remaining)
	if x.trigger != x.stop.Trigger {
		b.stopBook.Remove(o.ID)
		b.stopBook.Add(matching.Stop{Order: o, Trigger: x.trigger})
	}
	b.updateExtra(x)
	c.encode()
}

// amendInPlace changes a resting order that keeps its queue position.
func (b *book) amendInPlace(c *Command, x *change) {
	if x.is.waitsForOCO() {
		x.resolveSelfTrade(c.amend)
	}
	b.beginAmend(c, x)
	b.orders.Amend(x.was.ID, x.amount, x.is.Display)
	if x.stop.InBook && !x.stop.Queued && x.is.OCO.Trigger != x.stop.Trigger.Price {
		b.stopBook.Remove(x.was.ID)
		x.stop.Trigger.Price = x.is.OCO.Trigger
		b.stopBook.Add(x.stop)
	}
	b.updateExtra(x)
	c.encode()
}

// updateExtra replaces the extra of an order that stays open and among the stops.
func (b *book) updateExtra(x *change) {
	id := x.was.ID
	if s := b.extras[id]; s != nil {
		delete(b.extras, id)
		b.unschedule(id, s)
	}
	b.setExtra(id, &x.is)
}

// amendReenter changes a resting order that loses its queue position: it is matched again.
func (b *book) amendReenter(c *Command, x *change) {
	x.resolveSelfTrade(c.amend)
	r := b.beginAmend(c, x)
	b.takeOut(x.was.ID)
	b.forget(x.was.ID)
	b.enter(r, entering{account: c.account, placedUs: x.was.TimeUs, triggered: x.is.triggered,
		prevented: x.is.prevented})
	c.encode()
}
