package simulation

import (
	"math/big"
	"slices"

	"exchange/core/money"
	"exchange/core/trading"
)

// A lastPrice is the price of a trade, with the sequence of its record.
type lastPrice struct {
	seq   uint64
	price money.Price
}

// lastBefore returns the price of the newest trade before a record; 0: there was none.
func (p *Pair) lastBefore(seq uint64) money.Price {
	for _, l := range slices.Backward(p.lasts) {
		if l.seq < seq {
			return l.price
		}
	}
	return 0
}

// one is a rate of 1.
var one = big.NewInt(int64(money.MaxRate))

// beyond reports whether a price is further from a reference than a rate allows, on the side that
// harms the order: a buy above reference x (1 + rate), a sell below reference x (1 - rate).
func beyond(side trading.Side, price, reference money.Price, rate money.Rate) bool {
	r := big.NewInt(int64(rate))
	if side == trading.Sell {
		r.Neg(r)
	}
	furthest := r.Mul(r.Add(r, one), big.NewInt(int64(reference)))
	n := new(big.Int).Mul(big.NewInt(int64(price)), one)
	if side == trading.Sell {
		return n.Cmp(furthest) < 0
	}
	return n.Cmp(furthest) > 0
}

// beyondBand reports whether a new order's price was beyond the pair's band just before a record.
func (p *Pair) beyondBand(side trading.Side, price money.Price, seq uint64) bool {
	return p.IsBeyondBand(side, price, p.lastBefore(seq))
}

// IsBeyondBand reports whether a price is beyond the pair's band of a reference; 0: there is none.
func (p *Pair) IsBeyondBand(side trading.Side, price, reference money.Price) bool {
	return p.rules.Band > 0 && reference > 0 && beyond(side, price, reference, p.rules.Band)
}

// IsBound reports whether a price is the furthest within the pair's band of a reference.
func (p *Pair) IsBound(side trading.Side, bound, reference money.Price) bool {
	tick := max(p.rules.Tick, 1)
	if bound < 1 || bound%tick != 0 || p.IsBeyondBand(side, bound, reference) {
		return false
	}
	if side == trading.Buy {
		return bound > money.MaxPrice-tick || p.IsBeyondBand(side, bound+tick, reference)
	}
	return bound <= tick || p.IsBeyondBand(side, bound-tick, reference)
}
