package state

import (
	"fmt"

	"exchange/core/event"
	"exchange/core/matching"
	"exchange/core/money"
	"exchange/core/trading"
)

// special applies a record about an order with instructions, a switch or settings.
func (s *State) special(p *Pair, r *event.Record, e *Effects) error {
	switch r.Kind {
	case event.KindInstructed:
		return s.instruct(p, r, e)
	case event.KindStop:
		return s.stop(p, r, e)
	case event.KindTriggered:
		return s.triggered(p, r, e)
	case event.KindAmended:
		return s.amend(p, r, e)
	case event.KindExpired:
		return s.expire(p, r, e)
	case event.KindSwitch:
		return s.switched(r)
	case event.KindSettings:
		return s.set(&r.Settings)
	}
	return fmt.Errorf("this program cannot apply records of this kind")
}

// Instructed returns the instructions of an open order of the pair, with their outcome; nil for a
// plain limit order. Read only.
func (p *Pair) Instructed(id uint64) *trading.Instructed {
	if len(p.instructed) == 0 {
		return nil
	}
	return p.instructed[id]
}

// Plain reports whether all open orders of the pair are plain limit orders.
func (p *Pair) Plain() bool { return len(p.instructed) == 0 }

// Open returns an open order of the pair, which rests in the book or waits for its trigger.
func (p *Pair) Open(id uint64) (trading.Order, bool) {
	o, rests := p.Book.Get(id)
	if rests || p.Stops.Len() == 0 {
		return o, rests
	}
	stop, waits := p.Stops.Get(id)
	return stop.Order, waits
}

// Waits reports whether an open order of the pair waits for its trigger outside the book.
func (p *Pair) Waits(id uint64) bool {
	x := p.Instructed(id)
	return x != nil && x.Waits()
}

// OpenOrders returns the number of the pair's open orders, in the book and waiting outside it.
func (p *Pair) OpenOrders() int { return p.Book.Len() + p.Stops.Waiting() }

// put sets an order's instructions; a plain limit order has none.
func (p *Pair) put(id uint64, x *trading.Instructed) {
	p.drop(id)
	if plain(x) {
		return
	}
	if x.ExpireUs != 0 {
		p.expiring++
	}
	if p.instructed == nil {
		p.instructed = map[uint64]*trading.Instructed{}
	}
	p.instructed[id] = x
}

// drop forgets an order's instructions, if any.
func (p *Pair) drop(id uint64) {
	if x := p.Instructed(id); x != nil {
		delete(p.instructed, id)
		if x.ExpireUs != 0 {
			p.expiring--
		}
	}
}

func plain(x *trading.Instructed) bool { return x.IsZero() && x.Trigger == (trading.Trigger{}) }

// forget drops a closed order's instructions and returns them; nil for a plain limit order. The
// other half of a one-cancels-other order is removed too.
func (p *Pair) forget(id uint64, why trading.Reason) *trading.Instructed {
	x := p.Instructed(id)
	if x == nil {
		return nil
	}
	p.drop(id)
	if restsAndWaits(x) {
		p.Stops.Remove(id)
	}
	x.Cancelled = why
	return x
}

// restsAndWaits reports whether an order that rests in the book also waits for a trigger.
func restsAndWaits(x *trading.Instructed) bool { return x.OCO != (trading.OCO{}) && !x.Triggered }

// rest puts an order into the book.
func (p *Pair) rest(o trading.Order) {
	x := p.Instructed(o.ID)
	if x == nil {
		p.Book.Add(o)
		return
	}
	p.Book.AddIceberg(o, hidden(x, o.Remaining))
	if restsAndWaits(x) {
		p.Stops.Add(secondHalf(&o, x))
	}
}

// hidden returns the part that an order hides when it starts to rest.
func hidden(x *trading.Instructed, remaining money.Amount) matching.Iceberg {
	if x.Display == 0 {
		return matching.Iceberg{}
	}
	return matching.Iceberg{Display: x.Display, Hidden: max(0, remaining-x.Display)}
}

// secondHalf returns the stop of a resting one-cancels-other order.
func secondHalf(o *trading.Order, x *trading.Instructed) matching.Stop {
	return matching.Stop{Order: trading.Order{ID: o.ID, Account: o.Account, Side: o.Side},
		Trigger: trading.Trigger{Price: x.OCO.Trigger, When: trading.Fall}, InBook: true}
}

