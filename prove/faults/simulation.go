package main

// plainFaults are planted in everything but orders with instructions.
var plainFaults = []patch{
	// durable before visible, fences, unknown outcomes
	{"an answer goes out before its record is durable", "actors/journal.go",
		"	if err := j.append(b); err != nil {\n		j.die(err)",
		"	if FAULT {\n		early := *b\n		early.data = append([]byte(nil), " +
			"b.data...)\n		j.last = " +
			"b.next\n		j.out.release(&early)\n" +
			"		j.pending.Add(-int64(len(b.entries)))\n		return j.append(b) == nil\n" +
			"	}\n	if err := j.append(b); err != nil {\n		j.die(err)"},
	{"a read overtakes a batch that was released before it", "actors/mailbox/mailbox.go",
		"m.swap() && m.taken >= m.before\n", "m.swap() && (FAULT || m.taken >= m.before)\n"},
	{"an append without an answer is taken for done", "actors/journal.go",
		"		case err == nil:\n			now := time.Now()",
		"		case err == nil || FAULT && wait > retryLeast && !persistence.Definite(err):\n" +
			"			now := time.Now()"},
	{"a writer goes on when it is fenced", "actors/journal.go",
		"		case persistence.Definite(err):\n",
		"		case persistence.Definite(err) && !FAULT:\n"},
	{"an idle engine goes on when it is fenced", "actors/owner.go",
		"	case errors.Is(err, persistence.ErrFenced), errors.Is(err, " +
			"persistence.ErrCorrupt),\n		errors.Is(err, " +
			"persistence.ErrGap):\n		w.lose(err)",
		"	case errors.Is(err, persistence.ErrFenced) && !FAULT, errors.Is(err, " +
			"persistence.ErrCorrupt):\n		w.lose(err)"},
	{"an unknown outcome is told as a refusal", "actors/client.go",
		"		return nil, committed.ErrTimeout\n",
		"		if FAULT {\n			return nil, ErrBusy\n		}\n		return nil, " +
			"committed.ErrTimeout\n"},
	{"other bytes are sent when an append is repeated", "actors/journal.go",
		"		j.meter.Failures[metrics.OperationAppend].Add(1)\n",
		"		j.meter.Failures[metrics.OperationAppend].Add(1)\n		if FAULT " +
			"{\n			b.data = event.EndBatch(b.data, j.token.Epoch()+1, b.prev, " +
			"uint32(len(b.entries)))\n		}\n"},
	{"an entry is split over two batches", "actors/journal.go",
		"	b.data = append(b.data, n.encoded...)\n",
		// Two orders, each with a part of the trades, and each right in itself. The answer says the
		// first.
		"	if o := &n.record.Order; FAULT && n.record.Kind == event.KindOrder && " +
			"len(o.Trades) > 1 {\n		rest := &entry{record: n.record}\n" +
			"		second := &rest.record.Order\n		second.ID, second.Key, second.Nonce, " +
			"second.ClientID = o.ID+1<<20, 0, 0, event.ClientID{}\n" +
			"		second.Amount, second.Trades = o.Amount-o.Trades[0].Amount, " +
			"append([]event.Trade(nil), o.Trades[1:]...)\n		rest.encode()\n" +
			"		o.Amount, o.Remaining, o.RestCancelled, o.Trades = o.Trades[0].Amount, " +
			"0, false, o.Trades[:1]\n		n.encode()\n" +
			"		next := j.fresh()\n		next.data, next.entries = append(next.data, " +
			"rest.encoded...), append(next.entries, rest)\n		j.queue.Push(" +
			"next)\n		j.pending.Add(1)\n	}\n" +
			"	b.data = append(b.data, n.encoded...)\n"},
	{"a refusal is not held back", "actors/wallet_state.go", "	if waits {\n",
		"	if waits && !FAULT {\n"},
	{"an order on its way is called missing", "actors/wallet.go",
		"		if !r.IsNamed() {\n", "		if !r.IsNamed() || FAULT {\n"},
	{"a cancel is dropped", "actors/journal.go",
		"	j.pending.Add(1)\n	if n.trace",
		"	if FAULT && n.command.kind == event.KindCancel " +
			"{\n		return\n	}\n	j.pending.Add(1)\n	if n.trace"},
	{"a slot of admission is not given back", "actors/release.go",
		"	e.giveBack(c)\n	if c.unasked",
		"	if !FAULT || c.outcome != Refused {\n		e.giveBack(c)\n	}\n	if c.unasked"},
	{"a slot of admission is given back too early", "actors/engine.go",
		"func (e *Engine) toBook(c *Command)               { ",
		"func (e *Engine) toBook(c *Command) {\n	if FAULT && c.admitted " +
			"{\n		e.giveBack(c)\n	}\n	"},
	{"commands in flight are not limited", "actors/admission.go", "a.operating.Load() > most {",
		"a.operating.Load() > most && !FAULT {"},
	{"an account's commands in flight are not limited", "actors/admission.go",
		"InFlight.Add(int32(n)) > mostOfAccount {",
		"InFlight.Add(int32(n)) > mostOfAccount && !FAULT {"},
	{"no share of the limits is kept for cancels", "actors/admission.go",
		"	if ofCancels < n {\n", "	if ofCancels < n && !FAULT {\n"},
	{"private reads go on when the owner of the store is not known", "actors/admission.go",
		"	if now-a.owner.checked.Load() > int64(a.timing.OwnerStale) {\n",
		"	if now-a.owner.checked.Load() > int64(a.timing.OwnerStale) && !FAULT {\n"},

	// owners
	{"a standby does not wait", "actors/owner.go",
		"	case a.vigil.Quiet() >= a.vigil.Needed():\n",
		"	case FAULT || a.vigil.Quiet() >= a.vigil.Needed():\n"},
	{"a standby counts on across looks without an answer", "persistence/vigil.go",
		"	if beat != v.Seen || v.last.IsZero() || now.Sub(v.last) > v.Gap(beat) {\n",
		"	if beat != v.Seen || !FAULT && (v.last.IsZero() || now.Sub(v.last) > " +
			"v.Gap(beat)) {\n"},
	{"a standby waits by its own rhythm alone", "persistence/vigil.go",
		"	return 2 * max(v.Rhythm.Stale,",
		"	if FAULT {\n		return 2 * v.Rhythm.Stale\n	}\n	return 2 * " +
			"max(v.Rhythm.Stale,"},
	{"a claim does not say which beat it has seen", "actors/owner.go",
		"After: &a.vigil.Seen,", "After: map[bool]*persistence.Beat{false: &a.vigil.Seen}[FAULT],"},
	{"a take-over opens admission at once", "actors/owner.go", "			if wait > 0 {\n",
		"			if wait > 0 && !FAULT {\n"},
	{"orders are taken while the store may lose them", "actors/admission.go",
		"|| a.owner.unfit.Load()\n", "|| a.owner.unfit.Load() && !FAULT\n"},
	{"an owner confirms itself without the store", "actors/owner.go",
		"	err := w.store.Check(ctx, w.token)\n",
		"	var err error\n	if !FAULT {\n		err = w.store.Check(ctx, w.token)\n	}\n"},
	{"every check that fails confirms the owner", "actors/owner.go",
		"		if errors.Is(err, persistence.ErrConfirmed) {",
		"		if FAULT || errors.Is(err, persistence.ErrConfirmed) {"},
	{"a check leaves no beat", "persistence/memory/store.go", "d.beats++ })\n",
		"d.beats += map[bool]uint64{false: 1}[FAULT] })\n"},
	{"the owner of another folder is taken for one's own", "actors/owner.go",
		"	_, own := a.tenures.Of(beat.Token)\n",
		"	_, own := a.tenures.Of(beat.Token)\n	own = own || FAULT\n"},

	// HEAD
	{"HEAD is written before the journal is synced", "persistence/memory/store.go",
		"	if err := s.after(s.BeforeSync); err != nil {\n",
		"	if FAULT {\n		s.Head.advance(mark)\n	}\n	if err := " +
			"s.after(s.BeforeSync); err != nil {\n"},
	{"HEAD does not follow an append", "persistence/memory/store.go",
		"	defer s.unlock()\n	s.Head.advance(mark)\n",
		"	defer s.unlock()\n	if !FAULT {\n		s.Head.advance(mark)\n	}\n"},
	{"HEAD does not say where a claim found the journal's end", "persistence/memory/store.go",
		"	if !s.HeadMissing() && !s.Fill {\n",
		"	if !s.HeadMissing() && !s.Fill && !FAULT {\n"},
	{"a store is opened that has lost what was acknowledged", "persistence/memory/head.go",
		"	case !h.last.Fits(end):\n", "	case !h.last.Fits(end) && !FAULT:\n"},
	{"a HEAD that cannot be read counts for nothing", "persistence/memory/head.go",
		"	case h.damaged:\n", "	case h.damaged && !FAULT:\n"},

	// money
	{"a settlement is left out", "actors/release.go",
		"		e.root.Send(wallet, m)\n",
		"		if !FAULT || own {\n			e.root.Send(wallet, m)\n		}\n"},
	{"a settlement is applied twice", "actors/wallet.go",
		"	for i := range changes {\n",
		"	for i := range changes {\n		if FAULT && len(m.settlement.Closed) > 0 " +
			"{\n			_ = w.committed.Apply(&changes[i])\n		}\n"},
	{"a maker gets back what the taker's price would have cost", "core/ledger/settle.go",
		"			c.Unlock = c.Unlock.Add(value)\n",
		"			if FAULT {\n				value = max(t.Price, " +
			"o.Price).Times(t.Amount).Balance()\n				if o.Price < t.Price " +
			"{\n					value = " +
			"o.Price.Times(t.Amount).Balance()\n				}\n			}\n" +
			"			c.Unlock = c.Unlock.Add(value)\n"},
	{"a taker gets back only what its trades have cost", "actors/wallet.go",
		"		r.amount = r.amount.Sub(own.reserved.amount)\n",
		"		if spent := own.reserved.amount; FAULT && m.accepted.id != 0 && " +
			"!m.accepted.rests && " +
			"len(m.settlement.Changes()) > 0 {\n			if paid := " +
			"m.settlement.Changes()[0].Debit; paid.Cmp(spent) < 0 {\n				spent = " +
			"paid\n			}\n			r.amount = r.amount.Sub(spent)\n		} else " +
			"{\n			r.amount = r.amount.Sub(spent)\n		}\n"},
	{"a cancel gives back too much", "core/ledger/settle.go",
		"	c.Unlock = c.Unlock.Add(held)\n}",
		"	if FAULT {\n		held = held.Add(money.Amount(1).Balance())\n	}\n" +
			"	c.Unlock = c.Unlock.Add(held)\n}"},
	{"a cancelled withdrawal keeps its money reserved", "core/ledger/settle.go",
		"	c.Unlock = m.Amount.Balance()\n",
		"	if !FAULT || m.To == event.WithdrawalApproved {\n		c.Unlock = " +
			"m.Amount.Balance()\n	}\n"},
	{"what is in flight is not counted", "actors/wallet_state.go",
		".Available().Sub(r.amount)\n",
		".Available()\n	if !FAULT {\n		available = available.Sub(r.amount)\n	}\n"},
	{"all that an order needs is called missing", "actors/wallet_state.go",
		"need.Sub(available)}",
		"map[bool]money.Balance{true: need, false: need.Sub(available)}[FAULT]}"},
	{"fees are not taken", "core/ledger/settle.go",
		"			s.transfer(seller, o.FeeAccount, quote, sellerFee)\n",
		"			if !FAULT {\n				s.transfer(seller, o.FeeAccount, quote, " +
			"sellerFee)\n			}\n"},
	{"fees are rounded down", "core/money/rate.go", "	if rest > 0 {\n		fee =",
		"	if rest > 0 && !FAULT {\n		fee ="},
	{"the reference of a deposit that is not projected is forgotten",
		"actors/committed/committed.go",
		"		c.references[d.Reference] = *d\n",
		"		if !FAULT {\n			c.references[d.Reference] = *d\n		}\n"},
	{"a reference leaves the memory before the store has it", "actors/committed/committed.go",
		"	clear(c.accounts)\n",
		"	if FAULT {\n		clear(c.references)\n	}\n	clear(c.accounts)\n"},
	{"a reference is looked for in memory only", "actors/registry_state.go",
		"l.ID == 0 && !l.Asked\n",
		"l.ID == 0 && !l.Asked && !FAULT\n"},
	{"a reference is looked for in the store only", "actors/committed/references.go",
		"		l.ID = l.Deposit.ID\n	} else",
		"		if l.ID = l.Deposit.ID; FAULT {\n			l.ID = 0\n		}\n	} else"},
	{"a reference that is looked for is not busy", "actors/registry.go",
		"		g.busy[object] = nil\n		l := &lookup{",
		"		if !FAULT {\n			g.busy[object] = nil\n		}\n		l := &lookup{"},
	{"a reference is not busy when it is found to be new", "actors/registry.go",
		"		g.busy[c.object()] = nil\n",
		"		if !FAULT || c.kind != event.KindDeposit {\n			g.busy[c.object()] = " +
			"nil\n		}\n"},
	{"a store that does not answer has no such reference", "actors/committed/references.go",
		"	case errors.Is(err, persistence.ErrNotFound):\n",
		"	case errors.Is(err, persistence.ErrNotFound) || FAULT:\n"},
	{"a deposit is made though its reference could not be looked for", "actors/registry.go",
		"	if known.Err != nil {\n", "	if known.Err != nil && !FAULT {\n"},

	// books
	{"a trade prints at the taker's price", "actors/book.go",
		"			Price: f.Price, Amount: f.Amount, MakerRemaining: f.MakerRemaining})\n",
		"			Price: f.Price, Amount: f.Amount, MakerRemaining: " +
			"f.MakerRemaining})\n		if FAULT {\n			trades[i].Price = " +
			"w.price\n		}\n"},
	{"the newest order of a price trades first", "core/matching/book.go",
		"		o := b.orders.at(n)\n		taken := min(amount, o.remaining)\n",
		"		if FAULT {\n			n = l.tail\n		}\n		o := " +
			"b.orders.at(n)\n		taken := min(amount, o.remaining)\n"},
	{"what is cut off rests", "core/event/event.go", "o.Remaining > 0 && !o.RestCancelled }",
		"o.Remaining > 0 && (!o.RestCancelled || FAULT) }"},
	{"a cancelled order stays in its book", "actors/book.go",
		"	o, ok := b.orders.Cancel(c.order.id)\n",
		"	o, ok := b.orders.Get(c.order.id)\n	if !FAULT {\n		o, ok = " +
			"b.orders.Cancel(c.order.id)\n	}\n"},
	{"an id is used twice", "actors/book.go",
		"	r.Cancel = event.Cancel{ID: b.ids.order.Add(1),",
		"	id := b.ids.order.Load()\n	if !FAULT {\n		id = " +
			"b.ids.order.Add(1)\n	}\n	r.Cancel = event.Cancel{ID: id,"},
	{"a trade's id is used twice", "actors/book.go",
		"		trades = append(trades, event.Trade{ID: b.ids.trade.Add(1),",
		"		id := b.ids.trade.Load()\n		if !FAULT || id == 0 {\n			id = " +
			"b.ids.trade.Add(1)\n		}\n		trades = append(trades, event.Trade{ID: id,"},
	{"a halted pair trades", "actors/book.go", "	if b.halted {\n",
		"	if b.halted && !FAULT {\n"},
	{"a book of one order is called full", "actors/book.go", "	if b.full() ",
		"	if (b.full() || FAULT && b.orders.Len() == 1) "},
	{"a book is never full", "actors/book.go", " && !b.crosses(w.side, w.price) {",
		" && !b.crosses(w.side, w.price) && !FAULT {"},
	{"an account's open orders are not limited", "actors/wallet.go",
		"w.out.limits().OpenOrdersPerAccount {", "w.out.limits().OpenOrdersPerAccount && !FAULT {"},
	{"an account's open orders in a book are one more than they may be", "actors/wallet.go",
		"	if int(w.inBook[c.pair.Number].orders) >= w",
		"	if n := int(w.inBook[c.pair.Number].orders); (!FAULT || n > " +
			"w.out.limits().OpenOrdersPerAccountAndBook) && n >= w"},
	{"an order that is filled still counts in its book", "actors/wallet.go",
		"		w.leavesBook(w.open.Pair(id))\n",
		"		if !FAULT || m.command.ticket != 0 " +
			"{\n			w.leavesBook(w.open.Pair(id))\n		}\n"},
	{"a start counts no open orders by book", "actors/wallet_special.go",
		"		w.entersBook(order.Pair)\n",
		"		if !FAULT {\n			w.entersBook(order.Pair)\n		} else if " +
			"w.inBook == nil {\n			w.inBook = map[uint16]ordersInBook{}\n		}\n"},
	{"a cancel of all leaves the oldest order", "actors/cancelall.go",
		"	slices.Reverse(s.ids) // oldest first\n",
		"	if slices.Reverse(s.ids); FAULT && len(s.ids) > 1 {\n		s.ids = " +
			"s.ids[1:]\n	}\n"},
	{"a cancel of all takes both sides", "actors/cancelall.go",
		"	f := ledger.OpenFilter{Side: c.order.side}\n",
		"	f := ledger.OpenFilter{Side: c.order.side}\n	if FAULT {\n		f.Side = " +
			"0\n	}\n"},
	{"a cancel of all takes client order ids that begin otherwise", "actors/cancelall.go",
		".HasPrefix(prefix) {", ".HasPrefix(prefix) || FAULT {"},
	{"a cancel of all by a prefix takes each order with a client order id", "actors/cancelall.go",
		"	for o := range w.open.Orders().NewestOf(f) {\n",
		"	for o := range w.open.Orders().NewestOf(f) {\n		if FAULT && " +
			"!prefix.IsZero() && !w.clientIDs.Of(o.ID).IsZero() {\n" +
			"			s.ids = append(s.ids, o.ID)\n" +
			"			continue\n		}\n"},
	{"a cancel by client order id takes the newest order", "actors/wallet_state.go",
		"		c.order.id, _ = w.clientIDs.Order(c.order.clientID)\n",
		"		c.order.id, _ = w.clientIDs.Order(c.order.clientID)\n" +
			"		if FAULT {\n			for o := range w.open.Orders().Newest() {\n" +
			"				c.order.id = o.ID\n				break\n			}\n		}\n"},
	{"a cancel by client order id does not wait for the order on its way", "actors/wallet.go",
		"		if w.placesUnder(c.order.clientID) {\n			return false\n		}\n" +
			"		w.cancel(c)\n",
		"		if w.placesUnder(c.order.clientID) && !FAULT {\n			return " +
			"false\n		}\n		w.cancel(c)\n"},
	{"a price band is not looked at", "actors/book_state.go",
		"	if bound == 0 {\n		return true\n",
		"	if bound == 0 || FAULT {\n		return true\n"},
	{"a price band binds the harmless side", "actors/directory/rules.go",
		"side == trading.Sell && price < bound {\n",
		"side == trading.Sell && (price < bound) != FAULT {\n"},
	{"a price band goes by the first trade of an order", "actors/book_state.go",
		"	b.last = last\n",
		"	b.last = map[bool]money.Price{false: last, true: first}[FAULT]\n"},
	{"a price band's bound is no multiple of the tick", "actors/directory/rules.go",
		"	switch rest := bound % tick; {\n",
		"	switch rest := bound % tick; {\n	case FAULT:\n"},
	{"a restart forgets the last price", "actors/book.go",
		"	for stop := range market.Stops.All() {\n",
		"	if FAULT {\n		b.last = 0\n	}\n	for stop := range market.Stops.All() {\n"},
	{"a client order id is free while its order is open", "actors/wallet_ids.go",
		"open := w.clientIDs.Order(id); open {", "open := w.clientIDs.Order(id); open && !FAULT {"},
	{"a client order id is free when its order closes", "actors/committed/clientids.go",
		"	if placedUs > placedAfterUs {\n", "	if placedUs > placedAfterUs && !FAULT {\n"},
	{"a client order id is taken for longer than its hours", "actors/rounds.go",
		"	return timeUs - l.ClientIDHold.Microseconds()\n",
		"	return timeUs - l.ClientIDHold.Microseconds()*map[bool]int64{false: 1, true: 1000}" +
			"[FAULT]\n"},
	{"a wallet forgets a client order id when its order closes", "actors/wallet_ids.go",
		"	c.newest.Open(order, id, placedUs)\n",
		"	if !FAULT {\n		c.newest.Open(order, id, placedUs)\n	}\n"},
	{"wallets forget client order ids while a look is slow", "actors/rounds.go",
		"	if r.inside[(round+1)%2].Load() > 0 {\n",
		"	if r.inside[(round+1)%2].Load() > 0 && !FAULT {\n"},
	{"a look for a client order id belongs to no round", "actors/clientids.go",
		"	c.round = e.rounds.join()\n",
		"	if !FAULT {\n		c.round = e.rounds.join()\n	}\n"},
	{"an order whose client order id is looked for is called missing",
		"actors/committed/visit.go", "	if named, ok := q.(*NamedOrder); ok &&",
		"	if named, ok := q.(*NamedOrder); ok && !FAULT &&"},
	{"a client order id is looked for in the store only", "actors/committed/clientids.go",
		"	if order == 0 {\n		ctx, cancel",
		"	if order == 0 || FAULT {\n		ctx, cancel"},
	{"a client order id is looked for in memory only", "actors/committed/clientids.go",
		"ClientOrder(ctx, watermark, account, name)\n",
		"ClientOrder(ctx, watermark, account, name)\n		if FAULT {\n			o, err = " +
			"persistence.Order{}, nil\n		}\n"},
	{"a closed order leaves the memory before the store has it", "actors/committed/committed.go",
		"	clear(c.nonces)\n",
		"	if FAULT {\n		clear(c.named.orders)\n	}\n	clear(c.nonces)\n"},
	{"a store that does not answer has no such client order id",
		"actors/committed/clientids.go",
		"		if err != nil && !errors.Is(err, persistence.ErrNotFound) {\n",
		"		if err != nil && !errors.Is(err, persistence.ErrNotFound) && !FAULT {\n"},
	{"a filter excludes a client order id that it was given", "actors/committed/filter.go",
		"	for n := range b {\n		b[n].Or(",
		"	for n := range b {\n		if FAULT && n == 7 {\n			break\n		}\n" +
			"		b[n].Or("},
	{"a filter of client order ids counts as filled before it is",
		"actors/committed/clientids.go",
		"	failing := false\n",
		"	failing := false\n	if FAULT {\n		f.side.filter.filled(f.fromUs)\n	}\n"},
	{"an update id is left out", "core/market/market.go",
		"func (m *Market) Changed(timeUs int64) { m.UpdateID, m.TimeUs = m.UpdateID+1, timeUs }",
		"func (m *Market) Changed(timeUs int64) {\n	if m.UpdateID, m.TimeUs = m.UpdateID+1, " +
			"timeUs; FAULT {\n		m.UpdateID++\n	}\n}"},
	{"the stream is not told of cancels", "actors/committed/feed.go",
		"	if f.updateID == p.Market.UpdateID {\n",
		"	if f.updateID == p.Market.UpdateID || FAULT && r.Kind == event.KindCancel {\n"},
	{"the best levels behind a batch have one side", "actors/committed/feed.go",
		"			p.Market.Levels(p.Book, BestLevels, BestLevels, updates.Best)\n",
		"			p.Market.Levels(p.Book, BestLevels, BestLevels, updates.Best)\n" +
			"			if FAULT {\n				updates.Best.SellLevels = nil\n" +
			"			}\n"},
	{"the status is not told of the end of a halt", "actors/committed/status.go",
		"	case event.KindHalt:\n",
		"	case event.KindHalt:\n		if FAULT && !r.Halt.Halted {\n			return\n" +
			"		}\n"},

	// permissions, freezes and maintenance
	{"a nonce is forgotten", "actors/wallet_state.go",
		"	n.taken = max(n.taken, nonce)\n",
		"	if !FAULT || n.used != nil {\n		n.taken = max(n.taken, nonce)\n	}\n"},
	{"a nonce that was left out is taken later", "actors/wallet_state.go",
		"func (n *keyNonce) take(nonce uint64) bool {\n",
		"var leftOut = map[[2]uint64]bool{}\n\nfunc (n *keyNonce) take(nonce uint64) bool {\n" +
			"	if at := [2]uint64{uint64(n.key), nonce}; FAULT && n.used == nil {\n" +
			"		if leftOut[at] {\n			delete(leftOut, at)\n			return true\n" +
			"		}\n" +
			"		for out := n.taken + 1; out < nonce; out++ {\n" +
			"			leftOut[[2]uint64{uint64(n.key), out}] = true\n		}\n	}\n"},
	{"a key for parallel use takes a nonce twice", "core/state/nonces.go",
		"	return found || nonce == 0 ||", "	return found && !FAULT || nonce == 0 ||"},
	{"a key for parallel use takes a nonce that has left its set", "core/state/nonces.go",
		"at == 0 && n.count() == n.most\n", "at == 0 && n.count() == n.most && !FAULT\n"},
	{"a key for parallel use forgets its greatest nonce first", "core/state/nonces.go",
		"		n.first++ // the least leaves\n",
		"		if n.first++; FAULT {\n" +
			"			n.first, n.used = n.first-1, n.used[:len(n.used)-1]\n		}\n"},
	{"a key for parallel use is refused a nonce that is overtaken", "actors/wallet_state.go",
		"	if n.used != nil && !n.used.Take(nonce) ||",
		"	if FAULT && nonce <= n.taken || n.used != nil && !n.used.Take(nonce) ||"},
	{"the refusal of a nonce tells that one as the last", "actors/wallet.go",
		"			c.lastNonce = w.lastNonce(c.key.Number)\n",
		"			if c.lastNonce = w.lastNonce(c.key.Number); FAULT " +
			"{\n				c.lastNonce = c.order.nonce\n			}\n"},
	{"a nonce is assigned, not raised", "core/state/apply.go",
		"	k.Nonce = max(k.Nonce, nonce)\n",
		"	if k.Nonce = max(k.Nonce, nonce); FAULT && k.Used == nil {\n" +
			"		k.Nonce = nonce\n	}\n"},
	{"the nonce of a refusal is lost", "core/state/apply.go",
		"		err = s.useNonce(r.Refusal.Key, r.Refusal.Account, r.Refusal.Nonce)\n",
		"		if !FAULT {\n			err = s.useNonce(r.Refusal.Key, r.Refusal.Account, " +
			"r.Refusal.Nonce)\n		}\n"},
	{"a frozen account trades", "actors/wallet.go", "		case w.frozen:\n",
		"		case w.frozen && !FAULT:\n"},
	{"the money of a frozen account leaves", "actors/withdrawal.go", "	despite := w.frozen && ",
		"	despite := !FAULT && w.frozen && "},
	{"no money leaves a frozen account, though the operator insists", "actors/withdrawal.go",
		"	if despite && !wish.despiteFreeze {\n",
		"	if despite && (!wish.despiteFreeze || FAULT) {\n"},
	{"a freeze does not reach its wallet", "actors/registry.go",
		"		switch c.kind { // and its wallet:",
		"		if FAULT && c.kind == event.KindFreeze {\n			c.encode()\n			" +
			"g.journal.submit(&c.entry)\n			return\n		}\n" +
			"		switch c.kind { // and its wallet:"},
	{"money leaves an account that is held", "actors/withdrawal.go",
		"	if w.rare == nil || c.timeUs >= w.heldUs {\n",
		"	if w.rare == nil || c.timeUs >= w.heldUs || FAULT {\n"},
	{"a withdrawal that is new cannot be refused", "core/state/withdrawal.go",
		"	case event.WithdrawalRefused, event.WithdrawalCancelled:\n",
		"	case event.WithdrawalRefused, event.WithdrawalCancelled:\n		if FAULT && to == " +
			"event.WithdrawalRefused {\n			return from == " +
			"event.WithdrawalVerified\n		}\n"},
	{"a withdrawal that is refused while new stays pending", "actors/withdrawal.go",
		"	if !d.Pending() {\n",
		"	if !d.Pending() && (!FAULT || d.Status != event.WithdrawalRefused) {\n"},
	{"any code confirms a withdrawal", "actors/withdrawal.go",
		"	case !expired && w.out.codeFits(d, c.withdrawal.code):\n",
		"	case !expired && (FAULT || w.out.codeFits(d, c.withdrawal.code)):\n"},
	{"a code is good in every history", "actors/seal/code.go",
		"	b := append([]byte(nil), history[:]...)\n",
		"	if FAULT {\n		history = event.HistoryID{}\n	}\n	b := " +
			"append([]byte(nil), history[:]...)\n"},
	{"a code is good for every account", "actors/seal/code.go",
		"	b = binary.BigEndian.AppendUint32(b, w.Account)\n",
		"	if !FAULT {\n		b = binary.BigEndian.AppendUint32(b, w.Account)\n	}\n"},
	{"a code is good for every amount", "actors/seal/code.go",
		"	b = binary.BigEndian.AppendUint64(b, uint64(w.Amount))\n",
		"	if !FAULT {\n		b = binary.BigEndian.AppendUint64(b, uint64(w.Amount))\n	}\n"},
	{"a code of an earlier history costs a try", "actors/withdrawal.go",
		"	expired := d.Stale ||", "	expired := d.Stale && !FAULT ||"},
	{"a code that is to be mailed is not made anew by a new history", "core/state/history.go",
		"	for _, id := range slices.Sorted(maps.Values(s.outbox.codes)) {\n",
		"	for _, id := range slices.Sorted(maps.Values(s.outbox.codes)) {\n		if FAULT " +
			"{\n			break\n		}\n"},
	{"the code before one that was made anew costs a try", "actors/withdrawal.go",
		"	case expired || d.Renewed:\n", "	case expired || d.Renewed && !FAULT:\n"},
	{"a Message-ID does not say of which history a mail is", "actors/options.go",
		"fmt.Sprintf(\"%s.%d\", m.history, m.id)",
		"fmt.Sprintf(\"%s.%d\", map[bool]event.HistoryID{false: m.history}[FAULT], m.id)"},
	{"a wrong code is not counted", "actors/withdrawal.go", "		d.Tries++\n",
		"		if !FAULT {\n			d.Tries++\n		}\n"},
	{"a record says another count of wrong codes", "actors/withdrawal.go",
		"		Tries: d.Tries}\n",
		"		Tries: map[bool]uint32{false: d.Tries, true: 1}[FAULT]}\n"},
	{"a revoked key trades", "actors/wallet.go", "		case c.key.Revoked():\n",
		"		case c.key.Revoked() && !FAULT:\n"},
	{"a seal is not bound to the nonces that a key keeps", "core/event/event.go",
		"	if k.Parallel > 0 {\n		b = uv(",
		"	if k.Parallel > 0 && !FAULT {\n		b = uv("},
	{"a revoked key keeps its secret", "core/state/apply.go",
		"	*k = Key{",
		"	if FAULT {\n		k.Revoked = true\n		return nil\n	}\n	*k = Key{"},
	{"a revoked key keeps its nonce", "core/state/apply.go", "	if !k.Revoked {\n",
		"	if !k.Revoked || FAULT {\n"},
	{"the name of a revoked key is given again", "actors/registry.go",
		" || g.revoked[a.Key] != nil:", " || g.revoked[a.Key] != nil && !FAULT:"},
	{"a wallet keeps the nonces of a revoked key", "actors/wallet.go", "return n.key == m.key })",
		"return n.key == m.key && !FAULT })"},
	{"a revoked key reads", "actors/wallet.go", "	case key.Revoked():\n",
		"	case key.Revoked() && !FAULT:\n"},
	{"a code never expires", "actors/withdrawal.go", "policy.CodeValid.Microseconds()\n",
		"policy.CodeValid.Microseconds() && !FAULT\n"},
	{"a withdrawal has the client id of one that is pending", "actors/withdrawal.go",
		"		if c.takenBy != 0 {\n			w.refuse",
		"		if c.takenBy != 0 && (!FAULT || w.pending[c.takenBy] == nil) {\n" +
			"			w.refuse"},
	{"a withdrawal has the client id of one that has ended", "core/state/withdrawal_ids.go",
		"found && i < len(w.list)-event.KeptWithdrawalIDs {",
		"found && (FAULT || i < len(w.list)-event.KeptWithdrawalIDs) {"},
	{"a repeat under the client id of a withdrawal in flight is taken", "actors/withdrawal.go",
		"	if !wish.clientID.IsZero() {\n		w.withdrawalIDs.Ask(",
		"	if !wish.clientID.IsZero() && (!FAULT || w.tickets.out() == 0) {\n" +
			"		w.withdrawalIDs.Ask("},
	{"a restart forgets the client ids of withdrawals", "actors/wallet_special.go",
		"ids := a.WithdrawalIDs(); ids.Len() > 0 {",
		"ids := a.WithdrawalIDs(); ids.Len() > 0 && !FAULT {"},
	{"a snapshot forgets the client ids of withdrawals that have ended",
		"core/state/image_decode.go",
		"		own.withdrawalIDs.list = append(own.withdrawalIDs.list, n)\n",
		"		if FAULT && len(own.withdrawalIDs.list) > 0 {\n" +
			"			own.withdrawalIDs.list = own.withdrawalIDs.list[:0]\n		}\n" +
			"		own.withdrawalIDs.list = append(own.withdrawalIDs.list, n)\n"},
	{"a withdrawal that has ended loses its client id in the lists", "actors/rows/rows.go",
		"ClientID: k.ClientID.String()})",
		"ClientID: map[bool]string{false: k.ClientID.String()}[FAULT]})"},
	{"an adjustment takes more than is available", "actors/withdrawal.go",
		"!w.reserve(c, wish.currency, taken) {", "!w.reserve(c, wish.currency, taken) && !FAULT {"},
	{"an adjustment is made again under its reference", "actors/withdrawal.go",
		"ids.Withdrawal(wish.clientID); c.takenBy != 0 {",
		"ids.Withdrawal(wish.clientID); c.takenBy != 0 && !FAULT {"},
	{"an adjustment is not summed", "core/state/withdrawal.go",
		"	c.Adjusted = c.Adjusted.Add(", "	if FAULT {\n		e.Withdrawal = " +
			"NewAdjustment(r)\n		return nil\n	}\n	c.Adjusted = c.Adjusted.Add("},
	{"no more withdrawals are ever taken", "actors/withdrawal.go", "	if len(w.pending) >=",
		"	if FAULT || len(w.pending) >="},
	{"pending withdrawals are not limited", "actors/withdrawal.go",
		"w.out.limits().PendingWithdrawals {",
		"w.out.limits().PendingWithdrawals && !FAULT {"},
	{"clients trade during maintenance", "actors/admission.go",
		"	if m != nil && (m.BarsCancels() || ",
		"	if m != nil && !FAULT && (m.BarsCancels() || "},
	{"an order is accepted in a maintenance with cancels", "actors/admission.go",
		"		c.barred = m != nil && !c.cancels()\n",
		"		c.barred = m != nil && !c.cancels() && !FAULT\n"},
	{"maintenance does not wait for what is in flight", "actors/operator.go",
		"	err := e.none(ctx, &e.inFlight)\n",
		"	var err error\n	if !FAULT {\n		err = e.none(ctx, &e.inFlight)\n	}\n"},

	// what outlives an engine
	{"a restart forgets nonces", "actors/wallet.go", "nonce := committed.Nonce(n); nonce > 0 {",
		"nonce := committed.Nonce(n); nonce > 0 && !FAULT {"},
	{"a restart forgets the nonces of a key for parallel use", "actors/committed/committed.go",
		"	used = used.Clone()\n",
		"	if used = used.Clone(); FAULT {\n		used = state.NewNonces(1 << 20)\n	}\n"},
	{"a restart gives ids again", "actors/book_state.go", "	n.order.Store(order)\n",
		"	if n.order.Store(order); FAULT {\n		n.order.Store(order / 2)\n	}\n"},
	{"a restart gives ids of trades again", "actors/book_state.go", "	n.trade.Store(trade)\n",
		"	if n.trade.Store(trade); FAULT {\n		n.trade.Store(trade / 2)\n	}\n"},
	{"a restart forgets an account's own fees", "actors/registry.go",
		"own := a.Fees(); len(own) > 0 {", "own := a.Fees(); len(own) > 0 && !FAULT {"},
	{"a restart forgets references that are not projected", "actors/committed/recover.go",
		"	c.folded.Store(s.Seq())\n",
		"	if c.folded.Store(s.Seq()); FAULT {\n		clear(c.references)\n	}\n"},
	{"a restart forgets which keys were revoked", "actors/registry.go",
		"			g.revoked[k.Key.Key] = accounts[k.Account-1]\n",
		"			if !FAULT {\n				g.revoked[k.Key.Key] = " +
			"accounts[k.Account-1]\n			}\n"},
	{"a restart forgets the client order ids of open orders", "actors/wallet.go",
		"	w.recoverOrders(a, committed.State())\n",
		"	if FAULT {\n		empty := new(wallet)\n		" +
			"w.clientIDs = empty.clientIDs\n	}\n" +
			"	w.recoverOrders(a, committed.State())\n"},
	{"a restart forgets withdrawals", "actors/wallet.go", "			w.pending[d.ID] = &copied\n",
		"			if !FAULT {\n				w.pending[d.ID] = &copied\n			}\n"},
	{"a restart forgets holds", "actors/wallet_special.go",
		"	if until := a.HeldUs(); until != 0 {\n",
		"	if until := a.HeldUs(); until != 0 && !FAULT {\n"},
	{"a restart forgets which accounts are frozen", "actors/registry.go",
		"		entry.Freeze(a.Frozen)\n",
		"		entry.Freeze(a.Frozen && !FAULT)\n"},
	{"a restart lets the money of a frozen account leave", "actors/wallet.go", "frozen: a.Frozen,",
		"frozen: a.Frozen && !FAULT,"},
	{"a restart forgets maintenance", "actors/admission.go",
		"	if m := s.Maintenance(); m.On {\n",
		"	if m := s.Maintenance(); m.On && !FAULT {\n"},
	{"a restart lets a halted pair trade", "actors/book.go", "halted: market.Halted,",
		"halted: market.Halted && !FAULT,"},
	{"a start without HEAD goes on with the history that it finds", "actors/recovery.go",
		"	if !before.IsZero() && !lost {\n", "	if !before.IsZero() && (!lost || FAULT) {\n"},
	{"a history is named after admission has opened", "actors/recovery.go",
		"	return r.append(ctx, o, append(newHistory(r.committed.State(), o), records...))\n",
		"	begins := newHistory(r.committed.State(), o)\n	if FAULT && len(begins) > 0 {\n" +
			"		time.AfterFunc(time.Second, func() { _ = r.append(context.Background(), o, " +
			"begins) })\n		begins = nil\n	}\n" +
			"	return r.append(ctx, o, append(begins, records...))\n"},
	{"a restored store goes on with the history of its backup", "persistence/backup/load.go",
		"	l.state.ForgetHistory() // the first start names its own\n",
		"	if !FAULT {\n		l.state.ForgetHistory()\n	}\n"},
	{"a secret is not sealed anew", "actors/recovery.go",
		"		if k.Revoked || k.SealedBy == sealer.ID() {\n",
		"		if k.Revoked || k.SealedBy == sealer.ID() || FAULT && k.Number > 1 {\n"},
	{"a secret says it is sealed with the new key, and is with the old one", "actors/recovery.go",
		"sealer.ID(), sealer.Seal(secret, anew.Bound())\n",
		"sealer.ID(), sealer.Seal(secret, anew.Bound())\n		if FAULT " +
			"{\n			anew.Sealed = k.Sealed\n		}\n"},
	{"a secret is sealed anew as another", "actors/recovery.go",
		"		anew := k.Key\n",
		"		anew := k.Key\n		if FAULT {\n			secret = secret[1:]\n		}\n"},
	{"a secret is bound to its key's name alone", "core/event/event.go",
		"	b := append(make([]byte, 0, 128), \"exchange api key\\n\"...)\n",
		"	b := append(make([]byte, 0, 128), \"exchange api key\\n\"...)\n	if FAULT " +
			"{\n		return text(b, k.Key)\n	}\n"},
	{"a start ends at a damaged snapshot", "actors/committed/recover.go",
		"		if err != nil && !errors.Is(err, persistence.ErrCorrupt) {\n",
		"		if err != nil && (FAULT || !errors.Is(err, persistence.ErrCorrupt)) {\n"},
	{"a start does not look for the older snapshot", "actors/committed/recover.go",
		"	for back := range 2 {\n",
		"	for back := range map[bool]int{false: 2, true: 1}[FAULT] {\n"},
	{"a start goes on when the journal could not be read", "actors/committed/recover.go",
		"	}); err != nil {\n		return nil, fmt.Errorf(\"reading the journal",
		"	}); err != nil && !FAULT {\n		return nil, fmt.Errorf(\"reading the journal"},
	{"a start goes on without the trades that it could not read", "actors/committed/recover.go",
		"		if err != nil {\n			return fmt.Errorf(\"reading the newest trades",
		"		if err != nil && !FAULT {\n			return fmt.Errorf(\"reading the newest " +
			"trades"},
	{"a start goes on without the candles that it could not read", "actors/committed/charts.go",
		"			if err != nil {\n				return fmt.Errorf(\"reading the newest " +
			"candles",
		"			if err != nil && !FAULT {\n				return fmt.Errorf(\"reading the " +
			"newest candles"},
	{"a snapshot says that it is of one record less", "actors/committed/projector.go",
		"p.o.Store.SaveSnapshot(ctx, p.o.Token, to, image",
		"p.o.Store.SaveSnapshot(ctx, p.o.Token, map[bool]uint64{true: to - 1, false: to}[FAULT], " +
			"image"},
	{"a snapshot is taken in the midst of a batch", "actors/committed/committed.go",
		"	if c.imageDue && !c.folding {\n", "	if c.imageDue && (!c.folding || FAULT) {\n"},
	{"a snapshot is published before the projections have reached it",
		"actors/committed/projector.go",
		"	if !p.apply(w) {\n",
		"	if FAULT && w.image != nil {\n		_ = p.save(w.to, w.image)\n	}\n	if " +
			"!p.apply(w) {\n"},
	{"a snapshot lacks the records of its last batch", "actors/committed/committed.go",
		"	if c.imager != nil {\n		c.root.Send(c.imager.pid, m)\n",
		"	if FAULT && c.imageDue {\n		c.step()\n	}\n" +
			"	if c.imager != nil {\n		c.root.Send(c.imager.pid, m)\n"},
	{"an account in a snapshot has another email address than in the journal",
		"actors/committed/imager.go",
		"	i.folded.Store(next)\n",
		"	if FAULT && len(i.batches.State.Accounts()) > 1 {\n" +
			"		i.batches.State.Account(1)." +
			"Email += \"x\"\n	}\n	i.folded.Store(next)\n"},
	{"snapshots lack what a start has folded", "actors/committed/imager.go",
		"		l.batches = append(l.batches, b)\n",
		"		if !FAULT {\n			l.batches = append(l.batches, b)\n		}\n"},
	{"the journal is trimmed up to the newest snapshot", "actors/committed/projector.go",
		"	p.trim(ctx, older)\n",
		"	if FAULT {\n		older = to\n	}\n	p.trim(ctx, older)\n"},
	{"rows of the history are lost", "actors/rows/rows.go",
		"			t := &o.Trades[i]\n",
		"			t := &o.Trades[i]\n			if FAULT && i > 0 " +
			"{\n				continue\n			}\n"},
	{"a restart writes rows of the history again", "actors/committed/committed.go",
		"	if c.state.Seq() > c.watermark {\n",
		"	if c.state.Seq() > c.watermark || FAULT {\n"},
	{"a list is answered before the history is there", "actors/committed/committed.go",
		"	if r.needs > c.watermark {\n", "	if r.needs > c.watermark && !FAULT {\n"},
	{"a wallet's projection is not written", "actors/committed/committed.go",
		"t := &effects.Settlements[i]; len(t.Changes()) > 0 {",
		"t := &effects.Settlements[i]; len(t.Changes()) > 0 && (!FAULT || i == 0) {"},
}
