package committed

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"exchange/persistence"
)

// Complete answers from memory equal those of the whole list.
func TestRecentTradesMatchFullList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := recentTrades{keep: recentTradesLimit}
		var all []persistence.Trade // ascending
		n := rapid.IntRange(0, 4*recentTradesLimit).Draw(t, "trades")
		for id := 1; id <= n; id++ {
			all = append(all, persistence.Trade{ID: uint64(id), TimeUs: timeOf(id)})
		}
		order := slices.Clone(all)
		// neighbours of different pairs may be released in the other order
		for i := 1; i < len(order); i += 2 {
			if rapid.IntRange(0, 9).Draw(t, "swap") == 0 {
				order[i-1], order[i] = order[i], order[i-1]
			}
		}
		fill(t, &list, all, order)
		for range 10 {
			q := new(NewestTrades)
			q.Limit = rapid.IntRange(1, 300).Draw(t, "limit")
			q.Offset = rapid.IntRange(0, 700).Draw(t, "offset")
			q.Before = uint64(rapid.IntRange(0, n+5).Draw(t, "before"))
			q.Ascending = rapid.Bool().Draw(t, "ascending")
			q.After = uint64(rapid.IntRange(0, n+5).Draw(t, "after"))
			if rapid.Bool().Draw(t, "since is given") {
				q.SinceUs = timeOf(rapid.IntRange(0, n+5).Draw(t, "since"))
			}
			if rapid.Bool().Draw(t, "until is given") {
				q.UntilUs = timeOf(rapid.IntRange(0, n+5).Draw(t, "until"))
			}
			if !list.page(q) {
				if n < recentTradesLimit || int(q.After) > n-recentTradesLimit ||
					!q.Ascending && q.Before == 0 && q.UntilUs == 0 &&
						q.Offset+q.Limit <= recentTradesLimit {
					t.Fatalf("memory does not answer %+v of %d trades", q, n)
				}
				continue
			}
			var want []persistence.Trade
			for _, tr := range all {
				if (q.Before == 0 || tr.ID < q.Before) && tr.ID > q.After &&
					tr.TimeUs >= q.SinceUs && (q.UntilUs == 0 || tr.TimeUs <= q.UntilUs) {
					want = append(want, tr)
				}
			}
			if !q.Ascending {
				slices.Reverse(want)
			}
			want = want[min(q.Offset, len(want)):]
			want = want[:min(q.Limit, len(want))]
			if !slices.Equal(q.Trades, want) {
				t.Fatalf("memory answers %d trades from %v, want %d", len(q.Trades),
					q.Trades[:min(1, len(q.Trades))], len(want))
			}
		}
	})
}

// fill adds all trades in an order: as released, or as found by a start, some in the store and the
// newest in the journal.
func fill(t *rapid.T, list *recentTrades, all, order []persistence.Trade) {
	n, after, stored := len(all), 0, 0
	if rapid.Bool().Draw(t, "a start") {
		after = rapid.IntRange(0, n).Draw(t, "folded after")
		stored = rapid.IntRange(after, n).Draw(t, "stored up to")
	}
	for i := range order {
		if order[i].ID <= uint64(after) {
			continue
		}
		list.add(&order[i])
		if i%7 == 0 {
			list.add(&order[i]) // once more changes nothing
		}
	}
	newest := slices.Clone(all[max(0, stored-recentTradesLimit):stored])
	slices.Reverse(newest)
	list.begin(newest, stored > len(newest))
	if len(list.rows) >= 2*recentTradesLimit {
		t.Fatalf("memory has %d trades", len(list.rows))
	}
}

// timeOf is the time of a trade, which neighbours may share.
func timeOf(id int) int64 { return 1_000_000 + int64(id/3) }

func TestRecentOrdersAreTheNewestClosed(t *testing.T) {
	var r recentOrders
	for id := uint64(1); id <= recentLimit+10; id++ {
		r.add(&persistence.Order{ID: id, Account: uint32(1 + id%2), ClosedSeq: 100 + id})
	}
	if r.find(1, 10) != nil || r.find(2, 11) == nil || r.find(1, 11) != nil || r.evicted != 110 ||
		len(r.at) != recentLimit {
		t.Fatalf("evicted up to %d, %d known", r.evicted, len(r.at))
	}
	if o := r.find(1, recentLimit+10); o == nil || o.ID != recentLimit+10 {
		t.Fatalf("the newest is %+v", o)
	}
}
