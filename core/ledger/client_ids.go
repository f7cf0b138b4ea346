package ledger

import (
	"fmt"
	"hash/maphash"
	"slices"

	"exchange/core/event"
)

// ClientIDs are the client_order_ids of an account's open orders. They are found by id and by
// order. A set without any id takes no memory. The zero ClientIDs is empty.
type ClientIDs struct{ set *idSet } // nil: it is empty

// An idSet has a list of orders, and two indexes of it once the list is no longer short.
type idSet struct {
	list    []namedOrder // in no order
	byID    placeIndex
	byOrder placeIndex
}

// A namedOrder is an open order with an id.
type namedOrder struct {
	order    uint64
	placedUs int64
	id       event.ClientID
}

// shortList is the length up to which a list is searched from its begin to its end.
const shortList = 8

// Order returns the open order that has the id.
func (c *ClientIDs) Order(id event.ClientID) (order uint64, taken bool) {
	if c.set != nil {
		if i := c.set.findID(id); i >= 0 {
			return c.set.list[i].order, true
		}
	}
	return 0, false
}

// Of returns the id of an open order, the zero one if it has none.
func (c *ClientIDs) Of(order uint64) (id event.ClientID) {
	if c.set != nil {
		if i := c.set.findOrder(order); i >= 0 {
			return c.set.list[i].id
		}
	}
	return id
}

// A Naming is the client order id of an open order; the zero one: it has none.
type Naming struct {
	id    event.ClientID
	leads bool // the id leads to this order
}

// Naming returns that of an open order.
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

// PlacedUs returns when an open order with an id was placed, 0 if there is none.
func (c *ClientIDs) PlacedUs(order uint64) int64 {
	if c.set != nil {
		if i := c.set.findOrder(order); i >= 0 {
			return c.set.list[i].placedUs
		}
	}
	return 0
}

// Open takes an id for an order that was placed at that time. Neither has another in the set. A
// zero id does nothing.
func (c *ClientIDs) Open(order uint64, id event.ClientID, placedUs int64) {
	if id.IsZero() {
		return
	}
	if c.set == nil {
		c.set = new(idSet)
	}
	s := c.set
	s.list = append(s.list, namedOrder{order, placedUs, id})
	switch n := len(s.list); {
	case s.byID.slots != nil:
		s.byID.reserve(n)
		s.byOrder.reserve(n)
		s.byID.put(hashID(id), n-1)
		s.byOrder.put(hashOrder(order), n-1)
	case n > shortList:
		s.index()
	}
}

// Expect makes room for n ids, in an empty set.
func (c *ClientIDs) Expect(n int) {
	if n == 0 {
		return
	}
	c.set = &idSet{list: make([]namedOrder, 0, n)}
	if n > shortList {
		c.set.byID.reserve(n)
		c.set.byOrder.reserve(n)
	}
}

// Close ends the use of an id by an order that closed. It returns the id, the zero one if the order
// had none, and when the order was placed.
func (c *ClientIDs) Close(order uint64) (id event.ClientID, placedUs int64) {
	if c.set == nil {
		return id, 0
	}
	i := c.set.findOrder(order)
	if i < 0 {
		return id, 0
	}
	o := c.set.list[i]
	if c.set.remove(i); len(c.set.list) == 0 {
		c.set = nil
	}
	return o.id, o.placedUs
}

// Len returns the number of ids.
func (c *ClientIDs) Len() int {
	if c.set == nil {
		return 0
	}
	return len(c.set.list)
}

// Clone returns a copy that shares nothing.
func (c *ClientIDs) Clone() ClientIDs {
	if c.set == nil {
		return ClientIDs{}
	}
	s := c.set
	return ClientIDs{&idSet{slices.Clone(s.list), s.byID.clone(), s.byOrder.clone()}}
}

// findID returns the place of an id in the list, -1 if it is not there.
func (s *idSet) findID(id event.ClientID) int {
	if s.byID.slots == nil {
		return slices.IndexFunc(s.list, func(o namedOrder) bool { return o.id == id })
	}
	hash := hashID(id)
	at, place := s.byID.next(s.byID.home(hash), hash)
	for place >= 0 && s.list[place].id != id {
		at, place = s.byID.next(at+1, hash)
	}
	return place
}

// findOrder returns the place of an order in the list, -1 if it is not there.
func (s *idSet) findOrder(order uint64) int {
	if s.byOrder.slots == nil {
		return slices.IndexFunc(s.list, func(o namedOrder) bool { return o.order == order })
	}
	hash := hashOrder(order)
	at, place := s.byOrder.next(s.byOrder.home(hash), hash)
	for place >= 0 && s.list[place].order != order {
		at, place = s.byOrder.next(at+1, hash)
	}
	return place
}

