package wal

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// part returns one byte of a batch per sequence.
func part(seq uint64) cutter {
	return func(prev, next uint64, batch []byte) ([]byte, error) {
		if prev >= seq || next <= seq {
			return nil, errors.New("this batch does not lie across the cut")
		}
		return batch[:min(uint64(len(batch)), seq-prev)], nil
	}
}

// cut cuts the log and the model.
func (w *world) cut(seq uint64) {
	w.Helper()
	w.must(w.log.Cut(seq, part(seq)))
	w.forget(seq)
}

// forget cuts the model.
func (w *world) forget(seq uint64) {
	w.Helper()
	for n := len(w.model); n > 0 && w.model[n-1].next > seq; n = len(w.model) {
		b := w.model[n-1]
		w.model = w.model[:n-1]
		if b.prev < seq {
			kept, err := part(seq)(b.prev, b.next, []byte(b.data))
			w.must(err)
			w.model = append(w.model, batch{b.prev, seq, string(kept)})
		}
	}
	w.end = min(w.end, seq)
}

// somewhere returns a sequence at or above the one that must stay.
func (w *world) somewhere(least uint64) uint64 {
	from := least
	if n := len(w.model); w.rng.IntN(3) > 0 && n > 5 { // not far from the end
		from = max(least, w.model[n-5].prev)
	}
	return from + w.rng.Uint64N(w.end-from+1)
}

// A log that is cut here and there, trimmed, and opened again is the model.
func TestCutLogContinues(t *testing.T) {
	w := open(t, vfs.NewMem())
	w.cut(0)
	trimmed := uint64(0)
	cuts := 0
	for range 2500 {
		w.append(w.size())
		switch w.rng.IntN(60) {
		case 0, 1:
			w.close()
			w.reopen()
			w.wantAfter(trimmed)
		case 2, 3, 4, 5:
			seq := w.somewhere(trimmed)
			w.cut(seq)
			w.wantAfter(trimmed)
			if w.rng.IntN(2) == 0 {
				w.close()
				w.reopen()
				w.wantAfter(trimmed)
			}
			cuts++
		case 6:
			trimmed = max(trimmed, w.somewhere(trimmed)/2)
			w.must(w.log.Trim(trimmed))
		}
	}
	w.wantAfter(trimmed)
	if cuts < 100 {
		t.Errorf("%d cuts", cuts)
	}
}

// Records that are cut off never return, though shorter ones replace them.
func TestCutRecordsNeverReturn(t *testing.T) {
	w := open(t, vfs.NewMem())
	for range 50 {
		w.append(3000)
	}
	for range 20 {
		w.append(100)
	}
	w.cut(w.model[45].next)
	w.append(10)
	w.close()
	w.reopen()
	w.wantAfter(0)
	w.cut(0)
	w.wantAfter(0)
	if files := w.files(); len(files) > 0 {
		t.Errorf("an empty log has %v", files)
	}
	w.append(10)
	w.close()
	w.reopen()
	w.wantAfter(0)
}

// Trimmed segments kept for reuse are not part of the log.
func TestLogCutToItsBeginIsEmpty(t *testing.T) {
	w := open(t, vfs.NewMem())
	for range 200 {
		w.append(4000)
	}
	w.must(w.log.Trim(w.end))
	if len(w.log.free) == 0 || len(w.log.segments) != 1 {
		t.Fatalf("%d segments are free, %d are in use", len(w.log.free), len(w.log.segments))
	}
	begin := w.log.segments[0].first
	w.cut(begin)
	w.model = nil
	if files := w.files(); len(files) > 0 {
		t.Fatalf("an empty log has %v", files)
	}
	w.append(100)
	w.wantAfter(begin)
	if err := w.log.Cut(begin-1, part(begin-1)); !errors.Is(err, persistence.ErrCorrupt) {
		t.Fatalf("a cut below the beginning: %v", err)
	}
	w.wantAfter(begin)
}

