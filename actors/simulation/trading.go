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
	rates       Rates
	Book        Book
	Halts       []Halt
	updateID    uint64
	Updates     []BookUpdate // by update id-1

	lastOrder, lastTrade uint64
	timeUs               int64
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
	ID        uint64
	Cancelled uint64 // id of the order
	Side      trading.Side
	Price     money.Price
	Remaining money.Amount // what rests, or rested
	Trades    []event.Trade
	Changed   []Change
	Sides     [2][]Level // the whole depth after the record
}

// A Change is the amount at a price after an update.
type Change struct {
	Side   trading.Side
	Price  money.Price
	Amount *big.Int
}

// DepthAt returns a pair's depth at a sequence.
func (p *Pair) DepthAt(seq uint64) (sides [2][]Level) {
	for _, u := range slices.Backward(p.Updates) {
		if u.Seq <= seq {
			return u.Sides
		}
	}
	return sides
}

// Open returns a resting order with its pair, or nil.
func (m *Model) Open(id uint64) (*Order, *Pair) {
	for _, p := range m.Pairs {
		if o := p.Book.find(id); o != nil {
			return o, p
		}
	}
	return nil, nil
}

func (m *Model) applyOrder(r *event.Record) error {
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
	case m.IsTaken(a, o.ClientID, m.Seq-1, r.TimeUs):
		return fmt.Errorf("client order id %v of %s is taken by an order of %+v", o.ClientID,
			a.Name, a.clientIDs[o.ClientID])
	}
	trades, remaining, cut, done := p.Book.match(o, m.maxFills)
	if err := sameTrades(o.Trades, trades); err != nil {
		return fmt.Errorf("order %d, %v %v at %v: %w", o.ID, o.Side, o.Amount, o.Price, err)
	}
	if o.Remaining != remaining || o.RestCancelled != cut {
		return fmt.Errorf("order %d has %v remaining, cut: %v, not %v, %v", o.ID, o.Remaining,
			o.RestCancelled, remaining, cut)
	}
	if err := m.applyTrades(p, r); err != nil {
		return err
	}
	if o.FeeAccount != 0 {
		m.touched = append(m.touched, o.FeeAccount)
	}
	m.touched = append(m.touched, o.Account)
	if !o.ClientID.IsZero() {
		a.clientIDs[o.ClientID] = append(a.clientIDs[o.ClientID], named{o.ID, m.Seq, r.TimeUs})
	}
	for _, maker := range done {
		m.addClosed(p, maker, trading.StatusDone, r.TimeUs)
	}
	taker := &Order{ID: o.ID, Account: o.Account, Pair: p.Number, Side: o.Side, Price: o.Price,
		Amount: o.Amount, Remaining: remaining, TimeUs: r.TimeUs, ClientID: o.ClientID}
	u := BookUpdate{ID: o.ID, Side: o.Side, Price: o.Price, Trades: slices.Clone(o.Trades)}
	switch {
	case remaining == 0:
		m.addClosed(p, taker, trading.StatusDone, r.TimeUs)
	case cut:
		m.addClosed(p, taker, trading.StatusCancelled, r.TimeUs)
	default:
		p.Book.rest(taker)
		u.Remaining = remaining
	}
	m.countUpdate(p, &u)
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
	o := p.Book.find(c.Order)
	if o == nil || o.Account != c.Account || o.Side != c.Side || o.Price != c.Price ||
		o.Remaining != c.Remaining {
		return fmt.Errorf("a cancel of order %d, %v %v at %v of account %d, where %+v rests",
			c.Order, c.Side, c.Remaining, c.Price, c.Account, o)
	}
	p.Book.remove(o)
	m.addClosed(p, o, trading.StatusCancelled, r.TimeUs)
	m.countUpdate(p, &BookUpdate{Cancel: true, ID: c.ID, Cancelled: c.Order, Side: c.Side,
		Price: c.Price, Remaining: c.Remaining})
	m.touched = append(m.touched, c.Account)
	return nil
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

// countUpdate adds a change of the depth.
func (m *Model) countUpdate(p *Pair, u *BookUpdate) {
	for i, t := range u.Trades {
		if i == 0 || u.Trades[i-1].Price != t.Price {
			u.Changed = append(u.Changed, Change{u.Side.Opposite(), t.Price,
				p.Book.at(u.Side.Opposite(), t.Price)})
		}
	}
	if u.Remaining > 0 {
		u.Changed = append(u.Changed, Change{u.Side, u.Price, p.Book.at(u.Side, u.Price)})
	}
	p.updateID++
	u.Seq, u.Sides = m.Seq, [2][]Level{p.Book.levels(trading.Buy), p.Book.levels(trading.Sell)}
	p.Updates = append(p.Updates, *u)
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
		list = append([]Rates{p.rates}, list...)
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
