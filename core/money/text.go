package money

import (
	"errors"
	"math"
	"math/bits"
	"strconv"
)

// Faults of a number's text, each a complete sentence for the sender.
//
//lint:file-ignore ST1005 these texts are shown to clients as they are
var (
	errSyntax    = errors.New("A valid number is required.")
	errPrecision = errors.New("At most 8 fractional digits are possible.")
	ErrRange     = errors.New("The number is too large.")
)

// maxText bounds the text of a number, in bytes. A longer text is an error or an attack.
const maxText = 64

var pow10 = [20]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14,
	1e15, 1e16, 1e17, 1e18, 1e19}

// ParsePrice reads a price from decimal text such as "50000.12" or "1e-7".
// The error is errSyntax, errPrecision or ErrRange; zero is allowed.
func ParsePrice[T string | []byte](s T) (Price, error) {
	v, err := parseFixed(s)
	return Price(v), err
}

// ParseWhole reads a whole number below 1e19: 12, 12.0 and 1.2e1 are the same number. Used for ids
// and counts, not for money.
func ParseWhole[T string | []byte](s T) (n uint64, ok bool) {
	n, err := parseDecimal(s, 0)
	return n, err == nil && n < pow10[19]
}

// ParseAmount reads an amount, by the rules of ParsePrice.
func ParseAmount[T string | []byte](s T) (Amount, error) {
	v, err := parseFixed(s)
	return Amount(v), err
}

// parseFixed reads units of 1e-8.
func parseFixed[T string | []byte](s T) (int64, error) {
	v, err := parseDecimal(s, FixedDecimals)
	if v > math.MaxInt64 {
		return 0, ErrRange
	}
	return int64(v), err
}

// parseDecimal reads digits [. digits] [e [sign] digits] into units of 10^-decimals.
func parseDecimal[T string | []byte](s T, decimals int) (uint64, error) {
	if len(s) == 0 || len(s) > maxText {
		return 0, errSyntax
	}
	var (
		mantissa uint64 // all significant digits read so far, without the point
		scale    int    // how many of those are fractional
		zeros    int    // trailing zeros not yet multiplied into mantissa
		tooLong  bool
		i        int
	)
	digits := func() (n int) {
		for ; i < len(s) && s[i]-'0' <= 9; i++ {
			n++
			d := uint64(s[i] - '0')
			if d == 0 {
				if mantissa != 0 || tooLong {
					zeros++
				}
				continue
			}
			for ; zeros >= 0; zeros-- {
				hi, lo := bits.Mul64(mantissa, 10)
				if hi != 0 {
					tooLong = true
				}
				mantissa = lo
			}
			zeros = 0
			var c uint64
			if mantissa, c = bits.Add64(mantissa, d, 0); c != 0 {
				tooLong = true
			}
		}
		return n
	}
	if digits() == 0 {
		return 0, errSyntax
	}
	if i < len(s) && s[i] == '.' {
		i++
		if scale = digits(); scale == 0 {
			return 0, errSyntax
		}
	}
	exp := 0
	if i < len(s) {
		var ok bool
		if exp, ok = parseExponent(s[i:]); !ok {
			return 0, errSyntax
		}
	}
	if mantissa == 0 && !tooLong {
		return 0, nil
	}
	// The number is mantissa x 10^(zeros-scale+exp); in its units the exponent is greater.
	shift := zeros - scale + exp + decimals
	switch {
	case shift < 0:
		return 0, errPrecision // the last digit of mantissa is not 0: it has more decimals
	case tooLong || shift >= len(pow10):
		return 0, ErrRange
	}
	hi, lo := bits.Mul64(mantissa, pow10[shift])
	if hi != 0 {
		return 0, ErrRange
	}
	return lo, nil
}

// parseExponent reads e [sign] digits, to the end of the text. It clamps exponents far beyond every
// bound to 10,000 or -10,000.
func parseExponent[T string | []byte](s T) (exp int, ok bool) {
	if s[0] != 'e' && s[0] != 'E' {
		return 0, false
	}
	i, negative := 1, false
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		negative = s[i] == '-'
		i++
	}
	if i == len(s) {
		return 0, false
	}
	for ; i < len(s); i++ {
		if s[i]-'0' > 9 {
			return 0, false
		}
		exp = min(exp*10+int(s[i]-'0'), 10_000)
	}
	if negative {
		exp = -exp
	}
	return exp, true
}

