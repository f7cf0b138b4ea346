package spec

import (
	"fmt"
	"math/big"
	"slices"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// A Pair is a market with its records and its money.
type Pair struct {
	Market
	Number      uint16
	Name        string
	base, quote uint16 // numbers of its currencies
	Halts       []Halt
	Updates     []BookUpdate // by update id-1

	moments              []Moment
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
func (p *Pair) IsHalted(seq uint64) (on bool) {
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
	Several   bool // a change of one order, or the end of several; only Changed counts
	ID        uint64
	Cancelled uint64 // id of the order
	Side      trading.Side
	Price     money.Price
	Remaining money.Amount // displayed amount that rests, or rested
	Trades    []event.Trade
	Changed   []Change
	Sides     [2][]trading.Level // the whole depth after the record
}

// A Change is the amount at a price after an update.
type Change struct {
	Side   trading.Side
	Price  money.Price
	amount money.Total
}

// AmountAt returns the amount at a price after the update.
func (u *BookUpdate) AmountAt(s trading.Side, p money.Price) money.Total {
	return amountAt(u.Sides[s-1], p)
}

// Open returns an open order with its pair, or nil.
func (m *Exchange) Open(id uint64) (*Order, *Pair) {
	for _, p := range m.Pairs {
		if o := p.Find(id); o != nil {
			return o, p
		}
	}
	return nil, nil
}

// applyOrder applies an order that enters its book at once.
func (m *Exchange) applyOrder(r *event.Record) error {
	o, p := &r.Order, m.Pairs[r.Pair-1]
	x := newOrder(r)
	if x.Says.Asked != 0 {
		x.Price = x.Says.Asked
	}
	oco, expires := x.Says.OCO, x.expires(r.TimeUs)
	beyond := p.IsBeyondBand(o.Side, x.Price, p.last) ||
		oco.Price != 0 && p.IsBeyondBand(o.Side, oco.Price, oco.Trigger)
	if err := m.takeOrderIDs(r, x, beyond && !expires); err != nil {
		return err
	}
	if err := checkInstructions(x); err != nil {
		return err
	}
	if !expires && p.hasReached(oco) {
		return fmt.Errorf("the other half of order %d waits for %+v, which the last price %v has "+
			"reached", o.ID, oco, p.last)
	}
	return m.enter(p, r, x, p.display())
}

// checkInstructions returns an error for instructions that exclude each other.
func checkInstructions(x *Order) error {
	i := &x.Says
	atOnce := i.Market || i.IOC || i.FOK
	switch {
	case i.IOC && i.FOK, atOnce && (i.ExpireUs != 0 || i.PostOnly || i.Display != 0),
		i.Asked != 0 && !i.PostOnly, i.Quote != 0 && (!i.Market || x.Side != trading.Buy),
		i.OCO != (trading.OCO{}) && (x.Side != trading.Sell || atOnce || i.ExpireUs != 0 ||
			i.PostOnly && i.OCO.Price == 0 || i.OCO.Trigger >= x.Price):
		return fmt.Errorf("order %d, %v at %v, has %+v", x.ID, x.Side, x.Price, *i)
	}
	return nil
}

// takeOrderIDs uses a new order's nonce, id and client order id. The order may be a stop.
func (m *Exchange) takeOrderIDs(r *event.Record, x *Order, beyondBand bool) error {
	o, p := &r.Order, m.Pairs[r.Pair-1]
	a := m.Accounts[o.Account-1]
	if err := m.takeNonce(r.Kind, o.Key, o.Account, o.Nonce); err != nil {
		return err
	}
	if err := m.takeID(p, &o.ID, r.TimeUs); err != nil {
		return err
	}
	switch {
	case p.IsHalted(m.Seq):
		return fmt.Errorf("%s is halted", p.Name)
	case beyondBand:
		return fmt.Errorf("order %d, %v at %v, is beyond the band of %s", o.ID, o.Side, o.Price,
			p.Name)
	case m.takenBy(a, o.ClientID, r.TimeUs) != 0:
		return fmt.Errorf("client order id %v of %s is taken by one of the orders %v", o.ClientID,
			a.Name, a.clientIDs[o.ClientID])
	}
	x.ID = o.ID
	m.touched = append(m.touched, o.Account)
	if !o.ClientID.IsZero() {
		a.clientIDs[o.ClientID] = append(slices.Clip(a.clientIDs[o.ClientID]), o.ID)
	}
	return nil
}

// newOrder returns the order of a record, before it meets others.
func newOrder(r *event.Record) *Order {
	o := &r.Order
	x := &Order{ID: o.ID, Account: o.Account, Pair: r.Pair, Side: o.Side, Price: o.Price,
		Amount: o.Amount, Remaining: o.Amount, TimeUs: r.TimeUs, ClientID: o.ClientID,
		By: KeyNonce{o.Key, o.Nonce}}
	if r.Kind != event.KindOrder {
		x.Says = r.Instructions
		x.Says.Prevented, x.Says.Cancelled = nil, 0
	}
	return x
}

// enter enters an order into its book, compares the outcome with the record, and moves the money.
func (m *Exchange) enter(p *Pair, r *event.Record, x *Order, before display) error {
	o := &r.Order
	if due := p.Due(r.TimeUs, x.ID); due != nil && !x.expires(r.TimeUs) {
		return fmt.Errorf("order %d may trade, and the time of order %d was up before", x.ID,
			due.ID)
	}
	k, reason := p.Enter(x, r.TimeUs)
	if reason == trading.CancelledPostOnly && r.Kind != event.KindTriggered {
		return fmt.Errorf("order %d is post-only, and would take", x.ID)
	}
	if !says(m, &o.Price, x.Price) || !says(m, &o.Amount, x.Amount) ||
		!says(m, &o.Remaining, x.Remaining) || !says(m, &o.RestCancelled, reason != 0) ||
		r.Kind != event.KindOrder && !says(m, &r.Instructions.Cancelled, reason) {
		return fmt.Errorf("order %d is %v of %v at %v remaining, cancelled: %v %v, not %v of %v "+
			"at %v, %v, because %s", o.ID, o.Remaining, o.Amount, o.Price, o.RestCancelled,
			r.Instructions.Cancelled, x.Remaining, x.Amount, x.Price, reason, k.End)
	}
	if err := m.takePrevented(p, r, x, k.Prevented); err != nil {
		return err
	}
	if r.Kind == event.KindInstructed {
		x.Says.Cancelled = reason
	} else {
		x.setCancelled(reason)
	}
	if err := m.takeTrades(p, r, k.Trades); err != nil {
		return fmt.Errorf("order %d, %v %v at %v: %w", o.ID, o.Side, o.Amount, o.Price, err)
	}
	m.touched = append(m.touched, o.Account)
	for _, gone := range k.Gone {
		status := uint8(trading.StatusDone)
		if gone.Remaining > 0 {
			gone.setCancelled(trading.CancelledSelfTrade)
			status = trading.StatusCancelled
		}
		m.close(gone, status, r.TimeUs)
	}
	u := BookUpdate{Several: r.Kind != event.KindOrder, ID: o.ID, Side: o.Side, Price: o.Price,
		Trades: slices.Clone(o.Trades)}
	switch {
	case reason != 0:
		m.close(x, trading.StatusCancelled, r.TimeUs)
	case x.Remaining == 0:
		m.close(x, trading.StatusDone, r.TimeUs)
	default:
		u.Remaining = x.Shown
	}
	m.countUpdate(p, &u, before)
	return nil
}

// takePrevented compares the own orders that a taker cancelled with those of its record, and uses
// the ids of their cancels.
func (m *Exchange) takePrevented(p *Pair, r *event.Record, x *Order,
	want []trading.Prevented) error {
	got := &r.Instructions.Prevented
	if m.deciding {
		*got = slices.Clone(want)
	}
	if r.Kind == event.KindOrder {
		return nil
	}
	for i := range *got {
		own := (*got)[i]
		if own.Cancel = 0; i >= len(want) || own != want[i] {
			break
		}
		if err := m.takeID(p, &(*got)[i].Cancel, r.TimeUs); err != nil {
			return err
		}
		own.Cancel, own.Before = (*got)[i].Cancel, 0
		x.Says.Prevented = append(slices.Clone(x.Says.Prevented), own)
		want[i].Cancel = own.Cancel
	}
	if !slices.Equal(*got, want) {
		return fmt.Errorf("order %d has prevented %+v, not %+v", r.Order.ID, *got, want)
	}
	return nil
}

// takeTrades compares the trades of a record with those of its order, uses their ids, and moves
// their money.
func (m *Exchange) takeTrades(p *Pair, r *event.Record, want []event.Trade) error {
	o := &r.Order
	if m.deciding {
		o.Trades = slices.Clone(want)
		if o.FeeAccount = 0; len(want) > 0 && m.feeAccount != nil {
			o.FeeAccount = m.feeAccount.ID
		}
	}
	if len(o.Trades) != len(want) {
		return fmt.Errorf("it has %d trades, not %d", len(o.Trades), len(want))
	}
	for i := range o.Trades {
		t := &o.Trades[i]
		bare := *t
		if bare.ID, bare.TakerFee, bare.MakerFee = 0, want[i].TakerFee, want[i].MakerFee; bare !=
			want[i] {
			return fmt.Errorf("trade %d is %+v, not %+v", i+1, *t, want[i])
		}
		if m.deciding {
			_, last := m.LastIDs()
			t.ID = last + 1
		}
		if m.usedTrades[t.ID] || t.ID <= p.lastTrade {
			return fmt.Errorf("trade %d, after trade %d of %s, or its id is used twice", t.ID,
				p.lastTrade, p.Name)
		}
		m.usedTrades[t.ID], p.lastTrade = true, t.ID
		if err := m.settleTrade(p, o, t); err != nil {
			return err
		}
		m.Trades = append(m.Trades, Trade{m.Seq, r.TimeUs, p.Number, o.Side, o.Account, o.ID, *t})
		m.touched = append(m.touched, t.MakerAccount)
	}
	return nil
}

// applyStop applies an order that waits outside the book.
func (m *Exchange) applyStop(r *event.Record) error {
	o, p, t := &r.Order, m.Pairs[r.Pair-1], r.Trigger
	x := newOrder(r)
	x.Trigger, x.Waits = t, true
	expires := x.expires(r.TimeUs)
	if err := m.takeOrderIDs(r, x,
		p.IsBeyondBand(o.Side, o.Price, t.Price) && !expires); err != nil {
		return err
	}
	reason := trading.Reason(0)
	if expires {
		reason = trading.CancelledExpired
	}
	switch {
	case len(r.Instructions.Prevented) > 0 || x.Says.OCO != (trading.OCO{}) ||
		!says(m, &o.Remaining, o.Amount):
		return fmt.Errorf("stop %d of %v, %v remaining, has met orders, or is an OCO: %+v", o.ID,
			o.Amount, o.Remaining, r.Instructions)
	case !says(m, &r.Instructions.Cancelled, reason) || !says(m, &o.RestCancelled, reason != 0):
		return fmt.Errorf("stop %d is cancelled (%v), not %v", o.ID, r.Instructions.Cancelled,
			reason)
	case expires:
		x.Says.Cancelled = reason
		m.close(x, trading.StatusCancelled, r.TimeUs)
	case reaches(t, p.last):
		return fmt.Errorf("stop %d waits for %+v, which the last price %v has reached", o.ID, t,
			p.last)
	default:
		p.Wait(x)
	}
	m.note(p)
	return nil
}

// applyTriggered enters the first order of the queue into the book.
func (m *Exchange) applyTriggered(r *event.Record) error {
	o, p := &r.Order, m.Pairs[r.Pair-1]
	if err := p.takeTime(r.TimeUs); err != nil {
		return err
	}
	x := p.Find(o.ID)
	switch {
	case x == nil || p.Next() != o.ID:
		return fmt.Errorf("order %d is triggered, and next is %d of %v", o.ID, p.Next(), p.queue)
	case p.IsHalted(m.Seq) || m.Maintenance.On:
		return fmt.Errorf("order %d is triggered in a halt, or in maintenance", o.ID)
	case !says(m, &r.Triggered, event.Triggered{Was: event.Was{Price: x.Price, Open: x.Remaining},
		FromBook: !x.Waits}), !m.saysWhose(o, x), !says(m, &o.Amount, x.Amount):
		return fmt.Errorf("order %d is triggered as %+v, %+v, and is %+v", o.ID, r.Triggered, o, x)
	}
	before := p.display()
	p.Release()
	if m.deciding {
		r.Instructions = x.Says
	}
	return m.enter(p, r, x, before)
}

// saysWhose reports whether a record has the immutable fields of an order.
func (m *Exchange) saysWhose(o *event.Order, x *Order) bool {
	return says(m, &o.Account, x.Account) && says(m, &o.Side, x.Side) &&
		says(m, &o.ClientID, x.ClientID)
}

func (m *Exchange) applyCancel(r *event.Record) error {
	c, p := &r.Cancel, m.Pairs[r.Pair-1]
	if err := m.takeNonce(r.Kind, c.Key, c.Account, c.Nonce); err != nil {
		return err
	}
	if err := m.takeID(p, &c.ID, r.TimeUs); err != nil {
		return err
	}
	o := p.Find(c.Order)
	if o == nil || o.Account != c.Account || !says(m, &c.Side, o.Side) ||
		!says(m, &c.Price, o.Price) || !says(m, &c.Remaining, o.Remaining) {
		return fmt.Errorf("a cancel of order %d, %v %v at %v of account %d, where %+v is open",
			c.Order, c.Side, c.Remaining, c.Price, c.Account, o)
	}
	switch {
	case r.Kind == event.KindSwitchCancel:
		o.setCancelled(c.Reason)
	case r.Operator != "":
		o.setCancelled(trading.CancelledOperator)
	default:
		o.setCancelled(trading.CancelledOwner)
	}
	before := p.display()
	u := BookUpdate{Several: !o.isPlain(), Cancel: true, ID: c.ID, Cancelled: c.Order,
		Side: c.Side, Price: c.Price, Remaining: o.Shown}
	m.takeOut(p, o, r.TimeUs)
	m.countUpdate(p, &u, before)
	return nil
}

// applyExpired cancels expired orders.
func (m *Exchange) applyExpired(r *event.Record) error {
	p := m.Pairs[r.Pair-1]
	if err := p.takeTime(r.TimeUs); err != nil {
		return err
	}
	if m.Maintenance.BarsCancels() {
		return fmt.Errorf("orders expire during maintenance")
	}
	before := p.display()
	for i := range r.Expired {
		e := &r.Expired[i]
		if err := m.takeID(p, &e.ID, r.TimeUs); err != nil {
			return err
		}
		x := p.Find(e.Order)
		if x == nil || !x.expires(r.TimeUs) || !says(m, e, event.Expired{ID: e.ID, Order: e.Order,
			Account: x.Account, Side: x.Side, Price: x.Price, Open: x.Remaining}) {
			return fmt.Errorf("order %d expires as %+v at %d us, and is %+v", e.Order, *e, r.TimeUs,
				x)
		}
		x.Says.Cancelled = trading.CancelledExpired
		m.takeOut(p, x, r.TimeUs)
	}
	m.countUpdate(p, &BookUpdate{Several: true}, before)
	return nil
}

// takeOut cancels an open order.
func (m *Exchange) takeOut(p *Pair, o *Order, timeUs int64) {
	p.Market.Cancel(o)
	m.close(o, trading.StatusCancelled, timeUs)
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

// takeID checks the id and time of an order, a cancel or a change: the id is unique, and the ids of
// a pair grow.
func (m *Exchange) takeID(p *Pair, id *uint64, timeUs int64) error {
	if m.deciding {
		last, _ := m.LastIDs()
		*id = last + 1
	}
	if m.usedIDs[*id] || *id <= p.lastOrder {
		return fmt.Errorf("id %d, after id %d of %s, or it is used twice", *id, p.lastOrder, p.Name)
	}
	m.usedIDs[*id], p.lastOrder = true, *id
	return p.takeTime(timeUs)
}

// LastIDs returns the highest ids of all pairs: of an order, a cancel or a change, and of a trade.
func (m *Exchange) LastIDs() (order, trade uint64) {
	for _, p := range m.Pairs {
		order, trade = max(order, p.lastOrder), max(trade, p.lastTrade)
	}
	return order, trade
}

// countUpdate adds a record that trades or that changes the displayed book: an amount, or an
// order's queue position. No other record counts.
func (m *Exchange) countUpdate(p *Pair, u *BookUpdate, before display) {
	m.note(p)
	after, same := p.display(), len(u.Trades) == 0
	for i, side := range []trading.Side{trading.Buy, trading.Sell} {
		same = same && slices.Equal(before.orders[i], after.orders[i])
		u.Changed = append(u.Changed, levelChanges(side, before.levels[i], after.levels[i])...)
	}
	if same {
		return
	}
	u.Seq, u.Sides = m.Seq, after.levels
	p.Updates = append(p.Updates, *u)
}

// settleTrade moves the money of one trade and checks its fees.
func (m *Exchange) settleTrade(p *Pair, o *event.Order, t *event.Trade) error {
	taker, maker := m.Accounts[o.Account-1], m.Accounts[t.MakerAccount-1]
	base, quote := ofAmount(t.Amount), valueOf(t.Price, t.Amount)
	takerGets, makerGets, buyer, seller := base, quote, taker, maker
	if o.Side == trading.Sell {
		takerGets, makerGets, buyer, seller = quote, base, maker, taker
	}
	if !m.isFee(p, taker, takerGets, &t.TakerFee, func(r Rates) money.Rate { return r.Taker }) ||
		!m.isFee(p, maker, makerGets, &t.MakerFee, func(r Rates) money.Rate { return r.Maker }) {
		return fmt.Errorf("trade %d: fees of %v and %v fit no rate of the accounts", t.ID,
			t.TakerFee, t.MakerFee)
	}
	seller.debit(p.base, base)
	buyer.credit(p.base, base)
	buyer.debit(p.quote, quote)
	seller.credit(p.quote, quote)
	buyerFee, sellerFee := t.TakerFee, t.MakerFee
	if o.Side == trading.Sell {
		buyerFee, sellerFee = t.MakerFee, t.TakerFee
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
		m.touched = append(m.touched, o.FeeAccount)
	}
	return nil
}

// isFee reports whether a fee fits the account's rate. A book reads the rate when it decides, and a
// change counts from its release on. So the rate before the newest one fits, too.
func (m *Exchange) isFee(p *Pair, a *Account, received *big.Int, fee *money.Balance,
	which func(Rates) money.Rate) bool {
	if m.deciding && m.feeAccount != nil {
		*fee = money.BalanceFromBits(halves(feeOn(received, which(a.Rates(p)))))
	}
	list := a.rates[p.Number]
	if len(list) < ratesInFlight {
		list = append([]Rates{p.Usual}, list...)
	}
	for _, r := range list[max(0, len(list)-ratesInFlight):] {
		if feeOn(received, which(r)).Cmp(Units(*fee)) == 0 {
			return true
		}
	}
	return false
}

// Rates returns the account's fees in a pair.
func (a *Account) Rates(p *Pair) Rates {
	list := append([]Rates{p.Usual}, a.rates[p.Number]...)
	return list[len(list)-1]
}

// ratesInFlight is the number of an account's newest rates that may count.
const ratesInFlight = 2
