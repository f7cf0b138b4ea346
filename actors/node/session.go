package node

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/metrics"
	"exchange/core/event"
	"exchange/core/wire"
	"exchange/persistence/line"
)

// The protocol between a follower and the leader. Numbers are varints, texts are length-prefixed.
// The greeting contains the digest of the market part, its answer the seed of the challenges that
// logins sign. The follower sends:
//
//	commands number, key, nonce, gated, commands        -> outcomes
//	take     number, key, nonce, client order id or ""  -> taken
//	fence    number, key                                -> outcomes, of no command
//	lost     key, session
//	signed   number, key, nonce, gated, takes back, number of commands, signed request
//	                                                    -> outcomes
//
// The only commands of an observer begin and end sessions. Otherwise it forwards clients' signed
// requests, and the leader makes the commands. A member answers its reads: see package observing.
//
// The commands of one message are one batch, as for Engine.DoAll. Gated commands came through a
// gate, so they have no nonce, and those of one account go to its wallet in order of arrival.
const (
	forwardVersion = 5

	forwardCommands = 2
	forwardTake     = 3
	forwardLost     = 4
	forwardFence    = 5
	forwardSigned   = 6

	forwardOutcomes = 102
	forwardTaken    = 103
)

// A forwardingSession executes commands that one follower forwards to this leader. It ends with the
// connection, at the latest with the term.
type forwardingSession struct {
	*actors.Engine
	from string      // name of the node
	edge actors.Edge // verifies signed requests of an observer
	// the follower is an observer, which is not trusted to verify signatures
	observer bool
	line     *line.Line
	traffic  *metrics.Link // counts of requests
	// counts of an observer's signed requests
	counts *metrics.Passed
	slots  int64  // of commands in flight
	base   uint64 // added to session numbers, to make them unique among nodes

	open       atomic.Int64 // commands without an outcome, and waiting ends of sessions
	nonceReads atomic.Int64 // reads with nonces being taken

	mu       sync.Mutex
	finished []*forwardedRequest      // to be answered; guarded by mu
	queues   map[uint32]*accountQueue // by account, while a request is in flight; guarded by mu
	// keys of sessions by local number; nil: the connection is closed; guarded by mu
	sessions map[uint64]*directory.Key
	logins   map[uint32]struct{} // keys logged in through an observer; guarded by mu
	seed     challenger          // of its challenges
	answers  chan struct{}       // capacity 1: finished is not empty
}

// lineOptions are the options of forwarding connections.
func lineOptions(t *actors.Timing) line.Options {
	return line.Options{Longest: 32 << 20, Takes: 32 << 20, Waiting: 64 << 20,
		Beat: t.OwnerCheck / 2, Silence: t.OwnerStale / 2}
}

// errNotLeading refuses a forwarding connection.
var errNotLeading = errors.New("it does not lead, or is about to stop")

// acceptForwarding serves a forwarding connection. Both sides must check orders by the same rules.
// It returns when the connection is closed.
func (n *Node) acceptForwarding(from string, g *line.Greeting, observer bool) {
	e := n.engine.Load()
	if e == nil || e.Stopping() || e.Err() != nil {
		g.Refuse(errNotLeading)
		return
	}
	_, market := n.replica.Market()
	if own := sha256.Sum256(market); !bytes.Equal(g.Body, own[:]) {
		g.Refuse(fmt.Errorf("node %s has another market part", from))
		return
	}
	f := &forwardingSession{Engine: e, from: from, edge: n.opts.Edge, observer: observer,
		traffic: &n.traffic.From,
		counts:  &n.traffic.Passed, line: line.New(g.Conn, lineOptions(&n.opts.Timing)),
		slots: int64(e.Limits().InFlight), base: n.links.Add(1) << sessionBits,
		queues:   map[uint32]*accountQueue{},
		sessions: map[uint64]*directory.Key{}, logins: map[uint32]struct{}{},
		answers: make(chan struct{}, 1)}
	rand.Read(f.seed[:]) //nolint:errcheck // it never fails
	if g.Take(f.seed[:]) != nil {
		g.Conn.Close()
		return
	}
	f.run(n)
}

