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

// keepIDs changes the bounds during a test.
func keepIDs(t *testing.T, b IDBounds) {
	was := KeptIDs
	KeptIDs = b
	t.Cleanup(func() { KeptIDs = was })
}

const second = 1_000_000 // microseconds

// An id is taken while its order is open, and after that by the rule of KeptIDs.
func TestClosedOrdersKeepTheirIDs(t *testing.T) {
	var c ClientIDs
	closes := func(order uint64, nowUs int64) {
		c.Open(order, id(order))
		if got := c.Close(order, nowUs); got != id(order) {
			t.Fatalf("order %d closes with %v", order, got)
		}
	}
	f := func(order uint64, nowUs int64, taken bool) {
		t.Helper()
		want := uint64(0)
		if taken {
			want = order
		}
		if got := c.TakenBy(id(order), nowUs); got != want {
			t.Errorf("at %d us the id of order %d is taken by %d, want %d", nowUs, order, got, want)
		}
	}
	c.Open(1, id(1))
	f(1, 1e15, true) // still open
	if got := c.Close(1, 1); got != id(1) {
		t.Fatal(got)
	}
	f(1, 1e15, true)                 // still one of the newest
	for order := range uint64(255) { // 256 with the first
		closes(order+2, 50*second)
	}
	f(1, 1e15, true)
	closes(300, 60*second)
	f(1, 120*second+999, true) // its end is rounded up
	f(1, 120*second+1000, false)
	f(2, 170*second-1, true)
	f(2, 170*second, true) // the 256th newest
	closes(301, 55*second) // the clock of its pair lags behind
	f(2, 170*second-1, true)
	f(2, 170*second, false)
	if n := c.ClosedLen(); n != 258 { // as of 55 s none is free
		t.Errorf("%d ids are kept", n)
	}
	closes(302, 170*second)
	if n := c.ClosedLen(); n != 256 {
		t.Errorf("%d ids are kept", n)
	}
	for order := range uint64(20_000) {
		closes(1000+order, 171*second)
	}
	f(1000, 171*second, true)
	closes(30_000, 171*second)
	f(1000, 171*second, false)
	f(1001, 171*second, true)
	if n := c.ClosedLen(); n != 20_000 {
		t.Errorf("%d ids are kept", n)
	}
}

func TestOrdersWithoutAnIDCostNothing(t *testing.T) {
	var c ClientIDs
	n := uint64(0)
	if allocs := testing.AllocsPerRun(100, func() {
		n++
		c.Open(n, event.ClientID{})
		c.Close(n, 1)
	}); allocs != 0 || c.set != nil {
		t.Errorf("%v allocations", allocs)
	}
	c.Open(7, id(7))
	if _, open := c.Order(event.ClientID{}); open || c.TakenBy(event.ClientID{}, 0) != 0 {
		t.Error("none is taken")
	}
	c.Drop(7)
	if c.set != nil {
		t.Error("an empty set keeps its memory")
	}
}

// The memory of a closed order's id is 24 bytes, with a bucket for each 8 and room for some more.
func TestIDsOfClosedOrdersAreSmall(t *testing.T) {
	var c ClientIDs
	for n := range uint64(20_000) {
		c.Open(n+1, id(n))
		c.Close(n+1, 1)
	}
	k := &c.set.closed
	if bytes := 24*len(k.ring) + 8*len(k.buckets); bytes > 29*20_000 || c.set.ids != nil {
		t.Errorf("%d bytes", bytes)
	}
	c.Open(1, id(30_000))
	c.Close(1, 1000*second)
	if n := len(k.ring); n > 300 || c.ClosedLen() != 256 {
		t.Errorf("after a burst there is room for %d of %d", n, c.ClosedLen())
	}
}

