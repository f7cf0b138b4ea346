package owner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"exchange/actors/mailbox"
	"exchange/actors/metrics"
	"exchange/persistence"
)

// Options define which store is claimed, for whom, and how long signs of life may be missing.
type Options struct {
	Store persistence.Store
	Owner string // for people: host and process
	// Identity keeps the claims of this host; nil: no other process uses the store, and a claim
	// never waits.
	Identity Identity
	TakeOver bool // claims the store even from an owner that may be alive
	// StandsBy receives the owner that a claim waits for, and "" when the wait ends; optional.
	StandsBy func(owner string)
	Waits    func()        // called whenever a claim starts to wait for another owner
	Check    time.Duration // between two heartbeats
	Stale    time.Duration // age of the last confirmation from which private reads are refused
	Log      *slog.Logger
}

// An Identity keeps a host's ownerships in its data folder, which one process at a time uses. Save
// is durable.
type Identity interface {
	Load() (persistence.Ownerships, error)
	Save(persistence.Ownerships) error
}

// A Hold is this process's hold on the store, from its claim to the engine's end. Its goroutine
// (Run) writes a heartbeat every Options.Check, even while the engine recovers and while the
// journal's writer waits for an append. Only heartbeats confirm that this process owns the store. A
// standby sees each, so the time since the last one it saw bounds how long this process may serve
// private reads.
type Hold struct {
	Token persistence.Token // of the owner's appends; set by the claim, as Last
	Last  uint64            // last sequence of the journal at the claim

	store        persistence.Journal
	check, stale time.Duration
	log          *slog.Logger
	leads        func() bool // whether the store accepts appends, as far as it can tell
	// longest time without confirmation before the hold is lost; 0: unlimited
	silence time.Duration
	opens   time.Time    // earliest time at which admission may open; zero: at once
	open    func() error // notes that admission opens; optional

	// start of the newest request that the store confirmed, by metrics.Now
	checked  atomic.Int64
	released atomic.Bool // the store is released, or about to be
	unfit    atomic.Bool // by the newest answer the store may lose new appends
	logged   string      // newest failure of the store in the log; "": none; the goroutine's

	mu     sync.Mutex
	lost   error       // why this process lost the store; guarded by mu
	onLost func(error) // nil until the engine exists; guarded by mu

	ending  sync.Once
	stop    chan struct{} // closed by End
	stopped chan struct{} // closed when the goroutine has ended
}

// Claim waits until this process may own the store, and makes it the owner. Scheduler runs the
// goroutine of the Hold. ErrStandby: ctx ended during the wait for another owner.
func Claim(ctx context.Context, o *Options, s mailbox.Scheduler) (*Hold, error) {
	w := newHold(o)
	var err error
	if o.Store.Exclusive() || o.Identity == nil {
		err = w.acquire(ctx, o.Store,
			persistence.Claim{Owner: o.Owner, Heartbeat: o.Heartbeat(), Insist: o.TakeOver})
	} else {
		err = (&applicant{o: o, watch: persistence.OwnerWatch{Heartbeat: o.Heartbeat()}}).claim(ctx,
			w)
	}
	return w.begin(o, s, err)
}

// Lead makes a leading node the owner of its replica. leads reports whether it still leads; the
// Hold is lost once no majority has confirmed it for longer than silence.
func Lead(ctx context.Context, o *Options, s mailbox.Scheduler, leads func() bool,
	silence time.Duration) (*Hold, error) {
	w := newHold(o)
	w.leads, w.silence = leads, silence
	return w.begin(o, s,
		w.acquire(ctx, o.Store, persistence.Claim{Owner: o.Owner, Heartbeat: o.Heartbeat()}))
}

func newHold(o *Options) *Hold {
	return &Hold{store: o.Store, check: o.Check, stale: o.Stale, log: o.Log,
		stop: make(chan struct{}), stopped: make(chan struct{}),
		leads: func() bool { return true }}
}

func (w *Hold) begin(o *Options, s mailbox.Scheduler, err error) (*Hold, error) {
	if err != nil {
		return nil, fmt.Errorf("taking over %v: %w", o.Store, err)
	}
	s.Start(w)
	return w, nil
}

// Heartbeat returns the heartbeat timing of this process as an owner.
func (o *Options) Heartbeat() persistence.Heartbeat {
	return persistence.Heartbeat{Check: o.Check, Stale: o.Stale}
}

