package api

import (
	"exchange/actors/committed"
	"exchange/core/ledger"
	"exchange/core/trading"
)

func (c *Call) wallets() {
	only := c.currency("currency_id")
	if c.failOnBadFields() {
		return
	}
	wallet, err := c.public.Wallet(c.readingClient())
	if err != nil {
		c.failRead(err)
		return
	}
	defer wallet.Free()
	b := append(c.body, '[')
	for _, currency := range c.public.Currencies() {
		if only != nil && currency.Number != only.Number {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = AppendHolding(b, currency.Code, Holding(wallet.Holdings, currency.Number))
	}
	c.body = append(b, ']')
}

// Holding returns an account's holding of a currency.
func Holding(all []ledger.Holding, currency uint16) ledger.Holding {
	for _, h := range all {
		if h.Currency == currency {
			return h
		}
	}
	return ledger.Holding{}
}

// MaxOrders is the default and the largest limit of orders/own.
const MaxOrders = 2000

func (c *Call) ownOrders() {
	q := committed.OrderQuery{Side: c.side("type"), Pair: c.everPair(),
		ClientID: c.clientID(&c.Query), Before: c.before(), Status: c.orderStatus(),
		Waiting: c.waiting(), Offset: c.offset(), Limit: c.limit("limit", MaxOrders, MaxOrders)}
	if c.failOnBadFields() {
		return
	}
	list, err := c.public.Orders(c.readingClient(), q)
	answerRows(c, list, err, func(b []byte, o *committed.Order) []byte {
		return AppendOwnOrder(b, c.public, o)
	})
}

// orderStatus returns the parameter status, 0 without it.
func (c *Call) orderStatus() uint8 {
	p, ok := c.Query.Get("status")
	if !ok {
		return 0
	}
	n, ok := Integer(p.Value)
	if !ok || n < trading.StatusActive || n > trading.StatusDone {
		c.addError("status", fieldChoice+" It must be 1, 2 or 3.")
		return 0
	}
	return uint8(n)
}

// waiting returns the parameter waiting, 0 without it.
func (c *Call) waiting() committed.WaitFilter {
	_, given := c.Query.Get("waiting")
	switch {
	case c.flag(&c.Query, "waiting"):
		return committed.OnlyWaiting
	case given:
		return committed.NotWaiting
	}
	return 0
}

func (c *Call) order() {
	id, _ := Digits([]byte(c.Path.Order)) // the edge has checked that it is one
	o, found, err := c.public.Order(c.readingClient(), id)
	switch {
	case err != nil:
		c.failRead(err)
	case !found:
		c.Fail(NotFound, "")
	default:
		c.body = appendOrder(c.body, &o, c.public.Market(o.Pair).Name)
	}
}

func (c *Call) ownTrades() {
	q := committed.TradeQuery{Pair: c.everPair()}
	taker, own := c.side("type"), c.side("my_side")
	both := c.flag(&c.Query, "both_sides")
	if c.tradePage(&q); c.failOnBadFields() {
		return
	}
	list, err := c.public.OwnTrades(c.readingClient(), taker, own, q)
	answerRows(c, list, err, func(b []byte, t *committed.OwnTrade) []byte {
		return AppendOwnTrade(b, c.public, t, both)
	})
}
