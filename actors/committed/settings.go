package committed

import (
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
)

// TradingSettings asks for an account's defaults for its orders.
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

	Switch event.Switch // not armed: none
	// MaintainedUs is the end of the newest maintenance that has ended, in Unix microseconds; 0:
	// none.
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

// Means asks for the funds and limits of an account for one more order.
type Means struct {
	account  uint32
	Pair     uint16    // of the order
	Currency uint16    // that the order needs
	Most     OpenCount // limits of the account in the pair; 0: not asked
	ClientID event.ClientID
	NowUs    int64 // time for the check of ClientID

	TakenBy   uint64 // order that occupies ClientID; 0: none
	Available money.Balance
	Open      int       // all open orders of the account
	InPair    OpenCount // those in the pair; zero if Most cannot be reached
	Book      OpenCount // all orders of the pair, of any account
}

// An OpenCount counts open orders.
type OpenCount struct {
	Orders int // all, including untriggered stops
	Stops  int // of these, untriggered stops, in the book or outside
	GTD    int // of these, orders that expire
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
	Account uint32 // only this account; 0: all

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