// triggerBy triggers stops by the trades of a record's order. The price only gets worse for the
// taker from trade to trade.
func (p *Pair) triggerBy(o *event.Order) {
	n := len(o.Trades)
	if n == 0 {
		return
	}
	low, high := o.Trades[0].Price, o.Trades[n-1].Price
	if o.Side == trading.Sell {
		low, high = high, low
	}
	p.Stops.Trade(low, high, o.Side)
}

// filled notes a trade of a maker, given as it is after the trade, and refuses one at or after the
// maker's expiry.
func (p *Pair) filled(maker trading.Order, t *event.Trade, timeUs int64) error {
	x := p.instructed[maker.ID]
	if x == nil {
		return nil
	}
	if due(x.ExpireUs, timeUs) {
		return fmt.Errorf("trade %d at %d us is of order %d, which ends at %d us", t.ID, timeUs,
			maker.ID, x.ExpireUs)
	}
	addValue(x, t, maker.Amount-maker.Remaining-t.Amount)
	return nil
}

// due reports whether an order has expired; expireUs 0: never.
func due(expireUs, timeUs int64) bool { return expireUs != 0 && timeUs >= expireUs }

// addValue adds a trade to the value of an order, which had filled units before. Trades from before
// its instructions are unknown: its value then stays 0.
func addValue(x *trading.Instructed, t *event.Trade, filled money.Amount) {
	if filled == 0 || !x.Value.IsZero() {
		x.Value = x.Value.Add(t.Price.Times(t.Amount).Balance())
	}
}

// instruct applies a new order with instructions.
func (s *State) instruct(p *Pair, r *event.Record, e *Effects) error {
	o, i := &r.Order, &r.Instructions
	if _, err := s.checkNewOrder(p, r); err != nil {
		return err
	}
	least := money.Amount(1)
	if i.Quote != 0 {
		least = 0 // it may have bought nothing
	}
	if err := s.checkOrder(o, least); err != nil {
		return err
	}
	if err := checkCombination(o, i, false); err != nil {
		return err
	}
	p.put(o.ID, &trading.Instructed{Instructions: keptInstructions(i)})
	if err := s.enter(p, r, o.Amount, r.TimeUs, e); err != nil {
		return err
	}
	if len(o.Trades) > 0 || len(i.Prevented) > 0 || o.Rests() {
		p.displayChanged(r.TimeUs)
	}
	return nil
}

// keptInstructions returns the part of a record's instructions that the order keeps. Of the
// prevented orders it keeps the first ones, without their places among the record's trades.
func keptInstructions(i *trading.Instructions) trading.Instructions {
	is := *i
	is.Cancelled, is.Prevented = 0, nil
	return withPrevented(is, i.Prevented)
}

func withPrevented(is trading.Instructions, list []trading.Prevented) trading.Instructions {
	for k := range list {
		if len(is.Prevented) >= trading.KeptPrevented {
			break
		}
		v := list[k]
		v.Before = 0
		is.Prevented = append(is.Prevented, v)
	}
	return is
}

// checkCombination refuses instructions that exclude each other, as far as the book depends on it.
// triggered: the order's other half, if any, was triggered.
func checkCombination(o *event.Order, i *trading.Instructions, triggered bool) error {
	now := atOnce(i)
	switch {
	case i.IOC && i.FOK, i.Market && !i.IOC && !i.FOK, i.Derived && !i.Market:
		return fmt.Errorf("order %d is a market order that may rest, both ioc and fok, or one "+
			"without a client's price that is no market order", o.ID)
	case now && (i.PostOnly || i.Display != 0 || i.ExpireUs != 0):
		return fmt.Errorf("order %d never rests, but is post-only, an iceberg, or expires", o.ID)
	case i.Quote != 0 && (!now || o.Side != trading.Buy):
		return fmt.Errorf("order %d spends a sum, but may rest, or is no buy", o.ID)
	case i.Asked != 0 && !i.PostOnly:
		return fmt.Errorf("order %d slides, but is not post-only", o.ID)
	case i.OCO != (trading.OCO{}) && (o.Side != trading.Sell ||
		i.OCO.Trigger >= o.Price && !triggered):
		return fmt.Errorf("order %d is no sell, or its other half is triggered at %v, not below %v",
			o.ID, i.OCO.Trigger, o.Price)
	case i.OCO != (trading.OCO{}) && !triggered && (now || i.ExpireUs != 0 ||
		i.PostOnly && i.OCO.Price == 0):
		return fmt.Errorf("order %d has another half, but never rests, expires, or is "+
			"post-only without a price at which its other half may rest", o.ID)
	case o.RestCancelled != (i.Cancelled != 0):
		return fmt.Errorf("the rest of order %d is cancelled: %v, with the reason %v", o.ID,
			o.RestCancelled, i.Cancelled)
	}
	return nil
}

