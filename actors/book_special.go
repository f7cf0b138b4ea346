package actors

import (
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/matching"
	"exchange/core/money"
	"exchange/core/trading"
)

// placeSpecial decides an order with instructions.
func (b *book) placeSpecial(c *Command) {
	if b.halted {
		c.refuse(event.RefusedHalted)
		return
	}
	i := &c.special.Instructions
	if !due(i.ExpireUs, c.timeUs) { // a due order trades nothing, so nothing refuses it
		if reason := b.refusal(c); reason != 0 {
			c.refuse(reason)
			return
		}
	}
	w, r := &c.order, c.begin(event.KindInstructed, b.pair.Number)
	r.Order = event.Order{ID: b.ids.order.Add(1), Account: c.account.ID, Key: c.keyNumber(),
		Nonce: w.nonce, Side: w.side, Price: w.price, Amount: w.amount, Remaining: w.amount,
		ClientID: w.clientID, Trades: r.Order.Trades[:0]}
	r.Instructions = *i
	if r.Trigger = c.special.Trigger; r.Trigger.When != 0 {
		r.Kind = event.KindStop
		b.addStop(r)
	} else {
		b.enter(r, entering{account: c.account, placedUs: c.timeUs})
	}
	c.outcome = Accepted
	c.encode()
}

// refusal returns why an open book refuses an order with instructions, 0 if it does not. A
// post-only order may get another price.
func (b *book) refusal(c *Command) uint8 {
	w, i, trigger := &c.order, &c.special.Instructions, c.special.Trigger
	fall := trading.Trigger{Price: i.OCO.Trigger, When: trading.Fall}
	reference, isOCO := b.last, i.OCO != trading.OCO{}
	if trigger.When != 0 {
		reference = trigger.Price
	}
	switch {
	case trigger.When != 0 && b.reached(trigger), isOCO && b.reached(fall):
		c.bound = b.last
		return event.RefusedWouldTrigger
	case !i.Derived && !b.inBand(c, w.price, reference),
		i.OCO.Price != 0 && !b.inBand(c, i.OCO.Price, i.OCO.Trigger):
		return event.RefusedPriceBand
	}
	if i.Derived {
		w.price = b.pair.WithinBand(w.side, w.price, reference)
	}
	if i.PostOnly && trigger.When == 0 {
		price, ok := b.postOnlyPrice(w.side, w.price, w.amount, i.Asked != 0)
		if !ok {
			return event.RefusedWouldTrade
		}
		w.price = price
	}
	switch {
	case (trigger.When != 0 || isOCO) && b.stopBook.Len() >= b.limits.Load().StopsPerBook:
		return event.RefusedStopLimit
	case i.ExpireUs != 0 && b.expirySchedule.Len() >= b.limits.Load().GTDPerBook:
		return event.RefusedGTDLimit
	case b.full() && (trigger.When != 0 || mayRest(i) && !b.crosses(w.side, w.price)):
		return event.RefusedBookLimit
	}
	return 0
}

// addStop queues the order of a record until its trigger.
func (b *book) addStop(r *event.Record) {
	o, i := &r.Order, &r.Instructions
	if due(i.ExpireUs, r.TimeUs) {
		cancelRest(r, trading.CancelledExpired)
		return
	}
	b.stopBook.Add(matching.Stop{Order: orderOf(r, r.TimeUs), Trigger: r.Trigger})
	b.keepExtra(o, i, entering{})
}

// entering describes how a record's order enters the book.
type entering struct {
	account   *directory.Account
	placedUs  int64
	triggered bool
	prevented bool // as in orderExtra, before it enters
}

// enter lets a record's order trade as far as its instructions allow, and puts the remainder into
// the book. The order comes with its open amount; a post-only order comes at a price at which it
// takes nothing.
func (b *book) enter(r *event.Record, x entering) {
	o, i := &r.Order, &r.Instructions
	if due(i.ExpireUs, r.TimeUs) {
		cancelRest(r, trading.CancelledExpired)
		return
	}
	end := b.match(r)
	if reason := cancelReason(i, end); reason != 0 {
		cancelRest(r, reason)
	}
	b.recordMatch(r)
	if r.Kind == event.KindInstructed {
		simplify(r)
	} else if r.Kind == event.KindAmended && !keepsMode(r, x.triggered) && !prevented(i) {
		i.SelfTrade = trading.SelfTradeNone
	}
	charge(b.dir, b.pair, x.account, o)
	if o.Rests() {
		b.rest(r, x)
	}
	if n := len(o.Trades); n > 0 {
		b.queueTriggers(o.Trades[0].Price, o.Trades[n-1].Price, o.Side)
	}
}

