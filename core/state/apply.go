package state

import (
	"fmt"
	"slices"

	"exchange/core/event"
	"exchange/core/matching"
	"exchange/core/money"
	"exchange/core/trading"
)

// Apply folds the next record, which has sequence Seq()+1, and writes its effects into e. After an
// error the state is unusable: the record does not fit, and may be applied in part.
func (s *State) Apply(r *event.Record, e *Effects) error {
	e.Settlements, e.Closed, e.Left, e.Withdrawal = nil, e.Closed[:0], e.Left[:0], nil
	if err := s.apply(r, e); err != nil {
		return fmt.Errorf("record %d (%v): %w", s.seq+1, r.Kind, err)
	}
	s.seq++
	s.timeUs = max(s.timeUs, r.TimeUs)
	return nil
}

func (s *State) apply(r *event.Record, e *Effects) error {
	switch r.Kind {
	case event.KindCurrency:
		return s.currency(&r.Currency)
	case event.KindPair:
		return s.pair(&r.NewPair)
	case event.KindAccount:
		return s.account(&r.Account)
	case event.KindKey:
		if err := s.mustBeOpen(r.Key.Account); err != nil {
			return err
		}
		return s.newKey(&r.Key)
	case event.KindKeyRevoked:
		err := s.revoke(r.KeyRevoked.Number)
		if err == nil && r.KeyRevoked.Lost {
			k := s.key(r.KeyRevoked.Number)
			s.mailLostKeys(r.TimeUs, s.accounts[k.Account-1])
		}
		return err
	case event.KindHistory:
		return s.newHistory(r)
	}
	// Most of the other kinds move money, use a nonce, or are events of an account.
	p := s.Pair(r.Pair)
	var err error
	switch r.Kind {
	case event.KindDeposit:
		err = s.deposit(&r.Deposit)
	case event.KindAdjusted:
		err = s.adjust(r, e)
	case event.KindFreeze:
		err = s.freeze(r.Freeze)
	case event.KindOrder:
		err = s.order(p, r, e)
	case event.KindCancel, event.KindSwitchCancel:
		err = s.cancel(p, r, e)
	case event.KindRefusal:
		err = s.useNonce(r.Refusal.Key, r.Refusal.Account, r.Refusal.Nonce)
	case event.KindWithdrawal:
		err = s.withdrawal(r)
	case event.KindWithdrawalStatus:
		err = s.withdrawalMoved(r, e)
	case event.KindCodeRefused:
		err = s.codeRefused(r)
	default:
		if known, err := s.operate(r); known {
			return err
		}
		err = s.special(p, r, e)
	}
	if err != nil {
		return err
	}
	return s.settle(p, r, e)
}

// settle applies a record's effects on wallets.
func (s *State) settle(p *Pair, r *event.Record, e *Effects) error {
	// Settle only records that passed their checks: sums of their money cannot overflow.
	var base, quote uint16
	if p != nil {
		base, quote = p.Base, p.Quote
	}
	e.Settlements = s.settler.Settle(r, base, quote)
	events := isEvent(r.Kind)
	for i := range e.Settlements {
		t := &e.Settlements[i]
		a := s.Account(t.Account)
		if a == nil {
			return fmt.Errorf("there is no account %d", t.Account)
		}
		if events {
			a.lastEvent = s.seq + 1
		}
		for j := range t.Changes() {
			if err := a.Wallet.Apply(&t.Changes()[j]); err != nil {
				return fmt.Errorf("account %s: %w", a.Name, err)
			}
		}
	}
	return nil
}

func (s *State) currency(c *event.Currency) error {
	if int(c.Number) != len(s.currencies)+1 ||
		slices.ContainsFunc(s.currencies, func(known Currency) bool {
			return known.Code == c.Code
		}) {
		return fmt.Errorf("currency %s exists already, or its number %d is not the next after %d",
			c.Code, c.Number, len(s.currencies))
	}
	s.currencies = append(s.currencies, Currency{Code: c.Code})
	return nil
}