// The power fails while a log is cut. All below the cut stays, and above it either a chain of old
// records, or nothing.
func TestCrashInCutKeepsRecordsBelow(t *testing.T) {
	failed := errors.New("the power has failed")
	whole, atCut, between := 0, 0, 0
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 5))
		left := -1 // how many changes of the disk still work; -1: all
		crashable := vfs.NewCrashableMem()
		fs := errorfs.Wrap(crashable, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsRead || left < 0 {
				return nil
			}
			if left == 0 {
				return failed
			}
			left--
			return nil
		}))
		o := options(t, fs)
		o.AtNeed, o.Fatal = true, func(error) {}
		log, err := Open("log", o)
		succeeds(t, err)
		w := &world{TB: t, fs: fs, log: log, rng: rng}
		for range 20 + rng.IntN(60) {
			w.append(1 + rng.IntN(9000))
		}
		seq := w.somewhere(0)
		left = rng.IntN(14)
		err = w.log.Cut(seq, part(seq))
		if err != nil && !errors.Is(err, failed) {
			t.Fatalf("seed %d: %v", seed, err)
		}
		left = -1
		w.fs = crashable.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
		w.reopen()
		end, _ := w.log.End()
		switch {
		case end < seq || end > w.end || err == nil && end != seq:
			t.Fatalf("seed %d: the log ended at %d, was cut at %d (%v), and ends at %d", seed,
				w.end, seq, err, end)
		case end == w.end:
			whole++
		case end == seq:
			atCut++
		default:
			between++
		}
		w.forget(end)
		w.wantAfter(0)
		w.cut(seq) // it continues from there, and is cut again
		w.append(500)
		w.wantAfter(0)
		w.close()
	}
	if whole < 10 || atCut < 10 || between < 10 {
		t.Errorf("whole %d, at the cut %d, between %d: not a test of all", whole, atCut, between)
	}
}

// A torn append is cut off with the rest.
func TestTornTailIsCut(t *testing.T) {
	fs := vfs.NewCrashableMem()
	w := open(t, fs)
	w.append(1000)
	w.append(1000)
	torn := w.next(500)
	w.must(w.log.Append(torn.prev, torn.next, codec.Digest([]byte(torn.data)), []byte(torn.data)))
	name, end := w.log.active.name, w.log.end.used-recordBytes(500)+recordHead+500
	w.close()
	tear(t, fs, name, end-1)
	w.reopen()
	w.wantAfter(0)
	w.cut(w.model[0].next)
	w.append(100)
	w.fs = fs.CrashClone(vfs.CrashCloneCfg{})
	w.close()
	w.reopen()
	w.wantAfter(0)
}

func TestCutAtDamagedBatchIsRefused(t *testing.T) {
	w := open(t, vfs.NewMem())
	for range 4 {
		w.append(1000)
	}
	at := w.log.edgeOf(t, w.model[0].next)
	tear(t, w.fs, w.log.active.name, at+recordHead)
	seq := w.model[1].next
	if err := w.log.Cut(seq, part(seq)); !errors.Is(err, persistence.ErrCorrupt) {
		t.Fatal(err)
	}
	if end, _ := w.log.End(); end != w.end {
		t.Fatalf("it ends at %d, want %d", end, w.end)
	}
}

// edgeOf returns where in the last segment a batch ends.
func (l *Log) edgeOf(t *testing.T, seq uint64) int64 {
	t.Helper()
	e, err := l.edge(l.active, seq, part(seq))
	succeeds(t, err)
	return e.at
}

func TestPartOfLogIsRead(t *testing.T) {
	w := open(t, vfs.NewMem())
	for range 300 {
		w.append(1 + w.rng.IntN(3000))
	}
	for range 200 {
		upTo := w.rng.Uint64N(w.end + 1)
		after := w.rng.Uint64N(upTo + 1)
		var got, want []batch
		w.must(w.log.Between(after, upTo, func(prev, next uint64, data []byte) error {
			got = append(got, batch{prev, next, string(data)})
			return nil
		}))
		for _, b := range w.model {
			if b.next > after && b.prev < upTo {
				want = append(want, b)
			}
		}
		if after == upTo {
			want = nil
		}
		if len(got) != len(want) {
			t.Fatalf("(%d, %d] has %d batches, want %d", after, upTo, len(got), len(want))
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("(%d, %d]: batch %d is wrong", after, upTo, i)
			}
		}
	}
	err := w.log.Between(0, w.end+1, func(uint64, uint64, []byte) error { return nil })
	if !errors.Is(err, persistence.ErrCorrupt) || !strings.Contains(err.Error(), "should have") {
		t.Fatal(err)
	}
}
