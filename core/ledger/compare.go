package ledger

import (
	"fmt"

	"exchange/core/event"
	"exchange/core/trading"
)

// A Comparison goes through one account's open orders on two sides, some orders at a time, oldest
// first, with their client order ids. Between two steps both sides may change, if they change
// alike. An order whose id is below the last one compared is not compared.
type Comparison struct {
	last uint64 // id of the last order compared
}

// Orders are one side of a comparison.
type Orders struct {
	Open *OpenOrders
	IDs  *ClientIDs
	// Says returns the instructions of an open order, "" for a plain one; nil: they are not
	// compared.
	Says func(OpenOrder) trading.Packed
}

// A Difference is the first order in which two sides differ.
type Difference struct{ one, other named }

// named is an open order with its client order id. Without an id of its own it is none.
type named struct {
	OpenOrder
	clientID event.ClientID
	known    bool // the client order id leads to this order
	says     trading.Packed
}

// Texts returns both orders for a message.
func (d *Difference) Texts() (one, other string) { return d.one.String(), d.other.String() }

func (n named) String() string {
	if n.ID == 0 {
		return "nothing"
	}
	text := fmt.Sprintf("order %d of pair %d, side %d, client id %q (found by it: %v)", n.ID,
		n.Pair, n.Side, n.clientID.String(), n.known)
	if n.says != "" {
		text += fmt.Sprintf(", instructions %x", string(n.says))
	}
	return text
}

// Last returns the id of the last order compared, 0 before the first.
func (c *Comparison) Last() uint64 { return c.last }

// Next compares the next n orders. It returns how many fewer there were: above 0, the last order
// has been compared. A nil difference means that they are equal.
func (c *Comparison) Next(one, other Orders, n int) (left int, differ *Difference) {
	a, b := one.after(c.last), other.after(c.last)
	for ; n > 0; n-- {
		var d Difference
		d.one, a = one.first(a)
		d.other, b = other.first(b)
		if d.one != d.other {
			return n, &d
		}
		if d.one.ID == 0 {
			return n, nil
		}
		c.last = d.one.ID
	}
	return 0, nil
}

// after returns the part of the list with ids above id.
func (o *Orders) after(id uint64) []OpenOrder { return o.Open.list[o.Open.search(id+1):] }

// first returns the first open order of a part of the list, and the rest.
func (o *Orders) first(list []OpenOrder) (named, []OpenOrder) {
	for i, e := range list {
		if e.Pair == 0 {
			continue
		}
		n := named{OpenOrder: e, clientID: o.IDs.Of(e.ID)}
		if !n.clientID.IsZero() {
			order, taken := o.IDs.Order(n.clientID)
			n.known = taken && order == e.ID
		}
		if o.Says != nil {
			n.says = o.Says(e)
		}
		return n, list[i+1:]
	}
	return named{}, nil
}
