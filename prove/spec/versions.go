package spec

import (
	"slices"

	"exchange/core/money"
	"exchange/core/trading"
)

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

// At returns an account's funds at a sequence; nil: no record up to there belongs to it.
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

// A Moment is a pair's state after a record.
type Moment struct {
	seq   uint64
	Last  money.Price    // of the newest trade; 0: none
	best  [2]money.Price // of the buys and of the sells; 0: none
	Open  int            // orders, those that wait included
	Stops int            // orders that wait for a trigger, an OCO included
	GTD   int            // orders that expire
}

// note stores the pair's state after the record.
func (m *Exchange) note(p *Pair) {
	n := Moment{seq: m.Seq, Last: p.last}
	for _, o := range p.Open() {
		n.Open++
		if o.IsStop() {
			n.Stops++
		}
		if o.Says.ExpireUs != 0 {
			n.GTD++
		}
	}
	for i, side := range p.sides {
		if len(side) > 0 {
			n.best[i] = side[0].Price
		}
	}
	p.moments = append(p.moments, n)
}

// Meets reports whether an order would trade at once.
func (n Moment) Meets(side trading.Side, limit money.Price) bool {
	best := n.best[side.Opposite()-1]
	return best != 0 && crosses(side, limit, best)
}

// At returns the pair's state after its newest record up to a sequence.
func (p *Pair) At(seq uint64) Moment {
	for _, n := range slices.Backward(p.moments) {
		if n.seq <= seq {
			return n
		}
	}
	return Moment{}
}
