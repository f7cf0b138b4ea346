package lineartest

import (
	"fmt"
	"sync"
)

// What a history may have, and the market that it is about. Both pairs trade currency 0, for
// another one each: so the two books share each account's money.
const (
	Accounts   = 4
	Currencies = 3
	Pairs      = 2

	FeeAccount = Accounts - 1 // gets the fees
	AllPairs   = -1           // of a CancelAll
)

// Unit is how many units of money a whole coin has. Prices and amounts of operations are whole
// coins, Funds are units, and Rates are units for each coin: so no fee needs rounding.
const Unit = 10_000

// Rates are what an account pays of what it receives: when its order rested, and when it did not.
type Rates struct{ Maker, Taker int64 }

// A Kind says what an operation asks for.
type Kind uint8

// The kinds of operations. Those with a key name Account, Key and Nonce, too.
const (
	Place           Kind = iota // an order, with a key: Pair, Order, Buy, Price, Amount
	Cancel                      // with a key: Pair, Order
	CancelAll                   // with a key: Pair, or AllPairs
	ReadOrder                   // with a key: Order. Gives Orders, at most one
	ReadOpen                    // with a key. Gives Orders, all open ones in any order
	ReadBook                    // Pair. Gives Levels and UpdateID
	Deposit                     // Account, Currency, Amount
	Withdraw                    // with a key: Withdrawal, Currency, Amount
	ConfirmWithdraw             // with a key: Withdrawal
	CancelWithdraw              // with a key: Withdrawal
	ApproveWithdraw             // Account, Withdrawal
	RefuseWithdraw              // Account, Withdrawal
	ReadWallet                  // with a key. Gives Funds
	ReadPending                 // with a key. Gives Pending, in any order
	CreateKey                   // Account, Key, Permissions
	RevokeKey                   // Account, Key
	Freeze                      // Account, On
	// Account. Gives Keys and Frozen; only while no other operation is under way
	ReadKeys
	Restart // of the exchange, which may forget the nonces of reads
)

var kindNames = [...]string{"place", "cancel", "cancel all", "read order",
	"read open orders", "read book",
	"deposit", "withdraw", "confirm", "cancel withdraw", "approve", "refuse", "read wallet",
	"read pending withdrawals", "create key",
	"revoke key", "freeze", "read keys", "restart"}

func (k Kind) String() string { return kindNames[k] }

func (k Kind) reads() bool {
	return k == ReadOrder || k == ReadOpen || k == ReadBook || k == ReadWallet ||
		k == ReadPending || k == ReadKeys
}

// The permissions of a key.
const (
	MayRead uint8 = 1 << iota
	MayTrade
	MayWithdraw

	MayAll = MayRead | MayTrade | MayWithdraw
)

// Needs is the permission that an operation's key must have; 0: it is signed with none.
func (k Kind) Needs() uint8 {
	switch k {
	case Place, Cancel, CancelAll:
		return MayTrade
	case Withdraw, ConfirmWithdraw, CancelWithdraw:
		return MayWithdraw
	case ReadOrder, ReadOpen, ReadWallet, ReadPending:
		return MayRead
	}
	return 0
}

// An Operation is what a client asked for. Clients name their orders, withdrawals and keys by
// numbers of their own, from 1. An order's number is also the client order id that it is sent with:
// of several orders with one number, one can come to be.
type Operation struct {
	Kind        Kind
	Account     int // below Accounts
	Key         int // that signs it; of CreateKey and RevokeKey the one that is meant. 0: none
	Nonce       uint64
	Permissions uint8
	Pair        int // below Pairs
	Order       int
	Withdrawal  int
	Buy         bool
	On          bool
	Currency    int // below Currencies
	Price       int64
	Amount      int64
}

// An Outcome is how an operation ended.
type Outcome uint8

// The outcomes.
const (
	Unknown      Outcome = iota // it may or may not have happened
	Done                        // it happened; of a read: it was answered
	RefusedFunds                // available was less than needed
	// no such order is open, or the withdrawal's status does not allow it
	RefusedState
	RefusedRepeated   // the account has another order with this client order id
	RefusedKey        // there is no such key, or it was revoked
	RefusedPermission // the key may not do this
	RefusedFrozen     // the account is frozen
	RefusedNonce      // the key has used this nonce, or a higher one

	Outcomes = RefusedNonce + 1 // how many there are
)

var outcomeNames = [...]string{"unknown", "done", "refused for funds", "refused",
	"refused as repeated",
	"refused for its key", "refused for a permission", "refused as frozen", "refused for its nonce"}

func (o Outcome) String() string { return outcomeNames[o] }

// byKey reports whether an operation ended before its wallet looked at what it asks for.
func (o Outcome) byKey() bool { return o >= RefusedKey }

