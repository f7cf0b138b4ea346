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

// A Door is the entry to the committed side, for handlers and the engine. It counts and bounds the
// reads in flight.
type Door struct {
	side      *Side
	host      ReadHost
	scheduler mailbox.Scheduler
	dead      <-chan struct{}
	limits    ReadLimits
	meter     *metrics.Engine
	// complete up to a question's sequence once that is answered
	history persistence.History

	normalReads   atomic.Int64 // reads in flight, without follow-ups
	followUpReads atomic.Int64 // reads in flight that complete the answer to a command
	private       accountReads // private reads in flight
	// nanoseconds until a read is given up; SetPatience may change it concurrently
	patienceNs atomic.Int64
}

// patience returns how long a read waits.
func (d *Door) patience() time.Duration { return time.Duration(d.patienceNs.Load()) }

// ReadLimits bound reads.
type ReadLimits struct {
	Reads      int           // in flight
	PerAccount int           // private reads of one account; 0: no limit
	Patience   time.Duration // until a read is given up
}

// A ReadHost is the engine, as a door needs it.
type ReadHost interface {
	// Stopping reports whether reads are closed.
	Stopping() bool
	// Confirmed is nil while the store has recently confirmed that this process owns it.
	Confirmed() error
	// Current returns a sequence that covers everything any process had answered before the call.
	// The committed side will reach it. An error means that none is known.
	Current() (seq uint64, err error)
	// Answered returns a sequence that covers the changes of every command whose outcome this
	// process has returned.
	Answered() uint64
	// ToWallet sends a read to the wallet of an account.
	ToWallet(a *directory.Account, r *Read)
	// CountRefusal counts and returns the error of a read that is not admitted.
	CountRefusal(why Refusal) error
}

// A Refusal is the reason why a read is not admitted.
type Refusal uint8

// The reasons.
const (
	RefusedBusy        Refusal = iota // too many reads are in flight
	RefusedAccountBusy                // too many reads of this account are in flight
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

// AwaitCurrent returns once later reads see everything that any process acknowledged before the
// call. Errors: those of ReadHost.Current, and ErrTimeout.
func (d *Door) AwaitCurrent() error {
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

// beginRead takes a slot for a read in flight, which endRead releases. The read must be answered
// from a state at or above after. One that completes the answer to a command (followUp) uses
// separate slots, and is not refused because the engine stops. Errors: those of CountRefusal and of
// ReadHost.Current.
func (d *Door) beginRead(followUp bool) (after uint64, err error) {
	why := RefusedBusy
	if d.readCount(followUp).Add(1) <= int64(d.limits.Reads) {
		if followUp {
			return 0, nil
		}
		// after the count, so that either a drain sees this read or this read sees the drain
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
	return 0, d.host.CountRefusal(why)
}

// endRead releases the slot of beginRead.
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

// accountReads counts the private reads in flight, by account. Only accounts with some have an
// entry.
type accountReads struct {
	mu sync.Mutex
	of map[uint32]int
}

// begin takes a slot; false: all slots of the account are taken.
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

// Ask asks one question and waits for the answer, which is filled into q. With a key the question
// is private: the account's wallet takes the nonce first, and q is about that account. After
// ErrTimeout the caller must not use q any more. Other errors: ErrNonce, ErrKeyRevoked, and those
// of admission.
func (d *Door) Ask(q Question, key *directory.Key, nonce uint64) error {
	after, err := d.beginRead(false)
	if err != nil {
		return err
	}
	v := visit{door: d, by: Client{Key: key, Nonce: nonce}, after: after}
	defer v.end()
	return v.ask(q)
}

// Image returns an image of the whole state, made by the imager; the history has caught up with it.
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

// FollowUp asks a question that completes the answer to a command whose outcome is durable. It uses
// separate slots, and is answered while the engine stops.
func (d *Door) FollowUp(q Question) error {
	v, err := d.enterFollowUp()
	if err != nil {
		return err
	}
	defer v.end()
	return v.ask(q)
}

// View returns a view of a pair: from the cache if that is current, otherwise from the committed
// state. Errors are those of Ask.
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

// A pool recycles values of one type.
type pool[T any] struct{ sync.Pool }

func (p *pool[T]) get() *T {
	if v, ok := p.Get().(*T); ok {
		return v
	}
	return new(T)
}

// keptRows bounds the memory of a pooled value, in rows.
const keptRows = 4096

// kept returns an empty list that reuses the memory of list, unless that is too large for a pool.
func kept[T any](list []T) []T {
	if cap(list) > keptRows {
		return nil
	}
	return list[:0]
}
