package actors

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/actors/seal"
	"exchange/core/state"
	"exchange/persistence"
)

// Options are what an engine is started with. The configuration's documentation says what the
// limits and times mean to an operator; every one must be set.
type Options struct {
	Store persistence.Store
	Owner string // of the store, for people: host and process
	// Identity remembers the claims of this host to the store. nil: no other process uses the
	// store, and a start never waits.
	Identity Identity
	// TakeOver claims the store also from an owner that may live.
	TakeOver bool
	// StandsBy is told for which owner this start waits, and "" when it waits no more; nil: that is
	// of no interest.
	StandsBy   func(owner string)
	Currencies []directory.Currency
	Pairs      []directory.PairRules
	Limits     Limits
	Timing     Timing
	Snapshot   committed.SnapshotPolicy
	Withdraw   WithdrawPolicy
	// Mail sends one mail of the outbox; nil: they stay there, and Withdraw is ErrNoMail. It is
	// called by one goroutine, again after an error that is not ErrNeverMailed, and again after a
	// crash. It bounds its time, and returns when ctx ends.
	Mail func(context.Context, *Mail) error
	// Retention is the store's: lists in memory do not show more.
	Retention persistence.Retention
	// Sealer gives the key that API secrets are sealed with. sealed says that the store holds such
	// secrets already, or may: then a new key would be of no use, and fs.ErrNotExist says that
	// there is none. It is asked so before the store is taken over, and again after that if there
	// was none.
	Sealer func(sealed bool) (*seal.Sealer, error)
	// Check says why a stored state must not be served, nil if it may be: before the store is taken
	// over and before anything is written. secret is that of one of its API keys. nil: every state
	// may.
	Check func(s *state.State, secret func(*state.Key) ([]byte, error)) error
	// KeyMaterial turns an API secret into what requests are verified with; Key.Material has it.
	KeyMaterial func(secret []byte) any
	// Archive keeps what the journal has up to a sequence, durably, before it is trimmed, and says
	// up to where it may be; nil: what is trimmed is forgotten. by authenticates it, history is the
	// id of the journal's.
	Archive func(ctx context.Context, store persistence.Store, by persistence.Authority,
		history persistence.HistoryID, upTo uint64) (trim uint64, err error)
	Log *slog.Logger
	// Exit ends the process when an invariant breaks. It must not return in production.
	Exit func(code int)

	scheduler mailbox.Scheduler // nil: mailbox.Runners
	stepRows  int               // tests cut projections earlier; 0: as usual
	candles   int               // tests keep fewer of a chart in memory; 0: as usual
	rowRefs   int               // tests have audits look for fewer rows at once; 0: as usual
	deposits  int               // tests have audits compare fewer deposits at once; 0: as usual
}

// Limits bound what an engine holds.
type Limits struct {
	InFlight             int // commands between admission and release
	InFlightCancels      int // of these, kept for cancels
	InFlightPerAccount   int // an eighth is kept for cancels
	Reads                int // reads in flight
	ReadsPerAccount      int // private ones of one account; 0: as many as there may be
	MaxFills             int // of one order; what remains is cancelled
	OpenOrdersPerAccount int
	OpenOrdersPerBook    int
	PendingWithdraws     int // of one account
	KeysPerAccount       int // live ones
	Accounts             int
	FoldLag              int // records the committed state may be behind
	ProjectionLag        int // rows the store may be behind
	BatchBytes           int

	OpenOrdersPerAccountAndBook int // of one account in one book
}

// Timing has the waits and deadlines of an engine.
type Timing struct {
	Request    time.Duration // until a handler answers "outcome unknown"
	Stall      time.Duration // of an append, until new commands are refused
	StallMax   time.Duration // of an append, until the process gives up
	OwnerCheck time.Duration // between two beats of an owner, and between two looks of a standby
	OwnerStale time.Duration // age of the last confirmation from which private reads are refused
	Projection time.Duration // between two projections
}

// A WithdrawPolicy says how withdraws are confirmed.
type WithdrawPolicy struct {
	CodeValid time.Duration // of the code that is mailed; later a new one is
	CodeTries int           // wrong codes for one withdraw, until it can only be cancelled
}

// DefaultLimits, DefaultTiming, DefaultWithdraw and DefaultSnapshot are those of the
// configuration's documentation.
var (
	DefaultLimits = Limits{InFlight: 20_000, InFlightCancels: 2_000, InFlightPerAccount: 256,
		Reads: 4_096, ReadsPerAccount: 64, MaxFills: 10_000,
		OpenOrdersPerAccount: 100_000, OpenOrdersPerBook: 5_000_000,
		OpenOrdersPerAccountAndBook: 5_000, PendingWithdraws: 100, KeysPerAccount: 100,
		Accounts: 1_000_000,
		FoldLag:  200_000, ProjectionLag: 500_000, BatchBytes: 256 << 10}
	DefaultTiming = Timing{Request: 5 * time.Second, Stall: 250 * time.Millisecond,
		StallMax:   time.Minute,
		OwnerCheck: 500 * time.Millisecond, OwnerStale: 2 * time.Second,
		Projection: 200 * time.Millisecond}
	DefaultWithdraw = WithdrawPolicy{CodeValid: time.Hour, CodeTries: 5}
	DefaultSnapshot = committed.SnapshotPolicy{MinRecords: 100_000, MaxRecords: 1_000_000,
		MinInterval: time.Minute}
)

// Why a command or a read is not admitted. None of them has used a nonce or changed anything.
var (
	ErrStopping    = errors.New("the exchange is stopping")
	ErrStalled     = errors.New("the store does not take writes")
	ErrBusy        = errors.New("too many requests are in flight")
	ErrAccountBusy = errors.New("too many requests of this account are in flight")
	ErrBehind      = errors.New("the committed state or the store is too far behind")
	ErrNotQuiet    = errors.New("the commands in flight did not come to their end in time")
	ErrPaused      = errors.New("the books are being compared, for a moment")
	ErrMaintenance = errors.New("the exchange is in maintenance")
	ErrNoMail      = errors.New(
		"without a mail server no code could be mailed that confirms a withdraw")
	ErrNotConfirmed = errors.New("the store has not confirmed lately that this process owns it")
)

// ErrStandby is wrapped when a start is told to stop while it waits for another owner.
var ErrStandby = errors.New("stopped while another exchange owns the store")

// ErrConfig is wrapped when the configuration does not fit what the store holds.
var ErrConfig = errors.New("the configuration does not fit the stored state")

// exitBroken is the code for Options.Exit when an invariant breaks: EX_SOFTWARE of sysexits.h.
const exitBroken = 70
