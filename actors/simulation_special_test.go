package actors

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/prove/spec"
)

// Orders with instructions, amends, settings and switches, as admitted by a gateway.

// nowUs returns the stamp of a command made now.
func (s *sim) nowUs() int64 { return time.Now().Add(s.skew).UnixMicro() }

// drawExpiry returns an expiry: now, soon, or too late to happen.
func (s *sim) drawExpiry(r *rand.Rand) int64 {
	return s.nowUs() + pick(r, []time.Duration{0, time.Millisecond, 50 * time.Millisecond,
		300 * time.Millisecond, time.Second, 5 * time.Second, time.Hour}).Microseconds()
}

// onTick returns the next valid price of the pair at or below another.
func onTick(p *directory.Pair, price money.Price) money.Price {
	return max(price-price%p.PriceTick, p.PriceTick)
}

// onStep returns the next valid amount of the pair at or below another.
func onStep(p *directory.Pair, a money.Amount) money.Amount {
	return max(a-a%p.AmountStep, p.AmountStep)
}

// drawSpecial adds consistent instructions to a plain order.
func (s *sim) drawSpecial(r *rand.Rand, w *OrderRequest) {
	x := &SpecialRequest{}
	switch r.IntN(9) {
	case 0:
		x.IOC = true
	case 1:
		x.FOK = true
	case 2:
		x.Market, x.FOK = true, r.IntN(3) == 0
		x.IOC, x.Derived = !x.FOK, r.IntN(2) == 0
		if w.Side == trading.Buy && r.IntN(3) > 0 {
			w.Amount, x.Quote = 0, drawQuote(r)
		}
	case 3:
		x.PostOnly = true
	case 4:
		x.PostOnly, x.Asked = true, w.Price
	}
	rests := mayRest(&x.Instructions)
	if !rests && r.IntN(4) > 0 { // it is to meet the other side
		w.Price = onTick(w.Pair, map[trading.Side]money.Price{trading.Buy: 105e7,
			trading.Sell: 95e7}[w.Side])
		w.Amount = min(w.Amount, onStep(w.Pair, 2e8))
	}
	if rests && r.IntN(3) == 0 {
		x.ExpireUs = s.drawExpiry(r)
	}
	if rests && r.IntN(3) == 0 {
		if part := drawDisplay(r, w.Pair, w.Amount); part != 0 {
			x.Display = part
		}
	}
	switch other := onTick(w.Pair, priceOf(r, trading.Sell)); {
	case x.Quote != 0:
	case r.IntN(3) == 0:
		x.Trigger = trading.Trigger{Price: onTick(w.Pair, money.Price(97+r.Int64N(7))*1e7),
			When: pick(r, []trading.Direction{trading.Rise, trading.Fall})}
		if rests && r.IntN(3) == 0 {
			x.PostOnly = true
		}
	case rests && x.ExpireUs == 0 && w.Side == trading.Sell && w.Price > w.Pair.PriceTick &&
		r.IntN(2) == 0:
		x.OCO.Trigger = onTick(w.Pair, min(other, w.Price-w.Pair.PriceTick))
		if x.PostOnly || r.IntN(2) == 0 {
			x.OCO.Price = onTick(w.Pair,
				x.OCO.Trigger-x.OCO.Trigger/pick(r, []money.Price{20, 100}))
		}
	}
	if r.IntN(3) == 0 {
		x.SelfTradeGiven, x.SelfTrade = true, trading.SelfTrade(r.IntN(4))
	}
	if !x.IsZero() || x.Trigger.When != 0 || x.SelfTradeGiven {
		w.Special = x
	}
}

// drawQuote returns a sum that an order may spend.
func drawQuote(r *rand.Rand) money.Amount {
	switch r.IntN(8) {
	case 0:
		return money.Amount(1 + r.Int64N(1e8))
	case 1:
		return money.MaxAmount
	}
	return money.Amount(1+r.Int64N(200)) * 1e7
}

// drawDisplay returns the part of an order to display; 0: it cannot hide anything.
func drawDisplay(r *rand.Rand, p *directory.Pair, of money.Amount) money.Amount {
	part := onStep(p, of/money.Amount(2+r.Int64N(18)))
	if p.DisplayFault(part, of) != "" {
		return 0
	}
	return part
}

