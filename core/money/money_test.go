package money

import (
	"math"
	"math/big"
	"testing"

	"github.com/shopspring/decimal"
	"pgregory.net/rapid"
)

func TestTextAgreesWithDecimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.OneOf(rapid.Int64Range(0, math.MaxInt64), rapid.Int64Range(0, 1e10)).Draw(t, "v")
		a := Amount(v)
		if got, want := a.String(), decimal.New(v, -8).String(); got != want {
			t.Fatalf("text of %d is %q, want %q", v, got, want)
		}
		back, err := ParseAmount(a.String())
		if err != nil || back != a {
			t.Fatalf("%q came back as %v, %v", a, back, err)
		}
	})
}

func TestParseAgreesWithDecimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[0-9]{1,14}(\.[0-9]{1,12})?(e[+-]?[0-9]{1,2})?`).Draw(t, "s")
		d, err := decimal.NewFromString(s)
		if err != nil {
			t.Skip()
		}
		got, gotErr := ParsePrice(s)
		want, wantErr := AmountFromDecimal(d)
		if gotErr != wantErr || int64(got) != int64(want) {
			t.Fatalf("%q: got %v, %v; decimal says %v, %v", s, got, gotErr, want, wantErr)
		}
	})
}

func TestProductsAndSumsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Price(rapid.Int64Range(0, math.MaxInt64).Draw(t, "p"))
		a := Amount(rapid.Int64Range(0, math.MaxInt64).Draw(t, "a"))
		v := p.Times(a)
		want := p.Decimal().Mul(a.Decimal())
		if b := v.Balance(); !b.Decimal().Equal(want) || b.String() != want.String() {
			t.Fatalf("%v x %v = %v, want %v", p, a, v, want)
		}
		b := a.Balance()
		if !b.Decimal().Equal(a.Decimal()) {
			t.Fatalf("%v as a balance is %v", a, b)
		}
		sum := b.Add(v.Balance())
		if sum.Sub(b) != v.Balance() || sum.Cmp(b) < 0 {
			t.Fatalf("%v + %v - %v is not %v", b, v, b, v)
		}
		hi, lo := sum.Bits()
		if BalanceFromBits(hi, lo) != sum {
			t.Fatal("bits do not round-trip")
		}
	})
}

func TestTotalsAddExactly(t *testing.T) {
	total := rapid.Custom(func(t *rapid.T) Total {
		return TotalFromBits(rapid.Uint64Range(0, math.MaxUint64>>1).Draw(t, "hi"),
			rapid.Uint64().Draw(t, "lo"))
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := total.Draw(t, "a"), total.Draw(t, "b")
		if sum, want := a.Plus(b), exact(a).Add(exact(b)); !exact(sum).Equal(want) {
			t.Fatalf("%v + %v = %v, want %v", a, b, sum, want)
		}
		if hi, lo := a.Bits(); TotalFromBits(hi, lo) != a {
			t.Fatal("bits do not round-trip")
		}
	})
}

func TestEdgesOf128Bits(t *testing.T) {
	b := BalanceFromBits(math.MaxUint64, math.MaxUint64)
	want := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(1))
	if got := b.String(); got != decimal.NewFromBigInt(want, -16).String() {
		t.Errorf("largest balance is written as %s", got)
	}
	total := Total{uint128{math.MaxUint64, math.MaxUint64}}
	if got := total.String(); got != decimal.NewFromBigInt(want, -8).String() {
		t.Errorf("largest total is written as %s", got)
	}
	mustPanic(t, func() { b.Add(Amount(1).Balance()) })
	mustPanic(t, func() { total.Plus(Amount(1).Total()) })
	mustPanic(t, func() { Balance{}.Sub(Amount(1).Balance()) })
	mustPanic(t, func() { Price(-1).Times(1) })
	if !Price(12_000_000).FitsDecimals(2) || Price(12_100_000).FitsDecimals(2) ||
		!Price(1).FitsDecimals(8) || Price(1).FitsDecimals(7) {
		t.Error("FitsDecimals is wrong")
	}
	if got, err := BalanceFromDecimal(MaxSupply.Decimal()); err != ErrRange {
		t.Errorf("MaxSupply itself needs 121 bits, got %v, %v", got, err)
	}
}

// exact returns a total as an arbitrary-precision decimal.
func exact(t Total) decimal.Decimal { return t.u.decimal(FixedDecimals) }

func mustPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	f()
}

func TestTextAllocatesNothing(t *testing.T) {
	buf := make([]byte, 0, 64)
	in := []byte("50000.12")
	n := testing.AllocsPerRun(100, func() {
		p, _ := ParsePrice(in)
		buf = p.Append(buf[:0])
		buf = p.Times(123456).Balance().Append(buf[:0])
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The average price is between the prices of the trades, and times the amount it is at most a unit
// for each unit of the amount below the value.
func TestAveragePricesAreCutOff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.Int64Range(1, 1<<61), rapid.Int64Range(1, 100))
		low, high := MaxPrice, Price(0)
		var value Balance
		var amount Amount
		for range rapid.IntRange(1, 3).Draw(t, "trades") {
			p, a := Price(n.Draw(t, "price")), Amount(n.Draw(t, "amount"))
			value, amount = value.Add(p.Times(a).Balance()), amount+a
			low, high = min(low, p), max(high, p)
		}
		got := value.Average(amount)
		if got < low || got > high || got.Times(amount).Balance().Cmp(value) > 0 ||
			(got+1).Times(amount).Balance().Cmp(value) <= 0 {
			t.Fatalf("%v for %v is on average %v, with prices from %v to %v", value, amount, got,
				low, high)
		}
	})
	if got := MaxPrice.Times(MaxAmount).Balance().Average(MaxAmount); got != MaxPrice {
		t.Errorf("the largest price is on average %v", got)
	}
	for _, c := range []struct {
		value  Balance
		amount Amount
	}{{Balance{}, 0}, {BalanceFromBits(1, 0), 1}, {BalanceFromBits(0, 1<<63), 1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v for %v units has an average price", c.value, int64(c.amount))
				}
			}()
			c.value.Average(c.amount)
		}()
	}
}
