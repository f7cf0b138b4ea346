package matching

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLadderAgreesWithSortedSlice inserts and removes keys in the patterns that make runs split,
// empty and merge, and compares the ladder with a sorted slice.
func TestLadderAgreesWithSortedSlice(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	// insert chooses a key, remove a position in the sorted keys. grow: how many of 100 steps
	// insert while the ladder grows to its size; 100 minus that while it shrinks to nothing.
	f := func(name string, grow, size int, insert func(i int) uint64, remove func(n int) int) {
		t.Helper()
		var l ladder
		var keys []uint64
		level := func(key uint64) uint32 { return uint32(hashID(key)) | 1 }
		growing := true
		for i := range 40_000 {
			if growing = len(keys) == 0 ||
				growing && len(keys) < size; growing == (rng.IntN(100) < grow) || len(keys) == 0 {
				key := insert(i)
				pos, found := slices.BinarySearch(keys, key)
				at, got := l.find(key)
				if found != (got != 0) || found && got != level(key) {
					t.Fatalf("%s, step %d: key %d found as %d, want %v", name, i, key, got, found)
				}
				if !found {
					keys = slices.Insert(keys, pos, key)
					l.insert(at, key, level(key))
				}
			} else {
				pos := remove(len(keys))
				at, got := l.find(keys[pos])
				if got != level(keys[pos]) {
					t.Fatalf("%s, step %d: key %d found as %d", name, i, keys[pos], got)
				}
				l.remove(at)
				keys = slices.Delete(keys, pos, pos+1)
			}
			if l.count != len(keys) || l.count > 0 &&
				(l.best != keys[len(keys)-1] || l.bestLevel() != level(l.best)) {
				t.Fatalf("%s, step %d: %d levels, best %d", name, i, l.count, l.best)
			}
			if i%100 == 0 {
				compareLadder(t, &l, keys)
			}
		}
		compareLadder(t, &l, keys)
		if used := len(l.runs) + len(l.spare); used > 8*size/runCap+2 {
			t.Errorf("%s: %d runs were made for %d levels", name, used, size)
		}
	}
	anywhere := func(int) uint64 { return 1 + rng.Uint64N(math.MaxUint64) }
	f("random", 80, 5000, anywhere, rng.IntN)
	f("few keys", 60, 300, func(int) uint64 { return 1 + rng.Uint64N(400) }, rng.IntN)
	f("rising, worst leave", 70, 3000,
		func(i int) uint64 { return uint64(i) + 1 }, func(int) int { return 0 })
	f("rising, best leave", 70, 3000,
		func(i int) uint64 { return uint64(i) + 1 }, func(n int) int { return n - 1 })
	f("falling, best leave", 70, 3000,
		func(i int) uint64 { return math.MaxUint64 - uint64(i) }, func(n int) int { return n - 1 })
	f("falling, worst leave", 70, 3000,
		func(i int) uint64 { return math.MaxUint64 - uint64(i) }, func(int) int { return 0 })
	f("random, middle leaves", 75, 4000, anywhere, func(n int) int { return n / 2 })
}

func compareLadder(t *testing.T, l *ladder, keys []uint64) {
	t.Helper()
	if err := checkLadder(l); err != nil {
		t.Fatal(err)
	}
	var got []uint64
	for _, r := range l.runs {
		got = append(got, r.keys[:r.n]...)
	}
	if !slices.Equal(got, keys) {
		t.Fatalf("the ladder has %d keys, want %d, or others", len(got), len(keys))
	}
}

func TestLadderStaysDenseWhenItThinsOut(t *testing.T) {
	const n = 100_000
	f := func(leaves func(i uint64) (key uint64)) {
		t.Helper()
		var l ladder
		for key := uint64(1); key <= n; key++ {
			at, _ := l.find(key)
			l.insert(at, key, uint32(key))
		}
		for i := uint64(1); i <= n; i++ {
			if key := leaves(i); key%50 != 0 {
				at, _ := l.find(key)
				l.remove(at)
			}
		}
		if err := checkLadder(&l); err != nil {
			t.Fatal(err)
		}
		// Two neighbors together use more than half a run, or one of them was not touched recently.
		if most := 8 * (n / 50) / runCap; l.count != n/50 || len(l.runs) > most {
			t.Errorf("%d levels are in %d runs, at most %d expected", l.count, len(l.runs), most)
		}
	}
	f(func(i uint64) uint64 { return i })
	f(func(i uint64) uint64 { return n + 1 - i })
	f(func(i uint64) uint64 { return 1 + i*7919%n })
}
