package actors

import (
	"fmt"

	"exchange/core/event"
	"exchange/core/trading"
)

// A book decides some things without a command: orders expire, and trades trigger orders that wait.
// What the trades of a record trigger is queued in the turn that decides the record. After each
// unit the book executes some of the queue before its next message. Its own message, or the release
// of one of its units, has it go on with the rest.
//
// The book counts as in flight while its queue may run, and while units of its own are on their
// way. It first counts itself, and then looks whether it may start: so either a drain sees the
// book, or the book sees the drain.

// Bounds of what a book does in one turn.
const (
	executedAtOnce = 16    // triggered orders
	executedFills  = 1_000 // no further order is executed behind that many
	expiredAtOnce  = 4     // records, each of event.MaxExpired orders
)

// newTrigger returns a unit for a triggered order, nil if as many are on their way as may be.
func (b *book) newTrigger() *unit {
	shared := b.triggerOut
	if shared && !b.out.takeTriggerSlot() {
		return nil
	}
	b.triggerOut = true
	u := b.newUnit(event.KindTriggered)
	u.triggers, u.shared = true, shared
	return u
}

// run executes the first orders of the queue, if it may, and ends the book's turn.
func (b *book) run() {
	b.count()
	full := false
	for n, fills := 0, 0; n < executedAtOnce && fills < executedFills && b.runs(); n++ {
		u := b.newTrigger()
		if full = u == nil; full {
			break // the release of one of its own has it go on
		}
		fills += b.execute(u)
	}
	b.rests(full)
}

// runs reports whether the next order of the queue may be executed: not before those that are due
// have expired.
func (b *book) runs() bool {
	return b.stops.Queued() > 0 && !b.halted && b.lastTimeUs < b.expiryUs && b.out.booksMayTrigger()
}

// rests ends a turn: the book calls itself if there is more to do, unless the release of a unit has
// it go on. It counts as in flight no more when there is nothing.
func (b *book) rests(full bool) {
	more := b.runs() || b.waiting.Len() > 0 ||
		b.lastTimeUs >= b.expiryUs && b.out.booksMayStart()
	switch {
	case more && !full:
		if !b.called {
			b.called = true
			b.out.callBook(b)
		}
	case !more && b.unitsOut == 0:
		b.counted = false
		b.out.countBook(-1)
	}
	b.noteExpiry()
}

// execute lets the head of the queue enter the book, and returns how often it traded.
func (b *book) execute(u *unit) (fills int) {
	head, _ := b.stops.Head()
	o, r := head.Order, &u.record
	if head.InBook {
		o = b.takeOut(o.ID)
	}
	s := b.forget(o.ID)
	if s == nil {
		panic(fmt.Sprintf("BUG: %s: nothing is known of the triggered order %d", b.pair.Name, o.ID))
	}
	i := &r.Instructions
	*i = s.Instructions
	r.Order = event.Order{ID: o.ID, Account: o.Account, Side: o.Side, Price: o.Price,
		Amount: o.Amount, Remaining: o.Remaining, ClientID: s.clientID,
		Trades: r.Order.Trades[:0]}
	r.Triggered = event.Triggered{Was: event.Was{Price: o.Price, Open: o.Remaining},
		FromBook: head.InBook}
	if head.InBook {
		if r.Order.Price = i.OCO.Price; r.Order.Price == 0 {
			i.IOC = true
			r.Order.Price = b.pair.StopPrice(o.Side, i.OCO.Trigger)
		}
	}
	ok := true
	if i.PostOnly {
		var price = r.Order.Price
		if price, ok = b.aside(o.Side, price, o.Amount, i.Asked != 0); ok {
			r.Order.Price = price
		}
	}
	if ok {
		b.enter(r, entering{account: b.dir.Account(o.Account), placedUs: o.TimeUs,
			triggered: true})
	} else {
		cancelRest(r, trading.CancelledPostOnly)
	}
	b.submit(u)
	return len(r.Order.Trades)
}
