package state

import (
	"fmt"

	"exchange/core/event"
	"exchange/core/matching"
)

// Apply folds the next record, the one with sequence Seq()+1, and says in e what changed. After an
// error the state is not to be used any more: the record does not fit, and part of it may be applied.
func (s *State) Apply(r *event.Record, e *Effects) error {
	e.Settlements, e.Closed = nil, e.Closed[:0]
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
		if int(r.Currency.Number) != len(s.currencies)+1 {
			return fmt.Errorf("currency %s has number %d after %d currencies", r.Currency.Code, r.Currency.Number, len(s.currencies))
		}
		s.currencies = append(s.currencies, Currency{Code: r.Currency.Code})
		return nil
	case event.KindPair:
		return s.pair(&r.NewPair)
	case event.KindAccount:
		a := &r.Account
		if int(a.ID) != len(s.accounts)+1 || s.names[a.Name] != 0 {
			return fmt.Errorf("account %q has id %d after %d accounts, or its name is taken", a.Name, a.ID, len(s.accounts))
		}
		s.accounts = append(s.accounts, &Account{ID: a.ID, Name: a.Name, Email: a.Email})
		s.names[a.Name] = a.ID
		return nil
	case event.KindKey:
		return s.newKey(&r.Key)
	case event.KindKeyRevoked:
		k := s.key(r.KeyRevoked.Number)
		if k == nil || k.Revoked {
			return fmt.Errorf("key number %d is not alive", r.KeyRevoked.Number)
		}
		k.Revoked = true
		return nil
	}
	// What is left moves money or uses a nonce.
	var base, quote uint16
	p := s.Pair(r.Pair)
	if p != nil {
		base, quote = p.Base, p.Quote
	}
	e.Settlements = s.settler.Settle(r, base, quote)
	var err error
	switch r.Kind {
	case event.KindDeposit:
		err = s.deposit(&r.Deposit)
	case event.KindOrder:
		err = s.order(p, r, e)
	case event.KindCancel:
		err = s.cancel(p, r, e)
	case event.KindRefusal:
		err = s.useNonce(r.Refusal.Key, r.Refusal.Account, r.Refusal.Nonce)
	default:
		err = fmt.Errorf("unknown kind")
	}
	if err != nil {
		return err
	}
	for i := range e.Settlements {
		t := &e.Settlements[i]
		a := s.Account(t.Account)
		if a == nil {
			return fmt.Errorf("there is no account %d", t.Account)
		}
		for j := range t.Changes() {
			if err := a.Wallet.Apply(&t.Changes()[j]); err != nil {
				return fmt.Errorf("account %s: %w", a.Name, err)
			}
		}
	}
	return nil
}

func (s *State) pair(p *event.Pair) error {
	switch {
	case int(p.Number) != len(s.pairs)+1:
		return fmt.Errorf("pair %s has number %d after %d pairs", p.Name, p.Number, len(s.pairs))
	case p.Base == 0 || p.Quote == 0 || p.Base == p.Quote || int(max(p.Base, p.Quote)) > len(s.currencies):
		return fmt.Errorf("pair %s is of currencies %d and %d of %d", p.Name, p.Base, p.Quote, len(s.currencies))
	}
	s.pairs = append(s.pairs, &Pair{Number: p.Number, Name: p.Name, Base: p.Base, Quote: p.Quote, Book: matching.New()})
	return nil
}

func (s *State) newKey(k *event.Key) error {
	a := s.Account(k.Account)
	if a == nil || int(k.Number) != len(s.keys)+1 || s.keyNames[k.Key] != 0 {
		return fmt.Errorf("key %q of account %d has number %d after %d keys, or exists, or its account does not", k.Key, k.Account, k.Number, len(s.keys))
	}
	s.keys = append(s.keys, &Key{Key: *k})
	s.keyNames[k.Key] = k.Number
	a.Keys = append(a.Keys, k.Number)
	return nil
}

func (s *State) deposit(d *event.Deposit) error {
	_, known := s.references[d.Reference]
	switch {
	case d.ID != s.lastDeposit+1:
		return fmt.Errorf("deposit %d after deposit %d", d.ID, s.lastDeposit)
	case known:
		return fmt.Errorf("reference %q is used twice", d.Reference)
	case d.Currency == 0 || int(d.Currency) > len(s.currencies):
		return fmt.Errorf("there is no currency %d", d.Currency)
	}
	s.lastDeposit = d.ID
	s.references[d.Reference] = Reference{Deposit: d.ID, Account: d.Account, Currency: d.Currency, Amount: d.Amount}
	c := &s.currencies[d.Currency-1]
	c.Deposited = c.Deposited.Add(d.Amount.Balance())
	return nil
}

