package state

import (
	"errors"
	"fmt"

	"exchange/core/event"
	"exchange/core/matching"
	"exchange/core/trading"
)

// stop applies a new order that waits for its trigger.
func (s *State) stop(p *Pair, r *event.Record, e *Effects) error {
	o, i := &r.Order, &r.Instructions
	a, err := s.checkNewOrder(p, r)
	if err != nil {
		return err
	}
	if err := s.checkOrder(o, 1); err != nil {
		return err
	}
	if err := checkCombination(o, i, false); err != nil {
		return err
	}
	if err := checkWaiting(r); err != nil {
		return err
	}
	if o.RestCancelled != due(i.ExpireUs, r.TimeUs) || i.Cancelled != 0 &&
		i.Cancelled != trading.CancelledExpired {
		return fmt.Errorf("stop %d ends at %d us, and was cancelled at %d us: %v", o.ID,
			i.ExpireUs, r.TimeUs, i.Cancelled)
	}
	x := &trading.Instructed{Instructions: keptInstructions(i), Trigger: r.Trigger}
	p.put(o.ID, x)
	if err := s.opened(p, a, r); err != nil {
		return err
	}
	is := trading.Order{ID: o.ID, Account: o.Account, Side: o.Side, Price: o.Price,
		Amount: o.Amount, Remaining: o.Amount, TimeUs: r.TimeUs}
	if o.RestCancelled {
		s.close(p, is, i.Cancelled, r.TimeUs, e)
		return nil
	}
	p.Stops.Add(matching.Stop{Order: is, Trigger: r.Trigger})
	return nil
}

// checkWaiting checks a record's order that waits for its trigger: it has met no other order.
func checkWaiting(r *event.Record) error {
	o, i, t := &r.Order, &r.Instructions, r.Trigger
	switch {
	case t.Price < 1 || t.When != trading.Rise && t.When != trading.Fall:
		return fmt.Errorf("order %d waits for a trigger at %v, direction %d", o.ID, t.Price, t.When)
	case len(o.Trades) > 0 || len(i.Prevented) > 0 || o.Remaining != o.Amount:
		return fmt.Errorf("order %d waits, but has %d trades, prevents %d orders, and has %v of "+
			"%v left", o.ID, len(o.Trades), len(i.Prevented), o.Remaining, o.Amount)
	case i.OCO != (trading.OCO{}) || i.Quote != 0:
		return fmt.Errorf("order %d waits, and has another half, or spends a sum", o.ID)
	}
	return nil
}

// triggered applies the entry of the pair's first queued stop into the book.
func (s *State) triggered(p *Pair, r *event.Record, e *Effects) error {
	o, i := &r.Order, &r.Instructions
	if err := s.checkPairTime(p, r.TimeUs); err != nil {
		return err
	}
	head, any := p.Stops.Head()
	switch {
	case !any || head.Order.ID != o.ID || head.InBook != r.Triggered.FromBook:
		return fmt.Errorf("order %d is triggered (from the book: %v), but the head of the queue "+
			"is %+v", o.ID, r.Triggered.FromBook, head)
	case p.Halted || s.maintenance.On:
		return fmt.Errorf("order %d is triggered while trading on %s is halted (%v) or in "+
			"maintenance (%v)", o.ID, p.Name, p.Halted, s.maintenance.On)
	}
	p.Stops.Remove(o.ID)
	was, shown := head.Order, p.Book.Displayed(o.ID)
	if head.InBook {
		was, _, _ = p.takeOut(o.ID, e)
	}
	if err := s.checkUnchanged(p, o, &r.Triggered.Was, &was); err != nil {
		return err
	}
	if o.Amount != was.Amount {
		return fmt.Errorf("order %d of %v is triggered with %v", o.ID, was.Amount, o.Amount)
	}
	x := p.instructed[o.ID]
	if err := checkEntry(r, x); err != nil {
		return err
	}
	x.Triggered = true
	x.Instructions = withPrevented(x.Instructions, i.Prevented)
	x.IOC = i.IOC // the other half of an order has no price of its own
	if err := s.enter(p, r, was.Remaining, was.TimeUs, e); err != nil {
		return err
	}
	if len(o.Trades) > 0 || len(i.Prevented) > 0 || p.Book.Displayed(o.ID) != shown {
		p.displayChanged(r.TimeUs)
	}
	return nil
}

// checkPairTime checks the pair and the time of a record that no account requested.
func (s *State) checkPairTime(p *Pair, timeUs int64) error {
	if p == nil {
		return errors.New("its pair does not exist")
	}
	if timeUs < p.timeUs {
		return fmt.Errorf("its time %d us is before %d us, the last of %s", timeUs, p.timeUs,
			p.Name)
	}
	p.timeUs = timeUs
	return nil
}

// checkUnchanged compares a record's order with the open order before it.
func (s *State) checkUnchanged(p *Pair, o *event.Order, was *event.Was, is *trading.Order) error {
	a := s.Account(o.Account)
	if a == nil || is.Account != o.Account || is.Side != o.Side || is.Price != was.Price ||
		is.Remaining != was.Open || a.ClientIDs.Of(o.ID) != o.ClientID {
		return fmt.Errorf("order %d (%v %v of account %d at %v, client id %q) is open on %s as %+v",
			o.ID, o.Side, was.Open, o.Account, was.Price, o.ClientID.String(), p.Name, *is)
	}
	return s.checkOrder(o, 1)
}

