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
	dir   string // of the log, which form has made
	files vfs.FS
	// local keeps images, projections and history. Its journal is not used. The store closes it.
	local persistence.Store
	// send takes a frame to a peer, or drops it. It does not block.
	send func(to string, frame []byte)
	// cut ends the connections of a peer; nil: nothing does.
	cut func(name string)
	// dial opens a connection to a peer.
	dial func(ctx context.Context, name string) (net.Conn, error)
	// ticks says that time has passed; electionTicks of them without a leader begin an election.
	ticks  <-chan time.Time
	now    func() time.Time
	random func(n int) int
	logger *slog.Logger
	// fatal is called when a sync has failed. It must end the process.
	fatal         func(error)
	least, logMax uint64     // see setup
	reads         uint8      // see setup
	market        *OwnMarket // see setup
	agreed        func(market []byte)
	// await returns once the node may take part; nil: it may.
	await  func(*raftlog.Log) error
	former *former // see node
	// changed is told of another membership, by the goroutine of the node.
	changed func([]machine.Member)
	// reach refuses a node that this one cannot reach; nil: it can reach any.
	reach func(name, address string) error
	saw   func(index uint64, e *machine.Entry, a machine.Answer) // see setup
}

const (
	// maxFrames is how many frames of peers wait for the node; more are dropped, and sent again.
	maxFrames = 1024
	// maxProposals is how many callers wait for the node to take their proposals.
	maxProposals = 256
	// atOnce is how much of each the node takes until it writes.
	atOnce = 256
)

// A store is one node of a replicated store. Any node has the images, projections and history that
// it was told of; only the one that leads takes entries. Its methods may be called from any
// goroutine.
type store struct {
	persistence.History // local's

	local    persistence.Store
	localTok persistence.Token // under which this node writes to local
	own      persistence.Token
	claimed  atomic.Pointer[persistence.Token] // by the newest Acquire here that was answered
	held     atomic.Uint64                     // sequence above which the journal is held
	log      *raftlog.Log
	newest   uint8 // format that this program reads
	index    index
	now      func() time.Time
	logger   *slog.Logger
	name     string
	reach    func(name, address string) error
	unfit    atomic.Pointer[error] // see Unfit; nil: the node could serve
	dial     func(ctx context.Context, name string) (net.Conn, error)
	take     atomic.Pointer[taker] // see Accept; nil: connections are refused
	// see AcceptObservers; nil: connections of observers are refused
	takeObservers atomic.Pointer[taker]
	joined        atomic.Pointer[[]string] // names of the members, but of those that are awaited

	frames   chan received
	proposed chan request
	asked    chan question
	calls    chan func(*node)
	stop     chan struct{}
	done     chan struct{} // closed when the node has ended
	failure  error         // why; read after done

	seen    atomic.Pointer[view]
	changes struct { // closed and replaced when another node leads, or for followers
		sync.Mutex
		next chan struct{}
	}
	followers atomic.Int32 // that wait for another batch

	// writes is held for reading by writes to local that need the owner's token, so that a new
	// owner can wait for those of the one before.
	writes sync.RWMutex
	life   sync.RWMutex // held for reading by reads of the log, so that Close waits for them
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
		proposed: make(chan request, maxProposals), calls: make(chan func(*node)),
		asked:  make(chan question, maxProposals),
		own:    persistence.Token("0:" + persistence.NewID()),
		newest: cmp.Or(o.reads, machine.Newest), dial: o.dial,
		stop: make(chan struct{}), done: make(chan struct{})}
	if s.reach = o.reach; s.reach == nil {
		s.reach = func(string, string) error { return nil }
	}
	s.changes.next = make(chan struct{})
	s.seen.Store(&view{})
	s.held.Store(math.MaxUint64)
	ctx := context.Background()
	s.localTok, _, err = s.local.Acquire(ctx, persistence.Claim{Owner: "the node's own"})
	if err != nil {
		return nil, err
	}
	log, state, err := raftlog.Open(o.dir, raftlog.Options{FS: o.files, Fatal: o.fatal,
		Nonce: persistence.NewID()})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	s.log = log
	if o.await != nil {
		if err := o.await(log); err != nil {
			return nil, errors.Join(err, log.Close())
		}
	}
	changed := func(members []machine.Member) {
		s.joined.Store(new(joinedOf(members))) // before connections are dropped
		if o.changed != nil {
			o.changed(members)
		}
	}
	n, err := newNode(log, state, setup{logger: o.logger, send: o.send, random: o.random,
		now: o.now, publish: s.show, index: &s.index, least: o.least, logMax: o.logMax,
		former: o.former, changed: changed, reads: s.newest,
		market: o.market, agreed: o.agreed, unfit: s.whyUnfit, saw: o.saw, cut: o.cut})
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	go s.run(n, o.ticks)
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
		case q := <-s.asked:
			n.confirm(q)
		case call := <-s.calls:
			call(n)
		case <-ticks:
			err = n.tick()
		}
		if err == nil {
			err = s.more(n)
		}
		if err == nil {
			err = n.work()
		}
	}
	if !errors.Is(err, errClosed) {
		s.logger.Error("the node has ended", "store", s.name, "error", err)
	}
	s.failure = err
	n.drop(err)
}

