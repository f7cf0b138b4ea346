package event

import (
	"exchange/core/money"
	"exchange/core/trading"
)

// The records of orders with instructions hold their order in Record.Order, and the rest beside it.
// A KindInstructed has Instructions, which are not zero: an order whose instructions leave no trace
// is a KindOrder. The Amount of an order that spends a budget is the amount bought, which may be 0.
// Order.RestCancelled is set if, and only if, Instructions.Cancelled has a reason.
//
// The Order of a KindStop has no trades and no fees, and all of it remains. It waits outside the
// book for Record.Trigger, unless it is cancelled at once.

// Was is the part of an open order that a record replaces.
type Was struct {
	Price money.Price
	Open  money.Amount // including its hidden part
}

// Triggered is the part of a KindTriggered beside its Order, which has the id of the waiting order,
// and neither key nor nonce.
type Triggered struct {
	Was      Was
	FromBook bool // it is the other half of a resting order, which left the book
}

// Amended is the part of a KindAmended beside its Order, which has the order's id, its new price
// and original amount, and the key and nonce of the change. An order that the change closes keeps
// its values; a reason says why its rest was cancelled.
type Amended struct {
	ID   uint64 // id of the change itself, from the order id sequence
	Was  Was
	Kept bool // it kept its priority in the book
}

// MaxExpired bounds the orders that one record expires.
const MaxExpired = 256

// Expired removes one order from its book, or from its wait for a trigger.
type Expired struct {
	ID      uint64 // id of the cancel, from the order id sequence
	Order   uint64
	Account uint32
	Side    trading.Side
	Price   money.Price
	Open    money.Amount // amount released, including the hidden part
}

// MaxSwitchSeconds is the longest time of a dead man's switch.
const MaxSwitchSeconds = 86_400

// Switch sets or disarms a dead man's switch of an API key. A key has up to two: one armed by its
// calls, and one armed by its sessions.
type Switch struct {
	Account uint32
	Key     uint32
	Nonce   uint64 // 0: not a client's call
	Session bool   // the switch of the key's sessions
	Armed   bool
	// DueUs is when an armed switch cancels, Unix microseconds; 0: not while a session lives. In a
	// record that disarms the switch it is when the switch fired; 0: a client disarmed it.
	DueUs   int64
	Seconds uint32 // delay from a call, or from the end of the last session, to DueUs

	// Filter of the orders to cancel:
	Pair   uint16       // 0: of all pairs
	Side   trading.Side // 0: of both
	Prefix ClientID     // beginning of their client_order_id; zero: any or none
}

// Settings are an account's defaults for its orders.
type Settings struct {
	Account   uint32
	Key       uint32
	Nonce     uint64
	SelfTrade trading.SelfTrade // mode of orders that name none
}
