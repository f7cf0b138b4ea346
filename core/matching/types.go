package matching

import "exchange/core/money"

// A Fill is one execution of a resting order (the maker) by an incoming one (the taker), at the
// maker's price.
type Fill struct {
	Maker          uint64 // order id
	MakerAccount   uint32
	Price          money.Price
	Amount         money.Amount
	MakerRemaining money.Amount // 0: the maker is filled and has left the book
}
