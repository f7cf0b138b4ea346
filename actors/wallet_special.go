package actors

import (
	"slices"

	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
)

// rare has the parts of a wallet that few accounts have. A wallet gets them with the first use.
type rare struct {
	selfTrade trading.SelfTrade // mode of an order that names none
	marks     map[uint64]marks  // open orders with any; nil while unused
	switches  []event.Switch    // armed ones, those that fire included
}

// rareParts returns the rare parts, made when there are none yet.
func (w *wallet) rareParts() *rare {
	if w.rare == nil {
		w.rare = new(rare)
	}
	return w.rare
}

// marks are what the wallet must know of an open order with instructions.
type marks uint8

const (
	// the order waits for a trigger, or its other half does; limits count it
	marksStop marks = 1 << iota
	marksGTD        // it expires; limits count it
	// It waits, and moves to a better price where it would take when it is triggered.
	marksSlides
)

// ordersInBook counts an account's open orders of a pair, those on their way to the book included.
type ordersInBook struct {
	orders int32
	stops  int32 // orders with marksStop
	gtd    int32 // orders with marksGTD
}

// entersBook counts an order on its way to a book, or one that a start finds there.
func (w *wallet) entersBook(pair uint16) {
	if w.inBook == nil {
		w.inBook = make(map[uint16]ordersInBook)
	}
	n := w.inBook[pair]
	n.orders++
	w.inBook[pair] = n
}

// leavesBook takes an order off the count of entersBook: it did not come to rest, or rests no more.
func (w *wallet) leavesBook(pair uint16) {
	n := w.inBook[pair]
	n.orders--
	w.keepCount(pair, n)
}

func (w *wallet) keepCount(pair uint16, n ordersInBook) {
	if n == (ordersInBook{}) {
		delete(w.inBook, pair)
		return
	}
	w.inBook[pair] = n
}

// count counts an order of a pair by its marks, or ends that.
func (w *wallet) count(pair uint16, m marks, by int32) {
	if m&(marksStop|marksGTD) == 0 {
		return
	}
	n := w.inBook[pair]
	n.add(m, by)
	w.keepCount(pair, n)
}

// add adds to the numbers of stops and of orders that expire, by the marks of one order.
func (n *ordersInBook) add(m marks, by int32) {
	if m&marksStop != 0 {
		n.stops += by
	}
	if m&marksGTD != 0 {
		n.gtd += by
	}
}

// mark gives an open order its marks, and counts it by them.
func (w *wallet) mark(id uint64, m marks) {
	if w.rare == nil && m == 0 {
		return
	}
	r := w.rareParts()
	before := r.marks[id]
	if before == m {
		return
	}
	pair := w.open.Pair(id)
	w.count(pair, before, -1)
	w.count(pair, m, 1)
	if m == 0 {
		delete(r.marks, id)
		return
	}
	if r.marks == nil {
		r.marks = make(map[uint64]marks)
	}
	r.marks[id] = m
}

// marksOf returns the marks of an open order.
func (w *wallet) marksOf(id uint64) marks {
	if w.rare == nil {
		return 0
	}
	return w.rare.marks[id]
}

// marksFor returns the marks of an order with instructions and a trigger.
func marksFor(i *trading.Instructions, t trading.Trigger) (m marks) {
	if t.When != 0 || i.OCO != (trading.OCO{}) {
		m |= marksStop
	}
	if t.When != 0 && i.Asked != 0 {
		m |= marksSlides
	}
	if i.ExpireUs != 0 {
		m |= marksGTD
	}
	return m
}

