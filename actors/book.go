package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/actors/metrics"
	"exchange/core/event"
	"exchange/core/matching"
	"exchange/core/state"
	"exchange/core/trading"
)

// newBook makes the book of a pair with the state's open orders and queue, which a tick resumes.
func newBook(p *directory.Pair, s *state.State, shared *bookShares) *book {
	market := s.Pair(p.Number)
	b := &book{bookShares: shared, pair: p, orders: market.Book.Clone(), halted: market.Halted,
		lastTimeUs: market.LastTimeUs(), last: market.Market.Last(),
		stopBook: matching.NewStops(), extras: map[uint64]*orderExtra{}}
	if !market.Plain() {
		b.recoverInstructed(s, market)
	}
	b.noteExpiry()
	return b
}

// recoverInstructed restores the pair's open orders with instructions and its stops from the state.
func (b *book) recoverInstructed(s *state.State, market *state.Pair) {
	for order := range market.Book.Open(nil) {
		b.restoreExtra(order.Order, s, market)
	}
	for stop := range market.Stops.All(nil) {
		b.stopBook.Add(stop)
		if !stop.InBook {
			b.restoreExtra(stop.Order, s, market)
		}
	}
}

// restoreExtra restores an open order's extra from the state, if it has one.
func (b *book) restoreExtra(o trading.Order, s *state.State, market *state.Pair) {
	x := market.Instructed(o.ID)
	if x == nil {
		return
	}
	extra := extraOf(x, s.Account(o.Account).ClientIDs.Of(o.ID))
	b.setExtra(o.ID, &extra)
}

// Receive implements actor.Actor.
func (b *book) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *Command:
		b.decide(m)
	case *ownEntry:
		b.recycle(m)
	case bookContinue:
		b.continuePending = false
		b.continueQueue()
	case bookTick:
		b.tick(m.timeUs)
	case *mailbox.Probe:
		m.Run(b)
	}
}

func (b *book) decide(c *Command) {
	if c.trace.Sent != 0 {
		c.trace.Matching = metrics.Now()
	}
	if b.lastTimeUs-c.timeUs > clockToleranceUs {
		b.clock.lags(b.pair.Name, b.lastTimeUs-c.timeUs)
	}
	b.lastTimeUs = max(c.timeUs, b.lastTimeUs)
	if b.lastTimeUs >= b.expiryUs && b.expireOrQueue(c) {
		return
	}
	b.act(c)
}

// act decides a command, and submits its entry.
func (b *book) act(c *Command) {
	c.timeUs = b.lastTimeUs
	switch c.kind {
	case event.KindCancel:
		b.cancel(c)
	case event.KindHalt:
		b.halt(c)
	case event.KindAmended:
		b.amend(c)
	default:
		b.place(c)
	}
	if b.stopBook.Queued() > 0 {
		b.markBusy()
	}
	b.journal.submit(&c.entry)
	if b.busy {
		b.runTriggers()
	}
}

// halt makes the book refuse orders from now on, or accept them again.
func (b *book) halt(c *Command) {
	b.halted = c.admin.On
	r := c.begin(event.KindHalt, b.pair.Number)
	r.Halt.Halted = c.admin.On
	c.outcome = Accepted
	c.encode()
}

