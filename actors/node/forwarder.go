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
	"exchange/core/event"
	"exchange/core/wire"
	"exchange/persistence/line"
)

// A forwarder takes what clients of a node that follows send to the node that leads, and brings
// the outcomes back. It has one connection at a time. What was sent when that breaks has no known
// outcome, and is never sent again. It implements Commands; any goroutine may use it.
type forwarder struct {
	a      *Follower
	newest atomic.Uint64 // sequence that the node that leads had released with an answer

	mu         sync.Mutex
	to         *line.Line               // nil: there is no connection; guarded by mu
	seed       challenger               // of the connection; guarded by mu
	challengeCount uint64                   // challenges so far; guarded by mu
	pending    map[uint64]pendingAnswer // by number; guarded by mu
	number     uint64                   // of the newest; guarded by mu
	sessions   map[uint64]struct{}      // that live, as far as is known here; guarded by mu
	closing    bool                     // nothing more is sent; guarded by mu
	lost       bool                     // a connection is over that had some; guarded by mu
}

// A pendingAnswer waits for an answer: commands that travel together, or a read.
type pendingAnswer struct {
	list  []*actors.Command
	read  *committed.Read
	fence bool // the command of list only carries the answer
}

// newForwarder has no connection yet.
func newForwarder(a *Follower) *forwarder {
	return &forwarder{a: a, pending: map[uint64]pendingAnswer{}, sessions: map[uint64]struct{}{}}
}

// run keeps a connection to the node that leads, until ctx ends.
func (f *forwarder) run(ctx context.Context) {
	said, last := "", time.Time{}
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
		if text := err.Error(); text != said && ctx.Err() == nil && time.Since(last) >= logInterval {
			said, last = text, time.Now()
			f.a.node.opts.Log.Info("this node takes no commands and no private reads for now",
				"leader",
				leader, "error", err)
		}
		mailbox.Pause(ctx, retrySoon) //nolint:errcheck // ctx is looked at next
	}
}

// logInterval is how often run logs why commands have no way, at most.
const logInterval = time.Second

var (
	errNoLeader    = errors.New("no node is known to lead")
	errLeadsItself = errors.New("it comes to lead itself")
)

// connect sends to one node, until that ends, and returns why.
func (f *forwarder) connect(ctx context.Context, leader string) error {
	patience, cancel := context.WithTimeout(ctx, f.a.node.opts.Timing.OwnerStale)
	digest := sha256.Sum256(*f.a.market.Load())
	conn, seed, err := openTo(patience, f.a.node.replica, leader, callCommands, digest[:])
	cancel()
	if err != nil {
		return fmt.Errorf("the node that leads takes no commands from this one: %w", err)
	}
	if len(seed) != len(f.seed) {
		conn.Close()
		return actors.ErrMalformed
	}
	w := line.New(conn, lineOptions(&f.a.node.opts.Timing))
	defer context.AfterFunc(ctx, w.Close)()
	defer f.closeOnNewLeader(w, leader)()
	f.setLine(w, challenger(seed))
	f.a.node.opts.Log.Debug("commands go to the node that leads", "leader", leader)
	err = w.Run(func(message []byte) error {
		p := actors.Parse(message)
		return f.receive(p.Byte(), p)
	})
	f.failPending()
	return fmt.Errorf("the connection to the node that leads has ended: %w", err)
}

// closeOnNewLeader has a connection end when another node leads. The function that it returns ends that.
func (f *forwarder) closeOnNewLeader(w *line.Line, leader string) (stop func()) {
	over := make(chan struct{})
	go func() {
		look := time.NewTicker(f.a.node.opts.Timing.OwnerCheck)
		defer look.Stop()
		for {
			select {
			case <-over:
				return
			case <-look.C:
			}
			if now := f.a.node.replica.Standing().Leader; now != "" && now != leader {
				w.Close()
				return
			}
		}
	}()
	return func() { close(over) }
}

// setLine lets commands go over a connection.
func (f *forwarder) setLine(w *line.Line, seed challenger) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.to, f.seed = w, seed
	f.traffic().Up.Add(1)
}

// traffic counts what is sent.
func (f *forwarder) traffic() *metrics.Link { return &f.a.node.traffic.To }

// failPending tells all that wait that their connection is over.
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

// fail ends an asking without an answer.
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

// finish lets nothing more go to the node that leads, and waits until what went has an answer, but
// no longer than a broken connection is noticed.
func (f *forwarder) finish() {
	f.mu.Lock()
	f.closing = true
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), f.a.node.opts.Timing.OwnerStale)
	defer cancel()
	f.a.node.life.Until(ctx, func() bool { //nolint:errcheck // what has no answer then is unknown
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.pending) == 0
	})
}

// fenceAnswered takes the answer to a fence.
func (x *pendingAnswer) fenceAnswered(p *actors.Parser) error {
	c, err := x.list[0], p.Error()
	senseless := p.Done()
	if senseless != nil {
		err = committed.ErrTimeout
	}
	c.Answer(err, false)
	return senseless
}

// connected reports whether there is a connection.
func (f *forwarder) connected() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.to != nil
}

// request sends a message, which add appends behind its kind and number, and notes what waits for the
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

// receive takes an answer.
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

// Settle implements Commands.
func (f *forwarder) Settle(key *directory.Key) error {
	return f.roundTrip(forwardFence, func(b []byte) []byte { return wire.AppendText(b, key.Public) })
}