// acceptedBy returns the order that a record accepts, changes or triggers.
func acceptedBy(r *event.Record) acceptedOrder {
	o := &r.Order
	a := acceptedOrder{id: o.ID, pair: r.Pair, side: o.Side, clientID: o.ClientID,
		placedUs: r.TimeUs, rests: o.Rests(), terms: ledger.Terms{Price: o.Price, Amount: o.Amount}}
	switch r.Kind {
	case event.KindOrder:
	case event.KindInstructed:
		a.marks = marksFor(&r.Instructions, trading.Trigger{})
	case event.KindStop:
		a.marks = marksFor(&r.Instructions, r.Trigger)
	case event.KindAmended:
		a.again, a.marks = true, marksFor(&r.Instructions, r.Trigger)
	case event.KindTriggered: // its trigger, and that of its other half, is over
		a.again = true
		a.marks = marksFor(&r.Instructions, trading.Trigger{}) &^ marksStop
	default:
		return acceptedOrder{}
	}
	return a
}

// instruct gives an order that names no self-trade mode the account's. An order that says no more
// than a plain one is a plain one from here on.
func (w *wallet) instruct(c *Command) {
	if w.rare != nil && w.selfTrade != trading.SelfTradeNone {
		if c.special == nil {
			c.special = new(SpecialRequest)
		}
		if !c.special.SelfTradeGiven {
			c.special.SelfTrade = w.selfTrade
		}
	}
	if s := c.special; s != nil && s.Trigger.When == 0 && s.Instructions.IsZero() {
		c.special = nil
	}
}

// hasRoom reports whether an order with these marks may come to those of a pair. Otherwise the
// command is refused.
func (w *wallet) hasRoom(c *Command, pair uint16, m marks) bool {
	n, limits := w.inBook[pair], w.out.limits()
	switch {
	case m&marksStop != 0 && int(n.stops) >= limits.StopsPerAccountAndBook:
		w.refuse(c, event.RefusedStopLimit)
	case m&marksGTD != 0 && int(n.gtd) >= limits.GTDPerAccountAndBook:
		w.refuse(c, event.RefusedGTDLimit)
	default:
		return true
	}
	return false
}

// need returns the money that an order reserves, and its currency.
func (c *Command) need() (uint16, money.Balance) {
	o, p := &c.order, c.pair
	if c.special != nil && c.special.Quote != 0 {
		return p.QuoteNumber, c.special.Quote.Balance()
	}
	return ledger.Need(o.side, o.price, o.amount, p.BaseNumber, p.QuoteNumber)
}

// set gives the account another setting for its later orders.
func (w *wallet) set(c *Command) {
	w.rareParts().selfTrade = c.setting
	r := c.begin(event.KindSettings, 0)
	r.Settings = event.Settings{Account: c.account.ID, Key: c.keyNumber(), Nonce: c.order.nonce,
		SelfTrade: c.setting}
	w.accept(c)
}

// recoverOrders takes over the account's open orders.
func (w *wallet) recoverOrders(a *state.Account, s *state.State) {
	w.open = ledger.NewOpenTerms(&a.Open, func(order ledger.OpenOrder) ledger.Terms {
		o, _, _ := s.OpenOrder(a, order.ID)
		return ledger.Terms{Price: o.Price, Amount: o.Amount}
	})
	for order := range w.open.Orders().Newest() {
		w.entersBook(order.Pair)
		w.mark(order.ID, marksIn(s.Pair(order.Pair).Instructed(order.ID)))
	}
}

// marksIn returns the marks of an open order as the committed side has it; nil: it is plain.
func marksIn(x *trading.Instructed) marks {
	switch {
	case x == nil:
		return 0
	case x.Triggered:
		return marksFor(&x.Instructions, trading.Trigger{}) &^ marksStop
	}
	return marksFor(&x.Instructions, x.Trigger)
}

// recoverRare takes over the account's settings and switches.
func (w *wallet) recoverRare(a *state.Account) {
	if mode := a.SelfTrade(); mode != trading.SelfTradeNone {
		w.rareParts().selfTrade = mode
	}
	if list := a.Switches(); len(list) > 0 {
		w.rareParts().switches = slices.Clone(list)
	}
}