// sessionBits is the number of bits of a session's number at its node. The bits above are the
// number of its connection; 0: a session of the leader itself.
const sessionBits = 40

// run serves the follower until the connection or the term ends.
func (f *forwardingSession) run(n *Node) {
	gone, answered := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(answered)
		f.answer(gone)
	}()
	f.traffic.Up.Add(1)
	err := f.line.Run(func(message []byte) error {
		p := actors.Parse(message)
		return f.receive(p.Byte(), p)
	})
	close(gone)
	<-answered
	f.loseSessions()
	f.traffic.Up.Add(-1)
	if _, long := errors.AsType[line.LongMessage](err); long || errors.Is(err,
		actors.ErrMalformed) {
		n.badPeers.Warn(f.Log(), "a forwarding node was disconnected", f.from, err, "from",
			f.from)
		return
	}
	f.Log().Debug("a forwarding connection has ended", "node", f.from, "error", err)
}

// receive starts the request of a message. It does not wait.
func (f *forwardingSession) receive(kind byte, p *actors.Parser) error {
	switch kind {
	case forwardCommands:
		x, gated, err := f.parse(p)
		switch {
		case err != nil:
		case f.observer:
			err = f.checkObserver(x)
		default:
			err = f.checkForwarded(x)
		}
		switch {
		case errors.Is(err, actors.ErrNotLoggedIn), errors.Is(err, actors.ErrNotConfirmed):
			f.refuseAll(x, err)
		case err != nil:
			return err
		case gated && !x.keyless:
			f.begin(x, x.list[0].Key().Account)
		default:
			f.begin(x, nil)
		}
	case forwardSigned:
		if !f.observer {
			return actors.ErrMalformed // members verify signatures themselves
		}
		return f.acceptSigned(p)
	case forwardTake:
		number, key, nonce := p.Uint(), p.Bytes(actors.MaxText), p.Uint()
		k, id := f.Key(key), p.ClientID()
		p.Check(!f.observer) // members answer its reads
		if err := p.Done(); err != nil {
			return err
		}
		if f.nonceReads.Add(1) > int64(f.Limits().Reads) {
			f.traffic.Full.Add(1)
			f.answerNonce(number, 0, f.CountRefusal(actors.ErrBusy))
		} else {
			f.traffic.InFlight.Add(1)
			go f.takeNonce(number, k, nonce, id)
		}
	case forwardFence:
		x, key := &forwardedRequest{by: f, number: p.Uint()}, f.Key(p.Bytes(actors.MaxText))
		if err := p.Done(); err != nil {
			return err
		}
		if x.keyless = key == nil; x.keyless {
			f.begin(x, nil)
		} else {
			f.begin(x, key.Account)
		}
	case forwardLost:
		key, session := f.Key(p.Bytes(actors.MaxText)), p.UpTo(1<<sessionBits-1)
		if err := p.Done(); err != nil {
			return err
		}
		if key != nil { // otherwise its sessions ended with the key
			f.begin(&forwardedRequest{by: f, lost: f.base + session, of: key}, key.Account)
		}
	default:
		return actors.ErrMalformed
	}
	return nil
}

// parse reads the commands of a message.
func (f *forwardingSession) parse(p *actors.Parser) (x *forwardedRequest, gated bool, err error) {
	x = &forwardedRequest{by: f, number: p.Uint()}
	key, nonce := f.Key(p.Bytes(actors.MaxText)), p.Uint()
	gated = p.Flag()
	n := p.UpTo(uint64(f.Limits().Batch))
	p.Check(gated == (nonce == 0) && n > 0)
	of := key
	if x.keyless = key == nil; x.keyless { // the rest must be well-formed anyway
		of = &directory.Key{Account: new(directory.Account)}
	}
	for range n {
		c := p.Command(f.Catalogue, of, nonce)
		if p.Bad() {
			return nil, false, actors.ErrMalformed
		}
		c.Renumber(f.numberHere)
		c.ReplyTo(x)
		if gated {
			c.Through(passedGate{})
		}
		x.list = append(x.list, c)
	}
	x.errs = make([]error, len(x.list))
	return x, gated, p.Done()
}

