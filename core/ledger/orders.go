package ledger

import (
	"iter"
	"maps"
	"slices"
	"sort"

	"exchange/core/event"
	"exchange/core/trading"
)

// An OpenOrder is the id of an open order and the number of its pair.
//
//tidy:keep Newest yields it
type OpenOrder struct {
	ID   uint64
	Pair uint16
}

// OpenOrders is the set of an account's open orders, kept in order of their ids. Adding at the end
// and removing are O(log n) amortised. A removed entry is only marked; when half of the slice is
// marked, the list is compacted. The zero OpenOrders is empty.
type OpenOrders struct {
	list []openOrder // ascending ids
	dead int
}

type openOrder struct {
	id   uint64
	pair uint16       // 0: the order was removed
	side trading.Side // 0: added without a side
}

// An OpenFilter says which open orders are wanted: those below an id, of a pair, of a side; 0: of
// all.
type OpenFilter struct {
	Before uint64
	Pair   uint16
	Side   trading.Side
}

// Len returns the number of open orders.
func (o *OpenOrders) Len() int { return len(o.list) - o.dead }

// Add puts an order in; false if it is there already. Ids of different pairs may come a little out
// of order. pair is not 0. No filter for a side finds the order: see AddSide.
func (o *OpenOrders) Add(id uint64, pair uint16) bool { return o.AddSide(id, pair, 0) }

// AddSide is Add for a caller that filters by side later.
func (o *OpenOrders) AddSide(id uint64, pair uint16, side trading.Side) bool {
	i := len(o.list)
	if i > 0 && o.list[i-1].id >= id {
		i = o.search(id)
		if o.list[i].id == id {
			if o.list[i].pair != 0 {
				return false
			}
			o.list[i].pair, o.list[i].side = pair, side
			o.dead--
			return true
		}
	}
	o.list = append(o.list, openOrder{})
	copy(o.list[i+1:], o.list[i:])
	o.list[i] = openOrder{id, pair, side}
	return true
}

// Pair returns the pair of an open order, 0 if it is not open.
func (o *OpenOrders) Pair(id uint64) uint16 {
	if i := o.search(id); i < len(o.list) && o.list[i].id == id {
		return o.list[i].pair
	}
	return 0
}

// Side returns the side of an open order that was added with its side, otherwise 0.
func (o *OpenOrders) Side(id uint64) trading.Side {
	if i := o.search(id); i < len(o.list) && o.list[i].id == id && o.list[i].pair != 0 {
		return o.list[i].side
	}
	return 0
}

// Remove takes an order out; false if it is not there.
func (o *OpenOrders) Remove(id uint64) bool {
	i := o.search(id)
	if i == len(o.list) || o.list[i].id != id || o.list[i].pair == 0 {
		return false
	}
	o.list[i].pair = 0
	o.dead++
	if o.dead > 16 && o.dead*2 > len(o.list) {
		o.compact()
	}
	return true
}

// Newest yields the open orders, highest id first.
func (o *OpenOrders) Newest() iter.Seq[OpenOrder] { return o.NewestOf(OpenFilter{}) }

// NewestOf yields Newest for the orders that pass a filter. The others cost a comparison each,
// those at or above Before nothing.
func (o *OpenOrders) NewestOf(f OpenFilter) iter.Seq[OpenOrder] {
	return func(yield func(OpenOrder) bool) {
		n := len(o.list)
		if f.Before != 0 {
			n = o.search(f.Before)
		}
		for i := n - 1; i >= 0; i-- {
			e := &o.list[i]
			if e.pair == 0 || f.Pair != 0 && e.pair != f.Pair || f.Side != 0 && e.side != f.Side {
				continue
			}
			if !yield(OpenOrder{e.id, e.pair}) {
				return
			}
		}
	}
}

func (o *OpenOrders) search(id uint64) int {
	return sort.Search(len(o.list), func(i int) bool { return o.list[i].id >= id })
}

func (o *OpenOrders) compact() {
	live := o.list[:0]
	for _, e := range o.list {
		if e.pair != 0 {
			live = append(live, e)
		}
	}
	o.list, o.dead = live, 0
	if cap(live) > 64 && len(live)*4 < cap(live) { // give a burst's memory back
		o.list = append(make([]openOrder, 0, 2*len(live)), live...)
	}
}

