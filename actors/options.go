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

// Options configure an engine. The configuration's documentation explains the limits and times to
// operators. Each limit and time must be set.
type Options struct {
	Store persistence.Store
	Owner string // of the store, for people: host and process
	// Identity stores this host's claims to the store. nil: no other process uses the store, and a
	// start never waits.
	Identity owner.Identity
	// Histories stores the histories that the store has had. A start refuses another store with
	// ErrForeign, and an empty one with ErrAbsent, unless NewExchange. nil: every store is
	// accepted.
	Histories   Histories
	NewExchange bool
	// TakeOver claims the store even from an owner that may be alive.
	TakeOver bool
	// StandsBy receives the owner that this start waits for, and "" after the wait; optional.
	StandsBy   func(owner string)
	Currencies []directory.Currency
	Pairs      []directory.PairRules
	Limits     Limits
	// Market gives access to the currencies, pairs and limits that all nodes have agreed on; nil:
	// the options hold them.
	Market     *Market
	Timing     Timing
	Snapshot   committed.SnapshotPolicy
	Withdrawal WithdrawalPolicy
	// Mail sends one mail of the outbox; nil: mails stay there, and Withdraw returns ErrNoMail. One
	// goroutine calls it, and retries after an error other than ErrNeverMailed, and after a crash.
	// Mail bounds its time, and returns when ctx ends.
	Mail func(context.Context, *Mail) error
	// Retention is the store's: lists in memory show no older rows.
	Retention persistence.Retention
	// Sealer returns the keys that seal API secrets. sealed: the store may already hold such
	// secrets, so Sealer makes no new key, and its error wraps fs.ErrNotExist without a key. A
	// start calls it so before it claims the store, and again afterwards if there was no key.
	Sealer func(sealed bool) (*seal.Sealer, error)
	// RevokeLost revokes API keys whose secrets none of Sealer's keys opens, by records of this
	// start. Their owners get a mail, and previously mailed codes expire. Sealer may then make a
	// key. On a node only the first term revokes.
	RevokeLost bool
	// Check returns why a stored state must not be served, else nil. A start calls it before it
	// claims the store and before it writes. secret returns the secret of one of the state's API
	// keys. nil: every state may be served.
	Check func(s *state.State, secret func(*state.Key) ([]byte, error)) error
	// KeyMaterial turns an API secret into the material that verifies requests: Key.Material.
	KeyMaterial func(secret []byte) any
	// Edge verifies requests forwarded by observers; nil: they are refused.
	Edge Edge
	// Archive stores the journal durably up to a sequence before it is trimmed, and returns the
	// sequence up to which trimming is safe; nil: trimmed records are lost. by authenticates the
	// archive, history is the journal's history id.
	Archive func(ctx context.Context, store persistence.Store, by persistence.Authority,
		history persistence.HistoryID, upTo uint64) (trim uint64, err error)
	// Operators answers one operator's request forwarded by another node, whatever the connection
	// sends, and closes it. from is that node's authenticated name. nil: none is accepted.
	Operators func(from string, conn net.Conn)
	Log       *slog.Logger
	// Scheduler schedules actors; nil: mailbox.Runners. Simulations use others.
	Scheduler mailbox.Scheduler
	// ClockError is the error of the clock that stamps records; nil: none. Simulations and the demo
	// set it: the demo's first day lies in the past. Any goroutine calls it.
	ClockError func() time.Duration
	// OnStart receives the recovered state before the first write: the demo sets its clock by it.
	// Optional.
	OnStart func(s *state.State)
	// NotReady returns why a follower may not yet show a state, nor forward clients' commands. It
	// returns nil if it may; optional. The committed side's turn calls it.
	NotReady func(s *state.State) error
	// Exit ends the process when an invariant breaks. In production it must not return.
	Exit func(code int)

	// Agreed is the text of the market part of these options; nil: see Market. Package node sets
	// it.
	Agreed []byte
	Tests  Sizes // zero in production

	seen *committed.Preview // the store before the claim; nil: not read
}

// Sizes are reduced limits for tests; 0: the usual ones.
type Sizes struct {
	StepRows int // rows of one projection
	AtOnce   int // batches that overtake a read
	Candles  int // candles of a chart in memory
	rowRefs  int // rows per lookup of an audit
	deposits int // deposits per comparison of an audit
}

// OwnerOptions returns the options of a claim. A claim that waits drops the precheck's copy of the
// store: it ages, and takes memory.
func (o *Options) OwnerOptions() *owner.Options {
	return &owner.Options{Store: o.Store, Owner: o.Owner, Identity: o.Identity,
		TakeOver: o.TakeOver, StandsBy: o.StandsBy, Waits: func() { o.seen = nil },
		Check: o.Timing.OwnerCheck, Stale: o.Timing.OwnerStale, Log: o.Log}
}

// nowUs returns the stamp of a record made now, if the newest one is not later.
func (o *Options) nowUs() int64 {
	now := time.Now().UnixMicro()
	if o.ClockError != nil {
		now += o.ClockError().Microseconds()
	}
	return now
}

