package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/actors/owner"
	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/core/state"
	"exchange/persistence"
)

// Options configure an engine. The configuration's documentation says what the limits and times
// mean to an operator. Each limit and time must be set.
type Options struct {
	Store persistence.Store
	Owner string // of the store, for people: host and process
	// Identity remembers the claims of this host to the store. nil: no other process uses the
	// store, and a start never waits.
	Identity owner.Identity
	// Histories remembers which histories the store has had. A start refuses another store with
	// ErrForeign, and an empty one with ErrAbsent, unless it begins Anew. nil: every store is
	// taken.
	Histories Histories
	Anew      bool
	// TakeOver claims the store also from an owner that may live.
	TakeOver bool
	// StandsBy hears for which owner this start waits, and "" when it waits no more; nil: no caller
	// wants to know.
	StandsBy   func(owner string)
	Currencies []directory.Currency
	Pairs      []directory.PairRules
	Limits     Limits
	// Market is how a node comes to the currencies, pairs and limits that all nodes have agreed on;
	// nil: those of the options count.
	Market     *Market
	Timing     Timing
	Snapshot   committed.SnapshotPolicy
	Withdrawal WithdrawalPolicy
	// Mail sends one mail of the outbox; nil: mails stay there, and Withdraw returns ErrNoMail. One
	// goroutine calls it, again after an error that is not ErrNeverMailed, and again after a crash.
	// It bounds its time, and returns when ctx ends.
	Mail func(context.Context, *Mail) error
	// Retention is that of the store: lists in memory show no older rows.
	Retention persistence.Retention
	// Sealer returns the keys that seal API secrets. sealed means that the store may hold such
	// secrets already: then Sealer makes no new key, and its error wraps fs.ErrNotExist if there is
	// no key. A start calls it so before it takes the store over, and once more after that if there
	// was no key.
	Sealer func(sealed bool) (*seal.Sealer, error)
	// RevokeLost revokes the API keys whose secrets none of Sealer's keys opens, by records of this
	// start. Their owners get a mail, and codes that were mailed before expire. Sealer may make a
	// key then. Of a node the first term does so, and no later one.
	RevokeLost bool
	// Check returns why a stored state must not be served, nil if it may be. A start calls it
	// before it takes the store over and before it writes. secret returns the secret of one of the
	// state's API keys. nil: every state may be served.
	Check func(s *state.State, secret func(*state.Key) ([]byte, error)) error
	// KeyMaterial turns an API secret into the material that verifies requests: Key.Material.
	KeyMaterial func(secret []byte) any
	// Edge verifies what observers pass on; nil: that is refused.
	Edge Edge
	// Archive keeps the journal up to a sequence, durably, before it is trimmed, and returns up to
	// which sequence it may be trimmed; nil: trimmed records are lost. by authenticates the
	// archive, history is the id of the journal's history.
	Archive func(ctx context.Context, store persistence.Store, by persistence.Authority,
		history persistence.HistoryID, upTo uint64) (trim uint64, err error)
	// Operators answers one operator's request that another node has passed on, whatever comes on
	// the connection, and closes that. from is the node that has proved its name. nil: none is
	// taken.
	Operators func(from string, conn net.Conn)
	Log       *slog.Logger
	// Scheduler decides which actor goes on; nil: mailbox.Runners. Simulations have others.
	Scheduler mailbox.Scheduler
	// ClockError is by how much the clock is wrong that records are stamped with; nil: it is right.
	// Simulations and the demo set it: the first day of the demo lies in the past. Any goroutine
	// calls it.
	ClockError func() time.Duration
	// Begins is told the state that an engine begins with, before that writes: the demo sets its
	// clock by it. nil: nothing is to be told.
	Begins func(s *state.State)
	// Unshown returns why a node that follows shows nothing of a state yet, and sends no clients'
	// commands on; nil, or a nil function: it does. The committed side's turn calls it.
	Unshown func(s *state.State) error
	// Exit ends the process when an invariant breaks. In production it must not return.
	Exit func(code int)

	// Agreed is the market part that these are of, as text; nil: see Market. Package node sets it.
	Agreed []byte
	Tests  Sizes // zero in production

	seen *committed.Preview // the store before it is taken over; nil: nothing was seen
}

