package actors

import "exchange/core/trading"

// marks are what the wallet must know of an open order with instructions.
type marks uint8

const (
	// the order waits for a trigger, or its other half does; limits count it
	marksStop marks = 1 << iota
	marksGTD        // it expires; limits count it
	// It waits, and moves to a better price where it would take when it is triggered.
	marksSlides
)

// marksFor returns the marks of an order with instructions and a trigger.
func marksFor(i *trading.Instructions, t trading.Trigger) (m marks) {
	if t.When != 0 || i.OCO != (trading.OCO{}) {
		m |= marksStop
	}
	if t.When != 0 && i.Asked != 0 {
		m |= marksSlides
	}
	if i.ExpireUs != 0 {
		m |= marksGTD
	}
	return m
}

// marksIn returns the marks of an open order as the committed side has it; nil: it is plain.
func marksIn(x *trading.Instructed) marks {
	switch {
	case x == nil:
		return 0
	case x.Triggered:
		return marksFor(&x.Instructions, trading.Trigger{}) &^ marksStop
	}
	return marksFor(&x.Instructions, x.Trigger)
}

// ordersInBook counts an account's open orders of a pair, those on their way to the book included.
type ordersInBook struct {
	orders int32
	stops  int32 // orders with marksStop
	gtd    int32 // orders with marksGTD
}

// add adds to the numbers of stops and of orders that expire, by the marks of one order.
func (n *ordersInBook) add(m marks, by int32) {
	if m&marksStop != 0 {
		n.stops += by
	}
	if m&marksGTD != 0 {
		n.gtd += by
	}
}
