package pebble

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"exchange/persistence"
	"exchange/persistence/internal/head"
)

// afterPowerCut opens the rest of a folder after the power failed and all unsynced data was lost.
func afterPowerCut(t *testing.T, fs *vfs.MemFS) (*Store, persistence.Token, uint64) {
	t.Helper()
	return mustOpen(t, "data", Options{files: fs.CrashClone(vfs.CrashCloneCfg{})})
}

// Two owners with one epoch would count as one.
func TestPowerCutKeepsOwner(t *testing.T) {
	fs := vfs.NewCrashableMem()
	_, first, _ := mustOpen(t, "data", Options{files: fs})
	if _, second, _ := afterPowerCut(t, fs); second.Epoch() <= first.Epoch() {
		t.Fatalf("the owner %q follows %q", second, first)
	}
}

func TestPowerCutKeepsJournalBegin(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s, tok, _ := mustOpen(t, "data", Options{files: fs})
	succeeds(t, s.Begin(t.Context(), tok, 100))
	if s, _, last := afterPowerCut(t, fs); last != 100 || s.HeadMissing() {
		t.Fatalf("the journal ends at %d, its head is missing: %v", last, s.HeadMissing())
	}
}

// Otherwise the removed files would seem lost.
func TestPowerCutKeepsTrim(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s, tok, seq := mustOpen(t, "data", Options{files: fs})
	more := func() {
		t.Helper()
		for range 20 {
			succeeds(t, s.Append(t.Context(), tok, seq, seq+1, make([]byte, 40_000)))
			seq++
		}
	}
	more()
	succeeds(t, s.Trim(t.Context(), tok, 10))
	// A segment that is made now makes the removal of others durable, too. The next ones may exist
	// already: these are filled, and more.
	for range 3 {
		more()
	}
	s, _, last := afterPowerCut(t, fs)
	names, err := s.fs.List("data/" + journalFolder + "main")
	if err != nil || last != seq || slices.Contains(names, "00000001.journal") {
		t.Fatalf("the journal ends at %d, want %d, and has %v: %v", last, seq, names, err)
	}
}

// An append lands, and its head cannot be written: it is not acknowledged. The next try with the
// same bytes is, and moves the head.
func TestRepeatedAppendMovesHead(t *testing.T) {
	full := errors.New("no space left on device")
	var fails atomic.Bool
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if fails.Load() && strings.Contains(op.Path, headFile) {
			return full
		}
		return nil
	}))
	s, tok, _ := mustOpen(t, "data", Options{files: fs})
	add := func(seq uint64) error {
		return s.Append(t.Context(), tok, seq, seq+1, []byte("a batch"))
	}
	succeeds(t, add(0))
	fails.Store(true)
	if err := add(1); !errors.Is(err, full) {
		t.Fatalf("error is %v", err)
	}
	fails.Store(false)
	if err := add(1); err != nil || s.head.Acknowledged().Seq != 2 {
		t.Fatalf("the head is %+v: %v", s.head.Acknowledged(), err)
	}
}

// After a snapshot all written rows lie in tables. Neither the image nor the projections depend on
// a file of Pebble's log, and the links up to there are gone.
func TestSnapshotNeedsNoPebbleLog(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s, tok, seq := mustOpen(t, "data", Options{files: fs})
	for range 3 {
		seq = oneMore(t, s, tok, seq)
	}
	succeeds(t, s.SaveSnapshot(t.Context(), tok, seq, strings.NewReader("an image")))
	links := 0
	err := s.eachNumber(kindLink, func(uint64, []byte) error { links++; return nil })
	if err != nil || links > 0 {
		t.Fatalf("%d links are left: %v", links, err)
	}
	left := fs.CrashClone(vfs.CrashCloneCfg{})
	names, err := left.List("data")
	succeeds(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			succeeds(t, left.Remove("data/"+name))
		}
	}
	s, _, _ = mustOpen(t, "data", Options{files: left})
	watermark, err := s.Watermark(t.Context())
	at, _, missing := s.LoadSnapshot(t.Context(), 0)
	if err := errors.Join(err, missing); err != nil || watermark != seq || at != seq {
		t.Fatalf("the watermark is %d, the snapshot at %d, want %d: %v", watermark, at, seq, err)
	}
}

// The start records the journal's end: reads are answered from there.
func TestStartMovesHeadToJournalEnd(t *testing.T) {
	fs := vfs.NewMem()
	s, tok, _ := mustOpen(t, "data", Options{files: fs})
	for seq := range uint64(2) {
		succeeds(t, s.Append(t.Context(), tok, seq, seq+1, []byte("a batch")))
	}
	lagging := head.Mark{Seq: 1}
	succeeds(t, s.head.Reset(lagging.Seq), s.Close())
	if s, _, _ := mustOpen(t, "data", Options{files: fs}); s.head.Acknowledged().Seq != 2 {
		t.Fatalf("the head is %+v", s.head.Acknowledged())
	}
}

// Each kind of key has a name for people.
func TestMessageNamesPlace(t *testing.T) {
	s := &Store{prefix: []byte("main\x00")}
	for _, c := range []struct {
		key  []byte
		want string
	}{
		{s.reference("invoice 17"), `reference "invoice 17"`},
		{u64(s.key(kindLink), 17), "link to sequence 17"},
		{u64(s.key(kindFlush), 17), "row of flush 17"},
		{u32(u64(s.key(kindChunk), 17), 1), "piece of a snapshot "},
		{s.key(kindMeta), "head of the engine"},
		{u64(s.orders(3), 17), "closed order, list 00000003, id 17"},
		{u64(s.withdrawals(0), 17), "withdrawal 17"},
	} {
		if got := s.placeOf(c.key); !strings.HasPrefix(got, c.want) {
			t.Errorf("%q is called %q, want %q", c.key, got, c.want)
		}
	}
}
