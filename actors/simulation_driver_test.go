package actors

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/actors/owner"
	"exchange/core/event"
	"exchange/core/state"
	"exchange/persistence"
	"exchange/persistence/memory"
	"exchange/prove/spec"
)

// A sim runs the real engine, one step at a time. It lives in a bubble of testing/synctest, which
// has a clock of its own, and only the sim's goroutine decides there. All others are parked:
// handlers, the writer of a journal, a projector, a mailer, calls of the store. A chosen one runs
// until it parks again or waits for the clock. Actors get one message at a time. So a list of
// choices reproduces a run.
//
// One goroutine at a time has the turn: the sim's own, or during a step the chosen one, until that
// parks, ends, or waits for anything else. The clock, a context and the end of an engine wake
// goroutines that were not chosen, maybe several at once. These have no turn: before they touch
// anything of the sim they park, and the sim chooses them.
type sim struct {
	*turnState // nil while no goroutine has the turn

	mu       sync.Mutex // of the following, which a goroutine without the turn may touch
	parked   []*parked
	failure  error
	lastLogs []string
	sending  *played // the command at admission; nil between two steps
}

// A turnState may be touched only by the goroutine that has the turn. So may lives and hosts,
// unless a field says otherwise.
type turnState struct {
	rng   *rand.Rand // of the current action
	steps int
	skew  time.Duration // error of the clock that stamps commands
	slow  string        // rarely chosen, as long as there is another choice

	options    Options  // of all engines
	serverKeys [][]byte // that seal secrets, the newest first
	keysMade   int      // after the first
	ending     bool     // the last engine starts

	disk   *memory.Disk
	head   memory.Head // of an embedded store, in its folder
	kept   *keptBackup // the newest; nil: there is none
	server bool        // the store is a server: it outlives engines, and several engines may use it
	model  *spec.Exchange
	lives  []*life
	begun  int // lives so far
	hosts  []*host

	batches []durableBatch
	// orders that an answer reported missing after they were sent
	missing map[namedOrder]bool
	// bytes of a durable record -> sequences not yet answered
	records   map[string][]uint64
	equal     map[string][]uint64 // the same, with the answered ones
	byNonce   map[spec.KeyNonce]int
	reference *state.State    // a fold of the durable records, for snapshots
	damaged   map[uint64]bool // sequences of damaged snapshots
	restored  bool            // the journal begins after a backup
	unnamed   bool            // and no record has named the history since

	clients
	faults
	ownTokens uint64
	sessions  uint64 // so far

	waiters  int
	waitedAt int // step in which the newest waiter began

	trace hash.Hash
	lines []string
}

type durableBatch struct {
	prev, next uint64
	data       []byte
}

// parked is a goroutine that waits to be chosen.
type parked struct {
	name   string
	life   *life       // its engine, with which it ends; nil: the sim
	ready  func() bool // nil: always
	resume chan bool   // false: it is to end
}

// A life is one engine from its start to its end.
type life struct {
	number   int
	engine   *Engine // nil while it starts
	ready    bool    // it has started
	over     bool    // it did not start, or has stopped: it is to be removed
	stopping bool    // Engine.Stop closes it, not kill
	gone     bool    // guarded by sim.mu

	mailboxes   []*woken
	wallets     map[uint32]*wallet // by account
	host        *host
	token       persistence.Token // of its newest landed claim
	ownerChecks []ownerCheck      // of the store's owner, before its claim
	takesOver   bool              // it is to take over
	standby     bool              // it waits for another owner
	cancel      func()            // makes its start end
	cancelled   bool
	serverKey   []byte            // the newest when it began
	overtaken   bool              // another has the store
	fenced      bool              // it was notified of that
	releases    bool              // its stop has released the store, or tried to
	acquired    uint64            // end of the journal at its claim
	begins      bool              // a new history begins with it
	started     uint64            // its first sequence
	folded      uint64            // sequence of the fold at the last check
	applied     map[uint32]uint64 // each wallet's applied sequence at the last check, by account
	answered    uint64            // highest sequence in its answers
	// commands sent and not answered, by account; 0: by operators
	open map[uint32]int
	own  map[uint32]*ownClient // of accounts, by their ids
	// sessions of keys that were sent, and may not have ended
	sessions []*simSession
	keys     map[string]*directory.Key // looked up by handlers, by name
	named    []namedOrder              // sent with a client order id
	tries    map[string]try            // unanswered calls of the store, by kind
	// the highest nonce taken for certain, by key: durable when it began, or answered since
	taken map[uint32]uint64
	// nonces of parallel keys that were answered as taken
	tookOnce  map[spec.KeyNonce]bool
	admitted  []*played // maybe unanswered
	changing  bool      // an operator changes maintenance
	confirmed time.Time // when the store's last confirmation was requested
	unfit     bool      // the store's last answer was that it may lose appends
	heartbeat persistence.Heartbeat
}