// begin checks what every record of a pair has in common: its account, nonce, id and time.
func (s *State) begin(p *Pair, timeUs int64, id uint64, account, key uint32, nonce uint64) (*Account, error) {
	a := s.Account(account)
	switch {
	case p == nil:
		return nil, fmt.Errorf("there is no such pair")
	case a == nil:
		return nil, fmt.Errorf("there is no account %d", account)
	case id <= p.lastOrder:
		return nil, fmt.Errorf("id %d after id %d of %s", id, p.lastOrder, p.Name)
	case timeUs < p.timeUs:
		return nil, fmt.Errorf("time %d us after %d us of %s", timeUs, p.timeUs, p.Name)
	}
	p.lastOrder, p.timeUs = id, timeUs
	s.lastOrder = max(s.lastOrder, id)
	return a, s.useNonce(key, account, nonce)
}

func (s *State) useNonce(key, account uint32, nonce uint64) error {
	if key == 0 {
		return nil
	}
	k := s.key(key)
	if k == nil || k.Account != account {
		return fmt.Errorf("key number %d is not of account %d", key, account)
	}
	k.Nonce = max(k.Nonce, nonce)
	return nil
}

func (s *State) order(p *Pair, r *event.Record, e *Effects) error {
	o := &r.Order
	taker, err := s.begin(p, r.TimeUs, o.ID, o.Account, o.Key, o.Nonce)
	if err != nil {
		return err
	}
	if _, taken := taker.ClientIDs.Order(o.ClientID); taken {
		return fmt.Errorf("client order id %v of account %s is used twice", o.ClientID, taker.Name)
	}
	open := o.Amount
	for i := range o.Trades {
		t := &o.Trades[i]
		if t.ID <= p.lastTrade || t.Amount > open {
			return fmt.Errorf("trade %d of %v after trade %d, with %v open", t.ID, t.Amount, p.lastTrade, open)
		}
		p.lastTrade = t.ID
		open -= t.Amount
		maker, err := p.Book.Fill(t.Maker, t.Price, t.Amount)
		if err != nil {
			return err
		}
		if maker.Account != t.MakerAccount || maker.Remaining != t.MakerRemaining || maker.Side == o.Side {
			return fmt.Errorf("trade %d: order %d in the book is %+v", t.ID, t.Maker, maker)
		}
		if maker.Remaining == 0 {
			s.close(p, maker, false, r.TimeUs, e)
		}
	}
	s.lastTrade = max(s.lastTrade, p.lastTrade)
	if open != o.Remaining {
		return fmt.Errorf("%v remains after the trades, the record says %v", open, o.Remaining)
	}
	taker.ClientIDs.Open(o.ID, o.ClientID)
	resting := matching.Order{ID: o.ID, Account: o.Account, Side: o.Side, Price: o.Price, Amount: o.Amount, Remaining: o.Remaining, TimeUs: r.TimeUs}
	if o.Rests() {
		p.Book.Add(resting)
		taker.Open.Add(o.ID, p.Number)
	} else {
		s.close(p, resting, o.Cut, r.TimeUs, e)
	}
	p.Market.Order(r)
	return nil
}

func (s *State) cancel(p *Pair, r *event.Record, e *Effects) error {
	c := &r.Cancel
	if _, err := s.begin(p, r.TimeUs, c.ID, c.Account, c.Key, c.Nonce); err != nil {
		return err
	}
	o, ok := p.Book.Cancel(c.Order)
	if !ok || o.Account != c.Account || o.Side != c.Side || o.Price != c.Price || o.Remaining != c.Remaining {
		return fmt.Errorf("cancel of order %d (%v %v of account %d at %v): the book has %+v", c.Order, c.Side, c.Remaining, c.Account, c.Price, o)
	}
	s.close(p, o, true, r.TimeUs, e)
	p.Market.Cancel(r)
	return nil
}

// close forgets an order that is open no more, and reports it.
func (s *State) close(p *Pair, o matching.Order, cancelled bool, timeUs int64, e *Effects) {
	a := s.accounts[o.Account-1]
	a.Open.Remove(o.ID)
	id := a.ClientIDs.Close(o.ID)
	e.Closed = append(e.Closed, ClosedOrder{Order: o, Pair: p.Number, Cancelled: cancelled, ClosedUs: timeUs, ClientID: id})
}
