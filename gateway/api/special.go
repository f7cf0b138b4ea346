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

// specialOrder reads an order with instructions, and adds a field error for each bad field or
// combination. req.Special stays nil if the instructions have the values of a plain order.
func (c *Call) specialOrder(req *actors.OrderRequest) {
	i := intent{pair: req.Pair}
	c.readIntent(&i)
	c.checkForce(&i)
	c.checkResting(&i)
	c.resolveTrigger(&i, req.Side)
	c.checkOCO(&i, req.Side)
	c.specialPrice(&i, req)
	if i.has(quoteAmount) {
		c.checkQuoteAmount(&i, req)
	} else {
		c.amount(req)
	}
	c.checkDisplay(&i, req)
	req.Special = i.special(req.Price)
}

// specialPrice reads the price of an order. A market order may omit it: with a trigger it gets the
// worst price beyond the trigger, otherwise the price stays 0.
func (c *Call) specialPrice(i *intent, req *actors.OrderRequest) {
	if _, ok := c.Form.Get("price"); !ok && i.market {
		if i.trigger != 0 && req.Pair != nil && req.Side != 0 {
			req.Price = req.Pair.StopPrice(req.Side, i.trigger)
		}
		i.derived = true
		return
	}
	noted := len(c.fields)
	c.price(req)
	if len(c.fields) == noted && i.good(ocoTriggerPrice) && i.oco.Trigger >= req.Price {
		c.addError("oco_trigger_price", "It must be below price.")
	}
}

// special returns the instructions for the engine, nil for a plain order.
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

// notWith is the error text for a parameter that excludes a value of another parameter.
func notWith(name, value string) string {
	if value != "" {
		name += " " + value
	}
	return "Not possible with " + name + "."
}

// notWithout is the error text for a parameter that requires another.
func notWithout(name string) string { return "Not possible without " + name + "." }

// checkForce adds field errors for a time in force that the order type excludes, for expire_time
// without gtd, and for gtd without expire_time.
func (c *Call) checkForce(i *intent) {
	gtd := i.force == forceGTD
	if i.market && i.good(timeInForce) && i.force != forceIOC && i.force != forceFOK {
		c.addError(c.sentAs(timeInForce), notWith("order_type", "market"))
	}
	switch known := i.bad>>timeInForce&1 == 0; {
	case gtd && !i.has(expireTime):
		c.addError("expire_time", FieldRequired)
	case known && !gtd && i.good(expireTime):
		c.addError("expire_time", notWithout("time_in_force gtd"))
	}
}

// takesOnly returns the name and value of the parameter by which the order never rests. ok is false
// if it may rest.
func (i *intent) takesOnly() (name, value string, ok bool) {
	switch {
	case i.market:
		return "order_type", "market", true
	case i.force == forceIOC, i.force == forceFOK:
		return "time_in_force", i.force.String(), true
	}
	return "", "", false
}

// checkResting adds field errors for instructions of resting orders on an order that never rests.
func (c *Call) checkResting(i *intent) {
	name, value, never := i.takesOnly()
	if !never {
		return
	}
	if i.postOnly {
		c.addError(c.sentAs(postOnly), notWith(name, value))
	}
	if i.good(displayAmount) {
		c.addError(c.sentAs(displayAmount), notWith(name, value))
		i.bad |= 1 << displayAmount
	}
}

// resolveTrigger sets the direction of the trigger, and adds field errors for names that exclude
// each other.
func (c *Call) resolveTrigger(i *intent, side trading.Side) {
	loss, profit := i.has(stopLossPrice), i.has(takeProfitPrice)
	switch {
	case i.good(stopLossPrice) && profit:
		c.addError("stopLossPrice", notWith("takeProfitPrice", ""))
	case i.good(triggerPrice) && loss:
		c.addError(c.sentAs(triggerPrice), givenTwice("stopLossPrice"))
	case i.good(triggerPrice) && profit:
		c.addError(c.sentAs(triggerPrice), givenTwice("takeProfitPrice"))
	}
	if i.good(triggerWhen) {
		switch {
		case loss:
			c.addError("trigger_when", notWith("stopLossPrice", ""))
		case profit:
			c.addError("trigger_when", notWith("takeProfitPrice", ""))
		case !i.has(triggerPrice):
			c.addError("trigger_when", notWithout("trigger_price"))
		}
		return
	}
	if i.when = trading.Fall; (side == trading.Buy) != profit {
		i.when = trading.Rise // a stop-loss of a buy, a take-profit of a sell
	}
}

