package api

import (
	"strconv"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/core/ledger"
	"exchange/core/trading"
	"exchange/gateway/encode"
)

// The rows of an account's lists. The event stream sends changes in the same form.

// AppendOwnOrder writes a row of orders/own.
func AppendOwnOrder(b []byte, p *actors.Public, o *committed.Order) []byte {
	return appendOrder(b, o, p.Market(o.Pair).Name)
}

// AppendOwnTrade writes a row of exchanges/own. With both, the row of a trade of the account with
// itself also has the maker's order and fee.
func AppendOwnTrade(b []byte, p *actors.Public, t *committed.OwnTrade, both bool) []byte {
	mine, fee := t.TakerSide, t.TakerFee
	if t.Maker {
		mine, fee = t.TakerSide.Opposite(), t.MakerFee
	}
	m := p.Market(t.Pair)
	received := m.Quote
	if mine == trading.Buy {
		received = m.Base
	}
	b = appendTrade(b, &t.Trade, m.Name)
	b = encode.Side(append(b, `,"my_side":`...), mine)
	b = appendBalance(b, "fee", fee)
	b = encode.Text(append(b, `,"fee_currency":`...), received)
	b = strconv.AppendUint(append(b, `,"order":`...), t.Order, 10)
	if t.ClientID != "" {
		b = append(append(append(b, `,"client_order_id":"`...), t.ClientID...), '"')
	}
	b = strconv.AppendBool(append(b, `,"maker":`...), t.Maker)
	if both && t.Trade.Taker == t.Trade.Maker {
		b = strconv.AppendUint(append(b, `,"maker_order":`...), t.MakerOrder, 10)
		b = appendBalance(b, "maker_fee", t.MakerFee)
	}
	return append(b, '}')
}

// AppendDeposit writes a row of deposits.
func AppendDeposit(b []byte, p *actors.Public, d *committed.Deposit) []byte {
	b = strconv.AppendUint(append(b, `{"id":`...), d.ID, 10)
	b = encode.Seconds(append(b, `,"timestamp":`...), d.TimeUs)
	b = encode.Text(append(b, `,"currency":`...), p.CurrencyCode(d.Currency))
	return append(d.Amount.Append(append(b, `,"amount":`...)), '}')
}

// AppendWithdrawal writes a row of withdrawals.
func AppendWithdrawal(b []byte, p *actors.Public, w *committed.Withdrawal) []byte {
	return appendWithdrawal(b, w, p.CurrencyCode(w.Currency))
}

// AppendHolding writes a row of wallets.
func AppendHolding(b []byte, currency string, h ledger.Holding) []byte {
	b = encode.Text(append(b, `{"currency":`...), currency)
	b = appendBalance(b, "balance", h.Balance)
	return append(appendBalance(b, "reserve", h.Reserve), '}')
}

// WholeNumber parses an optional member of a private event's fields, 0 if text is empty. It returns
// false after writing an error response.
func (c *Call) WholeNumber(name string, text []byte) (uint64, bool) {
	if len(text) == 0 {
		return 0, true
	}
	n, ok := Integer(text)
	if !ok {
		c.BadField(name, FieldInteger)
	}
	return n, ok
}

// FailRead writes the response for a read's error.
func (c *Call) FailRead(err error) { c.failRead(err) }
