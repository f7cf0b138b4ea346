package trading

import "exchange/core/money"

// Instructions are what an order says beyond its side, price and amount, and what a record says
// came of them at once. The zero Instructions are those of a plain limit order.
type Instructions struct {
	Market   bool // it takes at any price up to its own, and never rests
	IOC      bool // what it does not take at once is cancelled
	FOK      bool // it takes all of its amount at once, or nothing
	PostOnly bool // it never takes
	// Derived: its owner gave no price. The book brings that of the order, and of its changes,
	// within the pair's band.
	Derived  bool
	ExpireUs int64 // no trade has this time or a later one, Unix microseconds; 0: no end
	// Asked is the price that the client asked for, of a post-only order that may slide to a better
	// one; 0: it may not slide.
	Asked     money.Price
	Display   money.Amount // most that the book shows of it at a time; 0: it shows all
	Quote     money.Amount // sum of the quote currency that it may spend; 0: bound by its amount
	SelfTrade SelfTrade
	// SelfTradeOwn: the mode is the order's own, and counts for its changes too, also as none.
	// Otherwise it is the account's setting of then, and a change reads the setting anew.
	SelfTradeOwn bool
	// Prevented are the account's own resting orders that it met, and took out of the book.
	Prevented []Prevented
	OCO       OCO
	Cancelled Reason // why the rest of the order was cancelled; 0: it was not
}

// Instructed has the instructions of one order, and what has become of them up to now: while it is
// open, or when it closed.
type Instructed struct {
	Instructions
	Trigger   Trigger // zero: none; that of an OCO is among the instructions
	Triggered bool    // it has entered the book by its trigger, or by that of its OCO
	// Value is the sum of price x amount over its trades. Their average price is derived from it.
	// It stays 0 if some of them came before its instructions: of these it is not known.
	Value money.Balance
}

// Waits reports whether an open order waits for its trigger outside the book. One that rests in the
// book while its other half waits does not.
func (x *Instructed) Waits() bool { return x.Trigger.When != 0 && !x.Triggered }

// Prevented is an order that its own account's taker met and took out of the book, so that both
// did not trade.
type Prevented struct {
	Before uint32 // trades of the record that come before it
	Order  uint64
	Cancel uint64 // id of the cancel, from the counter of the orders
	Price  money.Price
	Amount money.Amount // open amount that is released, its hidden part included
}

// OCO is the other half of a resting sell, which a fall of the price triggers: the rest leaves the
// book then, and enters again at another price. The zero OCO is none.
type OCO struct {
	Trigger money.Price // a trade at or below it triggers; below the order's own price
	Price   money.Price // limit from then on; 0: the pair's collar below Trigger, as an ioc
}

// A SelfTrade mode says what a taker does at an order of its own account.
type SelfTrade uint8

// The modes. The numbers are stored.
const (
	SelfTradeNone         SelfTrade = 0 // they trade
	SelfTradeCancelNewest SelfTrade = 1 // the taker ends, its trades stand
	SelfTradeCancelOldest SelfTrade = 2 // the resting order ends, the taker goes on
	SelfTradeCancelBoth   SelfTrade = 3 // both end
)

// A Direction is the movement of the price that triggers an order.
type Direction uint8

// The two directions. The numbers are stored. The zero Direction is none.
const (
	Rise Direction = 1 // a trade at or above the trigger price
	Fall Direction = 2 // a trade at or below the trigger price
)

// A Trigger says when an order that waits outside the book enters it. The zero Trigger is none.
type Trigger struct {
	Price money.Price
	When  Direction
}

// A Reason says why an order, or its rest, was cancelled. The numbers are stored; 0 is none.
type Reason uint8

// The reasons. Those up to CancelledAmended are of a record that says what else became of the
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
