// Package encode writes values of the API and the stream as JSON. Its functions append to a buffer
// and allocate nothing. Numbers are plain: no exponent, no trailing zeros. See core/money for
// amounts and prices. All of it is in encode.go.
package encode

import (
	"strconv"
	"unicode/utf8"

	"exchange/core/event"
	"exchange/core/market"
	"exchange/core/money"
	"exchange/core/trading"
)

// Maintenance writes the public form of a maintenance: null, if there is none.
func Maintenance(b []byte, m *event.Maintenance) []byte {
	if !m.On {
		return append(b, "null"...)
	}
	b = Text(append(b, `{"message":`...), m.Message)
	if m.Cancels {
		b = append(b, `,"cancels":true`...)
	}
	return append(b, '}')
}

const hexDigits = "0123456789abcdef"

// Text writes a JSON string. Invalid UTF-8 becomes U+FFFD.
func Text(b []byte, s string) []byte {
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

// Seconds writes microseconds as seconds with up to six fractional digits.
func Seconds(b []byte, us int64) []byte {
	b = strconv.AppendInt(b, us/1_000_000, 10)
	f := us % 1_000_000
	if f == 0 {
		return b
	}
	// The compiler turns divisions by constants into multiplications, and a whole book has 100,000
	// of these.
	b = append(b, '.', byte('0'+f/100_000), byte('0'+f/10_000%10), byte('0'+f/1000%10),
		byte('0'+f/100%10), byte('0'+f/10%10), byte('0'+f%10))
	for b[len(b)-1] == '0' {
		b = b[:len(b)-1]
	}
	return b
}

// Side writes "buy" or "sell".
func Side(b []byte, s trading.Side) []byte {
	return append(append(append(b, '"'), s.String()...), '"')
}

// Ticker writes a pair's Ticker.
func Ticker(b []byte, pair string, t *market.Ticker) []byte {
	b = Seconds(append(b, `{"timestamp":`...), t.TimeUs)
	b = Text(append(b, `,"pair":`...), pair)
	b = t.Last.Append(append(b, `,"last":`...))
	b = append(b, `,"diff":`...)
	diff := t.Diff
	if diff < 0 {
		b = append(b, '-')
		diff = -diff
	}
	b = money.Price(diff).Append(b)
	b = t.Volume.Append(append(b, `,"vol":`...))
	b = t.High.Append(append(b, `,"high":`...))
	b = t.Low.Append(append(b, `,"low":`...))
	b = t.Buy.Append(append(b, `,"buy":`...))
	b = t.Sell.Append(append(b, `,"sell":`...))
	return append(b, '}')
}

// Candle writes a candle without its closing brace.
func Candle(b []byte, c *market.Candle) []byte {
	b = strconv.AppendInt(append(b, `{"time":`...), c.Time, 10)
	b = c.Open.Append(append(b, `,"open":`...))
	b = c.High.Append(append(b, `,"high":`...))
	b = c.Low.Append(append(b, `,"low":`...))
	b = c.Close.Append(append(b, `,"close":`...))
	return c.Volume.Append(append(b, `,"volume":`...))
}

// Levels writes one side of a book by level.
func Levels(b []byte, levels []trading.Level) []byte {
	b = append(b, '[')
	for i := range levels {
		if i > 0 {
			b = append(b, ',')
		}
		b = Level(b, levels[i].Price, levels[i].Amount)
	}
	return append(b, ']')
}

// Level writes a price and the amount there.
func Level(b []byte, price money.Price, amount money.Total) []byte {
	b = price.Append(append(b, `{"price":`...))
	b = amount.Append(append(b, `,"amount":`...))
	return append(b, '}')
}

// Trade writes the public form of a trade without its closing brace; side is the taker's.
func Trade(b []byte, id uint64, price money.Price, pair string, side trading.Side, timeUs int64,
	amount money.Amount) []byte {
	b = strconv.AppendUint(append(b, `{"id":`...), id, 10)
	b = price.Append(append(b, `,"price":`...))
	b = append(append(append(b, `,"pair":"`...), pair...), `","type":`...)
	b = Side(b, side)
	b = Seconds(append(b, `,"timestamp":`...), timeUs)
	b = append(b, `,"amount":`...)
	return amount.Append(b)
}