func TestANamingShowsTheOrderThatItsIDFinds(t *testing.T) {
	var right, wrong ClientIDs
	right.Open(1, id(1))
	wrong.Open(1, id(1))
	wrong.Open(2, id(1))
	if a, b := right.Naming(1), wrong.Naming(1); a == b || a.id != b.id ||
		a.String() == b.String() || right.Naming(3) != (Naming{}) {
		t.Errorf("%v and %v", a, b)
	}
}

// Two ids with one hash count as one, and no command for one of them finds the order of the other.
func TestAnOrderIsNotFoundByAnotherIDWithItsHash(t *testing.T) {
	var c ClientIDs
	c.Open(1, id(1))
	c.set.orders[id(2).Hash()] = 1 // as if it had the hash of the other one
	if order, open := c.Order(id(2)); open {
		t.Errorf("order %d is found", order)
	}
	if by := c.TakenBy(id(2), 0); by != 1 {
		t.Errorf("it is taken by %d", by)
	}
}

// naiveIDs are ClientIDs as lists, without hashes.
type naiveIDs struct {
	open   map[uint64]event.ClientID
	closed []naiveClosed
	next   uint64
	clocks [2]int64 // of two pairs; orders with odd numbers are of the second
}

type naiveClosed struct {
	order uint64
	id    event.ClientID
	ms    int64
}

func (n *naiveIDs) takenBy(id event.ClientID, nowUs int64) uint64 {
	for order, open := range n.open {
		if open == id {
			return order
		}
	}
	for i, c := range n.closed {
		if c.id == id && (len(n.closed)-i <= KeptIDs.Newest ||
			nowUs < 1000*c.ms+KeptIDs.SpanUs) {
			return c.order
		}
	}
	return 0
}

// check compares a set with the naive one.
func (n *naiveIDs) check(t *rapid.T, c *ClientIDs) {
	if c.Len() != len(n.open) {
		t.Fatalf("%d ids, want %d", c.Len(), len(n.open))
	}
	for k := range uint64(40) {
		for _, nowUs := range []int64{n.clocks[0], n.clocks[1], n.clocks[0] + 3000} {
			if got, want := c.TakenBy(id(k), nowUs), n.takenBy(id(k), nowUs); got != want {
				t.Fatalf("%v is taken by %d at %d, want %d", id(k), got, nowUs, want)
			}
		}
	}
	for order, want := range n.open {
		if got, open := c.Order(want); !open || got != order || c.Of(order) != want ||
			c.Newest(want) != order {
			t.Fatalf("%v is of order %d (%v), want %d", want, got, open, order)
		}
	}
	var closed []ClosedID
	for _, o := range n.closed {
		closed = append(closed, ClosedID{o.id.Hash(), o.order, o.ms})
	}
	if got := slices.Collect(c.Closed); !slices.Equal(got, closed) || c.ClosedLen() != len(closed) {
		t.Fatalf("closed are %v, want %v", got, closed)
	}
}

// change opens and closes orders in both sets.
func (n *naiveIDs) change(t *rapid.T, c *ClientIDs) {
	for range rapid.IntRange(1, 30).Draw(t, "changes") {
		n.clocks[rapid.IntRange(0, 1).Draw(t, "pair")] += rapid.Int64Range(0, 2500).Draw(t, "later")
		name := id(rapid.Uint64Range(0, 40).Draw(t, "id"))
		if n.takenBy(name, n.clocks[(n.next+1)%2]) == 0 {
			n.next++
			n.open[n.next] = name
			c.Open(n.next, name)
		}
		orders := slices.Sorted(maps.Keys(n.open))
		if len(orders) == 0 || rapid.Bool().Draw(t, "none closes") {
			continue
		}
		n.close(t, c, rapid.SampledFrom(orders).Draw(t, "order"))
	}
}

