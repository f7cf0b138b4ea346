package trading

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"exchange/core/money"
)

func TestFurthestPrices(t *testing.T) {
	f := func(side Side, reference int64, rate uint32, tick, want int64) {
		t.Helper()
		got := Furthest(side, money.Price(reference), money.Rate(rate), money.Price(tick))
		if int64(got) != want {
			t.Errorf("%v at %d and rate %d: %d, want %d", side, reference, rate, got, want)
		}
	}
	const percent = 1_000_000
	f(Buy, 50_000, 5*percent, 1, 52_500)
	f(Sell, 50_000, 5*percent, 1, 47_500)
	f(Buy, 101, percent, 1, 102)  // 102.01
	f(Sell, 101, percent, 1, 100) // 99.99
	f(Buy, 101, percent, 5, 101)  // the reference
	f(Buy, 103, 0, 5, 103)
	f(Sell, 103, 0, 5, 103)
	f(Sell, 101, percent, 5, 100)
	f(Buy, 100, 0, 1, 100)
	f(Sell, 100, 0, 1, 100)
	f(Sell, 100, 100*percent, 7, 7) // 100 % off
	f(Sell, 100, math.MaxUint32, 7, 7)
	f(Buy, 3, percent, 7, 7) // below a tick
	f(Buy, math.MaxInt64, percent, 1, math.MaxInt64)
	f(Buy, math.MaxInt64-7, math.MaxUint32, 10, math.MaxInt64-7)
	f(Sell, math.MaxInt64, 0, 10, math.MaxInt64-7)
	f(Sell, 1, percent, 1, 1)
}

func TestFurthestPricesAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	one := big.NewInt(int64(money.MaxRate))
	for range 20_000 {
		reference := 1 + rng.Int64N(1<<(1+rng.IntN(62)))
		rate, tick := rng.Int64N(int64(money.MaxRate)+1), 1+rng.Int64N(1000)
		up := new(big.Int).Mul(big.NewInt(reference), big.NewInt(int64(money.MaxRate)+rate))
		up.Div(up, one)
		if !up.IsInt64() {
			up.SetInt64(math.MaxInt64)
		}
		wantBuy := max(up.Int64()/tick*tick, tick, reference)
		down := new(big.Int).Mul(big.NewInt(reference), big.NewInt(int64(money.MaxRate)-rate))
		down.Add(down, big.NewInt(int64(money.MaxRate)*tick-1))
		down.Div(down, new(big.Int).Mul(one, big.NewInt(tick)))
		wantSell := min(max(down.Int64()*tick, tick), reference)
		buy := Furthest(Buy, money.Price(reference), money.Rate(rate), money.Price(tick))
		sell := Furthest(Sell, money.Price(reference), money.Rate(rate), money.Price(tick))
		if int64(buy) != wantBuy || int64(sell) != wantSell {
			t.Fatalf("%d, rate %d, tick %d: %d and %d, want %d and %d", reference, rate, tick, buy,
				sell, wantBuy, wantSell)
		}
	}
}