// more takes what else has come, so that one sync is for all of it.
func (s *store) more(n *node) error {
	for range atOnce {
		select {
		case r := <-s.frames:
			if err := n.receive(r.from, r.frame); err != nil {
				return err
			}
		case r := <-s.proposed:
			n.propose(r.entry, r.caller)
		case q := <-s.asked:
			n.confirm(q)
		default:
			return nil
		}
	}
	return nil
}

// receive takes a frame of a peer, which its transport has proved it to be. The frame is the
// store's from then on. If too many wait it is dropped.
func (s *store) receive(from string, frame []byte) {
	select {
	case s.frames <- received{from, frame}:
	default:
	}
}

// propose waits until an entry is applied here. An error leaves the outcome unknown, but for one
// that is persistence.Definite.
func (s *store) propose(ctx context.Context, e *machine.Entry) (machine.Answer, error) {
	if err := e.Fits(); err != nil {
		return machine.Answer{}, err
	}
	if e.Kind != machine.Acquire && !e.Kind.Changes() {
		if err := s.owned(e.Token); err != nil {
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

// owned returns ErrFenced for a token that is not the owner's, and never will be again. What is
// applied here decides: epochs only grow. It returns nil for one that may be newer.
func (s *store) owned(tok persistence.Token) error {
	v := s.seen.Load()
	if tok == "" || tok != v.beat.Token && tok.Epoch() <= v.epoch {
		return codec.Fenced(v.beat.Owner)
	}
	return nil
}

// Own returns the token of the node itself.
func (s *store) Own() persistence.Token { return s.own }

// Hold keeps the journal above a sequence in this node's log.
func (s *store) Hold(seq uint64) { s.held.Store(seq) }

// owns returns the token of this node's newest claim, if that owns the engine and the node leads.
func (s *store) owns() (persistence.Token, bool) {
	v, tok := s.seen.Load(), s.claimed.Load()
	if tok == nil || !v.leading || v.beat.Token != *tok {
		return "", false
	}
	return *tok, true
}

// over reports whether an error says that a claim is one of the past: it lost the engine or the
// lead.
func over(err error) bool {
	return errors.Is(err, persistence.ErrFenced) || errors.Is(err, errNotLeading)
}

// call lets the goroutine of the node run fn.
func (s *store) call(ctx context.Context, fn func(*node)) error {
	ran := make(chan struct{})
	select {
	case s.calls <- func(n *node) { fn(n); close(ran) }:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.done:
		return s.failure
	}
	<-ran
	return nil
}

// String names the store for people.
func (s *store) String() string { return s.name }

// Engine returns the id of the engine that is kept here.
func (s *store) Engine() string { return s.local.Engine() }

// Size returns how many bytes the own copy takes, without the log.
func (s *store) Size(ctx context.Context) (int64, error) {
	if local, tells := s.local.(persistence.Sizer); tells {
		return local.Size(ctx)
	}
	return 0, errors.ErrUnsupported
}

// Exclusive returns false: another node may take the engine over.
func (s *store) Exclusive() bool { return false }

// HeadMissing reports whether the node was left alone by Survive, and nothing was appended since. A
// node without the file is not opened.
func (s *store) HeadMissing() bool { return s.seen.Load().lost }

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