// Sizes are smaller in tests; 0: as usual.
type Sizes struct {
	StepRows int // rows of one projection
	AtOnce   int // batches that overtake a read
	Candles  int // candles of a chart in memory
	rowRefs  int // rows that an audit looks for at once
	deposits int // deposits that an audit compares at once
}

// OwnerOptions returns the options of a claim. One that waits drops what was seen of the store: it
// grows old, and takes memory.
func (o *Options) OwnerOptions() *owner.Options {
	return &owner.Options{Store: o.Store, Owner: o.Owner, Identity: o.Identity,
		TakeOver: o.TakeOver, StandsBy: o.StandsBy, Waits: func() { o.seen = nil },
		Check: o.Timing.OwnerCheck, Stale: o.Timing.OwnerStale, Log: o.Log}
}

// nowUs returns the time with which a record would be stamped now, if the newest one is not later.
func (o *Options) nowUs() int64 {
	now := time.Now().UnixMicro()
	if o.ClockError != nil {
		now += o.ClockError().Microseconds()
	}
	return now
}

// TellBegin tells Begins the state that an engine begins with, which stands still.
func (o *Options) TellBegin(s *state.State) {
	if o.Begins != nil {
		o.Begins(s)
	}
}

// A Market is the market part of a node's configuration, which the nodes of a cluster agree on.
type Market struct {
	// Text returns an applied one as text of a format of entries, with what it lacks put in from
	// the node's own; nil: the node's own. An error wraps ErrConfig.
	Text func(applied []byte, format uint8) ([]byte, error)
	// Use puts an agreed one into a copy of the options. An error wraps ErrConfig.
	Use func(text []byte, o *Options) error
}

// Limits bound what an engine holds.
type Limits struct {
	InFlight             int // commands between admission and release
	InFlightCancels      int // slots of these that are kept for cancels
	InFlightPerAccount   int // commands of one account; an eighth of the slots is kept for cancels
	Reads                int // reads in flight
	ReadsPerAccount      int // private reads of one account; 0: as many as Reads
	MaxFills             int // fills of one order; the rest of it is cancelled
	OpenOrdersPerAccount int
	OpenOrdersPerBook    int
	PendingWithdrawals   int // pending withdrawals of one account
	KeysPerAccount       int // live keys of one account
	Accounts             int
	FoldLag              int // records the committed state may be behind
	ProjectionLag        int // rows the store may be behind
	BatchBytes           int
	Batch                int // orders, changes and cancels that a client may send together

	OpenOrdersPerAccountAndBook int

	// orders that wait for a trigger, and orders that expire
	StopsPerAccountAndBook int
	StopsPerBook           int
	GTDPerAccountAndBook   int
	GTDPerBook             int
	// triggered orders on their way, beside one of each book
	TriggersInFlight int

	// OwnBytes is the memory of accounts' events that are kept for clients that come back.
	OwnBytes int
}

// Timing has the waits and deadlines of an engine.
type Timing struct {
	Request    time.Duration // wait of a handler, until it answers "outcome unknown"
	Stall      time.Duration // wait of an append, until new commands are refused
	StallMax   time.Duration // wait of an append, until the process gives up
	OwnerCheck time.Duration // between two beats of an owner, and between two looks of a standby
	OwnerStale time.Duration // age of the last confirmation from which private reads are refused
	Projection time.Duration // between two projections
	// SwitchGrace is how long a dead man's switch that came due during maintenance waits behind its
	// end.
	SwitchGrace time.Duration
}

// A WithdrawalPolicy says how withdrawals are confirmed.
type WithdrawalPolicy struct {
	CodeValid time.Duration // life of a code; later a new one is mailed
	CodeTries int           // wrong codes for one withdrawal, until it can only be cancelled
}

