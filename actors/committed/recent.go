package committed

import (
	"slices"

	"exchange/persistence"
)

// recentOrders are the newest closed orders of all accounts, in memory. Clients mostly ask for
// orders that have just closed, which the store has a moment later. The committed actor owns it.
type recentOrders struct {
	rows    []persistence.Order // a ring; its length is the limit
	at      map[uint64]int32    // order id -> index in the ring
	next    int
	evicted uint64 // ClosedSeq of the newest evicted row: all later ones are here
}

// recentLimit is the number of kept closed orders: some seconds of heavy trading, about 15 MB.
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

// find returns a closed order of an account, nil if it is not here.
func (r *recentOrders) find(account uint32, id uint64) *persistence.Order {
	i, ok := r.at[id]
	if !ok || r.rows[i].Account != account {
		return nil
	}
	return &r.rows[i]
}

// recentTrades caches the newest trades of one pair, or of all. All clients poll this list, so it
// must not load the store or depend on it. Ids ascend. The zero value is the complete list of a
// pair without trades. The committed actor owns it.
type recentTrades struct {
	rows  []persistence.Trade
	keep  int  // minimum number of kept trades; at most twice that are held
	older bool // the store has older trades
}

// recentTradesLimit is the number of trades that a trimmed list keeps: some pages of the default
// length. A list holds at most twice that, about 110 kB.
const recentTradesLimit = 500

// add inserts a trade by its id: usually at the end, but neighbours of different pairs may be
// released in the other order.
func (r *recentTrades) add(t *persistence.Trade) {
	i := len(r.rows)
	for i > 0 && r.rows[i-1].ID > t.ID {
		i--
	}
	if i > 0 && r.rows[i-1].ID == t.ID {
		return
	}
	if i == 0 && r.older {
		return // it is older than the list
	}
	r.rows = slices.Insert(r.rows, i, *t)
	if len(r.rows) >= 2*r.keep {
		r.rows = r.rows[:copy(r.rows, r.rows[len(r.rows)-r.keep:])]
		r.older = true
	}
}

// begin prepends stored trades, newest first, which may overlap with those in memory. older: the
// store has more.
func (r *recentTrades) begin(stored []persistence.Trade, older bool) {
	n := 0
	for n < len(stored) && len(r.rows) > 0 && stored[n].ID >= r.rows[0].ID {
		r.add(&stored[n])
		n++
	}
	if r.older {
		return // the stored ones are older than the list
	}
	stored = stored[n:]
	slices.Reverse(stored)
	r.rows, r.older = append(stored, r.rows...), older
	if len(r.rows) >= 2*r.keep {
		r.rows, r.older = slices.Clone(r.rows[len(r.rows)-r.keep:]), true
	}
}

// page fills a question, and reports whether the page is complete. Otherwise the store must be
// queried.
func (r *recentTrades) page(q *NewestTrades) bool {
	// the first row in memory is outside the query, or no older row exists: memory is complete
	whole := !r.older || r.rows[0].ID <= q.After || r.rows[0].TimeUs < q.SinceUs
	if q.Ascending && !whole {
		return false
	}
	skip := q.Offset
	for i := 0; i < len(r.rows) && len(q.Trades) < q.Limit; i++ {
		t := &r.rows[i]
		if !q.Ascending {
			t = &r.rows[len(r.rows)-1-i]
		}
		switch {
		case q.Before != 0 && t.ID >= q.Before, t.ID <= q.After, t.TimeUs < q.SinceUs,
			q.UntilUs != 0 && t.TimeUs > q.UntilUs:
		case skip > 0:
			skip--
		default:
			q.Trades = append(q.Trades, *t)
		}
	}
	return len(q.Trades) == q.Limit || whole
}
