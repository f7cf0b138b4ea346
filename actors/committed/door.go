package committed

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/actors/metrics"
	"exchange/core/market"
	"exchange/persistence"
)

// A Door is the way to the committed side, for handlers and for the engine. It counts the reads in
// flight and bounds them.
type Door struct {
	side      *Side
	host      ReadHost
	scheduler mailbox.Scheduler
	dead      <-chan struct{}
	limits    ReadLimits
	meter     *metrics.Engine
	// exact up to a question's sequence once the question is answered
	history persistence.History

	normalReads   atomic.Int64 // reads in flight
	followUpReads atomic.Int64 // of them, reads that complete the answer to a command
	private       accountReads // private reads in flight
	// until a read is given up; SetPatience changes it while others read
	patienceNs atomic.Int64
}

// patience returns for how long a read waits.
func (d *Door) patience() time.Duration { return time.Duration(d.patienceNs.Load()) }

// ReadLimits bound reads.
type ReadLimits struct {
	Reads      int           // in flight
	PerAccount int           // private ones of one account; 0: no limit
	Patience   time.Duration // until a read is given up
}

// A ReadHost is the engine, as a door needs it.
type ReadHost interface {
	// Stopping reports whether reads are closed.
	Stopping() bool
	// Confirmed is nil while the store has lately confirmed that this process owns it.
	Confirmed() error
	// Current returns a sequence at which, or below, everything is that any process had answered
	// before the call, and which the committed side comes to. Other errors than nil: none is known.
	Current() (seq uint64, err error)
	// Answered returns a sequence at which, or below, all is that a command has changed whose
	// outcome this process has told.
	Answered() uint64
	// ToWallet gives a read to the wallet of an account.
	ToWallet(a *directory.Account, r *Read)
	// TurnAway counts and returns the error of a read that is not admitted.
	TurnAway(why Refusal) error
}

// A Refusal is the reason why a read is not admitted.
type Refusal uint8

// The reasons.
const (
	RefusedBusy        Refusal = iota // too many reads are in flight
	RefusedAccountBusy                // too many of this account
	RefusedStopping                   // the engine stops
)

// NewDoor makes the door to a committed side. A read is given up when dead is closed.
func NewDoor(side *Side, host ReadHost, s mailbox.Scheduler, dead <-chan struct{},
	limits ReadLimits, store persistence.History) *Door {
	d := &Door{side: side, host: host, scheduler: s, dead: dead, limits: limits,
		meter: side.meter, history: countingHistory{store, side.meter}}
	d.patienceNs.Store(int64(limits.Patience))
	return d
}

// Current returns once what is read from then on has all that was acknowledged before the call, by
// any process. Errors: those of ReadHost.Current, and ErrTimeout.
func (d *Door) Current() error {
	seq, err := d.host.Current()
	if err != nil || d.side.Folded() >= seq {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.patience())
	defer cancel()
	if !d.scheduler.Until(ctx, d.dead, func() bool { return d.side.Folded() >= seq }) {
		return ErrTimeout
	}
	return nil
}

// beginRead takes a slot among the reads in flight, which endRead gives back. The read is answered
// from a state at a sequence or above it. One that completes the answer to a command (followUp) has
// slots of its own, and is not refused because the engine stops. Errors: those of TurnAway and of
// ReadHost.Current.
func (d *Door) beginRead(followUp bool) (after uint64, err error) {
	why := RefusedBusy
	if d.readCount(followUp).Add(1) <= int64(d.limits.Reads) {
		if followUp {
			return 0, nil
		}
		// after the count: a drain sees it, or it sees the drain
		if why = RefusedStopping; !d.host.Stopping() {
			if after, err = d.host.Current(); err == nil {
				return after, nil
			}
		}
	}
	d.endRead(followUp)
	if err != nil {
		return 0, err
	}
	return 0, d.host.TurnAway(why)
}

// endRead ends what beginRead has begun.
func (d *Door) endRead(followUp bool) { d.readCount(followUp).Add(-1) }

