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

// A ticker makes the committed side write behind, and books and switches do what is due, at every
// interval. It also watches the append in flight and the clock.
type ticker struct {
	life      *mailbox.Life
	timing    *Timing
	journal   *journal
	committed *committed.Side
	wake      func() // has books expire and trigger what is due
	fire      func() // fires the dead man's switches that are due
	log       *slog.Logger
	clock     clockWatch
	projected time.Time // when the committed side was last asked to write behind
	rests     projectionRest
}

// A projectionRest has projections wait while the store's server rewrites its file: the rewrite
// takes a core and the disk, which appends need. Then they are written in larger steps, which cost
// less. A read that needs rows that the store lacks does not wait. The ticker owns it.
type projectionRest struct {
	rewriting func() bool // nil: the store never does
	most      int64       // rows that the store may be behind
	since     time.Time   // begin of the rewrite as it was seen; zero: there is none
}

// restLongest is the longest rest, so that what waits is bounded by time, too.
const restLongest = time.Minute

// holds reports whether projections wait, while the store is so many rows behind.
func (r *projectionRest) holds(now time.Time, behind int64) bool {
	switch {
	case r.rewriting == nil || !r.rewriting():
		r.since = time.Time{}
		return false
	case r.since.IsZero():
		r.since = now
	}
	return behind < r.most && now.Sub(r.since) < restLongest
}

// dueEvery is the longest time between two looks for what is due: the docs promise it to traders.
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
	// later than the writer itself gives up: the call of the store may never return
	most := k.timing.StallMax
	if k.journal.stalledFor(metrics.Now()) > most*9/8 {
		k.journal.die(fmt.Errorf("%w after %v: an append has no outcome", ErrStalled, most))
	}
	if now.Sub(k.projected) >= k.timing.Projection-k.interval()/2 &&
		!k.rests.holds(now, k.committed.Unsaved()) {
		k.projected = now
		k.committed.Send(committed.Tick{})
	}
	k.wake()
	k.fire()
}

// A clockWatch finds jumps of the wall clock by comparing it with the clock of metrics.Now. One
// goroutine uses it.
type clockWatch struct {
	apart int64 // distance of the two clocks at the last look, nanoseconds
	known bool
}

// jumped returns how far the wall clock has gone ahead of the other clock since the last look;
// negative: behind.
func (w *clockWatch) jumped(wall, monotonic int64) time.Duration {
	before, known := w.apart, w.known
	w.apart, w.known = wall-monotonic, true
	if !known {
		return 0
	}
	return time.Duration(w.apart - before)
}

// fireSwitches sends each switch that is due to its wallet, while clients may cancel.
func (e *Engine) fireSwitches() {
	e.endSessions()
	e.fireWhile(e.cancelling)
}

// fireWhile is fireSwitches while may returns nil.
func (e *Engine) fireWhile(may func(now int64) error) {
	for e.switches.ready(e.nowUs()) {
		c := newCommand(event.KindSwitch)
		e.stamp(c)
		if err := e.admitUnasked(c, may); err != nil {
			c.Free()
			return
		}
		due, ok := e.switches.take(c.timeUs)
		if !ok {
			e.finish(c, Refused)
			return
		}
		c.account, c.trace = due.account, metrics.Trace{}
		c.switching = switchRequest{fires: due.id, dueUs: due.dueUs}
		e.toWallet(due.account, c)
	}
}

// switchDue implements walletOut.
func (e *Engine) switchDue(a *directory.Account, id switchID, dueUs int64) {
	e.switches.due(a, id, dueUs)
}
