package actors

import "exchange/persistence"

// recentOrders are the newest closed orders of all accounts, in memory: what clients ask for most is
// what has just happened, and the store learns of it a moment later. The committed actor owns it.
type recentOrders struct {
	rows    []persistence.Order // a ring; its length is the limit
	at      map[uint64]int32    // order id -> place in the ring
	next    int
	evicted uint64 // ClosedSeq of the newest row that was given up: all later ones are here
}

// recentLimit is how many closed orders are kept: some seconds of heavy trading, about 15 MB when full.
const recentLimit = 1 << 16

func (r *recentOrders) add(o *persistence.Order) {
	if r.at == nil {
		r.at = make(map[uint64]int32)
	}
	if len(r.rows) < recentLimit {
		r.rows = append(r.rows, *o)
		r.at[o.ID] = int32(len(r.rows) - 1)
		return
	}
	old := &r.rows[r.next]
	r.evicted = old.ClosedSeq
	delete(r.at, old.ID)
	*old = *o
	r.at[o.ID] = int32(r.next)
	r.next = (r.next + 1) % recentLimit
}

// find is a closed order of an account, nil if it is not here.
func (r *recentOrders) find(account uint32, id uint64) *persistence.Order {
	i, ok := r.at[id]
	if !ok || r.rows[i].Account != account {
		return nil
	}
	return &r.rows[i]
}
