package actors

import (
	"exchange/core/event"
	"exchange/core/trading"
)

// mustWait expires what is due at the time of a command that may trade. It reports true if more is
// due than one turn expires, or earlier commands wait for that already: then the command waits, and
// keeps its place.
func (b *book) mustWait(c *Command) bool {
	if b.waiting.Len() == 0 {
		switch c.kind {
		case event.KindCancel, event.KindHalt: // they trade nothing
			return false
		}
		if b.expire() {
			return false
		}
	}
	b.waiting.Push(c)
	b.run()
	return true
}

// actOnWaiting decides the commands that wait, once nothing is due any more.
func (b *book) actOnWaiting() {
	for b.waiting.Len() > 0 && (b.lastTimeUs < b.expiryUs || b.expire()) {
		b.act(b.waiting.Pop())
	}
}

// expire takes out the orders that are due at the book's time, as many as a turn may. It reports
// whether these were all.
func (b *book) expire() bool {
	for n := 0; n < expiredAtOnce && b.lastTimeUs >= b.expiryUs; n++ {
		b.count()
		u := b.newUnit(event.KindExpired)
		r := &u.record
		r.Expired = r.Expired[:0]
		for len(r.Expired) < event.MaxExpired && b.lastTimeUs >= b.expiryUs {
			_, id, _ := b.expiries.First()
			o := b.close(id)
			r.Expired = append(r.Expired, event.Expired{ID: b.ids.order.Add(1), Order: o.ID,
				Account: o.Account, Side: o.Side, Price: o.Price, Open: o.Remaining})
		}
		b.submit(u)
	}
	return b.lastTimeUs < b.expiryUs
}

// close takes an open order out of the book or of the stops, where it must be, and returns it as it
// was.
func (b *book) close(id uint64) trading.Order {
	o, found := b.find(id)
	if !found {
		b.takeOut(id) // says what is wrong
	}
	b.orders.Cancel(id)
	b.forget(id)
	return o
}

// find returns an open order: one in the book, or one that waits for its trigger.
func (b *book) find(id uint64) (trading.Order, bool) {
	if o, ok := b.orders.Get(id); ok {
		return o, true
	}
	stop, ok := b.stops.Get(id)
	return stop.Order, ok && !stop.Rests
}
