package memory

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/internal/head"
)

// After any writes the model equals the file's mark. After a power cut the file has a mark that the
// model allows.
func TestHeadModelMatchesFile(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		files := vfs.NewCrashableMem()
		file, err := head.Open(files, "HEAD")
		succeeds(t, err)
		var model Head
		same := func() {
			t.Helper()
			if file.Missing() != model.missing() || file.Acknowledged() != model.last {
				t.Fatalf("the file has %+v, missing: %v; the model %+v, missing: %v",
					file.Acknowledged(), file.Missing(), model.last, model.missing())
			}
		}
		for range random.IntN(12) {
			m := head.Mark{Seq: random.Uint64N(30), Digest: 1}
			if random.IntN(6) == 0 {
				err = file.Reset(m.Seq)
				model.reset(m.Seq)
			} else {
				err = file.Advance(m)
				model.advance(m)
			}
			succeeds(t, err)
			same()
		}
		left := files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: random.IntN(101),
			RNG: random})
		if file, err = head.Open(left, "HEAD"); err != nil {
			t.Fatal(err)
		}
		lost := -1
		for n := range model.Unsynced() + 1 {
			cut := model
			if cut.PowerCut(n); cut.missing() == file.Missing() && cut.last == file.Acknowledged() {
				lost = n
			}
		}
		if lost < 0 {
			t.Fatalf("after a power cut the file has %+v, the model %+v and before %+v",
				file.Acknowledged(), model.last, model.before)
		}
		model.PowerCut(lost)
		same()
	}
}

func TestStoreWithLostAppendsIsRefused(t *testing.T) {
	d := NewDisk()
	s := Open(d, persistence.Retention{})
	s.Head = new(Head)
	tok, _, err := s.Acquire(t.Context(), persistence.Claim{Owner: "test"})
	if err != nil || !s.HeadMissing() {
		t.Fatalf("the file is missing: %v; %v", s.HeadMissing(), err)
	}
	for seq := range uint64(3) {
		succeeds(t, s.Append(t.Context(), tok, seq, seq+1, []byte("a batch")))
	}
	lost := Open(d.WithoutLast(), persistence.Retention{})
	lost.Head = s.Head
	wanted := func(want error) {
		t.Helper()
		if err := lost.Whole(); !errors.Is(err, want) {
			t.Errorf("it opens with %v, want %v", err, want)
		}
		if _, _, err := lost.Acquire(t.Context(),
			persistence.Claim{Owner: "test"}); !errors.Is(err, want) {
			t.Errorf("a claim answers %v, want %v", err, want)
		}
	}
	wanted(persistence.ErrCorrupt)
	lost.Fill = true
	wanted(nil)
	lost.Fill = false
	s.Head.PowerCut(1)
	wanted(nil)
	s.Head.Damage()
	wanted(persistence.ErrCorrupt)
	s.Head.Lose()
	wanted(nil)
}
