package actors

import "exchange/core/trading"

// orderFlags are what a wallet keeps of an open order's instructions.
type orderFlags uint8

const (
	// the order or its OCO half waits for a trigger; limits count it
	flagStop orderFlags = 1 << iota
	flagGTD             // it expires; limits count it
	// It waits for a trigger that moves it to a better price where it would take.
	flagSlides
)

// flagsFor returns the flags of an order with instructions and a trigger.
func flagsFor(i *trading.Instructions, t trading.Trigger) (m orderFlags) {
	if t.When != 0 || i.OCO != (trading.OCO{}) {
		m |= flagStop
	}
	if t.When != 0 && i.Asked != 0 {
		m |= flagSlides
	}
	if i.ExpireUs != 0 {
		m |= flagGTD
	}
	return m
}

// flagsIn returns the flags of the committed side's open order; nil: plain.
func flagsIn(x *trading.Instructed) orderFlags {
	switch {
	case x == nil:
		return 0
	case x.Triggered:
		return flagsFor(&x.Instructions, trading.Trigger{}) &^ flagStop
	}
	return flagsFor(&x.Instructions, x.Trigger)
}

// ordersInBook counts an account's open orders of a pair, including those in flight to the book.
type ordersInBook struct {
	orders    int32
	stopCount int32 // orders with flagStop
	gtd       int32 // orders with flagGTD
}

// add adjusts the counts of stops and expiring orders by the flags of one order.
func (n *ordersInBook) add(m orderFlags, by int32) {
	if m&flagStop != 0 {
		n.stopCount += by
	}
	if m&flagGTD != 0 {
		n.gtd += by
	}
}
