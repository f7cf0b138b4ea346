package lineartest

import (
	"fmt"
	"sync"
)

// The size of a history's market. Both pairs trade currency 0, each for its own currency, so the
// two books share each account's money.
const (
	Accounts   = 4
	Currencies = 3
	Pairs      = 2

	FeeAccount = Accounts - 1 // receives the fees
	AllPairs   = -1           // of a CancelAll
)

// Unit is the number of units of money in a whole coin. Prices and amounts of operations are whole
// coins, Funds are units, and Rates are units for each coin: so no fee needs rounding.
const Unit = 10_000

// Rates are an account's fees on its receipts: as the maker of a trade and as the taker.
type Rates struct{ Maker, Taker int64 }

// A Kind is the type of an operation.
type Kind uint8

// The kinds of operations, with the fields that they use. Those with a key also use Account, Key
// and Nonce.
const (
	Place             Kind = iota // an order, with a key: Pair, Order, Buy, Price, Amount, Force
	Cancel                        // with a key: Pair, Order, Named
	CancelAll                     // with a key: Pair, or AllPairs
	Amend                         // with a key: Pair, Order, Named, Price, Amount; 0: unchanged
	ReadOrder                     // with a key: Order. Gives Orders, at most one
	ReadOpen                      // with a key. Gives Orders, all open ones in any order
	ReadBook                      // Pair. Gives Levels and UpdateID
	Deposit                       // Account, Currency, Amount
	Adjustment                    // Account, Currency, Amount, which is taken
	Withdrawal                    // with a key: Withdrawal, Currency, Amount
	ConfirmWithdrawal             // with a key: Withdrawal
	CancelWithdrawal              // with a key: Withdrawal
	ApproveWithdrawal             // Account, Withdrawal
	RefuseWithdrawal              // Account, Withdrawal
	ReadWallet                    // with a key. Gives Funds
	ReadPending                   // with a key. Gives Pending, in any order
	Subscribe                     // Account. Gives Sequence, Orders, all open ones, and Funds
	CreateKey                     // Account, Key, Permissions, Parallel
	RevokeKey                     // Account, Key
	Freeze                        // Account, On
	ReadKeys                      // Account. Gives Keys and Frozen, while nothing else is in flight
	Restart                       // of the exchange, which may forget the nonces of reads
)

var kindNames = [...]string{"place", "cancel", "cancel all", "amend", "read order",
	"read open orders", "read book", "deposit", "adjust",
	"withdraw", "confirm", "cancel withdrawal", "approve", "refuse", "read wallet",
	"read pending withdrawals", "subscribe", "create key", "revoke key", "freeze", "read keys",
	"restart"}

func (k Kind) String() string { return kindNames[k] }

func (k Kind) reads() bool {
	return k == ReadOrder || k == ReadOpen || k == ReadBook || k == ReadWallet ||
		k == ReadPending || k == Subscribe || k == ReadKeys
}

// The permissions of a key.
const (
	MayRead uint8 = 1 << iota
	MayTrade
	MayWithdraw

	MayAll = MayRead | MayTrade | MayWithdraw
)

// Needs returns the permission that an operation's key must have, or 0 if no key signs it.
func (k Kind) Needs() uint8 {
	switch k {
	case Place, Cancel, CancelAll, Amend:
		return MayTrade
	case Withdrawal, ConfirmWithdrawal, CancelWithdrawal:
		return MayWithdraw
	case ReadOrder, ReadOpen, ReadWallet, ReadPending:
		return MayRead
	}
	return 0
}

// An Operation is a client's request. Clients number their orders, withdrawals and keys themselves,
// from 1. An order's number is also its client order id, so the exchange accepts at most one of
// several orders with one number.
type Operation struct {
	Kind        Kind
	Account     int // below Accounts
	Key         int // signs the operation, or is created or revoked by it; 0: none
	Nonce       uint64
	Permissions uint8
	Parallel    int // of a CreateKey: number of nonces kept; 0: nonces must grow
	Pair        int // below Pairs
	Order       int
	Withdrawal  int
	Buy         bool
	Force       Force
	Named       bool // the order is named by its client order id
	On          bool
	Currency    int // below Currencies
	Price       int64
	Amount      int64 // of an Amend: at least that of the order
}

// A Force is the treatment of a new order's untraded part. It is the same for all operations that
// place an order with one number.
type Force uint8

// The forces. A market order is an IOC at its worst price.
const (
	Rests Force = iota
	IOC         // it is cancelled
	FOK         // nothing of the order trades, and all of it is cancelled
)

// An Outcome is how an operation ended.
type Outcome uint8

// The outcomes.
const (
	Unknown           Outcome = iota // it may or may not have happened
	Done                             // it happened; of a read: it was answered
	RefusedFunds                     // too little available money
	RefusedState                     // the order is not open, or the withdrawal's status forbids it
	RefusedRepeated                  // the account has another order with this client order id
	RefusedKey                       // there is no such key, or it was revoked
	RefusedPermission                // the key may not do this
	RefusedFrozen                    // the account is frozen
	RefusedNonce                     // the key has used this nonce, or (a plain one) a higher one

	Outcomes = RefusedNonce + 1 // the number of outcomes
)

var outcomeNames = [...]string{"unknown", "done", "refused for funds", "refused",
	"refused as repeated", "refused for its key",
	"refused for a permission", "refused as frozen", "refused for its nonce"}

func (o Outcome) String() string { return outcomeNames[o] }

