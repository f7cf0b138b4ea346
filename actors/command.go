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
	Accepted          // its record is durable; Record has it
	// its refusal is durable (what went through a wallet), or it changed nothing (the rest)
	Refused
)

// A Command is one request to change something, from its handler through the actors to its release.
//
// It has exactly one owner at a time. An order or a cancel goes handler -> wallet -> book ->
// journal -> handler; a withdrawal goes without the book. Each cancel of a cancel-all goes back to
// its wallet. The rest goes handler -> registry -> journal -> registry -> handler, a halt through
// its book, a freeze through its wallet. The owner that ends the command replies once. A handler
// whose time is up leaves the command to its owner and never touches it again.
type Command struct {
	entry // its complete effects, for the journal; record.Pair is set from the start
	request
	decision

	lowering bool          // KindAmended: it is known to lower its order's amount alone
	barred   bool          // admitted with cancels in a maintenance, which bars it
	admitted bool          // holds a slot of admission, given back at release
	unasked  bool          // no handler waits for its answer: a switch fires, or a session is lost
	gate     Gate          // through which it goes to its wallet; nil: there is none
	to       Answerer      // gets the answer, which another node waits for; nil: a handler gets it
	failed   error         // why another node has no outcome for it; nil: it has
	unsent   bool          // and did not let it in
	reply    chan struct{} // capacity 1, so an answer never waits
	timer    *time.Timer   // of the handler's wait
}

// A Gate stands before the wallets of commands. A transport that lets the next command of a client
// go when the one before has reached its wallet has one, or one that may have to stop commands. Its
// clients have logged in, so their commands have nonce 0 and use none.
type Gate interface {
	// Pass calls give, which brings a command into its wallet's mailbox and does not wait, or
	// returns false: then the command is dropped.
	Pass(give func()) bool
}

// Through has the command go to its wallet through a gate. Do or DoAll follow; a batch goes through
// the gate of its first command.
func (c *Command) Through(g Gate) *Command {
	c.gate = g
	return c
}

// A request is the wish of a command, and its author. Its handler fills it in.
type request struct {
	kind     event.Kind         // KindOrder, KindCancel, KindAccount ...
	timeUs   int64              // of the request; its book may raise it
	made     int64              // the same moment, as metrics.Now tells
	key      *directory.Key     // that signed it; nil: an operator's
	operator string             // name; "": a client's
	account  *directory.Account // whose wallet it goes through; nil: it goes through the registry
	pair     *directory.Pair    // KindOrder: the market; kindCancelAll: the only one, or nil

	order      orderRequest
	withdrawal withdrawalRequest
	admin      Admin      // of an operator; the registry fills in what came of it
	decide     decider    // of an operator's command that the registry decides
	partOf     *cancelAll // KindCancel: the cancel-all that it is part of

	special   *SpecialRequest   // KindOrder: its instructions; nil: it is plain
	amend     *amendRequest     // KindAmended
	setting   trading.SelfTrade // KindSettings
	switching switchRequest     // KindSwitch
	// KindCancel: the switch that cancels, CancelledSwitch or CancelledDisconnect; 0: it is none
	swept trading.Reason
}

// Admin is an operator's request: its fields, and then its outcome.
type Admin struct {
	Account     string // name
	Email       string
	Permissions uint8
	Allow       []string // CIDR prefixes
	Parallel    int      // nonces that a new key keeps for parallel use; 0: they grow
	Key         string   // public part; made for a new key
	Secret      string   // of a new key
	Currency    string   // code
	amount      money.Amount
	Reference   string

	Pair    string            // name
	On      bool              // halted, frozen, in maintenance
	Message string            // of maintenance; why a mail was given up; a note
	Cancels bool              // clients may cancel in the maintenance
	fees    *state.FeeRates   // nil: the pair's
	mail    uint64            // id
	known   *committed.Lookup // of Reference
	// HeldUs is until when no money is withdrawn, once the address is changed.
	HeldUs int64
	Before string // the address before that

	AccountID uint32
	Deposit   uint64
	Repeated  bool // nothing changed: it was so already, or the reference has its deposit
}

// A decision is the actors' answer to a request, beside its record.
type decision struct {
	outcome   Outcome
	ticket    uint64      // the wallet's number for the command, while it is out
	reserved  reservation // in the wallet
	counted   marks       // of the order, by which the wallet has counted it
	amends    uint64      // KindAmended: the open order, while the change is on its way
	denied    uint8       // KindAmended: why the wallet could not grant it; 0: it could
	shortfall reservation // needed - available, when funds were refused
	// of the price, when it was refused for the pair's band; of the last trade, when it was refused
	// because that would trigger it
	bound     money.Price
	faults    []Fault // of an amend, when it does not fit its order
	lastNonce uint64  // of the key, when its nonce was refused
	// order or withdrawal that has its client id, when that was refused; the end of the hold, in
	// microseconds, when it was refused as held
	takenBy   uint64
	cancelled []uint64         // kindCancelAll: the orders
	moved     state.Withdrawal // KindWithdrawalMoved, accepted: as it is after that
	adminErr  error            // why an operator's request changed nothing
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
	c.kind, c.timeUs, c.made = kind, now.UnixMicro(), metrics.At(now)
	// The microsecond chooses which command is traced: that costs nothing, and no client can aim at
	// it.
	if c.timeUs%metrics.TraceOneIn == 0 {
		c.trace.Sent = c.made
	}
	return c
}

