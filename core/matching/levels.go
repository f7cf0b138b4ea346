package matching

import (
	"math/bits"
	"slices"

	"exchange/core/money"
	"exchange/core/trading"
)

// runCap is the maximum number of levels in a run. With its count a run fills an allocator size,
// 3,072 bytes.
const runCap = 255

// A ladder is the price index of one side. Its levels are sorted from worst to best and cut into
// runs; a list of the runs' first keys leads to the right run. Most changes happen near the best
// price, at the end of the last run, where little has to move. Two steps are enough: a million
// levels are about 8,000 runs. The list of runs changes only when a run splits, empties or is
// merged.
//
// A key is the price for a buy and its complement for a sell. So a higher key is better on both
// sides, and one code serves both. No key is 0.
type ladder struct {
	firsts []uint64 // firsts[i] is runs[i].keys[0]
	runs   []*run   // no run is empty
	spare  []*run   // for the next splits
	count  int      // levels
	best   uint64   // key of the best level, 0 if none
}

type run struct {
	keys   [runCap]uint64 // ascending
	levels [runCap]uint32 // numbers of the level records, at the index of their keys
	n      uint32
}

// A place is a position in the ladder: of a level, or where it would be inserted.
type place struct{ run, pos int }

// keyOf returns the key of a price, which is at least 1.
func keyOf(side trading.Side, p money.Price) uint64 {
	if side == trading.Sell {
		return ^uint64(p)
	}
	return uint64(p)
}

// bestLevel returns the number of the best level; there must be one.
func (l *ladder) bestLevel() uint32 {
	r := l.runs[len(l.runs)-1]
	return r.levels[r.n-1]
}

// find returns the level of a key, 0 if none, and the key's place, where a new level belongs too.
func (l *ladder) find(key uint64) (at place, level uint32) {
	if len(l.runs) == 0 {
		return place{}, 0
	}
	at.run = max(countUpTo(l.firsts, key)-1, 0)
	r := l.runs[at.run]
	at.pos = countUpTo(r.keys[:r.n], key)
	if at.pos > 0 && r.keys[at.pos-1] == key {
		at.pos--
		return at, r.levels[at.pos]
	}
	return at, 0
}

// countUpTo returns how many of the ascending keys, at least one, are at most key. The comparison
// is unpredictable, so the step is arithmetic instead of a branch.
func countUpTo(keys []uint64, key uint64) int {
	base, n := 0, len(keys)
	for n > 1 {
		half := n / 2
		_, above := bits.Sub64(key, keys[base+half], 0) // 1 when that key is above, otherwise 0
		base += half & (int(above) - 1)
		n -= half
	}
	if keys[base] <= key {
		base++
	}
	return base
}

// insert adds a new level at the place that find returned for its key.
func (l *ladder) insert(at place, key uint64, level uint32) {
	if len(l.runs) == 0 {
		l.addRun(0, key)
	}
	r := l.runs[at.run]
	if r.n == runCap {
		at = l.split(at)
		r = l.runs[at.run]
	}
	copy(r.keys[at.pos+1:r.n+1], r.keys[at.pos:r.n])
	copy(r.levels[at.pos+1:r.n+1], r.levels[at.pos:r.n])
	r.keys[at.pos], r.levels[at.pos] = key, level
	r.n++
	l.firsts[at.run] = r.keys[0]
	l.count++
	l.best = max(l.best, key)
}

// split moves the better half of a full run to a new one and returns where the place is now.
func (l *ladder) split(at place) place {
	const half = runCap / 2
	old := l.runs[at.run]
	added := l.addRun(at.run+1, old.keys[half])
	copy(added.keys[:], old.keys[half:])
	copy(added.levels[:], old.levels[half:])
	old.n, added.n = half, runCap-half
	if at.pos > half {
		return place{at.run + 1, at.pos - half}
	}
	return at
}

// remove removes the level at a place.
func (l *ladder) remove(at place) {
	r := l.runs[at.run]
	copy(r.keys[at.pos:], r.keys[at.pos+1:r.n])
	copy(r.levels[at.pos:], r.levels[at.pos+1:r.n])
	r.n--
	l.count--
	switch {
	case r.n == 0:
		l.dropRun(at.run)
	case r.n < runCap/4 && len(l.runs) > 1:
		l.firsts[at.run] = r.keys[0]
		l.merge(at.run)
		l.merge(max(at.run-1, 0))
	default:
		l.firsts[at.run] = r.keys[0]
	}
	l.best = 0
	if n := len(l.runs); n > 0 {
		r = l.runs[n-1]
		l.best = r.keys[r.n-1]
	}
}

// bestPlace returns where the best level is; there must be one.
func (l *ladder) bestPlace() place {
	last := len(l.runs) - 1
	return place{last, int(l.runs[last].n) - 1}
}

// merge joins run i and the next better one when the result is at most half full. Many changes must
// follow before the joined run splits, so splitting and merging stay rare.
func (l *ladder) merge(i int) {
	if i+1 == len(l.runs) {
		return
	}
	r, next := l.runs[i], l.runs[i+1]
	if r.n+next.n > runCap/2 {
		return
	}
	copy(r.keys[r.n:], next.keys[:next.n])
	copy(r.levels[r.n:], next.levels[:next.n])
	r.n += next.n
	l.dropRun(i + 1)
}

// addRun inserts an empty run whose first key will be first.
func (l *ladder) addRun(i int, first uint64) *run {
	var r *run
	if n := len(l.spare); n > 0 {
		r = l.spare[n-1]
		l.spare = l.spare[:n-1]
	} else {
		r = new(run)
	}
	l.runs = slices.Insert(l.runs, i, r)
	l.firsts = slices.Insert(l.firsts, i, first)
	return r
}

func (l *ladder) dropRun(i int) {
	r := l.runs[i]
	r.n = 0
	l.spare = append(l.spare, r)
	l.runs = slices.Delete(l.runs, i, i+1)
	l.firsts = slices.Delete(l.firsts, i, i+1)
}

// bestFirst yields the numbers of the levels, best first.
func (l *ladder) bestFirst(yield func(level uint32) bool) {
	for i := len(l.runs) - 1; i >= 0; i-- {
		r := l.runs[i]
		for pos := int(r.n) - 1; pos >= 0; pos-- {
			if !yield(r.levels[pos]) {
				return
			}
		}
	}
}