// A Result is what a client was told. What it was not told is left zero where that is said.
type Result struct {
	Outcome Outcome
	// of the order, of the cancel, or of the order that has the client order id; 0: not told
	ID     uint64
	Trades []Trade // of a placed order, in their order
	// of a placed order: what rests; of a cancelled one: what was released, -1: not told
	Remains   int64
	Cancelled []uint64   // of a cancel of all: the ids of the orders
	Orders    []OrderRow // of a read
	Levels    [2][]Level // of a book, best first: buy, sell
	UpdateID  uint64     // of a book
	Funds     Wallet     // of a wallet
	Pending   []Pending  // of a read of withdrawals
	LastNonce uint64     // of a refusal for a nonce: the highest that was used
	Frozen    bool       // of a read of keys
	Keys      []KeyRow   // of a read of keys, in the order of their numbers
}

// A Trade is one execution, as the taker is told.
type Trade struct {
	ID     uint64
	Maker  int // the resting order, 0: not told
	Price  int64
	Amount int64
}

// An OrderRow is an order, as its owner sees it.
type OrderRow struct {
	Order   int
	ID      uint64
	Status  Status
	Remains int64
}

// A Pending is a withdrawal that is neither paid out nor at its end otherwise.
type Pending struct {
	Withdrawal int
	Confirmed  bool
}

// A KeyRow is a key, as an operator sees it. Of a revoked one there are no permissions.
type KeyRow struct {
	Key         int
	Permissions uint8
	Revoked     bool
}

// A Status is an order's.
type Status uint8

// The statuses.
const (
	Open Status = iota + 1
	Filled
	Cancelled
)

// A Level is the orders of one price.
type Level struct{ Price, Amount int64 }

// Funds are what a wallet has of one currency, in units.
type Funds struct{ Balance, Reserve int64 }

// A Wallet is an account's funds by currency.
type Wallet [Currencies]Funds

// A History is written by many clients at once.
type History struct {
	Fees [Pairs][Accounts]Rates // set before the first operation

	mu     sync.Mutex
	clock  int64
	epoch  int // how often it was settled
	events []*Recorded
}

// A Recorded is one operation of a history.
type Recorded struct {
	Client    int
	Operation Operation
	Result    Result
	number    int   // in the history
	epoch     int   // of the history, when it was sent
	call, end int64 // end is 0 while there is no answer
	settled   int64 // when it had happened, if it ever does; 0 while that is open
	forgotten bool
	h         *History
}

// Begin notes an operation before it is sent. Without an End its outcome is unknown.
func (h *History) Begin(client int, o Operation) *Recorded {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock++
	r := &Recorded{Client: client, Operation: o, number: len(h.events), epoch: h.epoch,
		call: h.clock, h: h}
	h.events = append(h.events, r)
	return r
}

// End notes the answer, when it is there. The end of a restart settles what was under way when it
// began.
func (r *Recorded) End(result Result) {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	if r.end != 0 || r.epoch != r.h.epoch {
		panic(fmt.Sprintf("BUG: %v ends twice, or when all was quiet", r.Operation))
	}
	if r.Result = result; result.Outcome != Unknown {
		r.h.clock++
		r.end = r.h.clock
	}
	if r.Operation.Kind == Restart {
		r.h.settle(r.call)
	}
}

// Settle says of an operation without an outcome that it has happened by now, or never will.
func (r *Recorded) Settle() {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	if r.end == 0 && r.settled == 0 {
		r.h.clock++
		r.settled = r.h.clock
	}
}

// Settle says that nothing is under way: what was sent and has no outcome has happened by now, or
// never will. It ends an epoch. Epochs keep a check short, because nothing overlaps across them.
func (h *History) Settle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock++
	h.epoch++
	h.settle(h.clock)
}

// settle settles what was sent before a time.
func (h *History) settle(before int64) {
	for _, r := range h.events {
		if r.end == 0 && r.settled == 0 && r.call < before {
			r.settled = h.clock
		}
	}
}

// Before reports whether an operation was answered before another one was sent.
func (r *Recorded) Before(other *Recorded) bool { return r.end != 0 && r.end < other.call }

// Forget takes back what was noted: the operation was turned away before it could do anything.
func (r *Recorded) Forget() {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	r.forgotten = true
}

// Operations are all that was noted, in the order of their calls. They may be changed, to see what
// Check says then.
func (h *History) Operations() []*Recorded { return h.events }

// Count says how many operations ended so.
func (h *History) Count(o Outcome) (n int) {
	for _, r := range h.events {
		if r.Result.Outcome == o && !r.forgotten {
			n++
		}
	}
	return n
}

// Clone is a copy whose operations can be changed without changing the history's. What results
// refer to is shared.
func (h *History) Clone() *History {
	c := &History{Fees: h.Fees, clock: h.clock, epoch: h.epoch}
	for _, r := range h.events {
		copied := *r
		copied.h = c
		c.events = append(c.events, &copied)
	}
	return c
}
