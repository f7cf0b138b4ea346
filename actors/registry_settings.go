package actors

import (
	"errors"
	"maps"

	"exchange/core/event"
	"exchange/core/state"
	"exchange/persistence"
)

// MaxMessage bounds the text for clients during maintenance, in bytes.
const MaxMessage = 500

// setting decides halts, freezes, fees, maintenance, mails and notes. A setting that is so already
// changes nothing.
func (g *registry) setting(c *Command, known *lookup) (submit bool, err error) {
	a := &c.admin
	switch c.kind {
	case event.KindHalt:
		return g.halt(c)
	case event.KindFreeze:
		account, err := g.known(a.Account)
		if err != nil {
			return false, err
		}
		a.AccountID, a.Repeated = account.ID, account.Frozen() == a.On
		c.record.Freeze = event.Freeze{Account: account.ID, Frozen: a.On}
		if g.out.reads(persistence.FormatToldFreezes) {
			c.record.Kind = event.KindToldFreeze
		}
	case event.KindFees:
		return g.ownFees(c)
	case event.KindEmail:
		return g.email(c, known)
	case event.KindAccountClosed:
		return g.closeAccount(c)
	case event.KindMaintenance:
		if len(a.Message) > MaxMessage {
			return false, refusef("a message has at most %d bytes", MaxMessage)
		}
		wanted := event.Maintenance{On: a.On, Message: a.Message, Cancels: a.Cancels}
		if a.Repeated = g.maintenance == wanted; a.Repeated {
			g.out.settleMaintenance(&wanted)
		}
		c.record.Maintenance = wanted
	case event.KindMailed:
		a.Repeated = known.ID == 0 // it left the outbox before
		c.record.Mailed = event.Mailed{ID: a.mail, Error: a.Message}
	case event.KindNote:
		c.record.Note = a.Message
	}
	return !a.Repeated, nil
}

// email decides on another e-mail address of an account. known has the one before.
func (g *registry) email(c *Command, known *lookup) (submit bool, err error) {
	a := &c.admin
	account, err := g.known(a.Account)
	switch {
	case err != nil:
		return false, err
	case !isEmail(a.Email):
		return false, refusef("email: %.80q is not an e-mail address", a.Email)
	}
	a.AccountID, a.Before = account.ID, known.Email
	if a.Repeated = known.Email == a.Email; a.Repeated {
		a.HeldUs = known.HeldUs // as it was: no other hold begins
		return false, nil
	}
	c.record.Email = event.Email{Account: account.ID, Address: a.Email} // its wallet ends the hold
	return true, nil
}

func (g *registry) halt(c *Command) (submit bool, err error) {
	a := &c.admin
	p := g.catalogue.PairNamed(a.Pair)
	if p == nil {
		return false, refusef("%s", g.catalogue.NoPair(a.Pair))
	}
	c.pair, c.record.Pair = p, p.Number
	a.Repeated = p.Halted() == a.On
	return !a.Repeated, nil
}

// errNoFeeAccount means that an account is to pay fees, and that there is no account to receive
// them. It comes after all other checks, so that account is not opened in vain.
var errNoFeeAccount = errors.New("there is no account that fees go to")

func (g *registry) ownFees(c *Command) (submit bool, err error) {
	a := &c.admin
	account, err := g.known(a.Account)
	if err != nil {
		return false, err
	}
	p := g.catalogue.PairNamed(a.Pair)
	if p == nil {
		return false, refusef("%s", g.catalogue.NoPair(a.Pair))
	}
	a.AccountID = account.ID
	f := event.Fees{Account: account.ID, Own: a.fees != nil}
	now, has := account.Fees()[p.Number]
	if a.fees != nil {
		f.Maker, f.Taker = a.fees.Maker, a.fees.Taker
	}
	a.Repeated = has == f.Own && (!has || now == *a.fees)
	if f.Own && *a.fees != (state.FeeRates{}) && g.fees.account.Load() == 0 {
		return false, errNoFeeAccount
	}
	c.pair, c.record.Pair, c.record.Fees = p, p.Number, f
	return !a.Repeated, nil
}

// applySetting takes a durable setting into the tables that handlers, wallets and books read.
func (g *registry) applySetting(c *Command) {
	r := &c.record
	switch r.Kind {
	case event.KindHalt:
		c.pair.Halt(r.Halt.Halted)
	case event.KindFreeze, event.KindToldFreeze:
		g.dir.Account(r.Freeze.Account).Freeze(r.Freeze.Frozen)
	case event.KindMaintenance:
		if g.maintenance.On && !r.Maintenance.On {
			g.out.maintenanceEnds(r.TimeUs)
		}
		g.maintenance = r.Maintenance
		g.out.settleMaintenance(&r.Maintenance)
	case event.KindEmail:
		g.dir.Account(r.Email.Account).SetEmail(true)
	case event.KindAccountClosed:
		g.accountEnds(r.AccountClosed.Account)
	case event.KindFees:
		f := &r.Fees
		account := g.dir.Account(f.Account)
		own := maps.Clone(account.Fees())
		if own == nil {
			own = map[uint16]state.FeeRates{}
		}
		delete(own, r.Pair)
		if f.Own {
			own[r.Pair] = state.FeeRates{Maker: f.Maker, Taker: f.Taker}
			g.fees.own.Store(true)
		}
		account.SetFees(own)
	}
}
