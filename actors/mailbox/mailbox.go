package mailbox

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// A Mailbox is the queue of one actor: two slices that swap under a mutex. The goroutine that runs
// it takes the whole queue in one swap, so a busy actor pays for the lock once for many messages,
// and sending allocates nothing once the slices have grown.
//
// It stays closed until Start, so a message sent while its actor is being spawned waits instead of
// being handled before *actor.Started.
//
// The mailbox itself has no bound: admission bounds the commands in flight, before the first actor
// sees them.
type Mailbox struct {
	mu      sync.Mutex
	in, sys []any     // guarded by mu
	urgent  FIFO[any] // guarded by mu
	sent    uint64    // urgent messages so far; guarded by mu

	keep        int   // longest slice that stays after a burst
	spare, rest []any // owned by the goroutine that runs it, like the following
	suspended   bool
	overtook    int    // urgent messages since the last ordinary one
	taken       uint64 // urgent messages so far
	before      uint64 // urgent messages that may have been sent before one in rest

	users      atomic.Int32 // messages sent and not yet taken, including urgent ones
	urgents    atomic.Int32
	systems    atomic.Int32
	runPending atomic.Int32 // 1: a run is pending, or Start is still to come

	invoker actor.MessageInvoker
	host    *Host
}

// A Host is the shared part of mailboxes of one kind.
type Host struct {
	Scheduler Scheduler
	Guard     Guard
	// UrgentAtOnce is how many Urgent messages may precede one of the others, which also waits for
	// the urgent ones sent before it; 0: urgent messages get no priority.
	UrgentAtOnce int
}

// An Urgent message precedes the others of its mailbox, if the mailbox gives priority. Urgent ones
// keep their order, and so do the others.
//
//tidy:keep messages of other rooms have its method
type Urgent interface {
	// Urgent reports whether this message is urgent. A sender calls it.
	Urgent() bool
}

// A Guard receives each panic of an actor, on the actor's own goroutine, with the stack still
// present. The actor has then handled its last message, unless the guard escalates.
type Guard interface {
	Panicked(m *Mailbox, reason, message any)
}

const (
	// keepTimes is the multiple of its initial capacity that a mailbox keeps after a burst, and
	// keepLeast the capacity that each may keep. There are many wallets, which start without
	// capacity: they must not all keep a burst's memory.
	keepTimes, keepLeast = 16, 64
	// turnMessages is how many messages an actor handles before it yields to other goroutines.
	turnMessages = 1024
)

// New makes a mailbox with capacity for initial messages.
func New(initial int, host *Host) *Mailbox {
	m := &Mailbox{host: host, keep: max(keepLeast, keepTimes*initial)}
	if initial > 0 {
		m.in, m.spare = make([]any, 0, initial), make([]any, 0, initial)
	}
	m.runPending.Store(1)
	return m
}

// PostUserMessage queues a message for the actor.
func (m *Mailbox) PostUserMessage(message any) {
	urgent := m.host.UrgentAtOnce > 0 && isUrgent(message)
	m.mu.Lock()
	if urgent {
		m.urgent.Push(message)
		m.sent++
		m.urgents.Add(1)
	} else {
		m.in = append(m.in, message)
	}
	m.mu.Unlock()
	m.users.Add(1)
	m.schedule()
}

func isUrgent(message any) bool {
	u, ok := message.(Urgent)
	return ok && u.Urgent()
}

// PostSystemMessage queues a message of the actor system, which precedes the others.
func (m *Mailbox) PostSystemMessage(message any) {
	m.mu.Lock()
	m.sys = append(m.sys, message)
	m.mu.Unlock()
	m.systems.Add(1)
	m.schedule()
}

// RegisterHandlers sets the mailbox's actor.
func (m *Mailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	m.invoker = invoker
}

// Start opens the mailbox.
func (m *Mailbox) Start() { m.host.Scheduler.Schedule(m) }

// UserMessageCount returns how many messages wait; it may be negative for an instant.
func (m *Mailbox) UserMessageCount() int { return int(m.users.Load()) }

// Name returns the actor's name.
func (m *Mailbox) Name() string {
	if c, ok := m.invoker.(actor.Context); ok {
		return c.Self().GetId()
	}
	return ""
}

// Escalate leaves a panic to the actor's supervisor.
func (m *Mailbox) Escalate(reason, message any) { m.invoker.EscalateFailure(reason, message) }

func (m *Mailbox) schedule() {
	if m.runPending.Load() == 0 && m.runPending.CompareAndSwap(0, 1) {
		m.host.Scheduler.Schedule(m)
	}
}

// Run handles messages until there are none.
func (m *Mailbox) Run() {
	for {
		for m.Turn(turnMessages) {
			runtime.Gosched()
		}
		if !m.Continue() {
			return
		}
	}
}

// Continue ends a run, or reports true when there is more to do and no other run is scheduled.
func (m *Mailbox) Continue() bool {
	suspended := m.suspended // read while this goroutine still owns it
	m.runPending.Store(0)
	if m.systems.Load() == 0 && (suspended || m.users.Load() <= 0) {
		return false
	}
	return m.runPending.CompareAndSwap(0, 1) // if not, a sender has scheduled another run
}

// Turn handles up to most messages. It reports false when there was none, or none may be handled
// any more.
func (m *Mailbox) Turn(most int) (more bool) {
	var current any
	defer func() {
		if reason := recover(); reason != nil {
			// the actor's run is over, even if the guard returns
			m.suspended, more = true, false
			m.host.Guard.Panicked(m, reason, current)
		}
	}()
	m.drainSystem()
	if m.suspended || !m.refill() {
		return false
	}
	for n := 0; n < most; n++ {
		if current = m.take(); current == nil {
			break
		}
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

// take takes the next message: an urgent one if any, unless another one is due. nil: nothing is
// left of the messages of refill.
func (m *Mailbox) take() (message any) {
	if m.urgents.Load() > 0 && !m.due() {
		m.overtook++
		m.taken++
		m.mu.Lock()
		message = m.urgent.Pop()
		m.mu.Unlock()
		m.urgents.Add(-1)
		return message
	}
	m.overtook = 0
	if len(m.rest) > 0 {
		message = m.rest[0]
		m.rest[0] = nil
		if m.rest = m.rest[1:]; len(m.rest) == 0 {
			m.rest = nil // release the memory of a burst now
		}
	}
	return message
}

// due reports whether an ordinary message precedes the urgent ones. None of them was sent before
// it: a sender that observed an urgent message's effect finds it.
func (m *Mailbox) due() bool {
	return m.overtook >= m.host.UrgentAtOnce && m.swap() && m.taken >= m.before
}

// refill prepares messages, and reports whether there are any.
func (m *Mailbox) refill() bool { return m.urgents.Load() > 0 || m.swap() }

// swap fetches the queued messages when the last ones are done; false when there are none. Urgent
// ones do not count.
func (m *Mailbox) swap() bool {
	if len(m.rest) > 0 {
		return true
	}
	m.mu.Lock()
	if len(m.in) == 0 {
		m.mu.Unlock()
		return false
	}
	m.rest, m.in = m.in, m.spare[:0]
	m.before = m.sent
	m.mu.Unlock()
	m.spare = m.rest[:0]
	if cap(m.spare) > m.keep {
		m.spare = nil
	}
	return true
}

func (m *Mailbox) drainSystem() {
	for m.systems.Load() > 0 {
		m.mu.Lock()
		message := m.sys[0]
		if m.sys = m.sys[1:]; len(m.sys) == 0 {
			m.sys = nil // they are rare: most actors get one in their lifetime
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
