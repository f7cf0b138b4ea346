package ledger

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"exchange/core/event"
)

// newest returns the orders of a naive map in the order of Newest.
func newest(naive map[uint64]uint16) (list []OpenOrder) {
	ids := slices.Sorted(maps.Keys(naive))
	slices.Reverse(ids)
	for _, id := range ids {
		list = append(list, OpenOrder{id, naive[id]})
	}
	return list
}

func TestOpenOrdersAgreeWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o OpenOrders
		naive := map[uint64]uint16{}
		next := uint64(1)
		add := func(id uint64) {
			pair := rapid.Uint16Range(1, 3).Draw(t, "pair")
			_, there := naive[id]
			if o.Add(id, pair) == there {
				t.Fatalf("adding %d, there before: %v", id, there)
			}
			if !there {
				naive[id] = pair
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
				o.Add(next+100, 1)
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
					if o.Pair(id) != naive[id] {
						t.Fatalf("the pair of %d is %d, want %d", id, o.Pair(id), naive[id])
					}
				}
			},
		})
	})
}

func TestRemovedOrdersGiveTheirMemoryBack(t *testing.T) {
	var o OpenOrders
	for id := range uint64(100_000) {
		o.Add(id+1, 1)
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
	o.Add(1, 1)
	o.Add(2, 1)
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

func TestExactlyTheLastClosedOrdersAreRemembered(t *testing.T) {
	var c ClientIDs
	c.Open(1, id(1))
	if got := c.Close(1); got != id(1) {
		t.Fatalf("order 1 closes with %v", got)
	}
	for n := range uint64(RememberedOrders - 1) { // orders without an id count as well
		c.Close(n + 2)
	}
	if order, taken := c.Order(id(1)); !taken || order != 1 {
		t.Fatalf("with %d closed orders the first is forgotten", RememberedOrders)
	}
	c.Close(RememberedOrders + 1)
	if _, taken := c.Order(id(1)); taken {
		t.Fatalf("with %d closed orders the first is remembered", RememberedOrders+1)
	}
	if _, past := c.State(); len(past) != 0 {
		t.Fatalf("%d ids are kept for nothing", len(past))
	}
}

func TestOpenOrdersKeepTheirClientIDHoweverOld(t *testing.T) {
	var c ClientIDs
	c.Open(1, id(1))
	for n := range uint64(3 * RememberedOrders) {
		c.Close(n + 2)
	}
	if order, taken := c.Order(id(1)); !taken || order != 1 || c.Of(1) != id(1) {
		t.Fatal("an open order lost its id")
	}
	c.Close(1)
	if _, taken := c.Order(id(1)); !taken || !c.Of(1).IsZero() {
		t.Fatal("an order that just closed is forgotten, or still open")
	}
}

func TestAForgottenClientIDCanBeUsedAgain(t *testing.T) {
	var c ClientIDs
	c.Open(1, id(1))
	c.Close(1)
	for n := range uint64(RememberedOrders) {
		c.Close(n + 2)
	}
	c.Open(20_000, id(1))
	for n := range uint64(RememberedOrders + 1) {
		c.Close(n + 30_000)
	}
	if order, taken := c.Order(id(1)); !taken || order != 20_000 {
		t.Fatal("forgetting the first use frees the second")
	}
}

func TestClientIDsOfManyOrdersStayBounded(t *testing.T) {
	var c ClientIDs
	for n := range uint64(3 * RememberedOrders) {
		c.Open(n, id(n))
		c.Close(n)
		if want := min(n+1, RememberedOrders); uint64(len(c.ids.orders)) != want ||
			len(c.ids.open) != 0 || uint64(len(c.ids.past)) != want {
			t.Fatalf("after %d orders: %d ids, %d open, %d past", n+1, len(c.ids.orders),
				len(c.ids.open), len(c.ids.past))
		}
	}
	if cap(c.ids.past) > 3*RememberedOrders {
		t.Errorf("memory for %d closed orders", cap(c.ids.past))
	}
}

func TestOrdersWithoutAnIDCostNothing(t *testing.T) {
	var c ClientIDs
	n := uint64(0)
	if allocs := testing.AllocsPerRun(100, func() {
		n++
		c.Open(n, event.ClientID{})
		c.Close(n)
	}); allocs != 0 || c.ids != nil {
		t.Errorf("%v allocations", allocs)
	}
	if _, taken := c.Order(event.ClientID{}); taken {
		t.Error("none is taken")
	}
}

// script runs random opens and closes; it returns the ids that were in use.
func script(t *rapid.T, c *ClientIDs, from uint64) (last uint64) {
	for _, open := range rapid.SliceOfN(rapid.Bool(), 0, 60).Draw(t, "opens") {
		from++
		c.Open(from, id(from))
		if !open {
			c.Close(from)
		}
	}
	return from
}

func remembered(c *ClientIDs) int {
	_, past := c.State()
	return len(past)
}

func TestClientIDsComeBackFromTheirState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c ClientIDs
		last := script(t, &c, 0)
		closed, past := c.State()
		var back ClientIDs
		restore := func() { back.Restore(closed, slices.Clone(past)) }
		openFirst := rapid.Bool().Draw(t, "open first")
		if !openFirst {
			restore()
		}
		if c.ids != nil {
			for order, id := range c.ids.open {
				back.Open(order, id)
			}
		}
		if openFirst {
			restore()
		}
		if !c.Equal(&back) {
			t.Fatalf("%+v came back as %+v", c, back)
		}
		for n := range uint64(RememberedOrders) { // and it forgets at the same moments
			c.Close(last + n + 1)
			back.Close(last + n + 1)
			if remembered(&c) != remembered(&back) {
				t.Fatalf("%d and %d are remembered", remembered(&c), remembered(&back))
			}
		}
		if !c.Equal(&back) {
			t.Fatal("they differ later")
		}
	})
}

func TestTwoClonesDoNotShareTheMemoryThatTheyGrowInto(t *testing.T) {
	var c ClientIDs
	for n := range uint64(5) { // an odd number leaves room behind the slice
		c.Open(n, id(n))
		c.Close(n)
	}
	clone := c.Clone()
	for n, set := range []*ClientIDs{&c, &clone} {
		set.Open(uint64(100+n), id(uint64(100+n)))
		set.Close(uint64(100 + n))
	}
	if c.ids.past[5].Order != 100 || clone.ids.past[5].Order != 101 {
		t.Errorf("%v and %v", c.ids.past[5], clone.ids.past[5])
	}
}

func TestACloneOfClientIDsIsIndependent(t *testing.T) {
	// frozen is the content of a set, in memory of its own.
	frozen := func(c *ClientIDs) *ClientIDs {
		f := &ClientIDs{closed: c.closed}
		if c.ids != nil {
			f.ids = &idSet{orders: maps.Clone(c.ids.orders), open: maps.Clone(c.ids.open),
				past: slices.Clone(c.ids.past)}
		}
		return f
	}
	rapid.Check(t, func(t *rapid.T) {
		var c ClientIDs
		last := script(t, &c, 0)
		clone, was := c.Clone(), frozen(&c)
		last = script(t, &c, last)
		if !clone.Equal(was) {
			t.Fatal("changing the first changes the clone")
		}
		was = frozen(&c)
		script(t, &clone, last)
		if !c.Equal(was) {
			t.Fatal("changing the clone changes the first")
		}
	})
}
