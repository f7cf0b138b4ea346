package matching

import (
	"iter"

	"exchange/core/money"
	"exchange/core/trading"
)

// Best returns the best price of a side; false when the side is empty.
func (b *Book) Best(side trading.Side) (money.Price, bool) {
	l := b.side(side)
	if l.count == 0 {
		return 0, false
	}
	return b.levels.at(l.bestLevel()).price, true
}

// At returns the level at a price of a side; false when nothing rests there.
func (b *Book) At(side trading.Side, price money.Price) (trading.Level, bool) {
	if price < 1 {
		return trading.Level{Price: price}, false
	}
	if _, n := b.side(side).find(keyOf(side, price)); n != 0 {
		return b.level(n), true
	}
	return trading.Level{Price: price}, false
}

// Len returns the number of resting orders, both sides together.
func (b *Book) Len() int { return b.ids.count }

// LevelCount returns the number of price levels of a side.
func (b *Book) LevelCount(side trading.Side) int { return b.side(side).count }

// Orders yields the displayed orders of a side, best price first, oldest first at a price. The
// remaining amounts are without hidden parts: Open has all. The book must not change meanwhile.
func (b *Book) Orders(side trading.Side) iter.Seq[trading.Order] {
	ladder := b.side(side)
	return func(yield func(trading.Order) bool) {
		for ln := range ladder.bestFirst {
			for n := b.levels.at(ln).head; n != 0; n = b.orders.at(n).next {
				if !yield(b.displayed(n)) {
					return
				}
			}
		}
	}
}

// Levels yields the price levels of a side, best first. The book must not change meanwhile.
func (b *Book) Levels(side trading.Side) iter.Seq[trading.Level] {
	ladder := b.side(side)
	return func(yield func(trading.Level) bool) {
		for ln := range ladder.bestFirst {
			if !yield(b.level(ln)) {
				return
			}
		}
	}
}

// AppendLevels appends the best n price levels of a side to dst, all of them when n < 0. It
// allocates only to grow dst.
func (b *Book) AppendLevels(dst []trading.Level, side trading.Side, n int) []trading.Level {
	if n == 0 {
		return dst
	}
	for ln := range b.side(side).bestFirst {
		dst = append(dst, b.level(ln))
		if n--; n == 0 {
			break
		}
	}
	return dst
}

// AppendOrders appends the best n orders of a side to dst, all of them when n < 0, in the order of
// Orders. It allocates only to grow dst.
func (b *Book) AppendOrders(dst []trading.Order, side trading.Side, n int) []trading.Order {
	if n == 0 {
		return dst
	}
	for ln := range b.side(side).bestFirst {
		for at := b.levels.at(ln).head; at != 0; at = b.orders.at(at).next {
			dst = append(dst, b.displayed(at))
			if n--; n == 0 {
				return dst
			}
		}
	}
	return dst
}
