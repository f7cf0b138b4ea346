package actors

import (
	"sync"

	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/trading"
)

// settled tells a wallet the effects of one released entry.
type settled struct {
	seq        uint64
	timeUs     int64 // of the record
	settlement ledger.Settlement
	accepted   acceptedOrder
	command    ownCommand
}

var settlements = sync.Pool{New: func() any { return new(settled) }}

// An acceptedOrder is an order of the account that a record accepts, changes or triggers, also
// without a client's command.
type acceptedOrder struct {
	id       uint64 // 0: the record is about no such order
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
	case event.KindTriggered: // its trigger, and that of its other half, is over
		a.again = true
		a.marks = marksFor(&r.Instructions, trading.Trigger{}) &^ marksStop
	default:
		return acceptedOrder{}
	}
	return a
}

// ownCommand has what the wallet has set aside for the command that an entry answers.
type ownCommand struct {
	ticket   uint64 // 0: the entry answers no command, or another account's
	placed   bool   // an order was on its way, accepted or refused
	reserved reservation
	pair     uint16 // of the order that was on its way, or was to be changed
	counted  marks
	amends   uint64 // the order that was to be changed; 0: none
}
