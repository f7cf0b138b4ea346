package money

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func (b Balance) big() *big.Int {
	n := new(big.Int).SetUint64(b.u.hi)
	return n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(b.u.lo))
}

func TestAFeeIsTheExactProductRoundedUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		edge := rapid.SampledFrom([]uint64{0, 1, fixedUnit - 1, fixedUnit, fixedUnit + 1,
			math.MaxUint64})
		received := Balance{uint128{hi: rapid.OneOf(rapid.Uint64Range(0, 1<<56), edge).Draw(t,
			"high"), lo: rapid.OneOf(rapid.Uint64(), edge).Draw(t, "low")}}
		rate := Rate(rapid.Uint32Range(0, uint32(MaxRate)).Draw(t, "rate"))
		want := new(big.Int).Mul(received.big(), big.NewInt(int64(rate)))
		want.Add(want, big.NewInt(fixedUnit-1)).Div(want, big.NewInt(fixedUnit))
		fee := rate.FeeRoundedUp(received)
		if fee.big().Cmp(want) != 0 {
			t.Fatalf("%v of %v is %v units, want %v", rate, received.big(), fee.big(), want)
		}
		if fee.Cmp(received) > 0 {
			t.Fatalf("the fee %v is above what it is taken from, %v", fee, received)
		}
	})
}

func TestRatesAreFractionsUpToOne(t *testing.T) {
	for text, want := range map[string]Rate{"0": 0, "0.001": 100_000, "1": MaxRate, "1e-8": 1} {
		if r, err := ParseRate(text); err != nil || r != want {
			t.Errorf("%s: %v, %v", text, r, err)
		}
	}
	for text, want := range map[string]error{"1.00000001": ErrRange, "0.000000001": errPrecision,
		"-1": errSyntax, "": errSyntax} {
		if _, err := ParseRate(text); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
	if s := Rate(150_000).String(); s != "0.0015" {
		t.Error(s)
	}
}
