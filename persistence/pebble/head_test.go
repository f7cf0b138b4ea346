package pebble

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"exchange/persistence"
)

// contents returns the content of a file.
func contents(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	succeeds(t, err)
	b, err := io.ReadAll(f)
	succeeds(t, err, f.Close())
	return b
}

// The power fails before each write and each sync of appends. A start accepts the remaining data,
// which includes all acknowledged appends, however much unsynced data is left.
func TestPowerCutNeverLeavesHeadAheadOfJournal(t *testing.T) {
	const headName = "data/" + headFile + "main"
	random := rand.New(rand.NewPCG(1, 2))
	memory := vfs.NewCrashableMem()
	var acknowledged uint64
	cuts, appending := 0, false
	reopen := func(percent int) {
		cuts++
		left := memory.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: random})
		s, err := Open("data", Options{files: left, Logger: quiet})
		if err != nil {
			t.Fatalf("%d were acknowledged, %d %% of the unsynced data is left: %v",
				acknowledged, percent, err)
		}
		if last, _ := s.log.End(); last < acknowledged {
			t.Fatalf("the journal ends at %d, %d were acknowledged", last, acknowledged)
		}
		succeeds(t, s.Close())
	}
	fs := errorfs.Wrap(memory, errorfs.InjectorFunc(func(op errorfs.Op) error {
		ours := strings.HasPrefix(op.Path, headName) || strings.Contains(op.Path, journalFolder)
		if appending && ours && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			reopen(0)
			reopen(100)
		}
		return nil
	}))
	s, tok, _ := mustOpen(t, "data", Options{files: fs})
	appending = true
	for seq := range uint64(6) {
		succeeds(t, s.Append(t.Context(), tok, seq, seq+1, []byte("a batch")))
		acknowledged = seq + 1
		reopen(0)
		reopen(100)
	}
	appending = false
	if cuts < 36 {
		t.Fatalf("the power failed %d times", cuts)
	}
}

// The head covers each append: a journal that has lost it is refused.
func TestHeadFollowsEachAppend(t *testing.T) {
	const headName = "data/" + headFile + "main"
	memory := vfs.NewCrashableMem()
	s, tok, _ := mustOpen(t, "data", Options{files: memory})
	all := vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 2))}
	for seq := range uint64(5) {
		before := memory.CrashClone(all)
		succeeds(t, s.Append(t.Context(), tok, seq, seq+1, []byte("a batch")))
		f, err := before.Create(headName, vfs.WriteCategoryUnspecified)
		succeeds(t, err)
		_, err = f.Write(contents(t, memory, headName))
		succeeds(t, err, f.Close())
		_, err = Open("data", Options{files: before, Logger: quiet})
		if !errors.Is(err, persistence.ErrCorrupt) ||
			!strings.Contains(err.Error(), "were acknowledged") {
			t.Fatalf("the journal has lost its end, sequence %d: error is %v", seq+1, err)
		}
	}
}

// A head that is cut off or damaged does not count as 0.
func TestDamagedHeadRefusesStart(t *testing.T) {
	dir := t.TempDir()
	s, tok, _ := mustOpen(t, dir, Options{})
	succeeds(t, s.Append(t.Context(), tok, 0, 9, []byte("a batch")), s.Close())
	name := filepath.Join(dir, headFile+"main")
	whole, err := os.ReadFile(name)
	succeeds(t, err)
	flipped := bytes.Clone(whole)
	flipped[15] ^= 4
	for _, b := range [][]byte{{}, whole[:16], flipped} {
		succeeds(t, os.WriteFile(name, b, 0o600))
		if _, err := Open(dir, Options{Logger: quiet}); !errors.Is(err, persistence.ErrCorrupt) ||
			!strings.Contains(err.Error(), name) {
			t.Fatalf("error is %v, want ErrCorrupt that names %s", err, name)
		}
		if now, err := os.ReadFile(name); err != nil || !bytes.Equal(now, b) {
			t.Fatalf("it was %x and is %x (%v)", b, now, err)
		}
	}
	if err := os.Remove(name); err != nil { // as the error suggests
		t.Fatal(err)
	}
	if s, _, last := mustOpen(t, dir, Options{}); last != 9 || !s.HeadMissing() {
		t.Fatalf("the journal ends at %d, the head is missing: %v", last, s.HeadMissing())
	}
}
