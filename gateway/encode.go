package gateway

import (
	"strconv"
	"unicode/utf8"

	"exchange/core/matching"
	"exchange/core/money"
	"exchange/persistence"
)

// What the answers are made of: functions that append JSON to a buffer and allocate nothing.

const hexDigits = "0123456789abcdef"

// appendText writes a JSON string. Invalid UTF-8 becomes U+FFFD.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			b = utf8.AppendRune(b, r)
			i += n
			continue
		}
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ' || c == 0x7f || c == '<' || c == '>' || c == '&':
			b = append(b, `\u00`...)
			b = append(b, hexDigits[c>>4], hexDigits[c&15])
		default:
			b = append(b, c)
		}
		i++
	}
	return append(b, '"')
}

// appendSeconds writes microseconds as seconds with up to six fractional digits.
func appendSeconds(b []byte, us int64) []byte {
	b = strconv.AppendInt(b, us/1_000_000, 10)
	f := us % 1_000_000
	if f == 0 {
		return b
	}
	// Divisions by constants are multiplications; a whole book has 100,000 of these.
	b = append(b, '.', byte('0'+f/100_000), byte('0'+f/10_000%10), byte('0'+f/1000%10), byte('0'+f/100%10), byte('0'+f/10%10), byte('0'+f%10))
	for b[len(b)-1] == '0' {
		b = b[:len(b)-1]
	}
	return b
}

func appendSide(b []byte, s matching.Side) []byte {
	return append(append(append(b, '"'), s.String()...), '"')
}

// appendOrder writes an Order as orders/own and order/<pk> show it.
func appendOrder(b []byte, o *persistence.Order, pair string) []byte {
	b = append(b, `{"id":`...)
	b = strconv.AppendUint(b, o.ID, 10)
	b = append(append(append(b, `,"pair":"`...), pair...), `","type":`...)
	b = appendSide(b, o.Side)
	b = append(b, `,"status":`...)
	b = strconv.AppendUint(b, uint64(o.Status), 10)
	b = append(b, `,"price":`...)
	b = o.Price.Append(b)
	b = append(b, `,"amount":`...)
	b = o.Remaining.Append(b)
	b = append(b, `,"amount_filled":`...)
	b = (o.Amount - o.Remaining).Append(b)
	b = append(b, `,"amount_original":`...)
	b = o.Amount.Append(b)
	b = append(b, `,"date":`...)
	b = strconv.AppendInt(b, o.TimeUs/1000, 10)
	if o.ClientID != "" {
		b = append(append(append(b, `,"client_order_id":"`...), o.ClientID...), '"')
	}
	return append(b, '}')
}

// appendTrade writes the public form of a trade without its closing brace.
func appendTrade(b []byte, t *persistence.Trade, pair string) []byte {
	b = append(b, `{"id":`...)
	b = strconv.AppendUint(b, t.ID, 10)
	b = append(b, `,"price":`...)
	b = t.Price.Append(b)
	b = append(append(append(b, `,"pair":"`...), pair...), `","type":`...)
	b = appendSide(b, t.TakerSide)
	b = append(b, `,"timestamp":`...)
	b = appendSeconds(b, t.TimeUs)
	b = append(b, `,"amount":`...)
	return t.Amount.Append(b)
}

// appendBalance writes a named balance after a comma.
func appendBalance(b []byte, name string, v money.Balance) []byte {
	b = append(append(append(b, `,"`...), name...), `":`...)
	return v.Append(b)
}
