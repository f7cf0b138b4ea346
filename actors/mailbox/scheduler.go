package mailbox

import (
	"context"
	"time"
)

// A Scheduler decides which goroutine goes on. Runners leave that to Go. In a simulation one
// goroutine runs at a time, a seed gives the order of everything, and each wait ends when the
// simulation chooses it. Waits for the clock and for the store are not a scheduler's concern: the
// simulation has a clock and a store of its own.
type Scheduler interface {
	// Schedule has a mailbox run that has messages and no goroutine: its Run is called once, or its
	// Turn until GoesOn reports false.
	Schedule(m *Mailbox)
	// Start runs a task that is no actor in a goroutine of its own.
	Start(t Task)
	// Await takes a reply. It reports false if the time is over before the reply is there, or dead
	// is closed. The timer is the caller's, stopped before and after.
	Await(reply, dead <-chan struct{}, timer *time.Timer, most time.Duration) bool
	// AwaitContext is Await for as long as ctx lasts.
	AwaitContext(ctx context.Context, reply, dead <-chan struct{}) bool
	// Until reports whether a condition came true, which only counters tell, before ctx was over
	// or dead was closed.
	Until(ctx context.Context, dead <-chan struct{}, condition func() bool) bool
}

// A Task is a loop of its own that blocks: on the clock, on the store, or on a channel.
type Task interface {
	Run() // until its owner ends it
}
