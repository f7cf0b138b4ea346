package actors

import (
	"runtime"
	"sync"
)

// A runner is a goroutine that runs mailboxes, one after the other. It is kept for the next one
// that has something to do, because its stack has grown: a new goroutine for each wake-up of an
// actor grows its own again each time, which took 6 % of the processor under a full load of orders.
type runner chan *mailbox

// idleRunners are those that wait, the one that came last on top: its stack is the warmest. They
// are the process's, not an engine's, and own nothing.
var idleRunners struct {
	sync.Mutex
	list []runner
}

// mostIdle is how many are kept: no more than there are processors run at once, but a batch's
// release wakes the wallets of all its orders.
var mostIdle = 64 * runtime.GOMAXPROCS(0)

// startRunner lets a runner run a mailbox. Only who has scheduled the mailbox may call it.
func startRunner(m *mailbox) {
	idleRunners.Lock()
	n := len(idleRunners.list)
	if n == 0 {
		idleRunners.Unlock()
		go make(runner, 1).run(m)
		return
	}
	r := idleRunners.list[n-1]
	idleRunners.list = idleRunners.list[:n-1]
	idleRunners.Unlock()
	r <- m
}

func (r runner) run(m *mailbox) {
	for {
		m.run()
		idleRunners.Lock()
		if len(idleRunners.list) >= mostIdle {
			idleRunners.Unlock()
			return
		}
		idleRunners.list = append(idleRunners.list, r)
		idleRunners.Unlock()
		m = <-r
	}
}