// DefaultLimits, DefaultTiming, DefaultWithdrawal and DefaultSnapshot are those of the
// configuration's documentation.
var (
	DefaultLimits = Limits{InFlight: 20_000, InFlightCancels: 2_000, InFlightPerAccount: 256,
		Reads: 4_096, ReadsPerAccount: 64, MaxFills: 10_000,
		OpenOrdersPerAccount: 100_000, OpenOrdersPerBook: 5_000_000,
		OpenOrdersPerAccountAndBook: 5_000, PendingWithdrawals: 100, KeysPerAccount: 100,
		Accounts: 1_000_000,
		FoldLag:  200_000, ProjectionLag: 500_000, BatchBytes: 256 << 10, Batch: 50,
		StopsPerAccountAndBook: 200, StopsPerBook: 100_000,
		GTDPerAccountAndBook: 1_000, GTDPerBook: 100_000, TriggersInFlight: 4_096,
		OwnBytes: 256 << 20}
	DefaultTiming = Timing{Request: 5 * time.Second, Stall: 250 * time.Millisecond,
		StallMax:   time.Minute,
		OwnerCheck: 500 * time.Millisecond, OwnerStale: 2 * time.Second,
		Projection: 200 * time.Millisecond, SwitchGrace: 10 * time.Second}
	DefaultWithdrawal = WithdrawalPolicy{CodeValid: time.Hour, CodeTries: 5}
	DefaultSnapshot   = committed.SnapshotPolicy{MinRecords: 100_000, MaxRecords: 1_000_000,
		MinInterval: time.Minute}
)

// The reasons why a command or a read is not admitted. It has used no nonce and changed nothing.
var (
	ErrStopping    = errors.New("the exchange is stopping")
	ErrStalled     = errors.New("the store does not take writes")
	ErrBusy        = errors.New("too many requests are in flight")
	ErrAccountBusy = errors.New("too many requests of this account are in flight")
	ErrBehind      = errors.New("the committed state or the store is too far behind")
	ErrNotQuiet    = errors.New("the commands in flight did not come to their end in time")
	ErrPaused      = errors.New("the books are being compared, for a moment")
	ErrMaintenance = errors.New("the exchange is in maintenance")
	ErrDropped     = errors.New("the client's socket was ended by another one")
	ErrNoMail      = errors.New(
		"without a mail server no code could be mailed that confirms a withdraw")
	ErrNotConfirmed = owner.ErrNotConfirmed
)

// ErrConfig is wrapped when the configuration does not fit what the store holds.
var ErrConfig = errors.New("the configuration does not fit the stored state")

// exitBroken is the code for Options.Exit when an invariant breaks: EX_SOFTWARE of sysexits.h.
const exitBroken = 70

// A Mail tells an account about one of its withdrawals: the code that confirms it, or that it was
// refused.
type Mail struct {
	id         uint64 // the same for every try in one history
	history    event.HistoryID
	To         string // address
	Account    string // name
	Currency   string // code
	Code       string // "": the withdrawal was refused
	Valid      time.Duration
	Withdrawal state.Withdrawal
	// Change is what the mail tells of the account; of no account: it is about the withdrawal.
	Change state.AccountChange
}

// MessageID returns an id that is the same for every try in one history, and of no other mail of
// any history. A mail that waits over a new history gets another id: if the mail server took it
// just before, that server cannot tell that the second mail is the same.
func (m *Mail) MessageID() string { return fmt.Sprintf("%s.%d", m.history, m.id) }

// Histories has the ids of the histories that a store has had, and its Beat.Origin. Any goroutine
// may call it.
type Histories interface {
	// Known returns the ids, the newest last; none: no store is known.
	Known() ([]persistence.HistoryID, error)
	// Remember makes an id one of the newest, durably.
	Remember(persistence.HistoryID) error
	// Forget forgets all ids, durably.
	Forget() error
}
