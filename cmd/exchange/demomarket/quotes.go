package demomarket

import (
	"math"
	"math/rand/v2"

	"exchange/actors/committed"
	"exchange/core/money"
	"exchange/core/trading"
)

// An asset has a fair price in USDT, which wanders between low and high.
type asset struct {
	low, high float64
	usual     float64 // amount of a quote, in the middle
}

var assets = map[string]asset{
	"BTC": {61_000, 69_000, 0.25},
	"ETH": {3_200, 3_800, 4},
}

// mean is the price that an asset reverts to.
func (a asset) mean() float64 { return (a.low + a.high) / 2 }

// The walk of a fair price by steps of `every`: its logarithm loses reversion of its distance from
// the mean, which is gone in two hours, and moves by a normal step. So it stays within 1 % of the
// mean for two thirds of the time.
const (
	reversion = 1.0 / (2 * 60 * 60 * 2)
	step      = 0.00012
)

// next returns the fair price that follows on another one.
func (a asset) next(r *rand.Rand, fair float64) float64 {
	distance := math.Log(fair / a.mean())
	fair = a.mean() * math.Exp(distance*(1-reversion)+step*r.NormFloat64())
	return min(max(fair, a.low), a.high)
}

// fairOf returns the fair price of a pair, by those of assets. USDT has the price 1.
func fairOf(fair map[string]float64, base, quote string) float64 {
	price := fair[base]
	if of, ok := fair[quote]; ok {
		price /= of
	}
	return price
}

const (
	levels = 12 // quotes of a side of a pair
	// Distance of the first level from the fair price, as a fraction; further levels are ever
	// farther. Quotes beyond twice the last one are moved.
	nearest = 0.0003
)

// distance returns a level's distance from the fair price, as a fraction of that.
func distance(level int) float64 { return nearest * float64(level+1) * (1 + 0.1*float64(level)) }

// A kind of action.
type kind int

const (
	nothing kind = iota
	quote        // the maker places
	cancel       // the maker
	take         // the taker places
)

// An action is the next action of one of the accounts.
type action struct {
	kind   kind
	order  uint64 // of a cancel
	side   trading.Side
	price  money.Price
	amount money.Amount
}

// A view of a pair is the basis for choosing an action.
type view struct {
	fair   float64
	tick   money.Price
	usual  float64           // amount of a quote, in the middle
	quotes []committed.Order // of the maker, open
	buys   float64           // chance that the taker buys
}

// choose returns the next action on a pair. Quotes on the wrong side of the fair price are taken or
// cancelled first, so the maker never meets its own.
func (v *view) choose(r *rand.Rand) action {
	var wrong, far *committed.Order
	for i := range v.quotes {
		o := &v.quotes[i]
		switch off := v.off(o); {
		case off <= 0 && (wrong == nil || off < v.off(wrong)):
			wrong = o
		case off > 2*distance(levels-1) && (far == nil || off > v.off(far)):
			far = o
		}
	}
	lacking, spare := v.slots(r)
	full := len(v.quotes) >= 2*levels
	if far == nil {
		far = spare
	}
	switch {
	case wrong != nil && r.IntN(3) > 0:
		return v.takeOrder(r, wrong)
	case wrong != nil:
		return action{kind: cancel, order: wrong.ID}
	case far != nil && full:
		return action{kind: cancel, order: far.ID}
	case r.IntN(8) == 0:
		if best := v.best(v.takeSide(r)); best != nil {
			return v.takeOrder(r, best)
		}
	}
	if len(lacking) == 0 || full {
		return action{}
	}
	return v.quoteAt(r, lacking[0])
}

// A place in the book is a level of a side.
type place struct {
	side  trading.Side
	level int
}

// slots returns the places without a quote, the nearest first, and a surplus quote at an occupied
// place.
func (v *view) slots(r *rand.Rand) (lacking []place, spare *committed.Order) {
	has := map[place]bool{}
	for i := range v.quotes {
		o := &v.quotes[i]
		at := place{o.Side, levelAt(v.off(o))}
		if has[at] {
			spare = o
		}
		has[at] = true
	}
	first := []trading.Side{trading.Buy, trading.Sell}[r.IntN(2)]
	for level := range levels {
		for _, at := range []place{{first, level}, {opposite(first), level}} {
			if !has[at] {
				lacking = append(lacking, at)
			}
		}
	}
	return lacking, spare
}

// off returns an order's distance from the fair price on its own side, as a fraction of that;
// negative: it is on the other side.
func (v *view) off(o *committed.Order) float64 {
	off := float64(o.Price)/1e8/v.fair - 1
	if o.Side == trading.Buy {
		off = -off
	}
	return off
}

// levelAt returns the level that is nearest to a distance.
func levelAt(off float64) int {
	for level := range levels - 1 {
		if off < (distance(level)+distance(level+1))/2 {
			return level
		}
	}
	return levels - 1
}

func opposite(side trading.Side) trading.Side {
	if side == trading.Buy {
		return trading.Sell
	}
	return trading.Buy
}

// best returns the maker's best order of a side; nil: there is none.
func (v *view) best(side trading.Side) (best *committed.Order) {
	for i := range v.quotes {
		if o := &v.quotes[i]; o.Side == side && (best == nil || v.off(o) < v.off(best)) {
			best = o
		}
	}
	return best
}

// takeSide returns the side from which the taker takes.
func (v *view) takeSide(r *rand.Rand) trading.Side {
	if r.Float64() < v.buys {
		return trading.Sell
	}
	return trading.Buy
}

// takeOrder is the taker's order against one of the maker.
func (v *view) takeOrder(r *rand.Rand, o *committed.Order) action {
	amount := o.Remaining
	if r.IntN(2) == 0 {
		amount = min(amount, v.around(r, 0.3))
	}
	return action{kind: take, side: opposite(o.Side), price: o.Price, amount: amount}
}

// quoteAt is the maker's order at a place.
func (v *view) quoteAt(r *rand.Rand, at place) action {
	off, round := distance(at.level)*(0.9+0.2*r.Float64()), math.Ceil
	if at.side == trading.Buy {
		off, round = -off, math.Floor
	}
	return action{kind: quote, side: at.side,
		price:  money.Price(round(v.fair*(1+off)*1e8/float64(v.tick))) * v.tick,
		amount: v.around(r, 1+float64(at.level)/4)}
}

// around returns an amount around usual, with four digits after the point.
func (v *view) around(r *rand.Rand, usual float64) money.Amount {
	const digits = 10_000
	amount := v.usual * usual * math.Exp(0.5*r.NormFloat64())
	return money.Amount(max(math.Round(amount*digits), 1)) * money.AmountUnit(4)
}
