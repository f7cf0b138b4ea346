package actors

import (
	"fmt"

	"exchange/core/event"
	"exchange/core/trading"
)

// A book decides some things without a command: orders expire, and trades trigger stops. Triggers
// of a record's trades are queued in the turn that decides the record. In that turn the book also
// executes the first part of the queue. Its message to itself, or the release of one of its own
// entries, resumes the rest.
//
// The book is busy while its queue may run, and while own entries are in flight. It marks itself
// busy before it checks whether it may start: either a maintenance that waits for books sees this
// one, or the book sees the maintenance.

// Bounds of a book's work in one turn.
const (
	executedAtOnce = 16    // triggered orders
	executedFills  = 1_000 // fills after which no further order is executed
	expiredAtOnce  = 4     // records, each of event.MaxExpired orders
)

// newTrigger returns an own entry for a triggered order, nil if the maximum is in flight.
func (b *book) newTrigger() *ownEntry {
	shared := b.ownTriggerInFlight
	if shared && !b.out.takeTriggerSlot() {
		return nil
	}
	b.ownTriggerInFlight = true
	u := b.newOwnEntry(event.KindTriggered)
	u.isTrigger, u.holdsSharedSlot = true, shared
	return u
}

// runTriggers executes the queue's first orders, if allowed, and ends the book's turn.
func (b *book) runTriggers() {
	b.markBusy()
	full := false
	for n, fills := 0, 0; n < executedAtOnce && fills < executedFills && b.mayExecute(); n++ {
		u := b.newTrigger()
		if full = u == nil; full {
			break // the release of one of its own resumes it
		}
		fills += b.execute(u)
	}
	b.endTurn(full)
}

// mayExecute reports whether the queue's next order may be executed: only after all due orders have
// expired.
func (b *book) mayExecute() bool {
	return b.stopBook.Queued() > 0 && !b.halted && b.lastTimeUs < b.expiryUs &&
		b.out.booksMayTrigger()
}

// endTurn ends a turn: the book messages itself if work is left, unless the release of an own
// entry resumes it. With no work left the book is no longer busy.
func (b *book) endTurn(full bool) {
	more := b.mayExecute() || b.waiting.Len() > 0 ||
		b.lastTimeUs >= b.expiryUs && b.out.booksMayStart()
	switch {
	case more && !full:
		if !b.continuePending {
			b.continuePending = true
			b.out.callBook(b)
		}
	case !more && b.ownInFlight == 0:
		b.busy = false
		b.out.countBook(-1)
	}
	b.noteExpiry()
}

// execute lets the queue's head enter the book, and returns its number of fills.
func (b *book) execute(u *ownEntry) (fills int) {
	head, _ := b.stopBook.Head()
	o, r := head.Order, &u.record
	if head.InBook {
		o = b.takeOut(o.ID)
	}
	s := b.forget(o.ID)
	if s == nil {
		panic(fmt.Sprintf("BUG: %s: the triggered order %d has no extra", b.pair.Name, o.ID))
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
		if price, ok = b.postOnlyPrice(o.Side, price, o.Amount, i.Asked != 0); ok {
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
