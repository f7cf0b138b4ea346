package api

import (
	"math/bits"
	"time"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/money"
	"exchange/core/trading"
)

// setWorstPrice sets the price of a market order: the best price of the other side in the committed
// book, plus the pair's collar. It returns false after writing an error response: the other side is
// empty, or the order is too small or too large at that price.
func (c *Call) setWorstPrice(req *actors.OrderRequest) bool {
	best, err := c.best(req)
	switch {
	case err != nil:
		c.failRead(err)
		return false
	case best == 0:
		c.forbid(NoLiquidity, time.Now().UnixMicro(), req.Pair.Name)
		return false
	}
	req.Price = trading.Furthest(req.Side, best, req.Pair.Rules().MarketCollar, req.Pair.PriceTick)
	if req.Special.Quote != 0 {
		c.checkQuote(req.Special.Quote, req)
	} else if text := req.Pair.ValueFault(req.Price, req.Amount); text != "" {
		c.addError("amount", text)
	}
	return !c.failOnBadFields()
}

// best returns the best price on the other side of an order; 0: none.
func (c *Call) best(req *actors.OrderRequest) (money.Price, error) {
	v, err := c.public.View(committed.ViewTicker, req.Pair, 0, 0, 0)
	if err != nil {
		return 0, err
	}
	return bestFor(req.Side, v), nil
}

func bestFor(side trading.Side, v *committed.View) money.Price {
	if side == trading.Buy {
		return v.Ticker.Sell
	}
	return v.Ticker.Buy
}

// checkQuote adds a field error for a quote amount below the pair's minimum, or that buys too
// little or too much at the order's price.
func (c *Call) checkQuote(quote money.Amount, req *actors.OrderRequest) {
	text, rules := "", req.Pair.Rules()
	switch buys := bought(quote, req.Price, req.Pair); {
	case quote.Balance().Cmp(rules.MinimumOrderValue) < 0:
		text = "It must be at least " + rules.MinimumOrderValue.String() + "."
	case buys < rules.MinimumOrderSize:
		text = "It buys less than " + rules.MinimumOrderSize.String() + " at " +
			req.Price.String() + "."
	case buys > rules.MaximumOrderSize:
		text = "It buys more than " + rules.MaximumOrderSize.String() + " at " +
			req.Price.String() + "."
	default:
		return
	}
	c.addError(c.sentAs(quoteAmount), text)
}

// bought returns the amount that quote buys at a price, in whole steps.
func bought(quote money.Amount, price money.Price, pair *directory.Pair) money.Amount {
	hi, lo := quote.Balance().Bits()
	if hi >= uint64(price) {
		return money.MaxAmount
	}
	n, _ := bits.Div64(hi, lo, uint64(price))
	a := money.Amount(min(n, uint64(money.MaxAmount)))
	return a - a%pair.AmountStep
}
