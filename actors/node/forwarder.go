package node

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/actors/metrics"
	"exchange/actors/observing"
	"exchange/core/event"
	"exchange/core/wire"
	"exchange/persistence/line"
)

// A forwarder sends the commands of a follower's clients to the leader, and returns the outcomes.
// It has one connection at a time. When that breaks, requests in flight have an unknown outcome,
// and are never resent. It implements Commands; any goroutine may use it.
type forwarder struct {
	a      *Follower
	newest atomic.Uint64 // highest released sequence in the leader's answers

	mu             sync.Mutex
	to             *line.Line               // nil: no connection; guarded by mu
	seed           challenger               // of the connection; guarded by mu
	challengeCount uint64                   // challenges so far; guarded by mu
	pending        map[uint64]pendingAnswer // by number; guarded by mu
	number         uint64                   // of the newest; guarded by mu
	sessions       map[uint64]struct{}      // open sessions; guarded by mu
	closing        bool                     // no more requests; guarded by mu
	lost           bool                     // a connection with sessions was lost; guarded by mu
}

// A pendingAnswer waits for an answer: commands of one message, or a read.
type pendingAnswer struct {
	list  []*actors.Command
	read  *committed.Read
	fence bool // list is a placeholder command for the answer
}

// newForwarder returns a forwarder without connection.
func newForwarder(a *Follower) *forwarder {
	return &forwarder{a: a, pending: map[uint64]pendingAnswer{}, sessions: map[uint64]struct{}{}}
}

// run maintains a connection to the leader, until ctx ends.
func (f *forwarder) run(ctx context.Context) {
	logged, last := "", time.Time{}
	for ctx.Err() == nil {
		standing := f.a.node.replica.Standing()
		leader, err := standing.Leader, error(nil)
		switch leader {
		case "":
			err = errNoLeader
		case standing.Node:
			err = errLeadsItself
		default:
			err = f.connect(ctx, leader)
		}
		if text := err.Error(); text != logged && ctx.Err() == nil &&
			time.Since(last) >= logInterval {
			logged, last = text, time.Now()
			f.a.node.opts.Log.Info("this node accepts no commands and no private reads for now",
				"leader",
				leader, "error", err)
		}
		mailbox.Pause(ctx, retrySoon) //nolint:errcheck // the loop checks ctx
	}
}

// logInterval is the minimum time between run's log messages about a missing connection.
const logInterval = time.Second

var (
	errNoLeader    = errors.New("no known leader")
	errLeadsItself = errors.New("this node becomes the leader")
)

// connect forwards to one node until the connection ends, and returns why.
func (f *forwarder) connect(ctx context.Context, leader string) error {
	patience, cancel := context.WithTimeout(ctx, f.a.node.opts.Timing.OwnerStale)
	digest := sha256.Sum256(*f.a.market.Load())
	conn, seed, err := openTo(patience, f.a.node.replica, leader, callCommands, digest[:])
	cancel()
	if err != nil {
		return fmt.Errorf("the leader accepts no commands from this node: %w", err)
	}
	if len(seed) != len(f.seed) {
		conn.Close()
		return actors.ErrMalformed
	}
	w := line.New(conn, lineOptions(&f.a.node.opts.Timing))
	defer context.AfterFunc(ctx, w.Close)()
	defer f.closeOnNewLeader(w, leader)()
	f.setLine(w, challenger(seed))
	f.a.node.opts.Log.Debug("commands are forwarded to the leader", "leader", leader)
	err = w.Run(func(message []byte) error {
		p := actors.Parse(message)
		return f.receive(p.Byte(), p)
	})
	f.failPending()
	return fmt.Errorf("the connection to the leader has ended: %w", err)
}

// closeOnNewLeader closes a connection when another node leads, until stop is called.
func (f *forwarder) closeOnNewLeader(w *line.Line, leader string) (stop func()) {
	over := make(chan struct{})
	go func() {
		check := time.NewTicker(f.a.node.opts.Timing.OwnerCheck)
		defer check.Stop()
		for {
			select {
			case <-over:
				return
			case <-check.C:
			}
			if now := f.a.node.replica.Standing().Leader; now != "" && now != leader {
				w.Close()
				return
			}
		}
	}()
	return func() { close(over) }
}

// setLine starts forwarding over a connection.
func (f *forwarder) setLine(w *line.Line, seed challenger) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.to, f.seed = w, seed
	f.traffic().Up.Add(1)
}

// traffic returns the counts of forwarded requests.
func (f *forwarder) traffic() *metrics.Link { return &f.a.node.traffic.To }

