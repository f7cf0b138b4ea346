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

// A book is the deciding side of one pair: it matches. One actor owns it; the order of its mailbox
// is the order of the pair. Time comes with a command or a tick, ids come from the engine's
// counters, and the outcome of each command is one entry of the journal.
type book struct {
	*bookShares
	pair       *directory.Pair
	orders     *matching.Book
	halted     bool
	lastTimeUs int64
	expiryUs   int64       // at which the next order expires
	last       money.Price // of the newest trade, 0 before the first
	fills      []matching.Fill

	stops    *matching.Stops
	standing map[uint64]*standing
	expiries matching.Schedule // of the orders that expire
	result   matching.Result

	waiting    mailbox.FIFO[*Command] // while more orders are due than one turn expires
	unitsOut   int                    // of its own, submitted and not released
	triggerOut bool                   // one of them is the triggered order that it may always have
	spareUnits []*unit
	counted    bool         // it counts as in flight
	called     bool         // its message to itself is on its way
	wakeUs     int64        // as in wakeAtUs
	wakeAtUs   atomic.Int64 // from when on the ticker wakes it
	ticked     atomic.Bool  // a tick is on its way
}

// bookShares has the parts that all books of an engine share.
type bookShares struct {
	limits  *atomic.Pointer[Limits]
	ids     *counters
	dir     *directory.Directory
	journal *journal
	clock   *clockAlarm
	out     bookOut
}

// bookOut is where books find what all of them share.
type bookOut interface {
	// counts a book as in flight: 1, or -1 to end that
	countBook(n int64)
	// reports whether books may start something without a command
	booksMayStart() bool
	booksMayTrigger() bool
	// takes a slot for one more triggered order on its way, beside the first of its book; false:
	// none is free
	takeTriggerSlot() bool
	giveTriggerSlot()
	// sends a book its bookGoesOn
	callBook(b *book)
}

// counters give ids. An id that was drawn and never journaled was never shown, so it may be given
// again after a restart.
type counters struct {
	order      atomic.Uint64 // orders and cancels
	trade      atomic.Uint64
	withdrawal atomic.Uint64
}

// restore sets the counters to the newest ids of a state.
func (n *counters) restore(s *state.State) {
	order, trade, _ := s.LastIDs()
	n.order.Store(order)
	n.trade.Store(trade)
	n.withdrawal.Store(s.LastWithdrawal())
}

// A clockAlarm logs that the clock went back, at most once a second.
type clockAlarm struct {
	log  *slog.Logger
	said atomic.Int64 // time of the newest line, Unix seconds
}

func (a *clockAlarm) behind(pair string, us int64) {
	now, last := time.Now().Unix(), a.said.Load()
	if now == last || !a.said.CompareAndSwap(last, now) {
		return
	}
	a.log.Error("the clock is behind the newest record: check the time service", "pair", pair,
		"behind_us", us)
}

// clockToleranceUs is how far a command's time may be behind its book's without an alarm.
const clockToleranceUs = 1_000_000

// never is a time that no clock reaches.
const never = math.MaxInt64

// A standing has what a book must know of an open order beyond side, price and amount: of each
// order that waits for a trigger, has been triggered, has instructions, or had some that prevented
// a trade.
type standing struct {
	trading.Instructions // never with Prevented and Cancelled
	clientID             event.ClientID
	triggered            bool // it has entered the book by its trigger: its OCO is over
	prevented            bool // it has taken orders of its own account out of the book
}

// waitsForOCO reports whether the order rests in the book and may be triggered out of it.
func (s *standing) waitsForOCO() bool { return s.OCO != trading.OCO{} && !s.triggered }

// find returns an open order: one in the book, or one that waits for its trigger.
func (b *book) find(id uint64) (trading.Order, bool) {
	if o, ok := b.orders.Get(id); ok {
		return o, true
	}
	stop, ok := b.stops.Get(id)
	return stop.Order, ok && !stop.InBook
}

