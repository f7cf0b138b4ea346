package trading

import "exchange/core/money"

// A Side is the direction of an order: it buys or sells the base currency.
type Side uint8

// The two sides. The zero Side is none, to expose a missing one.
const (
	Buy  Side = 1
	Sell Side = 2
)

// Opposite returns the side that this one trades with.
func (s Side) Opposite() Side { return 3 - s }

// String returns "buy" or "sell", as the API writes it.
func (s Side) String() string {
	switch s {
	case Buy:
		return "buy"
	case Sell:
		return "sell"
	}
	return "invalid side"
}

// Statuses of an order, as the API numbers them.
const (
	StatusActive    = 1
	StatusCancelled = 2
	StatusDone      = 3
)

// An Order is one resting order. Amount is the requested amount and never changes; Remaining is the
// open rest, between 1 and Amount.
type Order struct {
	ID        uint64 // unique over the engine, increasing within a pair
	Account   uint32 // owner
	Side      Side
	Price     money.Price
	Amount    money.Amount
	Remaining money.Amount
	TimeUs    int64 // acceptance time, microseconds since the Unix epoch
}

// A Level is the sum of the orders at one price of one side.
type Level struct {
	Price  money.Price
	Amount money.Total
	Orders int
}