// RememberedOrders is how many of an account's newest closed orders keep their client_order_id
// taken.
const RememberedOrders = 10_000

// ClientIDs tells which client_order_ids of an account are taken. These are the ids of its open
// orders, and of the last RememberedOrders that closed, with or without an id. A set without any id
// takes no memory. The zero ClientIDs is empty.
type ClientIDs struct {
	closed uint64 // orders closed so far
	ids    *idSet // nil until the first id
}

type idSet struct {
	orders map[event.ClientID]uint64 // id -> order, open or remembered
	open   map[uint64]event.ClientID // open order -> id
	past   []ClosedID                // closed orders with an id, oldest first
}

// A ClosedID is a client_order_id of a closed order. At is the account's count of closed orders
// when it closed, itself included.
type ClosedID struct {
	ID    event.ClientID
	Order uint64
	At    uint64
}

// Order returns the order that has the id.
func (c *ClientIDs) Order(id event.ClientID) (order uint64, taken bool) {
	if c.ids != nil {
		order, taken = c.ids.orders[id]
	}
	return order, taken
}

// Of returns the id of an open order, the zero one if it has none.
func (c *ClientIDs) Of(order uint64) event.ClientID {
	if c.ids == nil {
		return event.ClientID{}
	}
	return c.ids.open[order]
}

// Open takes an id for an order that rests in the book. A zero id does nothing.
func (c *ClientIDs) Open(order uint64, id event.ClientID) {
	if id.IsZero() {
		return
	}
	s := c.set()
	s.orders[id], s.open[order] = order, id
}

func (c *ClientIDs) set() *idSet {
	if c.ids == nil {
		c.ids = &idSet{orders: make(map[event.ClientID]uint64),
			open: make(map[uint64]event.ClientID)}
	}
	return c.ids
}

// Close counts an order that closed, and returns its id if it had one. It forgets the ids that are
// further back than RememberedOrders.
func (c *ClientIDs) Close(order uint64) event.ClientID {
	c.closed++
	s := c.ids
	if s == nil {
		return event.ClientID{}
	}
	id := s.open[order]
	if !id.IsZero() {
		delete(s.open, order)
		s.past = append(s.past, ClosedID{id, order, c.closed})
	}
	n := 0
	for n < len(s.past) && s.past[n].At+RememberedOrders <= c.closed {
		if s.orders[s.past[n].ID] == s.past[n].Order {
			delete(s.orders, s.past[n].ID)
		}
		n++
	}
	if n > 0 {
		s.past = s.past[n:] // append moves the rest to new memory when it runs out
	}
	return id
}

// State returns the entries that a snapshot keeps, oldest first. The slice belongs to the set.
func (c *ClientIDs) State() (closed uint64, past []ClosedID) {
	if c.ids != nil {
		past = c.ids.past
	}
	return c.closed, past
}

// Restore sets the entries that State returned, and keeps the slice. Open is called for the open
// orders before or after it.
func (c *ClientIDs) Restore(closed uint64, past []ClosedID) {
	c.closed = closed
	if len(past) == 0 {
		return
	}
	s := c.set()
	s.past = past
	for _, p := range past {
		s.orders[p.ID] = p.Order
	}
}

// Equal reports whether both know the same ids of the same orders.
func (c *ClientIDs) Equal(d *ClientIDs) bool {
	a, b := c.ids, d.ids
	if a == nil {
		a = new(idSet)
	}
	if b == nil {
		b = new(idSet)
	}
	return c.closed == d.closed && maps.Equal(a.orders, b.orders) && maps.Equal(a.open, b.open) &&
		slices.Equal(a.past, b.past)
}

// Clone returns a copy that shares nothing.
func (c *ClientIDs) Clone() ClientIDs {
	d := ClientIDs{closed: c.closed}
	if s := c.ids; s != nil {
		d.ids = &idSet{orders: maps.Clone(s.orders), open: maps.Clone(s.open),
			past: slices.Clone(s.past)}
	}
	return d
}

// Clone returns a copy that shares nothing.
func (o *OpenOrders) Clone() OpenOrders {
	return OpenOrders{list: append([]openOrder(nil), o.list...), dead: o.dead}
}
