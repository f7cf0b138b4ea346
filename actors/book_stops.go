package actors

import (
	"fmt"
	"math"

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

// never is a time that no clock reaches.
const never = math.MaxInt64

// bookOut is where books find what all of them share.
type bookOut interface {
	// counts a book as in flight: 1, or -1 to end that
	countBook(n int64)
	// reports whether books may start something without a command
	booksMayStart() bool
	// takes a slot for one more triggered order on its way, beside the first of its book; false:
	// none is free
	takeTriggerSlot() bool
	giveTriggerSlot()
	// sends a book its bookGoesOn
	callBook(b *book)
}

// A unit is an entry that a book makes without a command. At its release the book gets it back.
type unit struct {
	entry
	triggers bool // it is a triggered order
	shared   bool // and has one of the slots that all books share
}

// bookGoesOn is a book's message to itself.
type bookGoesOn struct{}

// A bookTick tells a book the time, when something of it may be due.
type bookTick struct{ timeUs int64 }

// newUnit returns a unit with a record that has its head.
func (b *book) newUnit(kind event.Kind) *unit {
	var u *unit
	if n := len(b.spareUnits); n > 0 {
		u, b.spareUnits = b.spareUnits[n-1], b.spareUnits[:n-1]
	} else {
		u = new(unit)
		u.unit = u
	}
	u.triggers, u.shared = false, false
	u.begin(kind, b.pair.Number, b.lastTimeUs, "")
	return u
}

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

func (b *book) submit(u *unit) {
	b.unitsOut++
	u.encode()
	b.journal.submit(&u.entry)
}

// spareUnits is how many units a book keeps.
const spareUnits = 16

// released takes a unit back that is durable.
func (b *book) released(u *unit) {
	b.unitsOut--
	switch {
	case u.shared:
		b.out.giveTriggerSlot()
	case u.triggers:
		b.triggerOut = false
	}
	if len(b.spareUnits) < spareUnits && cap(u.record.Order.Trades) <= keptTrades {
		b.spareUnits = append(b.spareUnits, u)
	}
	b.goOn()
}

// tick has the book expire and trigger what is due without a command.
func (b *book) tick(timeUs int64) {
	b.ticked.Store(false)
	b.count()
	if b.out.booksMayStart() {
		b.lastTimeUs = max(b.lastTimeUs, timeUs)
	}
	b.goOn()
}

// goOn does the next part of what the book has begun.
func (b *book) goOn() {
	b.count()
	if b.waiting.Len() > 0 {
		b.actOnWaiting()
	} else if b.lastTimeUs >= b.expiryUs && b.out.booksMayStart() {
		b.expire()
	}
	b.run()
}

// count counts the book as in flight.
func (b *book) count() {
	if !b.counted {
		b.counted = true
		b.out.countBook(1)
	}
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
	return b.stops.Queued() > 0 && !b.halted && b.lastTimeUs < b.expiryUs && b.out.booksMayStart()
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

// noteExpiry notes when the next order expires, and when the ticker is to wake the book.
func (b *book) noteExpiry() {
	b.expiryUs = never
	if at, _, any := b.expiries.First(); any {
		b.expiryUs = at
	}
	wake := b.expiryUs
	if b.stops.Queued() > 0 && !b.halted {
		wake = 0
	}
	if wake != b.wakeUs {
		b.wakeUs = wake
		b.wakeAtUs.Store(wake)
	}
}

// execute lets the head of the queue enter the book, and returns how often it traded.
func (b *book) execute(u *unit) (fills int) {
	head, _ := b.stops.Head()
	o, r := head.Order, &u.record
	if head.Rests {
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
		FromBook: head.Rests}
	if head.Rests {
		if r.Order.Price = i.OCO.Price; r.Order.Price == 0 {
			i.IOC = true
			r.Order.Price = trading.Furthest(o.Side, i.OCO.Trigger, b.pair.StopCollar,
				b.pair.PriceTick)
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
		b.enter(r, entering{account: b.fees.dir.Account(o.Account), placedUs: o.TimeUs,
			triggered: true})
	} else {
		cancelRest(r, trading.CancelledPostOnly)
	}
	b.submit(u)
	return len(r.Order.Trades)
}

// takeOut takes an order out of the book that must be there.
func (b *book) takeOut(id uint64) trading.Order {
	o, ok := b.orders.Cancel(id)
	if !ok {
		panic(fmt.Sprintf("BUG: %s: order %d is not in the book", b.pair.Name, id))
	}
	return o
}
