package replicated

import (
	"cmp"
	"slices"
	"sync"

	"exchange/persistence/internal/machine"
)

// recentBytes bounds the newest batches kept in memory. A follower reads each batch as soon as it
// is applied; reads from the log would be a fifth of its work.
const recentBytes = 1 << 20

// An index lists the log entries that are the journal's batches: those whose append was done. The
// log holds refused appends, too.
type index struct {
	mu      sync.Mutex
	batches []batchRef // in the order of the log, which is the journal's

	recent []*machine.Entry // the newest batches, immutable
	bytes  int              // of recent
}

// A batchRef is a batch's entry index and its last sequence.
type batchRef struct{ entry, seq uint64 }

// add adds a batch and its entry index.
func (x *index) add(at uint64, e *machine.Entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.batches = append(x.batches, batchRef{at, e.Next})
	x.recent, x.bytes = append(x.recent, e), x.bytes+len(e.Batch)
	for x.bytes > recentBytes {
		x.bytes -= len(x.recent[0].Batch)
		x.recent[0] = nil
		x.recent = x.recent[1:]
	}
}

// newest returns the batches of (after, end] if all of them are in memory. They are immutable.
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

// recentAt returns the number of recent batches that end at or below a sequence. edge reports
// whether one of them ends there, or the first one begins there.
func (x *index) recentAt(seq uint64) (n int, edge bool) {
	if len(x.recent) > 0 && x.recent[0].Prev == seq {
		return 0, true
	}
	n, edge = slices.BinarySearchFunc(x.recent, seq,
		func(e *machine.Entry, seq uint64) int { return cmp.Compare(e.Next, seq) })
	return n + 1, edge
}

// dropUpTo removes the batches up to an entry.
func (x *index) dropUpTo(entry uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n, _ := slices.BinarySearchFunc(x.batches, entry+1,
		func(m batchRef, entry uint64) int { return cmp.Compare(m.entry, entry) })
	x.batches = slices.Clone(x.batches[n:])
}

// after returns the batches whose last sequence is above seq. The caller must not change them.
func (x *index) after(seq uint64) []batchRef {
	x.mu.Lock()
	defer x.mu.Unlock()
	n, _ := slices.BinarySearchFunc(x.batches, seq+1,
		func(m batchRef, seq uint64) int { return cmp.Compare(m.seq, seq) })
	return slices.Clip(x.batches[n:])
}

// upTo returns the entry of the last batch that ends at or below a sequence; 0: none.
func (x *index) upTo(seq uint64) uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	n, _ := slices.BinarySearchFunc(x.batches, seq+1,
		func(m batchRef, seq uint64) int { return cmp.Compare(m.seq, seq) })
	if n == 0 {
		return 0
	}
	return x.batches[n-1].entry
}
