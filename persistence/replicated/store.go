package replicated

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
	"exchange/persistence/internal/machine"
	"exchange/persistence/internal/raftlog"
)

// options of open.
type options struct {
	dir   string // the log's folder, which raftlog.Form has created
	files vfs.FS
	// local stores images, projections and history. Its journal is unused. The store closes it.
	local persistence.Store
	// send sends a frame to a peer, or drops it. It does not block.
	send func(to string, frame []byte)
	// cut ends the connections of a peer; may be nil.
	cut func(name string)
	// dial opens a connection to a peer.
	dial func(ctx context.Context, name string) (net.Conn, error)
	// tickC delivers ticks; electionTicks of them without a leader start an election.
	tickC  <-chan time.Time
	now    func() time.Time
	random func(n int) int
	logger *slog.Logger
	// fatal is called when a sync has failed. It must end the process.
	fatal           func(error)
	minTrim, logMax uint64              // see setup
	maxFormat       uint8               // see setup
	market          *OwnMarket          // see setup
	onMarket        func(market []byte) // see setup
	// waitToStart returns once the node may take part; nil: it may at once.
	waitToStart func(*raftlog.Log) error
	formation   *formation // see node
	// onMembers receives each new membership, from the node's goroutine.
	onMembers func([]machine.Member)
	// checkPeer refuses a node that cannot be reached; nil: all can.
	checkPeer func(name, address string) error
	onApply   func(index uint64, e *machine.Entry, a machine.Answer) // see setup
}

const (
	// maxFrames bounds the queued frames of peers; more are dropped, and sent again.
	maxFrames = 1024
	// maxProposals bounds the queued proposals, and confirm requests.
	maxProposals = 256
	// maxDrain bounds the inputs taken before the node writes.
	maxDrain = 256
)

// A store is one node of a replicated store. Each node stores the images, projections and history
// written to it; only the leader accepts entries. Its methods may be called from any goroutine.
type store struct {
	persistence.History // local's

	local      persistence.Store
	localToken persistence.Token                 // under which this node writes to local
	nodeToken  persistence.Token                 // see Own
	claimed    atomic.Pointer[persistence.Token] // of the newest Acquire that succeeded here
	held       atomic.Uint64                     // sequence above which the journal is kept
	log        *raftlog.Log
	maxFormat  uint8 // newest format that this program reads
	index      index
	now        func() time.Time
	logger     *slog.Logger
	name       string
	checkPeer  func(name, address string) error
	unfit      atomic.Pointer[error] // see Unfit; nil: the node could serve
	dial       func(ctx context.Context, name string) (net.Conn, error)
	onConn     atomic.Pointer[connHandler] // see Accept; nil: connections are refused
	// see AcceptObservers; nil: observers are refused
	onObserver atomic.Pointer[connHandler]
	joined     atomic.Pointer[[]string] // names of the members, without awaited ones

	frames    chan received
	proposed  chan request
	confirms  chan confirmRequest
	nodeCalls chan func(*node)
	stop      chan struct{}
	done      chan struct{} // closed when the node has ended
	failure   error         // why it ended; read after done

	view       atomic.Pointer[view]
	viewSignal struct { // c is closed and replaced to wake the callers of awaitView
		sync.Mutex
		c chan struct{}
	}
	batchWaiters atomic.Int32 // callers of Follow, which wait for batches, too

	// writes is read-locked by writes to local that need the owner's token, so that a new owner can
	// wait for its predecessor's writes.
	writes sync.RWMutex
	life   sync.RWMutex // read-locked by reads of the log, so that Close waits for them
	closed sync.Once
}

type received struct {
	from  string
	frame []byte
}

type request struct {
	entry  *machine.Entry
	caller chan<- result
}

var _ persistence.Store = (*store)(nil)

var errClosed = errors.New("the store is closed")

// open opens a node's log and starts it.
func open(o options) (_ *store, err error) {
	s := &store{History: o.local, local: o.local, now: o.now, logger: o.logger,
		name: "replicated:" + o.dir, frames: make(chan received, maxFrames),
		proposed: make(chan request, maxProposals), nodeCalls: make(chan func(*node)),
		confirms:  make(chan confirmRequest, maxProposals),
		nodeToken: persistence.Token("0:" + persistence.NewID()),
		maxFormat: cmp.Or(o.maxFormat, machine.Newest), dial: o.dial,
		stop: make(chan struct{}), done: make(chan struct{})}
	if s.checkPeer = o.checkPeer; s.checkPeer == nil {
		s.checkPeer = func(string, string) error { return nil }
	}
	s.viewSignal.c = make(chan struct{})
	s.view.Store(&view{})
	s.held.Store(math.MaxUint64)
	ctx := context.Background()
	s.localToken, _, err = s.local.Acquire(ctx, persistence.Claim{Owner: "the node's own"})
	if err != nil {
		return nil, err
	}
	log, state, err := raftlog.Open(o.dir, raftlog.Options{FS: o.files, Fatal: o.fatal,
		Nonce: persistence.NewID()})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	s.log = log
	if o.waitToStart != nil {
		if err := o.waitToStart(log); err != nil {
			return nil, errors.Join(err, log.Close())
		}
	}
	changed := func(members []machine.Member) {
		s.joined.Store(new(joinedNames(members))) // before connections are dropped
		if o.onMembers != nil {
			o.onMembers(members)
		}
	}
	n, err := newNode(log, state, setup{logger: o.logger, send: o.send, random: o.random,
		now: o.now, publish: s.setView, index: &s.index, minTrim: o.minTrim, logMax: o.logMax,
		formation: o.formation, onMembers: changed, maxFormat: s.maxFormat,
		market: o.market, onMarket: o.onMarket, unfit: s.whyUnfit, onApply: o.onApply, cut: o.cut})
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	go s.run(n, o.tickC)
	return s, nil
}

