package money

import (
	"math/big"
	"regexp"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
)

// numberText matches the text of a number. The reference accepts more: signs, and points without
// digits.
var numberText = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// reference parses text as parseFixed should, with big numbers.
func reference(text string) (units *big.Int, err error) {
	if len(text) > maxText || !numberText.MatchString(text) {
		return nil, errSyntax
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	d := decimal.RequireFromString(mantissa)
	if d.IsZero() {
		return new(big.Int), nil
	}
	e, ok := new(big.Int).SetString("0"+strings.TrimLeft(exponent, "+-"), 10)
	if !ok {
		return nil, errSyntax
	}
	if strings.HasPrefix(exponent, "-") {
		e.Neg(e)
	}
	switch { // a text of at most 64 characters has no other fault
	case e.Cmp(big.NewInt(1000)) > 0:
		return nil, ErrRange
	case e.Cmp(big.NewInt(-1000)) < 0:
		return nil, errPrecision
	}
	d = d.Shift(int32(e.Int64()) + FixedDecimals)
	if !d.IsInteger() {
		return nil, errPrecision
	}
	if units = d.BigInt(); !units.IsInt64() {
		return nil, ErrRange
	}
	return units, nil
}

// The oracle parses text alike. A parsed number is written in one form, which parses to the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "0", "1", "0.00000001", "92233720368.54775807",
		"92233720368.54775808", "1e-7", "1E+3", "0e99999", "1e99999", "1e-99999", "00.10",
		"1.", ".1", "-1", "+1", "1e", "1e+", "0x1", "1_0", "100000000000000000000e-20",
		"0.000000010", "0.000000001", "1e9223372036854775807", "０", "1\x00",
		strings.Repeat("0", 63) + "1", strings.Repeat("0", 64) + "1", "184467440737095516.16",
		"0." + strings.Repeat("0", 50) + "e60", "007", "1e-8", "1.5e+3", "10000000000e-10",
		"0.000000001e1", "9223372036854775807e-8", " 1", "1 ", "-0", ".5", "0x10", "1,5", "NaN",
		"Infinity", "１", "1.2.3", "1e1e1", "--", "e5", "1e-9", "1.123456789", "1e-10000000",
		"1e11", "1e999999999", strings.Repeat("9", 32)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, wantErr := reference(text)
		a, err := ParseAmount(text)
		fromBytes, errOfBytes := ParsePrice([]byte(text))
		if err != wantErr || err == nil && want.Int64() != int64(a) {
			t.Fatalf("%q is %d, %v; the oracle says %v, %v", text, a, err, want, wantErr)
		}
		if int64(fromBytes) != int64(a) || errOfBytes != err {
			t.Fatalf("%q is %d, %v as bytes", text, fromBytes, errOfBytes)
		}
		rate, err2 := ParseRate(text)
		if tooMuch := err == nil && int64(a) > int64(MaxRate); (err2 == nil) !=
			(err == nil && !tooMuch) || err2 == nil && int64(rate) != int64(a) {
			t.Fatalf("%q is the rate %d, %v", text, rate, err2)
		}
		if err != nil {
			return
		}
		if again, err := ParseAmount(a.String()); err != nil || again != a ||
			!decimal.RequireFromString(a.String()).Equal(a.Decimal()) {
			t.Fatalf("%q is written as %q, which is %d, %v", text, a, again, err)
		}
	})
}

// A decimal of any size is an amount and a balance, or refused at once.
func FuzzFromDecimal(f *testing.F) {
	for _, s := range []string{"0", "1", "-1", "0.5", "1e2147483600", "1e2147483647",
		"0e-2147483648", "1e-2147483648", "0.0000000000000001", "0.00000000000000001",
		"1329227995784915872903.8070602803", "92233720368.54775807", "1e100", "1e101", "10e-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 200 {
			return
		}
		d, err := decimal.NewFromString(text)
		if err != nil {
			return
		}
		if b, err := BalanceFromDecimal(d); err == nil && !b.Decimal().Equal(d) {
			t.Fatalf("%q is the balance %v", text, b)
		} else if again, err2 := BalanceFromDecimal(b.Decimal()); err == nil &&
			(err2 != nil || again != b) {
			t.Fatalf("%q is the balance %v, and then %v, %v", text, b, again, err2)
		}
		if a, err := AmountFromDecimal(d); err == nil && !a.Decimal().Equal(d) {
			t.Fatalf("%q is the amount %v", text, a)
		} else if b, errOfBalance := BalanceFromDecimal(d); err == nil &&
			(errOfBalance != nil || b != a.Balance()) {
			t.Fatalf("%q is the amount %v and the balance %v, %v", text, a, b, errOfBalance)
		}
	})
}
