package trading

import (
	"math/bits"

	"exchange/core/money"
)

// Furthest returns the worst price allowed for a side: the reference x (1 + rate) for a buy, the
// reference x (1 - rate) for a sell. It is rounded towards the reference to a multiple of tick, and
// not beyond the reference. It is between one tick, or the reference, and money.MaxPrice. The
// reference and the tick are at least 1. A reference that is no multiple of the tick is the price
// of an order from before the tick was changed.
func Furthest(side Side, reference money.Price, rate money.Rate, tick money.Price) money.Price {
	const one = uint64(money.MaxRate)
	if side == Buy {
		hi, lo := bits.Mul64(uint64(reference), one+uint64(rate))
		if hi >= one {
			return max(money.MaxPrice/tick*tick, reference)
		}
		p, _ := bits.Div64(hi, lo, one)
		p = min(p, uint64(money.MaxPrice))
		return max(money.Price(p)/tick*tick, tick, reference)
	}
	hi, lo := bits.Mul64(uint64(reference), one-min(uint64(rate), one))
	p, rest := bits.Div64(hi, lo, one)
	if rest > 0 {
		p++
	}
	return min(up(money.Price(p), tick), reference)
}

// up rounds a price up to a multiple of tick that is at least one tick, or down where that is above
// money.MaxPrice.
func up(p, tick money.Price) money.Price {
	if p%tick == 0 {
		return max(p, tick)
	}
	if p = p / tick * tick; p > money.MaxPrice-tick {
		return p
	}
	return p + tick
}
