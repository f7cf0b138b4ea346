package actors

import (
	"fmt"
	"log/slog"
	"time"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/actors/metrics"
	"exchange/core/event"
)

// A ticker triggers projections, and the due work of books and switches, at every interval. It also
// watches the append in flight and the clock.
type ticker struct {
	life      *mailbox.Life
	timing    *Timing
	journal   *journal
	committed *committed.Side
	wake      func() // wakes books with due orders
	fire      func() // fires due dead man's switches
	log       *slog.Logger
	clock     clockWatch
	projected time.Time // when a projection was last requested
	pause     projectionPause
}

// A projectionPause delays projections while the store's server rewrites its file: the rewrite
// takes a core and the disk, which appends need. Later, larger projections cost less. A read that
// needs missing rows does not wait. The ticker owns it.
type projectionPause struct {
	rewriting func() bool // nil: the store never does
	most      int64       // greatest lag of the store, in rows
	since     time.Time   // start of the rewrite when first seen; zero: none
}

// maxPause is the longest pause, which bounds the lag by time, too.
const maxPause = time.Minute

// mustWait reports whether projections wait, with the store's lag in rows.
func (r *projectionPause) mustWait(now time.Time, lag int64) bool {
	switch {
	case r.rewriting == nil || !r.rewriting():
		r.since = time.Time{}
		return false
	case r.since.IsZero():
		r.since = now
	}
	return lag < r.most && now.Sub(r.since) < maxPause
}

// dueEvery is the longest time between two polls of due work: the docs promise it to traders.
const dueEvery = 200 * time.Millisecond

// interval returns the time between two ticks.
func (k *ticker) interval() time.Duration { return min(k.timing.Projection, dueEvery) }

// Run ticks until the engine ends.
func (k *ticker) Run() {
	t := time.NewTicker(k.interval())
	defer t.Stop()
	for {
		select {
		case <-k.life.Over():
			return
		case <-t.C:
			k.tick()
		}
	}
}

func (k *ticker) tick() {
	now := time.Now()
	if ahead := k.clock.jumped(now.UnixNano(),
		metrics.At(now)); ahead > clockToleranceUs*time.Microsecond {
		k.log.Error(
			"the clock has jumped ahead, or the machine stood still; if it is wrong now, records "+
				"keep its time until that has come: check the time service",
			"ahead", ahead.Round(time.Millisecond), "now", now.UTC().Format(time.RFC3339))
	}
	// later than the writer itself gives up: the store's call may never return
	most := k.timing.StallMax
	if k.journal.stalledFor(metrics.Now()) > most*9/8 {
		k.journal.die(fmt.Errorf("%w after %v: an append has no outcome", ErrStalled, most))
	}
	if now.Sub(k.projected) >= k.timing.Projection-k.interval()/2 &&
		!k.pause.mustWait(now, k.committed.Unsaved()) {
		k.projected = now
		k.committed.Send(committed.Tick{})
	}
	k.wake()
	k.fire()
}

// A clockWatch detects jumps of the wall clock by comparing it with metrics.Now. One goroutine uses
// it.
type clockWatch struct {
	offset  int64 // between the clocks at the last check, nanoseconds
	started bool
}

// jumped returns how far the wall clock has jumped ahead since the last check; negative: back.
func (w *clockWatch) jumped(wall, monotonic int64) time.Duration {
	before, known := w.offset, w.started
	w.offset, w.started = wall-monotonic, true
	if !known {
		return 0
	}
	return time.Duration(w.offset - before)
}

// fireSwitches sends each due switch to its wallet, while clients may cancel.
func (e *Engine) fireSwitches() {
	e.endSessions()
	e.fireWhile(e.cancelling)
}

// fireWhile is fireSwitches while check returns nil.
func (e *Engine) fireWhile(check func(now int64) error) {
	for e.switches.hasDue(e.nowUs()) {
		c := newCommand(event.KindSwitch)
		e.stamp(c)
		if err := e.admitInternal(c, check); err != nil {
			c.Free()
			return
		}
		due, ok := e.switches.take(c.timeUs)
		if !ok {
			e.finish(c, Refused)
			return
		}
		c.account, c.trace = due.account, metrics.Trace{}
		c.switchRequest = switchRequest{fires: due.id, dueUs: due.dueUs}
		e.toWallet(due.account, c)
	}
}

// scheduleSwitch implements walletOut.
func (e *Engine) scheduleSwitch(a *directory.Account, id switchID, dueUs int64) {
	e.switches.due(a, id, dueUs)
}
