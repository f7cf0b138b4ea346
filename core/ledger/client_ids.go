package ledger

import (
	"fmt"
	"hash/maphash"
	"maps"

	"exchange/core/event"
)

// ClientIDs are the client_order_ids of an account that a new order may not use: those of its open
// orders, and of recently closed ones (KeptIDs). Among closed orders ids with equal hashes count as
// one, but nowhere else. A set without any id takes no memory. The zero ClientIDs is empty.
type ClientIDs struct{ set *idSet } // nil: empty

type idSet struct {
	ids    map[uint64]event.ClientID // of open orders; nil: none
	orders map[uint64]uint64         // those orders, by the hashes of their ids
	closed closedIDs
}

// IDBounds decide which closed orders of an account keep their ids.
type IDBounds struct {
	Newest int   // minimum number kept
	Most   int   // maximum number kept, below 1 << backBits
	SpanUs int64 // retention of those between, microseconds of records' time
}

// KeptIDs are the bounds of every account. Tests of other packages lower them before all else.
var KeptIDs = IDBounds{Newest: 256, Most: 20_000, SpanUs: 120_000_000}

// TakenBy returns the order that blocks an id at a time; 0: none.
func (c *ClientIDs) TakenBy(id event.ClientID, nowUs int64) (order uint64) {
	if c.set == nil || id.IsZero() {
		return 0
	}
	hash := id.Hash()
	if order = c.set.orders[hash]; order == 0 {
		order = c.set.closed.takenBy(hash, nowUs)
	}
	return order
}

// Order returns the open order that has the id.
func (c *ClientIDs) Order(id event.ClientID) (order uint64, open bool) {
	if c.set == nil {
		return 0, false
	}
	if order = c.set.orders[id.Hash()]; order == 0 || c.set.ids[order] != id {
		return 0, false
	}
	return order, true
}

// Newest returns the open order that has the id, or else the newest closed one with its hash; 0:
// none is kept.
func (c *ClientIDs) Newest(id event.ClientID) (order uint64) {
	if order, open := c.Order(id); open || c.set == nil {
		return order
	}
	if e := c.set.closed.find(id.Hash()); e != nil {
		return e.order
	}
	return 0
}

// Of returns the id of an open order, zero if it has none.
func (c *ClientIDs) Of(order uint64) (id event.ClientID) {
	if c.set != nil {
		id = c.set.ids[order]
	}
	return id
}

// A Naming is the client order id of an open order; zero: it has none.
type Naming struct {
	id    event.ClientID
	leads bool // looking up the id finds this order
}

// Naming returns an open order's Naming.
func (c *ClientIDs) Naming(order uint64) (n Naming) {
	if n.id = c.Of(order); !n.id.IsZero() {
		leads, _ := c.Order(n.id)
		n.leads = leads == order
	}
	return n
}

func (n Naming) String() string {
	return fmt.Sprintf("client id %q (found by it: %v)", n.id.String(), n.leads)
}

// Open reserves an id for an order. No other open order may have it. A zero id does nothing.
func (c *ClientIDs) Open(order uint64, id event.ClientID) {
	if !id.IsZero() {
		c.ensure().open(order, id, 1)
	}
}

// ensure returns the set, creating it if necessary.
func (c *ClientIDs) ensure() *idSet {
	if c.set == nil {
		c.set = new(idSet)
	}
	return c.set
}

func (s *idSet) open(order uint64, id event.ClientID, room int) {
	if s.ids == nil {
		s.ids = make(map[uint64]event.ClientID, room)
		s.orders = make(map[uint64]uint64, room)
	}
	s.ids[order], s.orders[id.Hash()] = id, order
}

// Close notes the end of an order at the time of its record, and returns its id, zero if it has
// none. It drops ids that are free by then.
func (c *ClientIDs) Close(order uint64, nowUs int64) (id event.ClientID) {
	if id = c.Drop(order); !id.IsZero() {
		c.ensure().closed.add(id.Hash(), order, nowUs)
	}
	return id
}

// Drop forgets an open order, and returns its id, zero if it has none.
func (c *ClientIDs) Drop(order uint64) (id event.ClientID) {
	if id = c.Of(order); id.IsZero() {
		return id
	}
	s := c.set
	delete(s.ids, order)
	delete(s.orders, id.Hash())
	if len(s.ids) == 0 { // maps do not shrink
		s.ids, s.orders = nil, nil
		if s.closed.len() == 0 {
			c.set = nil
		}
	}
	return id
}

// Len returns the number of ids of open orders.
func (c *ClientIDs) Len() int {
	if c.set == nil {
		return 0
	}
	return len(c.set.ids)
}

// Clone returns a copy that shares nothing.
func (c *ClientIDs) Clone() ClientIDs {
	if c.set == nil {
		return ClientIDs{}
	}
	return ClientIDs{&idSet{maps.Clone(c.set.ids), maps.Clone(c.set.orders), c.set.closed.clone()}}
}

// A ClosedID is the id of a closed order.
type ClosedID struct {
	Hash   uint64 // of the id
	Order  uint64
	Closed int64 // milliseconds, rounded up; never falls
}

// Closed yields the kept ids, in the order in which their orders closed.
func (c *ClientIDs) Closed(yield func(ClosedID) bool) {
	if c.set == nil {
		return
	}
	k := &c.set.closed
	for n := k.first; n < k.next; n++ {
		if e := k.at(n); !yield(ClosedID{e.hash, e.order, e.closed()}) {
			return
		}
	}
}

