package actors

import (
	"exchange/actors/directory"
	"exchange/core/matching"
	"exchange/core/money"
	"exchange/core/trading"
)

// faults returns what is wrong with a change by itself: its numbers do not fit the rules of the
// pair, or the order has no use for it. They depend on the order, so its book looks for them.
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
	if len(list) == 0 && (a.Price != 0 || a.Amount != 0) && x.amount > x.filled() {
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

// ocoFaults adds what an order cannot become while it waits with its other half: that has no end,
// and without a price of its own it takes at once.
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

// amountFault checks a new amount. One that ends the order may be too small for an order.
func (x *change) amountFault(p *directory.Pair) string {
	if x.amount <= x.filled() {
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

// restingFaults adds what an order that never rests has no use for.
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

// neverRestsBy names the instruction by which an order never rests.
func neverRestsBy(i *trading.Instructions) string {
	switch {
	case i.Market:
		return "order_type market"
	case i.FOK:
		return "time_in_force fok"
	}
	return "time_in_force ioc"
}

// A change is an amend while its book decides it: the open order as it was, and as it is to be.
type change struct {
	was     trading.Order
	stop    matching.Stop // its id is 0: the order waits for nothing
	is      standing      // its Instructions without what came of them
	price   money.Price
	amount  money.Amount
	trigger trading.Trigger // of an order that waits outside the book
}

// outside reports whether the order waits outside the book.
func (x *change) outside() bool { return x.stop.Order.ID != 0 && !x.stop.InBook }

// keeps reports whether the order keeps its place.
func (x *change) keeps() bool { return x.price == x.was.Price && x.amount <= x.was.Amount }

// filled returns how much of the order was filled before.
func (x *change) filled() money.Amount { return x.was.Amount - x.was.Remaining }
