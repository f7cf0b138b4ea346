package committed

import (
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/money"
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
}

func (q *KeySwitch) of(account uint32) { q.account = account }

func (q *KeySwitch) from(c *Side) (needs uint64) {
	for _, s := range c.state.Account(q.account).Switches() {
		if s.Key == q.Key && !s.Session {
			q.Switch = s
		}
	}
	return 0
}

// Means asks what an account has for one more order.
type Means struct {
	account  uint32
	Pair     uint16 // of the order
	Currency uint16 // of the money that it needs
	Most     int    // open orders that the account may have in the pair

	Available money.Balance
	Open      int  // number of all open orders
	Full      bool // there are as many in the pair as there may be
}

func (q *Means) of(account uint32) { q.account = account }

func (q *Means) from(c *Side) (needs uint64) {
	a := c.state.Account(q.account)
	for _, h := range a.Wallet.Holdings() {
		if h.Currency == q.Currency {
			q.Available = h.Available()
		}
	}
	q.Open = a.Open.Len()
	if q.Open < q.Most {
		return 0
	}
	in := 0
	for range a.Open.NewestOf(ledger.OpenFilter{Pair: q.Pair}) {
		if in++; in >= q.Most {
			q.Full = true
			break
		}
	}
	return 0
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
