package matching

import (
	"maps"
	"slices"
)

// Clone returns a book with the same orders, and with its own memory. It gives the same answers,
// now and after any further calls.
func (b *Book) Clone() *Book {
	c := *b
	c.orders, c.levels, c.ids.entries = b.orders.clone(), b.levels.clone(),
		slices.Clone(b.ids.entries)
	for i := range c.sides {
		c.sides[i] = b.sides[i].clone()
	}
	c.icebergs, c.parts = maps.Clone(b.icebergs), nil
	return &c
}

// Reserve preallocates room for n more orders.
func (b *Book) Reserve(n int) {
	if n > 0 {
		b.ids.grow(n)
		b.orders.blocks = slices.Grow(b.orders.blocks, n>>blockBits+1)
	}
}

func (s *slab[T]) clone() slab[T] {
	c := slab[T]{make([]*[blockLen]T, len(s.blocks)), s.used}
	for i, block := range s.blocks {
		own := *block
		c.blocks[i] = &own
	}
	return c
}

func (l *ladder) clone() ladder {
	c := ladder{firsts: slices.Clone(l.firsts), runs: make([]*run, len(l.runs)), count: l.count,
		best: l.best}
	for i, r := range l.runs {
		own := *r
		c.runs[i] = &own
	}
	return c
}
