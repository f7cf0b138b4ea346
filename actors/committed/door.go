package committed

import (
	"errors"
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
	history   persistence.History

	reading    atomic.Int64 // reads in flight
	completing atomic.Int64 // of them, reads that complete the answer to a command
	private    accountReads // private reads in flight
}

// ReadLimits bound reads.
type ReadLimits struct {
	Reads      int           // in flight
	PerAccount int           // private ones of one account; 0: as many as there may be
	Patience   time.Duration // until a read is given up
}

// A ReadHost is the engine, as a door needs it.
type ReadHost interface {
	// Stopping reports whether reads are closed.
	Stopping() bool
	// Confirmed is nil while the store has lately confirmed that this process owns it.
	Confirmed() error
	// TurnAway counts and returns the error of a read that is not admitted.
	TurnAway(why Refusal) error
}

// A Refusal is why a read is not admitted.
type Refusal uint8

// The refusals.
const (
	RefusedBusy        Refusal = iota // too many reads are in flight
	RefusedAccountBusy                // too many of this account
	RefusedStopping                   // the engine stops
)

// NewDoor makes the door to a committed side. A read is given up when dead is closed.
func NewDoor(side *Side, host ReadHost, s mailbox.Scheduler, dead <-chan struct{},
	limits ReadLimits, store persistence.History) *Door {
	return &Door{side: side, host: host, scheduler: s, dead: dead, limits: limits,
		meter: side.meter, history: watched{store, side.meter}}
}

// BeginRead takes a slot among the reads in flight, which EndRead gives back. A handler that goes on
// to the history holds one from its question until the store has answered: a slow store has no more
// queries at once than there are slots, and an orderly stop waits for them. A read that completes
// the answer to a command (followUp) has slots of its own, and is not refused because the engine
// stops. Errors: ErrBusy, ErrStopping.
func (d *Door) BeginRead(followUp bool) error {
	why := RefusedBusy
	if d.readers(followUp).Add(1) <= int64(d.limits.Reads) {
		// after the count: a drain sees it, or it sees the drain
		if followUp || !d.host.Stopping() {
			return nil
		}
		why = RefusedStopping
	}
	d.EndRead(followUp)
	return d.host.TurnAway(why)
}

// EndRead ends what BeginRead has begun.
func (d *Door) EndRead(followUp bool) { d.readers(followUp).Add(-1) }

func (d *Door) readers(followUp bool) *atomic.Int64 {
	if followUp {
		return &d.completing
	}
	return &d.reading
}

// ReadsInFlight returns how many reads are in flight.
func (d *Door) ReadsInFlight() int64 { return d.reading.Load() + d.completing.Load() }

// accountReads counts the private reads in flight, by account. Few accounts have any at a time.
type accountReads struct {
	mu sync.Mutex
	of map[uint32]int
}

// begin takes a place; false: the account has as many as it may.
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

// Ask sends a read and waits for its answer, which is in r. With a key it is private: its nonce is
// taken by the account's wallet first, and Account is set. Errors: ErrNonce, ErrTimeout (r is not
// the caller's any more: no Free), and the ones of admission.
func (d *Door) Ask(r *Read, key *directory.Key, nonce uint64) error {
	if err := d.BeginRead(r.FollowUp); err != nil {
		return err
	}
	defer d.EndRead(r.FollowUp)
	err := d.AskWithin(r, key, nonce)
	if !errors.Is(err, ErrTimeout) {
		r.leavePlace()
	}
	return err
}

// AskWithin is Ask for a caller that already holds a place from BeginRead. A private read takes a
// place among its account's, too, and holds it until Free: a caller that goes on to the history
// frees it after that.
func (d *Door) AskWithin(r *Read, key *directory.Key, nonce uint64) error {
	to := d.side.pid
	if key != nil {
		if err := d.host.Confirmed(); err != nil {
			return err
		}
		if most := d.limits.PerAccount; most > 0 {
			if !d.private.begin(key.Account.ID, most) {
				return d.host.TurnAway(RefusedAccountBusy)
			}
			r.place = true
		}
		r.key, r.nonce, r.Account = key, nonce, key.Account.ID
		to = key.Account.Wallet
	}
	r.door = d
	r.stage.Store(readSent)
	d.side.root.Send(to, r)
	if !d.scheduler.Await(r.reply, d.dead, r.timer, d.limits.Patience) {
		if r.leave() {
			d.meter.UnansweredReads.Add(1)
			return ErrTimeout
		}
		<-r.reply // it came at the last moment
	}
	return r.Err
}

// View answers ReadLevels, ReadDepth, ReadTicker and ReadCandles of a pair: from its viewCache if what
// is there is current, otherwise from the committed state. Errors are those of Ask.
func (d *Door) View(kind ReadKind, p *directory.Pair, frame market.Frame, limitBuy,
	limitSell int) (*View, error) {
	arrived := d.side.released.Load()
	if v := d.side.caches[p.Number-1].find(kind, frame, limitBuy, limitSell,
		d.side.folded.Load() >= arrived); v != nil {
		return v, nil
	}
	r := NewRead(kind)
	r.Pair, r.Frame, r.LimitBuy, r.LimitSell = p.Number, frame, limitBuy, limitSell
	if err := d.Ask(r, nil, 0); err != nil {
		return nil, err
	}
	v := r.View
	r.Free()
	return v, nil
}

// History answers lists from the store; ask with a Read first, which says up to where it is exact.
func (d *Door) History() persistence.History { return d.history }
