package actors

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"testing/iotest"
	"time"

	"exchange/actors/rows"
	"exchange/core/state"
	"exchange/persistence"
	"exchange/persistence/memory"
)

// A link is an engine's connection to the store. Each call parks twice, before it lands and before
// its answer, so that it may take arbitrarily long, and end anywhere. It fails in each way that
// calls of a store do.
type link struct {
	*memory.Store
	s *sim
	l *life
}

// faults are the store's faults.
type faults struct {
	odds    int // of a call, in percent
	crashes int // of the disk
	late    int // calls that land after they were given up
}

// The errors of failed calls. A call that never reached the server and one whose answer is lost are
// indistinguishable here.
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

// Kinds of faults.
const (
	faultRefused    = "refused"
	faultLost       = "lost"
	faultLate       = "late"
	faultUnanswered = "landed without an answer"
	faultBroken     = "broken off"
)

// mostLate bounds a call's lateness in steps: by then another engine may have the store.
const mostLate = 1000

// goesWrong records a fault.
func (s *sim) goesWrong(what, fault string) {
	s.say("  %s is %s", what, fault)
	s.outcomes["calls of the store, "+fault]++
	s.outcomes["faults of "+what]++
}

// oddsOf returns the percentage of calls that fail. An engine releases the store once, so more of
// these calls fail.
func (s *sim) oddsOf(what string) int {
	if what == "release" && s.odds > 0 {
		return max(s.odds, 60)
	}
	return s.odds
}

