package actors

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"exchange/core/state"
	"exchange/persistence"
	"exchange/persistence/memory"
)

// A link is an engine's way to the store. Each call parks twice, on the way there and on the way back, so that it may
// take as long as can be, and end anywhere. It may go wrong in each way that calls of a store do.
type link struct {
	*memory.Store
	s *sim
	l *life
}

// faults are what goes wrong with the store.
type faults struct {
	odds    int // of a call, in a hundred
	crashes int // of the disk
	late    int // calls that land after they were given up
}

// What may go wrong with a call. A call that a server never got and one whose answer is lost look the same from here.
var (
	errStoreRefuses = errors.New("simulated: the store refuses")
	errNoAnswer     = errors.New("simulated: no answer")
)

// A try is a call without an answer; the next one must be the same.
type try struct {
	from, to uint64
	sum      uint32
}

func (k *link) name(what string) string { return fmt.Sprintf("%d.%s", k.l.number, what) }

// call makes one call. look is what is looked at on the way, when nobody else runs: the clock may have woken several
// at once. land is what it does to the store; it may do it when everybody has given it up.
func (k *link) call(what string, look func(), land func(*memory.Store) error) error {
	s := k.s
	s.park(k.l, k.name(what), nil)
	if look != nil {
		look()
	}
	if s.rng.IntN(100) < s.odds {
		switch fault := s.rng.IntN(4); fault {
		case 0:
			s.say("  %s is refused", what)
			s.outcomes["calls of the store, refused"]++
			return errStoreRefuses
		case 1:
			s.say("  %s is lost", what)
			s.outcomes["calls of the store, lost"]++
			return errNoAnswer
		case 2:
			s.say("  %s is late", what)
			s.outcomes["calls of the store, late"]++
			s.late++
			go lifeDriver{s, k.l}.guarded(what, func() {
				s.park(nil, fmt.Sprintf("late %d %s", s.late, what), nil)
				if err := land(memory.Open(s.disk, persistence.Retention{})); err != nil {
					s.say("  it comes to nothing: %v", err)
				}
			})
			return errNoAnswer
		default:
			err := land(k.Store)
			s.park(k.l, k.name(what+" unanswered"), nil)
			s.say("  the answer to %s is lost: %v", what, err)
			s.outcomes["calls of the store, landed without an answer"]++
			return errNoAnswer
		}
	}
	err := land(k.Store)
	s.park(k.l, k.name(what+" answered"), nil)
	if err != nil {
		s.say("  %v", err)
	}
	if errors.Is(err, persistence.ErrFenced) && !k.l.fenced {
		k.l.fenced = true
		s.outcomes["engines, fenced"]++
	}
	return err
}

// same checks that a call which follows one without an answer is the same again.
func (k *link) same(what string, t try) {
	if before, open := k.l.tries[what]; open && before != t {
		k.s.violate("engine %d: after %s %+v without an answer comes %+v", k.l.number, what, before, t)
	}
	k.l.tries[what] = t
}

// settled forgets the try when the outcome is known.
func (k *link) settled(what string, err error) error {
	if err == nil || errors.Is(err, persistence.ErrFenced) || errors.Is(err, persistence.ErrGap) {
		delete(k.l.tries, what)
	}
	return err
}

func (k *link) Acquire(ctx context.Context, owner string) (tok persistence.Token, last uint64, err error) {
	s := k.s
	err = k.call("acquire", nil, func(m *memory.Store) (err error) {
		if tok, last, err = m.Acquire(ctx, owner); err != nil {
			return err
		}
		// From here on nobody else appends.
		if last != s.disk.Last() {
			s.violate("engine %d is told that the journal ends at %d, and %d is durable", k.l.number, last, s.disk.Last())
		}
		s.model.Restarted()
		for _, other := range s.lives {
			other.overtaken = other.overtaken || other != k.l
		}
		return nil
	})
	return tok, last, err
}

func (k *link) Check(ctx context.Context, tok persistence.Token) error {
	return k.call("check", nil, func(m *memory.Store) error { return m.Check(ctx, tok) })
}

func (k *link) Append(ctx context.Context, tok persistence.Token, prev, next uint64, batch []byte) error {
	batch = slices.Clone(batch)
	t := try{prev, next, crc32.ChecksumIEEE(batch)}
	return k.settled("append", k.call("append", func() { k.same("append", t) }, func(m *memory.Store) error {
		k.s.say("  records %d to %d, %08x", prev+1, next, t.sum)
		return m.Append(ctx, tok, prev, next, batch)
	}))
}