// failPending fails all pending requests of a lost connection.
func (f *forwarder) failPending() {
	f.mu.Lock()
	asked, m := f.pending, f.traffic()
	if f.to != nil {
		m.Up.Add(-1)
	}
	m.Unknown.Add(uint64(len(asked)))
	m.InFlight.Store(0)
	f.to, f.pending = nil, map[uint64]pendingAnswer{}
	f.lost = f.lost || len(f.sessions) > 0
	f.mu.Unlock()
	for _, x := range asked {
		x.fail(committed.ErrTimeout)
	}
}

// fail ends a pendingAnswer with an error.
func (x *pendingAnswer) fail(err error) {
	if x.read != nil {
		x.read.Err = err
		x.read.Answer()
		return
	}
	for _, c := range x.list {
		c.Answer(err, false)
	}
}

// finish stops forwarding, and waits for the answers in flight, at most until a broken connection
// is noticed.
func (f *forwarder) finish() {
	f.mu.Lock()
	f.closing = true
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), f.a.node.opts.Timing.OwnerStale)
	defer cancel()
	f.a.node.life.Until(ctx, func() bool { //nolint:errcheck // the rest has an unknown outcome
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.pending) == 0
	})
}

// fenceAnswered handles the answer to a fence.
func (x *pendingAnswer) fenceAnswered(p *actors.Parser) error {
	c, err := x.list[0], p.Error()
	malformed := p.Done()
	if malformed != nil {
		err = committed.ErrTimeout
	}
	c.Answer(err, false)
	return malformed
}

// connected reports whether there is a connection.
func (f *forwarder) connected() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.to != nil
}

// request sends a message, whose body add appends after kind and number, and registers x for the
// answer. An error means that nothing was sent.
func (f *forwarder) request(kind byte, x pendingAnswer, add func(b []byte) []byte) error {
	limits := f.a.Limits()
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closing:
		return actors.ErrStopping
	case f.to == nil:
		return actors.ErrNotConfirmed
	case len(f.pending) >= limits.InFlight+limits.Reads:
		f.traffic().Full.Add(1)
		return actors.ErrBusy
	}
	f.number++
	number := f.number
	if err := f.to.Send(func(b []byte) []byte {
		return add(wire.AppendUints(append(b, kind), number))
	}); err != nil {
		f.traffic().Full.Add(1)
		return actors.ErrBusy
	}
	f.pending[number] = x
	f.traffic().InFlight.Store(int64(len(f.pending)))
	return nil
}

// receive handles an answer.
func (f *forwarder) receive(kind byte, p *actors.Parser) error {
	number, seq := p.Uint(), p.Uint()
	f.mu.Lock()
	x, there := f.pending[number]
	delete(f.pending, number)
	m := f.traffic()
	m.InFlight.Store(int64(len(f.pending)))
	f.mu.Unlock()
	if there {
		m.Answered.Add(1)
	}
	switch {
	case !there, p.Bad(), (kind == forwardTaken) != (x.read != nil):
	case kind == forwardTaken:
		return f.nonceTaken(x.read, seq, p)
	case kind == forwardOutcomes:
		f.newest.Store(max(seq, f.newest.Load())) // nothing else writes it
		if x.fence {
			return x.fenceAnswered(p)
		}
		return f.outcomes(x.list, p)
	}
	if there {
		x.fail(committed.ErrTimeout)
	}
	return actors.ErrMalformed
}

// DrainGates implements Commands.
func (f *forwarder) DrainGates(key *directory.Key) error {
	return f.roundTrip(forwardFence,
		func(b []byte) []byte { return wire.AppendText(b, key.Public) })
}

// roundTrip sends a request without commands, and waits for its outcome.
func (f *forwarder) roundTrip(kind byte, add func(b []byte) []byte) error {
	c := actors.NewQuestion()
	x := pendingAnswer{list: []*actors.Command{c}, fence: true}
	if err := f.request(kind, x, add); err != nil {
		c.Free()
		return actors.CountRefusal(f.a.node.meter, err)
	}
	if !c.Await(&f.a.node.life) {
		return committed.ErrTimeout
	}
	err, _ := c.Failed()
	c.Free()
	return err
}

// Challenge implements Commands. An observer's challenges belong to its connection: a login signed
// for one is valid over no other connection.
func (f *forwarder) Challenge() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.a.node.observer == nil || f.to == nil {
		return actors.NewChallenge()
	}
	f.challengeCount++
	return f.seed.challenge(f.challengeCount)
}

// Verify implements Commands.
func (f *forwarder) Verify(key *directory.Key, nonce uint64) (*actors.RemoteAnswer, error) {
	if key.Signed == nil {
		return nil, nil
	}
	key.Signed.SetVerificationRequested()
	commands := 0
	if key.Signed.Reads {
		if key.Signed.Form == directory.SignedQuery {
			return f.read(key, nonce)
		}
		commands = 1 // the leader answers it instead of them
	}
	err := f.roundTrip(forwardSigned, func(b []byte) []byte {
		return appendSignedRequest(b, key, nonce, false, commands)
	})
	if a, ok := errors.AsType[*actors.RemoteAnswer](err); ok && commands > 0 {
		return a, nil
	}
	return nil, err
}

