package api

import (
	"time"

	"exchange/actors"
	"exchange/actors/directory"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/gateway/params"
)

// The rules of orders with instructions: the range of each number, and the combinations.

// specialOrder reads an order that has instructions in its form. It records each bad field, and bad
// combinations. An order whose instructions ask for nothing more than a plain order stays without
// w.Special.
func (c *Call) specialOrder(w *actors.OrderRequest) {
	i := intent{pair: w.Pair}
	c.readIntent(&i)
	c.ruleForce(&i)
	c.ruleResting(&i)
	c.ruleTrigger(&i, w.Side)
	c.ruleOCO(&i, w.Side)
	c.specialPrice(&i, w)
	if i.has(quoteAmount) {
		c.ruleQuote(&i, w)
	} else {
		c.amount(w)
	}
	c.ruleDisplay(&i, w)
	w.Special = i.special(w.Price)
}

// specialPrice reads the price of an order. A market order needs none: one that waits gets the
// worst price beyond its trigger, any other has none.
func (c *Call) specialPrice(i *intent, w *actors.OrderRequest) {
	if _, ok := c.Form.Get("price"); !ok && i.market {
		if i.trigger != 0 && w.Pair != nil && w.Side != 0 {
			w.Price = w.Pair.StopPrice(w.Side, i.trigger)
		}
		i.derived = true
		return
	}
	noted := len(c.fields)
	c.price(w)
	if len(c.fields) == noted && i.good(ocoTriggerPrice) && i.oco.Trigger >= w.Price {
		c.bad("oco_trigger_price", "It must be below price.")
	}
}

// special returns the instructions for the engine, nil for those of a plain order.
func (i *intent) special(price money.Price) *actors.SpecialRequest {
	s := &actors.SpecialRequest{SelfTradeGiven: i.has(selfTrade)}
	s.Market, s.Derived = i.market, i.derived
	s.FOK = i.force == forceFOK
	s.IOC = i.force == forceIOC || i.market && !s.FOK
	s.PostOnly = i.postOnly || i.force == forcePO
	if i.slide {
		s.Asked = price
	}
	s.ExpireUs, s.Display, s.Quote, s.SelfTrade = i.expireUs, i.display, i.quote, i.mode
	s.OCO = i.oco
	if i.trigger != 0 {
		s.Trigger = trading.Trigger{Price: i.trigger, When: i.when}
	}
	if s.IsZero() && s.Trigger == (trading.Trigger{}) && !s.SelfTradeGiven {
		return nil
	}
	return s
}

// notWith is the text for a parameter that does not go together with the value of another.
func notWith(name, value string) string {
	if value != "" {
		name += " " + value
	}
	return "Not possible with " + name + "."
}

// notWithout is the text for a parameter that needs another.
func notWithout(name string) string { return "Not possible without " + name + "." }

// ruleForce records a time in force that does not fit the type of the order, and an end without gtd
// or gtd without an end.
func (c *Call) ruleForce(i *intent) {
	gtd := i.force == forceGTD
	if i.market && i.good(timeInForce) && i.force != forceIOC && i.force != forceFOK {
		c.bad(c.sentAs(timeInForce), notWith("order_type", "market"))
	}
	switch known := i.bad>>timeInForce&1 == 0; {
	case gtd && !i.has(expireTime):
		c.bad("expire_time", FieldRequired)
	case known && !gtd && i.good(expireTime):
		c.bad("expire_time", notWithout("time_in_force gtd"))
	}
}

// takesOnly returns the name and value that mark an order which never rests, for the text about a
// parameter of resting orders. ok is false for any other order.
func (i *intent) takesOnly() (name, value string, ok bool) {
	switch {
	case i.market:
		return "order_type", "market", true
	case i.force == forceIOC, i.force == forceFOK:
		return "time_in_force", i.force.String(), true
	}
	return "", "", false
}

// ruleResting records instructions for resting orders on an order that never rests.
func (c *Call) ruleResting(i *intent) {
	name, value, never := i.takesOnly()
	if !never {
		return
	}
	if i.postOnly {
		c.bad(c.sentAs(postOnly), notWith(name, value))
	}
	if i.good(displayAmount) {
		c.bad(c.sentAs(displayAmount), notWith(name, value))
		i.bad |= 1 << displayAmount
	}
}

// ruleTrigger finds the direction of the trigger. It records names that do not fit together.
func (c *Call) ruleTrigger(i *intent, side trading.Side) {
	loss, profit := i.has(stopLossPrice), i.has(takeProfitPrice)
	switch {
	case i.good(stopLossPrice) && profit:
		c.bad("stopLossPrice", notWith("takeProfitPrice", ""))
	case i.good(triggerPrice) && loss:
		c.bad(c.sentAs(triggerPrice), givenTwice("stopLossPrice"))
	case i.good(triggerPrice) && profit:
		c.bad(c.sentAs(triggerPrice), givenTwice("takeProfitPrice"))
	}
	if i.good(triggerWhen) {
		switch {
		case loss:
			c.bad("trigger_when", notWith("stopLossPrice", ""))
		case profit:
			c.bad("trigger_when", notWith("takeProfitPrice", ""))
		case !i.has(triggerPrice):
			c.bad("trigger_when", notWithout("trigger_price"))
		}
		return
	}
	if i.when = trading.Fall; (side == trading.Buy) != profit {
		i.when = trading.Rise // a stop-loss of a buy, a take-profit of a sell
	}
}

