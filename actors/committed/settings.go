package committed

import (
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
)

// TradingSettings asks what an account's orders do that do not say so themselves.
type TradingSettings struct {
	account uint32

	SelfTrade trading.SelfTrade
}

func (q *TradingSettings) of(account uint32) { q.account = account }

func (q *TradingSettings) from(c *Side) (needs uint64) {
	q.SelfTrade = c.state.Account(q.account).SelfTrade()
	return 0
}

// A KeySwitch asks for the dead man's switch of an API key that its calls arm.
type KeySwitch struct {
	account uint32
	Key     uint32 // number

	Switch event.Switch // not armed: there is none
	// MaintainedUs is the time at which the newest maintenance has ended, in Unix microseconds; 0:
	// none has.
	MaintainedUs int64
}

func (q *KeySwitch) of(account uint32) { q.account = account }

func (q *KeySwitch) from(c *Side) (needs uint64) {
	q.MaintainedUs = c.state.Maintained()
	for _, s := range c.state.Account(q.account).Switches() {
		if s.Key == q.Key && !s.Session {
			q.Switch = s
		}
	}
	return 0
}

// Means asks what an account has for one more order, and how many orders are open already.
type Means struct {
	account  uint32
	Pair     uint16    // of the order
	Currency uint16    // of the money that it needs
	Most     OpenCount // that the account may have in the pair; 0: not asked
	ClientID event.ClientID
	NowUs    int64 // at which ClientID is asked for

	TakenBy   uint64 // order because of which the order cannot have ClientID; 0: it can
	Available money.Balance
	Open      int       // all open orders of the account
	InPair    OpenCount // those in the pair; zero if none of them can be as many as Most says
	Book      OpenCount // all orders of the pair, of any account
}

// An OpenCount counts open orders.
type OpenCount struct {
	Orders int // all, those that wait for a trigger included
	Stops  int // of these, those that wait for a trigger, in the book or outside it
	GTD    int // of these, those that expire
}

func (q *Means) of(account uint32) { q.account = account }

func (q *Means) from(c *Side) (needs uint64) {
	a, p := c.state.Account(q.account), c.state.Pair(q.Pair)
	for _, h := range a.Wallet.Holdings() {
		if h.Currency == q.Currency {
			q.Available = h.Available()
		}
	}
	q.TakenBy = a.ClientIDs.TakenBy(q.ClientID, q.NowUs)
	q.Open = a.Open.Len()
	q.Book = OpenCount{Orders: p.OpenOrders(), Stops: p.Stops.Len(), GTD: p.Expiring()}
	if possible := min(q.Open, q.Book.Orders); q.Most.Orders <= possible ||
		q.Most.Stops > 0 && q.Most.Stops <= min(possible, q.Book.Stops) ||
		q.Most.GTD > 0 && q.Most.GTD <= min(possible, q.Book.GTD) {
		q.InPair = openIn(a, p)
	}
	return 0
}

// openIn counts an account's open orders in a pair.
func openIn(a *state.Account, p *state.Pair) (n OpenCount) {
	for o := range a.Open.NewestOf(ledger.OpenFilter{Pair: p.Number}) {
		n.Orders++
		x := p.Instructed(o.ID)
		if x == nil {
			continue
		}
		if _, waits := p.Stops.Get(o.ID); waits {
			n.Stops++
		}
		if x.ExpireUs != 0 {
			n.GTD++
		}
	}
	return n
}

// Switches asks for all armed dead man's switches, by account and key.
type Switches struct {
	Account uint32 // of the only account that counts; 0: all count

	List []NamedSwitch
}

// A NamedSwitch is a switch with the names of its account and its key.
type NamedSwitch struct {
	event.Switch
	AccountName, KeyName string
}

func (q *Switches) from(c *Side) (needs uint64) {
	for _, a := range c.state.Accounts() {
		if q.Account != 0 && q.Account != a.ID {
			continue
		}
		for _, s := range a.Switches() {
			q.List = append(q.List, NamedSwitch{s, a.Name, c.state.Keys()[s.Key-1].Key.Key})
		}
	}
	return 0
}
