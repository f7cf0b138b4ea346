package actors

import (
	"slices"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/money"
	"exchange/core/trading"
)

// amend reserves the most that a change of an open order can need, whatever is filled meanwhile,
// and sends the change to the book. A change without money or room goes there, too, because the
// book's own checks come first.
//
// It returns false if another change of the order is in flight, because its terms are then unknown.
// It also returns false if commands in flight may be the reason to refuse the change: a book's
// refusal is not held back.
func (w *wallet) amend(c *Command) (decided bool) {
	w.resolveOrderID(c)
	order, was, open := w.open.Find(c.order.id)
	if !open {
		w.refuse(c, event.RefusedNotOpen)
		return true
	}
	if slices.Contains(w.amendedOrders, order.ID) {
		return false
	}
	has, more := w.flagsOf(order.ID), orderFlags(0)
	if c.amend.ExpireUs != 0 && has&flagGTD == 0 {
		more = flagGTD
	}
	p := w.out.PairByNumber(order.Pair)
	currency, need := c.amend.need(order.Side, was, has, p)
	c.denied = w.checkFlagLimits(order.Pair, more)
	if c.denied == 0 && !w.reserve(c, currency, need) {
		c.denied = event.RefusedFunds
	}
	switch {
	case c.denied == 0:
		c.countedFlags = more
		w.countFlags(order.Pair, more, 1)
	case w.tickets.out() > 0:
		return false
	}
	c.amendedOrder, c.pair, c.record.Pair = order.ID, p, order.Pair
	c.order.id, c.order.clientID = order.ID, w.clientIDs.Of(order.ID) // its record contains both
	w.amendedOrders = append(w.amendedOrders, order.ID)
	c.amend.selfTrade = w.setting()
	c.ticket = w.tickets.draw()
	w.out.toBook(c)
	return true
}

// need returns the most money that a change can need beyond the order's reserve, and the currency.
func (a *amendRequest) need(side trading.Side, was ledger.Terms, has orderFlags,
	p *directory.Pair) (uint16, money.Balance) {
	is := was
	if a.Amount != 0 {
		is.Amount = a.Amount
	}
	if a.Price != 0 {
		is.Price = a.Price
	}
	if has&flagSlides != 0 {
		was.Price = 0 // a trigger in between moves it to a better price, at which it holds less
	}
	return ledger.NeedOfAmend(side, was, is, p.BaseNumber, p.QuoteNumber)
}
