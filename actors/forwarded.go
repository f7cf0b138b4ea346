package actors

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/actors/metrics"
	"exchange/core/event"
	"exchange/core/wire"
	"exchange/persistence/line"
)

// A forwarded is what a node that leads does for one node that follows: it carries out what the
// other's clients have sent. It lasts as long as the connection, and no longer than the reign.
type forwarded struct {
	*Engine
	from string // name of the node
	// it is an observer: it cannot verify signatures, and is not believed to have done so
	observer bool
	line     *line.Line
	does     *metrics.Link // counts what it does
	// counts what an observer has passed on
	counts *metrics.Passed
	base   uint64 // added to the numbers of its sessions, so that no other node has them

	open  atomic.Int64 // commands without an outcome, and ends of sessions that wait
	takes atomic.Int64 // reads whose nonces are being taken

	mu    sync.Mutex
	ended []*errand             // that are to be answered; guarded by mu
	lanes map[uint32]*errandRow // by account, while an errand is on its way; guarded by mu
	// sessions by their number here; nil: the connection is over; guarded by mu
	lives   map[uint64]*directory.Key
	logins  map[uint32]struct{} // keys whose logins an observer has passed on; guarded by mu
	seed    challenger          // of its challenges
	answers chan struct{}       // capacity 1: there is something in ended
}

// An errandRow are errands of one account, which go to its wallet one after the other.
type errandRow = mailbox.FIFO[*errand]

// An errand is what one message asks for: commands that travel together, the end of a session, or
// only that those before it are done.
type errand struct {
	by      *forwarded
	number  uint64
	list    []*Command
	errs    []error
	err     error        // why none of the commands was sent
	keyless bool         // its key is not known here
	left    atomic.Int64 // commands without an outcome, and one until all are sent

	counted  int64 // in forwarded.open
	admitted bool
	meters   bool // it counts in forwarded.does

	// of an errand without commands: the session that has ended; 0: it is a fence, which is
	// answered in its turn
	lost uint64
	of   *directory.Key

	passed passedOn // without commands that it asks for, until it is verified
}

// forwardSlots is the part of the slots of commands, in quarters, that one node's clients may have
// at a time: the rest is a floor for those of the others.
const forwardSlots = 3

// lineOptions are those of connections that forward.
func lineOptions(t *Timing) line.Options {
	return line.Options{Longest: 32 << 20, Takes: 32 << 20, Waiting: 64 << 20,
		Beat: t.OwnerCheck / 2, Silence: t.OwnerStale / 2}
}

// errNoReign refuses what forwards.
var errNoReign = errors.New("it does not lead, or is about to end")

// forwards takes a connection of a node that follows. Both sides must hold orders against the same
// rules. It returns when the connection is over.
func (n *Node) forwards(from string, g *line.Greeting, observer bool) {
	e := n.reign.Load()
	if e == nil || e.stopping.Load() || e.Err() != nil {
		g.Refuse(errNoReign)
		return
	}
	_, market := n.replica.Market()
	if own := sha256.Sum256(market); !bytes.Equal(g.Body, own[:]) {
		g.Refuse(fmt.Errorf("node %s has another market part", from))
		return
	}
	f := &forwarded{Engine: e, from: from, observer: observer, does: &n.traffic.From,
		counts: &n.traffic.Passed, line: line.New(g.Conn, lineOptions(&e.opts.Timing)),
		base: n.links.Add(1) << sessionBits, lanes: map[uint32]*errandRow{},
		lives: map[uint64]*directory.Key{}, logins: map[uint32]struct{}{},
		answers: make(chan struct{}, 1)}
	rand.Read(f.seed[:]) //nolint:errcheck // it never fails
	if g.Take(f.seed[:]) != nil {
		g.Conn.Close()
		return
	}
	f.run(n)
}

// sessionBits are those of a session's number at its node. The bits above say which connection of
// which node it came through; 0: it is the leading node's own.
const sessionBits = 40

// run serves the node until the connection or the reign ends.
func (f *forwarded) run(n *Node) {
	gone, answered := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(answered)
		f.answer(gone)
	}()
	f.does.Up.Add(1)
	err := f.line.Run(func(message []byte) error {
		p := parseForward(message)
		return f.receive(p.Byte(), p)
	})
	close(gone)
	<-answered
	f.loseSessions()
	f.does.Up.Add(-1)
	if _, long := errors.AsType[line.LongMessage](err); long || errors.Is(err, errForward) {
		n.useless.Warn(f.log, "what forwards commands was disconnected", f.from, err, "from",
			f.from)
		return
	}
	f.log.Debug("a node forwards no more", "node", f.from, "error", err)
}