// roundTrip asks for an outcome of no command, and waits for it.
func (f *forwarder) roundTrip(kind byte, add func(b []byte) []byte) error {
	c := actors.NewQuestion()
	if err := f.request(kind, pendingAnswer{list: []*actors.Command{c}, fence: true}, add); err != nil {
		c.Free()
		return actors.TurnAway(f.a.node.meter, err)
	}
	if !c.Await(&f.a.node.life) {
		return committed.ErrTimeout
	}
	err, _ := c.Failed()
	c.Free()
	return err
}

// Challenge implements Commands. That of an observer is of its connection: a login that is signed
// for it can be verified over no other one.
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
func (f *forwarder) Verify(key *directory.Key, nonce uint64) error {
	if key.Signed == nil {
		return nil
	}
	key.Signed.Ask()
	return f.roundTrip(forwardSigned, func(b []byte) []byte {
		return appendSignedRequest(b, key, nonce, false, 0)
	})
}

// appendSignedRequest writes a request that is passed on as it was signed, of so many commands.
func appendSignedRequest(b []byte, key *directory.Key, nonce uint64, back bool, commands int) []byte {
	b = wire.AppendUints(wire.AppendText(b, key.Public), nonce)
	b = wire.AppendFlag(wire.AppendFlag(b, key.Signed.Signature == nil), back)
	return appendSigned(wire.AppendUints(b, uint64(commands)), key.Signed)
}

// toWallet has the nonce of a read taken by the wallet, which is at the node that leads. A read
// that names an order by its client order id comes back behind all that the wallet has in flight.
func (f *forwarder) toWallet(r *committed.Read) {
	key, nonce := r.Key()
	id := r.ClientID()
	r.Park()
	if key.Signed != nil {
		key.Signed.Ask()
	}
	if err := f.request(forwardTake, pendingAnswer{read: r}, func(b []byte) []byte {
		b = actors.AppendClientID(wire.AppendUints(wire.AppendText(b, key.Public), nonce), id)
		if key.Signed != nil {
			b = appendSigned(b, key.Signed)
		}
		return b
	}); err != nil {
		r.Err = actors.TurnAway(f.a.node.meter, err)
		r.Answer()
	}
}

// nonceTaken sends a read on whose nonce is taken.
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

// outcomes gives the outcomes of commands to the handlers that wait for them.
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

// send sends commands that travel together, through the gate of the first. An error means that none
// was sent.
func (f *forwarder) send(list []*actors.Command) error {
	first := list[0]
	var err error
	give := func() {
		key := first.Key()
		if key.Signed != nil {
			key.Signed.Ask()
			err = f.request(forwardSigned, pendingAnswer{list: list}, func(b []byte) []byte {
				return appendSignedRequest(b, key, first.Nonce(), first.TakesBack(), len(list))
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
		return nil, actors.TurnAway(f.a.node.meter, err)
	}
	if !c.Await(&f.a.node.life) {
		f.a.node.meter.UnknownOutcomes.Add(1)
		return nil, committed.ErrTimeout
	}
	return f.outcome(c)
}

// changeSession is do for the begin or the end of a session. From before its begin on, the end of
// the connection is the session's end.
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

// lostSessions reports whether a connection is over that had sessions: their clients must learn of
// it.
func (f *forwarder) lostSessions() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}

// outcome returns a command that was answered, or why it has no outcome.
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
	return nil, actors.TurnAway(f.a.node.meter, err)
}

// DoAll implements Commands.
func (f *forwarder) DoAll(list []*actors.Command, errs []error) error {
	sent := append([]*actors.Command(nil), list...)
	if err := f.send(sent); err != nil {
		for i, c := range list {
			c.Free()
			list[i] = nil
		}
		return actors.TurnAway(f.a.node.meter, err)
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
		return // the end of its connection was its end
	}
	// if it cannot be sent, the connection is over, or about to be
	if f.to.Send(func(b []byte) []byte {
		return wire.AppendUints(wire.AppendText(append(b, forwardLost), key.Public), session)
	}) != nil {
		f.to.Close()
	}
}

// Key implements Commands.
func (f *forwarder) Key(public []byte) *directory.Key { return f.a.Public.Key(public) }

// Current implements Commands.
func (f *forwarder) Current() error { return actors.AwaitKnown(f.a.Door) }

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

// accepts returns nil where commands are taken that no maintenance bars.
func (f *forwarder) accepts(barred func() bool) error {
	switch {
	case barred() && (f.Current() != nil || barred()):
		return actors.TurnAway(f.a.node.meter, actors.ErrMaintenance)
	case !f.connected():
		return actors.TurnAway(f.a.node.meter, actors.ErrNotConfirmed)
	}
	return nil
}

// Confirmed implements Commands.
func (f *forwarder) Confirmed() error {
	if !f.connected() {
		return actors.TurnAway(f.a.node.meter, actors.ErrNotConfirmed)
	}
	return nil
}

// Mails implements Commands. The node that leads mails the codes, so it refuses a withdrawal if it
// cannot.
func (f *forwarder) Mails() error { return nil }

// Maintenance implements Commands.
func (f *forwarder) Maintenance() *event.Maintenance { return f.a.maintenance.Load() }

// SwitchFires implements Commands.
func (f *forwarder) SwitchFires(c *actors.Command) int64 {
	a := f.a
	a.graceMu.Lock()
	defer a.graceMu.Unlock()
	return max(c.Record().Switch.DueUs, a.grace.OverAt(time.Now().UnixMicro()))
}