// checkOCO adds field errors for an order that cannot be half of an OCO. The half without oco_price
// takes as soon as it triggers, so it cannot be post-only.
func (c *Call) checkOCO(i *intent, side trading.Side) {
	if i.good(ocoPrice) && !i.has(ocoTriggerPrice) {
		c.addError("oco_price", notWithout("oco_trigger_price"))
	}
	if !i.good(ocoTriggerPrice) {
		return
	}
	switch {
	case side == trading.Buy:
		c.addError("oco_trigger_price", notWith("type", "buy"))
	case i.market:
		c.addError("oco_trigger_price", notWith("order_type", "market"))
	case i.force != forceGTC && i.force != forcePO:
		c.addError("oco_trigger_price", notWith("time_in_force", i.force.String()))
	case i.trigger != 0:
		c.addError("oco_trigger_price", notWith("trigger_price", ""))
	case i.has(ocoPrice):
		return
	case i.postOnly:
		c.addError(c.sentAs(postOnly), notWith("oco_trigger_price", "without oco_price"))
		return
	case i.force == forcePO:
		c.addError(c.sentAs(timeInForce), notWith("oco_trigger_price", "without oco_price"))
		return
	default:
		return
	}
	i.bad |= 1 << ocoTriggerPrice
}

// checkQuoteAmount adds field errors for a quote_amount that the order cannot spend. The amount it
// buys at the worst price must be within the pair's sizes.
func (c *Call) checkQuoteAmount(i *intent, req *actors.OrderRequest) {
	if _, both := c.Form.Get("amount"); both {
		c.amount(req)
		req.Amount = 0
	}
	if !i.good(quoteAmount) {
		return
	}
	name := c.sentAs(quoteAmount)
	if _, both := c.Form.Get("amount"); both {
		c.addError(name, notWith("amount", ""))
		return
	}
	switch {
	case i.has(triggerPrice) || i.has(stopLossPrice) || i.has(takeProfitPrice):
		c.addError(name, notWith("trigger_price", ""))
	case !i.market && i.bad>>orderType&1 == 0:
		c.addError(name, notWith("order_type", "limit"))
	case req.Side == trading.Sell:
		c.addError(name, notWith("type", "sell"))
	case req.Price > 0 && req.Pair != nil:
		c.checkQuote(i.quote, req)
	}
}

// checkDisplay adds a field error for a display_amount that the pair's rules forbid.
func (c *Call) checkDisplay(i *intent, req *actors.OrderRequest) {
	if !i.good(displayAmount) || req.Pair == nil || req.Amount == 0 {
		return
	}
	if text := req.Pair.DisplayFault(i.display, req.Amount); text != "" {
		c.addError(c.sentAs(displayAmount), text)
	}
}

// The bounds of an order's expire_time, from now on.
const (
	leastLife = time.Second
	mostLife  = 366 * 24 * time.Hour
)

// expireTime reads the expire_time of an order, in Unix microseconds. It returns 0 after adding a
// field error.
func (c *Call) expireTime(p *params.Param) int64 {
	if !c.checkScalar(p) {
		return 0
	}
	noted := len(c.fields)
	us, ok := c.instant(string(p.Name), p.Value, second/1_000_000, false)
	if len(c.fields) > noted {
		return 0
	}
	ahead := us - time.Now().UnixMicro()
	if !ok || ahead < leastLife.Microseconds() || ahead > mostLife.Microseconds() {
		c.addError(string(p.Name), "A time 1 second to 366 days ahead is required.")
		return 0
	}
	return us
}

// checkScalar returns false after adding a field error for a value that is no number or text.
func (c *Call) checkScalar(p *params.Param) bool {
	if !isScalar(p) {
		c.addError(string(p.Name), fieldNotScalar)
		return false
	}
	return true
}

// positiveAmount reads an amount above 0. It returns 0 after adding a field error.
func (c *Call) positiveAmount(p *params.Param) money.Amount {
	if !c.checkScalar(p) {
		return 0
	}
	a, err := money.ParseAmount(p.Value)
	switch {
	case err != nil:
		c.addError(string(p.Name), err.Error())
	case a == 0:
		c.addError(string(p.Name), FieldPositive)
	default:
		return a
	}
	return 0
}

// priceIn reads a price and checks it by the pair's rules. It returns 0 after adding a field error.
func (c *Call) priceIn(p *params.Param, pair *directory.Pair) money.Price {
	if !c.checkScalar(p) {
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
		c.addError(string(p.Name), text)
		return 0
	}
	return price
}
