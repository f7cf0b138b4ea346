package api

import (
	"exchange/actors"
	"exchange/core/event"
)

func (c *Call) prepareAmend() *actors.Command {
	a := c.amendRequest()
	if c.failOnBadFields() {
		return nil
	}
	c.target = target{order: a.Order, clientID: a.ClientID}
	return actors.NewAmend(c.Key, c.Nonce, &a)
}

func (c *Call) finishAmend(cmd *actors.Command) {
	switch rec := cmd.Record(); {
	case cmd.Outcome() == actors.Accepted:
		c.body = appendAmended(c.body, rec)
	case rec.Refusal.Reason == event.RefusedRules:
		c.failAmend(cmd.Faults())
	case rec.Refusal.Reason != event.RefusedNotOpen:
		c.failRefused(cmd, c.amendedShape())
	default:
		c.failNotOpen()
	}
}

// amendRequest reads the order to change and its changes, and adds a field error for each bad one.
// The book checks the rules of the order's pair.
func (c *Call) amendRequest() (a actors.AmendRequest) {
	a.Order, a.ClientID = c.whichOrder()
	var terms actors.OrderRequest
	if _, ok := c.Form.Get("price"); ok {
		c.price(&terms)
	}
	if _, ok := c.Form.Get("amount"); ok {
		c.amount(&terms)
	}
	a.Price, a.Amount = terms.Price, terms.Amount
	var i intent
	c.readIntent(&i)
	c.checkAmend(&i)
	a.Display, a.Trigger, a.ExpireUs = i.display, i.trigger, i.expireUs
	a.PostOnly, a.Slide = i.postOnly, i.slide
	if len(c.fields) == 0 && a == (actors.AmendRequest{Order: a.Order, ClientID: a.ClientID}) {
		c.addError("amount", "One of amount, price, display_amount, trigger_price, expire_time "+
			"and post_only is required.")
	}
	return a
}

// checkAmend adds field errors for instructions that an amend cannot change. The values of a plain
// order are allowed.
func (c *Call) checkAmend(i *intent) {
	for _, n := range [...]int{orderType, timeInForce, quoteAmount, triggerWhen, stopLossPrice,
		takeProfitPrice, ocoTriggerPrice, ocoPrice, selfTrade} {
		plain := n == orderType && !i.market || n == timeInForce && i.force == forceGTC ||
			n == selfTrade && i.mode == 0
		if i.good(n) && !plain {
			c.addError(c.sentAs(n), "It cannot be amended.")
		}
	}
}

// failAmend writes the response for fields of an amend that the order's rules forbid.
func (c *Call) failAmend(list []actors.Fault) {
	for _, f := range list {
		name := f.Field
		if n, ok := instructionNamed[name]; ok {
			name = c.sentAs(n)
		}
		c.addError(name, f.Text)
	}
	c.failOnBadFields()
}

// amendedShape returns side and pair of the amended order, zero if it was not found.
func (c *Call) amendedShape() orderShape {
	if o, found, err := c.orderNamed(); err == nil && found {
		return orderShape{o.Side, c.public.Market(o.Pair).Name}
	}
	return orderShape{}
}

// appendAmended writes the result of an amend.
func appendAmended(b []byte, rec *event.Record) []byte {
	b = appendAccepted(b, rec)
	if !rec.Instructions.IsZero() || rec.Trigger.When != 0 {
		b = appendOutcome(b, rec)
	}
	if rec.Amended.Kept {
		return append(b, `,"priority":"kept"}`...)
	}
	return append(b, `,"priority":"lost"}`...)
}