func (s *State) account(a *event.Account) error {
	if int(a.ID) != len(s.accounts)+1 || s.names[a.Name] != 0 {
		return fmt.Errorf("account %q exists already, or its id %d is not the next after %d",
			a.Name, a.ID, len(s.accounts))
	}
	s.accounts = append(s.accounts, &Account{ID: a.ID, Name: a.Name, Email: a.Email})
	s.names[a.Name] = a.ID
	s.tradeCounts = append(s.tradeCounts, 0)
	return nil
}

func (s *State) pair(p *event.Pair) error {
	switch {
	case int(p.Number) != len(s.pairs)+1:
		return fmt.Errorf("pair %s has number %d, which is not the next after %d", p.Name, p.Number,
			len(s.pairs))
	case slices.ContainsFunc(s.pairs, func(known *Pair) bool { return known.Name == p.Name }):
		return fmt.Errorf("pair %s exists already", p.Name)
	case p.Base == 0 || p.Quote == 0 || p.Base == p.Quote ||
		int(max(p.Base, p.Quote)) > len(s.currencies):
		return fmt.Errorf("pair %s trades currency %d for %d: it needs two of the %d that exist",
			p.Name, p.Base, p.Quote, len(s.currencies))
	}
	s.pairs = append(s.pairs, &Pair{Number: p.Number, Name: p.Name, Base: p.Base, Quote: p.Quote,
		Book: matching.New(), Stops: matching.NewStops()})
	return nil
}

// newKey adds a key, or replaces the seal of a known key. Everything else of a known key must be
// unchanged.
func (s *State) newKey(k *event.Key) error {
	if known := s.key(k.Number); known != nil && !known.Revoked && known.SealedBy != k.SealedBy &&
		known.Account == k.Account && known.Key.Key == k.Key &&
		known.Permissions == k.Permissions && slices.Equal(known.Allow, k.Allow) &&
		known.NonceWindow == k.NonceWindow {
		known.SealedBy, known.Sealed = k.SealedBy, k.Sealed
		return nil
	}
	a := s.Account(k.Account)
	if a == nil || int(k.Number) != len(s.keys)+1 || s.keyNames[k.Key] != 0 {
		return fmt.Errorf(
			"key %q exists already, or its account %d does not, or its number %d is not the next "+
				"after %d", k.Key, k.Account, k.Number, len(s.keys))
	}
	made := &Key{Key: *k}
	if k.NonceWindow > 0 {
		made.Used = NewNonces(int(k.NonceWindow))
	}
	s.keys = append(s.keys, made)
	s.keyNames[k.Key] = k.Number
	a.Keys = append(a.Keys, k.Number)
	return nil
}

// revoke revokes a key and forgets all but its number, account and name.
func (s *State) revoke(number uint32) error {
	k := s.key(number)
	if k == nil || k.Revoked {
		return fmt.Errorf("key number %d does not exist, or was revoked already", number)
	}
	*k = Key{Key: event.Key{Number: k.Number, Account: k.Account, Key: k.Key.Key}, Revoked: true}
	return nil
}

// deposit does not keep the reference: the store's index holds it. Until it is stored, the
// committed side does.
func (s *State) deposit(d *event.Deposit) error {
	if err := s.mustBeOpen(d.Account); err != nil {
		return err
	}
	switch {
	case d.ID != s.depositCount+1:
		return fmt.Errorf("deposit %d is not the next after %d", d.ID, s.depositCount)
	case d.Reference == "":
		return fmt.Errorf("deposit %d has no reference", d.ID)
	case d.Currency == 0 || int(d.Currency) > len(s.currencies):
		return fmt.Errorf("there is no currency %d", d.Currency)
	case d.Amount < 1:
		return fmt.Errorf("deposit %d is of %d units: it must be of at least 1", d.ID,
			int64(d.Amount))
	}
	c := &s.currencies[d.Currency-1]
	total := c.Deposited.Add(d.Amount.Balance())
	if total.Cmp(money.MaxSupply) >= 0 {
		return fmt.Errorf("all deposits of %s would be %v: they must stay below %v", c.Code, total,
			money.MaxSupply)
	}
	c.Deposited = total
	s.depositCount = d.ID
	return nil
}