// call makes one writing call. check runs in flight, while no other goroutine does, because the
// clock may have woken several at once. land changes the store, maybe after every caller has given
// the call up.
func (k *link) call(what string, check func(), land func(*memory.Store) error) error {
	s := k.s
	defer s.handOver()
	s.park(k.l, k.name(what), nil)
	if check != nil {
		check()
	}
	if s.rng.IntN(100) < s.oddsOf(what) {
		switch fault := s.rng.IntN(4); fault {
		case 0:
			s.goesWrong(what, faultRefused)
			return errStoreRefuses
		case 1:
			s.goesWrong(what, faultLost)
			return errNoAnswer
		case 2:
			s.goesWrong(what, faultLate)
			s.late++
			name := fmt.Sprintf("late %d %s", s.late, what)
			disk, from := s.disk, s.steps+s.rng.IntN(pick(s.rng, []int{1, 100, mostLate}))
			go lifeDriver{s, k.l}.guarded(what, func() {
				s.park(nil, name, func() bool {
					return s.steps >= from
				})
				late := memory.Open(disk, persistence.Retention{})
				late.Server = s.server
				if err := land(late); err != nil {
					s.say("  it comes to nothing: %v", err)
					s.outcomes["late calls, come to nothing"]++
				} else {
					s.outcomes["late calls, landed"]++
				}
			})
			return errNoAnswer
		default:
			err := land(k.Store)
			s.park(k.l, k.name(what+" unanswered"), nil)
			s.goesWrong(what, faultUnanswered)
			s.say("  its answer would be: %v", err)
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

// Reads fail less often than writes, because a start makes many, and all of them must succeed in
// the end. But sometimes one fails without other faults, so that an engine survives which began
// with it.
const (
	readsFailLess  = 5
	strayReadFault = 3 // odds
)

// ask makes one reading call. It may be refused, be lost, or stop after some of the rows: more
// reports, for each row, whether it is still delivered.
func (k *link) ask(what string, read func(more func() bool) error) error {
	s := k.s
	s.park(k.l, k.name(what), nil)
	left := math.MaxInt
	more := func() bool { left--; return left >= 0 }
	odds := s.odds
	if s.begun > 1 {
		odds = max(odds, strayReadFault)
	}
	if s.rng.IntN(100*readsFailLess) < odds {
		switch s.rng.IntN(3) {
		case 0:
			s.goesWrong(what, faultRefused)
			return errStoreRefuses
		case 1:
			s.goesWrong(what, faultLost)
			return errNoAnswer
		default:
			s.goesWrong(what, faultBroken)
			left = s.rng.IntN(4)
			return cmp.Or(read(more), errNoAnswer)
		}
	}
	err := read(more)
	if s.rng.IntN(4) == 0 {
		s.park(k.l, k.name(what+" answered"), nil)
	}
	return err
}

// same checks that the call after an unanswered one repeats it.
func (k *link) same(what string, t try) {
	if before, open := k.l.tries[what]; open && before != t {
		k.s.violate("engine %d: after %s %+v without an answer comes %+v", k.l.number, what, before,
			t)
	}
	k.l.tries[what] = t
}

// settled drops the try once the outcome is known.
func (k *link) settled(what string, err error) error {
	if err == nil || errors.Is(err, persistence.ErrFenced) || errors.Is(err, persistence.ErrGap) {
		delete(k.l.tries, what)
	}
	return err
}

func (k *link) Acquire(ctx context.Context, c persistence.Claim) (tok persistence.Token,
	last uint64, err error) {
	s := k.s
	asked := time.Now()
	check := func() { k.l.host.ids[c.ID] = true }
	err = k.confirms(asked, k.call("acquire", check, func(m *memory.Store) error {
		before, err := m.Beat(ctx)
		if err != nil {
			return err
		}
		got, end, err := m.Acquire(ctx, c)
		if errors.Is(err, persistence.ErrHeld) {
			s.outcomes["claims that came too late"]++
		}
		if err != nil {
			return err
		}
		tok, last, k.l.token = got, end, got
		if m == k.Store {
			k.l.host.restores = s.outcomes["restores"]
			if !m.HeadMissing() && m.Head.Acknowledged() < last {
				s.violate("engine %d sees the journal end at %d, and its HEAD says %d",
					k.l.number, last, m.Head.Acknowledged())
			}
		}
		// From here on no other owner appends.
		if last != s.disk.Last() {
			s.violate("engine %d sees the journal end at %d, and %d is durable",
				k.l.number, last, s.disk.Last())
		}
		k.mayTake(before)
		s.model.Restarted()
		k.l.acquired = last
		k.l.begins = k.HeadMissing() || s.unnamed || s.model.History.IsZero()
		if k.HeadMissing() && last > 0 {
			s.outcomes["starts without HEAD"]++
		}
		for _, key := range s.model.Keys {
			k.l.taken[key.Number] = key.Nonce
		}
		for _, other := range s.lives {
			if other != k.l && !other.overtaken && !other.standby {
				other.overtaken = true
				s.outcomes["engines, overtaken"]++
			}
		}
		return nil
	}))
	return tok, last, err
}

func (k *link) Check(ctx context.Context, tok persistence.Token) error {
	asked := time.Now()
	err := k.call("check", nil, func(m *memory.Store) error { return m.Check(ctx, tok) })
	if err == nil && k.s.server && k.s.rng.IntN(100) < k.s.odds {
		k.s.say("  engine %d is notified that the store is not fit", k.l.number)
		k.s.outcomes["checks that found the store not fit"]++
		err = fmt.Errorf("%w, and %w", persistence.ErrConfirmed, persistence.ErrNotInEffect)
		if k.s.rng.IntN(2) == 0 {
			err = persistence.ErrNotInEffect // it has the heartbeat; the owner cannot learn that
		}
	}
	k.l.unfit = errors.Is(err, persistence.ErrNotInEffect) || err != nil && k.l.unfit
	return k.confirms(asked, err)
}

// confirms records a call that confirms the store's owner.
func (k *link) confirms(asked time.Time, err error) error {
	if err == nil || errors.Is(err, persistence.ErrConfirmed) {
		k.l.confirmed = asked
	}
	return err
}

func (k *link) Append(ctx context.Context, tok persistence.Token, prev, next uint64,
	batch []byte) error {
	batch = slices.Clone(batch)
	t := try{prev, next, crc32.ChecksumIEEE(batch)}
	return k.settled("append", k.call("append",
		func() { k.same("append", t) }, func(m *memory.Store) error {
			k.s.say("  records %d to %d, %08x", prev+1, next, t.sum)
			err := m.Append(ctx, tok, prev, next, batch)
			if err == nil && m == k.Store && m.Head.Acknowledged() < next {
				k.s.violate("engine %d: an append up to %d is acknowledged, and its HEAD says %d",
					k.l.number, next, m.Head.Acknowledged())
			}
			return err
		}))
}

// at returns a function for a point within an append, where the disk may crash. At "sync" the batch
// is written and not synced. At "head" it is synced, and the HEAD lacks it.
func (k *link) at(place string) func() error {
	return func() error {
		crashes := k.s.crashes
		if k.s.park(k.l, k.name(place), nil); crashes != k.s.crashes {
			return errNoAnswer
		}
		return nil
	}
}

func (k *link) Apply(ctx context.Context, tok persistence.Token, from, to uint64,
	w *persistence.Writes) error {
	writes := copyRows(w)
	check := func() {
		if to > k.s.disk.Last() {
			k.s.violate(
				"engine %d writes projections up to %d, and the journal is durable up to %d",
				k.l.number, to, k.s.disk.Last())
		}
		k.same("apply", try{from, to, uint32(rows.Count(writes))})
	}
	return k.settled("apply", k.call("apply", check, func(m *memory.Store) error {
		k.s.say("  projections from %d to %d, %d rows", from, to, rows.Count(writes))
		return m.Apply(ctx, tok, from, to, writes)
	}))
}

// copyRows is for a call that lands late: its rows may have been reused by then.
func copyRows(w *persistence.Writes) *persistence.Writes {
	return &persistence.Writes{Wallets: slices.Clone(w.Wallets), Nonces: slices.Clone(w.Nonces),
		Trades: slices.Clone(w.Trades), Orders: slices.Clone(w.Orders),
		Deposits: slices.Clone(w.Deposits), Withdrawals: slices.Clone(w.Withdrawals),
		Candles: slices.Clone(w.Candles), Actions: slices.Clone(w.Actions)}
}

func (k *link) SaveSnapshot(ctx context.Context, tok persistence.Token, seq uint64,
	r io.Reader) error {
	image, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	check := func() {
		k.s.checkImage(k.l, seq, image)
		if at, err := k.Store.Watermark(ctx); err == nil && at < seq && !k.l.fenced {
			k.s.violate("engine %d publishes a snapshot at %d, and the projections are at %d",
				k.l.number, seq, at)
		}
	}
	return k.call("snapshot", check, func(m *memory.Store) error {
		k.s.say("  at %d, %d bytes", seq, len(image))
		uploading := context.Background() // the caller that paced it has given a late one up
		if m == k.Store {
			uploading = k.paced(ctx)
		}
		err := m.SaveSnapshot(uploading, tok, seq, bytes.NewReader(image))
		if err == nil {
			delete(k.s.damaged, seq)
			k.s.outcomes["snapshots, published"]++
			if m != k.Store {
				k.s.outcomes["snapshots, published late"]++
			}
		}
		return err
	})
}

// paced has an upload park after each piece: the clock wakes it there, or the engine's end.
func (k *link) paced(ctx context.Context) context.Context {
	return persistence.WithPace(ctx, func() error {
		err := persistence.Pace(ctx)
		k.s.park(k.l, k.name("snapshot piece"), nil)
		return err
	})
}

// checkImage compares a snapshot with a fold of the durable records.
func (s *sim) checkImage(l *life, seq uint64, image []byte) {
	if seq > s.disk.Last() {
		s.violate("engine %d takes a snapshot at %d, and the journal is durable up to %d", l.number,
			seq, s.disk.Last())
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
	if err == nil && !slices.ContainsFunc(s.batches, func(b durableBatch) bool {
		return b.next == seq
	}) {
		err = errors.New("it is in the middle of a batch")
	}
	if err != nil {
		s.violate("engine %d takes a snapshot at %d: %w", l.number, seq, err)
	}
}

// LoadSnapshot has read the image before it answers. Its reader gets the whole image, the beginning
// of it, or a damaged one.
func (k *link) LoadSnapshot(ctx context.Context, back int) (seq uint64, r io.ReadCloser,
	err error) {
	var image []byte
	var broken error
	err = k.ask("load snapshot", func(func() bool) (err error) {
		var whole io.ReadCloser
		if seq, whole, err = k.Store.LoadSnapshot(ctx, back); err == nil {
			image, broken = io.ReadAll(whole)
		}
		return err
	})
	if image != nil && err != nil { // it was cut off
		image, broken, err = image[:len(image)/2], err, nil
	}
	switch {
	case err == nil && back == 1:
		k.s.outcomes["starts from the older snapshot"]++
	case back == 1 && errors.Is(err, persistence.ErrNoSnapshot):
		k.s.outcomes["starts from the first record"]++
	}
	return seq, io.NopCloser(io.MultiReader(bytes.NewReader(image),
		iotest.ErrReader(cmp.Or(broken, io.EOF)))), err
}

func (k *link) Watermark(ctx context.Context) (at uint64, err error) {
	err = k.ask("watermark", func(func() bool) (err error) {
		at, err = k.Store.Watermark(ctx)
		return err
	})
	return at, err
}

func (k *link) Read(ctx context.Context, after uint64, fn func(prev, next uint64,
	batch []byte) error) error {
	return k.ask("read", func(more func() bool) error {
		return k.Store.Read(ctx, after, func(prev, next uint64, batch []byte) error {
			if !more() {
				return errNoAnswer
			}
			return fn(prev, next, batch)
		})
	})
}

func (k *link) Nonces(ctx context.Context, fn func(key string, nonce uint64)) error {
	return k.ask("nonces", func(more func() bool) error {
		return k.Store.Nonces(ctx, func(key string, nonce uint64) {
			if more() {
				fn(key, nonce)
			}
		})
	})
}

func (k *link) Trades(ctx context.Context, q persistence.TradeQuery,
	fn func(*persistence.Trade) bool) error {
	return k.ask("trades", func(more func() bool) error {
		return k.Store.Trades(ctx, q, func(t *persistence.Trade) bool { return more() && fn(t) })
	})
}

func (k *link) Candles(ctx context.Context, q persistence.CandleQuery,
	fn func(*persistence.Candle) bool) error {
	return k.ask("candles", func(more func() bool) error {
		return k.Store.Candles(ctx, q, func(c *persistence.Candle) bool { return more() && fn(c) })
	})
}

// Reference is in flight arbitrarily long, as any other read: other engines may come and go
// meanwhile. It fails as often as a write, because nothing else depends on it.
func (k *link) Reference(ctx context.Context, watermark uint64,
	reference string) (d persistence.Deposit, err error) {
	s := k.s
	const what = "reference"
	s.park(k.l, k.name(what), nil)
	if s.rng.IntN(100) < s.odds {
		s.goesWrong(what, faultRefused)
		return d, errStoreRefuses
	}
	d, err = k.Store.Reference(ctx, watermark, reference)
	switch {
	case err == nil:
		s.outcomes["references, found in the store"]++
	case errors.Is(err, persistence.ErrNotFound):
		s.outcomes["references, not in the store"]++
	}
	s.park(k.l, k.name(what+" answered"), nil)
	if s.rng.IntN(100) < s.odds {
		s.goesWrong(what, faultLost)
		return persistence.Deposit{}, errNoAnswer
	}
	if k.l.overtaken {
		s.outcomes["references, returned to an overtaken engine"]++
	}
	return d, err
}

func (k *link) Trim(ctx context.Context, tok persistence.Token, upTo uint64) error {
	check := func() {
		older := uint64(0)
		if seq, _, err := k.Store.LoadSnapshot(ctx, 1); err == nil {
			older = seq
		}
		if upTo > older && !k.l.fenced {
			k.s.violate("engine %d trims the journal up to %d, and the older snapshot is at %d",
				k.l.number, upTo, older)
		}
	}
	return k.call("trim", check, func(m *memory.Store) error {
		k.s.say("  up to %d", upTo)
		err := m.Trim(ctx, tok, upTo)
		if err == nil && upTo > 0 {
			k.s.outcomes["trims"]++
		}
		return err
	})
}

// damage spoils the newest snapshot. The previous one is then whole, or there is none yet, and the
// journal has everything after it.
func (s *sim) damage() {
	store := memory.Open(s.disk, persistence.Retention{})
	whole := func(back int) (seq uint64, err error) {
		seq, r, err := store.LoadSnapshot(context.Background(), back)
		if err == nil {
			_, err = io.ReadAll(r)
		}
		return seq, err
	}
	seq, err := whole(0)
	_, older := whole(1)
	if err != nil || older != nil && (s.restored || !errors.Is(older, persistence.ErrNoSnapshot)) {
		return
	}
	s.say("  the snapshot at %d is damaged", seq)
	s.outcomes["snapshots, damaged"]++
	s.damaged[seq] = true
	s.disk.DamageSnapshot()
}

// crash makes the disk lose a tail of its unsynced writes, of the journal and of the rest.
func (s *sim) crash() {
	journal, rest := s.disk.Unsynced()
	keptJournal, keptRest := s.rng.IntN(journal+1), s.rng.IntN(rest+1)
	s.say("the disk keeps %d of %d writes of the journal that were not synced, and %d of %d others",
		keptJournal, journal, keptRest, rest)
	s.crashes++
	s.outcomes["crashes of the disk"]++
	s.outcomes["writes of the journal lost in them"] += journal - keptJournal
	s.outcomes["other writes lost in them"] += rest - keptRest
	s.disk.Crash(keptJournal, keptRest)
}
