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
	// the wallet's refusal is durable; or, without a wallet, the command changed nothing
	Refused
)

// A Command is one request to change something, from its handler through the actors to its release.
//
// It has exactly one owner at a time. An order, an amend or a cancel goes handler -> wallet -> book
// -> journal -> handler; a withdrawal or a setting skips the book. Each cancel of a cancel-all
// returns to its wallet. Most operators' commands go handler -> registry -> journal -> registry ->
// handler: a halt also through its book, a freeze through its wallet. The last owner replies once.
// A handler that times out leaves the command to its owner and never touches it again.
type Command struct {
	entry // complete effects, for the journal; record.Pair is set from the start
	request
	decision

	lowering    bool          // KindAmended: it only lowers its order's amount
	excluded    bool          // a maintenance refuses it, but admits the cancels of its batch
	holdsSlot   bool          // holds an admission slot, returned at release
	internal    bool          // no handler waits for it: a switch fires, or a session is lost
	gate        Gate          // to its wallet; nil: none
	answerTo    Answerer      // receives the answer for another node; nil: a handler does
	remoteErr   error         // why another node has no outcome for it; nil: it has one
	notAdmitted bool          // the other node did not admit it
	reply       chan struct{} // capacity 1, so an answer never waits
	timer       *time.Timer   // of the handler's wait
}

// A Gate stands between a handler and a wallet. Transports use one to keep a client's commands in
// order, or to be able to stop them. Its clients have logged in, so their commands use no nonce:
// theirs is 0.
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
	// KindCancel: CancelledSwitch or CancelledDisconnect if a switch cancels; 0: no switch
	switchReason trading.Reason
}

// Admin is an operator's request: its fields, and then its outcome.
type Admin struct {
	Account     string // name
	Email       string
	Permissions uint8
	Allow       []string // CIDR prefixes
	NonceWindow int      // highest nonces that a new key remembers; 0: they must increase
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
	// end of the hold on withdrawals after a change of address, Unix microseconds
	HoldEndsUs    int64
	PreviousEmail string

	AccountID uint32
	Deposit   uint64
	Repeated  bool // nothing changed: already so, or the reference has its deposit
}