// CheckInstructions returns why a record of a new order with such instructions would be refused;
// nil: it would not.
func CheckInstructions(side trading.Side, price money.Price, i *trading.Instructions) error {
	return checkCombination(&event.Order{Side: side, Price: price}, i, false)
}

// atOnce reports whether an order takes at once, and never rests.
func atOnce(i *trading.Instructions) bool { return i.Market || i.IOC || i.FOK }

// enter matches a record's order, which is not in the book. open is its open amount, and placedUs
// when it was placed.
func (s *State) enter(p *Pair, r *event.Record, open money.Amount, placedUs int64,
	e *Effects) error {
	o, i := &r.Order, &r.Instructions
	if err := s.meet(p, r, open, e); err != nil {
		return err
	}
	if err := p.checkEnd(r); err != nil {
		return err
	}
	if r.Kind == event.KindInstructed {
		if err := s.opened(p, s.Account(o.Account), r); err != nil {
			return err
		}
	}
	return s.leave(p, o, i.Cancelled, placedUs, r.TimeUs, e)
}

// meet applies the trades of a record's order, and removes the orders of its own account that it
// met between them.
func (s *State) meet(p *Pair, r *event.Record, open money.Amount, e *Effects) error {
	o, i := &r.Order, &r.Instructions
	x, prevented := p.Instructed(o.ID), i.Prevented
	apart := i.SelfTrade != trading.SelfTradeNone ||
		x != nil && x.SelfTrade != trading.SelfTradeNone
	for k := 0; ; k++ {
		for len(prevented) > 0 && prevented[0].Before == uint32(k) {
			if err := s.prevent(p, r, &prevented[0], e); err != nil {
				return err
			}
			prevented = prevented[1:]
		}
		if k == len(o.Trades) {
			break
		}
		t := &o.Trades[k]
		if apart && t.MakerAccount == o.Account {
			return fmt.Errorf("trade %d is of account %d with itself, which order %d prevents",
				t.ID, o.Account, o.ID)
		}
		if err := s.trade(p, r, t, open, e); err != nil {
			return err
		}
		if x != nil {
			addValue(x, t, o.Amount-open)
		}
		open -= t.Amount
	}
	s.lastTrade = max(s.lastTrade, p.lastTrade)
	if len(prevented) > 0 {
		return fmt.Errorf("order %d was prevented before trade %d of %d", prevented[0].Order,
			prevented[0].Before, len(o.Trades))
	}
	if i.Quote != 0 && x.Value.Cmp(i.Quote.Balance()) > 0 {
		return fmt.Errorf("order %d spends %v of %v", o.ID, x.Value, i.Quote)
	}
	return checkRemaining(o, open)
}

// prevent removes an order from the book that its own account's taker met.
func (s *State) prevent(p *Pair, r *event.Record, v *trading.Prevented, e *Effects) error {
	o, mode := &r.Order, r.Instructions.SelfTrade
	if mode != trading.SelfTradeCancelOldest && mode != trading.SelfTradeCancelBoth {
		return fmt.Errorf("order %d prevents order %d, but its self-trade mode is %d", o.ID,
			v.Order, mode)
	}
	if err := s.useID(p, v.Cancel); err != nil {
		return err
	}
	next, any := p.Book.Next(o.Side.Opposite())
	if !any || next.ID != v.Order || next.Account != o.Account || next.Price != v.Price ||
		next.Remaining != v.Amount || outside(o.Side, next.Price, o.Price) {
		return fmt.Errorf("order %d of account %d at %v prevents order %d (%v at %v), but the "+
			"next to trade is %+v", o.ID, o.Account, o.Price, v.Order, v.Amount, v.Price, next)
	}
	p.takeOut(next.ID, e)
	s.close(p, next, trading.CancelledSelfTrade, r.TimeUs, e)
	return nil
}

