package observing

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"exchange/persistence"
	"exchange/persistence/line"
)

// errObserver refuses operations of members.
var errObserver = fmt.Errorf("%w: an observer is no member", persistence.ErrInvalid)

// errClosed: the store was closed.
var errClosed = errors.New("the observer's store is closed")

// Options of Open.
type Options struct {
	Name  string   // the observer's own
	Nodes []string // names of the members to follow, at least one
	// Dial opens a connection to a member, which calls the function of Replica.AcceptObservers
	// there. It has the bounds of Replica.Dial, except that an observer has up to two connections
	// to a member.
	Dial func(ctx context.Context, node string) (net.Conn, error)
	Log  *slog.Logger
	// Agreed receives the applied market part, at the start and after each change, possibly
	// repeatedly. It must not wait. Optional.
	Agreed func(market []byte)
	// Silence is the time without a message after which a member is given up; 0: usualSilence.
	Silence time.Duration
	buffer  int // maximum bytes of batches waiting for the fold; 0: usualBuffer
}

// usualBuffer is some seconds of heavy trading.
const usualBuffer = 16 << 20

// A Store is the store of an observer: it follows a member, and persists nothing. Its methods may
// be called from any goroutine; one fold at a time reads it, starting with the image.
type Store struct {
	persistence.History // of the member
	o                   Options
	process             uint64        // random id, unique among stores with the same name
	queries             chan struct{} // slots of running queries
	reads               chan struct{} // slots of clients' reads in flight
	halt                context.CancelFunc
	done                chan struct{} // closed when run has returned

	dropped atomic.Uint64 // sequence up to which rows were dropped
	batches atomic.Uint64 // number of batches received on feeds
	fed     atomic.Uint64 // bytes received on feeds, without heartbeats

	mu       sync.Mutex
	changed  chan struct{} // closed at the next change; guarded by mu
	image    []byte        // that the fold starts from; nil: taken; guarded by mu
	hasImage bool          // the image is complete; guarded by mu
	imageSeq uint64        // of the image; guarded by mu
	waiting  []batch       // received and not folded; guarded by mu
	bytes    int           // of waiting; guarded by mu
	end      uint64        // sequence of the newest received batch; guarded by mu
	digest   uint64        // of that batch; 0: unknown; guarded by mu
	link     *link         // to the followed member; nil: none; guarded by mu
	links    uint64        // number of links so far; guarded by mu
	standing status        // newest status of a member; guarded by mu
	market   market        // guarded by mu
	failed   error         // why the store has ended; guarded by mu
	next     *reachRequest // not started yet; guarded by mu
	reaching bool          // runReaches is running; guarded by mu
}

// A batch is a received batch of the journal.
type batch struct {
	prev, next uint64
	data       []byte
}

var (
	_ persistence.Replica       = (*Store)(nil)
	_ persistence.RemoteHistory = (*Store)(nil)
)

// Open follows the first member that accepts this observer, and returns once the member's image is
// complete. ctx bounds that. The caller closes the store.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Name == "" || len(o.Nodes) == 0 || o.Dial == nil {
		return nil, errors.New("BUG: an observer needs a name, members, and Dial")
	}
	o.Silence, o.buffer = cmp.Or(o.Silence, usualSilence), cmp.Or(o.buffer, usualBuffer)
	ctxRun, halt := context.WithCancel(context.Background())
	s := &Store{o: o, process: rand.Uint64(), halt: halt, done: make(chan struct{}),
		queries: make(chan struct{}, maxQueries), reads: make(chan struct{}, maxReads),
		changed: make(chan struct{})}
	s.History = s.At(everything)
	go s.run(ctxRun)
	err := s.until(ctx, func() (bool, error) {
		l := s.link
		return s.hasImage && l != nil && l.hasMarket && l.watermark >= s.imageSeq, nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("observer %s has found no member to follow: %w", o.Name,
			err), s.Close())
	}
	s.dropped.Store(s.imageSeq)
	return s, nil
}