// match matches a record's order, and returns why it stopped taking. Its fills are in b.result.
func (b *book) match(r *event.Record) matching.End {
	o, i, met := &r.Order, &r.Instructions, &b.result
	*met = matching.Result{Fills: met.Fills[:0], Prevented: met.Prevented[:0], Rest: o.Remaining}
	if i.PostOnly {
		return matching.EndNoMaker
	}
	t := matching.Taker{Side: o.Side, Limit: o.Price, Amount: o.Remaining, Account: o.Account,
		SelfTrade: i.SelfTrade, MaxFills: b.limits.Load().MaxFills}
	if i.Quote != 0 {
		t.Amount, t.Money, t.Step = money.MaxAmount, i.Quote.Balance(), b.pair.AmountStep
	}
	if i.FOK {
		if end := b.orders.Fillable(&t); end != matching.EndDone {
			return end
		}
	}
	if i.SelfTrade != trading.SelfTradeNone || i.Quote != 0 {
		b.orders.MatchWith(&t, met)
		return met.End
	}
	cut := false
	met.Fills, met.Rest, cut = b.orders.Match(t.Side, t.Limit, t.Amount, t.MaxFills, met.Fills)
	switch {
	case cut:
		return matching.EndMaxFills
	case met.Rest == 0:
		return matching.EndDone
	}
	return matching.EndNoMaker
}

// cancelReason returns why the remainder of an order that stopped taking is cancelled, 0 if it is
// not.
func cancelReason(i *trading.Instructions, end matching.End) trading.Reason {
	switch {
	case end == matching.EndDone:
		return 0
	case end == matching.EndMaxFills:
		return trading.CancelledMaxFills
	case i.FOK:
		return trading.CancelledFOK
	case end == matching.EndSelfTrade:
		return trading.CancelledSelfTrade
	case !mayRest(i) || i.Quote != 0:
		return trading.CancelledIOC
	}
	return 0
}

// recordMatch writes a taker's fills into its record, and drops closed orders from the book's
// tables.
func (b *book) recordMatch(r *event.Record) {
	o, i, met := &r.Order, &r.Instructions, &b.result
	o.Remaining = met.Rest
	bought := money.Amount(0)
	for k := range met.Fills {
		f := &met.Fills[k]
		bought += f.Amount
		o.Trades = append(o.Trades, event.Trade{ID: b.ids.trade.Add(1), Maker: f.Maker,
			MakerAccount: f.MakerAccount, Price: f.Price, Amount: f.Amount,
			MakerRemaining: f.MakerRemaining})
	}
	if i.Quote != 0 { // it named no amount
		o.Amount, o.Remaining = bought, 0
	}
	for k := range met.Prevented {
		p := &met.Prevented[k]
		i.Prevented = append(i.Prevented, trading.Prevented{Before: uint32(p.Before),
			Order: p.Order.ID, Cancel: b.ids.order.Add(1), Price: p.Order.Price,
			Amount: p.Order.Remaining})
		b.forget(p.Order.ID)
	}
	b.forgetMakers(met.Fills)
}

// rest puts the remainder of an order into the book.
func (b *book) rest(r *event.Record, x entering) {
	o, i := &r.Order, &r.Instructions
	var iceberg matching.Iceberg
	if i.Display != 0 && i.Display < o.Remaining {
		iceberg = matching.Iceberg{Display: i.Display, Hidden: o.Remaining - i.Display}
	}
	b.orders.AddIceberg(orderOf(r, x.placedUs), iceberg)
	b.keepExtra(o, i, x)
}

// simplify makes an order plain if its instructions have no lasting effect: its self-trade mode met
// nothing, and is the account's or ends with the order.
func simplify(r *event.Record) {
	i, rests := r.Instructions, r.Order.Rests()
	if prevented(&i) {
		return
	}
	if rests && !keepsMode(r, false) {
		r.Instructions.SelfTrade = trading.SelfTradeNone
	}
	if !i.SelfTradeOwn || !rests {
		i.SelfTrade, i.SelfTradeOwn = trading.SelfTradeNone, false
	}
	if i.Cancelled == trading.CancelledMaxFills { // a plain order may end so, too
		i.Cancelled = 0
	}
	if i.IsZero() {
		r.Kind, r.Instructions = event.KindOrder, trading.Instructions{}
	}
}

// keepsMode reports whether an order keeps its self-trade mode while resting: its own mode, or the
// account's for its OCO half.
func keepsMode(r *event.Record, triggered bool) bool {
	i := &r.Instructions
	return i.SelfTradeOwn || r.Order.Rests() && i.OCO != trading.OCO{} && !triggered
}

// prevented reports whether an order's self-trade mode met an order of its account.
func prevented(i *trading.Instructions) bool {
	return len(i.Prevented) > 0 || i.Cancelled == trading.CancelledSelfTrade
}