// receive begins what a message asks for. It does not wait.
func (f *forwarded) receive(kind byte, p *forwardParser) error {
	switch kind {
	case forwardCommands:
		x, gated, err := f.parse(p)
		switch {
		case err != nil:
		case f.observer:
			err = f.mayAsk(x)
		default:
			err = f.checkForwarded(x)
		}
		switch {
		case errors.Is(err, ErrNotLoggedIn), errors.Is(err, ErrNotConfirmed):
			f.refuseAll(x, err)
		case err != nil:
			return err
		case gated && !x.keyless:
			f.begin(x, x.list[0].account)
		default:
			f.begin(x, nil)
		}
	case forwardSigned:
		if !f.observer {
			return errForward // it verifies what its clients send
		}
		return f.passes(p)
	case forwardTake:
		number, key, nonce := p.Uint(), p.Bytes(forwardText), p.Uint()
		k, id := f.Key(key), p.clientID()
		var signed *directory.Signed
		if f.observer {
			signed = p.signed()
		}
		if err := p.done(); err != nil {
			return err
		}
		if f.takes.Add(1) > int64(f.opts.Limits.Reads) {
			f.does.Full.Add(1)
			f.took(number, 0, f.turnAway(ErrBusy))
		} else {
			f.does.InFlight.Add(1)
			go f.take(number, k, nonce, id, signed)
		}
	case forwardFence:
		x, key := &errand{by: f, number: p.Uint()}, f.Key(p.Bytes(forwardText))
		if err := p.done(); err != nil {
			return err
		}
		if x.keyless = key == nil; x.keyless {
			f.begin(x, nil)
		} else {
			f.begin(x, key.Account)
		}
	case forwardLost:
		key, session := f.Key(p.Bytes(forwardText)), p.UpTo(1<<sessionBits-1)
		if err := p.done(); err != nil {
			return err
		}
		if key != nil { // otherwise its sessions have ended with it
			f.begin(&errand{by: f, lost: f.base + session, of: key}, key.Account)
		}
	default:
		return errForward
	}
	return nil
}

// parse reads the commands of a message.
func (f *forwarded) parse(p *forwardParser) (x *errand, gated bool, err error) {
	x = &errand{by: f, number: p.Uint()}
	key, nonce := f.Key(p.Bytes(forwardText)), p.Uint()
	gated = p.Flag()
	n := p.UpTo(uint64(f.opts.Limits.Batch))
	p.Check(gated == (nonce == 0) && n > 0)
	of := key
	if x.keyless = key == nil; x.keyless { // the rest must make sense all the same
		of = &directory.Key{Account: new(directory.Account)}
	}
	for range n {
		c := p.command(f.Catalogue, of, nonce)
		if p.Bad() {
			return nil, false, errForward
		}
		f.own(c)
		c.errand = x
		if gated {
			c.gate = passed{}
		}
		x.list = append(x.list, c)
	}
	x.errs = make([]error, len(x.list))
	return x, gated, p.done()
}

// passed is the gate of a command that has passed its client's gate at another node.
type passed struct{}

// Pass implements Gate.
func (passed) Pass(give func()) bool {
	give()
	return true
}

// own makes the numbers of a session those that it has here.
func (f *forwarded) own(c *Command) {
	s := &c.switching
	if c.kind != event.KindSwitch || s.session == 0 {
		return
	}
	s.session = f.base + s.session&(1<<sessionBits-1)
	if s.instead != 0 {
		s.instead = f.base + s.instead&(1<<sessionBits-1)
	}
}

// refuseAll answers an errand whose commands must not be sent.
func (f *forwarded) refuseAll(x *errand, err error) {
	f.open.Add(1)
	x.counted = 1
	x.refuse(err)
}

// begin carries out an errand, unless too many are on their way. One that came through a gate takes
// turns with the others of its account; nil: it did not.
func (f *forwarded) begin(x *errand, account *directory.Account) {
	if !f.hasRoom(x) {
		f.does.Full.Add(1)
		x.refuse(f.turnAway(ErrBusy))
		return
	}
	if x.meters = x.lost == 0; x.meters {
		f.does.InFlight.Add(1)
	}
	if account == nil {
		if f.quick(x) {
			f.send(x)
		} else {
			go f.send(x)
		}
		return
	}
	f.mu.Lock()
	row := f.lanes[account.ID]
	switch {
	case row != nil:
		row.Push(x)
	case !f.quick(x):
		f.lanes[account.ID] = new(errandRow)
		go f.sendRow(x, account.ID)
	default:
		f.mu.Unlock()
		f.send(x)
		return
	}
	f.mu.Unlock()
}

