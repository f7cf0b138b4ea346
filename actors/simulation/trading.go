package simulation

import (
	"fmt"
	"math/big"
	"slices"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// A Pair is a market with its book.
type Pair struct {
	Number      uint16
	Name        string
	base, quote uint16 // numbers of its currencies
	rules       Rules
	Book        Book
	Halts       []Halt
	updateID    uint64
	Updates     []BookUpdate // by update id-1

	waiting              []*Order // outside the book, in any order
	queue                []uint64 // orders whose trigger was reached, the next one first
	moments              []Moment
	lasts                []lastPrice
	lastOrder, lastTrade uint64
	timeUs               int64
}

// Rules are those of a pair's configuration that the model needs.
type Rules struct {
	Usual      Rates         // fees
	Tick       money.Price   // of which each price is a multiple; 0: of one unit
	Step       money.Amount  // of which each amount is a multiple; 0: of one unit
	Band       money.Rate    // how far beyond the last trade a price may be; 0: any
	StopCollar money.Rate    // how far beyond its trigger the price of a stop-market may be
	LeastValue money.Balance // of price x amount
}

// Rates are the fees of a pair, or an account's own fees there.
type Rates struct{ Maker, Taker money.Rate }

// A Halt is a record that halts or resumes trading.
type Halt struct {
	seq uint64
	On  bool
}

// Halted reports whether trading was halted at a sequence.
func (p *Pair) Halted(seq uint64) (on bool) {
	for _, h := range p.Halts {
		if h.seq <= seq {
			on = h.On
		}
	}
	return on
}

// A BookUpdate is the change of a pair's depth by one record.
type BookUpdate struct {
	Seq       uint64
	Cancel    bool
	Several   bool // it is the change of one order, or the end of several; only Changed counts
	ID        uint64
	Cancelled uint64 // id of the order
	Side      trading.Side
	Price     money.Price
	Remaining money.Amount // what rests, or rested, as far as the book shows it
	Trades    []event.Trade
	Changed   []Change
	Sides     [2][]Level // the whole depth after the record
}

// A Change is the amount at a price after an update.
type Change struct {
	Side   trading.Side
	Price  money.Price
	amount *big.Int
}

// AmountAt returns the amount at a price after the update.
func (u *BookUpdate) AmountAt(s trading.Side, p money.Price) *big.Int {
	for _, l := range u.Sides[s-1] {
		if l.Price == p {
			return l.Amount
		}
	}
	return new(big.Int)
}

// Open returns an open order with its pair, or nil.
func (m *Model) Open(id uint64) (*Order, *Pair) {
	for _, p := range m.Pairs {
		if o := p.find(id); o != nil {
			return o, p
		}
	}
	return nil, nil
}

// applyOrder applies a plain order.
func (m *Model) applyOrder(r *event.Record) error {
	o, p := &r.Order, m.Pairs[r.Pair-1]
	if err := m.takePlace(r, p.beyondBand(o.Side, o.Price, m.Seq)); err != nil {
		return err
	}
	if x := p.due(r.TimeUs, 0); x != nil {
		return fmt.Errorf("order %d may trade, and the time of order %d was up before", o.ID, x.ID)
	}
	before := p.Book.display()
	k := p.Book.match(taker{account: o.Account, side: o.Side, limit: o.Price, amount: o.Amount,
		most: m.maxFills})
	if o.Remaining != k.rest || o.RestCancelled != (k.end == endMaxFills) {
		return fmt.Errorf("order %d has %v remaining, cut: %v, not %v, because %s", o.ID,
			o.Remaining, o.RestCancelled, k.rest, k.end)
	}
	return m.enter(p, r, newOrder(p, r), &k, before)
}

// takePlace takes what each new order takes: its nonce, its id, its client order id. The order may
// be for a stop.
func (m *Model) takePlace(r *event.Record, beyondBand bool) error {
	o, p := &r.Order, m.Pairs[r.Pair-1]
	a := m.Accounts[o.Account-1]
	if err := m.takeNonce(r.Kind, o.Key, o.Account, o.Nonce); err != nil {
		return err
	}
	if err := m.takeID(p, o.ID); err != nil {
		return err
	}
	if err := p.takeTime(r.TimeUs); err != nil {
		return err
	}
	switch {
	case p.Halted(m.Seq):
		return fmt.Errorf("%s is halted", p.Name)
	case beyondBand:
		return fmt.Errorf("order %d, %v at %v, is beyond the band of %s", o.ID, o.Side, o.Price,
			p.Name)
	case m.IsTaken(a, o.ClientID, m.Seq-1, r.TimeUs):
		return fmt.Errorf("client order id %v of %s is taken by an order of %+v", o.ClientID,
			a.Name, a.clientIDs[o.ClientID])
	}
	m.touched = append(m.touched, o.Account)
	if !o.ClientID.IsZero() {
		a.clientIDs[o.ClientID] = append(a.clientIDs[o.ClientID], named{o.ID, m.Seq, r.TimeUs})
	}
	return nil
}

func newOrder(p *Pair, r *event.Record) *Order {
	o := &r.Order
	return &Order{ID: o.ID, Account: o.Account, Pair: p.Number, Side: o.Side, Price: o.Price,
		Amount: o.Amount, Remaining: o.Amount, TimeUs: r.TimeUs, ClientID: o.ClientID,
		By: KeyNonce{o.Key, o.Nonce}}
}

// enter applies what a record says of an order that has entered its book and has taken k there. The
// record's order has what remains of it, and whether that rests.
func (m *Model) enter(p *Pair, r *event.Record, x *Order, k *taking, before display) error {
	o := &r.Order
	if err := sameTrades(o.Trades, k.trades); err != nil {
		return fmt.Errorf("order %d, %v %v at %v: %w", o.ID, o.Side, o.Amount, o.Price, err)
	}
	if err := m.applyTrades(p, r); err != nil {
		return err
	}
	if o.FeeAccount != 0 {
		m.touched = append(m.touched, o.FeeAccount)
	}
	m.touched = append(m.touched, o.Account)
	for _, t := range k.trades {
		x.spends(t.Price, t.Amount)
	}
	for _, maker := range k.done {
		m.addClosed(p, maker, trading.StatusDone, r.TimeUs)
	}
	for _, own := range k.out {
		own.ends(trading.CancelledSelfTrade)
		m.addClosed(p, own, trading.StatusCancelled, r.TimeUs)
	}
	p.unqueue(k.done, k.out)
	x.Remaining = o.Remaining
	u := BookUpdate{Several: r.Kind != event.KindOrder, ID: o.ID, Side: o.Side, Price: o.Price,
		Trades: slices.Clone(o.Trades)}
	switch {
	case o.RestCancelled:
		m.addClosed(p, x, trading.StatusCancelled, r.TimeUs)
	case o.Remaining == 0:
		m.addClosed(p, x, trading.StatusDone, r.TimeUs)
	default:
		p.Book.rest(x)
		u.Remaining = x.Shown
	}
	p.trigger(k.trades, o.Side)
	m.countUpdate(p, &u, before)
	return nil
}

// applyTrades takes the ids of an order's trades, and moves their money.
func (m *Model) applyTrades(p *Pair, r *event.Record) error {
	for i := range r.Order.Trades {
		t := &r.Order.Trades[i]
		if m.usedTrades[t.ID] || t.ID <= p.lastTrade {
			return fmt.Errorf("trade %d, after trade %d of %s, or its id is used twice", t.ID,
				p.lastTrade, p.Name)
		}
		m.usedTrades[t.ID], p.lastTrade = true, t.ID
		p.lasts = append(p.lasts, lastPrice{m.Seq, t.Price})
		if err := m.settleTrade(p, &r.Order, t); err != nil {
			return err
		}
		m.addTrade(p, r, t)
		m.touched = append(m.touched, t.MakerAccount)
	}
	return nil
}

func (m *Model) applyCancel(r *event.Record) error {
	c, p := &r.Cancel, m.Pairs[r.Pair-1]
	if err := m.takeNonce(r.Kind, c.Key, c.Account, c.Nonce); err != nil {
		return err
	}
	if err := m.takeID(p, c.ID); err != nil {
		return err
	}
	if err := p.takeTime(r.TimeUs); err != nil {
		return err
	}
	o := p.find(c.Order)
	if o == nil || o.Account != c.Account || o.Side != c.Side || o.Price != c.Price ||
		o.Remaining != c.Remaining {
		return fmt.Errorf("a cancel of order %d, %v %v at %v of account %d, where %+v is open",
			c.Order, c.Side, c.Remaining, c.Price, c.Account, o)
	}
	switch {
	case r.Kind == event.KindSwept:
		o.ends(c.Reason)
	case r.Operator != "":
		o.ends(trading.CancelledOperator)
	default:
		o.ends(trading.CancelledOwner)
	}
	before := p.Book.display()
	u := BookUpdate{Several: !o.isPlain(), Cancel: true, ID: c.ID, Cancelled: c.Order,
		Side: c.Side, Price: c.Price, Remaining: o.Shown}
	m.takeOut(p, o, r.TimeUs)
	m.countUpdate(p, &u, before)
	return nil
}

// takeOut cancels an open order.
func (m *Model) takeOut(p *Pair, o *Order, timeUs int64) {
	p.remove(o)
	m.addClosed(p, o, trading.StatusCancelled, timeUs)
	m.touched = append(m.touched, o.Account)
}

// takeTime sets a pair's time, which never goes back.
func (p *Pair) takeTime(timeUs int64) error {
	if timeUs < p.timeUs {
		return fmt.Errorf("%s goes from %d us back to %d us", p.Name, p.timeUs, timeUs)
	}
	p.timeUs = timeUs
	return nil
}

// takeID checks the id of an order or a cancel: no other has it, and the ids of a pair grow.
func (m *Model) takeID(p *Pair, id uint64) error {
	if m.usedIDs[id] || id <= p.lastOrder {
		return fmt.Errorf("id %d, after id %d of %s, or it is used twice", id, p.lastOrder, p.Name)
	}
	m.usedIDs[id], p.lastOrder = true, id
	return nil
}

// countUpdate adds a record that trades, or that changes what the book displays: an amount, or the
// place of an order. No other counts.
func (m *Model) countUpdate(p *Pair, u *BookUpdate, before display) {
	m.note(p)
	after, same := p.Book.display(), len(u.Trades) == 0
	for i, side := range []trading.Side{trading.Buy, trading.Sell} {
		same = same && slices.Equal(before.orders[i], after.orders[i])
		u.Changed = append(u.Changed, changes(side, before.levels[i], after.levels[i])...)
	}
	if same {
		return
	}
	p.updateID++
	u.Seq, u.Sides = m.Seq, after.levels
	p.Updates = append(p.Updates, *u)
}

// changes returns the prices of a side with another amount than before.
func changes(side trading.Side, before, after []Level) (list []Change) {
	has := func(levels []Level, l Level) bool {
		return slices.ContainsFunc(levels, func(o Level) bool {
			return o.Price == l.Price && o.Amount.Cmp(l.Amount) == 0
		})
	}
	for _, l := range after {
		if !has(before, l) {
			list = append(list, Change{side, l.Price, l.Amount})
		}
	}
	for _, l := range before {
		if !slices.ContainsFunc(after, func(o Level) bool { return o.Price == l.Price }) {
			list = append(list, Change{side, l.Price, new(big.Int)})
		}
	}
	return list
}

// settleTrade moves the money of one trade and checks its fees.
func (m *Model) settleTrade(p *Pair, o *event.Order, t *event.Trade) error {
	taker, maker := m.Accounts[o.Account-1], m.Accounts[t.MakerAccount-1]
	buyer, seller, buyerFee, sellerFee := taker, maker, t.TakerFee, t.MakerFee
	if o.Side == trading.Sell {
		buyer, seller, buyerFee, sellerFee = maker, taker, t.MakerFee, t.TakerFee
	}
	base, quote := ofAmount(t.Amount), valueOf(t.Price, t.Amount)
	seller.debit(p.base, base)
	buyer.credit(p.base, base)
	buyer.debit(p.quote, quote)
	seller.credit(p.quote, quote)
	takerGets, makerGets := base, quote
	if o.Side == trading.Sell {
		takerGets, makerGets = quote, base
	}
	if !m.isFee(p, taker, takerGets, t.TakerFee, func(r Rates) money.Rate { return r.Taker }) ||
		!m.isFee(p, maker, makerGets, t.MakerFee, func(r Rates) money.Rate { return r.Maker }) {
		return fmt.Errorf("trade %d: fees of %v and %v fit no rate of the accounts", t.ID,
			t.TakerFee, t.MakerFee)
	}
	for _, fee := range []struct {
		of       *Account
		currency uint16
		n        *big.Int
	}{{buyer, p.base, Units(buyerFee)}, {seller, p.quote, Units(sellerFee)}} {
		if fee.n.Sign() == 0 {
			continue
		}
		if m.feeAccount == nil || o.FeeAccount != m.feeAccount.ID {
			return fmt.Errorf("trade %d: its fees go to account %d", t.ID, o.FeeAccount)
		}
		fee.of.debit(fee.currency, fee.n)
		m.feeAccount.credit(fee.currency, fee.n)
	}
	return nil
}

// isFee reports whether a fee fits the account's rate. A book takes the rate when it decides, and a
// change counts from its release on. So the rate just before the newest one fits, too.
func (m *Model) isFee(p *Pair, a *Account, received *big.Int, fee money.Balance,
	which func(Rates) money.Rate) bool {
	list := a.rates[p.Number]
	if len(list) < ratesInFlight {
		list = append([]Rates{p.rules.Usual}, list...)
	}
	for _, r := range list[max(0, len(list)-ratesInFlight):] {
		if feeOn(received, which(r)).Cmp(Units(fee)) == 0 {
			return true
		}
	}
	return false
}

// ratesInFlight is the number of an account's newest rates that may count.
const ratesInFlight = 2