// begin checks the fields common to all records of a pair: account, nonce, id and time.
func (s *State) begin(p *Pair, timeUs int64, id uint64, account, key uint32,
	nonce uint64) (*Account, error) {
	a := s.Account(account)
	switch {
	case p == nil:
		return nil, fmt.Errorf("its pair does not exist")
	case a == nil:
		return nil, fmt.Errorf("there is no account %d", account)
	case id <= p.lastOrder:
		return nil, fmt.Errorf("id %d is not above %d, the last of %s", id, p.lastOrder, p.Name)
	case timeUs < p.timeUs:
		return nil, fmt.Errorf("its time %d us is before %d us, the last of %s", timeUs, p.timeUs,
			p.Name)
	}
	p.lastOrder, p.timeUs = id, timeUs
	s.lastOrder = max(s.lastOrder, id)
	return a, s.useNonce(key, account, nonce)
}

// useNonce raises a key's nonce. A key for parallel use keeps up to its maximum: records may come
// out of nonce order, and those of one command share a nonce. A revoked key has no nonce, but a
// command in flight at its revocation still names one.
func (s *State) useNonce(key, account uint32, nonce uint64) error {
	if key == 0 {
		return nil
	}
	k := s.key(key)
	if k == nil || k.Account != account {
		return fmt.Errorf("key number %d does not belong to account %d", key, account)
	}
	if !k.Revoked {
		k.use(nonce)
	}
	return nil
}

// use applies a nonce of a record, or of an image.
func (k *Key) use(nonce uint64) {
	k.Nonce = max(k.Nonce, nonce)
	if k.Used != nil {
		k.Used.Take(nonce)
	}
}

// checkNewOrder checks the fields common to all records of a new order, and returns its account.
func (s *State) checkNewOrder(p *Pair, r *event.Record) (*Account, error) {
	o := &r.Order
	a, err := s.begin(p, r.TimeUs, o.ID, o.Account, o.Key, o.Nonce)
	if err != nil {
		return nil, err
	}
	if p.Halted {
		return nil, fmt.Errorf("an order was accepted while trading on %s was halted", p.Name)
	}
	if by := a.ClientIDs.TakenBy(o.ClientID, r.TimeUs); by != 0 {
		return nil, fmt.Errorf("order %d of account %s has id %v", by, a.Name, o.ClientID)
	}
	return a, nil
}

func (s *State) order(p *Pair, r *event.Record, e *Effects) error {
	o := &r.Order
	taker, err := s.checkNewOrder(p, r)
	if err != nil {
		return err
	}
	if err := s.checkOrder(o, 1); err != nil {
		return err
	}
	if o.RestCancelled && (o.Remaining == 0 || len(o.Trades) == 0) {
		return fmt.Errorf(
			"the record says that the limit of fills cut off the rest, but %d trades leave %d",
			len(o.Trades), int64(o.Remaining))
	}
	open := o.Amount
	for i := range o.Trades {
		if err := s.trade(p, r, &o.Trades[i], open, e); err != nil {
			return err
		}
		open -= o.Trades[i].Amount
	}
	s.lastTrade = max(s.lastTrade, p.lastTrade)
	if err := checkRemaining(o, open); err != nil {
		return err
	}
	why := trading.Reason(0)
	if o.RestCancelled {
		why = trading.CancelledMaxFills
	}
	if err := s.opened(p, taker, r); err != nil {
		return err
	}
	if err := s.leave(p, o, why, r.TimeUs, r.TimeUs, e); err != nil {
		return err
	}
	p.displayChanged(r.TimeUs)
	return nil
}

