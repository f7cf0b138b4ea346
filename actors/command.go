package actors

import (
	"fmt"
	"sync"
	"time"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/metrics"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
)

// An Outcome is how a command ended.
type Outcome uint8

// The outcomes.
const (
	undecided Outcome = iota
	Accepted          // its record is durable, and in Record
	// its refusal is durable (through a wallet), or it changed nothing (others)
	Refused
)

// A Command is one request to change something, from its handler through the actors to its release.
//
// It has exactly one owner at a time. An order or a cancel goes handler -> wallet -> book ->
// journal -> handler; a withdrawal skips the book. Each cancel of a cancel-all returns to its
// wallet. Others go handler -> registry -> journal -> registry -> handler, a halt through its book,
// a freeze through its wallet. The owner that ends the command replies once. A handler that times
// out leaves the command to its owner and never touches it again.
type Command struct {
	entry // complete effects, for the journal; record.Pair is set from the start
	request
	decision

	lowering  bool          // KindAmended: it only lowers its order's amount
	barred    bool          // admitted with cancels in a maintenance, which bars it
	holdsSlot bool          // holds an admission slot, returned at release
	internal  bool          // no handler waits for its answer: a switch fires, or a session is lost
	gate      Gate          // to its wallet; nil: none
	to        Answerer      // receives the answer for another node; nil: a handler does
	failed    error         // why another node has no outcome for it; nil: it has one
	unsent    bool          // the other node did not admit it
	reply     chan struct{} // capacity 1, so an answer never waits
	timer     *time.Timer   // of the handler's wait
}

// A Gate stands before the wallets of commands. Transports use one to pass a client's commands to
// its wallet in order, or to be able to stop them. Its clients have logged in, so their commands
// have nonce 0 and use none.
type Gate interface {
	// Pass calls give, which delivers a command to its wallet's mailbox without waiting, or returns
	// false: the command is dropped.
	Pass(give func()) bool
}

// Through routes the command to its wallet through a gate. Do or DoAll follow; a batch uses the
// gate of its first command.
func (c *Command) Through(g Gate) *Command {
	c.gate = g
	return c
}

// A request is a command's content and author. Its handler fills it in.
type request struct {
	kind      event.Kind         // KindOrder, KindCancel, KindAccount ...
	timeUs    int64              // of the request; its book may raise it
	createdAt int64              // the same moment as metrics.Now
	key       *directory.Key     // the signing key; nil: an operator's
	operator  string             // name; "": a client's
	account   *directory.Account // account of its wallet; nil: for the registry
	pair      *directory.Pair    // KindOrder: the market; kindCancelAll: the only one, or nil

	order      orderRequest
	withdrawal withdrawalRequest
	admin      Admin      // of an operator; the registry adds the outcome
	decide     decider    // of an operator's command for the registry
	partOf     *cancelAll // KindCancel: its cancel-all

	special       *SpecialRequest   // KindOrder: its instructions; nil: plain
	amend         *amendRequest     // KindAmended
	setting       trading.SelfTrade // KindSettings
	switchRequest switchRequest     // KindSwitch
	// KindCancel: CancelledSwitch or CancelledDisconnect if a switch cancels; 0: none
	sweepReason trading.Reason
}

// Admin is an operator's request: its fields, and then its outcome.
type Admin struct {
	Account     string // name
	Email       string
	Permissions uint8
	Allow       []string // CIDR prefixes
	Parallel    int      // greatest nonces kept by a new parallel key; 0: nonces grow
	Key         string   // public part; made for a new key
	Secret      string   // of a new key
	Currency    string   // code
	amount      money.Amount
	Reference   string

	Pair         string            // name
	On           bool              // halted, frozen, in maintenance
	Message      string            // of maintenance; reason to give up a mail; a note
	AllowCancels bool              // clients may cancel in the maintenance
	fees         *state.FeeRates   // nil: the pair's
	mail         uint64            // id
	lookup       *committed.Lookup // of Reference
	// HeldUs is the end of the hold on withdrawals after a change of address.
	HeldUs int64
	Before string // the previous address

	AccountID uint32
	Deposit   uint64
	Repeated  bool // nothing changed: already so, or the reference has its deposit
}