func (n *naiveIDs) close(t *rapid.T, c *ClientIDs, order uint64) {
	nowUs := n.clocks[order%2]
	if got := c.Close(order, nowUs); got != n.open[order] {
		t.Fatalf("order %d closes with %v, want %v", order, got, n.open[order])
	}
	ms := (nowUs + 999) / 1000
	if k := len(n.closed); k > 0 {
		ms = max(ms, n.closed[k-1].ms)
	}
	for len(n.closed) >= KeptIDs.Newest && (len(n.closed) >= KeptIDs.Most ||
		nowUs >= 1000*n.closed[0].ms+KeptIDs.SpanUs) {
		n.closed = n.closed[1:]
	}
	n.closed = append(slices.Clip(n.closed), naiveClosed{order, n.open[order], ms})
	delete(n.open, order)
}

func (n *naiveIDs) clone() *naiveIDs {
	c := *n
	c.open, c.closed = maps.Clone(n.open), slices.Clone(n.closed)
	return &c
}

func newNaive() *naiveIDs {
	return &naiveIDs{open: map[uint64]event.ClientID{}, clocks: [2]int64{1e6, 1e6}}
}

func TestClientIDsAgreeWithLists(t *testing.T) {
	keepIDs(t, IDBounds{Newest: 3, Most: 12, SpanUs: 5000})
	rapid.Check(t, func(t *rapid.T) {
		var c ClientIDs
		naive := newNaive()
		t.Repeat(map[string]func(*rapid.T){
			"change": func(t *rapid.T) { naive.change(t, &c) },
			"close all": func(t *rapid.T) {
				for _, order := range slices.Sorted(maps.Keys(naive.open)) {
					naive.close(t, &c, order)
				}
			},
			"restore": func(t *rapid.T) {
				var again ClientIDs
				if err := again.Restore(slices.Collect(c.Closed)); err != nil {
					t.Fatal(err)
				}
				for order, id := range naive.open {
					if !again.RestoreOpen(order, id, len(naive.open)) {
						t.Fatalf("order %d cannot have its id", order)
					}
				}
				c = again
			},
			"": func(t *rapid.T) { naive.check(t, &c) },
		})
	})
}

func TestACloneOfClientIDsIsIndependent(t *testing.T) {
	keepIDs(t, IDBounds{Newest: 3, Most: 12, SpanUs: 5000})
	rapid.Check(t, func(t *rapid.T) {
		var c ClientIDs
		naive := newNaive()
		naive.change(t, &c)
		clone, cloned := c.Clone(), naive.clone()
		naive.change(t, &c)
		cloned.check(t, &clone)
		cloned.change(t, &clone)
		naive.check(t, &c)
		cloned.check(t, &clone)
	})
}

func TestImpossibleClosedIDsAreNotRestored(t *testing.T) {
	keepIDs(t, IDBounds{Newest: 1, Most: 3, SpanUs: 5000})
	good := []ClosedID{{1, 7, 5}, {2, 9, 5}, {3, 8, 6}}
	if err := new(ClientIDs).Restore(good); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(list []ClosedID) []ClosedID{
		"one too many":  func(l []ClosedID) []ClosedID { return append(l, ClosedID{4, 10, 6}) },
		"one hash":      func(l []ClosedID) []ClosedID { l[2].Hash = 1; return l },
		"no order":      func(l []ClosedID) []ClosedID { l[1].Order = 0; return l },
		"falling times": func(l []ClosedID) []ClosedID { l[2].Closed = 4; return l },
		"before 1970":   func(l []ClosedID) []ClosedID { l[0].Closed = -1; return l },
		"in millennia":  func(l []ClosedID) []ClosedID { l[2].Closed = maxMs + 1; return l },
	} {
		if err := new(ClientIDs).Restore(change(slices.Clone(good))); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

// A record's hash of an id must never change: it is in stored states.
func TestTheHashOfAnIDIsFNV1a(t *testing.T) {
	a, _ := event.NewClientID("foobar")
	if got := a.Hash(); got != 0x85944171f73967e8 {
		t.Errorf("%x", got)
	}
}
