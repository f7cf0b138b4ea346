package actors

// specialFaults are planted in orders with instructions, amends, settings and switches.
var specialFaults = []plantedFault{
	{"a fok order trades in part", "actors/book_special.go",
		"		if end := b.orders.Fillable(&t); end != matching.EndDone {\n",
		"		if end := b.orders.Fillable(&t); end != matching.EndDone && !FAULT {\n"},
	{"a fok order looks at one order only", "actors/book_special.go",
		"	if i.FOK {\n",
		"	if FAULT && i.FOK && i.SelfTrade == trading.SelfTradeNone {\n" +
			"		cut := false\n" +
			"		met.Fills, met.Rest, cut = b.orders.Match(t.Side, t.Limit, t.Amount, 1, " +
			"met.Fills)\n		if met.Rest == 0 {\n			return matching.EndDone\n" +
			"		} else if cut {\n			return matching.EndMaxFills\n		}\n" +
			"		return matching.EndNoMaker\n	}\n	if i.FOK {\n"},
	{"an ioc order rests", "actors/book_state.go",
		"return !i.Market && !i.IOC && !i.FOK }",
		"return !i.Market && (!i.IOC || FAULT) && !i.FOK }"},
	{"a self-trade mode is ignored", "actors/book_special.go",
		"	if i.SelfTrade != trading.SelfTradeNone || i.Quote != 0 {\n",
		"	if i.SelfTrade != trading.SelfTradeNone && !FAULT || i.Quote != 0 {\n"},
	{"a taker that is to cancel the oldest ends", "actors/book_special.go",
		"		SelfTrade: i.SelfTrade, MaxFills: b.limits.MaxFills}\n",
		"		SelfTrade: i.SelfTrade, MaxFills: b.limits.MaxFills}\n" +
			"	if FAULT && i.SelfTrade == trading.SelfTradeCancelOldest {\n" +
			"		t.SelfTrade = trading.SelfTradeCancelNewest\n	}\n"},
	{"a taker that is to cancel both goes on", "actors/book_special.go",
		"	if i.Quote != 0 {\n		t.Amount, t.Money",
		"	if FAULT && i.SelfTrade == trading.SelfTradeCancelBoth {\n" +
			"		t.SelfTrade = trading.SelfTradeCancelOldest\n	}\n" +
			"	if i.Quote != 0 {\n		t.Amount, t.Money"},
	{"an account's self-trade mode is ignored", "actors/wallet_special.go",
		"	if w.rare != nil && w.selfTrade != trading.SelfTradeNone {\n",
		"	if w.rare != nil && w.selfTrade != trading.SelfTradeNone && !FAULT {\n"},
	{"a restart forgets an account's self-trade mode", "actors/wallet_special.go",
		"	if mode := a.SelfTrade(); mode != trading.SelfTradeNone {\n",
		"	if mode := a.SelfTrade(); mode != trading.SelfTradeNone && !FAULT {\n"},
	{"an order's own self-trade mode gives way to the account's", "actors/wallet_special.go",
		"		if !c.special.SelfTradeGiven {\n",
		"		if !c.special.SelfTradeGiven || FAULT {\n"},
	{"an own order that a taker has taken out waits on", "actors/book_special.go",
		"		b.forget(p.Order.ID)\n",
		"		if !FAULT {\n			b.forget(p.Order.ID)\n		}\n"},
	{"a post-only order takes its place beyond the other side", "actors/book_special.go",
		"	if i.PostOnly && trigger.When == 0 {\n",
		"	if i.PostOnly && trigger.When == 0 && !FAULT {\n"},
	{"a post-only order slides when it may not", "actors/book_state.go",
		"	if !slides {\n",
		"	if !slides && !FAULT {\n"},
	{"a post-only order that slides goes a tick too far", "actors/book_state.go",
		"	price, ok = b.orders.Slide(side, price, b.pair.PriceTick)\n",
		"	price, ok = b.orders.Slide(side, price, b.pair.PriceTick)\n" +
			"	if FAULT && side == trading.Buy && price > b.pair.PriceTick {\n" +
			"		price -= b.pair.PriceTick\n	}\n"},
	{"an order that has expired enters its book", "actors/book_special.go",
		"	o, i := &r.Order, &r.Instructions\n	if due(i.ExpireUs, r.TimeUs) {\n" +
			"		cancelRest(r, trading.CancelledExpired)\n		return\n	}\n" +
			"	end := b.take(r)\n",
		"	o, i := &r.Order, &r.Instructions\n" +
			"	if due(i.ExpireUs, r.TimeUs) && !FAULT {\n" +
			"		cancelRest(r, trading.CancelledExpired)\n		return\n	}\n" +
			"	end := b.take(r)\n"},
	{"a stop that has expired waits", "actors/book_special.go",
		"	if due(i.ExpireUs, r.TimeUs) {\n" +
			"		cancelRest(r, trading.CancelledExpired)\n		return\n	}\n" +
			"	b.stops.Add(",
		"	if due(i.ExpireUs, r.TimeUs) && !FAULT {\n" +
			"		cancelRest(r, trading.CancelledExpired)\n		return\n	}\n" +
			"	b.stops.Add("},
	{"a command trades with an order whose time is up", "actors/book.go",
		"	if b.lastTimeUs >= b.expiryUs && b.mustWait(c) {\n",
		"	if b.lastTimeUs >= b.expiryUs && !FAULT && b.mustWait(c) {\n"},
	{"an order expires before its time", "actors/book_state.go",
		"		b.expiryUs = at\n",
		"		b.expiryUs = at - map[bool]int64{true: 100_000}[FAULT]\n"},
	{"no tick expires orders", "actors/ticker.go",
		"	k.wake()\n",
		"	if !FAULT {\n		k.wake()\n	}\n"},
	{"a restart forgets when orders expire", "actors/book.go",
		"	b.noteExpiry()\n	return b\n",
		"	if FAULT {\n		b.expiries = matching.Schedule{}\n	}\n" +
			"	b.noteExpiry()\n	return b\n"},
	{"orders expire and are triggered in maintenance", "actors/admission.go",
		"	return !a.heldBooks.Load() && ",
		"	return (!a.heldBooks.Load() || FAULT) && "},
	{"a restart loses the queue of triggered orders", "actors/book.go",
		"		b.stops.Add(stop)\n",
		"		stop.Queued = stop.Queued && !FAULT\n		b.stops.Add(stop)\n"},
	{"a trade at the far end of a record triggers nothing", "actors/book_state.go",
		"	b.stops.Trade(min(first, last), max(first, last), taker)\n",
		"	b.stops.Trade(min(first, last), map[bool]money.Price{false: max(first, last), " +
			"true: min(first, last)}[FAULT], taker)\n"},
	{"stops that wait for a fall come first behind a buy", "core/matching/stops.go",
		"	if taker == trading.Sell {\n",
		"	if (taker == trading.Sell) != FAULT {\n"},
	{"a triggered OCO stays in the book", "actors/book_stops.go",
		"		o = b.takeOut(o.ID)\n",
		"		if o, _ = b.orders.Get(o.ID); !FAULT {\n			o = b.takeOut(o.ID)\n" +
			"		}\n"},
	{"the other half of an OCO without a price rests", "actors/book_stops.go",
		"			i.IOC = true\n",
		"			i.IOC = !FAULT\n"},
	{"a stop's band goes by the last price", "actors/book_special.go",
		"		reference = trigger.Price\n	}\n	switch {\n	case trigger.When",
		"		reference = map[bool]money.Price{false: trigger.Price, true: " +
			"b.last}[FAULT]\n	}\n	switch {\n	case trigger.When"},
	{"a trigger that the last price has reached waits", "actors/book_special.go",
		"	case trigger.When != 0 && b.reached(trigger),",
		"	case trigger.When != 0 && b.reached(trigger) && !FAULT,"},
	{"an iceberg shows what it hides", "actors/book_special.go",
		"	if i.Display != 0 && i.Display < o.Remaining {\n",
		"	if i.Display != 0 && i.Display < o.Remaining && !FAULT {\n"},
	{"a sum is overspent", "actors/book_special.go",
		"i.Quote.Balance(), b.pair.AmountStep\n",
		"i.Quote.Balance(), b.pair.AmountStep\n		if FAULT {\n" +
			"			t.Money = t.Money.Add(t.Money)\n		}\n"},
	{"an order that spends a sum reserves nothing", "actors/wallet_special.go",
		"	if c.special != nil && c.special.Quote != 0 {\n",
		"	if c.special != nil && c.special.Quote != 0 && !FAULT {\n"},
	{"an amend keeps a place that it has lost", "actors/amend_rules.go",
		"x.amount <= x.was.Amount }",
		"(x.amount <= x.was.Amount || FAULT) }"},
	{"an amend reserves nothing", "actors/wallet_amend.go",
		"	currency, need := c.amend.need(order.Side, was, has, p)\n",
		"	currency, need := c.amend.need(order.Side, was, has, p)\n	if FAULT {\n" +
			"		need = money.Balance{}\n	}\n"},
	{"an amend's reserve is not given back", "actors/wallet.go",
		"	if !own.reserved.amount.IsZero() {\n",
		"	if !own.reserved.amount.IsZero() && (!FAULT || own.amends == 0) {\n"},
	{"an amend makes a post-only order take", "actors/book_amend.go",
		"	if x.is.PostOnly && !lasts {\n",
		"	if x.is.PostOnly && !lasts && !FAULT {\n"},
	{"an amend forgets the new end of an order", "actors/book_amend.go",
		"		x.is.ExpireUs = a.ExpireUs\n",
		"		if !FAULT {\n			x.is.ExpireUs = a.ExpireUs\n		}\n"},
	{"an amend trades in a halt", "actors/book_amend.go",
		"	if b.halted && !lasts {\n",
		"	if b.halted && !lasts && !FAULT {\n"},
	{"an amended trigger may be one that the last price has reached", "actors/book_amend.go",
		"		return a.Trigger != 0 && (x.stop.Queued",
		"		return !FAULT && a.Trigger != 0 && (x.stop.Queued"},
	{"a restart forgets a switch", "actors/wallet_special.go",
		"	if list := a.Switches(); len(list) > 0 {\n",
		"	if list := a.Switches(); len(list) > 0 && !FAULT {\n"},
	{"a switch fires without the grace behind a maintenance", "actors/switch_schedule.go",
		"	s.grace = grace{endUs: endUs, lengthUs: lengthUs}\n",
		"	if !FAULT {\n		s.grace = grace{endUs: endUs, lengthUs: lengthUs}\n	}\n"},
	{"a switch cancels what its filter leaves out", "actors/switch.go",
		"	w.sweep(c, ledger.OpenFilter{Pair: s.Pair, Side: s.Side}, s.Prefix)\n",
		"	if FAULT {\n		w.sweep(c, ledger.OpenFilter{}, s.Prefix)\n	} else {\n" +
			"		w.sweep(c, ledger.OpenFilter{Pair: s.Pair, Side: s.Side}, s.Prefix)\n" +
			"	}\n"},
	{"a switch ends without its cancels", "actors/switch.go",
		"	s := &w.switches[i]\n",
		"	if FAULT {\n		w.endSwitch(c)\n		return true\n	}\n" +
			"	s := &w.switches[i]\n"},
	{"an account's stops count no OCO", "actors/marks.go",
		"	if t.When != 0 || i.OCO != (trading.OCO{}) {\n",
		"	if t.When != 0 || i.OCO != (trading.OCO{}) && !FAULT {\n"},
	{"a book's stops are not limited", "actors/book_special.go",
		"	case (trigger.When != 0 || isOCO) && b",
		"	case (trigger.When != 0 || isOCO) && !FAULT && b"},
	{"a book's orders that expire are not limited", "actors/book_special.go",
		"	case i.ExpireUs != 0 && b.expiries",
		"	case i.ExpireUs != 0 && !FAULT && b.expiries"},
	{"an account's stops are not limited", "actors/wallet_state.go",
		"	case m&marksStop != 0 && int",
		"	case m&marksStop != 0 && !FAULT && int"},
	{"an order that waits has no place in its book", "actors/book_state.go",
		"	return b.orders.Len()+b.stops.Waiting() >= b",
		"	return b.orders.Len()+b.stops.Waiting()*map[bool]int{false: 1}[FAULT] >= b"},
}
