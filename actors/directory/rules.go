package directory

import (
	"strconv"

	"exchange/core/money"
	"exchange/core/trading"
)

// The rules of a pair for orders. Each function returns the fault as a sentence for the client, ""
// if there is none.

// PriceFault checks a price above 0.
func (p *Pair) PriceFault(x money.Price) string { return p.Rules().priceFault(x) }

// StepFault checks the digits of an amount above 0, and not its size.
func (p *Pair) StepFault(a money.Amount) string { return p.Rules().stepFault(a) }

// AmountFault checks the amount of an order.
func (p *Pair) AmountFault(a money.Amount) string { return p.Rules().amountFault(a) }

// ValueFault checks the value of an order.
func (p *Pair) ValueFault(x money.Price, a money.Amount) string {
	return p.Rules().valueFault(x, a)
}

// DisplayFault checks the displayed part of an order of an amount.
func (p *Pair) DisplayFault(display, amount money.Amount) string {
	return p.Rules().displayFault(display, amount)
}

// BeyondBand returns the worst price within the pair's band of a reference, if the price of an
// order is worse for its owner than that; 0: the price is within the band.
func (p *Pair) BeyondBand(side trading.Side, price, reference money.Price) money.Price {
	return p.Rules().beyondBand(side, price, reference)
}

// WithinBand returns the price of an order without a client's price: the derived one, or the worst
// within the pair's band of a reference, whichever is nearer.
func (p *Pair) WithinBand(side trading.Side, derived, reference money.Price) money.Price {
	if bound := p.BeyondBand(side, derived, reference); bound != 0 {
		return bound
	}
	return derived
}

// StopPrice returns the price of an order that waits for a trigger and has no client's price: the
// stop collar beyond the trigger, within its band.
func (p *Pair) StopPrice(side trading.Side, trigger money.Price) money.Price {
	collar := trading.Furthest(side, trigger, p.Rules().StopCollar, p.PriceTick)
	return p.WithinBand(side, collar, trigger)
}

// priceFault checks a price above 0.
func (r *PairRules) priceFault(p money.Price) string {
	switch {
	case !p.FitsDecimals(r.PricePrecision):
		return digitsFault(r.PricePrecision)
	case p%r.PriceTick != 0:
		return "A multiple of " + r.PriceTick.String() + " is required."
	}
	return ""
}

// stepFault checks the digits of an amount above 0, and not its size.
func (r *PairRules) stepFault(a money.Amount) string {
	switch {
	case !a.FitsDecimals(r.AmountPrecision):
		return digitsFault(r.AmountPrecision)
	case a%r.AmountStep != 0:
		return "A multiple of " + r.AmountStep.String() + " is required."
	}
	return ""
}

// amountFault checks the amount of an order.
func (r *PairRules) amountFault(a money.Amount) string {
	if text := r.stepFault(a); text != "" {
		return text
	}
	switch {
	case a < r.MinimumOrderSize:
		return "The smallest amount is " + r.MinimumOrderSize.String() + "."
	case a > r.MaximumOrderSize:
		return "The largest amount is " + r.MaximumOrderSize.String() + "."
	}
	return ""
}

// valueFault checks the value of an order.
func (r *PairRules) valueFault(p money.Price, a money.Amount) string {
	if p.Times(a).Balance().Cmp(r.MinimumOrderValue) < 0 {
		return "price x amount must be at least " + r.MinimumOrderValue.String() + "."
	}
	return ""
}

// beyondBand returns the worst price within the pair's band of a reference, if the price of an
// order is worse for its owner than that. It returns 0 if the price is within the band, or if there
// is no band or no reference. The bound is a multiple of the tick, and one tick is always within.
func (r *PairRules) beyondBand(side trading.Side, price, reference money.Price) money.Price {
	if r.PriceBand == 0 || reference == 0 {
		return 0
	}
	bound, tick := trading.Furthest(side, reference, r.PriceBand, 1), r.PriceTick
	switch rest := bound % tick; {
	case rest > 0 && side == trading.Buy:
		bound = max(bound-rest, tick)
	case rest > 0:
		bound += min(tick-rest, money.MaxPrice-bound)
	}
	if side == trading.Buy && price > bound || side == trading.Sell && price < bound {
		return bound
	}
	return 0
}

// mostParts bounds the parts of an iceberg.
const mostParts = 20

// displayFault checks the displayed part of an order of an amount.
func (r *PairRules) displayFault(display, amount money.Amount) string {
	if text := r.stepFault(display); text != "" {
		return text
	}
	switch {
	case display < r.MinimumOrderSize:
		return "The smallest amount is " + r.MinimumOrderSize.String() + "."
	case display >= amount:
		return "It must be below amount."
	case TooManyParts(display, amount):
		return "It must be at least a twentieth of amount."
	}
	return ""
}

// TooManyParts reports whether an iceberg with this display and amount would have more than
// mostParts parts.
func TooManyParts(display, amount money.Amount) bool {
	return display < amount/mostParts || display == amount/mostParts && amount%mostParts > 0
}

func digitsFault(most int) string {
	return "At most " + strconv.Itoa(most) + " fractional digits are possible."
}
