package directory

import (
	"math"
	"testing"

	"exchange/core/money"
	"exchange/core/trading"
)

func TestABandEndsAtATickWithinIt(t *testing.T) {
	f := func(side trading.Side, reference int64, band money.Rate, tick, within, beyond int64) {
		t.Helper()
		r := PairRules{PriceBand: band, PriceTick: money.Price(tick)}
		if got := r.beyondBand(side, money.Price(within), money.Price(reference)); got != 0 {
			t.Errorf("%v at %d, band %v of %d: beyond %d", side, within, band, reference, got)
		}
		if got := r.beyondBand(side, money.Price(beyond), money.Price(reference)); got !=
			money.Price(within) {
			t.Errorf("%v at %d, band %v of %d: the bound is %d, want %d", side, beyond, band,
				reference, got, within)
		}
	}
	const percent = 1_000_000
	f(trading.Buy, 100, 5*percent, 1, 105, 106)
	f(trading.Sell, 100, 5*percent, 1, 95, 94)
	f(trading.Buy, 105, 5*percent, 10, 110, 120)
	f(trading.Sell, 105, 5*percent, 10, 100, 90)
	f(trading.Sell, 101, 5*percent, 1, 96, 95) // 95.95
	f(trading.Sell, 3, 100*percent, 1, 1, 0)
	f(trading.Buy, math.MaxInt64-1, percent, 10, math.MaxInt64-7, math.MaxInt64)
	f(trading.Buy, 3, 5*percent, 7, 7, 14) // the tick was smaller when 3 was traded
	f(trading.Sell, 3, 5*percent, 7, 7, 6)
	f(trading.Buy, 103, percent/1000, 10, 100, 110) // so were those of 103
	f(trading.Sell, 103, percent/1000, 10, 110, 100)
}

func TestWithoutABandOrAReferenceEachPriceIsPossible(t *testing.T) {
	for _, side := range []trading.Side{trading.Buy, trading.Sell} {
		for _, price := range []money.Price{1, money.MaxPrice} {
			none, some := PairRules{PriceTick: 1}, PairRules{PriceTick: 1, PriceBand: 1}
			if none.beyondBand(side, price, 100) != 0 || some.beyondBand(side, price, 0) != 0 {
				t.Errorf("%v at %v is beyond a band that is not there", side, price)
			}
		}
	}
}

func TestAnIcebergHasTwentyPartsAtMost(t *testing.T) {
	f := func(display, amount money.Amount, want bool) {
		t.Helper()
		if got := TooManyParts(display, amount); got != want {
			t.Errorf("%d of %d at a time is too little: %v", display, amount, got)
		}
	}
	f(4, 100, true)
	f(5, 100, false)
	f(5, 101, true) // 20 parts, and one unit more
	f(5, 119, true)
	f(6, 119, false)
	f(money.MaxAmount/20, money.MaxAmount, true)
	f(money.MaxAmount/20+1, money.MaxAmount, false)
}
