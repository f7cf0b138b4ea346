package money

import (
	"math"
	"math/bits"
)

// Decimals of the two scales in use.
const (
	// FixedDecimals is the number of fractional digits of a Price, an Amount and a Total.
	FixedDecimals = 8
	// exactDecimals is the number of fractional digits of a Value and a Balance.
	exactDecimals = 16

	fixedUnit = 100_000_000 // 1 in units of 1e-8
)

// A Price is quote currency per one unit of base currency, in units of 1e-8.
type Price int64

// An Amount is a quantity of one currency in units of 1e-8.
type Amount int64

// A Value is a price times an amount, in units of 1e-16 of the quote currency.
//
//tidy:keep Times returns it
type Value struct{ u uint128 }

// A Balance is an account's money of one currency, or a reserve of it, in units of 1e-16.
type Balance struct{ u uint128 }

// A Total is a sum of Amounts, in units of 1e-8.
type Total struct{ u uint128 }

// MaxAmount and MaxPrice are the largest values accepted from text: 92,233,720,368.54775807.
const (
	MaxAmount = Amount(math.MaxInt64)
	MaxPrice  = Price(math.MaxInt64)
)

// MaxSupply bounds the sum of all deposits of one currency: 2^120 units of 1e-16, about 1.3e20
// coins. Every balance and every sum of balances stays below it, eight bits away from overflow.
var MaxSupply = Balance{uint128{hi: 1 << 56}}

// Times returns price x amount, exactly. Both must be at least 0.
func (p Price) Times(a Amount) Value {
	if p < 0 || a < 0 {
		panic("BUG: a price or an amount is negative")
	}
	hi, lo := bits.Mul64(uint64(p), uint64(a))
	return Value{uint128{hi, lo}}
}

// Balance returns the amount in the units of a balance.
func (a Amount) Balance() Balance {
	if a < 0 {
		panic("BUG: an amount is negative")
	}
	hi, lo := bits.Mul64(uint64(a), fixedUnit)
	return Balance{uint128{hi, lo}}
}

// Total returns the amount as a sum of one.
func (a Amount) Total() Total {
	if a < 0 {
		panic("BUG: an amount is negative")
	}
	return Total{uint128{lo: uint64(a)}}
}

// FitsDecimals reports whether n fractional digits can express the price.
func (p Price) FitsDecimals(n int) bool { return fits(int64(p), n) }

// FitsDecimals reports whether n fractional digits can express the amount.
func (a Amount) FitsDecimals(n int) bool { return fits(int64(a), n) }

// PriceUnit returns the smallest price step with that many fractional digits.
func PriceUnit(decimals int) Price { return Price(pow10[FixedDecimals-decimals]) }

// AmountUnit returns the smallest amount step with that many fractional digits.
func AmountUnit(decimals int) Amount { return Amount(pow10[FixedDecimals-decimals]) }

func fits(v int64, decimals int) bool {
	if decimals >= FixedDecimals {
		return true
	}
	return v%int64(pow10[FixedDecimals-max(decimals, 0)]) == 0
}

// Balance returns the value as a balance of the quote currency; the units are the same.
func (v Value) Balance() Balance { return Balance(v) }

// Add returns b + c.
func (b Balance) Add(c Balance) Balance { return Balance{b.u.add(c.u)} }

// Sub returns b - c; c must not be above b.
func (b Balance) Sub(c Balance) Balance { return Balance{b.u.sub(c.u)} }

// Cmp returns -1, 0 or 1 as b is below, equal to or above c.
func (b Balance) Cmp(c Balance) int { return b.u.cmp(c.u) }

// Average returns the average price of trades that moved b of the quote currency for an amount of
// the base currency, which is at least 1. Digits after the eighth are cut off: the price is only
// shown, and no money moves by it.
func (b Balance) Average(amount Amount) Price {
	if amount < 1 || b.u.hi >= uint64(amount) {
		panic("BUG: an average price of no amount, or above all prices")
	}
	p, _ := bits.Div64(b.u.hi, b.u.lo, uint64(amount))
	if p > uint64(MaxPrice) {
		panic("BUG: an average price above all prices")
	}
	return Price(p)
}

// IsZero reports whether the balance is 0.
func (b Balance) IsZero() bool { return b.u == uint128{} }

// Bits returns the high and the low 64 bits, for encodings.
func (b Balance) Bits() (hi, lo uint64) { return b.u.hi, b.u.lo }

// BalanceFromBits returns the balance with these Bits.
func BalanceFromBits(hi, lo uint64) Balance { return Balance{uint128{hi, lo}} }

// Add returns t + a.
func (t Total) Add(a Amount) Total { return Total{t.u.add(a.Total().u)} }

// Sub returns t - a; a must not be above t.
func (t Total) Sub(a Amount) Total { return Total{t.u.sub(a.Total().u)} }

// Plus returns t + s.
func (t Total) Plus(s Total) Total { return Total{t.u.add(s.u)} }

// Cmp returns -1, 0 or 1 as t is below, equal to or above s.
func (t Total) Cmp(s Total) int { return t.u.cmp(s.u) }

// IsZero reports whether the total is 0.
func (t Total) IsZero() bool { return t.u == uint128{} }

// Bits returns the high and the low 64 bits, for encodings.
func (t Total) Bits() (hi, lo uint64) { return t.u.hi, t.u.lo }

// TotalFromBits returns the total with these Bits.
func TotalFromBits(hi, lo uint64) Total { return Total{uint128{hi, lo}} }

// uint128 is an unsigned 128-bit number with checked arithmetic.
type uint128 struct{ hi, lo uint64 }

func (a uint128) add(b uint128) uint128 {
	lo, c := bits.Add64(a.lo, b.lo, 0)
	hi, c := bits.Add64(a.hi, b.hi, c)
	if c != 0 {
		panic("BUG: 128-bit money overflows")
	}
	return uint128{hi, lo}
}

func (a uint128) sub(b uint128) uint128 {
	lo, c := bits.Sub64(a.lo, b.lo, 0)
	hi, c := bits.Sub64(a.hi, b.hi, c)
	if c != 0 {
		panic("BUG: more money is taken away than there is")
	}
	return uint128{hi, lo}
}

func (a uint128) cmp(b uint128) int {
	switch {
	case a == b:
		return 0
	case a.hi < b.hi || a.hi == b.hi && a.lo < b.lo:
		return -1
	}
	return 1
}
