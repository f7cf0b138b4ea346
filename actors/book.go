package actors

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/actors/metrics"
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
	limits  *Limits
	ids     *counters
	fees    *fees
	journal *journal
	clock   *clockAlarm
	out     bookOut
}

// newBook makes the book of a pair, with the open orders that the state has. It goes on with the
// state's queue.
func newBook(p *directory.Pair, s *state.State, shared *bookShares) *book {
	market := s.Pair(p.Number)
	b := &book{bookShares: shared, pair: p, orders: matching.New(), halted: market.Halted,
		lastTimeUs: market.LastTimeUs(), last: market.Market.Last(),
		stops: matching.NewStops(), standing: map[uint64]*standing{}}
	for _, side := range [...]trading.Side{trading.Buy, trading.Sell} {
		for order, iceberg := range market.Book.Open(side) {
			b.orders.AddIceberg(order, iceberg)
			b.recover(order, s, market)
		}
	}
	for stop := range market.Stops.All() {
		b.stops.Add(stop)
		if !stop.Rests {
			b.recover(stop.Order, s, market)
		}
	}
	b.noteExpiry()
	return b
}

// recover notes what the state knows of an open order.
func (b *book) recover(o trading.Order, s *state.State, market *state.Pair) {
	x := market.Instructed(o.ID)
	if x == nil {
		return
	}
	is := standingOf(x, s.Account(o.Account).ClientIDs.Of(o.ID))
	b.stand(o.ID, &is)
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

// Receive implements actor.Actor.
func (b *book) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *Command:
		b.decide(m)
	case *unit:
		b.released(m)
	case bookGoesOn:
		b.called = false
		b.goOn()
	case bookTick:
		b.tick(m.timeUs)
	case *probe:
		m.Run(b)
	}
}

func (b *book) decide(c *Command) {
	if c.trace.Sent != 0 {
		c.trace.Matching = metrics.Now()
	}
	if b.lastTimeUs-c.timeUs > clockToleranceUs {
		b.clock.behind(b.pair.Name, b.lastTimeUs-c.timeUs)
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
	if b.stops.Queued() > 0 {
		b.count()
	}
	b.journal.submit(&c.entry)
	if b.counted {
		b.run()
	}
}

// halt makes the book refuse orders from here on, or take them again.
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
	// A full book still takes orders that trade: the rest of one takes the place of a maker.
	if b.full() && !b.crosses(w.side, w.price) {
		c.refuse(event.RefusedBookLimit)
		return
	}
	fills, rest, cut := b.orders.Match(w.side, w.price, w.amount, b.limits.MaxFills, b.fills[:0])
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
	b.fees.charge(b.pair, c.account, &r.Order)
	if r.Order.Rests() {
		b.orders.Add(trading.Order{ID: r.Order.ID, Account: r.Order.Account, Side: w.side,
			Price: w.price, Amount: w.amount,
			Remaining: rest, TimeUs: c.timeUs})
	}
	if n := len(fills); n > 0 {
		b.forgetMakers(fills)
		b.traded(fills[0].Price, fills[n-1].Price, w.side)
	}
	c.outcome = Accepted
	c.encode()
}

// bound returns the worst price that an order may have, for its owner, 0 if it may have any.
func (b *book) bound(side trading.Side, reference money.Price) money.Price {
	band, tick := b.pair.PriceBand, b.pair.PriceTick
	switch {
	case band == 0 || reference == 0:
		return 0
	case side == trading.Buy:
		bound := reference.Above(band)
		return bound - bound%tick
	}
	bound := reference.Below(band)
	if rest := bound % tick; rest > 0 {
		bound += min(tick-rest, money.MaxPrice-bound)
	}
	return bound
}

// crosses reports whether an order would trade at once.
func (b *book) crosses(side trading.Side, price money.Price) bool {
	best, any := b.orders.Best(side.Opposite())
	return any && (side == trading.Buy && best <= price || side == trading.Sell && best >= price)
}

func (b *book) cancel(c *Command) {
	o, ok := b.orders.Cancel(c.order.id)
	if len(b.standing) > 0 {
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
	if c.swept != 0 {
		kind, key = event.KindSwept, c.switching.fires.key
	}
	r := c.begin(kind, b.pair.Number)
	r.Cancel = event.Cancel{ID: b.ids.order.Add(1), Order: o.ID, Account: o.Account,
		Key: key, Nonce: c.order.nonce,
		Side: o.Side, Price: o.Price, Remaining: o.Remaining, Reason: c.swept}
	c.outcome = Accepted
	c.encode()
}
