package money

import (
	"math/big"

	"github.com/shopspring/decimal"
)

// The bridge to shopspring/decimal, for configuration, operator input and test oracles. Never on
// the order path: it allocates.

// Decimal returns the price as an arbitrary-precision decimal.
func (p Price) Decimal() decimal.Decimal { return decimal.New(int64(p), -FixedDecimals) }

// Decimal returns the amount as an arbitrary-precision decimal.
func (a Amount) Decimal() decimal.Decimal { return decimal.New(int64(a), -FixedDecimals) }

// Decimal returns the balance as an arbitrary-precision decimal.
func (b Balance) Decimal() decimal.Decimal { return b.u.decimal(exactDecimals) }

func (a uint128) decimal(digits int32) decimal.Decimal {
	i := new(big.Int).SetUint64(a.hi)
	i.Lsh(i, 64).Or(i, new(big.Int).SetUint64(a.lo))
	return decimal.NewFromBigInt(i, -digits)
}

// maxExponent is far beyond every amount and balance.
const maxExponent = 100

// whole returns d in units of 1 / 10^decimals, which must be a whole number. A short text can
// denote a decimal of gigabytes; its exponent rejects it.
func whole(d decimal.Decimal, decimals int32) (*big.Int, error) {
	switch {
	case d.IsNegative():
		return nil, errSyntax
	case d.IsZero():
		return new(big.Int), nil
	case d.Exponent() > maxExponent:
		return nil, ErrRange
	}
	d = d.Shift(decimals)
	if !d.IsInteger() {
		return nil, errPrecision
	}
	return d.BigInt(), nil
}

// AmountFromDecimal returns d as an amount; the error is errSyntax (negative), errPrecision or
// ErrRange.
func AmountFromDecimal(d decimal.Decimal) (Amount, error) {
	i, err := whole(d, FixedDecimals)
	if err != nil {
		return 0, err
	}
	if !i.IsInt64() {
		return 0, ErrRange
	}
	return Amount(i.Int64()), nil
}

// BalanceFromDecimal returns d as a balance; the error is errSyntax (negative), errPrecision (more
// than 16 fractional digits) or ErrRange (above MaxSupply).
func BalanceFromDecimal(d decimal.Decimal) (Balance, error) {
	i, err := whole(d, exactDecimals)
	if err != nil {
		return Balance{}, err
	}
	if i.BitLen() > 120 {
		return Balance{}, ErrRange
	}
	var lo, hi big.Int
	lo.And(i, new(big.Int).SetUint64(^uint64(0)))
	hi.Rsh(i, 64)
	return BalanceFromBits(hi.Uint64(), lo.Uint64()), nil
}