// woken is a mailbox with messages.
type woken struct {
	name    string
	mailbox *mailbox.Mailbox
}

// violate notes the first violation.
func (s *sim) violate(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil {
		s.failure = fmt.Errorf(format, args...)
	}
}

func (s *sim) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// say adds a line to the trace.
func (s *sim) say(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	s.trace.Write([]byte(line))
	s.trace.Write([]byte{'\n'})
	s.lines = append(s.lines, line)
}

func (s *sim) hash() string { return hex.EncodeToString(s.trace.Sum(nil)) }

func newTrace() hash.Hash { return sha256.New() }

// park blocks the calling goroutine until the sim chooses it; it can be chosen when it is ready. A
// goroutine of a removed engine ends there.
func (s *sim) park(l *life, name string, ready func() bool) {
	p := &parked{name: name, life: l, ready: ready, resume: make(chan bool)}
	s.mu.Lock()
	gone := l != nil && l.gone
	if !gone {
		s.parked = append(s.parked, p)
	}
	s.mu.Unlock()
	if gone || !<-p.resume {
		runtime.Goexit()
	}
}

// waiting returns all parked goroutines.
func (s *sim) waiting() []*parked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.parked)
}

// spawn starts a goroutine; it runs when it is chosen.
func (s *sim) spawn(l *life, name string, run func()) {
	go func() {
		defer s.recovered(name)
		s.park(l, name, nil)
		run()
	}()
	synctest.Wait() // it is parked
}

// recovered turns a panic into a violation: a goroutine defers it.
func (s *sim) recovered(name string) {
	reason := recover()
	if reason == nil {
		return
	}
	s.mu.Lock()
	turn := s.turnState
	s.mu.Unlock()
	if turn == nil && strings.Contains(fmt.Sprint(reason), "nil pointer") {
		name = noTurn + ": " + name
	}
	s.violate("%s panicked: %v\n%s", name, reason, debug.Stack())
}

// A choice is a possible next step.
type choice struct {
	name string
	do   func()
}

// choices returns all possible next steps, in a fixed order.
func (s *sim) choices() (list []choice) {
	for _, p := range s.waiting() {
		if p.ready == nil || p.ready() {
			list = append(list, choice{p.name, func() { s.resume(p, true) }})
		}
	}
	for _, l := range s.lives {
		for _, w := range l.mailboxes {
			list = append(list, choice{w.name, func() { l.turn(w) }})
		}
	}
	slices.SortStableFunc(list, func(a, b choice) int { return strings.Compare(a.name, b.name) })
	return list
}

func (s *sim) resume(p *parked, goOn bool) {
	s.mu.Lock()
	s.parked = slices.DeleteFunc(s.parked, func(o *parked) bool { return o == p })
	s.mu.Unlock()
	p.resume <- goOn
	synctest.Wait()
}

// turn delivers one message to an actor.
func (l *life) turn(w *woken) {
	m := w.mailbox
	more := m.Turn(1)
	synctest.Wait() // its caller is parked, and so is everything that it started
	if more && mailbox.Waiting(m) {
		return
	}
	if !m.Continue() {
		l.mailboxes = slices.DeleteFunc(l.mailboxes, func(o *woken) bool { return o == w })
	}
}

// step executes one choice, and checks the invariants. false: there is none.
func (s *sim) step() bool {
	list := s.choices()
	if s.slow != "" && s.rng.IntN(20) > 0 {
		if others := slices.DeleteFunc(slices.Clone(list), func(c choice) bool {
			return strings.Contains(c.name, s.slow)
		}); len(others) > 0 {
			list = others
		}
	}
	if len(list) == 0 {
		return false
	}
	c := list[s.rng.IntN(len(list))]
	s.steps++
	s.say("%d %s", s.steps, c.name)
	c.do()
	s.check()
	return true
}

// run executes at most n choices.
func (s *sim) run(n int) {
	for ; n > 0 && s.failed() == nil && s.step(); n-- {
	}
}

// advance lets the clock run. A goroutine that waits for the clock runs up to the store, or to its
// place to park.
func (s *sim) advance(d time.Duration) { s.wake(func() { time.Sleep(d) }) }

// wake runs a function that may wake goroutines which were not chosen, until all of them wait
// again. No goroutine has the turn meanwhile, so each touch of its state panics, even where two of
// them would rarely meet. They take mu to park, which orders them after everything before: for the
// race detector, a timer alone does not.
func (s *sim) wake(do func()) {
	turn := s.turnState
	s.setTurn(nil)
	do()
	synctest.Wait()
	s.setTurn(turn)
}

