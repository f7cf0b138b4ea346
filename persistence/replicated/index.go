package replicated

import (
	"cmp"
	"slices"
	"sync"

	"exchange/persistence/internal/machine"
)

// recentBytes bounds the newest batches that are kept in memory. A node that follows reads a batch
// as soon as it is applied: from its log that is a fifth of its work.
const recentBytes = 1 << 20

// An index says which entries of the log are the batches of the journal: those whose append was
// done. A refused append stands in the log, too.
type index struct {
	mu    sync.Mutex
	marks []mark // in the order of the log, which is the journal's

	recent []*machine.Entry // the newest batches, which stay as they are
	bytes  int              // of recent
}

// A mark is a batch: the index of its entry, and the sequence that it ends at.
type mark struct{ entry, seq uint64 }

// add notes a batch, and the entry that it is in.
func (x *index) add(at uint64, e *machine.Entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.marks = append(x.marks, mark{at, e.Next})
	x.recent, x.bytes = append(x.recent, e), x.bytes+len(e.Batch)
	for x.bytes > recentBytes {
		x.bytes -= len(x.recent[0].Batch)
		x.recent[0] = nil
		x.recent = x.recent[1:]
	}
}

// newest returns the batches of (after, end] if all of them are in memory. The caller does not
// change them.
func (x *index) newest(after, end uint64) []*machine.Entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	from, begins := x.recentAt(after)
	to, ends := x.recentAt(end)
	if !begins || !ends {
		return nil
	}
	return slices.Clone(x.recent[from:to])
}

// recentAt returns how many of the recent batches end at or below a sequence, at which one of them
// ends, or the first one begins; edge: it does.
func (x *index) recentAt(seq uint64) (n int, edge bool) {
	if len(x.recent) > 0 && x.recent[0].Prev == seq {
		return 0, true
	}
	n, edge = slices.BinarySearchFunc(x.recent, seq,
		func(e *machine.Entry, seq uint64) int { return cmp.Compare(e.Next, seq) })
	return n + 1, edge
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
