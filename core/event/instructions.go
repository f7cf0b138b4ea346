package event

import (
	"exchange/core/money"
	"exchange/core/trading"
)

// The records of orders with instructions have their order in Record.Order, and what they say more
// beside it. Of KindInstructed that is Instructions, which are not zero: an order whose
// instructions leave nothing behind is a KindOrder. An order that spends a sum has as Amount the
// amount that it has bought, which may be 0. Order.RestCancelled is set if, and only if,
// Instructions.Cancelled has a reason.
//
// The Order of a KindStop has no trades and no fees, and all of it remains. It waits outside the
// book for Record.Trigger, unless it is cancelled at once.

// Was is the part of an open order that a record replaces.
type Was struct {
	Price money.Price
	Open  money.Amount // its hidden part included
}

// Triggered is the part of a KindTriggered beside its Order, which has the id of the order that
// waited, and neither key nor nonce.
type Triggered struct {
	Was      Was
	FromBook bool // it is the other half of a resting order, and has left the book
}

// Amended is the part of a KindAmended beside its Order, which has the order's id, its new price
// and its new original amount, and the key and the nonce of the change. An order that the change
// ended keeps its values; a reason says why its rest was cancelled.
type Amended struct {
	ID   uint64 // id of the change itself, from the counter of the orders
	Was  Was
	Kept bool // it has kept its place in the book
}

// MaxExpired is how many orders one record expires at most.
const MaxExpired = 256

// Expired takes one order out of its book, or from its wait for a trigger.
type Expired struct {
	ID      uint64 // id of the cancel, from the counter of the orders
	Order   uint64
	Account uint32
	Side    trading.Side
	Price   money.Price
	Open    money.Amount // amount that is released, the hidden part included
}

// MaxSwitchSeconds is the longest time of a dead man's switch.
const MaxSwitchSeconds = 86_400

// Switch sets or ends a dead man's switch of an API key. A key has up to two: one that its calls
// arm, and one that its sessions arm.
type Switch struct {
	Account uint32
	Key     uint32
	Nonce   uint64 // 0: not a client's call
	Session bool   // the switch of the key's sessions
	Armed   bool
	// DueUs is the time at which an armed switch cancels, Unix microseconds; 0: none while a
	// session lives. A switch that is not armed any more names here the time at which it did; 0: a
	// client took it back.
	DueUs   int64
	Seconds uint32 // time from a call, or from the end of the last session, to DueUs

	// The orders that the switch cancels:
	Pair   uint16       // 0: of all pairs
	Side   trading.Side // 0: of both
	Prefix ClientID     // beginning of their client_order_id; zero: any or none
}

// Settings are an account's own for its orders.
type Settings struct {
	Account   uint32
	Key       uint32
	Nonce     uint64
	SelfTrade trading.SelfTrade // mode of an order that names none
}
