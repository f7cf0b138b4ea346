package lineartest

import (
	"fmt"
	"sync"
)

// Accounts is how many a history may have.
const Accounts = 4

// A Kind says what an operation asks for.
type Kind uint8

// The kinds of operations.
const (
	Place           Kind = iota // an order: Account, Order, Buy, Price, Amount
	Cancel                      // Order
	ReadOrder                   // Order: gives Orders, one
	ReadOpen                    // Account: gives Orders, all open ones in any order
	ReadBook                    // gives Levels and UpdateID
	Deposit                     // Account, Quote, Amount
	Withdraw                    // Account, Withdrawal, Quote, Amount
	ConfirmWithdraw             // Withdrawal
	CancelWithdraw              // Withdrawal
	ApproveWithdraw             // Withdrawal
	RefuseWithdraw              // Withdrawal
	ReadWallet                  // Account: gives Base and Quote
)

var kindNames = [...]string{"place", "cancel", "read order", "read open orders", "read book", "deposit", "withdraw", "confirm", "cancel withdraw",
	"approve", "refuse", "read wallet"}

func (k Kind) String() string { return kindNames[k] }

// An Operation is what a client asked for. Clients name their orders and withdrawals by numbers of their own, from 1,
// each used once in a history. Prices and amounts are whole numbers of whatever unit the recorder likes.
type Operation struct {
	Kind       Kind
	Account    int // below Accounts
	Order      int
	Withdrawal int
	Buy        bool
	Quote      bool // the money is of the quote currency, not of the base
	Price      int64
	Amount     int64

	number  int              // in the history
	rank    int              // of the id that was told, among all of the history; 0: none was
	overlap map[int]struct{} // of a refusal for funds: the operations that overlap with it
}

// An Outcome is how an operation ended.
type Outcome uint8

// The outcomes.
const (
	Unknown      Outcome = iota // it may or may not have happened
	Done                        // it happened; of a read: it was answered
	RefusedFunds                // available was less than needed
	RefusedState                // the order is not open, or the withdrawal's status does not allow it
)

var outcomeNames = [...]string{"unknown", "done", "refused for funds", "refused"}

func (o Outcome) String() string { return outcomeNames[o] }

// A Result is what a client was told. What it was not told is left zero where that is said.
type Result struct {
	Outcome  Outcome
	ID       uint64     // of the order, or of the cancel; 0: not told
	Trades   []Trade    // of a placed order, in their order
	Remains  int64      // of a placed order: what rests; of a cancelled one: what was released, -1: not told
	Orders   []OrderRow // of a read
	Levels   [2][]Level // of a book, best first: buy, sell
	UpdateID uint64     // of a book
	Base     Funds      // of a wallet
	Quote    Funds
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

// Funds are what a wallet has of one currency.
type Funds struct{ Balance, Reserve int64 }

// A History is written by many clients at once.
type History struct {
	mu     sync.Mutex
	clock  int64
	events []*Recorded
}

// A Recorded is one operation of a history.
type Recorded struct {
	Client    int
	Operation Operation
	Result    Result
	call, end int64 // end is 0 while there is no answer
	forgotten bool
	h         *History
}

// Begin notes an operation before it is sent. Without an End its outcome is unknown.
func (h *History) Begin(client int, o Operation) *Recorded {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock++
	o.number = len(h.events)
	r := &Recorded{Client: client, Operation: o, call: h.clock, h: h}
	h.events = append(h.events, r)
	return r
}

// End notes the answer, when it is there.
func (r *Recorded) End(result Result) {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	if r.end != 0 {
		panic(fmt.Sprintf("BUG: %v ends twice", r.Operation))
	}
	r.h.clock++
	r.Result, r.end = result, r.h.clock
	if result.Outcome == Unknown {
		r.end = 0
	}
}

// Forget takes back what was noted: the operation was turned away before it could do anything.
func (r *Recorded) Forget() {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	r.forgotten = true
}

// Operations are all that was noted, in the order of their calls. They may be changed, to see what Check says then.
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

// Clone is a copy whose operations can be changed without changing the history's. What results refer to is shared.
func (h *History) Clone() *History {
	c := &History{clock: h.clock}
	for _, r := range h.events {
		copied := *r
		copied.h = c
		c.events = append(c.events, &copied)
	}
	return c
}
