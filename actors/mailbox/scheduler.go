package mailbox

import (
	"context"
	"time"
)

// A Scheduler decides which goroutine runs next. Runners leave that to Go. In a simulation one
// goroutine runs at a time, a seed gives the order of everything, and each wait ends when the
// simulation chooses it. Waits for the clock and for the store do not go through a scheduler: the
// simulation replaces clock and store.
type Scheduler interface {
	// Schedule runs a mailbox that has messages and no goroutine: it calls Run once, or Turn until
	// Continue reports false.
	Schedule(m *Mailbox)
	// Start runs a task that is no actor on its own goroutine.
	Start(t Task)
	// Await takes a reply. It reports false if the timeout passes, or dead is closed, before the
	// reply. The timer is the caller's, stopped before and after.
	Await(reply, dead <-chan struct{}, timer *time.Timer, most time.Duration) bool
	// AwaitContext is Await for the lifetime of ctx.
	AwaitContext(ctx context.Context, reply, dead <-chan struct{}) bool
	// Until reports whether a condition on counters came true before ctx ended or dead was closed.
	Until(ctx context.Context, dead <-chan struct{}, condition func() bool) bool
}

// A Task is a loop that blocks: on the clock, on the store, or on a channel.
type Task interface {
	Run() // until its owner stops it
}
