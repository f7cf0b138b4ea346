package trading

import "exchange/core/money"

// Instructions are an order's terms beyond side, price and amount, and their immediate outcome in a
// record. The zero Instructions are those of a plain limit order.
type Instructions struct {
	Market   bool // it takes at any price up to its own, and never rests
	IOC      bool // any amount not taken at once is cancelled
	FOK      bool // it takes all of its amount at once, or nothing
	PostOnly bool // it never takes
	// Derived: the client gave no price. The book moves the order's price, and that of its changes,
	// within the pair's band.
	Derived  bool
	ExpireUs int64 // expiry, Unix microseconds; no trade at or after it; 0: none
	// Asked is the requested price of a post-only order that may slide to a better one; 0: it may
	// not slide.
	Asked     money.Price
	Display   money.Amount // largest visible amount in the book; 0: all of it
	Quote     money.Amount // budget in the quote currency; 0: bounded by the amount
	SelfTrade SelfTrade
	// SelfTradeOwn: the mode is the order's own and applies to its changes too, even as none.
	// Otherwise it is the account's setting at the time, and a change reads the setting again.
	SelfTradeOwn bool
	// Prevented are the account's own resting orders that it met and removed from the book.
	Prevented []Prevented
	OCO       OCO
	Cancelled Reason // why the rest of the order was cancelled; 0: it was not
}

// Instructed holds the instructions of one order, and their outcome so far: while it is open, or
// when it closed.
type Instructed struct {
	Instructions
	Trigger   Trigger // zero: none; an OCO's trigger is among the instructions
	Triggered bool    // it has entered the book by its trigger, or by that of its OCO
	// Value is the sum of price x amount over its trades, the source of their average price. It
	// stays 0 if some trades preceded its instructions: their value is unknown.
	Value money.Balance
}

// Waits reports whether an open order waits for its trigger outside the book. One that rests in the
// book while its other half waits does not.
func (x *Instructed) Waits() bool { return x.Trigger.When != 0 && !x.Triggered }

// Prevented is an order that its own account's taker met and removed from the book to avoid a
// self-trade.
type Prevented struct {
	Before uint32 // trades of the record that come before it
	Order  uint64
	Cancel uint64 // id of the cancel, from the order id sequence
	Price  money.Price
	Amount money.Amount // open amount released, including its hidden part
}

// OCO is the other half of a resting sell, triggered by a falling price: the rest then leaves the
// book, and enters again at another price. The zero OCO is none.
type OCO struct {
	Trigger money.Price // a trade at or below it triggers; below the order's own price
	Price   money.Price // limit from then on; 0: the pair's collar below Trigger, as an ioc
}

// A SelfTrade mode decides what happens when a taker meets an order of its own account.
type SelfTrade uint8

// The modes. The numbers are stored.
const (
	SelfTradeNone         SelfTrade = 0 // they trade
	SelfTradeCancelNewest SelfTrade = 1 // the taker is cancelled, its trades stand
	SelfTradeCancelOldest SelfTrade = 2 // the resting order is cancelled, the taker continues
	SelfTradeCancelBoth   SelfTrade = 3 // both are cancelled
)

// A Direction is the price movement that triggers an order.
type Direction uint8

// The two directions. The numbers are stored. The zero Direction is none.
const (
	Rise Direction = 1 // a trade at or above the trigger price
	Fall Direction = 2 // a trade at or below the trigger price
)

// A Trigger defines when an order that waits outside the book enters it. The zero Trigger is none.
type Trigger struct {
	Price money.Price
	When  Direction
}

// A Reason is why an order, or its rest, was cancelled. The numbers are stored; 0 is none.
type Reason uint8

// The reasons. A record with one of those up to CancelledAmended also has other effects on the
// order.
const (
	CancelledIOC        Reason = 1
	CancelledFOK        Reason = 2
	CancelledMaxFills   Reason = 3
	CancelledSelfTrade  Reason = 4
	CancelledPostOnly   Reason = 5
	CancelledExpired    Reason = 6
	CancelledAmended    Reason = 7
	CancelledOwner      Reason = 8
	CancelledOperator   Reason = 9
	CancelledSwitch     Reason = 10
	CancelledDisconnect Reason = 11
)

// String returns the reason as the API writes it, "" for none.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return ""
}

var reasonNames = [...]string{CancelledIOC: "ioc", CancelledFOK: "fok",
	CancelledMaxFills: "max_fills", CancelledSelfTrade: "self_trade",
	CancelledPostOnly: "post_only", CancelledExpired: "expired", CancelledAmended: "amended",
	CancelledOwner: "owner", CancelledOperator: "operator", CancelledSwitch: "switch",
	CancelledDisconnect: "disconnect"}