// openOrder returns mostly an open order of the account; zero: it has none.
func (s *sim) openOrder(r *rand.Rand, account uint32) (o spec.Order) {
	open := s.model.Accounts[account-1].OpenAt(s.model.Seq)
	var ids, special []uint64
	for id, one := range open {
		ids = append(ids, id)
		if one.IsInstructed() {
			special = append(special, id)
		}
	}
	if len(special) > 0 && r.IntN(2) == 0 {
		ids = special
	}
	slices.Sort(ids)
	return open[pick(r, ids)]
}

// drawAmend returns a change of an order, mostly an open one of the account.
func (s *sim) drawAmend(r *rand.Rand, l *life, account uint32) (a AmendRequest) {
	o := s.openOrder(r, account)
	if a.Order = o.ID; a.Order == 0 {
		a.Order = s.orderOf(r, account)
	}
	if r.IntN(4) == 0 {
		if a.ClientID = o.ClientID; a.ClientID.IsZero() {
			a.ClientID = s.nameOf(r, l, account)
		}
		a.Order = 0
	}
	pair, filled := l.engine.Pairs()[0], o.Amount-o.Remaining
	if o.ID != 0 {
		pair = l.engine.PairByNumber(o.Pair)
	}
	for a == (AmendRequest{Order: a.Order, ClientID: a.ClientID}) {
		if r.IntN(3) == 0 {
			a.Price = onTick(pair, priceOf(r, trading.Side(1+r.IntN(2))))
			if r.IntN(8) == 0 {
				a.Price = min(priceOf(r, trading.Side(1+r.IntN(2))), money.MaxPrice-1) + 1
			}
		}
		if r.IntN(2) == 0 {
			a.Amount = onStep(pair, pick(r, []money.Amount{amountOf(r), o.Amount, o.Amount / 2,
				filled, o.Amount/2 + filled, o.Amount + 1e7}))
		}
		if o.IsStop() && r.IntN(2) == 0 {
			a.Trigger = onTick(pair, priceOf(r, trading.Side(1+r.IntN(2))))
		}
		if r.IntN(8) == 0 {
			a.ExpireUs = s.drawExpiry(r)
		}
		if r.IntN(6) == 0 {
			a.Display = onStep(pair, o.Amount/money.Amount(2+r.Int64N(10)))
		}
		switch r.IntN(12) {
		case 0:
			a.PostOnly = true
		case 1:
			a.Slide, a.PostOnly = true, true
		}
	}
	return a
}

// isOrdered reports whether a record is of a client's order.
func (s *sim) isOrdered(q *played, seq uint64, r *event.Record) bool {
	o, w := &r.Order, &q.req
	s.orders = append(s.orders, o.ID)
	if open, _ := s.model.Open(o.ID); open != nil {
		s.restedBy[o.ID] = s.steps
	}
	if s.model.Accounts[o.Account-1].Uses(o.ClientID) > 1 {
		s.outcomes["client order ids, taken again"]++
	}
	x := w.Special
	if x == nil {
		x = new(SpecialRequest)
	}
	is, want := r.Instructions, x.Instructions
	used, own := is.SelfTrade, is.SelfTradeOwn
	is.Prevented, is.Cancelled, is.SelfTrade, want.SelfTrade = nil, 0, 0, 0
	is.SelfTradeOwn = false
	return o.Account == q.account && o.Nonce == q.nonce && r.Pair == w.Pair.Number &&
		o.Side == w.Side && o.ClientID == w.ClientID && r.Trigger == x.Trigger &&
		(s.isPriced(q, seq-1, o.Price) || want.Asked == w.Price) &&
		(o.Amount == w.Amount || want.Quote != 0) && reflect.DeepEqual(is, want) &&
		s.isMode(q, r, used) && s.isOwn(q, o.Rests(), own)
}

// isOwn reports whether an order rests with a self-trade mode of its own if it names another than
// the account's.
func (s *sim) isOwn(q *played, rests, own bool) bool {
	x, modes := q.req.Special, s.modes(q)
	names := x != nil && x.SelfTradeGiven
	if own {
		return names && (len(modes) > 1 || !modes[x.SelfTrade])
	}
	return !names || !rests || modes[x.SelfTrade]
}

