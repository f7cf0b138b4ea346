package spec

import (
	"fmt"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// applyAmended changes an open order.
func (m *Exchange) applyAmended(r *event.Record) error {
	o, a, p := &r.Order, &r.Amended, m.Pairs[r.Pair-1]
	if err := m.takeNonce(r.Kind, o.Key, o.Account, o.Nonce); err != nil {
		return err
	}
	if err := m.takeID(p, &a.ID, r.TimeUs); err != nil {
		return err
	}
	x := p.Find(o.ID)
	if x == nil || o.Account != x.Account || !m.saysWhose(o, x) ||
		!says(m, &a.Was, event.Was{Price: x.Price, Open: x.Remaining}) {
		return fmt.Errorf("order %d of account %d is amended from %+v, and is %+v", o.ID, o.Account,
			a.Was, x)
	}
	is := r.Instructions
	is.Prevented, is.Cancelled = x.Says.Prevented, 0
	if err := onlyAmended(x, &is); err != nil {
		return err
	}
	m.touched = append(m.touched, o.Account)
	if m.deciding {
		m.decideEnd(r, x)
		if slid, ok := p.slide(x.Side, is.Asked, max(p.Tick, 1)); ok && is.Asked != 0 && !x.Waits {
			o.Price = slid
		}
	}
	before := p.display()
	if reason := r.Instructions.Cancelled; o.RestCancelled && len(o.Trades) == 0 &&
		(reason == trading.CancelledAmended || reason == trading.CancelledExpired) {
		return m.amendEnds(p, r, x, &is, before)
	}
	if x.expires(r.TimeUs) || is.ExpireUs != 0 && is.ExpireUs <= r.TimeUs {
		return fmt.Errorf("order %d is amended after its time", o.ID)
	}
	if waits := r.Trigger != (trading.Trigger{}); waits != x.Waits {
		return fmt.Errorf("order %d is amended to wait for %+v, and is %+v", o.ID, r.Trigger, x)
	}
	asked := o.Price
	if is.Asked != 0 && (o.Price != x.Price || is.Asked != x.Says.Asked) {
		asked = is.Asked
	}
	if err := m.amendedInBand(p, r, x, asked); err != nil {
		return err
	}
	filled := x.Amount - x.Remaining
	switch kept := o.Price == x.Price && o.Amount <= x.Amount; {
	case !x.Queued && !x.Triggered && p.hasReached(is.OCO):
		return fmt.Errorf("the other half of order %d is amended to %+v, which the last price %v "+
			"has reached", o.ID, is.OCO, p.last)
	case o.Amount <= filled:
		return fmt.Errorf("order %d is amended to %v, and %v of it is filled", o.ID, o.Amount,
			filled)
	case x.Waits:
		return m.amendWaiting(p, r, x, &is)
	case !says(m, &a.Kept, kept):
		return fmt.Errorf("order %d, %v at %v, keeps its place: %v, amended to %v at %v", o.ID,
			x.Amount, x.Price, a.Kept, o.Amount, o.Price)
	case kept:
		return m.amendInPlace(p, r, x, &is, before)
	case p.IsHalted(m.Seq):
		return fmt.Errorf("order %d loses its place in a halt", o.ID)
	}
	p.Market.Cancel(x)
	x.Price, x.Amount, x.Remaining = asked, o.Amount, o.Amount-filled
	x.instruct(&is)
	return m.enter(p, r, x, before)
}

// decideEnd lets a change cancel its order, if the new amount is already filled, or the order has
// expired. The order keeps its values.
func (m *Exchange) decideEnd(r *event.Record, x *Order) {
	o, i := &r.Order, &r.Instructions
	switch {
	case x.expires(r.TimeUs) || i.ExpireUs != 0 && i.ExpireUs <= r.TimeUs:
		i.Cancelled = trading.CancelledExpired
	case o.Amount <= x.Amount-x.Remaining:
		i.Cancelled = trading.CancelledAmended
	default:
		return
	}
	o.Price, o.Amount, o.Remaining, o.RestCancelled = x.Price, x.Amount, x.Remaining, true
}

// amendedInBand returns an error if a change moves a price, or its reference, beyond the pair's
// band.
func (m *Exchange) amendedInBand(p *Pair, r *event.Record, x *Order, asked money.Price) error {
	price, reference, oco := asked, p.last, r.Instructions.OCO
	switch {
	case x.Waits && (r.Order.Price != x.Price || r.Trigger != x.Trigger):
		price, reference = r.Order.Price, r.Trigger.Price
	case !x.Waits && r.Order.Price != x.Price:
	case !x.Triggered && oco.Price != 0 && oco.Trigger != x.Says.OCO.Trigger:
		price, reference = oco.Price, oco.Trigger
	default:
		return nil
	}
	if p.IsBeyondBand(x.Side, price, reference) {
		return fmt.Errorf("order %d is amended to %v, beyond the band of %v", x.ID, price,
			reference)
	}
	return nil
}

// onlyAmended returns an error if a change alters an immutable instruction.
func onlyAmended(x *Order, is *trading.Instructions) error {
	was, oco := &x.Says, x.Says.OCO
	if oco != (trading.OCO{}) && is.OCO != (trading.OCO{}) {
		oco.Trigger = is.OCO.Trigger
	}
	// without a mode of its own the order follows the account's setting, which may have changed
	if was.SelfTradeOwn != is.SelfTradeOwn || was.SelfTradeOwn && was.SelfTrade != is.SelfTrade ||
		was.Market != is.Market || was.IOC != is.IOC || was.FOK != is.FOK ||
		was.Quote != is.Quote || oco != is.OCO || was.PostOnly && !is.PostOnly ||
		was.ExpireUs != 0 && is.ExpireUs == 0 {
		return fmt.Errorf("order %d is amended from %+v to %+v", x.ID, x.Says, *is)
	}
	return nil
}

// amendEnds cancels an order by its change, because the new amount is already filled, or the order
// has expired. It keeps its values.
func (m *Exchange) amendEnds(p *Pair, r *event.Record, x *Order, is *trading.Instructions,
	before display) error {
	o, reason := &r.Order, r.Instructions.Cancelled
	expired := x.expires(r.TimeUs) || is.ExpireUs != 0 && is.ExpireUs <= r.TimeUs
	switch {
	case o.Price != x.Price || o.Amount != x.Amount || o.Remaining != x.Remaining:
		return fmt.Errorf("order %d ends as %+v, and is %+v", o.ID, o, x)
	case expired && reason != trading.CancelledExpired, // the new end is in no record
		reason == trading.CancelledAmended && x.Remaining == x.Amount:
		return fmt.Errorf("order %d, %+v, ends for %v by its change", o.ID, x, reason)
	}
	x.setCancelled(reason)
	m.takeOut(p, x, r.TimeUs)
	m.countUpdate(p, &BookUpdate{Several: true}, before)
	return nil
}

// amendWaiting changes an order that waits outside the book.
func (m *Exchange) amendWaiting(p *Pair, r *event.Record, x *Order,
	is *trading.Instructions) error {
	o := &r.Order
	switch {
	case !says(m, &o.Remaining, o.Amount) || len(o.Trades) > 0 || o.RestCancelled:
		return fmt.Errorf("stop %d is amended to %+v", o.ID, o)
	case r.Trigger.When != x.Trigger.When:
		return fmt.Errorf("stop %d is amended from %+v to %+v", o.ID, x.Trigger, r.Trigger)
	case !x.Queued && reaches(r.Trigger, p.last):
		return fmt.Errorf("stop %d is amended to wait for %+v, which the last price %v has reached",
			o.ID, r.Trigger, p.last)
	}
	x.Price, x.Amount, x.Remaining, x.Says, x.Trigger = o.Price, o.Amount, o.Amount, *is,
		r.Trigger
	m.note(p)
	return nil
}

// amendInPlace changes an order that keeps its place.
func (m *Exchange) amendInPlace(p *Pair, r *event.Record, x *Order, is *trading.Instructions,
	before display) error {
	o, was := &r.Order, *x
	p.Lower(x, o.Amount, is)
	if !says(m, &o.Remaining, x.Remaining) || len(o.Trades) > 0 || o.RestCancelled {
		return fmt.Errorf("order %d, %v open of %v, is amended to %v open of %v", o.ID,
			was.Remaining, was.Amount, o.Remaining, o.Amount)
	}
	m.countUpdate(p, &BookUpdate{Several: true}, before)
	return nil
}
