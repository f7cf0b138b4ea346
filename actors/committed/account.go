package committed

import (
	"maps"
	"slices"

	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/state"
)

// A Wallet asks for an account's holdings, by currency number.
type Wallet struct {
	Account uint32

	Seq      uint64
	Holdings []ledger.Holding
}

var wallets pool[Wallet]

// Wallet returns the wallet of the client's account. The caller frees it.
func (d *Door) Wallet(by Client) (*Wallet, error) {
	q := wallets.get()
	if err := d.Ask(q, by.Key, by.Nonce); err != nil {
		return nil, err
	}
	return q, nil
}

// Free gives an answered question back to the pool.
func (q *Wallet) Free() {
	*q = Wallet{Holdings: kept(q.Holdings)}
	wallets.Put(q)
}

func (q *Wallet) of(account uint32) { q.Account = account }

func (q *Wallet) from(c *Side) (needs uint64) {
	q.Seq = c.state.Seq()
	q.Holdings = append(q.Holdings[:0], c.state.Account(q.Account).Wallet.Holdings()...)
	return 0
}

// A Position asks at which sequence it is answered.
type Position struct {
	ClientID event.ClientID // not zero: as in OpenOrders

	Seq uint64
}

func (q *Position) from(c *Side) (needs uint64) {
	q.Seq = c.state.Seq()
	return 0
}

// Fees asks for an account's own rates, by pair. A pair without own rates is missing.
type Fees struct {
	account uint32

	Own map[uint16]state.FeeRates
}

func (q *Fees) of(account uint32) { q.account = account }

func (q *Fees) from(c *Side) (needs uint64) {
	q.Own = maps.Clone(c.state.Account(q.account).Fees())
	return 0
}

// An AccountInfo describes an account.
type AccountInfo struct {
	ID     uint32
	Name   string
	Email  string
	Frozen bool
	state.Operated
}

func infoOf(a *state.Account) AccountInfo {
	return AccountInfo{a.ID, a.Name, a.Email, a.Frozen, a.Operated()}
}

// Accounts asks for the accounts above an id, by id, which is the order of creation.
type Accounts struct {
	After uint64
	Limit int

	List []AccountInfo
}

func (q *Accounts) from(c *Side) (needs uint64) {
	all := c.state.Accounts()
	for _, a := range all[min(q.After, uint64(len(all))):] {
		if len(q.List) == q.Limit {
			break
		}
		q.List = append(q.List, infoOf(a))
	}
	return 0
}

// An Account asks for an account by name, with its holdings, pending withdrawals and open orders.
type Account struct {
	Name  string
	Limit int // of Orders

	Seq         uint64
	Info        AccountInfo // ID 0: no such account
	Holdings    []ledger.Holding
	Withdrawals []state.Withdrawal // pending ones, newest first
	Orders      []Order            // newest open ones
	Open        int                // number of all open orders
}

func (q *Account) from(c *Side) (needs uint64) {
	q.Seq = c.state.Seq()
	a := c.state.AccountByName(q.Name)
	if a == nil {
		return 0
	}
	q.Info, q.Open = infoOf(a), a.Open.Len()
	q.Holdings = append(q.Holdings, a.Wallet.Holdings()...)
	for _, w := range slices.Backward(a.Withdrawals()) {
		q.Withdrawals = append(q.Withdrawals, *w)
	}
	open := OpenOrders{Account: a.ID, Limit: q.Limit}
	open.from(c)
	q.Orders = open.Orders
	return 0
}

// A KeyInfo describes an API key, without its secret.
type KeyInfo struct {
	Key         string
	Account     string
	Permissions uint8
	Allow       []string
	Parallel    int // window of parallel nonces; 0: strictly growing nonces, or a revoked key
	Revoked     bool
}

// Keys asks for an account's keys, in order of creation.
type Keys struct {
	Account uint32

	List []KeyInfo
}

func (q *Keys) from(c *Side) (needs uint64) {
	s := c.state
	for _, n := range s.Account(q.Account).Keys {
		k := s.Keys()[n-1]
		q.List = append(q.List, KeyInfo{k.Key.Key, s.Account(k.Account).Name, k.Permissions,
			k.Allow, int(k.NonceWindow), k.Revoked})
	}
	return 0
}

// An OwnerOf asks for the account of an open order; 0: the order is not open.
type OwnerOf struct {
	Order uint64

	Account uint32
}

func (q *OwnerOf) from(c *Side) (needs uint64) {
	for _, p := range c.state.Pairs() {
		if o, ok := p.Open(q.Order); ok {
			q.Account = o.Account
			break
		}
	}
	return 0
}

// Holders asks for the accounts that have open orders in a pair, in order of their ids.
type Holders struct {
	Pair uint16 // 0: in any
	Name string // of the only account that counts; "": any

	Unknown bool // no such account
	IDs     []uint32
}

func (q *Holders) from(c *Side) (needs uint64) {
	has := func(a *state.Account) bool {
		for o := range a.Open.Newest() {
			if q.Pair == 0 || o.Pair == q.Pair {
				return true
			}
		}
		return false
	}
	if q.Name != "" {
		a := c.state.AccountByName(q.Name)
		if q.Unknown = a == nil; !q.Unknown && has(a) {
			q.IDs = append(q.IDs, a.ID)
		}
		return 0
	}
	for _, a := range c.state.Accounts() {
		if has(a) {
			q.IDs = append(q.IDs, a.ID)
		}
	}
	return 0
}

// An Outbox asks for the oldest unsent mails above an id.
type Outbox struct {
	After uint64
	Limit int

	Mails    []state.Mail
	Accounts []AccountInfo // account of each mail
}

func (q *Outbox) from(c *Side) (needs uint64) {
	for m := range c.state.MailsAfter(q.After) {
		if len(q.Mails) == q.Limit {
			break
		}
		q.Mails = append(q.Mails, *m)
		q.Accounts = append(q.Accounts, infoOf(c.state.Account(m.Account())))
	}
	return 0
}

// A wholeState requests an image of the state, once the history has caught up.
type wholeState struct{ made <-chan *Image }

func (q *wholeState) from(c *Side) (needs uint64) {
	q.made = c.MakeImage()
	return c.state.Seq()
}

// A Hash asks for the digest of the whole state.
type Hash struct {
	Seq  uint64
	Hash [32]byte
	Err  error // the first broken invariant
}

func (q *Hash) from(c *Side) (needs uint64) {
	q.Seq, q.Hash, q.Err = c.state.Seq(), c.state.Hash(), c.state.Check()
	return 0
}

// Barrier waits until the history contains everything released when it was asked.
type Barrier struct{ Seq uint64 }

var barriers pool[Barrier]

func (q *Barrier) free() {
	*q = Barrier{}
	barriers.Put(q)
}

func (q *Barrier) from(c *Side) (needs uint64) {
	q.Seq = c.state.Seq()
	return q.Seq
}
