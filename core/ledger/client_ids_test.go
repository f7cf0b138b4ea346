package ledger

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"exchange/core/event"
)

func id(n uint64) event.ClientID {
	c, err := event.NewClientID(fmt.Sprint("id-", n))
	if err != nil {
		panic(err)
	}
	return c
}

func TestClosedOrdersCostNothing(t *testing.T) {
	var c ClientIDs
	for n := range uint64(1000) {
		c.Open(n, id(n), 1)
	}
	for n := range uint64(990) {
		c.Close(n)
	}
	if s := c.set; cap(s.list) > 100 || len(s.byID.slots)+len(s.byOrder.slots) > 512 {
		t.Errorf("10 ids of 1,000 are left, and memory is kept for %d, with %d and %d slots",
			cap(s.list), len(s.byID.slots), len(s.byOrder.slots))
	}
	for n := range uint64(10) {
		c.Close(990 + n)
	}
	if c.set != nil {
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
	}); allocs != 0 || c.set != nil {
		t.Errorf("%v allocations", allocs)
	}
	if _, taken := c.Order(event.ClientID{}); taken {
		t.Error("none is taken")
	}
}

func TestANamingShowsWhereItsIDLeads(t *testing.T) {
	var right, wrong ClientIDs
	right.Open(1, id(1), 1)
	wrong.Open(2, id(1), 1)
	wrong.Open(1, id(1), 1)
	if a, b := right.Naming(1), wrong.Naming(1); a == b || a.id != b.id ||
		a.String() == b.String() || right.Naming(3) != (Naming{}) {
		t.Errorf("%v and %v", a, b)
	}
}

// naiveIDs are ClientIDs, as a map from the order.
type naiveIDs map[uint64]namedOrder

// check compares a set with the naive one: all of its orders, and ids that are not there.
func (n naiveIDs) check(t *rapid.T, c *ClientIDs) {
	if c.Len() != len(n) {
		t.Fatalf("%d ids, want %d", c.Len(), len(n))
	}
	for order, want := range n {
		if got, taken := c.Order(want.id); !taken || got != order {
			t.Fatalf("%v is of order %d (%v), want %d", want.id, got, taken, order)
		}
		if c.Of(order) != want.id || c.PlacedUs(order) != want.placedUs {
			t.Fatalf("order %d has %v, placed at %d, want %+v", order, c.Of(order),
				c.PlacedUs(order), want)
		}
		other := order + 1<<32
		if _, taken := c.Order(id(other)); taken || !c.Of(other).IsZero() {
			t.Fatalf("order %d is there", other)
		}
	}
}

// change opens and closes orders in a set and in a naive one.
func (n naiveIDs) change(t *rapid.T, c *ClientIDs) {
	next := uint64(0)
	for order := range n {
		next = max(next, order)
	}
	for range rapid.IntRange(0, 40).Draw(t, "opened") {
		next += rapid.Uint64Range(1, 3).Draw(t, "gap")
		o := namedOrder{next, int64(next), id(next)}
		n[next] = o
		c.Open(o.order, o.id, o.placedUs)
	}
	orders := slices.Sorted(maps.Keys(n))
	if len(orders) == 0 {
		return
	}
	for range rapid.IntRange(0, 60).Draw(t, "closed") {
		order := rapid.SampledFrom(orders).Draw(t, "order")
		if got, placedUs := c.Close(order); got != n[order].id || placedUs != n[order].placedUs {
			t.Fatalf("order %d closes with %v, placed at %d, want %+v", order, got, placedUs,
				n[order])
		}
		delete(n, order)
	}
}

func TestClientIDsAgreeWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c ClientIDs
		naive := naiveIDs{}
		t.Repeat(map[string]func(*rapid.T){
			"change": func(t *rapid.T) { naive.change(t, &c) },
			"close all": func(*rapid.T) {
				for order := range naive {
					c.Close(order)
				}
				clear(naive)
			},
			"": func(t *rapid.T) { naive.check(t, &c) },
		})
	})
}

func TestACloneOfClientIDsIsIndependent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c ClientIDs
		naive := naiveIDs{}
		naive.change(t, &c)
		clone, cloned := c.Clone(), maps.Clone(naive)
		naive.change(t, &c)
		cloned.check(t, &clone)
		cloned.change(t, &clone)
		naive.check(t, &c)
		cloned.check(t, &clone)
	})
}

// Ids whose hashes are equal, or whose slots follow each other around the end, are told apart.
func TestPlacesWithOneHashAreToldApart(t *testing.T) {
	var x placeIndex
	hashes := []uint32{7, 7, 31, 31, 31, 0, 8, 7}
	x.reserve(len(hashes))
	for place, hash := range hashes {
		x.put(hash, place)
	}
	found := func(hash uint32, place int) bool {
		at, got := x.next(x.home(hash), hash)
		for got >= 0 && got != place {
			at, got = x.next(at+1, hash)
		}
		return got == place
	}
	for gone, hash := range hashes {
		x.remove(hash, gone)
		for place, hash := range hashes {
			if found(hash, place) != (place > gone) {
				t.Fatalf("behind the removal of %d, place %d is found: %v", gone, place,
					found(hash, place))
			}
		}
	}
}
