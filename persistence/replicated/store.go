package replicated

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
	"exchange/persistence/internal/machine"
	"exchange/persistence/internal/raftlog"
)

const (
	// maxFrames bounds the queued frames of peers; more are dropped, and sent again.
	maxFrames = 1024
	// maxProposals bounds the queued proposals, and confirm requests.
	maxProposals = 256
	// maxDrain bounds the inputs taken before the node writes.
	maxDrain = 256
)

// A connHandler serves the connections that other members open: see Accept.
type connHandler func(from string, conn net.Conn)

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

var _ persistence.Store = (*store)(nil)

var errClosed = errors.New("the store is closed")

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
