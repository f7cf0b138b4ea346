package ledger

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"exchange/core/trading"
)

// newest returns the orders of a naive map in the order of Newest.
func newest(naive map[uint64]OpenOrder) (list []OpenOrder) {
	ids := slices.Sorted(maps.Keys(naive))
	slices.Reverse(ids)
	for _, id := range ids {
		list = append(list, naive[id])
	}
	return list
}

func TestOpenOrdersAgreeWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o OpenOrders
		naive := map[uint64]OpenOrder{}
		next := uint64(1)
		add := func(id uint64) {
			pair := rapid.Uint16Range(1, 3).Draw(t, "pair")
			side := trading.Side(rapid.IntRange(1, 2).Draw(t, "side"))
			_, there := naive[id]
			if o.Add(id, pair, side) == there {
				t.Fatalf("adding %d, there before: %v", id, there)
			}
			if !there {
				naive[id] = OpenOrder{id, pair, side}
			}
		}
		remove := func(id uint64) {
			_, there := naive[id]
			if o.Remove(id) != there {
				t.Fatalf("removing %d, there before: %v", id, there)
			}
			delete(naive, id)
		}
		t.Repeat(map[string]func(*rapid.T){
			"add last": func(t *rapid.T) {
				next += rapid.Uint64Range(1, 3).Draw(t, "gap")
				add(next)
			},
			"add anywhere": func(t *rapid.T) { add(rapid.Uint64Range(0, next+1).Draw(t, "id")) },
			"remove anything": func(t *rapid.T) {
				remove(rapid.Uint64Range(0, next+1).Draw(t, "id"))
			},
			"remove and add": func(t *rapid.T) {
				id := rapid.Uint64Range(0, next).Draw(t, "id")
				remove(id)
				add(id)
			},
			"add many": func(t *rapid.T) {
				for range 50 {
					next++
					add(next)
				}
			},
			"remove many, compact": func(t *rapid.T) {
				for id := next; id > 0 && id+80 > next; id-- {
					remove(id)
				}
			},
			"": func(t *rapid.T) {
				if o.Len() != len(naive) {
					t.Fatalf("%d orders, want %d", o.Len(), len(naive))
				}
				if got, want := slices.Collect(o.Newest()),
					newest(naive); !slices.Equal(got, want) {
					t.Fatalf("%v, want %v", got, want)
				}
				for range o.Newest() { // which ends here
					break
				}
				for id := range next + 2 {
					pair, side := o.Find(id)
					if got := (OpenOrder{naive[id].ID, pair, side}); got != naive[id] {
						t.Fatalf("order %d is %+v, want %+v", id, got, naive[id])
					}
				}
				rest := newest(naive)
				slices.Reverse(rest)
				var before []OpenOrder
				if last := rapid.Uint64Range(0, next).Draw(t, "last"); last > 0 {
					before = []OpenOrder{{ID: last}}
					rest = slices.DeleteFunc(rest, func(e OpenOrder) bool { return e.ID <= last })
				}
				if got := slices.Collect(o.Oldest(before)); !slices.Equal(got, rest) {
					t.Fatalf("after %v: %v, want %v", before, got, rest)
				}
			},
		})
	})
}

func TestRemovedOrdersReleaseTheirMemory(t *testing.T) {
	var o OpenOrders
	for id := range uint64(100_000) {
		o.Add(id+1, 1, trading.Sell)
	}
	for id := range uint64(99_990) {
		o.Remove(id + 1)
	}
	if o.Len() != 10 || cap(o.list) > 200 {
		t.Errorf("%d orders in memory for %d", o.Len(), cap(o.list))
	}
}
