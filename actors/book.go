package actors

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/directory"
	"exchange/actors/metrics"
	"exchange/core/event"
	"exchange/core/matching"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
)

// A book is the deciding side of one pair: it matches. One actor owns it; the order of its mailbox
// is the order of the pair. Time comes with a command, ids come from the engine's counters, and the
// outcome of each command is one entry of the journal.
type book struct {
	*bookShares
	pair       *directory.Pair
	orders     *matching.Book
	halted     bool
	lastTimeUs int64
	last       money.Price // of the newest trade, 0 before the first
	fills      []matching.Fill
}

// bookShares has the parts that all books of an engine share.
type bookShares struct {
	limits  *Limits
	ids     *counters
	fees    *fees
	journal *journal
	clock   *clockAlarm
}

// newBook makes the book of a pair, with the open orders that the state has.
func newBook(p *directory.Pair, market *state.Pair, shared *bookShares) *book {
	b := &book{bookShares: shared, pair: p, orders: matching.New(), halted: market.Halted,
		lastTimeUs: market.LastTimeUs(), last: market.Market.Last()}
	for _, side := range [...]trading.Side{trading.Buy, trading.Sell} {
		for order := range market.Book.Orders(side) {
			b.orders.Add(order)
		}
	}
	return b
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
	c.timeUs = max(c.timeUs, b.lastTimeUs)
	b.lastTimeUs = c.timeUs
	switch c.kind {
	case event.KindCancel:
		b.cancel(c)
	case event.KindHalt:
		b.halt(c)
	default:
		b.place(c)
	}
	b.journal.submit(&c.entry)
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
	w := &c.order
	if b.halted {
		c.refuse(event.RefusedHalted)
		return
	}
	if bound := b.bound(w.side); bound != 0 &&
		(w.side == trading.Buy && w.price > bound || w.side == trading.Sell && w.price < bound) {
		c.bound = bound
		c.refuse(event.RefusedPriceBand)
		return
	}
	// A full book still takes orders that trade: the rest of one takes the place of a maker.
	if b.orders.Len() >= b.limits.OpenOrdersPerBook && !b.crosses(w.side, w.price) {
		c.refuse(event.RefusedBookLimit)
		return
	}
	fills, rest, cut := b.orders.Match(w.side, w.price, w.amount, b.limits.MaxFills, b.fills[:0])
	b.fills = fills
	if n := len(fills); n > 0 {
		b.last = fills[n-1].Price
	}
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
	c.outcome = Accepted
	c.encode()
}

// bound returns the worst price that an order may have, for its owner, 0 if it may have any.
func (b *book) bound(side trading.Side) money.Price {
	band, tick := b.pair.PriceBand, b.pair.PriceTick
	switch {
	case band == 0 || b.last == 0:
		return 0
	case side == trading.Buy:
		bound := b.last.Above(band)
		return bound - bound%tick
	}
	bound := b.last.Below(band)
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
	if !ok {
		c.refuse(event.RefusedNotOpen)
		return
	}
	r := c.begin(event.KindCancel, b.pair.Number)
	r.Cancel = event.Cancel{ID: b.ids.order.Add(1), Order: o.ID, Account: o.Account,
		Key: c.keyNumber(), Nonce: c.order.nonce,
		Side: o.Side, Price: o.Price, Remaining: o.Remaining}
	c.outcome = Accepted
	c.encode()
}
