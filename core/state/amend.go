package state

import (
	"fmt"

	"exchange/core/event"
	"exchange/core/matching"
	"exchange/core/trading"
)

// amend applies a change of an open order.
func (s *State) amend(p *Pair, r *event.Record, e *Effects) error {
	o, m := &r.Order, &r.Amended
	a, err := s.begin(p, r.TimeUs, m.ID, o.Account, o.Key, o.Nonce)
	if err != nil {
		return err
	}
	was, ok := p.Open(o.ID)
	if !ok || a.Open.Pair(o.ID) != p.Number {
		return fmt.Errorf("order %d is changed, but is not open on %s", o.ID, p.Name)
	}
	if err := s.checkUnchanged(p, o, &m.Was, &was); err != nil {
		return err
	}
	old := p.Instructed(o.ID)
	if err := checkCombination(o, &r.Instructions, old != nil && old.Triggered); err != nil {
		return err
	}
	if err := checkUnalterable(o.ID, old, &r.Instructions); err != nil {
		return err
	}
	switch r.Instructions.Cancelled {
	case trading.CancelledAmended, trading.CancelledExpired:
		return s.endAmended(p, r, &was, e)
	}
	x := changedTo(r, old)
	if stop, waits := p.Stops.Get(o.ID); waits && !stop.InBook {
		return s.amendStop(p, r, &stop, x)
	}
	if r.Trigger != (trading.Trigger{}) {
		return fmt.Errorf("order %d rests, but is changed as one that waits", o.ID)
	}
	if o.Amount <= was.Amount-was.Remaining {
		return fmt.Errorf("order %d is changed to %v, of which %v are filled, and stays open", o.ID,
			o.Amount, was.Amount-was.Remaining)
	}
	if kept := o.Price == was.Price && o.Amount <= was.Amount; kept != m.Kept {
		return fmt.Errorf("order %d of %v at %v is changed to %v at %v, with its place kept: %v",
			o.ID, was.Amount, was.Price, o.Amount, o.Price, m.Kept)
	}
	if m.Kept {
		return s.amendInPlace(p, r, &was, x, e)
	}
	return s.amendRequeued(p, r, &was, x, e)
}

// checkUnalterable compares instructions that a change cannot alter. A change can make an order
// post-only or an iceberg, but cannot undo either.
func checkUnalterable(id uint64, old *trading.Instructed, i *trading.Instructions) error {
	var was trading.Instructions
	if old != nil {
		was = old.Instructions
	}
	if was.Market != i.Market || was.IOC != i.IOC || was.FOK != i.FOK || was.Quote != i.Quote ||
		was.PostOnly && !i.PostOnly || !was.Derived && i.Derived ||
		was.Display != 0 && i.Display == 0 || was.SelfTradeOwn != i.SelfTradeOwn ||
		was.SelfTradeOwn && was.SelfTrade != i.SelfTrade ||
		(was.OCO == trading.OCO{}) != (i.OCO == trading.OCO{}) {
		return fmt.Errorf("order %d is changed from %+v to %+v", id, was, *i)
	}
	return nil
}

// changedTo returns an order's instructions after a change, and their outcome so far.
func changedTo(r *event.Record, old *trading.Instructed) *trading.Instructed {
	x := &trading.Instructed{Instructions: keptInstructions(&r.Instructions)}
	if old == nil {
		return x
	}
	x.Instructions.Prevented = old.Prevented[:len(old.Prevented):len(old.Prevented)]
	x.Instructions = withPrevented(x.Instructions, r.Instructions.Prevented)
	x.Trigger, x.Triggered, x.Value = old.Trigger, old.Triggered, old.Value
	if r.Trigger != (trading.Trigger{}) {
		x.Trigger = r.Trigger
	}
	return x
}

// endAmended applies a change that closes an order: its new amount is filled already, or it
// expired. The order keeps its values.
func (s *State) endAmended(p *Pair, r *event.Record, was *trading.Order, e *Effects) error {
	o, i := &r.Order, &r.Instructions
	if o.Price != was.Price || o.Amount != was.Amount || o.Remaining != was.Remaining ||
		len(o.Trades) > 0 || len(i.Prevented) > 0 {
		return fmt.Errorf("a change ends order %d, which was %+v, as %+v", o.ID, *was, *o)
	}
	_, rested, _ := p.takeOut(o.ID, e)
	if s.close(p, *was, i.Cancelled, r.TimeUs, e); rested {
		p.displayChanged(r.TimeUs)
	}
	return nil
}

