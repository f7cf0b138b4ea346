package simulation

import (
	"fmt"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// applyAmended changes an open order.
func (m *Model) applyAmended(r *event.Record) error {
	o, a, p := &r.Order, &r.Amended, m.Pairs[r.Pair-1]
	if err := m.takeNonce(r.Kind, o.Key, o.Account, o.Nonce); err != nil {
		return err
	}
	if err := m.takeID(p, a.ID); err != nil {
		return err
	}
	if err := p.takeTime(r.TimeUs); err != nil {
		return err
	}
	x := p.find(o.ID)
	if x == nil || o.Account != x.Account || o.Side != x.Side || o.ClientID != x.ClientID ||
		a.Was != (event.Was{Price: x.Price, Open: x.Remaining}) {
		return fmt.Errorf("order %d of account %d is amended from %+v, and is %+v", o.ID, o.Account,
			a.Was, x)
	}
	says := r.Instructions
	says.Prevented, says.Cancelled = x.Says.Prevented, 0
	if err := onlyAmended(x, &says); err != nil {
		return err
	}
	m.touched = append(m.touched, o.Account)
	before := p.Book.display()
	if reason := r.Instructions.Cancelled; o.RestCancelled && len(o.Trades) == 0 &&
		(reason == trading.CancelledAmended || reason == trading.CancelledExpired) {
		return m.amendEnds(p, r, x, &says, before)
	}
	if x.expires(r.TimeUs) || says.ExpireUs != 0 && says.ExpireUs <= r.TimeUs {
		return fmt.Errorf("order %d is amended after its time", o.ID)
	}
	if waits := r.Trigger != (trading.Trigger{}); waits != x.waits {
		return fmt.Errorf("order %d is amended to wait for %+v, and is %+v", o.ID, r.Trigger, x)
	}
	asked := o.Price
	if says.Asked != 0 && (o.Price != x.Price || says.Asked != x.Says.Asked) {
		asked = says.Asked
	}
	if err := m.amendedInBand(p, r, x, asked); err != nil {
		return err
	}
	filled := x.Amount - x.Remaining
	switch kept := o.Price == x.Price && o.Amount <= x.Amount; {
	case !x.queued && !x.triggered && m.reached(p, says.OCO):
		return fmt.Errorf("the other half of order %d is amended to %+v, which the last price %v "+
			"has reached", o.ID, says.OCO, p.lastBefore(m.Seq))
	case o.Amount <= filled:
		return fmt.Errorf("order %d is amended to %v, and %v of it is filled", o.ID, o.Amount,
			filled)
	case x.waits:
		return m.amendWaiting(p, r, x, &says)
	case a.Kept != kept:
		return fmt.Errorf("order %d, %v at %v, keeps its place: %v, amended to %v at %v", o.ID,
			x.Amount, x.Price, a.Kept, o.Amount, o.Price)
	case kept:
		return m.amendInPlace(p, r, x, &says, before)
	case p.Halted(m.Seq):
		return fmt.Errorf("order %d loses its place in a halt", o.ID)
	case says.PostOnly && says.Asked == 0 && p.Book.meets(x.Side, o.Price):
		return fmt.Errorf("order %d is post-only, and takes by its change", o.ID)
	}
	p.remove(x)
	x.Price, x.Amount, x.Says = asked, o.Amount, says
	x.Remaining = o.Amount - filled
	return m.decide(p, r, x, x.Remaining, before)
}

// amendedInBand returns an error if a change moves a price, or the reference of one, so that it is
// beyond the pair's band.
func (m *Model) amendedInBand(p *Pair, r *event.Record, x *Order, asked money.Price) error {
	price, reference, oco := asked, p.lastBefore(m.Seq), r.Instructions.OCO
	switch {
	case x.waits && (r.Order.Price != x.Price || r.Trigger != x.trigger):
		price, reference = r.Order.Price, r.Trigger.Price
	case !x.waits && r.Order.Price != x.Price:
	case !x.triggered && oco.Price != 0 && oco.Trigger != x.Says.OCO.Trigger:
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

// onlyAmended returns an error if a change has changed an instruction that none can change.
func onlyAmended(x *Order, says *trading.Instructions) error {
	was, is := x.Says, *says
	was.ExpireUs, was.PostOnly, was.Asked, was.Display, was.Prevented, was.Cancelled = is.ExpireUs,
		is.PostOnly, is.Asked, is.Display, is.Prevented, 0
	was.SelfTrade = is.SelfTrade // the account may have another setting by now
	if was.OCO != (trading.OCO{}) && is.OCO != (trading.OCO{}) {
		was.OCO.Trigger = is.OCO.Trigger
	}
	if was.SelfTradeOwn != is.SelfTradeOwn ||
		was.SelfTradeOwn && x.Says.SelfTrade != is.SelfTrade || was.Market != is.Market ||
		was.IOC != is.IOC || was.FOK != is.FOK || was.Quote != is.Quote ||
		was.OCO != is.OCO || x.Says.PostOnly && !is.PostOnly ||
		x.Says.ExpireUs != 0 && is.ExpireUs == 0 {
		return fmt.Errorf("order %d is amended from %+v to %+v", x.ID, x.Says, *says)
	}
	return nil
}

// amendEnds ends an order by its change, because it is to have no more than is filled, or its time
// is up. It keeps its values.
func (m *Model) amendEnds(p *Pair, r *event.Record, x *Order, says *trading.Instructions,
	before display) error {
	o, reason := &r.Order, r.Instructions.Cancelled
	expired := x.expires(r.TimeUs) || says.ExpireUs != 0 && says.ExpireUs <= r.TimeUs
	switch {
	case o.Price != x.Price || o.Amount != x.Amount || o.Remaining != x.Remaining:
		return fmt.Errorf("order %d ends as %+v, and is %+v", o.ID, o, x)
	case expired && reason != trading.CancelledExpired, // the new end is in no record
		reason == trading.CancelledAmended && x.Remaining == x.Amount:
		return fmt.Errorf("order %d, %+v, ends for %v by its change", o.ID, x, reason)
	}
	x.ends(reason)
	m.takeOut(p, x, r.TimeUs)
	m.countUpdate(p, &BookUpdate{Several: true}, before)
	return nil
}

// amendWaiting changes an order that waits outside the book.
func (m *Model) amendWaiting(p *Pair, r *event.Record, x *Order,
	says *trading.Instructions) error {
	o, last := &r.Order, p.lastBefore(m.Seq)
	switch {
	case o.Remaining != o.Amount || len(o.Trades) > 0 || o.RestCancelled:
		return fmt.Errorf("stop %d is amended to %+v", o.ID, o)
	case r.Trigger.When != x.trigger.When:
		return fmt.Errorf("stop %d is amended from %+v to %+v", o.ID, x.trigger, r.Trigger)
	case !x.queued && last != 0 && reaches(r.Trigger, last):
		return fmt.Errorf("stop %d is amended to wait for %+v, which the last price %v has reached",
			o.ID, r.Trigger, last)
	}
	x.Price, x.Amount, x.Remaining, x.Says, x.trigger = o.Price, o.Amount, o.Amount, *says,
		r.Trigger
	m.note(p)
	return nil
}

// amendInPlace changes an order that keeps its place. A smaller amount comes out of what the book
// hides first.
func (m *Model) amendInPlace(p *Pair, r *event.Record, x *Order, says *trading.Instructions,
	before display) error {
	o := &r.Order
	left := x.Remaining - (x.Amount - o.Amount)
	if o.Remaining != left || len(o.Trades) > 0 || o.RestCancelled {
		return fmt.Errorf("order %d, %v open of %v, is amended to %v open of %v", o.ID, x.Remaining,
			x.Amount, o.Remaining, o.Amount)
	}
	x.Amount, x.Remaining, x.Shown, x.Says = o.Amount, left, min(x.Shown, left), *says
	m.countUpdate(p, &BookUpdate{Several: true}, before)
	return nil
}
