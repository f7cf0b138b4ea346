package ledger

import (
	"slices"

	"exchange/core/money"
	"exchange/core/trading"
)

// Terms are the price and the original amount of an order.
type Terms struct {
	Price  money.Price
	Amount money.Amount
}

// OpenTerms are an account's open orders with the terms of each, which the wallet needs to reserve
// for an amend. They cost 16 bytes an order beside those of OpenOrders, so only the wallet keeps
// them. The zero OpenTerms is empty.
type OpenTerms struct {
	orders OpenOrders
	terms  []Terms // of the order at the same index of orders.list
}

// NewOpenTerms returns a copy of open orders, with the terms of each.
func NewOpenTerms(orders *OpenOrders, terms func(order OpenOrder) Terms) OpenTerms {
	o := OpenTerms{orders: OpenOrders{list: make([]OpenOrder, 0, orders.Len())}}
	for _, order := range orders.list {
		if order.Pair != 0 {
			o.orders.list = append(o.orders.list, order)
		}
	}
	if n := len(o.orders.list); n > 0 {
		o.terms = make([]Terms, n)
	}
	for i, order := range o.orders.list {
		o.terms[i] = terms(order)
	}
	return o
}

// Orders returns the orders without their terms. Read only.
func (o *OpenTerms) Orders() *OpenOrders { return &o.orders }

// Len returns the number of open orders.
func (o *OpenTerms) Len() int { return o.orders.Len() }

// Add inserts an order; as OpenOrders.Add.
func (o *OpenTerms) Add(id uint64, pair uint16, side trading.Side, terms Terms) bool {
	i, moved, added := o.orders.add(OpenOrder{id, pair, side})
	switch {
	case !added:
	case moved:
		o.terms = slices.Insert(o.terms, i, terms)
	default:
		o.terms[i] = terms
	}
	return added
}

// Pair returns the pair of an open order, 0 if it is not open.
func (o *OpenTerms) Pair(id uint64) uint16 { return o.orders.Pair(id) }

// Find returns an open order with its terms; false if it is not open.
func (o *OpenTerms) Find(id uint64) (OpenOrder, Terms, bool) {
	i, open := o.orders.find(id)
	if !open {
		return OpenOrder{}, Terms{}, false
	}
	return o.orders.list[i], o.terms[i], true
}

// Change gives an open order other terms; false if it is not open.
func (o *OpenTerms) Change(id uint64, terms Terms) bool {
	i, open := o.orders.find(id)
	if open {
		o.terms[i] = terms
	}
	return open
}

// Remove deletes an order; false if it is not there.
func (o *OpenTerms) Remove(id uint64) bool {
	if !o.orders.remove(id) {
		return false
	}
	if o.orders.crowded() {
		o.compact()
	}
	return true
}

// compact drops the terms of removed orders, and then the orders.
func (o *OpenTerms) compact() {
	live := o.terms[:0]
	for i, order := range o.orders.list {
		if order.Pair != 0 {
			live = append(live, o.terms[i])
		}
	}
	o.orders.compact()
	if cap(live) > 2*cap(o.orders.list) { // the list has given a burst's memory back
		live = append(make([]Terms, 0, cap(o.orders.list)), live...)
	}
	o.terms = live
}
