package money

import "math/bits"

// A Rate is a fraction in units of 1e-8: 100,000 is 0.001, or 0.1 %. It is at most MaxRate.
type Rate uint32

// MaxRate is 1: everything.
const MaxRate Rate = fixedUnit

// ParseRate reads a rate from decimal text such as "0.001". The error is that of ParsePrice, or
// ErrRange above 1.
func ParseRate[T string | []byte](s T) (Rate, error) {
	v, err := parseFixed(s)
	if err == nil && v > int64(MaxRate) {
		err = ErrRange
	}
	if err != nil {
		return 0, err
	}
	return Rate(v), nil
}

// Append writes the rate as decimal text.
func (r Rate) Append(dst []byte) []byte { return Amount(r).Append(dst) }

func (r Rate) String() string { return string(r.Append(nil)) }

// FeeRoundedUp returns the fee on received money, in its units of 1e-16. The fee is rounded up to a
// whole unit, in favour of the house, and is never above the received money. No other function
// rounds money.
func (r Rate) FeeRoundedUp(received Balance) Balance {
	if r > MaxRate {
		panic("BUG: a rate above 1")
	}
	// received x rate has up to 155 bits, in three words; dividing by 1e8 brings it back below
	// received.
	low, lowest := bits.Mul64(received.u.lo, uint64(r))
	high, middle := bits.Mul64(received.u.hi, uint64(r))
	middle, carry := bits.Add64(middle, low, 0)
	high += carry
	hi, rest := bits.Div64(high, middle, fixedUnit)
	lo, rest := bits.Div64(rest, lowest, fixedUnit)
	fee := Balance{uint128{hi, lo}}
	if rest > 0 {
		fee = fee.Add(Balance{uint128{lo: 1}})
	}
	return fee
}