// byKey reports whether an operation was refused for its key, before the wallet checked the rest.
func (o Outcome) byKey() bool { return o >= RefusedKey }

// A Result is an answer as received by a client.
type Result struct {
	Outcome Outcome
	// ID of the order, of the cancel, of the amend, or of the order that has the client order id;
	// 0: unknown
	ID     uint64
	Trades []Trade // of a placed or amended order, in their order
	// Remains of a placed or amended order is its untraded amount; of a cancelled one the released
	// amount, -1: unknown
	Remains   int64
	Cancelled []uint64   // of a cancel of all: the ids of the orders
	Orders    []OrderRow // of a read
	Levels    [2][]Level // of a book, best first: buy, sell
	UpdateID  uint64     // of a book
	Funds     Wallet     // of a wallet
	Pending   []Pending  // of a read of withdrawals
	LastNonce uint64     // of a refusal for a nonce: the highest used one
	Sequence  uint64     // of a subscription: of the account's newest event; 0: none
	Frozen    bool       // of a read of keys
	Keys      []KeyRow   // of a read of keys, in the order of their numbers
}

// A Trade is one execution, as the taker sees it.
type Trade struct {
	ID     uint64
	Maker  int // the resting order, 0: unknown
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

// A Pending is a withdrawal that was not paid out, cancelled or refused.
type Pending struct {
	Withdrawal int
	Confirmed  bool
}

// A KeyRow is a key, as an operator sees it. A revoked key has no permissions.
type KeyRow struct {
	Key         int
	Permissions uint8
	Revoked     bool
}

// A Status is the status of an order.
type Status uint8

// The statuses.
const (
	Open Status = iota + 1
	Filled
	Cancelled
)

// A Level is the orders of one price.
type Level struct{ Price, Amount int64 }

// Funds are a wallet's money in one currency, in units.
type Funds struct{ Balance, Reserve int64 }

// A Wallet is an account's funds by currency.
type Wallet [Currencies]Funds

// A History records the operations of many concurrent clients.
type History struct {
	Fees [Pairs][Accounts]Rates // set before the first operation

	mu      sync.Mutex
	clock   int64 // counts the calls and the ends of operations
	epoch   int   // number of Settle calls
	events  []*Recorded
	notices [Accounts][]notice
}

// A Recorded is one operation of a history.
type Recorded struct {
	client    int
	Operation Operation
	Result    Result
	number    int   // in the history
	batch     int   // number of the request if it had several operations; 0: this one was alone
	epoch     int   // of the history, at the call
	call, end int64 // end is 0 while there is no answer
	settled   int64 // after this time it cannot happen any more; 0: it may
	forgotten bool
	h         *History
}

// Begin notes an operation before it is sent. Without an End its outcome is unknown.
func (h *History) Begin(client int, o Operation) *Recorded {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.begin(client, o, 0)
}

// BeginBatch notes operations of one account before they are sent as one request: with one key and
// one nonce, which counts once. Each is a Place, a Cancel or an Amend, with its own End.
func (h *History) BeginBatch(client int, list []Operation) (all []*Recorded) {
	h.mu.Lock()
	defer h.mu.Unlock()
	batch := len(h.events) + 1
	for _, o := range list {
		all = append(all, h.begin(client, o, batch))
	}
	return all
}

func (h *History) begin(client int, o Operation, batch int) *Recorded {
	h.clock++
	r := &Recorded{client: client, Operation: o, number: len(h.events), batch: batch,
		epoch: h.epoch, call: h.clock, h: h}
	h.events = append(h.events, r)
	return r
}

// End records the answer, on arrival. The end of a restart settles what was in flight when it
// began.
func (r *Recorded) End(result Result) {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	if r.end != 0 || r.epoch != r.h.epoch {
		panic(fmt.Sprintf("BUG: %v ends twice, or after Settle", r.Operation))
	}
	if r.Result = result; result.Outcome != Unknown {
		r.h.clock++
		r.end = r.h.clock
	}
	switch {
	case r.Operation.Kind == Restart:
		r.h.settle(r.call)
	case r.Operation.Kind == Subscribe && result.Outcome == Done:
		list := &r.h.notices[r.Operation.Account]
		*list = append(*list, notice{subscription: r, at: r.end, epoch: r.epoch})
	}
}

// Settle notes that an operation without an outcome has happened by now, or never will.
func (r *Recorded) Settle() {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	if r.end == 0 && r.settled == 0 {
		r.h.clock++
		r.settled = r.h.clock
	}
}

// Settle notes that nothing is in flight: each operation without an outcome has happened by now, or
// never will, and subscribers received all events. It ends an epoch. Epochs keep a check short,
// because nothing overlaps across them.
func (h *History) Settle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock++
	h.epoch++
	h.settle(h.clock)
}

// settle settles the operations sent before a time.
func (h *History) settle(before int64) {
	for _, r := range h.events {
		if r.end == 0 && r.settled == 0 && r.call < before {
			r.settled = h.clock
		}
	}
}

// Forget removes the operation from the history: it was refused before it could have an effect.
func (r *Recorded) Forget() {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	r.forgotten = true
}

// Operations returns all operations in the order of their calls.
func (h *History) Operations() []*Recorded { return h.events }

// Count returns the number of operations with an outcome.
func (h *History) Count(o Outcome) (n int) {
	for _, r := range h.events {
		if r.Result.Outcome == o && !r.forgotten {
			n++
		}
	}
	return n
}