// remove takes an order out of the list. The last one gets its place.
func (s *idSet) remove(i int) {
	last := len(s.list) - 1
	if s.byID.slots != nil {
		o, moved := &s.list[i], &s.list[last]
		s.byID.remove(hashID(o.id), i)
		s.byOrder.remove(hashOrder(o.order), i)
		if i != last {
			s.byID.move(hashID(moved.id), last, i)
			s.byOrder.move(hashOrder(moved.order), last, i)
		}
	}
	s.list[i] = s.list[last]
	s.list = s.list[:last]
	if cap(s.list) > 8*shortList && 4*last < cap(s.list) { // give a burst's memory back
		s.list = append(make([]namedOrder, 0, 2*last), s.list...)
		s.index()
	}
}

// index makes both indexes anew, none for a short list.
func (s *idSet) index() {
	s.byID, s.byOrder = placeIndex{}, placeIndex{}
	if len(s.list) <= shortList {
		return
	}
	s.byID.reserve(len(s.list))
	s.byOrder.reserve(len(s.list))
	for i := range s.list {
		s.byID.put(hashID(s.list[i].id), i)
		s.byOrder.put(hashOrder(s.list[i].order), i)
	}
}

// seed is of this process: no client can choose ids that have one hash.
var seed = maphash.MakeSeed()

func hashID(id event.ClientID) uint32 { return uint32(maphash.Comparable(seed, id)) }

// hashOrder spreads ids that are close to each other. Clients do not choose them.
func hashOrder(order uint64) uint32 { return uint32(order * 0x9e3779b97f4a7c15 >> 32) }

// A placeIndex finds places in a list by hashes: open addressing with linear probing in a power of
// two of slots, at most 3/4 full. Removing moves the followers back, so there are no tombstones.
//
// A slot is a hash above a place plus 1; 0 is empty. Two entries may have one hash, and none has
// the hash and place of another.
type placeIndex struct{ slots []uint64 }

func (x *placeIndex) home(hash uint32) int { return int(hash) & (len(x.slots) - 1) }

// next returns the first entry with a hash from a slot on, and the place that the entry has; -1:
// there is none.
func (x *placeIndex) next(at int, hash uint32) (slot, place int) {
	for ; ; at++ {
		at &= len(x.slots) - 1
		e := x.slots[at]
		if e == 0 {
			return at, -1
		}
		if uint32(e>>32) == hash {
			return at, int(uint32(e)) - 1
		}
	}
}

func entryOf(hash uint32, place int) uint64 { return uint64(hash)<<32 | uint64(place+1) }

// put adds a place. reserve must have made room for it.
func (x *placeIndex) put(hash uint32, place int) { x.insert(entryOf(hash, place)) }

func (x *placeIndex) insert(e uint64) {
	at := x.home(uint32(e >> 32))
	for x.slots[at] != 0 {
		at = (at + 1) & (len(x.slots) - 1)
	}
	x.slots[at] = e
}

// slotOf returns the slot of an entry, which there must be.
func (x *placeIndex) slotOf(e uint64) int {
	at := x.home(uint32(e >> 32))
	for x.slots[at] != e {
		if x.slots[at] == 0 {
			panic("BUG: a client order id is not indexed")
		}
		at = (at + 1) & (len(x.slots) - 1)
	}
	return at
}

// move gives an entry another place.
func (x *placeIndex) move(hash uint32, from, to int) {
	x.slots[x.slotOf(entryOf(hash, from))] = entryOf(hash, to)
}

// remove empties the slot of an entry and moves back those that it had pushed away from their
// homes.
func (x *placeIndex) remove(hash uint32, place int) {
	mask := len(x.slots) - 1
	hole := x.slotOf(entryOf(hash, place))
	for next := (hole + 1) & mask; x.slots[next] != 0; next = (next + 1) & mask {
		e := x.slots[next]
		if (next-x.home(uint32(e>>32)))&mask >= (next-hole)&mask {
			x.slots[hole] = e
			hole = next
		}
	}
	x.slots[hole] = 0
}

// reserve makes room for n entries in all.
func (x *placeIndex) reserve(n int) {
	if 4*n <= 3*len(x.slots) {
		return
	}
	size := 4 * shortList
	for 4*n > 3*size {
		size *= 2
	}
	old := x.slots
	x.slots = make([]uint64, size)
	for _, e := range old {
		if e != 0 {
			x.insert(e)
		}
	}
}

func (x *placeIndex) clone() placeIndex { return placeIndex{slices.Clone(x.slots)} }