// A decision is the actors' answer to a request, apart from its record.
type decision struct {
	outcome      Outcome
	ticket       uint64      // the wallet's number for the command in flight
	reserved     reservation // in the wallet
	countedFlags orderFlags  // of the order, as the wallet has counted them
	amendedOrder uint64      // KindAmended: the open order, while the change is in flight
	denied       uint8       // KindAmended: the wallet's refusal; 0: granted
	shortfall    reservation // needed - available, when funds were refused
	// RefusedPriceBand: the band's limit; RefusedWouldTrigger: the price of the last trade
	bound             money.Price
	faults            []Fault          // of an amend that does not fit its order
	lastNonce         uint64           // of the key, when its nonce was refused
	takenBy           uint64           // the order or withdrawal that has the refused client id
	holdEndsUs        int64            // RefusedHeld: end of the hold, Unix microseconds
	cancelledOrders   []uint64         // kindCancelAll: the orders
	changedWithdrawal state.Withdrawal // KindWithdrawalStatus, accepted: the withdrawal afterwards
	adminErr          error            // why an operator's request changed nothing
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
	if c.answerTo != nil {
		c.answerTo.Answered()
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

// Withdrawal returns the withdrawal of a NewConfirmation, NewWithdrawalCancel, SetWithdrawalStatus
// or Adjust, as the command left it.
func (c *Command) Withdrawal() *state.Withdrawal { return &c.changedWithdrawal }

// Shortfall returns the missing money when the refusal's reason is RefusedFunds.
func (c *Command) Shortfall() (currency uint16, missing money.Balance) {
	return c.shortfall.currency, c.shortfall.amount
}

// Bound returns the price at the band's limit for a refusal of RefusedPriceBand, and the price of
// the last trade for one of RefusedWouldTrigger.
func (c *Command) Bound() money.Price { return c.bound }

// Faults returns the faulty fields of an amend for a refusal of RefusedRules, or of a refused
// NewSession, which has no record.
func (c *Command) Faults() []Fault { return c.faults }

// LastNonce returns the key's highest used nonce for a refusal of RefusedNonce.
func (c *Command) LastNonce() uint64 { return c.lastNonce }

// TakenBy returns the order with the client order id for a refusal of RefusedClientID, the
// withdrawal with the client id for RefusedWithdrawalID.
func (c *Command) TakenBy() uint64 { return c.takenBy }

// HoldEndsUs returns the end of the hold on the account's withdrawals for a refusal of RefusedHeld.
func (c *Command) HoldEndsUs() int64 { return c.holdEndsUs }

// MayUseCancelSlot reports whether the command may use the slots reserved for cancels.
func (c *Command) MayUseCancelSlot() bool {
	return c.kind == event.KindCancel || c.kind == kindCancelAll || c.kind == event.KindSwitch ||
		c.lowering
}

// passesMaintenance reports whether a client may send it in a maintenance that allows cancels.
func (c *Command) passesMaintenance() bool {
	return c.kind == event.KindCancel || c.kind == kindCancelAll ||
		c.kind == event.KindWithdrawalStatus && c.withdrawal.nextStatus == event.WithdrawalCancelled
}

// refuse turns the command into a refusal, whose record has only the nonce and the reason.
func (c *Command) refuse(reason uint8) {
	c.outcome = Refused
	r := c.begin(event.KindRefusal, 0)
	r.Refusal = event.Refusal{Account: c.account.ID, Key: c.keyNumber(), Nonce: c.order.nonce,
		Reason: reason}
	c.encode()
}

// begin writes the header of the command's record. pair is 0 for a record that no book writes.
func (c *Command) begin(kind event.Kind, pair uint16) *event.Record {
	return c.entry.begin(kind, pair, c.timeUs, c.operator)
}

// inFlightPart returns what the wallet takes back when the command is released.
func (c *Command) inFlightPart() inFlightPart {
	part := inFlightPart{ticket: c.ticket, reserved: c.reserved, countedFlags: c.countedFlags,
		amendedOrder: c.amendedOrder}
	switch { // a refusal's record names no pair
	case c.kind == event.KindOrder:
		part.countedOrder, part.pair = !c.reserved.amount.IsZero(), c.pair.Number
	case c.amendedOrder != 0:
		part.pair = c.pair.Number
	}
	return part
}

// keyNumber returns the number of the command's key; 0: the command is an operator's.
func (c *Command) keyNumber() uint32 {
	if c.key == nil {
		return 0
	}
	return c.key.Number
}

// A RequestError refuses an operator's request that changed nothing, with a text for the operator.
type RequestError struct{ text string }

func (e *RequestError) Error() string { return e.text }

// A limitError is a RequestError for a limit that counts commands in flight, which may yet fail.
type limitError struct{ RequestError }

func (e *limitError) Unwrap() error { return &e.RequestError }

func limitf(format string, args ...any) error {
	return &limitError{RequestError{fmt.Sprintf(format, args...)}}
}

// NewRequestError returns a RequestError with a text for the operator.
func NewRequestError(text string) error { return &RequestError{text} }

func requestErrorf(format string, args ...any) error {
	return &RequestError{fmt.Sprintf(format, args...)}
}

// kindCancelAll requests cancels of all open orders of an account. Each of its cancels is a record;
// it is none itself.
const kindCancelAll event.Kind = 255

// A Fault is a field of an amend that its order does not allow, and the reason, as a sentence for
// the client.
type Fault struct{ Field, Text string }

// A cancelAll is a command in execution that cancels all open orders of an account that pass a
// filter: a cancel-all, or a dead man's switch that fires. The wallet sends one cancel for each
// order, a limited number at a time, and answers once, after the last release. A wallet runs one
// cancelAll at a time.
type cancelAll struct {
	parent *Command // of kind kindCancelAll, or KindSwitch
	ids    []uint64 // still to be sent
	out    int      // sent and not released
}
