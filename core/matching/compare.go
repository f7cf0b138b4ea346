package matching

import (
	"fmt"

	"exchange/core/money"
	"exchange/core/trading"
)

// A Comparison goes through two books side by side, some orders at a time: buys first, each side in
// the order of Orders. Between two steps both books may change, if they change alike. An order that
// comes to a place behind which the comparison is already is not compared.
type Comparison struct {
	side  trading.Side // none: nothing was compared yet
	price money.Price  // of the last order compared; 0: none of this side was
	id    uint64

	one, other []trading.Order // of the last step
}

// A Difference is the first place at which two books differ. An order without an id is none.
type Difference struct{ one, other trading.Order }

// Texts returns both orders for a message.
func (d *Difference) Texts() (one, other string) {
	text := func(o trading.Order) string {
		if o.ID == 0 {
			return "nothing"
		}
		return fmt.Sprintf("%+v", o)
	}
	return text(d.one), text(d.other)
}

// Next compares the next n orders, at least one. It reports whether these were the last. A nil
// difference means that they are equal.
func (c *Comparison) Next(one, other *Book, n int) (done bool, differ *Difference) {
	if c.side == 0 {
		c.side = trading.Buy
	}
	c.one = one.appendOrdersAfter(c.one[:0], c.side, c.price, c.id, n)
	c.other = other.appendOrdersAfter(c.other[:0], c.side, c.price, c.id, n)
	for i := range max(len(c.one), len(c.other)) {
		var d Difference
		if i < len(c.one) {
			d.one = c.one[i]
		}
		if i < len(c.other) {
			d.other = c.other[i]
		}
		if d.one != d.other {
			return true, &d
		}
	}
	if len(c.one) == n {
		last := c.one[n-1]
		c.price, c.id = last.Price, last.ID
		return false, nil
	}
	done = c.side == trading.Sell
	c.side, c.price, c.id = trading.Sell, 0, 0
	return done, nil
}

// appendOrdersAfter appends the best n orders of a side behind a place to dst, in the order of
// Orders: those at price that are younger than the order id, then those at worse prices. The order
// itself, and its level, need not be there any more. A price of 0 is the place before all. Ids grow
// within a level, so an order that is gone costs a search of its level's queue at most.
func (b *Book) appendOrdersAfter(dst []trading.Order, side trading.Side, price money.Price,
	id uint64, n int) []trading.Order {
	best := ^uint64(0)
	if price > 0 {
		best = keyOf(side, price)
	}
	for ln := range b.side(side).bestFrom(best) {
		l := b.levels.at(ln)
		first := l.head
		if n := b.ids.lookup(id, &b.orders); n != 0 && l.price == price &&
			b.orders.at(n).level == ln {
			first = b.orders.at(n).next
		}
		for at := first; at != 0; at = b.orders.at(at).next {
			if l.price == price && b.orders.at(at).id <= id {
				continue
			}
			if n == 0 {
				return dst
			}
			dst = append(dst, b.order(at))
			n--
		}
	}
	return dst
}

// bestFrom yields the numbers of the levels whose keys are at most key, best first.
func (l *ladder) bestFrom(key uint64) func(yield func(level uint32) bool) {
	return func(yield func(level uint32) bool) {
		if len(l.runs) == 0 {
			return
		}
		for i := countUpTo(l.firsts, key) - 1; i >= 0; i-- {
			r := l.runs[i]
			for pos := countUpTo(r.keys[:r.n], key) - 1; pos >= 0; pos-- {
				if !yield(r.levels[pos]) {
					return
				}
			}
		}
	}
}