// trade applies one trade of a record's order, which had open units before it.
func (s *State) trade(p *Pair, r *event.Record, t *event.Trade, open money.Amount,
	e *Effects) error {
	o := &r.Order
	if t.ID <= p.lastTrade || t.Amount > open {
		return fmt.Errorf("trade %d of %d units must be above trade %d, and %v is open", t.ID,
			int64(t.Amount), p.lastTrade, open)
	}
	if outside(o.Side, t.Price, o.Price) {
		return fmt.Errorf("trade %d at %d units is beyond the order's limit price of %v", t.ID,
			int64(t.Price), o.Price)
	}
	p.lastTrade = t.ID
	maker, err := p.Book.Fill(t.Maker, t.Price, t.Amount)
	if err != nil {
		return err
	}
	if maker.Account != t.MakerAccount || maker.Remaining != t.MakerRemaining ||
		maker.Side == o.Side {
		return fmt.Errorf("trade %d is of order %d, but the book has this order as %+v", t.ID,
			t.Maker, maker)
	}
	if err := checkFees(o, t); err != nil {
		return err
	}
	if len(p.instructed) > 0 {
		if err := p.filled(maker, t, r.TimeUs); err != nil {
			return err
		}
	}
	p.Market.Trade(r.TimeUs, t.Price, t.Amount)
	s.countTrade(o.Account, t.MakerAccount)
	if maker.Remaining == 0 {
		s.close(p, maker, 0, r.TimeUs, e)
	}
	return nil
}

// checkRemaining compares an order's open amount after the trades with its record.
func checkRemaining(o *event.Order, open money.Amount) error {
	if open != o.Remaining {
		return fmt.Errorf("%v remains after the trades, but the record says %d units", open,
			int64(o.Remaining))
	}
	return nil
}

// opened adds a new order that rests or waits to its account's open orders, and the client order id
// of any new order.
func (s *State) opened(p *Pair, a *Account, r *event.Record) error {
	o := &r.Order
	a.ClientIDs.Open(o.ID, o.ClientID)
	taken := a.Open.Pair(o.ID) != 0
	if o.Rests() {
		taken = !a.Open.Add(o.ID, p.Number, o.Side)
	}
	if taken {
		return fmt.Errorf("account %s has an open order %d in another pair", a.Name, o.ID)
	}
	return nil
}

// leave completes a record's order after matching: the remainder rests, or the order closes.
// placedUs is when it was placed, why the reason its rest was cancelled. Its trades trigger stops.
func (s *State) leave(p *Pair, o *event.Order, why trading.Reason, placedUs, nowUs int64,
	e *Effects) error {
	is := trading.Order{ID: o.ID, Account: o.Account, Side: o.Side, Price: o.Price,
		Amount: o.Amount, Remaining: o.Remaining, TimeUs: placedUs}
	if o.Rests() {
		if best, crosses := p.crosses(o); crosses {
			return fmt.Errorf("order %d would rest at %v, which crosses the best price, %v",
				o.ID, o.Price, best)
		}
		p.rest(is)
	} else {
		s.close(p, is, why, nowUs, e)
	}
	p.triggerBy(o)
	return nil
}

// crosses reports whether an order would trade with the best price of the other side, and returns
// it.
func (p *Pair) crosses(o *event.Order) (best money.Price, crosses bool) {
	best, any := p.Book.Best(o.Side.Opposite())
	return best, any && !outside(o.Side, best, o.Price)
}

// checkOrder checks an order on its own, without the book. least is its minimum amount.
func (s *State) checkOrder(o *event.Order, least money.Amount) error {
	switch {
	case o.Price < 1 || o.Amount < least || o.Side != trading.Buy && o.Side != trading.Sell:
		return fmt.Errorf("order %d cannot be of side %d, for %d units, at %d units", o.ID, o.Side,
			int64(o.Amount), int64(o.Price))
	case o.FeeAccount != 0 && s.Account(o.FeeAccount) == nil:
		return fmt.Errorf("the account for fees, %d, does not exist", o.FeeAccount)
	}
	return nil
}

// outside reports whether a price is beyond the limit of an order of that side.
func outside(side trading.Side, price, limit money.Price) bool {
	if side == trading.Buy {
		return price > limit
	}
	return price < limit
}

