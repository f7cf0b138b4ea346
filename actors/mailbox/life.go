package mailbox

import (
	"context"
	"sync"
	"time"
)

// A Life lasts from the start of an engine, or of a node, to its orderly end, or to an earlier
// failure. All waits for replies and counters go through it.
type Life struct {
	scheduler Scheduler
	request   time.Duration // timeout of a handler's wait
	once      sync.Once
	dead      chan struct{} // closed by Fail
	failure   error         // set before dead is closed
	over      chan struct{} // closed by End
	ending    sync.Once
}

// Begin initialises the life; request is the timeout of a handler's wait.
func (l *Life) Begin(s Scheduler, request time.Duration) {
	l.scheduler, l.request = s, request
	l.dead, l.over = make(chan struct{}), make(chan struct{})
}

// Fail ends the life for a reason, and reports whether it was the first failure: then first runs
// before the failure is visible.
func (l *Life) Fail(err error, first func()) (failed bool) {
	l.once.Do(func() {
		first()
		l.failure, failed = err, true
		close(l.dead)
	})
	return failed
}

// Dead is closed after Fail; Err returns the reason. The outcome of a command that still waits is
// then unknown.
func (l *Life) Dead() <-chan struct{} { return l.dead }

// Err returns the failure; nil: none.
func (l *Life) Err() error {
	select {
	case <-l.dead:
		return l.failure
	default:
		return nil
	}
}

// End stops the goroutines that wait for Over.
func (l *Life) End() { l.ending.Do(func() { close(l.over) }) }

// Over is closed by End.
func (l *Life) Over() <-chan struct{} { return l.over }

// Await reports whether a reply came within a request's timeout. Otherwise the actor owns the
// message.
func (l *Life) Await(reply <-chan struct{}, timer *time.Timer) bool {
	return l.scheduler.Await(reply, l.dead, timer, l.request)
}

// AwaitSince is Await for a request that began at a moment. A reply that is present always counts.
func (l *Life) AwaitSince(began time.Time, reply <-chan struct{}, timer *time.Timer) bool {
	select {
	case <-reply:
		return true
	default:
	}
	left := l.request - time.Since(began)
	return left > 0 && l.scheduler.Await(reply, l.dead, timer, left)
}

// Until waits for a condition on counters. The error is the failure, or the context's.
func (l *Life) Until(ctx context.Context, condition func() bool) error {
	if l.scheduler.Until(ctx, l.dead, condition) {
		return nil
	}
	if err := l.Err(); err != nil {
		return err
	}
	return ctx.Err()
}