func (s *sim) setTurn(turn *turnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turnState = turn
}

// handOver orders the caller's turn before the following, if the caller may wait for a WaitGroup
// next, as a projector does for an upload. The race detector does not order such a wait before the
// return of synctest.Wait, as it does all others.
func (s *sim) handOver() {
	s.mu.Lock()
	defer s.mu.Unlock()
}

// swapSending sets the command at admission, or none, and returns the previous one.
func (s *sim) swapSending(q *played) (before *played) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.sending = s.sending, q
	return before
}

// kill ends an engine as kill -9 does: its memory is lost.
func (s *sim) kill(l *life) {
	s.say("engine %d is gone", l.number)
	s.mu.Lock()
	l.gone = true
	s.mu.Unlock()
	l.mailboxes = nil
	if l.engine != nil {
		s.wake(func() { l.engine.fail(errKilled) })
	}
	for _, p := range s.waiting() {
		if p.life == l {
			switch p.name {
			case fmt.Sprintf("%d.head", l.number):
				s.outcomes["crashes between the journal and HEAD"]++
			case fmt.Sprintf("%d.snapshot", l.number),
				fmt.Sprintf("%d.snapshot piece", l.number):
				s.outcomes["crashes while a snapshot is in flight"]++
			}
			s.resume(p, false)
		}
	}
	if l.engine != nil && !l.stopping {
		s.wake(func() { l.engine.life.End() })
	}
	s.lives = slices.DeleteFunc(s.lives, func(o *life) bool { return o == l })
	s.forget(l)
}

var errKilled = errors.New("killed")

// A lifeDriver is the scheduler of one engine.
type lifeDriver struct {
	s *sim
	l *life
}

func (d lifeDriver) Schedule(m *mailbox.Mailbox) {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if w, ok := mailbox.Actor(m).(*wallet); ok {
		d.l.wallets[w.account.ID] = w
	}
	if !d.l.gone {
		d.l.mailboxes = append(d.l.mailboxes, &woken{fmt.Sprintf("%d.%s", d.l.number, m.Name()), m})
	}
}

func (d lifeDriver) Await(reply, dead <-chan struct{}, _ *time.Timer, most time.Duration) bool {
	end := time.Now().Add(most)
	// Before an amend is admitted, its engine may have to read the order.
	q := d.s.swapSending(nil) // other handlers send meanwhile
	if q != nil && (q.reply == nil || q.reply == reply) {
		q.reply = reply
		d.l.admitted = append(d.l.admitted, q)
		q = nil
	}
	d.s.park(d.l, d.s.waiter(d.l), func() bool {
		return len(reply) > 0 || closed(dead) || !time.Now().Before(end)
	})
	d.s.swapSending(q)
	select {
	case <-reply:
		return true
	default:
		return false
	}
}

func (d lifeDriver) AwaitContext(ctx context.Context, reply, dead <-chan struct{}) bool {
	if !d.Until(ctx, dead, func() bool { return len(reply) > 0 }) {
		return false
	}
	<-reply
	return true
}

func (d lifeDriver) Until(ctx context.Context, dead <-chan struct{}, condition func() bool) bool {
	sending := d.s.swapSending(nil)     // other handlers send meanwhile
	d.s.park(d.l, d.name("until"), nil) // the clock may have woken it
	d.s.park(d.l, d.s.waiter(d.l), func() bool {
		return condition() || closed(dead) || ctx.Err() != nil
	})
	d.s.swapSending(sending)
	return condition()
}

// Faults of the simulation itself.
const (
	notSimulated = "BUG of the simulation: "
	twoWaiters   = notSimulated + "two began to wait in one step"
	noTurn       = notSimulated + "a goroutine touches it that was not chosen"
)

// waiter names a goroutine that waits. In each step at most one begins to wait, so a seed gives the
// same names in each run.
func (s *sim) waiter(l *life) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.gone {
		return ""
	}
	if s.waitedAt == s.steps && s.waitedAt > 0 && s.failure == nil {
		s.failure = errors.New(twoWaiters)
	}
	s.waitedAt = s.steps
	s.waiters++
	return fmt.Sprintf("%d.waiter %d", l.number, s.waiters)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Start drives a non-actor, by the same steps as its own Run.