// ruleOCO records an order that cannot have another half. One without a price of its own takes at
// once, so it would only be cancelled if it might not take.
func (c *Call) ruleOCO(i *intent, side trading.Side) {
	if i.good(ocoPrice) && !i.has(ocoTriggerPrice) {
		c.bad("oco_price", notWithout("oco_trigger_price"))
	}
	if !i.good(ocoTriggerPrice) {
		return
	}
	switch {
	case side == trading.Buy:
		c.bad("oco_trigger_price", notWith("type", "buy"))
	case i.market:
		c.bad("oco_trigger_price", notWith("order_type", "market"))
	case i.force != forceGTC && i.force != forcePO:
		c.bad("oco_trigger_price", notWith("time_in_force", i.force.String()))
	case i.trigger != 0:
		c.bad("oco_trigger_price", notWith("trigger_price", ""))
	case i.has(ocoPrice):
		return
	case i.postOnly:
		c.bad(c.sentAs(postOnly), notWith("oco_trigger_price", "without oco_price"))
		return
	case i.force == forcePO:
		c.bad(c.sentAs(timeInForce), notWith("oco_trigger_price", "without oco_price"))
		return
	default:
		return
	}
	i.bad |= 1 << ocoTriggerPrice
}

// ruleQuote records a sum that the order cannot spend. The amount it buys at the worst price must
// be within the pair's sizes.
func (c *Call) ruleQuote(i *intent, w *actors.OrderRequest) {
	if _, both := c.Form.Get("amount"); both {
		c.amount(w)
		w.Amount = 0
	}
	if !i.good(quoteAmount) {
		return
	}
	name := c.sentAs(quoteAmount)
	if _, both := c.Form.Get("amount"); both {
		c.bad(name, notWith("amount", ""))
		return
	}
	switch {
	case i.has(triggerPrice) || i.has(stopLossPrice) || i.has(takeProfitPrice):
		c.bad(name, notWith("trigger_price", ""))
	case !i.market && i.bad>>orderType&1 == 0:
		c.bad(name, notWith("order_type", "limit"))
	case w.Side == trading.Sell:
		c.bad(name, notWith("type", "sell"))
	case w.Price > 0 && w.Pair != nil:
		c.quoteRules(i.quote, w)
	}
}

// ruleDisplay records a part of an iceberg that the pair does not take.
func (c *Call) ruleDisplay(i *intent, w *actors.OrderRequest) {
	if !i.good(displayAmount) || w.Pair == nil || w.Amount == 0 {
		return
	}
	if text := w.Pair.DisplayFault(i.display, w.Amount); text != "" {
		c.bad(c.sentAs(displayAmount), text)
	}
}

// The bounds of an order's end, from now on.
const (
	leastLife = time.Second
	mostLife  = 366 * 24 * time.Hour
)

// expireTime reads the end of an order in microseconds. It records an impossible one.
func (c *Call) expireTime(p *params.Param) int64 {
	if !c.scalar(p) {
		return 0
	}
	noted := len(c.fields)
	us, ok := c.instant(string(p.Name), p.Value, second/1_000_000, false)
	if len(c.fields) > noted {
		return 0
	}
	ahead := us - time.Now().UnixMicro()
	if !ok || ahead < leastLife.Microseconds() || ahead > mostLife.Microseconds() {
		c.bad(string(p.Name), "A time 1 second to 366 days ahead is required.")
		return 0
	}
	return us
}

// scalar reports whether a value is a number or a text. It records any other.
func (c *Call) scalar(p *params.Param) bool {
	if !isScalar(p) {
		c.bad(string(p.Name), fieldNotScalar)
		return false
	}
	return true
}

// positiveAmount reads an amount above 0. It records a bad one, and returns 0.
func (c *Call) positiveAmount(p *params.Param) money.Amount {
	if !c.scalar(p) {
		return 0
	}
	a, err := money.ParseAmount(p.Value)
	switch {
	case err != nil:
		c.bad(string(p.Name), err.Error())
	case a == 0:
		c.bad(string(p.Name), FieldPositive)
	default:
		return a
	}
	return 0
}

// priceIn reads a price that the pair takes. It records a bad one, and returns 0.
func (c *Call) priceIn(p *params.Param, pair *directory.Pair) money.Price {
	if !c.scalar(p) {
		return 0
	}
	price, err := money.ParsePrice(p.Value)
	text := ""
	switch {
	case err != nil:
		text = err.Error()
	case price == 0:
		text = FieldPositive
	case pair != nil:
		text = pair.PriceFault(price)
	}
	if text != "" {
		c.bad(string(p.Name), text)
		return 0
	}
	return price
}
