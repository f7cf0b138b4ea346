package simulation

import (
	"cmp"
	"fmt"
	"slices"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// Next returns the order whose trigger was reached and that enters the book next; 0: none.
func (p *Pair) Next() uint64 {
	if len(p.queue) == 0 {
		return 0
	}
	return p.queue[0]
}

// Triggering reports whether orders of a pair are in its queue.
func (m *Model) Triggering(pair uint16) bool { return len(m.Pairs[pair-1].queue) > 0 }

// Queue returns the orders whose triggers were reached, the next one first.
func (p *Pair) Queue() []uint64 { return p.queue }

// StopIDs returns the orders that wait for a trigger, or in the queue, sorted.
func (p *Pair) StopIDs() (ids []uint64) {
	for _, o := range p.open() {
		if o.IsStop() {
			ids = append(ids, o.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// Due returns an open order whose time is up, nil if there is none.
func (p *Pair) Due(timeUs int64) *Order { return p.due(timeUs, 0) }

// find returns an open order, or nil.
func (p *Pair) find(id uint64) *Order {
	for _, o := range p.waiting {
		if o.ID == id {
			return o
		}
	}
	return p.Book.find(id)
}

// open returns all open orders.
func (p *Pair) open() []*Order {
	return slices.Concat(p.waiting, p.Book.sides[0], p.Book.sides[1])
}

// remove takes an open order out of the book, or from its wait, and out of the queue.
func (p *Pair) remove(o *Order) {
	p.waiting = slices.DeleteFunc(p.waiting, func(x *Order) bool { return x == o })
	p.Book.remove(o)
	p.unqueue([]*Order{o})
}

// unqueue takes orders that are open no more, or have entered the book, out of the queue.
func (p *Pair) unqueue(lists ...[]*Order) {
	for _, list := range lists {
		for _, o := range list {
			o.queued = false
			p.queue = slices.DeleteFunc(p.queue, func(id uint64) bool { return id == o.ID })
		}
	}
}

// due returns an open order whose time is up, but not the excepted one; nil: there is none.
func (p *Pair) due(timeUs int64, but uint64) *Order {
	for _, o := range p.open() {
		if o.expires(timeUs) && o.ID != but {
			return o
		}
	}
	return nil
}

// waitsFor returns the trigger that an open order waits for; the zero Trigger: none.
func (o *Order) waitsFor() trading.Trigger {
	switch {
	case o.queued:
		return trading.Trigger{}
	case o.waits:
		return o.trigger
	case o.IsStop():
		return trading.Trigger{Price: o.Says.OCO.Trigger, When: trading.Fall}
	}
	return trading.Trigger{}
}

// reaches reports whether a trade at a price triggers.
func reaches(t trading.Trigger, price money.Price) bool {
	return t.When == trading.Rise && price >= t.Price ||
		t.When == trading.Fall && price <= t.Price
}

// trigger puts the orders whose triggers the trades of one record have reached at the end of the
// queue: those that wait for a rise first if a buy has traded, else those that wait for a fall.
func (p *Pair) trigger(trades []event.Trade, side trading.Side) {
	if len(trades) == 0 {
		return
	}
	directions := []trading.Direction{trading.Rise, trading.Fall}
	if side == trading.Sell {
		slices.Reverse(directions)
	}
	for _, when := range directions {
		var reached []*Order
		for _, o := range p.open() {
			if t := o.waitsFor(); t.When == when && slices.ContainsFunc(trades,
				func(trade event.Trade) bool { return reaches(t, trade.Price) }) {
				reached = append(reached, o)
			}
		}
		slices.SortFunc(reached, func(a, b *Order) int {
			byPrice := cmp.Compare(a.waitsFor().Price, b.waitsFor().Price)
			if when == trading.Fall {
				byPrice = -byPrice
			}
			return cmp.Or(byPrice, cmp.Compare(a.ID, b.ID))
		})
		for _, o := range reached {
			p.queue = append(p.queue, o.ID)
			o.queued = true
		}
	}
}

// applyStop applies an order that waits outside the book.
func (m *Model) applyStop(r *event.Record) error {
	o, p, t := &r.Order, m.Pairs[r.Pair-1], r.Trigger
	band := p.rules.Band
	x := newOrder(p, r)
	x.Says, x.trigger, x.waits = r.Instructions, t, true
	x.Says.Prevented, x.Says.Cancelled = nil, 0
	if err := m.takePlace(r, band > 0 && beyond(o.Side, o.Price, t.Price, band) &&
		!x.expires(r.TimeUs)); err != nil {
		return err
	}
	switch last := p.lastBefore(m.Seq); {
	case len(r.Instructions.Prevented) > 0 || x.Says.OCO != (trading.OCO{}):
		return fmt.Errorf("stop %d has met orders, or is an OCO: %+v", o.ID, r.Instructions)
	case x.expires(r.TimeUs):
		if r.Instructions.Cancelled != trading.CancelledExpired {
			return fmt.Errorf("stop %d waits after its time", o.ID)
		}
		x.Says.Cancelled = trading.CancelledExpired
		m.addClosed(p, x, trading.StatusCancelled, r.TimeUs)
		m.note(p)
		return nil
	case r.Instructions.Cancelled != 0:
		return fmt.Errorf("stop %d is cancelled (%v) where it can wait", o.ID,
			r.Instructions.Cancelled)
	case last != 0 && reaches(t, last):
		return fmt.Errorf("stop %d waits for %+v, which the last price %v has reached", o.ID, t,
			last)
	}
	p.waiting = append(p.waiting, x)
	m.note(p)
	return nil
}

// applyTriggered has the first order of the queue enter the book.
func (m *Model) applyTriggered(r *event.Record) error {
	o, p := &r.Order, m.Pairs[r.Pair-1]
	if err := p.takeTime(r.TimeUs); err != nil {
		return err
	}
	x := p.find(o.ID)
	switch {
	case x == nil || p.Next() != o.ID:
		return fmt.Errorf("order %d is triggered, and next is %d of %v", o.ID, p.Next(), p.queue)
	case p.Halted(m.Seq) || m.Maintenance.On:
		return fmt.Errorf("order %d is triggered in a halt, or in maintenance", o.ID)
	case r.Triggered.FromBook == x.waits, r.Triggered.Was != (event.Was{Price: x.Price,
		Open: x.Remaining}):
		return fmt.Errorf("order %d is triggered as %+v, and is %+v", o.ID, r.Triggered, x)
	case o.Account != x.Account || o.Side != x.Side || o.Amount != x.Amount ||
		o.ClientID != x.ClientID:
		return fmt.Errorf("order %d is triggered as %+v, and is %+v", o.ID, o, x)
	}
	before := p.Book.display()
	p.remove(x)
	if oco := x.Says.OCO; oco != (trading.OCO{}) {
		if x.Price = oco.Price; x.Price == 0 {
			x.Price = p.furthest(trading.Sell, oco.Trigger, p.rules.StopCollar)
			if band := p.rules.Band; band > 0 {
				x.Price = max(x.Price, p.furthest(trading.Sell, oco.Trigger, band))
			}
			x.Says.IOC = true
		}
	}
	x.triggered, x.waits = true, false
	return m.decide(p, r, x, x.Remaining, before)
}

// furthest returns the worst price within a rate of a reference: a multiple of the tick that is
// possible, nearest to where the rate ends.
func (p *Pair) furthest(side trading.Side, reference money.Price, rate money.Rate) money.Price {
	tick := max(p.rules.Tick, 1)
	low, high := money.Price(1), money.MaxPrice/tick
	for low < high { // between the least and the greatest multiple of the tick
		middle := low + (high-low)/2
		if side == trading.Buy {
			if middle++; beyond(side, middle*tick, reference, rate) {
				high = middle - 1
			} else {
				low = middle
			}
		} else if beyond(side, middle*tick, reference, rate) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low * tick
}
