package actors

import "exchange/core/trading"

// marks are the wallet's data of an open order with instructions.
type marks uint8

const (
	// the order or its OCO half waits for a trigger; limits count it
	marksStop marks = 1 << iota
	marksGTD        // it expires; limits count it
	// It waits for a trigger that moves it to a better price where it would take.
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

// marksIn returns the marks of the committed side's open order; nil: plain.
func marksIn(x *trading.Instructed) marks {
	switch {
	case x == nil:
		return 0
	case x.Triggered:
		return marksFor(&x.Instructions, trading.Trigger{}) &^ marksStop
	}
	return marksFor(&x.Instructions, x.Trigger)
}

// ordersInBook counts an account's open orders of a pair, including those in flight to the book.
type ordersInBook struct {
	orders    int32
	stopCount int32 // orders with marksStop
	gtd       int32 // orders with marksGTD
}

// add adjusts the counts of stops and expiring orders by the marks of one order.
func (n *ordersInBook) add(m marks, by int32) {
	if m&marksStop != 0 {
		n.stopCount += by
	}
	if m&marksGTD != 0 {
		n.gtd += by
	}
}