// Append writes the price as decimal text.
func (p Price) Append(dst []byte) []byte { return appendFixed(dst, int64(p)) }

// Append writes the amount as decimal text.
func (a Amount) Append(dst []byte) []byte { return appendFixed(dst, int64(a)) }

// Append writes the balance as decimal text.
func (b Balance) Append(dst []byte) []byte { return b.u.append(dst, exactDecimals) }

// Append writes the total as decimal text.
func (t Total) Append(dst []byte) []byte { return t.u.append(dst, FixedDecimals) }

func (p Price) String() string   { return string(p.Append(nil)) }
func (a Amount) String() string  { return string(a.Append(nil)) }
func (b Balance) String() string { return string(b.Append(nil)) }
func (t Total) String() string   { return string(t.Append(nil)) }

// MarshalJSON and its like write a plain JSON number.
func (p Price) MarshalJSON() ([]byte, error)   { return p.Append(nil), nil }
func (a Amount) MarshalJSON() ([]byte, error)  { return a.Append(nil), nil }
func (b Balance) MarshalJSON() ([]byte, error) { return b.Append(nil), nil }

// appendFixed writes units of 1e-8. Public answers are full of these: each digit is one
// multiplication.
func appendFixed(dst []byte, v int64) []byte {
	if v < 0 {
		panic("BUG: a price or an amount is negative")
	}
	dst = strconv.AppendUint(dst, uint64(v)/fixedUnit, 10)
	f := uint32(uint64(v) % fixedUnit)
	if f == 0 {
		return dst
	}
	dst = append(dst, '.', '0'+byte(f/1e7), '0'+byte(f/1e6%10), '0'+byte(f/1e5%10),
		'0'+byte(f/1e4%10),
		'0'+byte(f/1000%10), '0'+byte(f/100%10), '0'+byte(f/10%10), '0'+byte(f%10))
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// appendDecimal writes whole, a point, and fraction as digits places without trailing zeros.
func appendDecimal(dst []byte, whole, fraction uint64, digits int) []byte {
	dst = strconv.AppendUint(dst, whole, 10)
	if fraction == 0 {
		return dst
	}
	for fraction%10 == 0 {
		fraction /= 10
		digits--
	}
	var buf [exactDecimals]byte
	for i := digits - 1; i >= 0; i-- {
		buf[i] = byte('0' + fraction%10)
		fraction /= 10
	}
	dst = append(dst, '.')
	return append(dst, buf[:digits]...)
}

// append writes u units of 10^-decimals.
func (a uint128) append(dst []byte, decimals int) []byte {
	if decimals == FixedDecimals && a.hi == 0 && a.lo <= math.MaxInt64 { // nearly all totals
		return appendFixed(dst, int64(a.lo))
	}
	unit := pow10[decimals]
	// Two long divisions: u = whole*unit + fraction, and whole itself may need more than 64 bits.
	wholeHi, r := a.hi/unit, a.hi%unit
	wholeLo, fraction := bits.Div64(r, a.lo, unit)
	if wholeHi == 0 {
		return appendDecimal(dst, wholeLo, fraction, decimals)
	}
	const chunk = 1e19
	head, rest := bits.Div64(wholeHi%chunk, wholeLo, chunk)
	dst = strconv.AppendUint(dst, head, 10)
	at := len(dst)
	dst = append(dst, "0000000000000000000"...)
	for i := len(dst) - 1; i >= at; i-- {
		dst[i] = byte('0' + rest%10)
		rest /= 10
	}
	if fraction == 0 {
		return dst
	}
	mark := len(dst) // reuse appendDecimal for the fraction: it writes "0.123", and the 0 is cut
	dst = appendDecimal(dst, 0, fraction, decimals)
	return append(dst[:mark], dst[mark+1:]...)
}
