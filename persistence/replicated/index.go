package replicated

import (
	"cmp"
	"slices"
	"sync"
)

// An index says which entries of the log are the batches of the journal: those whose append was
// done. A refused append stands in the log, too.
type index struct {
	mu    sync.Mutex
	marks []mark // in the order of the log, which is the journal's
}

// A mark is a batch: the index of its entry, and the sequence that it ends at.
type mark struct{ entry, seq uint64 }

func (x *index) add(m mark) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.marks = append(x.marks, m)
}

// forget drops the batches of entries up to one.
func (x *index) forget(entry uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n, _ := slices.BinarySearchFunc(x.marks, entry+1,
		func(m mark, entry uint64) int { return cmp.Compare(m.entry, entry) })
	x.marks = slices.Clone(x.marks[n:])
}

// after returns the batches that end above a sequence. The caller does not change them.
func (x *index) after(seq uint64) []mark {
	x.mu.Lock()
	defer x.mu.Unlock()
	n, _ := slices.BinarySearchFunc(x.marks, seq+1,
		func(m mark, seq uint64) int { return cmp.Compare(m.seq, seq) })
	return slices.Clip(x.marks[n:])
}

// upTo returns the entry of the last batch that ends at or below a sequence; 0: there is none.
func (x *index) upTo(seq uint64) uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	n, _ := slices.BinarySearchFunc(x.marks, seq+1,
		func(m mark, seq uint64) int { return cmp.Compare(m.seq, seq) })
	if n == 0 {
		return 0
	}
	return x.marks[n-1].entry
}
