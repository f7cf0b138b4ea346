package pebble

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

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
	tok, seq, err := s.Acquire(t.Context(), persistence.Claim{Owner: "test"})
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
