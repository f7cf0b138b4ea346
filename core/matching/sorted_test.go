package matching

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// checkSorted checks everything inside a sorted list that must hold between calls.
func checkSorted(t *testing.T, s *sorted, want []entry) {
	t.Helper()
	for _, r := range s.runs {
		if len(r) == 0 || cap(r) != entriesInRun {
			t.Fatalf("a run has %d entries of %d", len(r), cap(r))
		}
	}
	if got := slices.Collect(s.all()); !slices.Equal(got, want) || s.count != len(want) {
		t.Fatalf("the list has %d entries and counts %d, want %d, or others", len(got), s.count,
			len(want))
	}
	if len(want) > 0 && s.first() != want[0] {
		t.Fatalf("the first is %v, want %v", s.first(), want[0])
	}
}

// TestSortedListAgreesWithASlice adds, removes and takes entries in the patterns that make runs
// split, empty and join, and compares the list with a sorted slice.
func TestSortedListAgreesWithASlice(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	f := func(name string, size int, next func(i int) entry, leaves func(n int) int) {
		t.Helper()
		var s sorted
		var want []entry
		growing := true
		for i := range 20_000 {
			if growing = len(want) == 0 || growing && len(want) < size; growing ==
				(rng.IntN(100) < 75) || len(want) == 0 {
				e := next(i)
				at, found := slices.BinarySearchFunc(want, e, entry.compare)
				if s.add(e) == found {
					t.Fatalf("%s, step %d: %v is there: %v", name, i, e, found)
				}
				if !found {
					want = slices.Insert(want, at, e)
				}
			} else {
				at := leaves(len(want))
				if e := want[at]; !s.remove(e) || s.remove(e) {
					t.Fatalf("%s, step %d: %v was not removed once", name, i, e)
				}
				want = slices.Delete(want, at, at+1)
			}
			if i%1000 == 999 {
				key := want[rng.IntN(min(300, len(want)))].key - 1 + rng.Uint64N(2)
				took := s.takeUpTo(key, nil)
				n := 0
				for n < len(want) && want[n].key <= key {
					n++
				}
				if !slices.Equal(took, appendIDs(nil, want[:n])) {
					t.Fatalf("%s, step %d: %d were taken, want %d", name, i, len(took), n)
				}
				want = want[n:]
			}
			if i%100 == 0 {
				checkSorted(t, &s, want)
				e := next(i)
				at, _ := slices.BinarySearchFunc(want, e, entry.compare)
				if got := slices.Collect(s.from(e)); !slices.Equal(got, want[at:]) {
					t.Fatalf("%s: %d entries from %v on, want %d", name, len(got), e,
						len(want)-at)
				}
			}
		}
		if used := len(s.runs) + len(s.spare); used > 8*size/entriesInRun+2 {
			t.Errorf("%s: %d runs were made for %d entries", name, used, size)
		}
	}
	few := func(i int) entry { return entry{1 + rng.Uint64N(3), uint64(i) * 0x9e3779b97f4a7c15} }
	f("anywhere", 3000, func(i int) entry {
		return entry{1 + rng.Uint64N(math.MaxUint64), rng.Uint64()}
	}, rng.IntN)
	f("few keys", 3000, few, rng.IntN)
	f("ascending, first leaves", 3000, func(i int) entry { return entry{uint64(i) + 1, 7} },
		func(int) int { return 0 })
	f("ascending, last leaves", 3000, func(i int) entry { return entry{uint64(i) + 1, 7} },
		func(n int) int { return n - 1 })
	f("descending, last leaves", 3000, func(i int) entry { return entry{1, 1<<40 - uint64(i)} },
		func(n int) int { return n - 1 })
}

// A list that thins out from any end does not keep a run for each entry.
func TestSortedListStaysDenseWhenItThinsOut(t *testing.T) {
	const n = 50_000
	f := func(at func(i uint64) uint64) {
		t.Helper()
		var s sorted
		var want []entry
		for i := range uint64(n) {
			s.add(entry{1, i})
		}
		for i := range uint64(n) {
			if id := at(i); id%100 != 0 {
				s.remove(entry{1, id})
			}
		}
		for i := uint64(0); i < n; i += 100 {
			want = append(want, entry{1, i})
		}
		checkSorted(t, &s, want)
		if most := 8 * len(want) / entriesInRun; len(s.runs) > most {
			t.Errorf("%d entries are in %d runs, at most %d expected", len(want), len(s.runs), most)
		}
	}
	f(func(i uint64) uint64 { return i })
	f(func(i uint64) uint64 { return n - 1 - i })
	f(func(i uint64) uint64 { return i * 7919 % n })
}

func TestAScheduleReturnsTheFirstThatIsDue(t *testing.T) {
	var s Schedule
	due := func(nowUs int64, want bool, wantID uint64) {
		t.Helper()
		_, id, ok := s.First()
		if s.Due(nowUs) != want || id != wantID || ok != (s.Len() > 0) {
			t.Errorf("at %d us: due %v, first is %d of %d", nowUs, s.Due(nowUs), id, s.Len())
		}
	}
	due(math.MaxInt64, false, 0)
	s.Add(50, 3)
	s.Add(50, 2)
	s.Add(40, 9)
	due(39, false, 9)
	due(40, true, 9)
	if !s.Remove(40, 9) || s.Remove(40, 9) || s.Remove(40, 2) {
		t.Error("not exactly what is due at a time was removed")
	}
	due(49, false, 2)
	due(50, true, 2)
	s.Remove(50, 2)
	due(50, true, 3)
	defer func() {
		if recover() == nil {
			t.Error("an id is due twice at a time")
		}
	}()
	s.Add(50, 3)
}