// takeOut takes an order out of the book that must be there.
func (b *book) takeOut(id uint64) trading.Order {
	o, ok := b.orders.Cancel(id)
	if !ok {
		panic(fmt.Sprintf("BUG: %s: order %d is not in the book", b.pair.Name, id))
	}
	return o
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

// full reports whether the book has as many open orders as it may. An order that waits has its
// place when it is triggered.
func (b *book) full() bool {
	return b.orders.Len()+b.stops.Waiting() >= b.limits.Load().OpenOrdersPerBook
}

// keep notes an open order that has instructions, waits, or was triggered.
func (b *book) keep(o *event.Order, i *trading.Instructions, x entering) {
	s := standing{Instructions: *i, clientID: o.ClientID, triggered: x.triggered,
		prevented: x.prevented || len(i.Prevented) > 0}
	s.Prevented, s.Cancelled = nil, 0
	if s.waitsForOCO() {
		b.stops.Add(matching.Stop{
			Order:   trading.Order{ID: o.ID, Account: o.Account, Side: o.Side},
			Trigger: trading.Trigger{Price: s.OCO.Trigger, When: trading.Fall}, InBook: true})
	}
	b.stand(o.ID, &s)
}

// stand notes an open order that is in the book or among the stops already.
func (b *book) stand(id uint64, s *standing) {
	_, waits := b.stops.Get(id)
	if !waits && !s.triggered && !s.prevented && s.IsZero() {
		return
	}
	if b.standing[id] != nil {
		panic(fmt.Sprintf("BUG: order %d gets instructions twice", id))
	}
	b.standing[id] = s
	if s.ExpireUs != 0 {
		b.expiries.Add(s.ExpireUs, id)
		b.noteExpiry()
	}
}

// forget drops what is known of an order that is open no more, or is decided anew. It returns what
// that was, nil if there was nothing.
func (b *book) forget(id uint64) *standing {
	s := b.standing[id]
	if s == nil {
		return nil
	}
	delete(b.standing, id)
	b.stops.Remove(id)
	b.unschedule(id, s)
	return s
}

func (b *book) unschedule(id uint64, s *standing) {
	if s.ExpireUs != 0 {
		b.expiries.Remove(s.ExpireUs, id)
		b.noteExpiry()
	}
}

// forgetMakers forgets the orders that fills have closed.
func (b *book) forgetMakers(fills []matching.Fill) {
	if len(b.standing) == b.stops.Waiting() {
		return // orders with instructions are all outside the book
	}
	for i := range fills {
		if fills[i].MakerRemaining == 0 {
			b.forget(fills[i].Maker)
		}
	}
}

// traded derives what trades of one record trigger: the first and the last are at the furthest
// prices. The orders that the record closes are gone by then.
func (b *book) traded(first, last money.Price, taker trading.Side) {
	b.last = last
	b.stops.Trade(min(first, last), max(first, last), taker)
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

// inBand reports whether a price of a command's side is within the pair's band of a reference, and
// notes the bound for the client if it is not.
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

// aside returns the price at which a post-only order takes nothing: its own, or one that it slides
// to if it may. ok is false where there is none, or the order would be below the least value.
func (b *book) aside(side trading.Side, price money.Price, amount money.Amount,
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

// mayRest reports whether the rest of an order may stay in the book.
func mayRest(i *trading.Instructions) bool { return !i.Market && !i.IOC && !i.FOK }

// due reports whether a time has come; 0 never comes.
func due(atUs, nowUs int64) bool { return atUs != 0 && atUs <= nowUs }

// open returns the order of a record as the book has it, or as it waits.
func open(r *event.Record, placedUs int64) trading.Order {
	o := &r.Order
	return trading.Order{ID: o.ID, Account: o.Account, Side: o.Side, Price: o.Price,
		Amount: o.Amount, Remaining: o.Remaining, TimeUs: placedUs}
}

// cancelRest ends the order of a record.
func cancelRest(r *event.Record, reason trading.Reason) {
	r.Order.RestCancelled, r.Instructions.Cancelled = true, reason
}

// bookGoesOn is a book's message to itself.
type bookGoesOn struct{}

// A bookTick tells a book the time, when something of it may be due.
type bookTick struct{ timeUs int64 }

// spareUnits is how many units a book keeps.
const spareUnits = 16

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

func (b *book) submit(u *unit) {
	b.unitsOut++
	u.encode()
	b.journal.submit(&u.entry)
}

// count counts the book as in flight.
func (b *book) count() {
	if !b.counted {
		b.counted = true
		b.out.countBook(1)
	}
}
