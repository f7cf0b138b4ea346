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

// newBook makes the book of a pair with the open orders of the state, and resumes its queue.
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
		b.recover(order.Order, s, market)
	}
	for stop := range market.Stops.All(nil) {
		b.stopBook.Add(stop)
		if !stop.InBook {
			b.recover(stop.Order, s, market)
		}
	}
}

// recover restores the extra of one open order from the state.
func (b *book) recover(o trading.Order, s *state.State, market *state.Pair) {
	x := market.Instructed(o.ID)
	if x == nil {
		return
	}
	is := extraOf(x, s.Account(o.Account).ClientIDs.Of(o.ID))
	b.setExtra(o.ID, &is)
}

// Receive implements actor.Actor.
func (b *book) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *Command:
		b.decide(m)
	case *unit:
		b.recycleUnit(m)
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
	if b.lastTimeUs >= b.expiryUs && b.mustWait(c) {
		return
	}
	b.act(c)
}

// act decides a command now.
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
		b.countInFlight()
	}
	b.journal.submit(&c.entry)
	if b.inFlight {
		b.run()
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
	w := &c.order
	if b.halted {
		c.refuse(event.RefusedHalted)
		return
	}
	if !b.inBand(c, w.price, b.last) {
		c.refuse(event.RefusedPriceBand)
		return
	}
	// A full book still accepts orders that trade: the remainder takes a maker's slot.
	if b.full() && !b.crosses(w.side, w.price) {
		c.refuse(event.RefusedBookLimit)
		return
	}
	fills, rest, cut := b.orders.Match(w.side, w.price, w.amount, b.limits.Load().MaxFills,
		b.fills[:0])
	b.fills = fills
	r := c.begin(event.KindOrder, b.pair.Number)
	trades := r.Order.Trades[:0]
	r.Order = event.Order{ID: b.ids.order.Add(1), Account: c.account.ID, Key: c.keyNumber(),
		Nonce: w.nonce, Side: w.side, RestCancelled: cut,
		Price: w.price, Amount: w.amount, Remaining: rest, ClientID: w.clientID}
	for i := range fills {
		f := &fills[i]
		trades = append(trades, event.Trade{ID: b.ids.trade.Add(1), Maker: f.Maker,
			MakerAccount: f.MakerAccount,
			Price:        f.Price, Amount: f.Amount, MakerRemaining: f.MakerRemaining})
	}
	r.Order.Trades = trades
	charge(b.dir, b.pair, c.account, &r.Order)
	if r.Order.Rests() {
		b.orders.Add(trading.Order{ID: r.Order.ID, Account: r.Order.Account, Side: w.side,
			Price: w.price, Amount: w.amount,
			Remaining: rest, TimeUs: c.timeUs})
	}
	if n := len(fills); n > 0 {
		b.forgetMakers(fills)
		b.queueTriggers(fills[0].Price, fills[n-1].Price, w.side)
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
	if c.sweepReason != 0 {
		kind, key = event.KindSwept, c.switchRequest.fires.key
	}
	r := c.begin(kind, b.pair.Number)
	r.Cancel = event.Cancel{ID: b.ids.order.Add(1), Order: o.ID, Account: o.Account,
		Key: key, Nonce: c.order.nonce,
		Side: o.Side, Price: o.Price, Remaining: o.Remaining, Reason: c.sweepReason}
	c.outcome = Accepted
	c.encode()
}

// mustWait first expires orders that are due at the time of a command that may trade. It returns
// true if more are due than one turn expires, or if earlier commands already wait for that. The
// command then waits in order.
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

// actOnWaiting decides the waiting commands once nothing is due any more.
func (b *book) actOnWaiting() {
	for b.waiting.Len() > 0 && (b.lastTimeUs < b.expiryUs || b.expire()) {
		b.act(b.waiting.Pop())
	}
}

// continueQueue does the next part of the work that the book has begun.
func (b *book) continueQueue() {
	b.countInFlight()
	if b.waiting.Len() > 0 {
		b.actOnWaiting()
	} else if b.lastTimeUs >= b.expiryUs && b.out.booksMayStart() {
		b.expire()
	}
	b.run()
}

// tick expires and triggers orders that are due without a command.
func (b *book) tick(timeUs int64) {
	b.tickPending.Store(false)
	b.countInFlight()
	if b.out.booksMayStart() {
		b.lastTimeUs = max(b.lastTimeUs, timeUs)
	}
	b.continueQueue()
}

// recycleUnit takes a durable unit back.
func (b *book) recycleUnit(u *unit) {
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
	b.continueQueue()
}
