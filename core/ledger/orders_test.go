package ledger

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"exchange/core/event"
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
			"add behind": func(t *rapid.T) {
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
			"go on with a clone": func(t *rapid.T) {
				c := o.Clone()
				o.Add(next+100, 1, trading.Buy)
				o.Remove(next)
				o = c
			},
			"": func(t *rapid.T) {
				if o.Len() != len(naive) {
					t.Fatalf("%d orders, want %d", o.Len(), len(naive))
				}
				if got, want := slices.Collect(o.Newest()),
					newest(naive); !slices.Equal(got, want) {
					t.Fatalf("%v, want %v", got, want)
				}
				for id := range next + 2 {
					pair, side := o.Find(id)
					if got := (OpenOrder{naive[id].ID, pair, side}); got != naive[id] {
						t.Fatalf("order %d is %+v, want %+v", id, got, naive[id])
					}
				}
				var counts, want [3]int
				o.CountByPair(counts[:])
				for _, e := range naive {
					want[e.Pair-1]++
				}
				if counts != want {
					t.Fatalf("%v orders by pair, want %v", counts, want)
				}
			},
		})
	})
}

func TestRemovedOrdersGiveTheirMemoryBack(t *testing.T) {
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

func TestNewestStopsWhenAsked(t *testing.T) {
	var o OpenOrders
	o.Add(1, 1, trading.Buy)
	o.Add(2, 1, trading.Buy)
	for e := range o.Newest() {
		if e.ID != 2 {
			t.Fatalf("%+v", e)
		}
		break
	}
}

func id(n uint64) event.ClientID {
	c, err := event.NewClientID(fmt.Sprint("id-", n))
	if err != nil {
		panic(err)
	}
	return c
}

func TestAClientIDBelongsToItsOpenOrder(t *testing.T) {
	var c ClientIDs
	c.Open(1, id(1), 11)
	c.Open(2, id(2), 12)
	if order, taken := c.Order(id(1)); !taken || order != 1 || c.Of(1) != id(1) {
		t.Fatalf("order 1 is not known by its id: %d, %v, %v", order, taken, c.Of(1))
	}
	if got, placedUs := c.Close(1); got != id(1) || placedUs != 11 {
		t.Fatalf("order 1 closes with %v, placed at %d", got, placedUs)
	}
	if _, taken := c.Order(id(1)); taken || !c.Of(1).IsZero() {
		t.Fatal("the id of a closed order is kept")
	}
	if got, _ := c.Close(1); !got.IsZero() {
		t.Fatalf("order 1 closes again with %v", got)
	}
	c.Open(3, id(1), 13)
	if order, _ := c.Order(id(1)); order != 3 {
		t.Fatalf("the id is used again by order %d", order)
	}
	if got, _ := c.Close(2); got != id(2) {
		t.Fatalf("order 2 closes with %v", got)
	}
}

func TestClosedOrdersCostNothing(t *testing.T) {
	var c ClientIDs
	for n := range uint64(1000) {
		c.Open(n, id(n), 1)
	}
	for n := range uint64(1000) {
		c.Close(n)
	}
	if c.open != nil || c.orders != nil {
		t.Error("an empty set keeps its memory")
	}
}

func TestOrdersWithoutAnIDCostNothing(t *testing.T) {
	var c ClientIDs
	n := uint64(0)
	if allocs := testing.AllocsPerRun(100, func() {
		n++
		c.Open(n, event.ClientID{}, 1)
		c.Close(n)
	}); allocs != 0 || c.open != nil {
		t.Errorf("%v allocations", allocs)
	}
	if _, taken := c.Order(event.ClientID{}); taken {
		t.Error("none is taken")
	}
}

// script runs random opens and closes; it returns the last id.
func script(t *rapid.T, c *ClientIDs, from uint64) (last uint64) {
	for _, open := range rapid.SliceOfN(rapid.Bool(), 0, 60).Draw(t, "opens") {
		from++
		c.Open(from, id(from), int64(from))
		if !open {
			c.Close(from)
		}
	}
	return from
}

func sameIDs(c, d *ClientIDs) bool {
	return maps.Equal(c.open, d.open) && maps.Equal(c.orders, d.orders)
}

func TestACloneOfClientIDsIsIndependent(t *testing.T) {
	// frozen is the content of a set, in memory of its own.
	frozen := func(c *ClientIDs) *ClientIDs {
		f := new(ClientIDs)
		for order, o := range c.open {
			f.Open(order, o.id, o.placedUs)
		}
		return f
	}
	rapid.Check(t, func(t *rapid.T) {
		var c ClientIDs
		last := script(t, &c, 0)
		clone, was := c.Clone(), frozen(&c)
		if !sameIDs(&c, was) {
			t.Fatal("a set differs from one with the same orders")
		}
		last = script(t, &c, last)
		if !sameIDs(&clone, was) {
			t.Fatal("changing the first changes the clone")
		}
		was = frozen(&c)
		script(t, &clone, last)
		if !sameIDs(&c, was) {
			t.Fatal("changing the clone changes the first")
		}
	})
}
