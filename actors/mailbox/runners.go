package mailbox

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// Runners are the ordinary Scheduler: goroutines that run mailboxes, one after the other. All
// engines of a process share them.
type Runners struct{}

// A worker is one of the goroutines. It is reused for the next mailbox with messages, because its
// stack has grown: a new goroutine for each wake-up of an actor grows its own again each time,
// which took 6 % of the processor under a full load of orders.
type worker chan *Mailbox

// idleWorkers are the waiting ones, newest on top, because its stack is the warmest. They own
// nothing.
var idleWorkers struct {
	sync.Mutex
	list []worker
}

// mostIdle bounds them: only as many as there are processors run at once, but a batch's release
// wakes the wallets of all its orders.
var mostIdle = 64 * runtime.GOMAXPROCS(0)

// Schedule runs a mailbox on a runner.
func (Runners) Schedule(m *Mailbox) {
	idleWorkers.Lock()
	n := len(idleWorkers.list)
	if n == 0 {
		idleWorkers.Unlock()
		go make(worker, 1).run(m)
		return
	}
	r := idleWorkers.list[n-1]
	idleWorkers.list = idleWorkers.list[:n-1]
	idleWorkers.Unlock()
	r <- m
}

func (r worker) run(m *Mailbox) {
	for {
		m.Run()
		idleWorkers.Lock()
		if len(idleWorkers.list) >= mostIdle {
			idleWorkers.Unlock()
			return
		}
		idleWorkers.list = append(idleWorkers.list, r)
		idleWorkers.Unlock()
		m = <-r
	}
}

// Start runs a task on its own goroutine.
func (Runners) Start(t Task) { go t.Run() }

// Await implements Scheduler.
func (Runners) Await(reply, dead <-chan struct{}, timer *time.Timer, most time.Duration) bool {
	timer.Reset(most)
	select {
	case <-reply:
		timer.Stop()
		return true
	case <-timer.C:
		return false
	case <-dead:
		timer.Stop()
		return arrived(reply)
	}
}

// AwaitContext implements Scheduler.
func (Runners) AwaitContext(ctx context.Context, reply, dead <-chan struct{}) bool {
	select {
	case <-reply:
		return true
	case <-ctx.Done():
	case <-dead:
	}
	return arrived(reply)
}

// arrived takes a reply that came before the end of its wait.
func arrived(reply <-chan struct{}) bool {
	select {
	case <-reply:
		return true
	default:
		return false
	}
}

// Until polls once a millisecond.
func (Runners) Until(ctx context.Context, dead <-chan struct{}, condition func() bool) bool {
	t := time.NewTicker(time.Millisecond)
	defer t.Stop()
	for !condition() {
		select {
		case <-dead:
			return false
		case <-ctx.Done():
			return false
		case <-t.C:
		}
	}
	return true
}

// Pause waits for d, or until ctx ends and returns its error.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
