package state

import (
	"cmp"
	"fmt"
	"slices"

	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/matching"
	"exchange/core/money"
	"exchange/core/trading"
)

// A told has what a decider knows of an open order with instructions.
type told struct {
	trading.Instructed
	pair     uint16
	clientID event.ClientID
}

// special returns a record of an order with instructions, or of what becomes of one; n chooses.
func (d *decider) special(r event.Record, n int) event.Record {
	switch n {
	case 0, 1, 2, 3:
		return d.instructed(r)
	case 4, 5:
		return d.stop(r)
	case 6, 7, 8:
		return d.amend(r)
	case 9:
		a := d.account()
		r.Kind, r.Settings = event.KindSettings, event.Settings{Account: a,
			SelfTrade: trading.SelfTrade(d.pick(4))}
		r.Settings.Key, r.Settings.Nonce = d.key(a)
		return r
	}
	return d.arm(r)
}

// due returns a record of what happens by itself, if something does and is chosen: an end, a
// triggered order, or a switch.
func (d *decider) due(r event.Record) (event.Record, bool) {
	if d.world.maintenance.BarsCancels() {
		return r, false
	}
	for _, p := range d.s.pairs {
		if expired := d.expired(p.Number); len(expired) > 0 {
			return d.expire(r, p.Number, expired), true
		}
	}
	for _, p := range d.s.pairs {
		if d.stops[p.Number-1].Queued() > 0 && !d.world.halted[p.Number] &&
			!d.world.maintenance.On && d.pick(3) > 0 {
			return d.trigger(r, p), true
		}
	}
	for _, w := range d.world.switches {
		if w.DueUs != 0 && w.DueUs <= d.timeUs && d.pick(3) > 0 {
			return d.fire(r, w), true
		}
	}
	return r, false
}