// beforeSync is where a batch is written and not synced.
func (k *link) beforeSync() error {
	crashes := k.s.crashes
	if k.s.park(k.l, k.name("sync"), nil); crashes != k.s.crashes {
		return errNoAnswer
	}
	return nil
}

func (k *link) Apply(ctx context.Context, tok persistence.Token, from, to uint64, w *persistence.Writes) error {
	rows := copyRows(w)
	look := func() {
		if to > k.s.disk.Last() {
			k.s.violate("engine %d writes projections up to %d, and the journal is durable up to %d", k.l.number, to, k.s.disk.Last())
		}
		k.same("apply", try{from, to, uint32(rowsOf(rows))})
	}
	return k.settled("apply", k.call("apply", look, func(m *memory.Store) error {
		k.s.say("  projections from %d to %d, %d rows", from, to, rowsOf(rows))
		return m.Apply(ctx, tok, from, to, rows)
	}))
}

// copyRows is for a call that lands late: its rows may be used again by then.
func copyRows(w *persistence.Writes) *persistence.Writes {
	return &persistence.Writes{Wallets: slices.Clone(w.Wallets), Nonces: slices.Clone(w.Nonces), Trades: slices.Clone(w.Trades), Orders: slices.Clone(w.Orders),
		Deposits: slices.Clone(w.Deposits), Withdraws: slices.Clone(w.Withdraws), Candles: slices.Clone(w.Candles), Actions: slices.Clone(w.Actions)}
}

func (k *link) SaveSnapshot(ctx context.Context, tok persistence.Token, seq uint64, r io.Reader) error {
	image, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	look := func() {
		k.s.checkImage(k.l, seq, image)
		if at, err := k.Store.Watermark(ctx); err == nil && at < seq && !k.l.fenced {
			k.s.violate("engine %d publishes a snapshot at %d, and the projections are at %d", k.l.number, seq, at)
		}
	}
	return k.call("snapshot", look, func(m *memory.Store) error {
		k.s.say("  at %d, %d bytes", seq, len(image))
		return m.SaveSnapshot(ctx, tok, seq, bytes.NewReader(image))
	})
}

// checkImage compares a snapshot with a fold of what is durable.
func (s *sim) checkImage(l *life, seq uint64, image []byte) {
	if seq > s.disk.Last() {
		s.violate("engine %d takes a snapshot at %d, and the journal is durable up to %d", l.number, seq, s.disk.Last())
		return
	}
	got, err := state.Decode(image)
	if err == nil && got.Seq() != seq {
		err = fmt.Errorf("it is of %d", got.Seq())
	}
	want, foldErr := s.foldTo(seq)
	if err = errors.Join(err, foldErr); err == nil && got.Hash() != want.Hash() {
		err = errors.New("it is another state than the records give")
	}
	if err == nil && !slices.ContainsFunc(s.batches, func(b durableBatch) bool { return b.next == seq }) {
		err = errors.New("there it is in the midst of a batch")
	}
	if err != nil {
		s.violate("engine %d takes a snapshot at %d: %w", l.number, seq, err)
	}
}

func (k *link) LoadSnapshot(ctx context.Context, back int) (seq uint64, r io.ReadCloser, err error) {
	err = k.call("load snapshot", nil, func(m *memory.Store) (err error) {
		seq, r, err = m.LoadSnapshot(ctx, back)
		return err
	})
	return seq, r, err
}

func (k *link) Read(ctx context.Context, after uint64, fn func(prev, next uint64, batch []byte) error) error {
	k.s.park(k.l, k.name("read"), nil)
	return k.Store.Read(ctx, after, fn)
}

func (k *link) Trim(ctx context.Context, tok persistence.Token, upTo uint64) error {
	look := func() {
		older := uint64(0)
		if seq, _, err := k.Store.LoadSnapshot(ctx, 1); err == nil {
			older = seq
		}
		if upTo > older && !k.l.fenced {
			k.s.violate("engine %d trims the journal up to %d, and the older snapshot is at %d", k.l.number, upTo, older)
		}
	}
	return k.call("trim", look, func(m *memory.Store) error {
		k.s.say("  up to %d", upTo)
		return m.Trim(ctx, tok, upTo)
	})
}

// crash has the disk lose a tail of what was not synced.
func (s *sim) crash() {
	n := s.disk.Unsynced()
	kept := s.rng.IntN(n + 1)
	s.say("the disk keeps %d of %d writes that were not synced", kept, n)
	s.crashes++
	s.outcomes["crashes of the disk"]++
	s.outcomes["writes lost in them"] += n - kept
	s.disk.Crash(kept)
}
