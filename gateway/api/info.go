package api

import (
	"slices"
	"strconv"
	"time"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/gateway/encode"
)

// Rates are an edge's request limits, for exchange-info.
type Rates struct{ Public, Reads, Commands, Cancels Rate }

// A Rate is a request limit: a steady rate and a burst. The zero Rate is no limit.
//
//tidy:keep an edge converts a rate of its own into one
type Rate struct{ PerSecond, Burst int }

func (c *Call) time() {
	c.body = append(encode.Seconds(append(c.body, `{"time":`...), time.Now().UnixMicro()), '}')
}

// exchangeInfo writes everything that a client should know before its first order. A signed call
// also gets the deposit instructions.
func (c *Call) exchangeInfo() {
	var now committed.StatusNow
	if err := c.public.Ask(&now, c.Key, c.Nonce); err != nil {
		c.failRead(err)
		return
	}
	b := encode.Seconds(append(c.body, `{"time":`...), time.Now().UnixMicro())
	b = append(b, `,"maintenance":`...)
	b = encode.Maintenance(b, &now.Maintenance)
	config := c.api.configured.Load()
	b = append(append(b, `,"limits":`...), config.limits...)
	b = append(b, `,"pairs":[`...)
	for i, p := range c.public.Pairs() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, config.rules[i]...)
		b = encode.Text(append(b, `,"status":`...), statusOf(now.Status, p))
		b = append(b, '}')
	}
	b = append(append(b, ']'), c.api.demo...)
	if c.Key != nil {
		b = append(b, config.deposits...)
	}
	c.body = append(b, '}')
}

// Whether a pair takes orders, in the words of exchange-info.
const (
	StatusTrading = "trading"
	StatusHalted  = "halted"
)

func statusOf(now *committed.Status, p *directory.Pair) string {
	if _, halted := slices.BinarySearch(now.Halted, p.Number); halted {
		return StatusHalted
	}
	return StatusTrading
}

// appendPair writes a pair as in pairs/.
func appendPair(b []byte, p *directory.PairRules) []byte {
	return append(appendRules(b, p), '}')
}

// appendRules is appendPair without the closing brace.
func appendRules(b []byte, p *directory.PairRules) []byte {
	b = encode.Text(append(b, `{"name":`...), p.Name)
	b = encode.Text(append(b, `,"currency1":`...), p.Base)
	b = encode.Text(append(b, `,"currency2":`...), p.Quote)
	b = p.MinimumOrderSize.Append(append(b, `,"minimum_order_size":`...))
	b = p.MaximumOrderSize.Append(append(b, `,"maximum_order_size":`...))
	b = p.MinimumOrderValue.Append(append(b, `,"minimum_order_value":`...))
	b = strconv.AppendInt(append(b, `,"price_precision":`...), int64(p.PricePrecision), 10)
	return strconv.AppendInt(append(b, `,"amount_precision":`...), int64(p.AmountPrecision), 10)
}

// appendAllRules writes a pair of exchange-info, up to its status.
func appendAllRules(b []byte, p *directory.PairRules) []byte {
	b = p.PriceTick.Append(append(appendRules(b, p), `,"price_tick":`...))
	b = p.AmountStep.Append(append(b, `,"amount_step":`...))
	b = p.MarketCollar.Append(append(b, `,"market_collar":`...))
	b = p.StopCollar.Append(append(b, `,"stop_collar":`...))
	b = p.PriceBand.Append(append(b, `,"price_band":`...))
	b = p.Fees.Maker.Append(append(b, `,"maker_fee":`...))
	return p.Fees.Taker.Append(append(b, `,"taker_fee":`...))
}

// appendLimits writes the limits of each client.
func appendLimits(b []byte, r *Rates, l actors.Limits, batch int) []byte {
	b = append(b, `{"rates":{`...)
	for i, x := range [...]struct {
		name string
		Rate
	}{{"public", r.Public}, {"reads", r.Reads}, {"commands", r.Commands}, {"cancels", r.Cancels}} {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(encode.Text(b, x.name), ':')
		if x.Rate == (Rate{}) {
			b = append(b, "null"...)
			continue
		}
		b = strconv.AppendInt(append(b, `{"per_second":`...), int64(x.PerSecond), 10)
		b = append(strconv.AppendInt(append(b, `,"burst":`...), int64(x.Burst), 10), '}')
	}
	b = append(b, '}')
	for _, x := range [...]struct {
		name string
		n    int
	}{{"batch", batch}, {"open_orders_per_account", l.OpenOrdersPerAccount},
		{"open_orders_per_account_and_book", l.OpenOrdersPerAccountAndBook},
		{"open_orders_per_book", l.OpenOrdersPerBook},
		{"stops_per_account", l.StopsPerAccountAndBook}, {"stops_per_book", l.StopsPerBook},
		{"gtd_per_account", l.GTDPerAccountAndBook}, {"gtd_per_book", l.GTDPerBook},
		{"max_fills", l.MaxFills}} {
		b = append(encode.Text(append(b, ','), x.name), ':')
		b = strconv.AppendInt(b, int64(x.n), 10)
	}
	return append(b, '}')
}