func (w *Hold) acquire(ctx context.Context, store persistence.Store,
	c persistence.Claim) (err error) {
	asked := metrics.Now()
	if w.Token, w.Last, err = store.Acquire(ctx, c); err == nil {
		w.checked.Store(asked)
	}
	return err
}

// Leads reports whether the store accepts this process's appends, as far as it can tell.
func (w *Hold) Leads() bool { return w.leads() }

// Unfit reports whether the store may lose new appends, by its newest answer.
func (w *Hold) Unfit() bool { return w.unfit.Load() }

// Released reports whether the store is released, or about to be.
func (w *Hold) Released() bool { return w.released.Load() }

// Checked returns the start of the newest request that the store confirmed, by metrics.Now.
func (w *Hold) Checked() int64 { return w.checked.Load() }

// Stopped is closed after the last heartbeat.
func (w *Hold) Stopped() <-chan struct{} { return w.stopped }

// Run writes heartbeats until the hold ends.
func (w *Hold) Run() {
	defer close(w.stopped)
	beats := time.NewTicker(w.check)
	defer beats.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-beats.C:
			if !w.beat() {
				return
			}
		}
	}
}

// beat writes a heartbeat. It returns false if another process owns the store, or if the store lost
// this owner or a tail.
func (w *Hold) beat() bool {
	ctx, cancel := context.WithTimeout(context.Background(), w.stale)
	defer cancel()
	asked := metrics.Now()
	err := w.store.Check(ctx, w.Token)
	switch {
	case err == nil:
		w.checked.Store(asked)
		w.unfit.Store(false)
		w.logged = ""
	case errors.Is(err, persistence.ErrFenced), errors.Is(err, persistence.ErrCorrupt),
		errors.Is(err, persistence.ErrGap):
		w.lose(err)
		return false
	default:
		if errors.Is(err, persistence.ErrConfirmed) { // the heartbeat is there: reads continue
			w.checked.Store(asked)
		}
		w.fails(err)
		if silent := time.Duration(metrics.Now() - w.checked.Load()); w.silence > 0 &&
			silent > w.silence {
			w.lose(fmt.Errorf("%w for %v: %w", ErrNotConfirmed,
				silent.Round(time.Millisecond), err))
			return false
		}
	}
	return true
}

// ErrNotConfirmed refuses operations reserved for the store's owner.
var ErrNotConfirmed = errors.New("the store has not confirmed lately that this process owns it")

// fails notes that the store is unfit, or has not confirmed this owner, and logs each kind of
// failure once.
func (w *Hold) fails(err error) {
	what := "the store does not answer" // its last answer on its fitness still counts
	switch {
	case errors.Is(err, persistence.ErrNotDurable):
		what = persistence.ErrNotDurable.Error()
		w.unfit.Store(true)
	case errors.Is(err, persistence.ErrNotInEffect):
		what = persistence.ErrNotInEffect.Error()
		w.unfit.Store(true)
	}
	if w.logged != what {
		w.logged = what
		w.log.Warn(what, "error", err)
	}
}

// lose notes that this process no longer owns the store, and notifies the engine.
func (w *Hold) lose(err error) {
	w.mu.Lock()
	w.lost = err
	tell := w.onLost
	w.mu.Unlock()
	if tell != nil {
		tell(err)
	}
}

// Watch registers a callback for the loss of the store. An error means that it is already lost.
func (w *Hold) Watch(tell func(error)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onLost = tell
	return w.lost
}

// End stops the heartbeats. In the store this process remains the owner.
func (w *Hold) End() { w.ending.Do(func() { close(w.stop) }) }

// Release gives up ownership of the store, so that the next owner need not wait. Commands and reads
// must have ended, and no private read may start after it.
func (w *Hold) Release(ctx context.Context) error {
	w.released.Store(true)
	w.End()
	select {
	case <-w.stopped:
	case <-ctx.Done():
		return ctx.Err()
	}
	return w.store.Release(ctx, w.Token)
}

// AwaitOpening waits until admission may open: until an earlier owner that may be alive serves no
// more reads.
func (w *Hold) AwaitOpening(ctx context.Context) error {
	if w.opens.IsZero() {
		return nil
	}
	if wait := time.Until(w.opens); wait > 0 {
		w.log.Warn(
			"the store was taken from an owner that may still run: admission opens when that one "+
				"answers no read any more",
			"after", wait.Round(time.Millisecond))
		if err := mailbox.Pause(ctx, wait); err != nil {
			return err
		}
	}
	return w.open()
}
