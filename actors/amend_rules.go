package actors

import (
	"exchange/actors/directory"
	"exchange/core/matching"
	"exchange/core/money"
	"exchange/core/trading"
)

// faults returns the faults of a change itself: its numbers break the pair's rules, or a field does
// not apply to the order. They depend on the order, so its book checks them.
func (x *change) faults(a *amendRequest, p *directory.Pair) (list []Fault) {
	note := func(field, text string) {
		if text != "" {
			list = append(list, Fault{field, text})
		}
	}
	if a.Price != 0 {
		note("price", p.PriceFault(a.Price))
	}
	if a.Amount != 0 {
		note("amount", x.amountFault(p))
	}
	if len(list) == 0 && (a.Price != 0 || a.Amount != 0) && x.amount > x.filledAmount() {
		field := "amount"
		if a.Amount == 0 {
			field = "price"
		}
		note(field, p.ValueFault(x.price, x.amount))
	}
	if a.Display != 0 {
		note("display_amount", p.DisplayFault(a.Display, x.amount))
	}
	if a.Trigger != 0 {
		note("trigger_price", x.triggerFault(a, p))
	} else if x.stop.InBook && x.is.OCO.Trigger >= x.price {
		note("price", "It must be above oco_trigger_price.")
	}
	return x.ocoFaults(a, x.restingFaults(a, list))
}

// ocoFaults adds what an order cannot become while its other half waits: the other half has no
// expiry, and without a price of its own it takes at once.
func (x *change) ocoFaults(a *amendRequest, list []Fault) []Fault {
	if !x.stop.InBook {
		return list
	}
	if a.ExpireUs != 0 {
		list = append(list, Fault{"expire_time", "Not possible with oco_trigger_price."})
	}
	if (a.PostOnly || a.Slide) && x.is.OCO.Price == 0 {
		list = append(list, Fault{"post_only",
			"Not possible with oco_trigger_price without oco_price."})
	}
	return list
}

// amountFault checks a new amount. One that closes the order may be below the minimum.
func (x *change) amountFault(p *directory.Pair) string {
	if x.amount <= x.filledAmount() {
		return p.StepFault(x.amount)
	}
	if text := p.AmountFault(x.amount); text != "" {
		return text
	}
	if x.is.Display != 0 && directory.TooManyParts(x.is.Display, x.amount) {
		return "It must be at most 20 times display_amount."
	}
	return ""
}

// triggerFault checks a new trigger price.
func (x *change) triggerFault(a *amendRequest, p *directory.Pair) string {
	switch {
	case x.stop.Order.ID == 0:
		return "The order waits for no trigger."
	case x.stop.InBook && a.Trigger >= x.price:
		return "It must be below price."
	}
	return p.PriceFault(a.Trigger)
}

// restingFaults adds the fields that do not apply to an order that never rests.
func (x *change) restingFaults(a *amendRequest, list []Fault) []Fault {
	if mayRest(&x.is.Instructions) {
		return list
	}
	text := "Not possible with " + neverRestsBy(&x.is.Instructions) + "."
	if a.PostOnly || a.Slide {
		list = append(list, Fault{"post_only", text})
	}
	if a.Display != 0 {
		list = append(list, Fault{"display_amount", text})
	}
	if a.ExpireUs != 0 {
		list = append(list, Fault{"expire_time", text})
	}
	return list
}

// neverRestsBy names the instruction that keeps an order from resting.
func neverRestsBy(i *trading.Instructions) string {
	switch {
	case i.Market:
		return "order_type market"
	case i.FOK:
		return "time_in_force fok"
	}
	return "time_in_force ioc"
}

// A change is an amend during its decision: the open order before and after it.
type change struct {
	was     trading.Order
	stop    matching.Stop // id 0: the order waits for no trigger
	is      orderExtra    // Instructions as requested, without results
	price   money.Price
	amount  money.Amount
	trigger trading.Trigger // of an order that waits outside the book
}

// outside reports whether the order waits outside the book.
func (x *change) outside() bool { return x.stop.Order.ID != 0 && !x.stop.InBook }

// keepsPriority reports whether the order keeps its queue position.
func (x *change) keepsPriority() bool { return x.price == x.was.Price && x.amount <= x.was.Amount }

// filledAmount returns the amount filled so far.
func (x *change) filledAmount() money.Amount { return x.was.Amount - x.was.Remaining }
