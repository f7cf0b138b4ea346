package committed

import (
	"slices"

	"exchange/persistence"
)

// recentOrders are the newest closed orders of all accounts, in memory: what clients ask for most
// is what has just happened, and the store learns of it a moment later. The committed actor owns
// it.
type recentOrders struct {
	rows    []persistence.Order // a ring; its length is the limit
	at      map[uint64]int32    // order id -> place in the ring
	next    int
	evicted uint64 // ClosedSeq of the newest row that was given up: all later ones are here
}

// recentLimit is how many closed orders are kept: some seconds of heavy trading, about 15 MB when
// full.
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

// recentTrades are the newest trades of one pair, or of all, in memory, so that the list that
// everybody polls costs the store nothing and is there when the store is not. Ids ascend; the zero
// value knows nothing and has everything. The committed actor owns it.
type recentTrades struct {
	rows  []persistence.Trade
	keep  int  // how many are kept at least; twice as many at most
	older bool // there are older trades, which only the store has
}

// recentTradesLimit is how many are kept at least, once there were as many: some pages of the
// default length. Twice as many, about 110 kB, are held at most.
const recentTradesLimit = 500

// add puts a trade in its place: at the end, but for neighbours of different pairs that swapped
// places.
func (r *recentTrades) add(t *persistence.Trade) {
	i := len(r.rows)
	for i > 0 && r.rows[i-1].ID > t.ID {
		i--
	}
	if i > 0 && r.rows[i-1].ID == t.ID {
		return
	}
	if i == 0 && r.older {
		return // it is older than what is kept
	}
	r.rows = slices.Insert(r.rows, i, *t)
	if len(r.rows) >= 2*r.keep {
		r.rows = r.rows[:copy(r.rows, r.rows[len(r.rows)-r.keep:])]
		r.older = true
	}
}

// page fills a question, and reports whether the page is complete. Otherwise the store has to be
// asked.
func (r *recentTrades) page(q *NewestTrades) bool {
	if r.older && q.Ascending {
		return false
	}
	skip := q.Offset
	for i := 0; i < len(r.rows) && len(q.Trades) < q.Limit; i++ {
		t := &r.rows[i]
		if !q.Ascending {
			t = &r.rows[len(r.rows)-1-i]
		}
		switch {
		case q.Before != 0 && t.ID >= q.Before:
		case skip > 0:
			skip--
		default:
			q.Trades = append(q.Trades, *t)
		}
	}
	return len(q.Trades) == q.Limit || !r.older
}