// isMode reports whether the self-trade mode of a new order's record is the order's own, or else
// the account's. Only records of waiting orders contain a mode that has met nothing.
func (s *sim) isMode(q *played, r *event.Record, used trading.SelfTrade) bool {
	modes := s.modes(q)
	if q.req.Special != nil && q.req.Special.SelfTradeGiven {
		modes = map[trading.SelfTrade]bool{q.req.Special.SelfTrade: true}
	}
	s.apart(q, r, modes)
	return modes[used] || used == trading.SelfTradeNone && r.Kind != event.KindStop
}

// modes returns the possible settings of a command's account during its decision.
func (s *sim) modes(q *played) map[trading.SelfTrade]bool {
	return s.model.Accounts[q.account-1].ModesBetween(q.seq, s.model.Seq)
}

// apart checks that an order has traded with its own account only if a mode allows that.
func (s *sim) apart(q *played, r *event.Record, modes map[trading.SelfTrade]bool) {
	for i := range r.Order.Trades {
		if r.Order.Trades[i].MakerAccount == q.account && !modes[trading.SelfTradeNone] {
			s.violate("%s: it trades with its own account, and its modes are %v", q.what, modes)
		}
	}
}

// isAmended reports whether a record is of a client's amend.
func (s *sim) isAmended(q *played, r *event.Record) bool {
	o, a, is := &r.Order, q.amend, &r.Instructions
	if o.Account != q.account || o.Nonce != q.nonce || !s.isNamedOrder(q, o.ID) {
		return false
	}
	if reason := is.Cancelled; o.RestCancelled && len(o.Trades) == 0 &&
		(reason == trading.CancelledAmended || reason == trading.CancelledExpired) {
		s.outcomes["amends that end an order"]++
		was, _ := s.model.Closed(o.ID) // the model compares the old order
		return reason == trading.CancelledAmended && a.Amount != 0 ||
			reason == trading.CancelledExpired && (a.ExpireUs != 0 && a.ExpireUs <= r.TimeUs ||
				was.Says.ExpireUs != 0 && was.Says.ExpireUs <= r.TimeUs)
	}
	modes := s.modes(q)
	if is.SelfTradeOwn {
		modes = map[trading.SelfTrade]bool{is.SelfTrade: true}
	}
	s.apart(q, r, modes)
	if r.Trigger.When != 0 && !modes[is.SelfTrade] {
		return false // it waits with an earlier mode of its account
	}
	s.outcomes[map[bool]string{true: "amends that keep the place",
		false: "amends that lose the place"}[r.Amended.Kept]]++
	trigger := r.Trigger.Price
	if is.OCO != (trading.OCO{}) {
		trigger = is.OCO.Trigger
	}
	return (a.Price == 0 || o.Price == a.Price || is.Asked == a.Price) &&
		(a.Amount == 0 || o.Amount == a.Amount) && (a.Trigger == 0 || trigger == a.Trigger) &&
		(a.ExpireUs == 0 || is.ExpireUs == a.ExpireUs) &&
		(a.Display == 0 || is.Display == a.Display) && (!a.PostOnly || is.PostOnly)
}

// isSwitch reports whether a record arms the switch as requested, or disarms it.
func (q *played) isSwitch(x *event.Switch) bool {
	pair := uint16(0)
	if q.filter.Pair != nil {
		pair = q.filter.Pair.Number
	}
	return x.Account == q.account && x.Key == q.key.Number && x.Nonce == q.nonce && !x.Session &&
		x.Armed == (q.seconds > 0) && x.Seconds == q.seconds && (!x.Armed || x.Pair == pair &&
		x.Side == q.filter.Side && x.Prefix == q.filter.Prefix)
}

