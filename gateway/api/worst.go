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

// worstPrice gives a market order its price: the best opposite price, and the pair's collar beyond
// it. The book of the committed side counts, which includes everything answered before. False: the
// call is answered, because the other side is empty, or the order is too small or too large at that
// price.
func (c *Call) worstPrice(w *actors.OrderRequest) bool {
	best, err := c.best(w)
	switch {
	case err != nil:
		c.readFailed(err)
		return false
	case best == 0:
		c.forbid(NoLiquidity, time.Now().UnixMicro(), w.Pair.Name)
		return false
	}
	w.Price = trading.Furthest(w.Side, best, w.Pair.Rules().MarketCollar, w.Pair.PriceTick)
	if w.Special.Quote != 0 {
		c.quoteRules(w.Special.Quote, w)
	} else if text := w.Pair.ValueFault(w.Price, w.Amount); text != "" {
		c.bad("amount", text)
	}
	return !c.badFields()
}

// best returns the best price on the other side of an order, 0 if there is none.
func (c *Call) best(w *actors.OrderRequest) (money.Price, error) {
	v, err := c.public.View(committed.ViewTicker, w.Pair, 0, 0, 0)
	if err != nil {
		return 0, err
	}
	return bestFor(w.Side, v), nil
}

func bestFor(side trading.Side, v *committed.View) money.Price {
	if side == trading.Buy {
		return v.Ticker.Sell
	}
	return v.Ticker.Buy
}

// quoteRules records a sum that is below the pair's minimum, or that buys too little or too much at
// the order's price.
func (c *Call) quoteRules(quote money.Amount, w *actors.OrderRequest) {
	text, rules := "", w.Pair.Rules()
	switch buys := bought(quote, w.Price, w.Pair); {
	case quote.Balance().Cmp(rules.MinimumOrderValue) < 0:
		text = "It must be at least " + rules.MinimumOrderValue.String() + "."
	case buys < rules.MinimumOrderSize:
		text = "It buys less than " + rules.MinimumOrderSize.String() + " at " +
			w.Price.String() + "."
	case buys > rules.MaximumOrderSize:
		text = "It buys more than " + rules.MaximumOrderSize.String() + " at " +
			w.Price.String() + "."
	default:
		return
	}
	c.bad(c.sentAs(quoteAmount), text)
}

// bought returns the amount that a sum buys at a price, in whole steps.
func bought(quote money.Amount, price money.Price, pair *directory.Pair) money.Amount {
	hi, lo := quote.Balance().Bits()
	if hi >= uint64(price) {
		return money.MaxAmount
	}
	n, _ := bits.Div64(hi, lo, uint64(price))
	a := money.Amount(min(n, uint64(money.MaxAmount)))
	return a - a%pair.AmountStep
}