// A decision is the actors' answer to a request, apart from its record.
type decision struct {
	outcome      Outcome
	ticket       uint64      // the wallet's number for the command in flight
	reserved     reservation // in the wallet
	countedMarks marks       // of the order, as the wallet has counted them
	amendedOrder uint64      // KindAmended: the open order, while the change is in flight
	denied       uint8       // KindAmended: the wallet's refusal; 0: granted
	shortfall    reservation // needed - available, when funds were refused
	// bound of the price, if the pair's band refused it; price of the last trade, if it would
	// trigger
	bound     money.Price
	faults    []Fault // of an amend that does not fit its order
	lastNonce uint64  // of the key, when its nonce was refused
	// order or withdrawal with the refused client id; or the end of the hold, Unix microseconds, if
	// refused as held
	takenBy         uint64
	cancelledOrders []uint64         // kindCancelAll: the orders
	moved           state.Withdrawal // KindWithdrawalMoved, accepted: the withdrawal afterwards
	adminErr        error            // why an operator's request changed nothing
}

var commands = sync.Pool{New: func() any {
	t := time.NewTimer(time.Hour)
	t.Stop()
	c := &Command{reply: make(chan struct{}, 1), timer: t}
	c.command = c
	return c
}}

func newCommand(kind event.Kind) *Command {
	c, now := commands.Get().(*Command), time.Now()
	c.kind, c.timeUs, c.createdAt = kind, now.UnixMicro(), metrics.At(now)
	// The microsecond selects the traced commands: that is free, and no client can target it.
	if c.timeUs%metrics.TraceOneIn == 0 {
		c.trace.Sent = c.createdAt
	}
	return c
}

// Free returns a finished command to the pool. Only the handler with the reply may call it.
func (c *Command) Free() {
	c.reset()
	commands.Put(c)
}

// reset zeroes the command, except its reply, its timer, and its entry's memory.
func (c *Command) reset() {
	reply, timer, encoded, trades := c.reply, c.timer, c.encoded[:0], c.record.Order.Trades[:0]
	if cap(trades) > keptTrades {
		encoded, trades = nil, nil
	}
	*c = Command{}
	c.command, c.encoded, c.record.Order.Trades = c, encoded, trades
	c.reply, c.timer = reply, timer
}

// keptTrades bounds the memory for trades that a pooled command keeps.
const keptTrades = 256

func (c *Command) answer(o Outcome) {
	c.outcome = o
	if c.to != nil {
		c.to.Answered()
		return
	}
	c.reply <- struct{}{}
}

// An Answerer waits for commands whose answers go to another node.
type Answerer interface {
	// Answered receives one more outcome. An actor's goroutine calls it, so it must not block.
	Answered()
}

// Outcome returns how the command ended. It is valid after the reply.
func (c *Command) Outcome() Outcome { return c.outcome }

// Record returns the journaled record: of the command's kind when accepted, KindRefusal when
// refused. An order with instructions is a KindInstructed or a KindStop. It is valid from the reply
// until Free.
func (c *Command) Record() *event.Record { return &c.record }

// CancelledOrders returns the orders that a CancelAll cancelled, sorted by id.
func (c *Command) CancelledOrders() []uint64 { return c.cancelledOrders }

// Withdrawal returns the withdrawal that a NewConfirmation, NewWithdrawalCancel or MoveWithdrawal
// changed, as changed.
func (c *Command) Withdrawal() *state.Withdrawal { return &c.moved }

// Shortfall returns the missing money when the refusal's reason is RefusedFunds.
func (c *Command) Shortfall() (currency uint16, missing money.Balance) {
	return c.shortfall.currency, c.shortfall.amount
}

// Bound returns the worst possible price for a refusal of RefusedPriceBand, and the price of the
// last trade for one of RefusedWouldTrigger.
func (c *Command) Bound() money.Price { return c.bound }