// checkEntry compares a triggered order's record with the order's instructions. Its price is its
// own, that of its other half, or one to which it slides.
func checkEntry(r *event.Record, x *trading.Instructed) error {
	o, i := &r.Order, &r.Instructions
	want, price := x.Instructions, r.Triggered.Was.Price
	if restsAndWaits(x) {
		price = x.OCO.Price
		want.IOC = want.IOC || price == 0
	}
	if !sameOrder(i, &want) || o.RestCancelled != (i.Cancelled != 0) {
		return fmt.Errorf("order %d is triggered as %+v, but should enter as %+v", o.ID, *i, want)
	}
	if price != 0 && o.Price != price && (i.Asked == 0 || !outside(o.Side, price, o.Price)) {
		return fmt.Errorf("order %d is triggered at %v, but should enter at %v", o.ID, o.Price,
			price)
	}
	return nil
}

// sameOrder reports whether instructions are equal, except for their outcome, and for self-trade
// prevention, which is over when the order has met no other.
func sameOrder(i, j *trading.Instructions) bool {
	return i.Market == j.Market && i.IOC == j.IOC && i.FOK == j.FOK && i.ExpireUs == j.ExpireUs &&
		i.PostOnly == j.PostOnly && i.Derived == j.Derived && i.Asked == j.Asked &&
		i.Display == j.Display && i.Quote == j.Quote && i.OCO == j.OCO &&
		i.SelfTradeOwn == j.SelfTradeOwn &&
		(i.SelfTrade == j.SelfTrade || i.SelfTrade == 0 && !i.SelfTradeOwn)
}

// expire applies the expiry of orders.
func (s *State) expire(p *Pair, r *event.Record, e *Effects) error {
	if err := s.checkPairTime(p, r.TimeUs); err != nil {
		return err
	}
	if s.maintenance.BarsCancels() {
		return errors.New("orders expire in maintenance")
	}
	rested := false
	for k := range r.Expired {
		v := &r.Expired[k]
		if err := s.useID(p, v.ID); err != nil {
			return err
		}
		if x := p.Instructed(v.Order); x == nil || !due(x.ExpireUs, r.TimeUs) {
			return fmt.Errorf("order %d expires at %d us, before its time", v.Order, r.TimeUs)
		}
		o, inBook, ok := p.takeOut(v.Order, e)
		if !ok || o.Account != v.Account || o.Side != v.Side || o.Price != v.Price ||
			o.Remaining != v.Open {
			return fmt.Errorf("order %d expires (%v %v of account %d at %v), but is open as %+v",
				v.Order, v.Side, v.Open, v.Account, v.Price, o)
		}
		s.close(p, o, trading.CancelledExpired, r.TimeUs, e)
		rested = rested || inBook
	}
	if rested {
		p.displayChanged(r.TimeUs)
	}
	return nil
}

// stops checks a pair's waiting orders against the open orders of accounts, and adds the money that
// they reserve.
func (c *checker) stops(p *Pair) error {
	for stop := range p.Stops.All(nil) {
		o, x := stop.Order, p.Instructed(stop.Order.ID)
		if x == nil || stop.InBook != restsAndWaits(x) || !stop.InBook && !x.Waits() {
			return fmt.Errorf("stop %d of %s has other instructions: %+v", o.ID, p.Name, x)
		}
		if stop.InBook {
			if rest, ok := p.Book.Get(o.ID); !ok || stop.Trigger != secondHalf(&rest, x).Trigger ||
				rest.Account != o.Account || rest.Side != o.Side {
				return fmt.Errorf("stop %d of %s does not rest in the book as it waits: %+v", o.ID,
					p.Name, rest)
			}
			continue
		}
		if stop.Trigger != x.Trigger || o.Remaining != o.Amount {
			return fmt.Errorf("stop %d of %s waits for %+v with %v of %v left, but its "+
				"instructions are %+v", o.ID, p.Name, stop.Trigger, o.Remaining, o.Amount,
				x.Trigger)
		}
		if err := c.openOrder(p, &o); err != nil {
			return err
		}
	}
	return nil
}

// instructions checks that each order with instructions is open, and the count of those with an
// expiry.
func (c *checker) instructions(p *Pair) error {
	expiring := 0
	for id, x := range p.instructed {
		if x.ExpireUs != 0 {
			expiring++
		}
		o, ok := p.Open(id)
		if !ok || plain(x) || x.Cancelled != 0 {
			return fmt.Errorf("order %d of %s has instructions, but is not open, or they are empty",
				id, p.Name)
		}
		if _, waits := p.Stops.Get(id); waits != (restsAndWaits(x) || x.Waits()) {
			return fmt.Errorf("order %d of %s waits: %v, against its instructions", id, p.Name,
				waits)
		}
		if ice := p.Book.Iceberg(id); ice.Hidden > 0 && ice.Display != x.Display ||
			ice.Hidden > o.Remaining {
			return fmt.Errorf("order %d of %s hides %v, and displays %v instead of %v", id, p.Name,
				ice.Hidden, ice.Display, x.Display)
		}
	}
	if expiring != p.expiring {
		return fmt.Errorf("%d orders of %s expire, but %d are counted", expiring, p.Name,
			p.expiring)
	}
	return nil
}
