package state

import (
	"iter"
	"slices"
)

// Nonces are the greatest nonces of a key for parallel use, up to event.Key.NonceWindow of them.
// Requests of such a key may overtake each other, and none is accepted twice: a nonce that was
// dropped from the set is below its least.
//
// The fold keeps those of records; a wallet also those of reads, and those in flight.
type Nonces struct {
	most int
	// used[first:] is the set, ascending; everything before first was dropped. So ascending nonces,
	// the usual case, append without moving the others.
	used  []uint64
	first int
}

// NewNonces returns an empty set of at most that many nonces.
func NewNonces(most int) *Nonces { return &Nonces{most: most} }

// Clone returns an independent copy.
func (n *Nonces) Clone() *Nonces {
	return &Nonces{most: n.most, used: slices.Clone(n.used[n.first:])}
}

// All yields the nonces in ascending order.
func (n *Nonces) All() iter.Seq[uint64] { return slices.Values(n.used[n.first:]) }

// count returns the number of nonces.
func (n *Nonces) count() int { return len(n.used) - n.first }

// Used reports whether a nonce is in the set, or below all of a full one. 0 always is.
func (n *Nonces) Used(nonce uint64) bool {
	at, found := n.place(nonce)
	return found || nonce == 0 || at == 0 && n.count() == n.most
}

func (n *Nonces) place(nonce uint64) (at int, found bool) {
	return slices.BinarySearch(n.used[n.first:], nonce)
}

// Take adds a nonce, and reports false if it is used.
func (n *Nonces) Take(nonce uint64) bool {
	if n.Used(nonce) {
		return false
	}
	if n.first >= n.most { // as many dropped as kept
		n.used, n.first = n.used[:copy(n.used, n.used[n.first:])], 0
	}
	at, _ := n.place(nonce)
	n.used = slices.Insert(n.used, n.first+at, nonce)
	if n.count() > n.most {
		n.first++ // drop the least
	}
	return true
}
