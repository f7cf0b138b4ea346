// Package compare compares the lists of two sides in chunks, so that neither side blocks for long.
// A side presents its list as a sequence that begins after the last chunk.
//
//	var lists compare.Lists[matching.Resting]
//	for left := 0; left == 0; {
//		lists.Take(one, 2000) // on the turn of the one side
//		left, differ = lists.With(other) // later, on that of the other
//	}
package compare

import (
	"fmt"
	"iter"
)

// Lists compares the lists of two sides. Between two chunks both may change, if they change alike.
// An entry inserted before the next chunk is not compared. The zero Lists starts with the first
// entries.
type Lists[T comparable] struct {
	n          int // entries per chunk
	before     []T // last chunk, equal on both sides
	one, other []entry[T]
}

// A Side is one side's list.
type Side[T comparable] struct {
	// After yields the entries after a chunk; all if it is empty.
	After func(before []T) iter.Seq[T]
	// More returns further details of an entry, a comparable value; nil: there are none.
	More func(T) any
}

// A Difference holds the first entries that differ, as texts.
type Difference struct{ One, Other string }

// Next compares the next n entries, at least one. It returns how many were missing: above 0 this
// chunk was the last. A nil difference means equal chunks.
func (l *Lists[T]) Next(one, other Side[T], n int) (left int, differ *Difference) {
	l.Take(one, n)
	return l.With(other)
}

// Take is the first half of Next: it copies the next n entries of one side.
func (l *Lists[T]) Take(one Side[T], n int) {
	l.n, l.one = n, one.appendTo(l.one[:0], l.before, n)
}

// With is the second half of Next: it compares the copies with the other side as it was when Take
// ran. After the last chunk the next one is the first again.
func (l *Lists[T]) With(other Side[T]) (left int, differ *Difference) {
	l.other = other.appendTo(l.other[:0], l.before, l.n)
	for i := range max(len(l.one), len(l.other)) {
		if i >= min(len(l.one), len(l.other)) || l.one[i] != l.other[i] {
			return l.n, &Difference{text(l.one, i), text(l.other, i)}
		}
	}
	l.before = l.before[:0]
	if left = l.n - len(l.one); left == 0 {
		for i := range l.one {
			l.before = append(l.before, l.one[i].is)
		}
	}
	return left, nil
}

// An entry is a list's entry, with its further details.
type entry[T comparable] struct {
	is   T
	more any
}

// appendTo appends the n entries after a chunk to dst.
func (s *Side[T]) appendTo(dst []entry[T], before []T, n int) []entry[T] {
	for is := range s.After(before) {
		if n--; n < 0 {
			break
		}
		e := entry[T]{is: is}
		if s.More != nil {
			e.more = s.More(is)
		}
		dst = append(dst, e)
	}
	return dst
}

func text[T comparable](list []entry[T], i int) string {
	switch {
	case i >= len(list):
		return "nothing"
	case list[i].more == nil:
		return fmt.Sprintf("%+v", list[i].is)
	}
	return fmt.Sprintf("%+v, %+v", list[i].is, list[i].more)
}