// read has the followed member answer a signed read.
func (f *forwarder) read(key *directory.Key, nonce uint64) (*actors.RemoteAnswer, error) {
	n := f.a.node
	ctx, cancel := context.WithTimeout(context.Background(), n.opts.Timing.Request)
	defer cancel()
	b, err := n.observer.Ask(ctx, appendRead(nil, key, nonce))
	answer := new(actors.RemoteAnswer)
	p := actors.Parse(b)
	switch {
	case errors.Is(err, observing.ErrBusy):
		return nil, actors.CountRefusal(n.meter, actors.ErrBusy)
	case err != nil:
		n.opts.Log.Debug("the followed member has not answered a read", "error", err)
		return nil, actors.CountRefusal(n.meter, actors.ErrNotConfirmed)
	}
	p.Answer(answer)
	return answer, p.Done()
}

// appendSignedRequest writes a signed request with that number of commands.
func appendSignedRequest(b []byte, key *directory.Key, nonce uint64, back bool,
	commands int) []byte {
	b = wire.AppendUints(wire.AppendText(b, key.Public), nonce)
	b = wire.AppendFlag(wire.AppendFlag(b, key.Signed.Signature == nil), back)
	return appendSigned(wire.AppendUints(b, uint64(commands)), key.Signed)
}

// toWallet has the wallet at the leader take the nonce of a read. A read by client order id is
// answered after all that the wallet has in flight.
func (f *forwarder) toWallet(r *committed.Read) {
	key, nonce := r.Key()
	id := r.ClientID()
	r.Park()
	if err := f.request(forwardTake, pendingAnswer{read: r}, func(b []byte) []byte {
		return actors.AppendClientID(wire.AppendUints(wire.AppendText(b, key.Public), nonce), id)
	}); err != nil {
		r.Err = actors.CountRefusal(f.a.node.meter, err)
		r.Answer()
	}
}

// nonceTaken sends a read on to the fold, once its nonce is taken.
func (f *forwarder) nonceTaken(r *committed.Read, seq uint64, p *actors.Parser) error {
	err := p.Error()
	if bad := p.Done(); bad != nil {
		r.Err = committed.ErrTimeout
		r.Answer()
		return bad
	}
	if err != nil {
		r.Err = err
		r.Answer()
		return nil
	}
	r.NonceTaken(seq)
	f.a.node.committed.Send(r)
	return nil
}

// outcomes delivers the outcomes of commands to their waiting handlers.
func (f *forwarder) outcomes(list []*actors.Command, p *actors.Parser) error {
	if err := p.Error(); err != nil || p.Bad() {
		unsent := !p.Bad()
		if !unsent {
			err = committed.ErrTimeout
		}
		for _, c := range list {
			c.Answer(err, unsent)
		}
		return p.Done()
	}
	for _, c := range list {
		err := p.Error()
		if err == nil {
			p.Outcome(c)
		}
		if p.Bad() {
			err = committed.ErrTimeout
		}
		c.Answer(err, false)
	}
	return p.Done()
}

// send sends the commands of one message, through the gate of the first. An error means that none
// was sent.
func (f *forwarder) send(list []*actors.Command) error {
	first := list[0]
	var err error
	give := func() {
		key := first.Key()
		if key.Signed != nil {
			key.Signed.SetVerificationRequested()
			err = f.request(forwardSigned, pendingAnswer{list: list}, func(b []byte) []byte {
				return appendSignedRequest(b, key, first.Nonce(), first.MayUseCancelSlot(),
					len(list))
			})
			return
		}
		err = f.request(forwardCommands, pendingAnswer{list: list}, func(b []byte) []byte {
			b = wire.AppendText(b, key.Public)
			b = wire.AppendFlag(wire.AppendUints(b, first.Nonce()), first.Gate() != nil)
			b = wire.AppendUints(b, uint64(len(list)))
			for _, c := range list {
				b = actors.AppendCommand(b, c)
			}
			return b
		})
	}
	switch {
	case first.Gate() == nil:
		give()
	case !first.Gate().Pass(give):
		return actors.ErrDropped
	}
	return err
}

// Do implements Commands.
func (f *forwarder) Do(c *actors.Command) (*actors.Command, error) {
	if session, change := c.Session(); session != 0 {
		return f.changeSession(c, session, change)
	}
	return f.do(c)
}

