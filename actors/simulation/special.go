package simulation

import (
	"fmt"
	"slices"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// applyInstructed applies an order with instructions.
func (m *Model) applyInstructed(r *event.Record) error {
	o, p := &r.Order, m.Pairs[r.Pair-1]
	asked := o.Price
	if r.Instructions.Asked != 0 {
		asked = r.Instructions.Asked
	}
	x := newOrder(p, r)
	x.Price, x.Says = asked, r.Instructions
	x.Says.Prevented, x.Says.Cancelled = nil, 0
	oco, expires := x.Says.OCO, x.expires(r.TimeUs)
	band := p.rules.Band
	beyondBand := p.beyondBand(o.Side, asked, m.Seq) || band > 0 && oco.Price != 0 &&
		beyond(o.Side, oco.Price, oco.Trigger, band)
	if err := m.takePlace(r, beyondBand && !expires); err != nil {
		return err
	}
	if err := possible(x); err != nil {
		return err
	}
	switch {
	case expires:
	case x.Says.PostOnly && x.Says.Asked == 0 && p.Book.meets(x.Side, x.Price):
		return fmt.Errorf("order %d is post-only, and takes", o.ID)
	case m.reached(p, oco):
		return fmt.Errorf("the other half of order %d waits for %+v, which the last price %v has "+
			"reached", o.ID, oco, p.lastBefore(m.Seq))
	}
	before := p.Book.display()
	return m.decide(p, r, x, o.Amount, before)
}

// reached reports whether the last price before the record triggers the other half of an order.
func (m *Model) reached(p *Pair, oco trading.OCO) bool {
	last := p.lastBefore(m.Seq)
	return oco != (trading.OCO{}) && last != 0 &&
		reaches(trading.Trigger{Price: oco.Trigger, When: trading.Fall}, last)
}

// possible returns an error for instructions that do not go together.
func possible(x *Order) error {
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

// decide has an order enter its book with an amount, and compares what becomes of it with a record.
func (m *Model) decide(p *Pair, r *event.Record, x *Order, amount money.Amount,
	before display) error {
	o := &r.Order
	k, reason, err := m.outcome(p, x, amount, r.TimeUs)
	if err != nil {
		return err
	}
	if x.Says.Quote != 0 {
		x.Amount, k.rest = k.bought(), 0
	}
	if o.Price != x.Price || o.Amount != x.Amount || o.Remaining != k.rest ||
		r.Instructions.Cancelled != reason || o.RestCancelled != (reason != 0) {
		return fmt.Errorf("order %d is %v of %v at %v remaining, cancelled: %v, not %v of %v at "+
			"%v, %v, because %s", o.ID, o.Remaining, o.Amount, o.Price, r.Instructions.Cancelled,
			k.rest, x.Amount, x.Price, reason, k.end)
	}
	if err := m.takePrevented(p, r, k.prevented); err != nil {
		return err
	}
	for _, own := range r.Instructions.Prevented {
		own.Before = 0
		x.Says.Prevented = append(slices.Clone(x.Says.Prevented), own)
	}
	if r.Kind == event.KindInstructed {
		x.Says.Cancelled = reason
	} else {
		x.ends(reason)
	}
	return m.enter(p, r, x, k, before)
}

// outcome returns what an order takes when it enters its book at a time, and why its rest is
// cancelled; 0: it is not. It sets the price of one that slides.
func (m *Model) outcome(p *Pair, x *Order, amount money.Amount, timeUs int64) (k *taking,
	reason trading.Reason, err error) {
	i := &x.Says
	nothing := &taking{rest: amount, end: endNoMaker}
	if x.expires(timeUs) {
		return nothing, trading.CancelledExpired, nil
	}
	if due := p.due(timeUs, x.ID); due != nil {
		return nil, 0, fmt.Errorf("order %d may trade, and the time of order %d was up before",
			x.ID, due.ID)
	}
	if i.PostOnly {
		if reason = p.place(x); reason == 0 && i.IOC { // the other half of an OCO
			reason = trading.CancelledIOC
		}
		return nothing, reason, nil
	}
	t := taker{account: x.Account, side: x.Side, limit: x.Price, amount: amount,
		mode: i.SelfTrade, most: m.maxFills}
	if i.Quote != 0 {
		t.amount, t.money, t.step = money.MaxAmount, ofAmount(i.Quote), max(p.rules.Step, 1)
	}
	if i.FOK {
		trial := p.Book.clone().match(t)
		if trial.end != endFilled {
			nothing.end = trial.end
			if trial.end == endMaxFills {
				return nothing, trading.CancelledMaxFills, nil
			}
			return nothing, trading.CancelledFOK, nil
		}
	}
	took := p.Book.match(t)
	switch {
	case took.end == endFilled:
	case took.end == endMaxFills:
		reason = trading.CancelledMaxFills
	case took.end == endSelfTrade:
		reason = trading.CancelledSelfTrade
	case i.IOC || i.Market:
		reason = trading.CancelledIOC
	}
	return &took, reason, nil
}

// place gives a post-only order that slides its price. One that would trade is cancelled.
func (p *Pair) place(x *Order) trading.Reason {
	if x.Says.Asked != 0 {
		slid, ok := p.Book.slide(x.Side, x.Price, max(p.rules.Tick, 1))
		if ok && !p.belowLeast(slid, x.Remaining) {
			x.Price = slid
			return 0
		}
	}
	if p.Book.meets(x.Side, x.Price) {
		return trading.CancelledPostOnly
	}
	return 0
}

// belowLeast reports whether an order is worth less than one may be.
func (p *Pair) belowLeast(price money.Price, amount money.Amount) bool {
	return valueOf(price, amount).Cmp(Units(p.rules.LeastValue)) < 0
}

// takePrevented compares the own orders that a taker has taken out with those of its record, and
// takes the ids of their cancels.
func (m *Model) takePrevented(p *Pair, r *event.Record, want []trading.Prevented) error {
	got := r.Instructions.Prevented
	if len(got) != len(want) {
		return fmt.Errorf("order %d has prevented %+v, not %+v", r.Order.ID, got, want)
	}
	for i := range got {
		without := got[i]
		without.Cancel = 0
		if without != want[i] {
			return fmt.Errorf("order %d has prevented %+v, not %+v", r.Order.ID, got, want)
		}
		if err := m.takeID(p, got[i].Cancel); err != nil {
			return err
		}
	}
	return nil
}

// applyExpired ends orders whose time is up.
func (m *Model) applyExpired(r *event.Record) error {
	p := m.Pairs[r.Pair-1]
	if err := p.takeTime(r.TimeUs); err != nil {
		return err
	}
	if m.Maintenance.BarsCancels() {
		return fmt.Errorf("orders expire during maintenance")
	}
	before := p.Book.display()
	for _, e := range r.Expired {
		if err := m.takeID(p, e.ID); err != nil {
			return err
		}
		x := p.find(e.Order)
		if x == nil || x.Account != e.Account || x.Side != e.Side || x.Price != e.Price ||
			x.Remaining != e.Open || !x.expires(r.TimeUs) {
			return fmt.Errorf("order %d expires as %+v at %d us, and is %+v", e.Order, e, r.TimeUs,
				x)
		}
		x.Says.Cancelled = trading.CancelledExpired
		m.takeOut(p, x, r.TimeUs)
	}
	m.countUpdate(p, &BookUpdate{Several: true}, before)
	return nil
}

// A Moment is what a pair was after a record.
type Moment struct {
	seq   uint64
	Last  money.Price    // of the newest trade, 0: there was none
	best  [2]money.Price // of the buys and of the sells, 0: there are none
	Open  int            // orders, those that wait included
	Stops int            // orders that wait for a trigger, an OCO included
	GTD   int            // orders that expire
}

// note keeps what the pair is after the record.
func (m *Model) note(p *Pair) {
	n := Moment{seq: m.Seq, Last: p.lastBefore(m.Seq + 1)}
	for _, o := range p.open() {
		n.Open++
		if o.IsStop() {
			n.Stops++
		}
		if o.Says.ExpireUs != 0 {
			n.GTD++
		}
	}
	for i, side := range p.Book.sides {
		if len(side) > 0 {
			n.best[i] = side[0].Price
		}
	}
	p.moments = append(p.moments, n)
}

// Meets reports whether an order would trade at once.
func (n Moment) Meets(side trading.Side, limit money.Price) bool {
	best := n.best[side.Opposite()-1]
	return best != 0 && crosses(side, limit, best)
}

// At returns what the pair was after the newest of its records up to a sequence.
func (p *Pair) At(seq uint64) Moment {
	for _, n := range slices.Backward(p.moments) {
		if n.seq <= seq {
			return n
		}
	}
	return Moment{}
}