// Faults returns the faulty fields of an amend for a refusal of RefusedRules, or those of a
// NewSession, which needs no record.
func (c *Command) Faults() []Fault { return c.faults }

// LastNonce returns the key's highest used nonce for a refusal of RefusedNonce.
func (c *Command) LastNonce() uint64 { return c.lastNonce }

// TakenBy returns the order with the client order id for a refusal of RefusedClientID, the
// withdrawal with the client id for RefusedWithdrawalID.
func (c *Command) TakenBy() uint64 { return c.takenBy }

// HeldUs returns the end of the hold on the account's withdrawals for a refusal of RefusedHeld.
func (c *Command) HeldUs() int64 { return int64(c.takenBy) }

// TakesBack reports whether the command cancels something, for which slots are reserved.
func (c *Command) TakesBack() bool {
	return c.kind == event.KindCancel || c.kind == kindCancelAll || c.kind == event.KindSwitch ||
		c.lowering
}

// isCancel reports whether the command is a client's and only cancels, as some maintenances allow.
func (c *Command) isCancel() bool {
	return c.kind == event.KindCancel || c.kind == kindCancelAll ||
		c.kind == event.KindWithdrawalMoved && c.withdrawal.to == event.WithdrawalCancelled
}

// refuse turns the command into a refusal: its entry is its nonce and the reason.
func (c *Command) refuse(reason uint8) {
	c.outcome = Refused
	r := c.begin(event.KindRefusal, 0)
	r.Refusal = event.Refusal{Account: c.account.ID, Key: c.keyNumber(), Nonce: c.order.nonce,
		Reason: reason}
	c.encode()
}

// begin writes the header of the command's record. pair is 0 for a record of no book.
func (c *Command) begin(kind event.Kind, pair uint16) *event.Record {
	return c.entry.begin(kind, pair, c.timeUs, c.operator)
}

// own returns the wallet's reservations for the command.
func (c *Command) own() ownCommand {
	own := ownCommand{ticket: c.ticket, reserved: c.reserved, countedMarks: c.countedMarks,
		amendedOrder: c.amendedOrder}
	switch { // a refusal's record names no pair
	case c.kind == event.KindOrder:
		own.hadOrder, own.pair = !c.reserved.amount.IsZero(), c.pair.Number
	case c.amendedOrder != 0:
		own.pair = c.pair.Number
	}
	return own
}

// keyNumber returns the number of the command's key; 0: it is an operator's.
func (c *Command) keyNumber() uint32 {
	if c.key == nil {
		return 0
	}
	return c.key.Number
}

// A RequestError refuses a request that changed nothing. Its text is for the operator.
type RequestError struct{ text string }

func (e *RequestError) Error() string { return e.text }

// A limitError is a RequestError for a limit that also counts commands in flight.
type limitError struct{ RequestError }

func (e *limitError) Unwrap() error { return &e.RequestError }

func limitf(format string, args ...any) error {
	return &limitError{RequestError{fmt.Sprintf(format, args...)}}
}

// Refuse returns a RequestError with a text for people.
func Refuse(text string) error { return &RequestError{text} }

func refusef(format string, args ...any) error {
	return &RequestError{fmt.Sprintf(format, args...)}
}

// kindCancelAll requests cancels of all open orders of an account. Each of its cancels is a record;
// it is none itself.
const kindCancelAll event.Kind = 255

// A Fault is a field of an amend that its order does not allow, and the reason, as a sentence for
// the client.
type Fault struct{ Field, Text string }

// A cancelAll is one command to cancel all open orders of an account that pass a filter, during its
// execution. The wallet sends one cancel for each order, some at a time, and answers once, after
// the last release. A wallet runs one cancelAll at a time. A dead man's switch that fires is one,
// too.
type cancelAll struct {
	parent *Command // of kind kindCancelAll, or KindSwitch
	ids    []uint64 // still to be sent
	out    int      // sent and not released
}