func (f *forwarder) do(c *actors.Command) (*actors.Command, error) {
	if err := f.send([]*actors.Command{c}); err != nil {
		c.Free()
		return nil, actors.CountRefusal(f.a.node.meter, err)
	}
	if !c.Await(&f.a.node.life) {
		f.a.node.meter.UnknownOutcomes.Add(1)
		return nil, committed.ErrTimeout
	}
	return f.outcome(c)
}

// changeSession is do for the begin or the end of a session. A session is registered before its
// begin, so that it always ends with the connection.
func (f *forwarder) changeSession(c *actors.Command, session uint64,
	change actors.SessionChange) (*actors.Command,
	error) {
	if change == actors.SessionBegins {
		f.mu.Lock()
		f.sessions[session] = struct{}{}
		f.mu.Unlock()
	}
	c, err := f.do(c)
	accepted := err == nil && c.Outcome() == actors.Accepted
	unknown := err == committed.ErrTimeout //nolint:errorlint // it is never wrapped here
	if change == actors.SessionBegins && !accepted && !unknown || change == actors.SessionLeaves &&
		accepted {
		f.mu.Lock()
		delete(f.sessions, session)
		f.mu.Unlock()
	}
	return c, err
}

// lostSessions reports whether a connection with sessions was lost: their clients must be
// disconnected.
func (f *forwarder) lostSessions() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}

// outcome returns an answered command, or why it has no outcome.
func (f *forwarder) outcome(c *actors.Command) (*actors.Command, error) {
	err, _ := c.Failed()
	if err == nil {
		return c, nil
	}
	c.Free()
	if err == committed.ErrTimeout { //nolint:errorlint // it is never wrapped here
		f.a.node.meter.UnknownOutcomes.Add(1)
		return nil, err
	}
	return nil, actors.CountRefusal(f.a.node.meter, err)
}

// DoAll implements Commands.
func (f *forwarder) DoAll(list []*actors.Command, errs []error) error {
	sent := append([]*actors.Command(nil), list...)
	if err := f.send(sent); err != nil {
		for i, c := range list {
			c.Free()
			list[i] = nil
		}
		return actors.CountRefusal(f.a.node.meter, err)
	}
	began, unsent := time.Now(), error(nil)
	for i, c := range list {
		if !c.AwaitSince(began, &f.a.node.life) {
			f.a.node.meter.UnknownOutcomes.Add(1)
			list[i], errs[i] = nil, committed.ErrTimeout
			continue
		}
		if err, none := c.Failed(); none {
			unsent = err
		}
		list[i], errs[i] = f.outcome(c)
	}
	return unsent
}

// SessionLost implements Commands.
func (f *forwarder) SessionLost(key *directory.Key, session uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sessions, session)
	if f.to == nil {
		return // it ended with its connection
	}
	// a failed send means that the connection is broken
	if f.to.Send(func(b []byte) []byte {
		return wire.AppendUints(wire.AppendText(append(b, forwardLost), key.Public), session)
	}) != nil {
		f.to.Close()
	}
}

// Key implements Commands.
func (f *forwarder) Key(public []byte) *directory.Key { return f.a.Public.Key(public) }

// AwaitCurrent implements Commands.
func (f *forwarder) AwaitCurrent() error { return actors.AwaitCurrent(f.a.Door) }

// Writable implements Commands.
func (f *forwarder) Writable() error {
	return f.accepts(func() bool { return f.Maintenance() != nil })
}

// Cancelling implements Commands.
func (f *forwarder) Cancelling() error {
	return f.accepts(func() bool {
		m := f.Maintenance()
		return m != nil && m.BarsCancels()
	})
}

// accepts returns nil if commands not barred by maintenance are accepted.
func (f *forwarder) accepts(barred func() bool) error {
	switch {
	case barred() && (f.AwaitCurrent() != nil || barred()):
		return actors.CountRefusal(f.a.node.meter, actors.ErrMaintenance)
	case !f.connected():
		return actors.CountRefusal(f.a.node.meter, actors.ErrNotConfirmed)
	}
	return nil
}

// Confirmed implements Commands.
func (f *forwarder) Confirmed() error {
	if !f.connected() {
		return actors.CountRefusal(f.a.node.meter, actors.ErrNotConfirmed)
	}
	return nil
}

// MailEnabled implements Commands. The leader mails the codes, or refuses withdrawals.
func (f *forwarder) MailEnabled() error { return nil }

// Maintenance implements Commands.
func (f *forwarder) Maintenance() *event.Maintenance { return f.a.maintenance.Load() }

// SwitchFires implements Commands.
func (f *forwarder) SwitchFires(c *actors.Command) int64 {
	a := f.a
	a.graceMu.Lock()
	defer a.graceMu.Unlock()
	return max(c.Record().Switch.DueUs, a.grace.OverAt(time.Now().UnixMicro()))
}