// isUnfoundedByMarket reports whether a refusal names a false state of the book. The book decides
// in the order of its records, so the model has its state there.
func (s *sim) isUnfoundedByMarket(q *played, seq uint64, c *Command) bool {
	reason := c.Record().Refusal.Reason
	if reason == event.RefusedRules {
		return q.amend == nil || len(c.Faults()) == 0
	}
	if q.amend != nil {
		return s.isAmendAllowed(q, seq, reason)
	}
	w := &q.req
	if w.Pair == nil {
		return false // it is no order
	}
	p, x := s.model.Pairs[w.Pair.Number-1], w.Special
	at := p.At(seq)
	switch reason {
	case event.RefusedHalted:
		return !p.IsHalted(seq)
	case event.RefusedWouldTrade:
		return x == nil || !x.PostOnly || x.Trigger.When != 0 || !at.Meets(w.Side, w.Price)
	case event.RefusedWouldTrigger:
		return x == nil || c.Bound() != at.Last || !reached(x.Trigger, at.Last) &&
			!reached(trading.Trigger{Price: x.OCO.Trigger, When: trading.Fall}, at.Last)
	case event.RefusedPriceBand:
		return s.isInBand(q, seq, c.Bound())
	case event.RefusedStopLimit, event.RefusedGTDLimit:
		return s.hasRoom(q, seq, reason)
	}
	return false
}

// reached reports whether a price reaches a trigger; false for the zero Trigger, or price.
func reached(t trading.Trigger, last money.Price) bool {
	return t.Price != 0 && last != 0 && (t.When == trading.Rise && last >= t.Price ||
		t.When == trading.Fall && last <= t.Price)
}

// isPriced reports whether a new order has its client's price, or, without one, the derived price
// clamped into the band.
func (s *sim) isPriced(q *played, seq uint64, price money.Price) bool {
	w, p := &q.req, s.model.Pairs[q.req.Pair.Number-1]
	if x := w.Special; x != nil && x.Derived {
		if reference := s.bandAround(q, seq); p.IsBeyondBand(w.Side, w.Price, reference) {
			s.outcomes["derived prices brought within the band"]++
			return p.IsBound(w.Side, price, reference)
		}
	}
	return price == w.Price
}

// bandAround returns the reference price of a new order's band.
func (s *sim) bandAround(q *played, seq uint64) money.Price {
	if x := q.req.Special; x != nil && x.Trigger.When != 0 {
		return x.Trigger.Price
	}
	return s.model.Pairs[q.req.Pair.Number-1].At(seq).Last
}

// isInBand reports whether a new order's prices were within the pair's band, or its client's bound
// is not that of the band.
func (s *sim) isInBand(q *played, seq uint64, bound money.Price) bool {
	w, p := &q.req, s.model.Pairs[q.req.Pair.Number-1]
	reference, x := s.bandAround(q, seq), w.Special
	if p.IsBeyondBand(w.Side, w.Price, reference) {
		return x != nil && x.Derived || !p.IsBound(w.Side, bound, reference)
	}
	return x == nil || x.OCO.Price == 0 || !p.IsBeyondBand(w.Side, x.OCO.Price, x.OCO.Trigger) ||
		!p.IsBound(w.Side, bound, x.OCO.Trigger)
}

// hasRoom reports whether neither an account nor its book had reached its limits of orders that
// wait, or that expire.
func (s *sim) hasRoom(q *played, seq uint64, reason uint8) bool {
	a, limits := s.model.Accounts[q.account-1], &s.options.Limits
	_, stops, gtd := inBook(a.OpenAt(seq), q.req.Pair.Number)
	at := s.model.Pairs[q.req.Pair.Number-1].At(seq)
	if !s.isKnown(q, a, seq) {
		return false
	}
	if reason == event.RefusedStopLimit {
		return stops < limits.StopsPerAccountAndBook && at.Stops < limits.StopsPerBook
	}
	return gtd < limits.GTDPerAccountAndBook && at.GTD < limits.GTDPerBook
}

// isAmendAllowed reports whether the reason of an amend's refusal does not hold, as far as the
// model has its order.
func (s *sim) isAmendAllowed(q *played, seq uint64, reason uint8) bool {
	o, open := s.model.Accounts[q.account-1].OpenAt(seq)[q.order]
	if !open {
		return false
	}
	p := s.model.Pairs[o.Pair-1]
	price := o.Price
	if q.amend.Price != 0 {
		price = q.amend.Price
	}
	switch reason {
	case event.RefusedHalted:
		return !p.IsHalted(seq)
	case event.RefusedWouldTrade:
		return !o.Says.PostOnly && !q.amend.PostOnly || !p.At(seq).Meets(o.Side, price)
	case event.RefusedWouldTrigger:
		return !o.IsStop() || q.amend.Trigger == 0 && q.amend.Price == 0 && q.amend.Amount == 0
	}
	return false
}

