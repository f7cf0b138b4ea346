package actors

import (
	"sync"

	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/trading"
)

// settled carries the effects of one released entry to a wallet.
type settled struct {
	seq        uint64
	timeUs     int64 // of the record
	settlement ledger.Settlement
	accepted   acceptedOrder
	command    inFlightPart
}

var settlements = sync.Pool{New: func() any { return new(settled) }}

// An acceptedOrder is an order of the account that a record accepts, changes or triggers, with or
// without a client's command.
type acceptedOrder struct {
	id       uint64 // 0: no such order
	pair     uint16
	side     trading.Side
	flags    orderFlags
	rests    bool // it is open after the record
	wasOpen  bool // it was open before
	clientID event.ClientID
	terms    ledger.Terms
}

// acceptedBy returns the order that a record accepts, changes or triggers.
func acceptedBy(r *event.Record) acceptedOrder {
	o := &r.Order
	a := acceptedOrder{id: o.ID, pair: r.Pair, side: o.Side, clientID: o.ClientID,
		rests: o.Rests(), terms: ledger.Terms{Price: o.Price, Amount: o.Amount}}
	switch r.Kind {
	case event.KindOrder:
	case event.KindInstructed:
		a.flags = flagsFor(&r.Instructions, trading.Trigger{})
	case event.KindStop:
		a.flags = flagsFor(&r.Instructions, r.Trigger)
	case event.KindAmended:
		a.wasOpen, a.flags = true, flagsFor(&r.Instructions, r.Trigger)
	case event.KindTriggered: // its trigger, and that of its OCO half, is used up
		a.wasOpen = true
		a.flags = flagsFor(&r.Instructions, trading.Trigger{}) &^ flagStop
	default:
		return acceptedOrder{}
	}
	return a
}

// inFlightPart holds what the wallet takes back when a command is released.
type inFlightPart struct {
	ticket       uint64 // 0: no command, or another account's
	countedOrder bool   // an order that newOrders counts
	reserved     reservation
	pair         uint16 // of the order in flight, or the one to change
	countedFlags orderFlags
	amendedOrder uint64 // the order to change; 0: none
}
