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

// errObserver refuses what only a member can do.
var errObserver = fmt.Errorf("%w: an observer is no member", persistence.ErrInvalid)

// errClosed: the store was closed.
var errClosed = errors.New("the observer's store is closed")

// Options of Open.
type Options struct {
	Name  string   // the observer's own
	Nodes []string // names of the members that it may follow, at least one
	// Dial opens a connection to a member, which calls the function of Replica.AcceptObservers
	// there. It keeps the bounds of Replica.Dial, but for the number of connections: an observer
	// has up to two to one member.
	Dial func(ctx context.Context, node string) (net.Conn, error)
	Log  *slog.Logger
	// Agreed is told of the market part that is applied, at the start and when another one is, and
	// maybe again. It must not wait. nil: nothing is.
	Agreed func(market []byte)
	// Silence is after how long without a word a member is given up; 0: as usual.
	Silence time.Duration
	buffer  int // bytes of batches that wait for the fold at most; tests have a smaller one
}

// usualBuffer is some seconds of heavy trading.
const usualBuffer = 16 << 20

// A Store is the store of an observer: it follows a member, and keeps nothing. Its methods may be
// called from any goroutine; one fold at a time reads it, from the image on.
type Store struct {
	persistence.History // as it is at the member
	o                   Options
	process             uint64        // tells this store from another one with the same name
	queries             chan struct{} // held by those that are asked
	halt                context.CancelFunc
	done                chan struct{} // closed when run has ended

	dropped atomic.Uint64 // sequence up to which rows were left to members
	batches atomic.Uint64 // that feeds have brought
	fed     atomic.Uint64 // bytes of frames on feeds, but for beats

	mu       sync.Mutex
	changed  chan struct{} // closed at the next change; guarded by mu
	image    []byte        // that the fold begins with; nil: it has it; guarded by mu
	hasImage bool          // the image is complete; guarded by mu
	imageSeq uint64        // its sequence; guarded by mu
	waiting  []batch       // that have come, and are not folded; guarded by mu
	bytes    int           // of those; guarded by mu
	end      uint64        // sequence of the newest that has come; guarded by mu
	digest   uint64        // its digest; 0: not known; guarded by mu
	link     *link         // to the member that is followed; nil: there is none; guarded by mu
	links    uint64        // how many there were; guarded by mu
	standing status        // as the newest member has told; guarded by mu
	market   market        // guarded by mu
	failed   error         // why the store has ended; guarded by mu
	next     *reachRequest // that has not begun; guarded by mu
	reaching bool          // rounds are under way; guarded by mu
}

// A batch has come from a member.
type batch struct {
	prev, next uint64
	data       []byte
}

var (
	_ persistence.Replica     = (*Store)(nil)
	_ persistence.LentHistory = (*Store)(nil)
)

// Open follows the first member that takes this observer, and returns when the member's image is
// there. ctx bounds that. The caller closes the store.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Name == "" || len(o.Nodes) == 0 || o.Dial == nil {
		return nil, errors.New("BUG: an observer needs a name, members, and a way to them")
	}
	o.Silence, o.buffer = cmp.Or(o.Silence, usualSilence), cmp.Or(o.buffer, usualBuffer)
	ctxRun, halt := context.WithCancel(context.Background())
	s := &Store{o: o, process: rand.Uint64(), halt: halt, done: make(chan struct{}),
		queries: make(chan struct{}, maxQueries), changed: make(chan struct{})}
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

// change makes a change, and wakes all that wait for one.
func (s *Store) change(what func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what()
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

// String names the store for people.
func (s *Store) String() string { return "observer:" + s.o.Name }

// Engine returns the name of the observer: it has no engine.
func (s *Store) Engine() string { return s.String() }

// Exclusive returns false: others own the engine.
func (s *Store) Exclusive() bool { return false }

// LoadSnapshot gives the image that was followed first, once.
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

// Beat has the end of what has come.
func (s *Store) Beat(context.Context) (persistence.Beat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return persistence.Beat{End: persistence.Mark{Seq: s.end}}, nil
}

// Follow waits until a batch above after has come.
func (s *Store) Follow(ctx context.Context, after uint64) (leads bool, err error) {
	return false, s.until(ctx, func() (bool, error) { return s.end > after, nil })
}

// Read gives the batches that have come, and forgets those that fn has taken.
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

// first returns the batch behind after, and forgets those before it; nil: it has not come.
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
			err = fmt.Errorf("%w: the batches behind sequence %d were read already, up to %d",
				persistence.ErrCorrupt, after, b.prev)
		}
	})
	return b, err
}

// Apply leaves rows to the members: it waits until the one that is followed has them.
func (s *Store) Apply(ctx context.Context, _ persistence.Token, from, to uint64,
	_ *persistence.Writes) error {
	if from == to {
		return nil // nonces, which are the wallets'
	}
	return s.until(ctx, func() (bool, error) {
		has := s.link != nil && s.link.watermark >= to
		if has && s.dropped.Load() < to {
			s.dropped.Store(to)
		}
		return has, nil
	})
}

// Watermark is the sequence up to which rows were left to the members.
func (s *Store) Watermark(context.Context) (uint64, error) { return s.dropped.Load(), nil }

// A reachRequest asks for the sequence that is reached, for all that had come before it began.
type reachRequest struct {
	done chan struct{}
	seq  uint64
	err  error
}

// Reach asks the member that is followed, which asks the one that leads. Questions that come while
// one is on its way wait for the next.
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

// runReaches asks, as long as there are questions.
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

// reach asks a member, and the next one if that goes before it has answered.
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

// Fed returns how many batches of the journal members have sent so far, and the bytes of all that
// they have sent beside their answers and beats: images, too.
func (s *Store) Fed() (batches, bytes uint64) { return s.batches.Load(), s.fed.Load() }

// Standing is what the member that is followed has told.
func (s *Store) Standing() persistence.Standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.standing.Standing
	t.Node = s.o.Name
	return t
}

// Market is what the members have agreed on.
func (s *Store) Market() (next, current []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.market.Next, s.market.Current
}

// Link tells one connection to a member from each other one; 0: there is none now.
func (s *Store) Link() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == nil {
		return 0
	}
	return s.links
}

// What follows only members do, or nothing at an observer.

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

// Known returns the end of what has come: nothing is decided here.
func (s *Store) Known() (end uint64, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end, false
}

// Nonces and Wallets are the deciding side's, which is not here.

func (s *Store) Nonces(context.Context, func(string, uint64)) error { return nil }
func (s *Store) Wallets(context.Context, func(*persistence.Wallet) bool) error {
	return nil
}