// breaksRules reports whether the price or the amount of an amend is invalid in its order's pair.
func (s *sim) breaksRules(q *played, seq uint64) bool {
	o, open := s.model.Accounts[q.account-1].OpenAt(seq)[q.order]
	if !open {
		return false
	}
	p, a := q.l.engine.PairByNumber(o.Pair), q.amend
	s.outcomes["amends, refused for funds"]++
	return a.Price != 0 && p.PriceFault(a.Price) != "" ||
		a.Amount != 0 && p.StepFault(a.Amount) != ""
}

// noteSpecial counts effects of records that no answer shows.
func (s *sim) noteSpecial(r *event.Record) {
	i := &r.Instructions
	for _, it := range []struct {
		is   bool
		what string
	}{
		{r.Kind == event.KindTriggered && r.Triggered.FromBook,
			"other halves of an OCO, triggered"},
		{r.Kind == event.KindTriggered && !r.Triggered.FromBook, "stops, triggered"},
		{r.Kind == event.KindTriggered && s.model.Pairs[r.Pair-1].Next() != 0,
			"triggered by the triggered"},
		{r.Kind == event.KindExpired, "orders, expired"},
		{r.Kind == event.KindSwitchCancel, "orders, cancelled by a switch"},
		{r.Kind == event.KindSwitch && !r.Switch.Armed && r.Switch.DueUs != 0, "switches, fired"},
		{r.Kind == event.KindSwitchCancel && r.Cancel.Reason == trading.CancelledDisconnect,
			"orders, cancelled for lost sessions"},
		{r.Kind == event.KindSwitch && r.Switch.Session && r.Switch.Armed && r.Switch.DueUs != 0,
			"last sessions of keys, lost"},
		{len(i.Prevented) > 0, "own orders, taken out by a taker"},
		{i.Asked != 0 && r.Order.Price != i.Asked, "orders, slid"},
		{i.Quote != 0 && len(r.Order.Trades) > 0, "sums, spent"},
		{i.FOK && i.Cancelled == trading.CancelledFOK, "fok orders, cancelled"},
		{i.FOK && i.Cancelled == 0 && len(r.Order.Trades) > 0, "fok orders, filled"},
		{i.IOC && i.Cancelled == trading.CancelledIOC, "ioc orders, cancelled"},
		{i.Cancelled == trading.CancelledSelfTrade, "takers, ended at an own order"},
		{i.Cancelled == trading.CancelledPostOnly, "post-only orders, cancelled when triggered"},
		{i.Cancelled == trading.CancelledExpired, "orders, expired before they entered"},
		{i.Display != 0 && r.Order.Rests(), "icebergs, resting"},
	} {
		if it.is {
			s.outcomes[it.what]++
		}
	}
}

// specialOutcomes are required of a long run.
var specialOutcomes = []string{"other halves of an OCO, triggered", "stops, triggered",
	"triggered by the triggered", "orders, expired", "orders, cancelled by a switch",
	"switches, fired", "orders, cancelled for lost sessions", "last sessions of keys, lost",
	"sessions, begun", "sessions, begun beside others", "sessions, left", "sessions, refused",
	"sessions, begun instead of others", "own orders, taken out by a taker", "orders, slid",
	"sums, spent", "commands of sockets, decided",
	"fok orders, cancelled", "fok orders, filled", "ioc orders, cancelled",
	"takers, ended at an own order", "post-only orders, cancelled when triggered",
	"orders, expired before they entered", "icebergs, resting", "amends that end an order",
	"amends that keep the place", "amends that lose the place", "settings, accepted",
	"switch, accepted", "amended, accepted", "stop, accepted", "order with instructions, accepted",
	"refused for would_trade", "refused for would_trigger", "refused for too_many_stops",
	"refused for too_many_gtd", "refused for rules", "amends, refused for funds"}