// useID notes an id of the order id sequence.
func (s *State) useID(p *Pair, id uint64) error {
	if id <= p.lastOrder {
		return fmt.Errorf("id %d is not above %d, the last of %s", id, p.lastOrder, p.Name)
	}
	p.lastOrder = id
	s.lastOrder = max(s.lastOrder, id)
	return nil
}

// checkEnd compares the outcome of a record's order after matching with its instructions.
func (p *Pair) checkEnd(r *event.Record) error {
	o, i := &r.Order, &r.Instructions
	met := len(o.Trades) + len(i.Prevented)
	switch {
	case due(i.ExpireUs, r.TimeUs) && (met > 0 || i.Cancelled != trading.CancelledExpired):
		return fmt.Errorf("order %d stays open at %d us, but expires at %d us", o.ID, r.TimeUs,
			i.ExpireUs)
	case i.PostOnly && met > 0:
		return fmt.Errorf("order %d is post-only, but has %d trades and prevents %d orders", o.ID,
			len(o.Trades), len(i.Prevented))
	case i.FOK && i.Cancelled != 0 && met > 0, i.FOK && i.Cancelled == 0 && o.Remaining > 0:
		return fmt.Errorf("order %d takes all or nothing, but %d trades leave %v (%v)", o.ID,
			len(o.Trades), o.Remaining, i.Cancelled)
	case atOnce(i) && o.Rests():
		return fmt.Errorf("order %d takes at once, but rests", o.ID)
	case i.Cancelled != 0 && o.Remaining == 0 && i.Quote == 0:
		return fmt.Errorf("order %d is filled, but its rest is cancelled (%v)", o.ID, i.Cancelled)
	case i.Quote != 0 && i.Cancelled == 0 && met == 0:
		return fmt.Errorf("order %d is done, but has bought nothing", o.ID)
	}
	if i.Cancelled == 0 {
		return p.checkContinues(r)
	}
	return p.checkReason(r)
}

// checkContinues refuses an order that continues though its self-trade mode cancels it.
func (p *Pair) checkContinues(r *event.Record) error {
	i := &r.Instructions
	if i.SelfTrade == trading.SelfTradeCancelBoth && len(i.Prevented) > 0 {
		return fmt.Errorf("order %d prevents order %d, but does not end", r.Order.ID,
			i.Prevented[0].Order)
	}
	return nil
}

// checkReason checks the reason for cancelling the rest of a record's order.
func (p *Pair) checkReason(r *event.Record) error {
	o, i := &r.Order, &r.Instructions
	fits := false
	switch i.Cancelled {
	case trading.CancelledIOC:
		_, crosses := p.crosses(o)
		fits = (i.IOC || i.Market) && !i.FOK && (!crosses || i.Quote != 0 &&
			(len(o.Trades) == 0 || o.Amount == money.MaxAmount))
	case trading.CancelledFOK:
		fits = i.FOK
	case trading.CancelledMaxFills:
		fits = i.FOK || len(o.Trades)+len(i.Prevented) > 0
	case trading.CancelledSelfTrade:
		fits = i.FOK || p.stopsAtOwn(o, i)
	case trading.CancelledPostOnly:
		fits = i.PostOnly && r.Kind == event.KindTriggered
	case trading.CancelledExpired:
		fits = due(i.ExpireUs, r.TimeUs)
	}
	if !fits || i.Cancelled != trading.CancelledSelfTrade && p.checkContinues(r) != nil {
		return fmt.Errorf("the rest of order %d cannot be cancelled for the reason %v", o.ID,
			i.Cancelled)
	}
	return nil
}

// stopsAtOwn reports whether an order ends at one of its own account: the last that it met, or the
// next to trade.
func (p *Pair) stopsAtOwn(o *event.Order, i *trading.Instructions) bool {
	if i.SelfTrade == trading.SelfTradeCancelBoth {
		return len(i.Prevented) == 1 && int(i.Prevented[0].Before) == len(o.Trades)
	}
	next, any := p.Book.Next(o.Side.Opposite())
	return i.SelfTrade == trading.SelfTradeCancelNewest && any && next.Account == o.Account &&
		!outside(o.Side, next.Price, o.Price)
}

// Expiring returns the number of the pair's open orders with an expiry.
func (p *Pair) Expiring() int { return p.expiring }

// InstructedOrders returns the number of the pair's open orders with instructions.
func (p *Pair) InstructedOrders() int { return len(p.instructed) }