// expired returns the open orders of a pair whose time is up, in order.
func (d *decider) expired(pair uint16) (ids []uint64) {
	for id, t := range d.told {
		if t.pair == pair && t.ExpireUs != 0 && t.ExpireUs <= d.timeUs {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (d *decider) expire(r event.Record, pair uint16, ids []uint64) event.Record {
	r.Kind, r.Pair, r.Operator = event.KindExpired, pair, ""
	for _, id := range ids {
		o := d.takeOut(pair, id)
		d.forget(id, trading.CancelledExpired)
		d.ids++
		r.Expired = append(r.Expired, event.Expired{ID: d.ids, Order: id, Account: o.Account,
			Side: o.Side, Price: o.Price, Open: o.Remaining})
	}
	return r
}

// takeOut takes an open order out of the book, or of the stops.
func (d *decider) takeOut(pair uint16, id uint64) trading.Order {
	o, rested := d.books[pair-1].Cancel(id)
	if stop, waits := d.stops[pair-1].Remove(id); waits && !rested {
		o = stop.Order
	}
	return o
}

// forget ends an order that closes with the newest record.
func (d *decider) forget(id uint64, why trading.Reason) {
	if t := d.told[id]; t != nil {
		delete(d.told, id)
		t.Cancelled = why
		d.ended[id] = t.Pack()
	}
}

// price is mostly one of a few, and now and then at an edge of the numbers.
func (d *decider) price() money.Price {
	if d.pick(20) == 0 {
		return []money.Price{1, 2, money.MaxPrice - 1, money.MaxPrice}[d.pick(4)]
	}
	return money.Price(1+d.pick(8)) * 50_000_000
}

func (d *decider) amount() money.Amount {
	if d.pick(20) == 0 {
		return []money.Amount{1, 2, money.MaxAmount - 1, money.MaxAmount}[d.pick(4)]
	}
	return money.Amount(1+d.pick(20)) * 12_345_678
}

// has reports whether an account has as much available.
func (d *decider) has(account uint32, currency uint16, need money.Balance) bool {
	w := &d.s.Account(account).Wallet
	return w.Get(currency).Available().Cmp(need) >= 0
}

// draw returns an order of any account.
func (d *decider) draw(r event.Record, kind event.Kind) event.Record {
	a, p := d.account(), d.pair()
	r.Kind, r.Pair, r.Operator = kind, p.Number, ""
	amount := d.amount()
	r.Order = event.Order{Account: a, Side: trading.Side(1 + d.pick(2)), Price: d.price(),
		Amount: amount, Remaining: amount}
	r.Order.Key, r.Order.Nonce = d.key(a)
	return r
}

// accept gives an order its id, unless its pair or its account cannot take it.
func (d *decider) accept(r *event.Record) bool {
	o, p := &r.Order, d.s.Pair(r.Pair)
	currency, need := ledger.Need(o.Side, o.Price, o.Amount, p.Base, p.Quote)
	if quote := r.Instructions.Quote; quote != 0 {
		need = quote.Balance()
	}
	if d.world.halted[r.Pair] || d.world.maintenance.On || !d.has(o.Account, currency, need) {
		return false
	}
	d.ids++
	if o.ID = d.ids; d.pick(2) == 0 {
		o.ClientID, _ = event.NewClientID(fmt.Sprint("order-", o.ID))
	}
	return true
}

func (d *decider) instructed(r event.Record) event.Record {
	refusal := r
	r = d.draw(r, event.KindInstructed)
	o, i, book := &r.Order, &r.Instructions, d.books[r.Pair-1]
	if d.pick(2) == 0 {
		i.SelfTrade = trading.SelfTrade(d.pick(4))
	}
	switch d.pick(8) {
	case 0:
		i.IOC, i.Market = true, d.pick(2) == 0
	case 1:
		i.FOK = true
	case 2:
		o.Side, i.Market, i.IOC, i.Quote = trading.Buy, true, true, 1+d.amount()/2
		if d.pick(2) == 0 {
			i.IOC, i.FOK = false, true
		}
		o.Amount, o.Remaining = 0, money.MaxAmount
	case 3:
		if i.PostOnly = true; d.pick(2) == 0 {
			i.Asked = o.Price
		}
		slid, ok := book.Slide(o.Side, o.Price, 1)
		if book.Crosses(o.Side, o.Price) && (i.Asked == 0 || !ok) {
			return d.refusal(refusal)
		} else if i.Asked != 0 {
			o.Price = slid
		}
	case 4:
		i.Display = (o.Amount-1)/money.Amount(1+d.pick(20)) + 1
	case 5:
		o.Side, i.OCO.Trigger = trading.Sell, (o.Price-1)/money.Price(1+d.pick(3))
		if i.OCO.Trigger == 0 {
			return d.refusal(refusal)
		}
		if d.pick(2) == 0 {
			i.OCO.Price = d.price()
		}
	default:
		i.ExpireUs = d.timeUs + int64(d.pick(8))
	}
	if !d.accept(&r) {
		return d.refusal(refusal)
	}
	if d.enter(&r, &told{Instructed: trading.Instructed{Instructions: staying(i)}, pair: r.Pair,
		clientID: o.ClientID}, r.TimeUs); i.IsZero() {
		r.Kind = event.KindOrder
	}
	return r
}

func (d *decider) stop(r event.Record) event.Record {
	refusal := r
	r = d.draw(r, event.KindStop)
	o, i := &r.Order, &r.Instructions
	r.Trigger = trading.Trigger{Price: d.price(), When: trading.Rise + trading.Direction(d.pick(2))}
	i.SelfTrade = trading.SelfTrade(d.pick(4))
	switch d.pick(6) {
	case 0:
		i.IOC, i.Market = true, true
	case 1:
		i.FOK = true
	case 2:
		if i.PostOnly = true; d.pick(2) == 0 {
			i.Asked = o.Price
		}
	case 3:
		i.Display = (o.Amount-1)/money.Amount(1+d.pick(20)) + 1
	case 4:
		i.ExpireUs = d.timeUs + int64(d.pick(8))
	}
	if !d.accept(&r) {
		return d.refusal(refusal)
	}
	t := &told{Instructed: trading.Instructed{Instructions: *i, Trigger: r.Trigger}, pair: r.Pair,
		clientID: o.ClientID}
	d.told[o.ID] = t
	if i.ExpireUs != 0 && i.ExpireUs <= r.TimeUs {
		o.RestCancelled, i.Cancelled = true, trading.CancelledExpired
		d.forget(o.ID, i.Cancelled)
		return r
	}
	d.stops[r.Pair-1].Add(matching.Stop{Trigger: r.Trigger, Order: trading.Order{ID: o.ID,
		Account: o.Account, Side: o.Side, Price: o.Price, Amount: o.Amount, Remaining: o.Amount,
		TimeUs: r.TimeUs}})
	return r
}

// trigger returns the entry of a pair's first queued stop into the book.
func (d *decider) trigger(r event.Record, p *Pair) event.Record {
	book, stops := d.books[p.Number-1], d.stops[p.Number-1]
	head, _ := stops.Head()
	was, t := head.Order, d.told[head.Order.ID]
	stops.Remove(was.ID)
	if head.Rests {
		was, _ = book.Cancel(was.ID)
	}
	r.Kind, r.Pair, r.Operator = event.KindTriggered, p.Number, ""
	r.Triggered = event.Triggered{Was: event.Was{Price: was.Price, Open: was.Remaining},
		FromBook: head.Rests}
	r.Instructions = t.Instructions
	o, i := &r.Order, &r.Instructions
	i.Prevented = nil
	*o = event.Order{ID: was.ID, Account: was.Account, Side: was.Side, Price: was.Price,
		Amount: was.Amount, Remaining: was.Remaining, ClientID: t.clientID}
	if head.Rests {
		if o.Price = i.OCO.Price; o.Price == 0 {
			o.Price, i.IOC = max(1, i.OCO.Trigger*9/10), true
		}
	}
	t.Triggered, t.IOC = true, i.IOC
	if i.PostOnly && book.Crosses(o.Side, o.Price) {
		slid, ok := book.Slide(o.Side, o.Price, 1)
		if i.Asked == 0 || !ok {
			o.RestCancelled, i.Cancelled = true, trading.CancelledPostOnly
			d.forget(o.ID, i.Cancelled)
			return r
		}
		o.Price = slid
	}
	d.enter(&r, t, was.TimeUs)
	return r
}

// amend returns a change of any open order.
func (d *decider) amend(r event.Record) event.Record {
	a := d.s.Account(d.account())
	open := slices.Collect(a.Open.Newest())
	if len(open) == 0 || d.world.maintenance.On {
		return d.refusal(r)
	}
	which := open[d.pick(len(open))]
	book, stops := d.books[which.Pair-1], d.stops[which.Pair-1]
	stop, waits := stops.Get(which.ID)
	waits = waits && !stop.Rests
	was, rests := book.Get(which.ID)
	if !rests {
		was = stop.Order
	}
	t, had := d.told[which.ID], d.told[which.ID] != nil
	if !had {
		t = &told{pair: which.Pair, clientID: a.ClientIDs.Of(which.ID)}
	}
	refusal := r
	r.Kind, r.Pair, r.Operator = event.KindAmended, which.Pair, ""
	o, i := &r.Order, &r.Instructions
	*o = event.Order{ID: was.ID, Account: a.ID, Side: was.Side, Price: was.Price,
		Amount: was.Amount, Remaining: was.Remaining, ClientID: t.clientID}
	o.Key, o.Nonce = d.key(a.ID)
	*i = t.Instructions
	i.Prevented, i.SelfTrade = nil, trading.SelfTrade(d.pick(4))
	if waits {
		r.Trigger = stop.Trigger
	}
	r.Amended.Was = event.Was{Price: was.Price, Open: was.Remaining}
	half := i.OCO != (trading.OCO{}) && !t.Triggered
	d.change(&r, waits && !stop.Queued, half)
	filled := was.Amount - was.Remaining
	d.ids++
	r.Amended.ID = d.ids
	switch ends := i.ExpireUs != 0 && i.ExpireUs <= r.TimeUs; {
	case ends, o.Amount <= filled:
		o.Price, o.Amount, o.Remaining, o.RestCancelled = was.Price, was.Amount, was.Remaining, true
		if i.Cancelled = trading.CancelledAmended; ends {
			i.Cancelled = trading.CancelledExpired
		}
		d.takeOut(r.Pair, o.ID)
		d.forget(o.ID, i.Cancelled)
		return r
	}
	if !d.fits(&r, &was, waits) || (stop.Queued || d.world.halted[r.Pair]) && !waits &&
		!inPlace(o, &was) || half && i.OCO.Trigger >= o.Price {
		d.ids--
		return d.refusal(refusal)
	}
	d.changed(&r, t, &was, &stop, waits)
	return r
}

func inPlace(o *event.Order, was *trading.Order) bool {
	return o.Price == was.Price && o.Amount <= was.Amount
}

// change draws new values for an open order. trigger: its trigger may be another; half: its other
// half waits.
func (d *decider) change(r *event.Record, trigger, half bool) {
	o, i := &r.Order, &r.Instructions
	if d.pick(2) == 0 {
		o.Amount = d.amount()
	}
	if d.pick(3) == 0 {
		o.Price = d.price()
	}
	now := i.IOC || i.FOK || i.Market
	if trigger && d.pick(2) == 0 {
		r.Trigger.Price = d.price()
	}
	if i.Display != 0 || d.pick(8) == 0 && !now {
		i.Display = (o.Amount-1)/money.Amount(1+d.pick(20)) + 1
	}
	if (i.ExpireUs != 0 || d.pick(8) == 0) && !now && !half {
		i.ExpireUs = d.timeUs + int64(d.pick(8))
	}
	if d.pick(8) == 0 && !now && (!half || i.OCO.Price != 0) {
		i.PostOnly = true
	}
}

// fits reports whether the account has the money for a changed order.
func (d *decider) fits(r *event.Record, was *trading.Order, waits bool) bool {
	o, p := &r.Order, d.s.Pair(r.Pair)
	open := o.Amount - (was.Amount - was.Remaining)
	if r.Instructions.PostOnly && !waits && !inPlace(o, was) &&
		d.books[r.Pair-1].Crosses(o.Side, o.Price) {
		return false
	}
	currency, has := ledger.Need(was.Side, was.Price, was.Remaining, p.Base, p.Quote)
	_, need := ledger.Need(was.Side, o.Price, open, p.Base, p.Quote)
	return need.Cmp(has) <= 0 || d.has(o.Account, currency, need.Sub(has))
}

// changed lets a change happen that is accepted.
func (d *decider) changed(r *event.Record, t *told, was *trading.Order, stop *matching.Stop,
	waits bool) {
	o, book, stops := &r.Order, d.books[r.Pair-1], d.stops[r.Pair-1]
	prevented := t.Prevented
	t.Instructions = r.Instructions
	t.Prevented = prevented
	o.Remaining = o.Amount - (was.Amount - was.Remaining)
	switch {
	case waits && r.Trigger == stop.Trigger:
		t.Trigger = r.Trigger
		stops.Amend(o.ID, o.Price, o.Amount, o.Amount)
	case waits:
		t.Trigger = r.Trigger
		stops.Remove(o.ID)
		stop.Trigger = r.Trigger
		stop.Order.Price, stop.Order.Amount, stop.Order.Remaining = o.Price, o.Amount, o.Amount
		stops.Add(*stop)
	case inPlace(o, was):
		r.Amended.Kept = true
		book.Amend(o.ID, o.Amount, r.Instructions.Display)
		d.keep(o.ID, t)
	default:
		d.takeOut(r.Pair, o.ID)
		d.enter(r, t, was.TimeUs)
	}
}

// keep notes what an order says that stays open.
func (d *decider) keep(id uint64, t *told) {
	if delete(d.told, id); !t.IsZero() || t.Trigger.When != 0 {
		d.told[id] = t
	}
}

// enter lets the order of a record meet its book, of which all that remains is open.
func (d *decider) enter(r *event.Record, t *told, placedUs int64) {
	o, i, book := &r.Order, &r.Instructions, d.books[r.Pair-1]
	filled := o.Amount - o.Remaining
	if i.Quote != 0 {
		filled = 0
	}
	met := d.meet(r)
	if i.Quote != 0 {
		o.Amount, o.Remaining = money.MaxAmount-met.Rest, 0
	} else {
		o.Remaining = met.Rest
	}
	why := i.Cancelled
	switch {
	case why != 0, met.End == matching.EndDone:
	case met.End == matching.EndMaxFills:
		why = trading.CancelledMaxFills
	case i.FOK:
		why = trading.CancelledFOK
	case met.End == matching.EndSelfTrade:
		why = trading.CancelledSelfTrade
	case i.IOC || i.Market:
		why = trading.CancelledIOC
	}
	o.RestCancelled, i.Cancelled = why != 0, why
	d.fill(r, met, t, filled)
	d.keep(o.ID, t)
	if o.Rests() {
		rest := trading.Order{ID: o.ID, Account: o.Account, Side: o.Side, Price: o.Price,
			Amount: o.Amount, Remaining: o.Remaining, TimeUs: placedUs}
		var ice matching.Iceberg
		if i.Display != 0 && i.Display < o.Remaining {
			ice = matching.Iceberg{Display: i.Display, Hidden: o.Remaining - i.Display}
		}
		book.AddIceberg(rest, ice)
		if i.OCO != (trading.OCO{}) && !t.Triggered {
			d.stops[r.Pair-1].Add(matching.Stop{Rests: true,
				Order:   trading.Order{ID: o.ID, Account: o.Account, Side: o.Side},
				Trigger: trading.Trigger{Price: i.OCO.Trigger, When: trading.Fall}})
		}
	} else {
		d.forget(o.ID, why)
	}
	d.traded(r)
}

// meet matches the order of a record, unless it comes to its end before.
func (d *decider) meet(r *event.Record) (met matching.Result) {
	o, i, book := &r.Order, &r.Instructions, d.books[r.Pair-1]
	t := matching.Taker{Side: o.Side, Limit: o.Price, Amount: o.Remaining, Account: o.Account,
		SelfTrade: i.SelfTrade, Money: i.Quote.Balance(), Step: 1000, MaxFills: 1 + d.pick(5)}
	met.Rest = o.Remaining
	if i.ExpireUs != 0 && i.ExpireUs <= r.TimeUs {
		i.Cancelled = trading.CancelledExpired
		return met
	}
	if i.FOK {
		if met.End = book.Fillable(&t); met.End != matching.EndDone {
			return met
		}
	}
	book.MatchWith(&t, &met)
	return met
}

// fill writes what an order met into its record.
func (d *decider) fill(r *event.Record, met matching.Result, t *told, filled money.Amount) {
	o, i := &r.Order, &r.Instructions
	if len(met.Fills) > 0 && d.pick(2) == 0 {
		o.FeeAccount = 3
	}
	for _, f := range met.Fills {
		d.trades++
		tr := event.Trade{ID: d.trades, Maker: f.Maker, MakerAccount: f.MakerAccount,
			Price: f.Price, Amount: f.Amount, MakerRemaining: f.MakerRemaining}
		if o.FeeAccount != 0 {
			d.charge(r.Pair, o, &tr)
		}
		o.Trades = append(o.Trades, tr)
		value := f.Price.Times(f.Amount).Balance()
		if filled == 0 || !t.Value.IsZero() {
			t.Value = t.Value.Add(value)
		}
		filled += f.Amount
	}
	for _, p := range met.Prevented {
		d.ids++
		v := trading.Prevented{Before: uint32(p.Before), Order: p.Order.ID, Cancel: d.ids,
			Price: p.Order.Price, Amount: p.Order.Remaining}
		i.Prevented = append(i.Prevented, v)
		v.Before = 0
		t.Prevented = append(slices.Clip(t.Prevented), v)
		d.stops[r.Pair-1].Remove(v.Order)
		d.forget(v.Order, trading.CancelledSelfTrade)
	}
	d.makers(o)
}

// makers notes what trades did to makers that have instructions.
func (d *decider) makers(o *event.Order) {
	for k := range o.Trades {
		tr := &o.Trades[k]
		t := d.told[tr.Maker]
		if t == nil {
			continue
		}
		if before := d.filledBefore(t, tr); before == 0 || !t.Value.IsZero() {
			t.Value = t.Value.Add(tr.Price.Times(tr.Amount).Balance())
		}
		if tr.MakerRemaining == 0 {
			d.stops[t.pair-1].Remove(tr.Maker)
			d.forget(tr.Maker, 0)
		}
	}
}

// filledBefore returns how much of a maker was filled before a trade. The state's book is still as
// it was before the record; earlier trades of the record count, too.
func (d *decider) filledBefore(t *told, tr *event.Trade) money.Amount {
	was, _ := d.s.Pair(t.pair).Book.Get(tr.Maker)
	return was.Amount - tr.MakerRemaining - tr.Amount
}

// traded lets the trades of a record trigger stops.
func (d *decider) traded(r *event.Record) {
	if len(r.Order.Trades) == 0 {
		return
	}
	byPrice := func(a, b event.Trade) int { return cmp.Compare(a.Price, b.Price) }
	d.stops[r.Pair-1].Trade(slices.MinFunc(r.Order.Trades, byPrice).Price,
		slices.MaxFunc(r.Order.Trades, byPrice).Price, r.Order.Side)
}

// arm returns a client's wish for a switch, or the end of its sessions.
func (d *decider) arm(r event.Record) event.Record {
	a := d.account()
	key, nonce := d.key(a)
	if key == 0 {
		return d.refusal(r)
	}
	r.Kind, r.Operator = event.KindSwitch, ""
	w := &r.Switch
	*w = event.Switch{Account: a, Key: key, Nonce: nonce, Session: d.pick(2) == 0,
		Armed: d.pick(4) > 0}
	if !w.Armed {
		return r
	}
	w.Seconds, w.DueUs = 5+uint32(d.pick(3)), d.timeUs+int64(d.pick(6))
	if w.Session && d.pick(2) == 0 {
		w.DueUs = 0
	}
	if d.pick(3) == 0 {
		w.Pair = d.pair().Number
	}
	w.Side = trading.Side(d.pick(3))
	if d.pick(3) == 0 {
		w.Prefix, _ = event.NewClientID("order-")
	}
	return r
}

// fire returns a cancel by a switch that is due, or its end when it has no more to cancel.
func (d *decider) fire(r event.Record, w event.Switch) event.Record {
	r.Operator = ""
	a := d.s.Account(w.Account)
	for open := range a.Open.Newest() {
		if w.Pair != 0 && open.Pair != w.Pair || w.Side != 0 && open.Side != w.Side ||
			!a.ClientIDs.Of(open.ID).HasPrefix(w.Prefix) {
			continue
		}
		o := d.takeOut(open.Pair, open.ID)
		d.ids++
		r.Kind, r.Pair = event.KindSwept, open.Pair
		r.Cancel = event.Cancel{ID: d.ids, Order: o.ID, Account: a.ID, Key: w.Key, Side: o.Side,
			Price: o.Price, Remaining: o.Remaining, Reason: trading.CancelledSwitch}
		if w.Session {
			r.Cancel.Reason = trading.CancelledDisconnect
		}
		d.forget(o.ID, r.Cancel.Reason)
		return r
	}
	r.Kind, r.Switch = event.KindSwitch, event.Switch{Account: w.Account, Key: w.Key,
		Session: w.Session, DueUs: w.DueUs}
	return r
}