// run is the one goroutine that uses the node.
func (s *store) run(n *node, ticks <-chan time.Time) {
	defer close(s.done)
	err := n.work()
	for err == nil {
		select {
		case <-s.stop:
			err = errClosed
		case r := <-s.frames:
			err = n.receive(r.from, r.frame)
		case r := <-s.proposed:
			n.propose(r.entry, r.caller)
		case q := <-s.confirms:
			n.confirm(q)
		case call := <-s.nodeCalls:
			call(n)
		case <-ticks:
			err = n.tick()
		}
		if err == nil {
			err = s.drain(n)
		}
		if err == nil {
			err = n.work()
		}
	}
	if !errors.Is(err, errClosed) {
		s.logger.Error("the node has ended", "store", s.name, "error", err)
	}
	s.failure = err
	n.proposals.failPending(err)
}

// drain processes further queued inputs, so that they share one sync.
func (s *store) drain(n *node) error {
	for range maxDrain {
		select {
		case r := <-s.frames:
			if err := n.receive(r.from, r.frame); err != nil {
				return err
			}
		case r := <-s.proposed:
			n.propose(r.entry, r.caller)
		case q := <-s.confirms:
			n.confirm(q)
		default:
			return nil
		}
	}
	return nil
}

// receive queues a frame of a peer, whose name its transport has proved. The store takes ownership
// of the frame. If the queue is full, the frame is dropped.
func (s *store) receive(from string, frame []byte) {
	select {
	case s.frames <- received{from, frame}:
	default:
	}
}

// propose waits until an entry is applied here. After an error that is not persistence.Definite the
// outcome is unknown.
func (s *store) propose(ctx context.Context, e *machine.Entry) (machine.Answer, error) {
	if err := e.Fits(); err != nil {
		return machine.Answer{}, err
	}
	if e.Kind != machine.Acquire && !e.Kind.ChangesCluster() {
		if err := s.checkToken(e.Token); err != nil {
			return machine.Answer{}, err
		}
	}
	c := make(chan result, 1)
	select {
	case s.proposed <- request{e, c}:
	case <-ctx.Done():
		return machine.Answer{}, ctx.Err()
	case <-s.done:
		return machine.Answer{}, s.failure
	}
	select {
	case r := <-c:
		if r.err != nil {
			return machine.Answer{}, r.err
		}
		return r.answer, r.answer.Err(e)
	case <-ctx.Done():
		return machine.Answer{}, ctx.Err()
	case <-s.done:
		return machine.Answer{}, s.failure
	}
}

// checkToken returns ErrFenced for a token that can never be the owner's again, by the entries
// applied here: epochs only grow. It returns nil for one that may be newer.
func (s *store) checkToken(tok persistence.Token) error {
	v := s.view.Load()
	if tok == "" || tok != v.beat.Token && tok.Epoch() <= v.epoch {
		return codec.Fenced(v.beat.Owner)
	}
	return nil
}

// Own returns the node's own token.
func (s *store) Own() persistence.Token { return s.nodeToken }

// Hold keeps the journal above a sequence in this node's log.
func (s *store) Hold(seq uint64) { s.held.Store(seq) }

// ownerToken returns the token of this node's newest claim, if it owns the engine and the node
// leads.
func (s *store) ownerToken() (persistence.Token, bool) {
	v, tok := s.view.Load(), s.claimed.Load()
	if tok == nil || !v.leading || v.beat.Token != *tok {
		return "", false
	}
	return *tok, true
}

// isLostClaim reports whether an error means that a claim has lost the engine or the lead.
func isLostClaim(err error) bool {
	return errors.Is(err, persistence.ErrFenced) || errors.Is(err, errNotLeading)
}

// onNode runs fn on the node's goroutine.
func (s *store) onNode(ctx context.Context, fn func(*node)) error {
	ran := make(chan struct{})
	select {
	case s.nodeCalls <- func(n *node) { fn(n); close(ran) }:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.done:
		return s.failure
	}
	<-ran
	return nil
}

// String names the store in logs.
func (s *store) String() string { return s.name }

// Engine returns the id of the stored engine.
func (s *store) Engine() string { return s.local.Engine() }

// Size returns the size in bytes of the local store, without the log.
func (s *store) Size(ctx context.Context) (int64, error) {
	if local, ok := s.local.(persistence.Sizer); ok {
		return local.Size(ctx)
	}
	return 0, errors.ErrUnsupported
}

// Exclusive returns false: another node may take over the engine.
func (s *store) Exclusive() bool { return false }

// HeadMissing reports whether the journal may have lost its end: Survive kept this node alone, and
// nothing was appended since. A log without its file HEAD is never opened.
func (s *store) HeadMissing() bool { return s.view.Load().lost }

// Close ends the node and frees its folders. A second Close does nothing.
func (s *store) Close() (err error) {
	s.closed.Do(func() {
		close(s.stop)
		<-s.done
		s.life.Lock()
		defer s.life.Unlock()
		err = errors.Join(s.log.Close(), s.local.Close())
	})
	return err
}