func (d *Door) readCount(followUp bool) *atomic.Int64 {
	if followUp {
		return &d.followUpReads
	}
	return &d.normalReads
}

// IsOver reports whether dead is closed. Any goroutine may call it.
func (d *Door) IsOver() bool {
	select {
	case <-d.dead:
		return true
	default:
		return false
	}
}

// ReadsInFlight returns the number of reads in flight.
func (d *Door) ReadsInFlight() int64 { return d.normalReads.Load() + d.followUpReads.Load() }

// accountReads counts the private reads in flight, by account. Few accounts have any at a time.
type accountReads struct {
	mu sync.Mutex
	of map[uint32]int
}

// begin takes a slot; false: the account has no more.
func (a *accountReads) begin(account uint32, most int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of[account] >= most {
		return false
	}
	if a.of == nil {
		a.of = make(map[uint32]int)
	}
	a.of[account]++
	return true
}

func (a *accountReads) end(account uint32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of[account]--; a.of[account] == 0 {
		delete(a.of, account)
	}
}

// Ask asks one question and waits for its answer, which is in q. With a key the question is
// private: the account's wallet takes the nonce first, and q is about that account. After
// ErrTimeout q is not the caller's any more. Other errors: ErrNonce, ErrKeyRevoked, and those of
// admission.
func (d *Door) Ask(q Question, key *directory.Key, nonce uint64) error {
	after, err := d.beginRead(false)
	if err != nil {
		return err
	}
	v := visit{door: d, by: Client{Key: key, Nonce: nonce}, after: after}
	defer v.end()
	return v.ask(q)
}

// Image returns an image of the whole state, for which the history is ready. The imager makes it.
// Errors are those of Ask, and of ctx.
func (d *Door) Image(ctx context.Context) ([]byte, error) {
	if d.side.imager == nil {
		return nil, errNoImages
	}
	q := new(wholeState)
	if err := d.Ask(q, nil, 0); err != nil {
		return nil, err
	}
	select {
	case image := <-q.made:
		b := make([]byte, image.Size)
		_, err := io.ReadFull(image, b)
		return b, err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-d.dead:
		return nil, ErrTimeout
	}
}

// FollowUp asks a question that completes the answer to a command whose outcome is durable. It has
// slots of its own, and is answered while the engine stops.
func (d *Door) FollowUp(q Question) error {
	v, err := d.enterFollowUp()
	if err != nil {
		return err
	}
	defer v.end()
	return v.ask(q)
}

// View returns a view of a pair: from its view cache if what is there is current, otherwise from
// the committed state. Errors are those of Ask.
func (d *Door) View(kind ViewKind, p *directory.Pair, frame market.Frame, limitBuy,
	limitSell int) (*View, error) {
	seq, err := d.host.Current()
	if err != nil {
		return nil, err
	}
	arrived := max(seq, d.side.released.Load())
	if v := d.side.caches[p.Number-1].find(kind, frame, limitBuy, limitSell,
		d.side.folded.Load() >= arrived); v != nil {
		return v, nil
	}
	q := viewQuestions.get()
	q.Pair, q.Kind, q.frame, q.LimitBuy, q.LimitSell = p.Number, kind, frame, limitBuy, limitSell
	if err := d.Ask(q, nil, 0); err != nil {
		return nil, err
	}
	v := q.View
	*q = ViewQuestion{}
	viewQuestions.Put(q)
	return v, nil
}

// A pool keeps values of one type for their next use.
type pool[T any] struct{ sync.Pool }

func (p *pool[T]) get() *T {
	if v, ok := p.Get().(*T); ok {
		return v
	}
	return new(T)
}

// keptRows bounds the memory that a pooled value keeps.
const keptRows = 4096

// kept returns an empty list in the memory of one whose value goes back to its pool.
func kept[T any](list []T) []T {
	if cap(list) > keptRows {
		return nil
	}
	return list[:0]
}
