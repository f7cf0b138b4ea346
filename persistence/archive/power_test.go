package archive

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// The power fails before each write, sync and rename while parts are saved, with any share of the
// unsynced bytes left. The archive then has all batches that Save has acknowledged, so the store
// may trim them. It has only whole parts, and the next Save continues.
func TestPowerCutKeepsSavedParts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, percent := range []int{0, 50, 100} {
		memory := vfs.NewCrashableMem()
		l := &list{}
		for i := range uint64(12) {
			l.all = append(l.all, batch{3 * i, 3*i + 3, fmt.Sprint("batch ", i)})
		}
		saved, cuts := uint64(0), 0
		reopen := func() {
			cuts++
			left := memory.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: random})
			wantWhole(t, left, l, saved)
		}
		files := errorfs.Wrap(memory, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				reopen()
			}
			return nil
		}))
		a, err := open(files, "data/archives/one")
		succeeds(t, err)
		a.part = 20
		for _, upTo := range []uint64{3, 15, 36} {
			if _, err := a.Save(context.Background(), l, testKey, testHistory, upTo); err != nil {
				t.Fatal(err)
			}
			saved = upTo
			reopen()
		}
		if cuts < 40 {
			t.Errorf("the power failed %d times", cuts)
		}
	}
}

// wantWhole wants the files after a power cut to be a journal up to the last saved batch at least,
// which Save can continue.
func wantWhole(t *testing.T, left *vfs.MemFS, l *list, saved uint64) {
	t.Helper()
	a, err := open(left, "data/archives/one")
	succeeds(t, err)
	a.part = 20
	for _, want := range []uint64{saved, l.all[len(l.all)-1].next} {
		var got []batch
		err := a.Under(testKey).Read(context.Background(),
			0, func(prev, next uint64, data []byte) error {
				got = append(got, batch{prev, next, string(data)})
				return nil
			})
		if err != nil || len(got) > len(l.all) || !slices.Equal(got, l.all[:len(got)]) {
			t.Fatalf("%d were saved, and %v is read: %v", saved, short(got), err)
		}
		if _, last, err := bounds(a); err != nil || last < want {
			t.Fatalf("%d were saved, and the archive ends at %d: %v", want, last, err)
		}
		if _, err := a.Save(context.Background(), l, testKey, testHistory,
			l.all[len(l.all)-1].next); err != nil {
			t.Fatalf("%d were saved, and it cannot continue: %v", saved, err)
		}
	}
	names, err := left.List("data/archives/one")
	if err != nil || slices.ContainsFunc(names,
		func(name string) bool { return strings.HasPrefix(name, unfinished) }) {
		t.Fatalf("leftovers of the power cut are still there: %v, %v", names, err)
	}
}