// NotifyStart calls OnStart with the recovered state, which must not change meanwhile.
func (o *Options) NotifyStart(s *state.State) {
	if o.OnStart != nil {
		o.OnStart(s)
	}
}

// A Market is the market part of a node's configuration, which the nodes of a cluster agree on.
type Market struct {
	// Text returns an applied part as text of a format of entries, completed from the node's own;
	// nil: the node's own. An error wraps ErrConfig.
	Text func(applied []byte, format uint8) ([]byte, error)
	// Use applies an agreed text to a copy of the options. An error wraps ErrConfig.
	Use func(text []byte, o *Options) error
}

// Limits bound an engine's contents.
type Limits struct {
	InFlight             int // commands between admission and release
	InFlightCancels      int // slots of these reserved for cancels
	InFlightPerAccount   int // commands of one account; an eighth is reserved for cancels
	Reads                int // reads in flight
	ReadsPerAccount      int // private reads of one account; 0: the same as Reads
	MaxFills             int // fills of one order; the rest of it is cancelled
	OpenOrdersPerAccount int
	OpenOrdersPerBook    int
	PendingWithdrawals   int // pending withdrawals of one account
	KeysPerAccount       int // live keys of one account
	Accounts             int
	FoldLag              int // greatest lag of the committed state, in records
	ProjectionLag        int // greatest lag of the store, in rows
	BatchBytes           int
	Batch                int // orders, changes and cancels in one client request

	OpenOrdersPerAccountAndBook int

	// orders that wait for a trigger, and orders that expire
	StopsPerAccountAndBook int
	StopsPerBook           int
	GTDPerAccountAndBook   int
	GTDPerBook             int
	// triggered orders in flight, beside one of each book
	TriggersInFlight int

	// OwnBytes is the memory for account events kept for reconnecting clients.
	OwnBytes int
}

// Timing holds the waits and deadlines of an engine.
type Timing struct {
	Request    time.Duration // a handler's wait before it answers "outcome unknown"
	Stall      time.Duration // an append's wait before new commands are refused
	StallMax   time.Duration // an append's wait before the process gives up
	OwnerCheck time.Duration // between an owner's heartbeats, and between a standby's checks
	OwnerStale time.Duration // age of the last confirmation from which private reads are refused
	Projection time.Duration // between two projections
	// SwitchGrace is the wait after a maintenance of a dead man's switch that came due in it.
	SwitchGrace time.Duration
}

// A WithdrawalPolicy configures how withdrawals are confirmed.
type WithdrawalPolicy struct {
	CodeValid time.Duration // validity of a code; later a new one is mailed
	CodeTries int           // wrong codes for one withdrawal, after which it can only be cancelled
}

// DefaultLimits, DefaultTiming, DefaultWithdrawal and DefaultSnapshot are the documented defaults.
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

// Errors of commands and reads that are not admitted. No nonce was used and nothing changed.
var (
	ErrStopping    = errors.New("the exchange is stopping")
	ErrStalled     = errors.New("the store does not take writes")
	ErrBusy        = errors.New("too many requests are in flight")
	ErrAccountBusy = errors.New("too many requests of this account are in flight")
	ErrBehind      = errors.New("the committed state or the store is too far behind")
	ErrNotQuiet    = errors.New("the commands in flight did not finish in time")
	ErrPaused      = errors.New("the books are being compared, for a moment")
	ErrMaintenance = errors.New("the exchange is in maintenance")
	ErrDropped     = errors.New("the client's socket was ended by another one")
	ErrNoMail      = errors.New(
		"without a mail server no code could be mailed that confirms a withdrawal")
	ErrNotConfirmed = owner.ErrNotConfirmed
)

// ErrConfig is wrapped if the configuration contradicts the store's content.
var ErrConfig = errors.New("the configuration does not fit the stored state")

// exitBroken is the code for Options.Exit when an invariant breaks: EX_SOFTWARE of sysexits.h.
const exitBroken = 70

// A Mail informs an account about one of its withdrawals: its confirmation code, or its refusal.
type Mail struct {
	id         uint64 // the same for every try in one history
	history    event.HistoryID
	To         string // address
	Account    string // name
	Currency   string // code
	Code       string // "": the withdrawal was refused
	Valid      time.Duration
	Withdrawal state.Withdrawal
	// Change is the reported change of the account; no account: the mail is about the withdrawal.
	Change state.AccountChange
}

// MessageID returns an id that is the same for every try in one history, and unique over all
// histories. A mail that waits over a new history gets another id, so a mail server cannot
// recognise it as a repeat.
func (m *Mail) MessageID() string { return fmt.Sprintf("%s.%d", m.history, m.id) }

// Histories stores the ids of a store's histories, and its Beat.Origin. Any goroutine may call it.
type Histories interface {
	// Known returns the ids, the newest last; none: no known store.
	Known() ([]persistence.HistoryID, error)
	// Remember makes an id one of the newest, durably.
	Remember(persistence.HistoryID) error
	// Forget forgets all ids, durably.
	Forget() error
}
