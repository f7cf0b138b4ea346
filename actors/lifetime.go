package actors

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"exchange/actors/mailbox"
)

// A lifetime lasts from an engine's start to its orderly stop, or to the failure that ends it
// before. All waits for replies and counters go through it.
type lifetime struct {
	scheduler mailbox.Scheduler
	timing    *Timing
	stopping  atomic.Bool // no new commands and reads are taken
	failOnce  sync.Once
	dead      chan struct{} // closed by Engine.fail
	failure   error         // set before dead is closed
	stop      chan struct{} // ends the ticker and the projector; closed by end
	ending    sync.Once
}

// begin makes the lifetime of an engine that is about to start.
func (l *lifetime) begin(scheduler mailbox.Scheduler, timing *Timing) {
	l.scheduler, l.timing = scheduler, timing
	l.dead, l.stop = make(chan struct{}), make(chan struct{})
}

// Dead is closed when the engine has failed; Err says why. The outcome of a command that still
// waits is then unknown.
func (l *lifetime) Dead() <-chan struct{} { return l.dead }

// Err returns why the engine is dead; nil: it lives.
func (l *lifetime) Err() error {
	select {
	case <-l.dead:
		return l.failure
	default:
		return nil
	}
}

// end ends the goroutines that wait for it.
func (l *lifetime) end() { l.ending.Do(func() { close(l.stop) }) }

// CloseAdmission refuses new commands and reads from now on.
func (l *lifetime) CloseAdmission() { l.stopping.Store(true) }

// await reports whether a reply came within the time of a request. Otherwise the message belongs to
// its actor.
func (l *lifetime) await(reply <-chan struct{}, timer *time.Timer) bool {
	return l.scheduler.Await(reply, l.dead, timer, l.timing.Request)
}

// awaitSince is await for a request that began at a moment. A reply that is there counts in any
// case.
func (l *lifetime) awaitSince(began time.Time, reply <-chan struct{}, timer *time.Timer) bool {
	select {
	case <-reply:
		return true
	default:
	}
	left := l.timing.Request - time.Since(began)
	return left > 0 && l.scheduler.Await(reply, l.dead, timer, left)
}

// until waits for a condition on counters. An error is the engine's end, or the context's.
func (l *lifetime) until(ctx context.Context, condition func() bool) error {
	if l.scheduler.Until(ctx, l.dead, condition) {
		return nil
	}
	if err := l.Err(); err != nil {
		return err
	}
	return ctx.Err()
}
