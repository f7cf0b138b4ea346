package api

import (
	"strconv"

	"exchange/actors/committed"
	"exchange/core/money"
	"exchange/gateway/encode"
)

// The parts of answers: functions that append JSON to a buffer and allocate nothing.

// appendOrder writes an Order as in orders/own and order/<pk>.
func appendOrder(b []byte, o *committed.Order, pair string) []byte {
	b = append(b, `{"id":`...)
	b = strconv.AppendUint(b, o.ID, 10)
	b = append(append(append(b, `,"pair":"`...), pair...), `","type":`...)
	b = encode.Side(b, o.Side)
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
	if o.Instructed != "" {
		b = appendInstructed(b, o)
	}
	return append(b, '}')
}

// appendTrade writes the public form of a trade without its closing brace.
func appendTrade(b []byte, t *committed.Trade, pair string) []byte {
	return encode.Trade(b, t.ID, t.Price, pair, t.TakerSide, t.TimeUs, t.Amount)
}

// appendBalance writes a named balance after a comma.
func appendBalance(b []byte, name string, v money.Balance) []byte {
	b = append(append(append(b, `,"`...), name...), `":`...)
	return v.Append(b)
}
