package matching

import (
	"fmt"

	"exchange/core/trading"
)

// A Comparison goes through two books side by side, some orders at a time: buys first, each side in
// the order of Orders. Between two steps both books may change, if they change alike. An order that
// comes to a place behind which the comparison is already is not compared.
type Comparison struct {
	side trading.Side // none: nothing was compared yet

	n          int     // orders of a step
	one, other []whole // of the last step
	before     []whole // of the step before, on the same side
}

// A whole order is one with its hidden part, which its remaining amount includes.
type whole struct {
	trading.Order
	Iceberg
}

// A Difference is the first place at which two books differ. An order without an id is none.
type Difference struct{ one, other whole }

// Texts returns both orders for a message.
func (d *Difference) Texts() (one, other string) { return d.one.text(), d.other.text() }

func (w whole) text() string {
	switch {
	case w.ID == 0:
		return "nothing"
	case w.Hidden == 0:
		return fmt.Sprintf("%+v", w.Order)
	}
	return fmt.Sprintf("%+v, %+v", w.Order, w.Iceberg)
}

// Next compares the next n orders, at least one. It reports whether these were the last. A nil
// difference means that they are equal.
func (c *Comparison) Next(one, other *Book, n int) (done bool, differ *Difference) {
	c.Take(one, n)
	return c.With(other)
}

// Take is the first half of Next: it copies the next n orders of one book.
func (c *Comparison) Take(one *Book, n int) {
	if c.side == 0 {
		c.side = trading.Buy
	}
	c.n = n
	c.before, c.one = c.one, c.before
	c.one = one.appendAfter(c.one[:0], c.side, c.before, n)
}

// With is the second half of Next: it compares the copies with the other book as it was when they
// were taken.
func (c *Comparison) With(other *Book) (done bool, differ *Difference) {
	c.other = other.appendAfter(c.other[:0], c.side, c.before, c.n)
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
	if len(c.one) == c.n {
		return false, nil
	}
	done = c.side == trading.Sell
	c.side, c.one = trading.Sell, c.one[:0]
	return done, nil
}

// appendAfter appends n orders of a side to dst, in the order of Orders: those behind the last of
// the orders before, the best ones of the side when there is none before.
func (b *Book) appendAfter(dst []whole, side trading.Side, before []whole, n int) []whole {
	best, first := ^uint64(0), uint32(0)
	if last := len(before) - 1; last >= 0 {
		best = keyOf(side, before[last].Price)
		first = b.lastInPlace(before)
	}
	for ln := range b.side(side).bestFrom(best) {
		at := b.levels.at(ln).head
		if first != 0 {
			at, first = b.orders.at(first).next, 0
		}
		for ; at != 0; at = b.orders.at(at).next {
			if n == 0 {
				return dst
			}
			dst = append(dst, whole{b.order(at), b.icebergs[at]})
			n--
		}
	}
	return dst
}

// lastInPlace returns the record of the last of the orders that still is what and where it was, as
// far as they are at the price of the last. It returns 0 when none of these is: then the comparison
// looks at the rest of their level again, and there are fewer orders to come. An order that a taker
// has moved back in its level, or its owner in the book, is another one than it was.
func (b *Book) lastInPlace(orders []whole) uint32 {
	last := len(orders) - 1
	for i := last; i >= 0 && orders[i].Price == orders[last].Price; i-- {
		o := &orders[i]
		if n := b.ids.lookup(o.ID, &b.orders); n != 0 && b.order(n) == o.Order {
			return n
		}
	}
	return 0
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