// change runs a change under mu, and wakes all waiting goroutines.
func (s *Store) change(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn()
	close(s.changed)
	s.changed = make(chan struct{})
}

// until waits until is, which is called with mu held, returns true or an error. It returns the
// error of an ended ctx or store.
func (s *Store) until(ctx context.Context, is func() (bool, error)) error {
	for {
		s.mu.Lock()
		ok, err := is()
		if !ok && err == nil {
			err = s.failed
		}
		changed := s.changed
		s.mu.Unlock()
		if ok || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fail ends the store.
func (s *Store) fail(why error) {
	s.change(func() {
		if s.failed == nil {
			s.failed = why
		}
	})
}

// Close ends the store and its connections.
func (s *Store) Close() error {
	s.fail(errClosed)
	s.halt()
	<-s.done
	return nil
}

// String names the store in messages.
func (s *Store) String() string { return "observer:" + s.o.Name }

// Engine returns the name of the observer: it has no engine.
func (s *Store) Engine() string { return s.String() }

// Exclusive returns false: others own the engine.
func (s *Store) Exclusive() bool { return false }

// LoadSnapshot returns the first image, once.
func (s *Store) LoadSnapshot(_ context.Context, back int) (uint64, io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if back > 0 || s.image == nil {
		return 0, nil, persistence.ErrNoSnapshot
	}
	image := s.image
	s.image = nil
	return s.imageSeq, io.NopCloser(bytes.NewReader(image)), nil
}

// Beat returns the end of the received batches.
func (s *Store) Beat(context.Context) (persistence.Beat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return persistence.Beat{End: persistence.Mark{Seq: s.end}}, nil
}

// Follow waits until a batch above after has arrived.
func (s *Store) Follow(ctx context.Context, after uint64) (leads bool, err error) {
	return false, s.until(ctx, func() (bool, error) { return s.end > after, nil })
}

// Read passes the received batches to fn, and drops the ones that fn has taken.
func (s *Store) Read(ctx context.Context, after uint64, fn func(prev, next uint64,
	batch []byte) error) error {
	for {
		b, err := s.first(after)
		if err != nil || b == nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := fn(b.prev, b.next, b.data); err != nil {
			return err
		}
		after = b.next
	}
}

// first returns the batch that follows after, and drops earlier ones; nil: it has not arrived.
func (s *Store) first(after uint64) (b *batch, err error) {
	s.change(func() {
		n := 0
		for n < len(s.waiting) && s.waiting[n].next <= after {
			s.bytes -= len(s.waiting[n].data)
			s.waiting[n] = batch{}
			n++
		}
		if s.waiting = s.waiting[n:]; len(s.waiting) == 0 {
			s.waiting = nil
			return
		}
		if b = &s.waiting[0]; b.prev > after {
			err = fmt.Errorf("%w: the batches after sequence %d were read already, up to %d",
				persistence.ErrCorrupt, after, b.prev)
		}
	})
	return b, err
}

// Apply drops rows, once the followed member has them.
func (s *Store) Apply(ctx context.Context, _ persistence.Token, from, to uint64,
	_ *persistence.Writes) error {
	if from == to {
		return nil // only nonces, which the wallets own
	}
	return s.until(ctx, func() (bool, error) {
		has := s.link != nil && s.link.watermark >= to
		if has && s.dropped.Load() < to {
			s.dropped.Store(to)
		}
		return has, nil
	})
}

// Watermark is the sequence up to which rows were dropped.
func (s *Store) Watermark(context.Context) (uint64, error) { return s.dropped.Load(), nil }

// A reachRequest asks for the reached sequence, for all calls that arrived before it started.
type reachRequest struct {
	done chan struct{}
	seq  uint64
	err  error
}

// Reach asks the followed member, which asks the leader. Calls that arrive while a request is in
// flight share the next one.
func (s *Store) Reach(ctx context.Context) (uint64, error) {
	s.mu.Lock()
	r := s.next
	if r == nil {
		r = &reachRequest{done: make(chan struct{})}
		s.next = r
	}
	if !s.reaching {
		s.reaching = true
		go s.runReaches()
	}
	s.mu.Unlock()
	select {
	case <-r.done:
	case <-s.done:
		return 0, errClosed
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if r.err != nil {
		return 0, r.err
	}
	return r.seq, s.until(ctx, func() (bool, error) { return s.end >= r.seq, nil })
}

// runReaches runs requests while there are any.
func (s *Store) runReaches() {
	for {
		s.mu.Lock()
		r := s.next
		s.next, s.reaching = nil, r != nil
		s.mu.Unlock()
		if r == nil {
			return
		}
		r.seq, r.err = s.reach()
		close(r.done)
	}
}

// reach asks a member, and the next one if that is lost before it answers.
func (s *Store) reach() (seq uint64, err error) {
	var l *link
	for {
		if err := s.until(context.Background(), func() (bool, error) {
			lost := l
			l = s.link
			return l != nil && l != lost, nil
		}); err != nil {
			return 0, err // the store has ended
		}
		if seq, err = l.reach(); !errors.Is(err, line.ErrLost) {
			return seq, err
		}
	}
}

// Dial opens a connection for commands.
func (s *Store) Dial(ctx context.Context, node string) (net.Conn, error) {
	return s.o.Dial(ctx, node)
}

// Fed returns the batches received so far, and the bytes received on feeds, images included.
func (s *Store) Fed() (batches, bytes uint64) { return s.batches.Load(), s.fed.Load() }

// Standing is the cluster view of the followed member.
func (s *Store) Standing() persistence.Standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.standing.Standing
	t.Node = s.o.Name
	return t
}

// Market returns the agreed market parts.
func (s *Store) Market() (next, current []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.market.Next, s.market.Current
}

// Link returns the number of the current connection to a member; 0: none.
func (s *Store) Link() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == nil {
		return 0
	}
	return s.links
}

// The following methods are for members, or have no effect at an observer.

func (s *Store) Acquire(context.Context, persistence.Claim) (persistence.Token, uint64, error) {
	return "", 0, errObserver
}
func (s *Store) Check(context.Context, persistence.Token) error   { return errObserver }
func (s *Store) Release(context.Context, persistence.Token) error { return errObserver }
func (s *Store) Begin(context.Context, persistence.Token, uint64) error {
	return errObserver
}
func (s *Store) Append(context.Context, persistence.Token, uint64, uint64, []byte) error {
	return errObserver
}
func (s *Store) SaveSnapshot(context.Context, persistence.Token, uint64, io.Reader) error {
	return errObserver
}
func (s *Store) Confirm(context.Context, persistence.Token) (uint64, error) {
	return 0, errObserver
}
func (s *Store) Transfer(context.Context, string) error        { return errObserver }
func (s *Store) SetMarket(context.Context, []byte, bool) error { return errObserver }
func (s *Store) Add(context.Context, string, string) error     { return errObserver }
func (s *Store) Promote(context.Context, string) error         { return errObserver }
func (s *Store) Remove(context.Context, string) error          { return errObserver }
func (s *Store) Replace(context.Context, string, string, string) error {
	return errObserver
}
func (s *Store) Verify(context.Context, func(string)) (int, error) { return 0, errObserver }

func (s *Store) HeadMissing() bool                                     { return false }
func (s *Store) Trim(context.Context, persistence.Token, uint64) error { return nil }
func (s *Store) Own() persistence.Token                                { return "" }
func (s *Store) Hold(uint64)                                           {}
func (s *Store) Unfit(error)                                           {}
func (s *Store) Leads() bool                                           { return false }
func (s *Store) Accept(func(string, net.Conn))                         {}
func (s *Store) AcceptObservers(func(string, net.Conn))                {}

// Known returns the end of the received batches: nothing is decided here.
func (s *Store) Known() (end uint64, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end, false
}

// Nonces and Wallets are for the deciding side, which an observer lacks.

func (s *Store) Nonces(context.Context, func(string, uint64)) error { return nil }
func (s *Store) Wallets(context.Context, func(*persistence.Wallet) bool) error {
	return nil
}