// ClosedLen returns the number of kept ids of closed orders.
func (c *ClientIDs) ClosedLen() int {
	if c.set == nil {
		return 0
	}
	return c.set.closed.len()
}

// Restore sets the ids of closed orders from an earlier Closed, before those of open orders. It
// returns an error for an impossible list.
func (c *ClientIDs) Restore(closed []ClosedID) error {
	if len(closed) == 0 {
		return nil
	}
	k := &c.ensure().closed
	k.resize(len(closed))
	for _, e := range closed {
		switch {
		case e.Order == 0 || e.Closed < k.lastMs() || e.Closed > maxMs:
			return fmt.Errorf("the end of order %d, which keeps its client id, is not in order",
				e.Order)
		case k.find(e.Hash) != nil:
			return fmt.Errorf("order %d keeps the client id of another one", e.Order)
		case k.len() == KeptIDs.Most:
			return fmt.Errorf("more than %d closed orders keep their client ids", KeptIDs.Most)
		}
		k.push(e.Hash, e.Order, e.Closed)
	}
	return nil
}

// RestoreOpen reserves the id of an open order; of is the total number of open orders. It returns
// false if another one has the id.
func (c *ClientIDs) RestoreOpen(order uint64, id event.ClientID, of int) bool {
	s := c.ensure()
	if s.orders[id.Hash()] != 0 {
		return false
	}
	s.open(order, id, of)
	return true
}

// closedIDs are the ids of closed orders, in a ring. Entry n, from 0 on, is at n modulo its length.
// A hash selects a bucket, which holds its newest entry; each entry links to the one before.
// Entries leave oldest first, so buckets need no removal.
type closedIDs struct {
	ring        []closedID
	buckets     []uint64 // newest entry + 1; entries below first are gone
	first, next uint64
}

// A closedID packs when its order closed, and in backBits the distance to the entry before it in
// its bucket; 0: none.
type closedID struct{ hash, order, closedAndBack uint64 }

const (
	backBits = 16
	maxMs    = 1<<(63-backBits) - 1 // in the year 6429
	// leastRing is the length of the shortest ring, and perBucket the entries per bucket.
	leastRing = 8
	perBucket = 8
)

func (e *closedID) closed() int64 { return int64(e.closedAndBack >> backBits) }

func (k *closedIDs) len() int { return int(k.next - k.first) }

func (k *closedIDs) at(n uint64) *closedID { return &k.ring[n%uint64(len(k.ring))] }

// lastMs returns when the newest closed; 0: none.
func (k *closedIDs) lastMs() int64 {
	if k.len() == 0 {
		return 0
	}
	return k.at(k.next - 1).closed()
}

// isFree reports whether an id is free at a time, unless it is one of the newest.
func isFree(closedMs, nowUs int64) bool { return nowUs >= 1000*closedMs+KeptIDs.SpanUs }

// add notes an order that closes. The clock of its pair may lag behind that of another one.
func (k *closedIDs) add(hash, order uint64, nowUs int64) {
	for k.len() >= KeptIDs.Newest &&
		(k.len() >= KeptIDs.Most || isFree(k.at(k.first).closed(), nowUs)) {
		k.first++
	}
	n, room := k.len(), len(k.ring)
	if n == room || room > 8*leastRing && 4*n < room { // else give a burst's memory back
		k.resize(n + n/8 + leastRing)
	}
	k.push(hash, order, max(min((nowUs+999)/1000, maxMs), k.lastMs()))
}

func (k *closedIDs) push(hash, order uint64, ms int64) {
	b, back := k.bucket(hash), uint64(0)
	if *b > k.first {
		back = k.next + 1 - *b
	}
	*k.at(k.next) = closedID{hash, order, uint64(ms)<<backBits | back}
	k.next++
	*b = k.next
}

// resize moves the entries to a ring of a length, at least leastRing.
func (k *closedIDs) resize(n int) {
	was := *k
	n = max(n, leastRing)
	*k = closedIDs{ring: make([]closedID, n), buckets: make([]uint64, n/perBucket)}
	for at := was.first; at < was.next; at++ {
		e := was.at(at)
		k.push(e.hash, e.order, e.closed())
	}
}

// seed is random per process, so clients cannot choose ids that fill one bucket.
var seed = maphash.MakeSeed()

func (k *closedIDs) bucket(hash uint64) *uint64 {
	return &k.buckets[maphash.Comparable(seed, hash)%uint64(len(k.buckets))]
}

// find returns the newest entry with a hash, nil if there is none.
func (k *closedIDs) find(hash uint64) *closedID {
	_, e := k.search(hash)
	return e
}

func (k *closedIDs) search(hash uint64) (n uint64, e *closedID) {
	if k.len() == 0 {
		return 0, nil
	}
	for next := *k.bucket(hash); next > k.first; {
		e := k.at(next - 1)
		if e.hash == hash {
			return next - 1, e
		}
		back := e.closedAndBack & (1<<backBits - 1)
		if back == 0 {
			break
		}
		next -= back
	}
	return 0, nil
}

// takenBy returns the order that blocks a hash at a time; 0: none.
func (k *closedIDs) takenBy(hash uint64, nowUs int64) (order uint64) {
	n, e := k.search(hash)
	if e == nil || k.next-n > uint64(KeptIDs.Newest) && isFree(e.closed(), nowUs) {
		return 0
	}
	return e.order
}

func (k *closedIDs) clone() closedIDs {
	c := closedIDs{}
	if k.len() > 0 {
		c = *k
		c.resize(k.len())
	}
	return c
}