// amendStop applies a change of an order that keeps waiting for its trigger. A queued one keeps its
// place and its trigger.
func (s *State) amendStop(p *Pair, r *event.Record, was *matching.Stop,
	x *trading.Instructed) error {
	o := &r.Order
	if err := checkWaiting(r); err != nil {
		return err
	}
	if o.RestCancelled || due(x.ExpireUs, r.TimeUs) {
		return fmt.Errorf("stop %d ends at %d us, and is changed at %d us: %v", o.ID, x.ExpireUs,
			r.TimeUs, r.Instructions.Cancelled)
	}
	p.put(o.ID, x)
	if r.Trigger == was.Trigger {
		p.Stops.Amend(o.ID, o.Price, o.Amount, o.Amount)
		return nil
	}
	if was.Queued {
		return fmt.Errorf("stop %d is queued, and gets the trigger %+v instead of %+v", o.ID,
			r.Trigger, was.Trigger)
	}
	p.Stops.Remove(o.ID)
	is := was.Order
	is.Price, is.Amount, is.Remaining = o.Price, o.Amount, o.Amount
	p.Stops.Add(matching.Stop{Order: is, Trigger: r.Trigger})
	return nil
}

// amendInPlace applies a change of a resting order that keeps its priority.
func (s *State) amendInPlace(p *Pair, r *event.Record, was *trading.Order, x *trading.Instructed,
	e *Effects) error {
	o, i := &r.Order, &r.Instructions
	if len(o.Trades) > 0 || len(i.Prevented) > 0 || i.Cancelled != 0 || due(i.ExpireUs, r.TimeUs) {
		return fmt.Errorf("order %d keeps its place, but has %d trades, prevents %d orders, or "+
			"ends (%v)", o.ID, len(o.Trades), len(i.Prevented), i.Cancelled)
	}
	if err := checkRemaining(o, o.Amount-(was.Amount-was.Remaining)); err != nil {
		return err
	}
	hidden, shown := p.Book.Iceberg(o.ID).Hidden, p.Book.Displayed(o.ID)
	p.Book.Amend(o.ID, o.Amount, i.Display)
	p.put(o.ID, x)
	p.moveTrigger(o.ID, x)
	if p.Book.Displayed(o.ID) != shown {
		e.left(*was, hidden)
		p.displayChanged(r.TimeUs)
	}
	return nil
}

// amendRequeued applies a change of a resting order that loses its priority: it enters matching
// again.
func (s *State) amendRequeued(p *Pair, r *event.Record, was *trading.Order, x *trading.Instructed,
	e *Effects) error {
	o, shown := &r.Order, p.Book.Displayed(r.Order.ID)
	if p.Halted {
		return fmt.Errorf("order %d loses its place while trading on %s is halted", o.ID, p.Name)
	}
	p.takeOut(o.ID, e)
	if stop, twofold := p.Stops.Remove(o.ID); twofold && stop.Queued {
		return fmt.Errorf("order %d loses its place, but its other half is triggered", o.ID)
	}
	p.put(o.ID, x)
	if err := s.enter(p, r, o.Amount-(was.Amount-was.Remaining), was.TimeUs, e); err != nil {
		return err
	}
	if len(o.Trades) > 0 || len(r.Instructions.Prevented) > 0 || p.Book.Displayed(o.ID) != shown {
		p.displayChanged(r.TimeUs)
	}
	return nil
}

// moveTrigger updates the trigger of a resting order's other half.
func (p *Pair) moveTrigger(id uint64, x *trading.Instructed) {
	stop, waits := p.Stops.Get(id)
	if !waits || stop.Queued || stop.Trigger.Price == x.OCO.Trigger {
		return
	}
	p.Stops.Remove(id)
	stop.Trigger.Price = x.OCO.Trigger
	p.Stops.Add(stop)
}