// bytesOfSlot is for how many bytes of what a client has signed a request takes one slot more, up
// to a quarter of all: an observer may be hostile, and what waits here must not fill the memory.
const bytesOfSlot = 4096

// hasRoom counts the commands of an errand, unless this node's clients have too many in flight.
// What takes something back may have all slots.
func (f *forwarded) hasRoom(x *errand) bool {
	n, most := max(int64(len(x.list)+x.passed.answers), 1), int64(f.opts.Limits.InFlight)
	if x.passed.Signed != nil {
		n += min(int64(len(x.passed.Text)/bytesOfSlot), most/4)
	}
	if x.passed.answers > 0 && !x.passed.back {
		most = most * forwardSlots / 4
	}
	for _, c := range x.list {
		if !c.takesBack() {
			most = most * forwardSlots / 4
			break
		}
	}
	if f.open.Add(n) <= most {
		x.counted = n
		return true
	}
	f.open.Add(-n)
	return len(x.list) == 0 && x.lost != 0 // there are no more of those than sessions
}

// sendRow sends an errand, and those of its account that have come meanwhile.
func (f *forwarded) sendRow(x *errand, account uint32) {
	for x != nil {
		f.send(x)
		f.mu.Lock()
		if row := f.lanes[account]; row.Len() > 0 {
			x = row.Pop()
		} else {
			x = nil
			delete(f.lanes, account)
		}
		f.mu.Unlock()
	}
}

// quick reports whether send waits for nothing.
func (f *forwarded) quick(x *errand) bool {
	if x.keyless || x.passed.Signed != nil || !f.hasReleased() {
		return false
	}
	for _, c := range x.list {
		if c.kind == event.KindAmended {
			return false
		}
	}
	return true
}

// send admits the commands of an errand, and sends them to their wallet. Behind the end of the
// connection it does not: its clients are gone, and sessions have ended.
func (f *forwarded) send(x *errand) {
	if x.lost != 0 {
		f.endSession(x.of, x.lost)
		f.open.Add(-x.counted)
		return
	}
	var err error
	switch {
	case x.keyless:
		err = f.whyUnknown()
	case x.passed.Signed != nil:
		err = f.counted(f.derive(x))
	}
	n := int64(len(x.list))
	if err == nil && n > 0 {
		err = f.mayBegin(x)
	}
	if err != nil || n == 0 {
		x.refuse(err)
		return
	}
	x.left.Store(n + 1)
	key, session := x.begins()
	x.sendAll()
	if session != 0 {
		f.sessionBegan(key, session)
	}
	for _, err := range x.errs { // of those that were dropped
		if err != nil {
			x.answered()
		}
	}
	x.answered()
}

// whyUnknown returns why a key that the other node knows is not known here: it has ended by now, or
// this node leads no more, and cannot know of a key that was made since.
func (f *forwarded) whyUnknown() error {
	if err := knows(f.Door); err != nil {
		return err
	}
	return committed.ErrKeyRevoked
}

// refuse answers an errand none of whose commands was sent; nil: it has none.
func (x *errand) refuse(err error) {
	for i, c := range x.list {
		c.Free()
		x.list[i] = nil
	}
	x.err = err
	x.left.Store(1)
	x.answered()
}

// mayBegin admits the commands of an errand.
func (f *forwarded) mayBegin(x *errand) error {
	f.mu.Lock()
	over := f.lives == nil
	f.mu.Unlock()
	if over {
		return ErrStopping
	}
	for _, c := range x.list {
		f.stamp(c)
	}
	err := f.admit(x.list)
	x.admitted = err == nil
	return f.turnAway(err)
}

// sendAll sends admitted commands.
func (x *errand) sendAll() {
	f := x.by
	if len(x.list) > 1 {
		f.journal.lists.Add(1)
	}
	if c := x.list[0]; len(x.list) == 1 {
		f.toWallet(c.account, c)
		return
	}
	// What has an outcome is not touched any more, and sendAll looks at all of its list.
	f.Engine.sendAll(x.list, x.errs)
}

// answered counts an outcome, and has the errand answered behind the last one.
func (x *errand) answered() {
	if x.left.Add(-1) > 0 {
		return
	}
	f := x.by
	f.open.Add(-x.counted)
	if x.admitted && len(x.list) > 1 {
		f.journal.lists.Add(-1)
	}
	f.mu.Lock()
	f.ended = append(f.ended, x)
	over := f.lives == nil
	f.mu.Unlock()
	if x.meters {
		f.meter(!over)
	}
	select {
	case f.answers <- struct{}{}:
	default:
	}
}