func (b *book) place(c *Command) {
	if c.special != nil {
		b.placeSpecial(c)
		return
	}
	o := &c.order
	if b.halted {
		c.refuse(event.RefusedHalted)
		return
	}
	if !b.inBand(c, o.price, b.last) {
		c.refuse(event.RefusedPriceBand)
		return
	}
	// A full book still accepts orders that trade: the remainder takes a maker's slot.
	if b.full() && !b.crosses(o.side, o.price) {
		c.refuse(event.RefusedBookLimit)
		return
	}
	fills, rest, cut := b.orders.Match(o.side, o.price, o.amount, b.limits.Load().MaxFills,
		b.fills[:0])
	b.fills = fills
	r := c.begin(event.KindOrder, b.pair.Number)
	trades := r.Order.Trades[:0]
	r.Order = event.Order{ID: b.ids.order.Add(1), Account: c.account.ID, Key: c.keyNumber(),
		Nonce: o.nonce, Side: o.side, RestCancelled: cut,
		Price: o.price, Amount: o.amount, Remaining: rest, ClientID: o.clientID}
	for i := range fills {
		f := &fills[i]
		trades = append(trades, event.Trade{ID: b.ids.trade.Add(1), Maker: f.Maker,
			MakerAccount: f.MakerAccount,
			Price:        f.Price, Amount: f.Amount, MakerRemaining: f.MakerRemaining})
	}
	r.Order.Trades = trades
	charge(b.dir, b.pair, c.account, &r.Order)
	if r.Order.Rests() {
		b.orders.Add(trading.Order{ID: r.Order.ID, Account: r.Order.Account, Side: o.side,
			Price: o.price, Amount: o.amount,
			Remaining: rest, TimeUs: c.timeUs})
	}
	if n := len(fills); n > 0 {
		b.forgetMakers(fills)
		b.queueTriggers(fills[0].Price, fills[n-1].Price, o.side)
	}
	c.outcome = Accepted
	c.encode()
}

func (b *book) cancel(c *Command) {
	o, ok := b.orders.Cancel(c.order.id)
	if len(b.extras) > 0 {
		if !ok {
			o, ok = b.find(c.order.id)
		}
		b.forget(c.order.id)
	}
	if !ok {
		c.refuse(event.RefusedNotOpen)
		return
	}
	kind, key := event.KindCancel, c.keyNumber()
	if c.switchReason != 0 {
		kind, key = event.KindSwitchCancel, c.switchRequest.fires.key
	}
	r := c.begin(kind, b.pair.Number)
	r.Cancel = event.Cancel{ID: b.ids.order.Add(1), Order: o.ID, Account: o.Account,
		Key: key, Nonce: c.order.nonce,
		Side: o.Side, Price: o.Price, Remaining: o.Remaining, Reason: c.switchReason}
	c.outcome = Accepted
	c.encode()
}

// expireOrQueue expires the orders that are due before a command that may trade. If more are due
// than one turn expires, or earlier commands already wait, it queues the command and returns true.
func (b *book) expireOrQueue(c *Command) (queued bool) {
	if b.waiting.Len() == 0 {
		switch c.kind {
		case event.KindCancel, event.KindHalt: // these never trade
			return false
		}
		if b.expire() {
			return false
		}
	}
	b.waiting.Push(c)
	b.runTriggers()
	return true
}

// actOnWaiting decides the waiting commands once nothing is due any more.
func (b *book) actOnWaiting() {
	for b.waiting.Len() > 0 && (b.lastTimeUs < b.expiryUs || b.expire()) {
		b.act(b.waiting.Pop())
	}
}

// continueQueue does the next part of the book's work: waiting commands, due orders, then triggers.
func (b *book) continueQueue() {
	b.markBusy()
	if b.waiting.Len() > 0 {
		b.actOnWaiting()
	} else if b.lastTimeUs >= b.expiryUs && b.out.booksMayStart() {
		b.expire()
	}
	b.runTriggers()
}

// tick raises the book's time, and does the work that is due then.
func (b *book) tick(timeUs int64) {
	b.tickPending.Store(false)
	b.markBusy()
	if b.out.booksMayStart() {
		b.lastTimeUs = max(b.lastTimeUs, timeUs)
	}
	b.continueQueue()
}

// recycle takes back an own entry whose record is durable.
func (b *book) recycle(u *ownEntry) {
	b.ownInFlight--
	switch {
	case u.holdsSharedSlot:
		b.out.returnTriggerSlot()
	case u.isTrigger:
		b.ownTriggerInFlight = false
	}
	if len(b.spareEntries) < spareEntries && cap(u.record.Order.Trades) <= keptTrades {
		b.spareEntries = append(b.spareEntries, u)
	}
	b.continueQueue()
}