// passedGate is the gate of a command that passed its client's gate at another node.
type passedGate struct{}

// Pass implements Gate.
func (passedGate) Pass(give func()) bool {
	give()
	return true
}

// numberHere returns the number that a session of the node has here.
func (f *forwardingSession) numberHere(number uint64) uint64 {
	return f.base +
		number&(1<<sessionBits-1)
}

// meter counts an executed request, and whether its answer was sent.
func (f *forwardingSession) meter(sent bool) {
	f.traffic.InFlight.Add(-1)
	if sent {
		f.traffic.Answered.Add(1)
	} else {
		f.traffic.Unknown.Add(1)
	}
}

// answer sends the answers, until the connection is closed or the term ends. Outcomes that exist by
// then are still sent.
func (f *forwardingSession) answer(gone <-chan struct{}) {
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
		list := f.finished
		f.finished = nil
		f.mu.Unlock()
		released := f.Released()
		for _, x := range list {
			if f.line.Send(func(b []byte) []byte { return x.append(b, released) }) != nil {
				over = true // no further outcome reaches the other side
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

// takeNonce takes the nonce of a read in its account's wallet, and answers with the lowest sequence
// at which the read may be answered. For a read by client order id that covers all that the wallet
// had in flight.
func (f *forwardingSession) takeNonce(number uint64, key *directory.Key, nonce uint64,
	id event.ClientID) {
	var seq uint64
	var err error
	if key == nil {
		err = f.unknownKeyError()
	} else {
		q := committed.Position{ClientID: id}
		if err = despiteFreeze(f.Ask(&q, key, nonce)); err == nil {
			seq = q.Seq
		}
	}
	f.meter(f.answerNonce(number, seq, err))
}

// despiteFreeze drops ErrFrozen: the other node's state contains the freeze at that sequence, and
// refuses the read itself.
func despiteFreeze(err error) error {
	if errors.Is(err, committed.ErrFrozen) {
		return nil
	}
	return err
}

// answerNonce answers a take, and reports whether the answer was sent.
func (f *forwardingSession) answerNonce(number, seq uint64, err error) bool {
	f.nonceReads.Add(-1)
	sent := f.line.Send(func(b []byte) []byte {
		b = wire.AppendUints(append(b, forwardTaken), number, seq)
		return actors.AppendError(b, err)
	}) == nil
	if !sent {
		f.line.Close()
	}
	return sent
}

// sessionBegan registers a session that the wallet has or will have, so that it ends with the
// connection.
func (f *forwardingSession) sessionBegan(key *directory.Key, session uint64) {
	f.mu.Lock()
	over := f.sessions == nil
	if !over {
		f.sessions[session] = key
	}
	f.mu.Unlock()
	if over {
		f.SessionLost(key, session)
	}
}

// sessionRefused removes the session of a request whose begin was refused.
func (f *forwardingSession) sessionRefused(x *forwardedRequest) {
	if len(x.list) != 1 {
		return
	}
	if _, session := x.sessionBegun(); session != 0 && x.list[0].Outcome() == actors.Refused {
		f.mu.Lock()
		delete(f.sessions, session)
		f.mu.Unlock()
	}
}

// endSession reports the end of a session to the wallet.
func (f *forwardingSession) endSession(key *directory.Key, session uint64) {
	f.mu.Lock()
	_, lives := f.sessions[session]
	delete(f.sessions, session)
	f.mu.Unlock()
	if lives {
		f.SessionLost(key, session)
	}
}

// loseSessions ends the sessions of a closed connection.
func (f *forwardingSession) loseSessions() {
	f.mu.Lock()
	lives := f.sessions
	f.sessions = nil
	f.mu.Unlock()
	for session, key := range lives {
		f.SessionLost(key, session)
	}
}
