package matching

import (
	"fmt"

	"exchange/core/money"
	"exchange/core/trading"
)

// checkInvariants checks everything inside a book that must hold between calls.
func checkInvariants(b *Book) error {
	orders, levels := 0, 0
	for i := range b.sides {
		if err := checkLadder(&b.sides[i]); err != nil {
			return err
		}
		side := trading.Buy + trading.Side(i)
		for n := range b.sides[i].bestFirst {
			count, err := checkLevel(b, n, side)
			if err != nil {
				return err
			}
			orders += count
			levels++
		}
	}
	freeOrders, freeLevels := 0, 0
	for n := b.freeOrder; n != 0; n = b.orders.at(n).next {
		freeOrders++
	}
	for n := b.freeLevel; n != 0; n = b.levels.at(n).head {
		freeLevels++
	}
	if orders != b.ids.count || orders+freeOrders != int(b.orders.used) ||
		levels+freeLevels != int(b.levels.used) {
		return fmt.Errorf("%d orders (%d free, %d ids) of %d, %d levels (%d free) of %d", orders,
			freeOrders, b.ids.count, b.orders.used, levels, freeLevels, b.levels.used)
	}
	if buy, sell := b.sides[0].best, b.sides[1].best; buy != 0 && sell != 0 && buy >= ^sell {
		return fmt.Errorf("the book is crossed: buy %d, sell %d", buy, ^sell)
	}
	if err := checkIcebergs(b); err != nil {
		return err
	}
	entries := 0
	for _, e := range b.ids.entries {
		if e != 0 {
			entries++
		}
	}
	if entries != b.ids.count || 4*entries > 3*len(b.ids.entries) {
		return fmt.Errorf("%d entries of %d in the id table, want %d", entries, len(b.ids.entries),
			b.ids.count)
	}
	return nil
}

// checkIcebergs checks that each hidden part belongs to an order, and fits it.
func checkIcebergs(b *Book) error {
	for n, i := range b.icebergs {
		o := b.orders.at(n)
		if b.ids.lookup(o.id, &b.orders) != n || i.Hidden < 1 || i.Display < 1 ||
			i.Hidden > o.amount-o.remaining {
			return fmt.Errorf("iceberg %+v of order record %+v is wrong", i, *o)
		}
	}
	return nil
}

// checkLevel walks the queue of a level, backwards links, sum and ids included.
func checkLevel(b *Book, n uint32, side trading.Side) (count int, err error) {
	l := b.levels.at(n)
	var sum money.Total
	prev := uint32(0)
	for at := l.head; at != 0; at = b.orders.at(at).next {
		o := b.orders.at(at)
		if o.prev != prev || o.level != n || o.remaining < 1 || o.remaining > o.amount ||
			b.ids.lookup(o.id, &b.orders) != at {
			return 0, fmt.Errorf("order record %+v is wrong", *o)
		}
		sum = sum.Add(o.remaining)
		prev = at
		count++
	}
	if count == 0 || l.tail != prev || int(l.count) != count || l.amount != sum || l.side != side {
		return 0, fmt.Errorf("level record %+v is wrong: %d orders, sum %v", *l, count, sum)
	}
	return count, nil
}

func checkLadder(l *ladder) error {
	last, count := uint64(0), 0
	if len(l.firsts) != len(l.runs) {
		return fmt.Errorf("%d first keys for %d runs", len(l.firsts), len(l.runs))
	}
	for i, r := range l.runs {
		if r.n == 0 || r.n > runCap || l.firsts[i] != r.keys[0] {
			return fmt.Errorf("run %d of %d levels begins at %d, listed with %d", i, r.n, r.keys[0],
				l.firsts[i])
		}
		for _, key := range r.keys[:r.n] {
			if key <= last {
				return fmt.Errorf("key %d follows %d", key, last)
			}
			last = key
			count++
		}
	}
	if count != l.count || last != l.best {
		return fmt.Errorf("%d levels, best %d; want %d, %d", l.count, l.best, count, last)
	}
	return nil
}
