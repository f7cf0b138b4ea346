package actors

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// A mailbox is what every actor here receives from: two slices that swap under a mutex. The runner
// takes all that is queued in one swap, so a busy actor pays for the lock once for many messages,
// and sending allocates nothing once the slices have grown.
//
// It stays closed until Start, so a message that is sent while its actor is being spawned waits
// instead of being handled before *actor.Started. A panic in the actor is given to onPanic on the
// actor's own goroutine, with the stack still there.
//
// There is no bound in the mailbox itself: what may be in flight is bounded by admission, before
// the first actor sees it.
type mailbox struct {
	mu      sync.Mutex
	in, sys []any // guarded by mu

	spare, rest []any // owned by the runner, like suspended
	suspended   bool

	users     atomic.Int32 // messages that were sent and not yet taken
	systems   atomic.Int32
	scheduled atomic.Int32 // 1: a runner is on its way, or Start has not come yet

	invoker actor.MessageInvoker
	host    *mailboxHost
}

// A mailboxHost is what mailboxes of one kind have in common.
type mailboxHost struct {
	onPanic func(actor string, reason, message any)
	start   func(*mailbox) // lets somebody run it: startRunner, but in tests with a driver
}

const (
	// keepCapacity is the longest slice a mailbox keeps after a burst.
	keepCapacity = 1 << 14
	// turnMessages is how many messages an actor handles before it lets other goroutines run.
	turnMessages = 1024
)

// newMailbox makes a mailbox with room for initial messages.
func newMailbox(initial int, host *mailboxHost) *mailbox {
	m := &mailbox{host: host}
	if initial > 0 {
		m.in, m.spare = make([]any, 0, initial), make([]any, 0, initial)
	}
	m.scheduled.Store(1)
	return m
}

func (m *mailbox) PostUserMessage(message any) {
	m.mu.Lock()
	m.in = append(m.in, message)
	m.mu.Unlock()
	m.users.Add(1)
	m.schedule()
}

func (m *mailbox) PostSystemMessage(message any) {
	m.mu.Lock()
	m.sys = append(m.sys, message)
	m.mu.Unlock()
	m.systems.Add(1)
	m.schedule()
}

func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	m.invoker = invoker
}

func (m *mailbox) Start()                { m.host.start(m) }
func (m *mailbox) UserMessageCount() int { return int(m.users.Load()) }

// name is that of the actor.
func (m *mailbox) name() string {
	if c, ok := m.invoker.(actor.Context); ok {
		return c.Self().GetId()
	}
	return ""
}

func (m *mailbox) schedule() {
	if m.scheduled.Load() == 0 && m.scheduled.CompareAndSwap(0, 1) {
		m.host.start(m)
	}
}

func (m *mailbox) run() {
	for {
		for m.turn(turnMessages) {
			runtime.Gosched()
		}
		if !m.goesOn() {
			return
		}
	}
}

// goesOn ends a run, or is true when there is more to do and nobody else has been scheduled for it.
func (m *mailbox) goesOn() bool {
	suspended := m.suspended // read while this goroutine still owns it
	m.scheduled.Store(0)
	if m.systems.Load() == 0 && (suspended || m.users.Load() <= 0) {
		return false
	}
	return m.scheduled.CompareAndSwap(0, 1) // if not, a sender has scheduled another runner
}

// turn handles messages, at most so many; false when none was there, or none is to be handled any
// more.
func (m *mailbox) turn(most int) (more bool) {
	var current any
	defer func() {
		if reason := recover(); reason != nil {
			// whatever onPanic does, this actor has handled its last message
			m.suspended, more = true, false
			m.host.onPanic(m.name(), reason, current)
		}
	}()
	m.drainSystem()
	if m.suspended || !m.refill() {
		return false
	}
	for n := 0; len(m.rest) > 0 && n < most; n++ {
		current = m.rest[0]
		m.rest[0] = nil
		m.rest = m.rest[1:]
		m.users.Add(-1)
		m.invoker.InvokeUserMessage(current)
		if m.systems.Load() > 0 {
			m.drainSystem()
			if m.suspended {
				return false
			}
		}
	}
	return true
}

// refill swaps the queued messages in when the last ones are done; false when there are none.
func (m *mailbox) refill() bool {
	if len(m.rest) > 0 {
		return true
	}
	m.mu.Lock()
	if len(m.in) == 0 {
		m.mu.Unlock()
		return false
	}
	m.rest, m.in = m.in, m.spare[:0]
	m.mu.Unlock()
	m.spare = m.rest[:0]
	if cap(m.spare) > keepCapacity {
		m.spare = nil
	}
	return true
}

func (m *mailbox) drainSystem() {
	for m.systems.Load() > 0 {
		m.mu.Lock()
		message := m.sys[0]
		if m.sys = m.sys[1:]; len(m.sys) == 0 {
			m.sys = nil // they are rare: most actors get one in their life
		}
		m.mu.Unlock()
		m.systems.Add(-1)
		switch message.(type) {
		case *actor.SuspendMailbox:
			m.suspended = true
		case *actor.ResumeMailbox:
			m.suspended = false
		default:
			m.invoker.InvokeSystemMessage(message)
		}
	}
}
