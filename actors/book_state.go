package actors

import (
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/core/event"
	"exchange/core/matching"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
)

// A book is the deciding side of one pair: it matches. One actor owns it; its mailbox order is the
// pair's order. Time comes with a command or a tick, ids from the engine's counters. The outcome of
// each command is one journal entry.
type book struct {
	*bookShares
	pair       *directory.Pair
	orders     *matching.Book
	halted     bool
	lastTimeUs int64
	expiryUs   int64       // of the next order to expire
	last       money.Price // price of the newest trade; 0: none yet
	fills      []matching.Fill

	stopBook       *matching.Stops
	extras         map[uint64]*orderExtra
	expirySchedule matching.Schedule // of the orders that expire
	result         matching.Result

	waiting            mailbox.FIFO[*Command] // while more orders are due than one turn expires
	ownInFlight        int                    // own entries, submitted and not released
	ownTriggerInFlight bool                   // one without a shared slot is in flight
	spareEntries       []*ownEntry
	busy               bool         // it is counted in admission.busyBooks
	continuePending    bool         // its message to itself is pending
	wakeUs             int64        // the owner's copy of wakeAtUs
	wakeAtUs           atomic.Int64 // when the ticker next wakes it
	tickPending        atomic.Bool  // a tick is pending
}

// bookShares holds the parts that all books of an engine share.
type bookShares struct {
	limits  *atomic.Pointer[Limits]
	ids     *idCounters
	dir     *directory.Directory
	journal *journal
	clock   *clockAlarm
	out     bookOut
}

// bookOut is the engine's interface for books.
type bookOut interface {
	// counts a book as busy: 1, or -1 to stop counting it
	countBook(n int64)
	// reports whether books may start work without a command
	booksMayStart() bool
	booksMayTrigger() bool
	// takes a slot for one more triggered order in flight, beside the first of its book; false:
	// none is free
	takeTriggerSlot() bool
	returnTriggerSlot()
	// sends a book its bookContinue
	callBook(b *book)
}

// idCounters give ids. An id that was drawn and never journaled was never shown, so a restart may
// reuse it.
type idCounters struct {
	order      atomic.Uint64 // orders and cancels
	trade      atomic.Uint64
	withdrawal atomic.Uint64
}

// restore sets the counters to the newest ids of a state.
func (n *idCounters) restore(s *state.State) {
	order, trade, _ := s.LastIDs()
	n.order.Store(order)
	n.trade.Store(trade)
	n.withdrawal.Store(s.LastWithdrawal())
}

// A clockAlarm logs backward clock steps, at most once a second.
type clockAlarm struct {
	log      *slog.Logger
	loggedAt atomic.Int64 // Unix seconds of the newest line
}

func (a *clockAlarm) lags(pair string, us int64) {
	now, last := time.Now().Unix(), a.loggedAt.Load()
	if now == last || !a.loggedAt.CompareAndSwap(last, now) {
		return
	}
	a.log.Error("the clock is behind the newest record: check the time service", "pair", pair,
		"behind_us", us)
}

// clockToleranceUs is how far a command's time may lag its book's without an alarm.
const clockToleranceUs = 1_000_000

// never is a time that no clock reaches.
const never = math.MaxInt64

// An orderExtra holds an open order's data beyond side, price and amount. It exists for each order
// that waits for a trigger, was triggered, has instructions, or had some that prevented a trade.
type orderExtra struct {
	trading.Instructions // never with Prevented and Cancelled
	clientID             event.ClientID
	triggered            bool // its trigger put it into the book; it is no longer an OCO
	prevented            bool // it has removed orders of its own account from the book
}

// waitsForOCO reports whether the order rests in the book and can still be triggered out of it.
func (s *orderExtra) waitsForOCO() bool { return s.OCO != trading.OCO{} && !s.triggered }

// find returns an open order: one in the book, or one that waits for its trigger.
func (b *book) find(id uint64) (trading.Order, bool) {
	if o, ok := b.orders.Get(id); ok {
		return o, true
	}
	stop, ok := b.stopBook.Get(id)
	return stop.Order, ok && !stop.InBook
}

// takeOut removes an order that must be in the book.
func (b *book) takeOut(id uint64) trading.Order {
	o, ok := b.orders.Cancel(id)
	if !ok {
		panic(fmt.Sprintf("BUG: %s: order %d is not in the book", b.pair.Name, id))
	}
	return o
}

// close removes an open order from the book or the stops, where it must be, and returns it
// unchanged.
func (b *book) close(id uint64) trading.Order {
	o, found := b.find(id)
	if !found {
		b.takeOut(id) // panics with the cause
	}
	b.orders.Cancel(id)
	b.forget(id)
	return o
}

// full reports whether the book is at its limit of open orders. A waiting order already has its
// slot when it is triggered.
func (b *book) full() bool {
	return b.orders.Len()+b.stopBook.Waiting() >= b.limits.Load().OpenOrdersPerBook
}

// keepExtra stores the extra of an open order that has instructions, waits, or was triggered.
func (b *book) keepExtra(o *event.Order, i *trading.Instructions, x entering) {
	s := orderExtra{Instructions: *i, clientID: o.ClientID, triggered: x.triggered,
		prevented: x.prevented || len(i.Prevented) > 0}
	s.Prevented, s.Cancelled = nil, 0
	if s.waitsForOCO() {
		b.stopBook.Add(matching.Stop{
			Order:   trading.Order{ID: o.ID, Account: o.Account, Side: o.Side},
			Trigger: trading.Trigger{Price: s.OCO.Trigger, When: trading.Fall}, InBook: true})
	}
	b.setExtra(o.ID, &s)
}

