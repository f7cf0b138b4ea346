package money

import (
	"math/big"

	"github.com/shopspring/decimal"
)

// The bridge to shopspring/decimal, for configuration, operator input and as the oracle in tests.
// Never on the order path: it allocates.

// Decimal is the price as an arbitrary-precision decimal.
func (p Price) Decimal() decimal.Decimal { return decimal.New(int64(p), -FixedDecimals) }

// Decimal is the amount as an arbitrary-precision decimal.
func (a Amount) Decimal() decimal.Decimal { return decimal.New(int64(a), -FixedDecimals) }

// Decimal is the value as an arbitrary-precision decimal.
func (v Value) Decimal() decimal.Decimal { return v.u.decimal(ExactDecimals) }

// Decimal is the balance as an arbitrary-precision decimal.
func (b Balance) Decimal() decimal.Decimal { return b.u.decimal(ExactDecimals) }

// Decimal is the total as an arbitrary-precision decimal.
func (t Total) Decimal() decimal.Decimal { return t.u.decimal(FixedDecimals) }

func (a uint128) decimal(digits int32) decimal.Decimal {
	i := new(big.Int).SetUint64(a.hi)
	i.Lsh(i, 64).Or(i, new(big.Int).SetUint64(a.lo))
	return decimal.NewFromBigInt(i, -digits)
}

// AmountFromDecimal is d as an amount; the error is ErrSyntax (negative), ErrPrecision or ErrRange.
func AmountFromDecimal(d decimal.Decimal) (Amount, error) {
	if d.IsNegative() {
		return 0, ErrSyntax
	}
	s := d.Shift(FixedDecimals)
	if !s.IsInteger() {
		return 0, ErrPrecision
	}
	i := s.BigInt()
	if !i.IsInt64() {
		return 0, ErrRange
	}
	return Amount(i.Int64()), nil
}

// BalanceFromDecimal is d as a balance; the error is ErrSyntax (negative), ErrPrecision (more than
// 16 fractional digits) or ErrRange (above MaxSupply).
func BalanceFromDecimal(d decimal.Decimal) (Balance, error) {
	if d.IsNegative() {
		return Balance{}, ErrSyntax
	}
	s := d.Shift(ExactDecimals)
	if !s.IsInteger() {
		return Balance{}, ErrPrecision
	}
	i := s.BigInt()
	if i.BitLen() > 120 {
		return Balance{}, ErrRange
	}
	var lo, hi big.Int
	lo.And(i, new(big.Int).SetUint64(^uint64(0)))
	hi.Rsh(i, 64)
	return BalanceFromBits(hi.Uint64(), lo.Uint64()), nil
}
