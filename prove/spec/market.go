package spec

import (
	"cmp"
	"math/big"
	"slices"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// Rules are a pair's configuration, as far as it matters here.
type Rules struct {
	Usual      Rates         // fees
	Tick       money.Price   // each price is a multiple of it; 0: one unit
	Step       money.Amount  // each amount is a multiple of it; 0: one unit
	Band       money.Rate    // maximum distance beyond the last trade's price; 0: any
	StopCollar money.Rate    // maximum distance of a stop-market's price beyond its trigger
	LeastValue money.Balance // of price x amount
}

// A Market is the market of one pair: its book, and the orders that wait for a trigger. It has no
// money and no records.
type Market struct {
	Rules
	Book
	MaxFills    int         // per order
	last        money.Price // of the newest trade; 0: there was none
	untriggered []*Order    // outside the book, in any order
	queue       []uint64    // orders whose trigger was reached, the next one first
}

func (k *Market) clone() Market {
	c := *k
	c.Book, c.untriggered = k.Book.clone(), cloneOrders(k.untriggered)
	c.queue = slices.Clone(k.queue)
	return c
}

// Find returns an open order, or nil.
func (k *Market) Find(id uint64) *Order {
	for _, o := range k.untriggered {
		if o.ID == id {
			return o
		}
	}
	return k.Book.Find(id)
}

// Open returns all open orders.
func (k *Market) Open() []*Order { return slices.Concat(k.untriggered, k.sides[0], k.sides[1]) }

// Queue returns the orders whose triggers were reached, the next one first.
func (k *Market) Queue() []uint64 { return k.queue }

// Next returns the order whose trigger was reached and that enters the book next; 0: none.
func (k *Market) Next() uint64 {
	if len(k.queue) == 0 {
		return 0
	}
	return k.queue[0]
}

// StopIDs returns the orders that wait for a trigger, or in the queue, sorted.
func (k *Market) StopIDs() (ids []uint64) {
	for _, o := range k.Open() {
		if o.IsStop() {
			ids = append(ids, o.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// Due returns an expired open order other than but; nil: none.
func (k *Market) Due(timeUs int64, but uint64) *Order {
	for _, o := range k.Open() {
		if o.expires(timeUs) && o.ID != but {
			return o
		}
	}
	return nil
}

// Wait lets an order wait for its trigger outside the book.
func (k *Market) Wait(o *Order) {
	o.Waits = true
	k.untriggered = append(k.untriggered, o)
}

// Cancel removes an open order from the book, the waiting orders and the queue.
func (k *Market) Cancel(o *Order) {
	k.untriggered = slices.DeleteFunc(k.untriggered, func(x *Order) bool { return x == o })
	k.Book.Remove(o)
	k.unqueue(o)
}

func (k *Market) unqueue(o *Order) {
	o.Queued = false
	k.queue = slices.DeleteFunc(k.queue, func(id uint64) bool { return id == o.ID })
}

// Enter matches an order that is neither in the book nor waits. Then it rests, or its rest is
// cancelled for a reason. Its trades trigger others.
func (k *Market) Enter(x *Order, timeUs int64) (took MatchResult, reason trading.Reason) {
	took, reason = k.matchOrder(x, timeUs)
	for _, t := range took.Trades {
		x.spends(t.Price, t.Amount)
		k.last = t.Price
	}
	for _, o := range took.Gone {
		k.unqueue(o)
	}
	if x.Remaining = took.Rest; x.Says.Quote != 0 {
		x.Amount, x.Remaining = took.bought(), 0
	}
	if x.Remaining > 0 && reason == 0 {
		k.Rest(x)
	}
	k.Trade(took.Trades, x.Side)
	return took, reason
}

func (k *Market) matchOrder(x *Order, timeUs int64) (took MatchResult, reason trading.Reason) {
	i := &x.Says
	nothing := MatchResult{Rest: x.Remaining, End: NoMaker}
	if x.expires(timeUs) {
		return nothing, trading.CancelledExpired
	}
	if i.PostOnly {
		if reason = k.place(x); reason == 0 && i.IOC { // the other half of an OCO
			reason = trading.CancelledIOC
		}
		return nothing, reason
	}
	t := Taker{Side: x.Side, Limit: x.Price, Amount: x.Remaining, Most: k.MaxFills,
		account: x.Account, selfTrade: i.SelfTrade}
	if i.Quote != 0 {
		t.Amount, t.money, t.step = money.MaxAmount, ofAmount(i.Quote), max(k.Step, 1)
		nothing.Money = t.money
	}
	if i.FOK {
		whole := k.Book.clone()
		if trial := whole.Match(t); trial.End != Filled {
			if nothing.End = trial.End; trial.End == MaxFills {
				return nothing, trading.CancelledMaxFills
			}
			return nothing, trading.CancelledFOK
		}
	}
	took = k.Match(t)
	switch {
	case took.End == Filled:
	case took.End == MaxFills:
		reason = trading.CancelledMaxFills
	case took.End == SelfTrade:
		reason = trading.CancelledSelfTrade
	case i.IOC || i.Market:
		reason = trading.CancelledIOC
	}
	return took, reason
}

// place sets the price of a post-only order that slides. Others that would trade are cancelled.
func (k *Market) place(x *Order) trading.Reason {
	if x.Says.Asked != 0 {
		slid, ok := k.slide(x.Side, x.Price, max(k.Tick, 1))
		if ok && valueOf(slid, x.Remaining).Cmp(Units(k.LeastValue)) >= 0 {
			x.Price = slid
			return 0
		}
	}
	if k.Meets(x.Side, x.Price) {
		return trading.CancelledPostOnly
	}
	return 0
}

// Release removes the next order of the queue, and turns it into the order that enters the book.
func (k *Market) Release() *Order {
	x := k.Find(k.Next())
	k.Cancel(x)
	if oco := x.Says.OCO; oco != (trading.OCO{}) {
		if x.Price = oco.Price; x.Price == 0 {
			x.Price = k.lowest(oco.Trigger, k.StopCollar)
			if k.Band > 0 {
				x.Price = max(x.Price, k.lowest(oco.Trigger, k.Band))
			}
			x.Says.IOC = true
		}
	}
	x.Triggered, x.Waits = true, false
	return x
}

// Lower changes an order that keeps its queue position, to at most its amount. A reduction comes
// out of the hidden part first.
func (k *Market) Lower(x *Order, amount money.Amount, says *trading.Instructions) {
	x.Remaining -= x.Amount - amount
	x.Amount, x.Shown = amount, min(x.Shown, x.Remaining)
	x.instruct(says)
}

// waitsFor returns the trigger that an open order waits for; the zero Trigger: none.
func (o *Order) waitsFor() trading.Trigger {
	switch {
	case o.Queued:
		return trading.Trigger{}
	case o.Waits:
		return o.Trigger
	case o.IsStop():
		return trading.Trigger{Price: o.Says.OCO.Trigger, When: trading.Fall}
	}
	return trading.Trigger{}
}

// reaches reports whether a trade at a price triggers; 0: there was none.
func reaches(t trading.Trigger, price money.Price) bool {
	return price != 0 && (t.When == trading.Rise && price >= t.Price ||
		t.When == trading.Fall && price <= t.Price)
}

// hasReached reports whether the last price would trigger the other half of an order at once.
func (k *Market) hasReached(oco trading.OCO) bool {
	return oco != (trading.OCO{}) &&
		reaches(trading.Trigger{Price: oco.Trigger, When: trading.Fall}, k.last)
}

// Trade appends the orders whose triggers the trades of one record have reached to the queue: those
// that wait for a rise first if a buy has traded, else those that wait for a fall.
func (k *Market) Trade(trades []event.Trade, side trading.Side) {
	if len(trades) == 0 {
		return
	}
	directions := []trading.Direction{trading.Rise, trading.Fall}
	if side == trading.Sell {
		slices.Reverse(directions)
	}
	for _, when := range directions {
		var reached []*Order
		for _, o := range k.Open() {
			if t := o.waitsFor(); t.When == when && slices.ContainsFunc(trades,
				func(trade event.Trade) bool { return reaches(t, trade.Price) }) {
				reached = append(reached, o)
			}
		}
		slices.SortFunc(reached, func(a, b *Order) int {
			byPrice := cmp.Compare(a.waitsFor().Price, b.waitsFor().Price)
			if when == trading.Fall {
				byPrice = -byPrice
			}
			return cmp.Or(byPrice, cmp.Compare(a.ID, b.ID))
		})
		for _, o := range reached {
			k.queue = append(k.queue, o.ID)
			o.Queued = true
		}
	}
}

// one is a rate of 1.
var one = big.NewInt(int64(money.MaxRate))

// beyond reports whether a price is further from a reference than a rate allows, on the side that
// harms the order: a buy above reference x (1 + rate), a sell below reference x (1 - rate).
func beyond(side trading.Side, price, reference money.Price, rate money.Rate) bool {
	r := big.NewInt(int64(rate))
	if side == trading.Sell {
		r.Neg(r)
	}
	furthest := r.Mul(r.Add(r, one), big.NewInt(int64(reference)))
	n := new(big.Int).Mul(big.NewInt(int64(price)), one)
	if side == trading.Sell {
		return n.Cmp(furthest) < 0
	}
	return n.Cmp(furthest) > 0
}

// IsBeyondBand reports whether a price is beyond the pair's band of a reference; 0: none.
func (k *Market) IsBeyondBand(side trading.Side, price, reference money.Price) bool {
	return k.Band > 0 && reference > 0 && beyond(side, price, reference, k.Band)
}

// IsBound reports whether a price is the furthest within the pair's band of a reference.
func (k *Market) IsBound(side trading.Side, bound, reference money.Price) bool {
	tick := max(k.Tick, 1)
	if bound < 1 || bound%tick != 0 || k.IsBeyondBand(side, bound, reference) {
		return false
	}
	if side == trading.Buy {
		return bound > money.MaxPrice-tick || k.IsBeyondBand(side, bound+tick, reference)
	}
	return bound <= tick || k.IsBeyondBand(side, bound-tick, reference)
}

// lowest returns the lowest price of a sell within a rate of a reference: the first multiple of the
// tick that is not beyond it.
func (k *Market) lowest(reference money.Price, rate money.Rate) money.Price {
	tick := max(k.Tick, 1)
	low, high := money.Price(1), money.MaxPrice/tick
	for low < high { // between the least and the greatest multiple of the tick
		middle := low + (high-low)/2
		if beyond(trading.Sell, middle*tick, reference, rate) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low * tick
}