// setExtra stores the extra of an order already in the book or among the stops.
func (b *book) setExtra(id uint64, s *orderExtra) {
	_, waits := b.stopBook.Get(id)
	if !waits && !s.triggered && !s.prevented && s.IsZero() {
		return
	}
	if b.extras[id] != nil {
		panic(fmt.Sprintf("BUG: order %d gets instructions twice", id))
	}
	b.extras[id] = s
	if s.ExpireUs != 0 {
		b.expirySchedule.Add(s.ExpireUs, id)
		b.noteExpiry()
	}
}

// forget drops the extra of an order that closed, or is decided again. It returns that extra, nil
// if there was none.
func (b *book) forget(id uint64) *orderExtra {
	s := b.extras[id]
	if s == nil {
		return nil
	}
	delete(b.extras, id)
	b.stopBook.Remove(id)
	b.unschedule(id, s)
	return s
}

func (b *book) unschedule(id uint64, s *orderExtra) {
	if s.ExpireUs != 0 {
		b.expirySchedule.Remove(s.ExpireUs, id)
		b.noteExpiry()
	}
}

// forgetMakers drops the extras of orders that fills have closed.
func (b *book) forgetMakers(fills []matching.Fill) {
	if len(b.extras) == b.stopBook.Waiting() {
		return // all orders with instructions are outside the book
	}
	for i := range fills {
		if fills[i].MakerRemaining == 0 {
			b.forget(fills[i].Maker)
		}
	}
}

// queueTriggers queues the stops that one record's trades trigger: its first and last prices are
// the extremes. The orders that the record closes are already removed.
func (b *book) queueTriggers(first, last money.Price, taker trading.Side) {
	b.last = last
	b.stopBook.Trade(min(first, last), max(first, last), taker)
}

// noteExpiry updates the next expiry, and the ticker's next wake of the book.
func (b *book) noteExpiry() {
	b.expiryUs = never
	if at, _, any := b.expirySchedule.First(); any {
		b.expiryUs = at
	}
	wake := b.expiryUs
	if b.stopBook.Queued() > 0 && !b.halted {
		wake = 0
	}
	if wake != b.wakeUs {
		b.wakeUs = wake
		b.wakeAtUs.Store(wake)
	}
}

// inBand reports whether a price of a command's side is within the pair's band of a reference. If
// not, the command gets the bound for its client.
func (b *book) inBand(c *Command, price, reference money.Price) bool {
	bound := b.pair.BeyondBand(c.order.side, price, reference)
	if bound == 0 {
		return true
	}
	c.bound = bound
	return false
}

// crosses reports whether an order would trade at once.
func (b *book) crosses(side trading.Side, price money.Price) bool {
	best, any := b.orders.Best(side.Opposite())
	return any && (side == trading.Buy && best <= price || side == trading.Sell && best >= price)
}

// reached reports whether the last trade was at a trigger's price, or beyond it.
func (b *book) reached(t trading.Trigger) bool {
	if t.When == trading.Rise {
		return b.last >= t.Price
	}
	return b.last != 0 && b.last <= t.Price
}

// postOnlyPrice returns the price at which a post-only order takes nothing: its own, or one that it
// may slide to. ok is false if there is none, or the order would be below the minimum value.
func (b *book) postOnlyPrice(side trading.Side, price money.Price, amount money.Amount,
	slides bool) (_ money.Price, ok bool) {
	if !b.orders.Crosses(side, price) {
		return price, true
	}
	if !slides {
		return 0, false
	}
	price, ok = b.orders.Slide(side, price, b.pair.PriceTick)
	return price, ok && price.Times(amount).Balance().Cmp(b.pair.Rules().MinimumOrderValue) >= 0
}

// mayRest reports whether the remainder of an order may stay in the book.
func mayRest(i *trading.Instructions) bool { return !i.Market && !i.IOC && !i.FOK }

// due reports whether a time has come; 0 never comes.
func due(atUs, nowUs int64) bool { return atUs != 0 && atUs <= nowUs }

// orderOf returns a record's order as the book or the stops hold it.
func orderOf(r *event.Record, placedUs int64) trading.Order {
	o := &r.Order
	return trading.Order{ID: o.ID, Account: o.Account, Side: o.Side, Price: o.Price,
		Amount: o.Amount, Remaining: o.Remaining, TimeUs: placedUs}
}

// cancelRest closes the order of a record.
func cancelRest(r *event.Record, reason trading.Reason) {
	r.Order.RestCancelled, r.Instructions.Cancelled = true, reason
}

// bookContinue is a book's message to itself.
type bookContinue struct{}

// A bookTick carries the time to a book that may have orders due.
type bookTick struct{ timeUs int64 }

// spareEntries is how many unused own entries a book keeps.
const spareEntries = 16

// newOwnEntry returns an own entry whose record has its header.
func (b *book) newOwnEntry(kind event.Kind) *ownEntry {
	var u *ownEntry
	if n := len(b.spareEntries); n > 0 {
		u, b.spareEntries = b.spareEntries[n-1], b.spareEntries[:n-1]
	} else {
		u = new(ownEntry)
		u.own = u
	}
	u.isTrigger, u.holdsSharedSlot = false, false
	u.begin(kind, b.pair.Number, b.lastTimeUs, "")
	return u
}

func (b *book) submit(u *ownEntry) {
	b.ownInFlight++
	u.encode()
	b.journal.submit(&u.entry)
}

// markBusy counts the book as busy, for those who wait until nothing is in flight.
func (b *book) markBusy() {
	if !b.busy {
		b.busy = true
		b.out.countBook(1)
	}
}
