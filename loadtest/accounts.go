package loadtest

import (
	"sync"

	"exchange/core/money"
)

// An account trades, and keeps its sent orders. While the load runs only its generator uses it.
type account struct {
	name  string // "" of a configured key
	pairs []*pair
	users []*user // the account's keys, one for each of its connections
	// key for the witness, which holds reading while it uses it; nil: none
	witnessUser *user
	witnessMu   sync.Mutex

	orders []sentOrder
	trades []takerTrade
	open   []openOrder // acknowledged and presumably resting; oldest first

	spare []int // free indexes in orders

	evicted map[uint64]bool // orders removed from the book by others of the account

	before funds // before the load
	// the banker's deposits, by currency; unsure: the outcome of a deposit is unknown
	banked map[string]money.Balance
	unsure bool
	newest struct{ order, trade uint64 }
	// maker rates by pair, before the load and, once queried, after it
	feesBefore, fees map[string]money.Rate

	lag *ownLag // lag of events after answers; nil: no socket receives its events
}

// keep stores a sent order, and returns its index.
func (a *account) keep(o sentOrder) int {
	if n := len(a.spare); n > 0 {
		at := a.spare[n-1]
		a.spare, a.orders[at] = a.spare[:n-1], o
		return at
	}
	a.orders = append(a.orders, o)
	return len(a.orders) - 1
}

// A user is a key of an account. One connection uses a key, so nonces arrive in order.
type user struct {
	*account
	number uint32 // among all users
	at     int    // number of its connection's address
	key    []byte
	secret secret
	get    []byte // signature of requests that read
	nonce  uint64 // last one used; starts at the time in milliseconds
	placed uint32 // orders sent: the last part of their client ids
}

func newUser(a *account, number int, k Key, nonce uint64) *user {
	u := &user{account: a, number: uint32(number), key: []byte(k.Key), secret: newSecret(k.Secret),
		nonce: nonce}
	u.get = newSigner().sign(nil, &u.secret, u.key, nil)
	a.users = append(a.users, u)
	return u
}

// outcome is the end of a request, as seen by the sender.
type outcome uint8

const (
	unknown outcome = iota
	done
	refused
)

// A sentOrder is an order that was sent.
type sentOrder struct {
	id            uint64 // 0: not acknowledged
	price         money.Price
	amount        money.Amount
	filled        money.Amount // when it was placed
	pair          uint16
	at            uint8 // number of the address it was sent to
	buy           bool
	outcome       outcome
	cut           bool    // the server cancelled the rest at once
	cancelSent    bool    // a cancel was sent
	cancelOutcome outcome // of that cancel
	// a change to these values was sent; change: its outcome
	changed   bool
	change    outcome
	newPrice  money.Price
	newAmount money.Amount

	instruction instruction
	user        uint32 // the user's number and
	serial      uint32 // order's number there make its client id
}

// A takerTrade is a trade that an order made when it was placed.
type takerTrade struct {
	id, maker uint64
	price     money.Price
	amount    money.Amount
	pair      uint16
	buy       bool
}

type openOrder struct {
	id    uint64
	index int // in orders
}

// A funds is an account's balances by currency.
type funds map[string]holding

type holding struct{ balance, reserve money.Balance }