func (d lifeDriver) Start(t mailbox.Task) {
	switch t := t.(type) {
	case *owner.Hold:
		go d.guarded("owner", func() {
			owner.Drive(t, func(until func() bool) { d.s.park(d.l, d.name("owner"), until) })
		})
	case *ticker:
		d.l.engine = t.journal.out.(*Engine)
		go d.guarded("ticker", func() { d.ticker(t) })
	case *journal:
		go d.guarded("writer", func() { d.writer(t) })
	case *committed.Projector:
		go d.guarded("projector", func() { d.projector(t) })
	case *mailer:
		go d.guarded("mailer", func() { d.mailer(t) })
	default:
		panic(fmt.Sprintf("BUG of the simulation: it cannot drive a %T", t))
	}
}

// name returns the name under which a goroutine of the engine parks.
func (d lifeDriver) name(what string) string { return fmt.Sprintf("%d.%s", d.l.number, what) }

func (d lifeDriver) writer(j *journal) {
	defer close(j.writerDone)
	defer j.deadline.release()
	for {
		d.s.park(d.l, d.name("writer"), func() bool { return j.isClosed() || j.waiting() })
		if j.isClosed() {
			return
		}
		if b := j.next(); b != nil && !j.write(b) {
			return
		}
	}
}

func (d lifeDriver) projector(p *committed.Projector) {
	committed.DriveProjector(p, func(until func() bool) {
		d.s.park(d.l, d.name("projector"), until)
	})
}

func (d lifeDriver) ticker(k *ticker) {
	next := time.Now()
	for {
		next = next.Add(k.interval())
		d.s.park(d.l, d.name("tick"), func() bool {
			return closed(k.life.Over()) || !time.Now().Before(next)
		})
		if closed(k.life.Over()) {
			return
		}
		k.tick()
		if late := time.Now(); next.Before(late) {
			next = late
		}
	}
}

func (d lifeDriver) mailer(m *mailer) {
	defer close(m.finished)
	next := time.Now()
	for {
		over := func() bool {
			return closed(m.quit) || closed(m.life.Over()) || closed(m.life.Dead())
		}
		next = next.Add(mailLeast)
		d.s.park(d.l, d.name("mailer"), func() bool {
			return over() || len(m.newMail) > 0 || !time.Now().Before(next)
		})
		if over() {
			return
		}
		select {
		case <-m.newMail:
		default:
		}
		m.round()
		next = time.Now()
	}
}

// guarded turns a panic into a violation.
func (d lifeDriver) guarded(what string, run func()) {
	defer d.s.recovered(fmt.Sprintf("the %s of engine %d", what, d.l.number))
	run()
}

// waiting reports whether a batch waits.
func (j *journal) waiting() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.queue.Len() > 0
}

// durable receives each batch that has become durable, and advances the model.
func (s *sim) durable(prev, next uint64, data []byte) {
	s.batches = append(s.batches, durableBatch{prev, next, data})
	if err := s.model.ApplyBatch(prev, next, data, func(r *event.Record, record string) {
		s.records[record] = append(s.records[record], s.model.Seq)
		s.equal[record] = append(s.equal[record], s.model.Seq)
		s.unnamed = s.unnamed && r.Kind != event.KindHistory
		s.recorded(r)
		s.withinLimits()
	}); err != nil {
		s.violate("%v", err)
	}
}

// foldTo returns the reference fold after a record.
func (s *sim) foldTo(seq uint64) (*state.State, error) {
	if s.reference == nil || s.reference.Seq() > seq {
		s.reference = state.New()
	}
	return s.reference, s.foldInto(s.reference, seq)
}

// foldInto folds the durable records after a state, up to a sequence.
func (s *turnState) foldInto(to *state.State, seq uint64) error {
	var r event.Record
	var effects state.Effects
	for i := range s.batches {
		b := &s.batches[i]
		if b.next <= to.Seq() || b.prev >= seq {
			continue
		}
		opened, err := event.OpenBatch(b.data)
		for rest, at := opened.Records, b.prev; err == nil && len(rest) > 0 && at < seq; at++ {
			if rest, err = r.Decode(rest); err == nil && at >= to.Seq() {
				err = to.Apply(&r, &effects)
			}
		}
		if err != nil {
			return err
		}
	}
	if to.Seq() != seq {
		return fmt.Errorf("the journal ends at %d, below %d", to.Seq(), seq)
	}
	return nil
}

// simLog keeps the newest warnings of an engine, for the report of a failure.
type simLog struct{ s *sim }

func (h simLog) Write(line []byte) (int, error) {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	h.s.lastLogs = append(h.s.lastLogs, strings.TrimSpace(string(line)))
	h.s.lastLogs = h.s.lastLogs[max(0, len(h.s.lastLogs)-20):]
	return len(line), nil
}

func (s *sim) lastLog() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lastLogs) == 0 {
		return ""
	}
	return s.lastLogs[len(s.lastLogs)-1]
}

func (h simLog) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(h, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