// checkFees refuses a fee without a fee account, and a fee above the received money.
func checkFees(o *event.Order, t *event.Trade) error {
	if t.TakerFee.IsZero() && t.MakerFee.IsZero() {
		return nil
	}
	// money that each side receives
	taker, maker := t.Amount.Balance(), t.Price.Times(t.Amount).Balance()
	if o.Side == trading.Sell {
		taker, maker = maker, taker
	}
	if o.FeeAccount == 0 || t.TakerFee.Cmp(taker) > 0 || t.MakerFee.Cmp(maker) > 0 {
		return fmt.Errorf("trade %d has fees of %v of %v (taker) and %v of %v (maker) for account "+
			"%d: they must not be above what a side receives, and need an account", t.ID,
			t.TakerFee, taker, t.MakerFee, maker, o.FeeAccount)
	}
	return nil
}

func (s *State) cancel(p *Pair, r *event.Record, e *Effects) error {
	c := &r.Cancel
	if _, err := s.begin(p, r.TimeUs, c.ID, c.Account, c.Key, c.Nonce); err != nil {
		return err
	}
	if r.Kind == event.KindSwitchCancel {
		if err := s.checkSwept(p, r); err != nil {
			return err
		}
	}
	o, hidden, rested, ok := p.cancel(c.Order)
	if !ok || o.Account != c.Account || o.Side != c.Side || o.Price != c.Price ||
		o.Remaining != c.Remaining {
		return fmt.Errorf(
			"cancel of order %d (%v %d units of account %d at %d units), but the book has %+v",
			c.Order, c.Side, int64(c.Remaining), c.Account, int64(c.Price), o)
	}
	if hidden > 0 {
		e.left(o, hidden)
	}
	s.close(p, o, cancelReason(r), r.TimeUs, e)
	if rested {
		p.displayChanged(r.TimeUs)
	}
	return nil
}

// cancelReason returns why the order of a cancel was cancelled.
func cancelReason(r *event.Record) trading.Reason {
	switch {
	case r.Kind == event.KindSwitchCancel:
		return r.Cancel.Reason
	case r.Operator != "":
		return trading.CancelledOperator
	}
	return trading.CancelledOwner
}

// takeOut removes an open order from the book, or from its wait.
func (p *Pair) takeOut(id uint64, e *Effects) (o trading.Order, rested, ok bool) {
	o, hidden, rested, ok := p.cancel(id)
	if rested {
		e.left(o, hidden)
	}
	return o, rested, ok
}

// cancel is takeOut for a cancel: it also returns the order's hidden amount.
func (p *Pair) cancel(id uint64) (o trading.Order, hidden money.Amount, rested, ok bool) {
	hidden = p.Book.Iceberg(id).Hidden
	if o, rested = p.Book.Cancel(id); rested || p.Stops.Len() == 0 {
		return o, hidden, rested, rested
	}
	stop, ok := p.Stops.Remove(id)
	return stop.Order, 0, false, ok
}

// left records an order that leaves the book, or changes in it, with the part hidden until then.
func (e *Effects) left(o trading.Order, hidden money.Amount) {
	o.Remaining -= hidden
	e.Left = append(e.Left, o)
}

// displayChanged notes a record that traded or changed the displayed book.
func (p *Pair) displayChanged(timeUs int64) {
	p.Market.Changed(timeUs)
	buy, _ := p.Book.Best(trading.Buy)
	sell, _ := p.Book.Best(trading.Sell)
	p.Market.Best(timeUs, buy, sell)
}

// close forgets a closed order, and reports it. why is the reason its rest was cancelled; 0: it is
// done.
func (s *State) close(p *Pair, o trading.Order, why trading.Reason, timeUs int64, e *Effects) {
	a := s.accounts[o.Account-1]
	a.Open.Remove(o.ID)
	a.Closed++
	id := a.ClientIDs.Close(o.ID, timeUs)
	e.Closed = append(e.Closed, ClosedOrder{Order: o, Pair: p.Number, Cancelled: why != 0,
		ClosedUs: timeUs, ClientID: id, Instructed: p.forget(o.ID, why)})
}
