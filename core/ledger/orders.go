package ledger

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"sort"

	"exchange/core/trading"
)

// An OpenOrder is the id of an open order, the number of its pair, and its side.
//
//tidy:keep Newest and Oldest yield it
type OpenOrder struct {
	ID   uint64
	Pair uint16
	Side trading.Side
}

func (o OpenOrder) String() string {
	return fmt.Sprintf("order %d of pair %d, side %d", o.ID, o.Pair, o.Side)
}

// OpenOrders is the set of an account's open orders, sorted by id. Adding at the end and removing
// are O(log n) amortised. A removed entry is only marked; the list is compacted when half of it is
// marked. The zero OpenOrders is empty.
type OpenOrders struct {
	list []OpenOrder // ascending ids; without a pair: removed
	dead int
}

// An OpenFilter selects open orders: those below an id, of a pair, of a side; 0: any.
type OpenFilter struct {
	Before uint64
	Pair   uint16
	Side   trading.Side
}

// Len returns the number of open orders.
func (o *OpenOrders) Len() int { return len(o.list) - o.dead }

// Add inserts an order; false if it is there already. Ids of different pairs may come a little out
// of order. pair is not 0.
func (o *OpenOrders) Add(id uint64, pair uint16, side trading.Side) bool {
	_, _, added := o.add(OpenOrder{id, pair, side})
	return added
}

// add is Add. It returns the order's index, and whether the orders after it moved up by one.
func (o *OpenOrders) add(order OpenOrder) (i int, moved, added bool) {
	i = len(o.list)
	if i > 0 && o.list[i-1].ID >= order.ID {
		i = o.search(order.ID)
		if o.list[i].ID == order.ID {
			if o.list[i].Pair != 0 {
				return i, false, false
			}
			o.list[i] = order
			o.dead--
			return i, false, true
		}
	}
	o.list = append(o.list, OpenOrder{})
	copy(o.list[i+1:], o.list[i:])
	o.list[i] = order
	return i, true, true
}

// Expect makes room for n calls of Restore.
func (o *OpenOrders) Expect(n int) { o.list = make([]OpenOrder, 0, n) }

// Restore inserts an order when a snapshot is decoded: in any order of ids, into a list without
// removals. Call Restored before any other use.
func (o *OpenOrders) Restore(id uint64, pair uint16, side trading.Side) {
	o.list = append(o.list, OpenOrder{id, pair, side})
}

// Restored ends Restore. It returns an id inserted twice, 0 if there is none.
func (o *OpenOrders) Restored() (twice uint64) {
	slices.SortFunc(o.list, func(a, b OpenOrder) int { return cmp.Compare(a.ID, b.ID) })
	for i := 1; i < len(o.list); i++ {
		if o.list[i-1].ID == o.list[i].ID {
			return o.list[i].ID
		}
	}
	return 0
}

// Pair returns the pair of an open order, 0 if it is not open.
func (o *OpenOrders) Pair(id uint64) uint16 {
	pair, _ := o.Find(id)
	return pair
}

// Find returns the pair and the side of an open order, zeros if it is not open.
func (o *OpenOrders) Find(id uint64) (uint16, trading.Side) {
	if i, open := o.find(id); open {
		return o.list[i].Pair, o.list[i].Side
	}
	return 0, 0
}

// Remove deletes an order; false if it is not there.
func (o *OpenOrders) Remove(id uint64) bool {
	if !o.remove(id) {
		return false
	}
	if o.crowded() {
		o.compact()
	}
	return true
}

// remove marks an order as removed.
func (o *OpenOrders) remove(id uint64) bool {
	i, open := o.find(id)
	if open {
		o.list[i].Pair = 0
		o.dead++
	}
	return open
}

// find returns the index of an order, and whether it is open.
func (o *OpenOrders) find(id uint64) (int, bool) {
	i := o.search(id)
	return i, i < len(o.list) && o.list[i].ID == id && o.list[i].Pair != 0
}

// crowded reports whether enough entries are marked to compact the list.
func (o *OpenOrders) crowded() bool { return o.dead > 16 && o.dead*2 > len(o.list) }

// Newest yields the open orders, highest id first.
func (o *OpenOrders) Newest() iter.Seq[OpenOrder] { return o.NewestOf(OpenFilter{}) }

// Oldest yields the open orders, lowest id first, after the last of the orders before; all if
// before is empty.
func (o *OpenOrders) Oldest(before []OpenOrder) iter.Seq[OpenOrder] {
	return func(yield func(OpenOrder) bool) {
		at := 0
		if last := len(before) - 1; last >= 0 {
			at = o.search(before[last].ID + 1)
		}
		for _, e := range o.list[at:] {
			if e.Pair != 0 && !yield(e) {
				return
			}
		}
	}
}

// NewestOf yields Newest for the orders that match a filter. The others cost a comparison each,
// those at or above Before nothing.
func (o *OpenOrders) NewestOf(f OpenFilter) iter.Seq[OpenOrder] {
	return func(yield func(OpenOrder) bool) {
		n := len(o.list)
		if f.Before != 0 {
			n = o.search(f.Before)
		}
		for i := n - 1; i >= 0; i-- {
			e := o.list[i]
			if e.Pair == 0 || f.Pair != 0 && e.Pair != f.Pair || f.Side != 0 && e.Side != f.Side {
				continue
			}
			if !yield(e) {
				return
			}
		}
	}
}

func (o *OpenOrders) search(id uint64) int {
	return sort.Search(len(o.list), func(i int) bool { return o.list[i].ID >= id })
}

func (o *OpenOrders) compact() {
	live := o.list[:0]
	for _, e := range o.list {
		if e.Pair != 0 {
			live = append(live, e)
		}
	}
	o.list, o.dead = live, 0
	if cap(live) > 64 && len(live)*4 < cap(live) { // give a burst's memory back
		o.list = append(make([]OpenOrder, 0, 2*len(live)), live...)
	}
}
