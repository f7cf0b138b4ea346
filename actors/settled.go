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
	command    ownCommand
}

var settlements = sync.Pool{New: func() any { return new(settled) }}

// An acceptedOrder is an order of the account that a record accepts, changes or triggers, with or
// without a client's command.
type acceptedOrder struct {
	id       uint64 // 0: no such order
	pair     uint16
	side     trading.Side
	marks    marks
	rests    bool // it is open after the record
	again    bool // it was open before
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
		a.marks = marksFor(&r.Instructions, trading.Trigger{})
	case event.KindStop:
		a.marks = marksFor(&r.Instructions, r.Trigger)
	case event.KindAmended:
		a.again, a.marks = true, marksFor(&r.Instructions, r.Trigger)
	case event.KindTriggered: // its trigger, and that of its OCO half, is used up
		a.again = true
		a.marks = marksFor(&r.Instructions, trading.Trigger{}) &^ marksStop
	default:
		return acceptedOrder{}
	}
	return a
}

// ownCommand holds the wallet's reservations for an entry's command.
type ownCommand struct {
	ticket       uint64 // 0: no command, or another account's
	hadOrder     bool   // an order was in flight, accepted or refused
	reserved     reservation
	pair         uint16 // of the order in flight, or the one to change
	countedMarks marks
	amendedOrder uint64 // the order to change; 0: none
}
