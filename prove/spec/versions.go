package spec

import "slices"

// A version is an account after a record.
type version struct {
	seq     uint64
	funds   Funds
	open    map[uint64]Order // by id
	pending int              // withdrawals
}

func (m *Exchange) open(a *Account) map[uint64]Order {
	open := map[uint64]Order{}
	for _, p := range m.Pairs {
		for _, o := range p.Open() {
			if o.Account == a.ID {
				open[o.ID] = *o
			}
		}
	}
	return open
}

func (m *Exchange) pending(a *Account) (n int) {
	for _, w := range m.Withdrawals {
		if w.Account == a.ID && w.Pending() {
			n++
		}
	}
	return n
}

// At returns an account's funds at a sequence, or nil if no record up to there belongs to it.
func (a *Account) At(seq uint64) Funds {
	for _, v := range slices.Backward(a.versions) {
		if v.seq <= seq {
			return v.funds
		}
	}
	return nil
}

// Touched returns the sequence of the newest record up to seq that belongs to an account, or 0.
func (a *Account) Touched(seq uint64) uint64 {
	for _, v := range slices.Backward(a.versions) {
		if v.seq <= seq {
			return v.seq
		}
	}
	return 0
}

// OpenAt returns an account's open orders at a sequence, by id.
func (a *Account) OpenAt(seq uint64) map[uint64]Order {
	for _, v := range slices.Backward(a.versions) {
		if v.seq <= seq {
			return v.open
		}
	}
	return nil
}

// MostPending returns the highest number of an account's pending withdrawals between two sequences.
func (a *Account) MostPending(from, to uint64) (most int) {
	for _, v := range slices.Backward(a.versions) {
		if v.seq <= to {
			most = max(most, v.pending)
		}
		if v.seq <= from {
			break
		}
	}
	return most
}
