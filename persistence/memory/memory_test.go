package memory

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"exchange/persistence"
	"exchange/persistence/conformance"
	"exchange/persistence/internal/codec"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, func(*testing.T) conformance.Backend { return backend{NewDisk()} })
}

type backend struct{ disk *Disk }

func (b backend) Open(_ *testing.T, r persistence.Retention) persistence.Store {
	return Open(b.disk, r)
}

func (b backend) at(next uint64) int {
	return slices.IndexFunc(b.disk.live.batches, func(s stored) bool { return s.next == next })
}

func (b backend) DamageBatch(_ *testing.T, _ persistence.Store, next uint64) {
	b.disk.live.batches[b.at(next)].batch[0] ^= 0x40
}

func (b backend) LoseBatch(_ *testing.T, _ persistence.Store, next uint64) {
	at := b.at(next)
	b.disk.live.batches = slices.Delete(b.disk.live.batches, at, at+1)
}

func (b backend) DamageSnapshot(_ *testing.T, _ persistence.Store) {
	b.disk.DamageSnapshot()
}

// filled returns a disk with one batch and its projection, and a batch that is written and not
// synced.
func filled(t *testing.T) (d *Disk, synced *[]uint64) {
	t.Helper()
	d, synced = NewDisk(), new([]uint64)
	d.Durable = func(_, next uint64, _ []byte) { *synced = append(*synced, next) }
	s := Open(d, persistence.Retention{})
	tok, _, err := s.Acquire(t.Context(), persistence.Claim{Owner: "test"})
	succeeds(t, err)
	succeeds(t, s.Append(t.Context(), tok, 0, 1, []byte("one")))
	succeeds(t, s.Apply(t.Context(), tok, 0, 1,
		&persistence.Writes{Nonces: []persistence.Nonce{{Key: "key", Nonce: 7}}}))
	d.mu.Lock()
	defer d.mu.Unlock()
	succeeds(t, s.append(tok, stored{1, 2, codec.Digest([]byte("two")), []byte("two")}))
	return d, synced
}

func TestCrashLosesUnsyncedTailOfEachLog(t *testing.T) {
	for _, want := range []struct {
		journal, rest          int
		seq, watermark, nonces uint64
	}{{0, 0, 1, 0, 0}, {0, 1, 1, 1, 1}, {1, 0, 2, 0, 0}, {1, 1, 2, 1, 1}, {9, 9, 2, 1, 1}} {
		d, synced := filled(t)
		if journal, rest := d.Unsynced(); journal != 1 || rest != 1 || d.Last() != 1 {
			t.Fatalf("%d and %d writes are not synced, the journal is durable up to %d", journal,
				rest, d.Last())
		}
		d.Crash(want.journal, want.rest)
		if d.live.seq != want.seq || d.live.watermark != want.watermark ||
			uint64(len(d.live.nonces)) != want.nonces {
			t.Errorf("%+v: the journal is at %d, the projections at %d with %d nonces", want,
				d.live.seq, d.live.watermark, len(d.live.nonces))
		}
		if journal, rest := d.Unsynced(); d.Last() != want.seq ||
			(*synced)[len(*synced)-1] != want.seq || journal+rest != 0 {
			t.Errorf("%+v: durable are %v, up to %d", want, *synced, d.Last())
		}
	}
}

func TestEachWriteSyncsItsOwnLog(t *testing.T) {
	for _, one := range []struct {
		what          string
		server        bool
		do            func(*Store, persistence.Token) error
		journal, rest int // that are not synced after it
	}{
		{"append", false, func(s *Store, tok persistence.Token) error {
			return s.Append(t.Context(), tok, 1, 2, []byte("two"))
		}, 0, 1},
		{"snapshot", false, func(s *Store, tok persistence.Token) error {
			return s.SaveSnapshot(t.Context(), tok, 1, strings.NewReader("image"))
		}, 1, 0},
		{"trim", false, func(s *Store, tok persistence.Token) error {
			return s.Trim(t.Context(), tok, 1)
		}, 2, 1},
		{"projection", false, func(s *Store, tok persistence.Token) error {
			return s.Apply(t.Context(), tok, 1, 2, nil)
		}, 1, 2},
		{"owner", false, func(s *Store, _ persistence.Token) error {
			_, _, err := s.Acquire(t.Context(), persistence.Claim{Owner: "another"})
			return err
		}, 0, 0},
		{"append of a server", true, func(s *Store, tok persistence.Token) error {
			return s.Append(t.Context(), tok, 1, 2, []byte("two"))
		}, 0, 0},
		{"projection of a server", true,
			func(s *Store, tok persistence.Token) error {
				return s.Apply(t.Context(), tok, 1, 2, nil)
			}, 0, 0},
	} {
		d, _ := filled(t)
		s := Open(d, persistence.Retention{})
		s.Server = one.server
		succeeds(t, one.do(s, d.live.token))
		if journal, rest := d.Unsynced(); journal != one.journal || rest != one.rest {
			t.Errorf(
				"after the %s %d writes of the journal and %d others are not synced, not %d and %d",
				one.what, journal, rest, one.journal, one.rest)
		}
	}
}

func TestRepeatedAppendSyncsFirst(t *testing.T) {
	d, synced := filled(t)
	s := Open(d, persistence.Retention{})
	succeeds(t, s.Append(t.Context(), d.live.token, 1, 2, []byte("two")))
	if d.Last() != 2 || !slices.Equal(*synced, []uint64{1, 2}) {
		t.Errorf("durable are %v, up to %d", *synced, d.Last())
	}
}

func TestClosedStoreReturnsErrors(t *testing.T) {
	s := Open(NewDisk(), persistence.Retention{})
	succeeds(t, s.Close())
	if _, _, err := s.Acquire(t.Context(),
		persistence.Claim{Owner: "test"}); !errors.Is(err, errClosed) {
		t.Errorf("a closed store answers %v", err)
	}
}

// succeeds wants no errors.
func succeeds(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
