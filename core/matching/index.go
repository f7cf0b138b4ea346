package matching

import "math/bits"

// An idTable finds the record of an order by its id: open addressing with linear probing in a power
// of two of entries, at most 3/4 full. Deleting moves the followers back, so there are no
// tombstones. So a table never slows down with use.
//
// An entry is the 32-bit hash of the id above the 32-bit number of the record; 0 is empty. The hash
// avoids reading the records of other orders when probing, deleting and growing. An entry's home is
// near the slot of the top bits of its hash, so growing reads and writes memory in order.
//
// Ids come in increasing order. Eight consecutive ids have their homes in one cache line. So the
// line of a new order is mostly cached: the order before touched it.
type idTable struct {
	entries []uint64 // length is a power of two, or 0
	shift   uint8    // 32 - log2(len(entries))
	count   int
}

const firstTableLen = 64

// hashID returns the hash of an id's group of eight above its place in the group. It spreads groups
// that are close to each other and ids that differ in few bits. Clients do not choose ids, so a
// fixed function is safe.
func hashID(id uint64) uint32 {
	hi, lo := bits.Mul64(id/8, 0x9e3779b97f4a7c15)
	return uint32((hi^lo)>>32)&^7 | uint32(id%8)
}

// home returns the home slot of a hash.
func (t *idTable) home(hash uint32) int { return int(hash>>t.shift ^ hash%8) }

// find returns the slot of id (found), or the slot where it belongs. The table must have an empty
// entry: see reserve.
func (t *idTable) find(id uint64, orders *slab[order]) (at int, found bool) {
	hash := hashID(id)
	mask := len(t.entries) - 1
	for at = t.home(hash); ; at++ {
		at &= mask
		e := t.entries[at]
		if e == 0 {
			return at, false
		}
		if uint32(e>>32) == hash && orders.at(uint32(e)).id == id {
			return at, true
		}
	}
}

// lookup returns the number of the record of id, 0 if none.
func (t *idTable) lookup(id uint64, orders *slab[order]) uint32 {
	if t.count == 0 {
		return 0
	}
	if at, found := t.find(id, orders); found {
		return uint32(t.entries[at])
	}
	return 0
}

// put fills the empty entry that find returned.
func (t *idTable) put(at int, id uint64, n uint32) {
	t.entries[at] = uint64(hashID(id))<<32 | uint64(n)
	t.count++
}

// remove empties an entry and moves back those that it had displaced from their homes.
func (t *idTable) remove(at int) {
	mask := len(t.entries) - 1
	hole := at
	for next := (at + 1) & mask; t.entries[next] != 0; next = (next + 1) & mask {
		e := t.entries[next]
		home := t.home(uint32(e >> 32))
		if (next-home)&mask >= (next-hole)&mask {
			t.entries[hole] = e
			hole = next
		}
	}
	t.entries[hole] = 0
	t.count--
}

// reserve makes room for one more.
func (t *idTable) reserve() {
	if 4*(t.count+1) > 3*len(t.entries) {
		t.grow(1)
	}
}

// grow makes room for n more, if necessary.
func (t *idTable) grow(n int) {
	size := max(firstTableLen, len(t.entries))
	for 4*(t.count+n) > 3*size {
		size *= 2
	}
	if size == len(t.entries) {
		return
	}
	old := t.entries
	t.entries = make([]uint64, size)
	t.shift = uint8(33 - bits.Len(uint(len(t.entries))))
	mask := len(t.entries) - 1
	for _, e := range old {
		if e == 0 {
			continue
		}
		at := t.home(uint32(e >> 32))
		for t.entries[at] != 0 {
			at = (at + 1) & mask
		}
		t.entries[at] = e
	}
}
