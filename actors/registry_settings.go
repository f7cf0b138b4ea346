package actors

import (
	"errors"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/state"
)

// MaxMessage bounds the text for clients during maintenance, in bytes.
const MaxMessage = 500

// setting decides halts, freezes, fees, maintenance, mails and notes. A setting that is so already
// changes nothing.
func (g *registry) setting(c *Command) (submit bool, err error) {
	a, s := &c.admin, g.committed.State()
	switch c.kind {
	case event.KindHalt:
		return g.halt(c)
	case event.KindFreeze:
		account, err := g.known(a.Account)
		if err != nil {
			return false, err
		}
		a.AccountID, a.Repeated = account.ID, account.Frozen == a.On
		c.record.Freeze = event.Freeze{Account: account.ID, Frozen: a.On}
	case event.KindFees:
		return g.ownFees(c)
	case event.KindMaintenance:
		if len(a.Message) > MaxMessage {
			return false, refusef("a message has at most %d bytes", MaxMessage)
		}
		wanted := event.Maintenance{On: a.On, Message: a.Message, Cancels: a.Cancels}
		if a.Repeated = s.Maintenance() == wanted; a.Repeated {
			g.settleMaintenance(&wanted)
		}
		c.record.Maintenance = wanted
	case event.KindMailed:
		a.Repeated = s.Mail(a.mail) == nil // it left the outbox before
		c.record.Mailed = event.Mailed{ID: a.mail, Error: a.Message}
	case event.KindNote:
		c.record.Note = a.Message
	}
	return !a.Repeated, nil
}

func (g *registry) halt(c *Command) (submit bool, err error) {
	a := &c.admin
	p := g.PairNamed(a.Pair)
	if p == nil {
		return false, refusef("%s", g.NoPair(a.Pair))
	}
	c.pair, c.record.Pair = p, p.Number
	a.Repeated = g.committed.State().Pair(p.Number).Halted == a.On
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
	p := g.PairNamed(a.Pair)
	if p == nil {
		return false, refusef("%s", g.NoPair(a.Pair))
	}
	a.AccountID = account.ID
	f := event.Fees{Account: account.ID, Own: a.fees != nil}
	now, has := account.Fees()[p.Number]
	if a.fees != nil {
		f.Maker, f.Taker = a.fees.Maker, a.fees.Taker
	}
	a.Repeated = has == f.Own && (!has || now == *a.fees)
	if f.Own && *a.fees != (state.FeeRates{}) &&
		g.committed.State().AccountByName(directory.FeeAccount) == nil {
		return false, errNoFeeAccount
	}
	c.pair, c.record.Pair, c.record.Fees = p, p.Number, f
	return !a.Repeated, nil
}
