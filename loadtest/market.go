package loadtest

import (
	"fmt"

	"exchange/core/money"
)

// A pair is a market with the rules for the test's orders. Prices are whole ticks and amounts whole
// lots, so that every order fits the pair's rules.
type pair struct {
	index       int // in the list of traded pairs
	name        string
	base, quote string
	tick        int64 // of 1e-8
	lot         int64 // of 1e-8
	maxLots     int64
	mid         int64 // ticks, at the start of the test
}

// Start of a pair without trades, and the distance of orders from there, in ticks.
const (
	usualMid = 50_000
	lots     = 100 // size of the largest order
)

// newPairs parses the answer of pairs/.
func newPairs(answer []byte) (all []*pair, err error) {
	err = eachItem(answer, func(item []byte) error {
		p := &pair{index: len(all), mid: usualMid}
		var least, most money.Amount
		var value money.Balance
		price, amount := -1, -1
		var bad error
		parse := func(b []byte) money.Amount {
			a, err := money.ParseAmount(b)
			if err != nil {
				bad = err
			}
			return a
		}
		err := eachField(item, func(name, v []byte) bool {
			switch string(name) {
			case "name":
				p.name = string(v)
			case "currency1":
				p.base = string(v)
			case "currency2":
				p.quote = string(v)
			case "minimum_order_size":
				least = parse(v)
			case "maximum_order_size":
				most = parse(v)
			case "minimum_order_value":
				if value, bad = parseBalance(v); bad != nil {
					return false
				}
			case "price_precision":
				price = int(number(v))
			case "amount_precision":
				amount = int(number(v))
			}
			return true
		})
		if err == nil {
			err = bad
		}
		if err != nil || p.name == "" || p.base == "" || p.quote == "" || price < 0 ||
			price > money.FixedDecimals || amount < 0 || amount > money.FixedDecimals || most <= 0 {
			return fmt.Errorf("the pair %.200q cannot be understood: %v", item, err)
		}
		p.tick = powerOfTen(money.FixedDecimals - price)
		step := powerOfTen(money.FixedDecimals - amount)
		lot := max(step, int64(least))
		for lot%step != 0 {
			lot += step - lot%step
		}
		// At half of the initial price an order of one lot must still be worth enough.
		for money.Price(p.mid/2*p.tick).Times(money.Amount(lot)).Balance().Cmp(value) < 0 &&
			lot <= int64(most) {
			lot *= 2
		}
		p.lot, p.maxLots = lot, min(lots, int64(most)/lot)
		if p.maxLots < 1 {
			return fmt.Errorf(
				"no order fits the rules of %s: its largest order is not worth its least value",
				p.name)
		}
		all = append(all, p)
		return nil
	})
	return all, err
}

func powerOfTen(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}