// Free gives a finished command back to the pool. Only the handler with the reply may call it.
func (c *Command) Free() {
	c.reset()
	commands.Put(c)
}

// reset makes the command zero, but for its reply, its timer, and the memory of its entry.
func (c *Command) reset() {
	reply, timer, encoded, trades := c.reply, c.timer, c.encoded[:0], c.record.Order.Trades[:0]
	if cap(trades) > keptTrades {
		encoded, trades = nil, nil
	}
	*c = Command{}
	c.command, c.encoded, c.record.Order.Trades = c, encoded, trades
	c.reply, c.timer = reply, timer
}

// keptTrades bounds the memory of a large order that a pooled command keeps.
const keptTrades = 256

func (c *Command) answer(o Outcome) {
	c.outcome = o
	if c.to != nil {
		c.to.Answered()
		return
	}
	c.reply <- struct{}{}
}

// An Answerer waits for commands whose answers another node gets.
type Answerer interface {
	// Answered takes one outcome more. The goroutine of an actor calls it, which it does not hold
	// up.
	Answered()
}

// Outcome returns how the command ended. It is valid after the reply.
func (c *Command) Outcome() Outcome { return c.outcome }

// Record returns the journaled record: of the command's kind when accepted, KindRefusal when
// refused. An order with instructions is a KindInstructed or a KindStop. It is valid from the reply
// until Free.
func (c *Command) Record() *event.Record { return &c.record }

// Cancelled returns the orders that a CancelAll cancelled, in order of their ids.
func (c *Command) Cancelled() []uint64 { return c.cancelled }

// Withdrawal returns the withdrawal that a NewConfirmation, NewWithdrawalCancel or MoveWithdrawal
// changed, as it was after that.
func (c *Command) Withdrawal() *state.Withdrawal { return &c.moved }

// Shortfall returns the missing money when the refusal's reason is RefusedFunds.
func (c *Command) Shortfall() (currency uint16, missing money.Balance) {
	return c.shortfall.currency, c.shortfall.amount
}

// Bound returns the worst price that was possible when the refusal's reason is RefusedPriceBand. It
// returns the price of the last trade when the reason is RefusedWouldTrigger.
func (c *Command) Bound() money.Price { return c.bound }

// Faults returns what is wrong with the fields of an amend when the refusal's reason is
// RefusedRules, or with those of a NewSession, which needs no record.
func (c *Command) Faults() []Fault { return c.faults }

// LastNonce returns the highest nonce that the key had used when the refusal's reason is
// RefusedNonce.
func (c *Command) LastNonce() uint64 { return c.lastNonce }

// TakenBy returns the order that has the client order id when the refusal's reason is
// RefusedClientID, and the withdrawal that has the client id when it is RefusedWithdrawalID.
func (c *Command) TakenBy() uint64 { return c.takenBy }

// HeldUs returns until when no money of the account is withdrawn, when the refusal's reason is
// RefusedHeld.
func (c *Command) HeldUs() int64 { return int64(c.takenBy) }

// TakesBack reports whether the command takes something back, for which slots are kept.
func (c *Command) TakesBack() bool {
	return c.kind == event.KindCancel || c.kind == kindCancelAll || c.kind == event.KindSwitch ||
		c.lowering
}

// cancels reports whether the command is a client's that does nothing but cancel, as clients may in
// some maintenance.
func (c *Command) cancels() bool {
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

// begin gives the command's record its head. pair is 0 for a record that no book sees.
func (c *Command) begin(kind event.Kind, pair uint16) *event.Record {
	return c.entry.begin(kind, pair, c.timeUs, c.operator)
}

// own returns what the command's wallet has set aside for it.
func (c *Command) own() ownCommand {
	own := ownCommand{ticket: c.ticket, reserved: c.reserved, counted: c.counted,
		amends: c.amends}
	switch { // a refusal's record names no pair
	case c.kind == event.KindOrder:
		own.placed, own.pair = !c.reserved.amount.IsZero(), c.pair.Number
	case c.amends != 0:
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

// A RequestError refuses a request, and nothing was changed. Its text is for the operator.
type RequestError struct{ text string }

func (e *RequestError) Error() string { return e.text }

// A limitError is a RequestError for a limit that counts commands on their way, too.
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

// kindCancelAll asks for the cancels of all open orders of an account. Each of its cancels is a
// record; it is none itself.
const kindCancelAll event.Kind = 255

// A Fault is a field of an amend that its order does not allow, and why, as a sentence for the
// client.
type Fault struct{ Field, Text string }

// A cancelAll is one command to cancel all open orders of an account that pass a filter, while its
// wallet carries it out. The wallet sends one cancel for each order, some at a time, and
// answers once, when the last cancel is released. A wallet runs one cancelAll at a time. A dead
// man's switch that fires is one, too.
type cancelAll struct {
	parent *Command // of kind kindCancelAll, or KindSwitch
	ids    []uint64 // still to be sent
	out    int      // sent and not released
}
