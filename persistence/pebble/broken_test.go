package pebble

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"exchange/persistence"
)

// Projections are not synced, so Pebble tells of an error of its log by a panic in a later write, with locks held.
func TestALogOfPebbleThatFailsEndsTheProcess(t *testing.T) {
	full := errors.New("no space left on device")
	var fails atomic.Bool
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if fails.Load() && op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".log") {
			return full
		}
		return nil
	}))
	var told error
	s, err := Open("data", Options{fs: fs, Logger: quiet, fatal: func(err error) { told = err }})
	if err != nil {
		t.Fatal(err)
	}
	// It is not closed: Pebble's lock stays held, which is why the process must end.
	tok, seq, err := s.Acquire(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	fails.Store(true)
	for told == nil {
		if err := s.Append(t.Context(), tok, seq, seq+1, []byte("a batch")); err != nil {
			t.Fatal("the journal does not write to Pebble's log: ", err)
		}
		w := &persistence.Writes{Trades: []persistence.Trade{{ID: seq + 1, Pair: 1, TakerSide: 1, Taker: 1, Maker: 2}}}
		err = s.Apply(t.Context(), tok, seq, seq+1, w)
		seq++
	}
	if err == nil || !strings.Contains(told.Error(), full.Error()) {
		t.Errorf("told %v, error %v", told, err)
	}
}

// What was acknowledged is compared before the folder is changed.
func TestAJournalOfVersion1ThatLostItsTailIsNotMovedOver(t *testing.T) {
	dir := t.TempDir()
	version1(t, vfs.Default, dir, 0, 10)
	var head [16]byte // as the first versions wrote it
	binary.BigEndian.PutUint64(head[:], 33)
	binary.BigEndian.PutUint64(head[8:], xxhash.Sum64(head[:8]))
	file := filepath.Join(dir, headFile+"main")
	if err := os.WriteFile(file, head[:], 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := Open(dir, Options{Logger: quiet}); !errors.Is(err, persistence.ErrCorrupt) || !strings.Contains(err.Error(), "33") {
			t.Fatalf("error is %v, want ErrCorrupt that says 33", err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	s, _, last := mustOpen(t, dir, Options{})
	if all := readAll(t, s, 0); last != 30 || len(all) != 10 {
		t.Errorf("the journal ends at %d and has %d batches", last, len(all))
	}
}
