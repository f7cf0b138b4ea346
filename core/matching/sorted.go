package matching

import (
	"cmp"
	"iter"
	"slices"
)

// entriesInRun is the maximum number of entries in a run: 2 KiB.
const entriesInRun = 128

// A sorted list holds unique entries in ascending order, cut into runs, so that a change is one
// binary search and one short copy.
type sorted struct {
	runs  [][]entry // each ascending and of this capacity; no run is empty
	spare [][]entry // for the next splits
	count int
}

// An entry is an id with the key that it is sorted by. Equal keys are sorted by id.
type entry struct{ key, id uint64 }

func (e entry) compare(f entry) int {
	if c := cmp.Compare(e.key, f.key); c != 0 {
		return c
	}
	return cmp.Compare(e.id, f.id)
}

// first returns the first entry; there must be one.
func (s *sorted) first() entry { return s.runs[0][0] }

// find returns the position of an entry (found), or where it belongs.
func (s *sorted) find(e entry) (run, at int, found bool) {
	if len(s.runs) == 0 {
		return 0, 0, false
	}
	next, _ := slices.BinarySearchFunc(s.runs, e, func(r []entry, e entry) int {
		if r[0].compare(e) <= 0 {
			return -1
		}
		return 1
	})
	run = max(next-1, 0)
	at, found = slices.BinarySearchFunc(s.runs[run], e, entry.compare)
	return run, at, found
}

// placeFor is find, with a fast path for an entry that belongs after all others.
func (s *sorted) placeFor(e entry) (run, at int, found bool) {
	if run = len(s.runs) - 1; run >= 0 {
		if at = len(s.runs[run]); s.runs[run][at-1].compare(e) < 0 {
			return run, at, false
		}
	}
	return s.find(e)
}

// add inserts an entry, and reports false if it is there already.
func (s *sorted) add(e entry) bool {
	run, at, found := s.placeFor(e)
	if found {
		return false
	}
	if len(s.runs) == 0 {
		s.addRun(0)
	}
	if len(s.runs[run]) == entriesInRun {
		run, at = s.split(run, at)
	}
	s.runs[run] = slices.Insert(s.runs[run], at, e)
	s.count++
	return true
}

// split makes room in a full run and returns the new position. Entries in ascending order leave
// full runs.
func (s *sorted) split(run, at int) (newRun, newAt int) {
	if at == entriesInRun && run+1 == len(s.runs) {
		s.addRun(run + 1)
		return run + 1, 0
	}
	const half = entriesInRun / 2
	s.addRun(run + 1)
	old := s.runs[run]
	s.runs[run+1] = append(s.runs[run+1], old[half:]...)
	s.runs[run] = old[:half]
	if at > half {
		return run + 1, at - half
	}
	return run, at
}

// remove deletes an entry, and reports false if it is not there.
func (s *sorted) remove(e entry) bool {
	run, at, found := s.find(e)
	if !found {
		return false
	}
	s.runs[run] = slices.Delete(s.runs[run], at, at+1)
	s.count--
	s.thinned(run)
	return true
}

// takeUpTo removes all entries whose keys are at most key, and appends their ids to dst in order.
// Whole runs go at once.
func (s *sorted) takeUpTo(key uint64, dst []uint64) []uint64 {
	whole := 0
	for ; whole < len(s.runs); whole++ {
		r := s.runs[whole]
		if r[len(r)-1].key > key {
			break
		}
		dst = appendIDs(dst, r)
		s.count -= len(r)
		s.spare = append(s.spare, r[:0])
	}
	s.runs = slices.Delete(s.runs, 0, whole)
	if len(s.runs) == 0 || s.runs[0][0].key > key {
		return dst
	}
	n := 1
	for s.runs[0][n].key <= key { // the last one is above
		n++
	}
	dst = appendIDs(dst, s.runs[0][:n])
	s.count -= n
	s.runs[0] = slices.Delete(s.runs[0], 0, n)
	s.thinned(0)
	return dst
}

func appendIDs(dst []uint64, entries []entry) []uint64 {
	for _, e := range entries {
		dst = append(dst, e.id)
	}
	return dst
}

// thinned drops a run that became empty, or joins a small one with its neighbors. Many changes must
// follow before a joined run splits, so splitting and joining stay rare.
func (s *sorted) thinned(run int) {
	switch n := len(s.runs[run]); {
	case n == 0:
		s.dropRun(run)
	case n < entriesInRun/4:
		s.join(run)
		s.join(run - 1)
	}
}

// join joins a run and the next one, if there are both and the result is at most half full.
func (s *sorted) join(run int) {
	if run < 0 || run+1 >= len(s.runs) ||
		len(s.runs[run])+len(s.runs[run+1]) > entriesInRun/2 {
		return
	}
	s.runs[run] = append(s.runs[run], s.runs[run+1]...)
	s.dropRun(run + 1)
}

func (s *sorted) addRun(run int) {
	var r []entry
	if n := len(s.spare); n > 0 {
		r = s.spare[n-1]
		s.spare = s.spare[:n-1]
	} else {
		r = make([]entry, 0, entriesInRun)
	}
	s.runs = slices.Insert(s.runs, run, r)
}

func (s *sorted) dropRun(run int) {
	s.spare = append(s.spare, s.runs[run][:0])
	s.runs = slices.Delete(s.runs, run, run+1)
}

// from yields the entries from e on, e itself included. The list must not change meanwhile.
func (s *sorted) from(e entry) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		run, at, _ := s.find(e)
		for ; run < len(s.runs); run, at = run+1, 0 {
			for _, e := range s.runs[run][at:] {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// all yields all entries. The list must not change meanwhile.
func (s *sorted) all() iter.Seq[entry] { return s.from(entry{}) }
