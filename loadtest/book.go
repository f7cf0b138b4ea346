package loadtest

import (
	"fmt"

	"exchange/core/money"
)

// A diff is an event depth.diff, or the head of one.
type diff struct {
	pair         string
	update, prev uint64
	first        bool // there is no earlier update
	snapshot     bool
	sell, buy    []byte
}

// readDiff parses an event, with its levels if the caller wants them.
func readDiff(b []byte, levels bool, name func([]byte) string) (d diff, err error) {
	const pair, update, prev = 1, 2, 4
	seen := 0
	err = eachField(b, func(field, v []byte) bool {
		switch string(field) {
		case "pair":
			d.pair = name(v)
			seen |= pair
		case "update_id":
			d.update = number(v)
			seen |= update
		case "prev_update_id":
			d.first, d.prev = string(v) == "null", number(v)
			seen |= prev
		case "snapshot":
			d.snapshot = string(v) == "true"
		case "sell":
			d.sell = v
			return levels
		case "buy":
			d.buy = v
			return levels
		}
		return true
	})
	if err == nil && seen != pair|update|prev {
		err = errJSON
	}
	return d, err
}

// A localBook is a subscriber's copy of a pair's book.
type localBook struct {
	known     bool
	update    uint64
	sell, buy map[money.Price]money.Amount // nil: only the ids are checked
}

// apply applies the next event. An error means that the updates are not dense: the book is unknown
// after it.
func (b *localBook) apply(d *diff, levels bool) error {
	switch {
	case d.snapshot:
		if b.known && d.update < b.update {
			return fmt.Errorf("a whole book of update %d comes after update %d", d.update, b.update)
		}
		b.known = true
		if levels {
			b.sell, b.buy = map[money.Price]money.Amount{}, map[money.Price]money.Amount{}
		}
	case !b.known:
		return nil // a whole book is pending
	case d.first || d.prev != b.update || d.update != b.update+1:
		b.known = false
		return fmt.Errorf("update %d, which says that it follows %d, comes after update %d",
			d.update, d.prev, b.update)
	}
	b.update = d.update
	if !levels {
		return nil
	}
	if err := readLevels(d.sell, b.sell); err != nil {
		return err
	}
	return readLevels(d.buy, b.buy)
}

// readLevels sets the amount at each price; 0 removes it.
func readLevels(array []byte, into map[money.Price]money.Amount) error {
	return eachItem(array, func(item []byte) error {
		var price money.Price
		var amount money.Amount
		var bad error
		err := eachField(item, func(name, v []byte) bool {
			switch string(name) {
			case "price":
				price, bad = money.ParsePrice(v)
			case "amount":
				amount, bad = money.ParseAmount(v)
			}
			return bad == nil
		})
		switch {
		case err != nil:
			return err
		case bad != nil:
			return bad
		case amount == 0:
			delete(into, price)
		default:
			into[price] = amount
		}
		return nil
	})
}

// firstDifference describes the first difference between two sides of a book, "" if they are equal.
func firstDifference(side string, local, other map[money.Price]money.Amount) string {
	for price, amount := range other {
		if local[price] != amount {
			return fmt.Sprintf("at %s to %s the local book has %s, and the REST book %s", price,
				side, local[price], amount)
		}
	}
	for price, amount := range local {
		if _, ok := other[price]; !ok {
			return fmt.Sprintf("at %s to %s the local book has %s, and the REST book nothing",
				price, side, amount)
		}
	}
	return ""
}