// meter counts a request that was carried out, and whether its answer is sent.
func (f *forwarded) meter(sent bool) {
	f.does.InFlight.Add(-1)
	if sent {
		f.does.Answered.Add(1)
	} else {
		f.does.Unknown.Add(1)
	}
}

// answer sends the answers, until the connection is gone or the reign is dead. What has an outcome
// by then is still sent.
func (f *forwarded) answer(gone <-chan struct{}) {
	for {
		over := false
		select {
		case <-f.answers:
		case <-f.Dead():
			over = true
		case <-gone:
			return
		}
		f.mu.Lock()
		list := f.ended
		f.ended = nil
		f.mu.Unlock()
		released := f.committed.Released()
		for _, x := range list {
			if f.line.Send(func(b []byte) []byte { return x.append(b, released) }) != nil {
				over = true // the other side learns of no outcome any more
				break
			}
			f.sessionRefused(x)
			x.free()
		}
		if over {
			f.line.Close()
			return
		}
	}
}

// append writes the answer to an errand.
func (x *errand) append(b []byte, released uint64) []byte {
	b = append(b, forwardOutcomes)
	b = wire.AppendUints(b, x.number, released)
	b = appendError(b, x.err)
	if x.err != nil {
		return b
	}
	for i, c := range x.list {
		b = appendError(b, x.errs[i])
		if x.errs[i] == nil {
			b = appendOutcome(b, c)
		}
	}
	return b
}

// free gives the commands of an answered errand back.
func (x *errand) free() {
	for _, c := range x.list {
		if c != nil {
			c.Free()
		}
	}
}

// take takes the nonce of a read in its account's wallet, and answers with a sequence at which, or
// above it, the read is to be answered: behind all that the wallet had in flight, if the read names
// an order by its client order id.
func (f *forwarded) take(number uint64, key *directory.Key, nonce uint64, id event.ClientID,
	signed *directory.Signed) {
	var seq uint64
	var err error
	if key != nil && signed != nil {
		if err = f.proves(key, nonce, signed); err == nil {
			err = f.verify(key, signed)
		}
		err = f.counted(err)
	}
	switch {
	case err != nil:
	case key == nil:
		err = f.whyUnknown()
	default:
		q := committed.Position{ClientID: id}
		if err = despiteFreeze(f.Ask(&q, key, nonce)); err == nil {
			seq = q.Seq
		}
	}
	f.meter(f.took(number, seq, err))
}

// despiteFreeze leaves out that the account is frozen: the state of the other node, which has the
// freeze at that sequence, refuses the read.
func despiteFreeze(err error) error {
	if errors.Is(err, committed.ErrFrozen) {
		return nil
	}
	return err
}

// took answers a take, and reports whether the answer is sent.
func (f *forwarded) took(number, seq uint64, err error) bool {
	f.takes.Add(-1)
	sent := f.line.Send(func(b []byte) []byte {
		b = wire.AppendUints(append(b, forwardTaken), number, seq)
		return appendError(b, err)
	}) == nil
	if !sent {
		f.line.Close()
	}
	return sent
}

// begins returns the session that an errand begins; 0: none.
func (x *errand) begins() (*directory.Key, uint64) {
	c := x.list[0]
	if c == nil {
		return nil, 0
	}
	if s := &c.switching; c.kind == event.KindSwitch && s.change == sessionBegins {
		return c.key, s.session
	}
	return nil, 0
}

// sessionBegan notes a session of which the wallet knows, or will, so that it ends with the
// connection.
func (f *forwarded) sessionBegan(key *directory.Key, session uint64) {
	f.mu.Lock()
	over := f.lives == nil
	if !over {
		f.lives[session] = key
	}
	f.mu.Unlock()
	if over {
		f.SessionLost(key, session)
	}
}

// sessionRefused forgets the session of an errand whose begin was refused.
func (f *forwarded) sessionRefused(x *errand) {
	if len(x.list) != 1 {
		return
	}
	if _, session := x.begins(); session != 0 && x.list[0].outcome == Refused {
		f.mu.Lock()
		delete(f.lives, session)
		f.mu.Unlock()
	}
}

// endSession tells the wallet that a session has ended.
func (f *forwarded) endSession(key *directory.Key, session uint64) {
	f.mu.Lock()
	_, lives := f.lives[session]
	delete(f.lives, session)
	f.mu.Unlock()
	if lives {
		f.SessionLost(key, session)
	}
}

// loseSessions ends the sessions of a connection that is over.
func (f *forwarded) loseSessions() {
	f.mu.Lock()
	lives := f.lives
	f.lives = nil
	f.mu.Unlock()
	for session, key := range lives {
		f.SessionLost(key, session)
	}
}
