// Package compare compares lists that two sides have, a part at a time, so that neither side stands
// still for long. A side has its list as a sequence that begins after the part before.
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

// Lists compares the lists of two sides. Between two parts both may change, if they change alike.
// An entry that comes to a place before the next part is not compared. The zero Lists begins with
// the first entries.
type Lists[T comparable] struct {
	n          int // entries of a part
	before     []T // the part before, which both sides had
	one, other []entry[T]
}

// A Side is a list as one side has it.
type Side[T comparable] struct {
	// After yields the entries after those of a part; all if it is empty.
	After func(before []T) iter.Seq[T]
	// More returns what else the side knows of an entry, a comparable value; nil: nothing.
	More func(T) any
}

// A Difference has the first entries that differ, as texts.
type Difference struct{ One, Other string }

// Next compares the next n entries, at least one. It returns how many fewer there were: above 0
// this part was the last. A nil difference means that they are equal.
func (l *Lists[T]) Next(one, other Side[T], n int) (left int, differ *Difference) {
	l.Take(one, n)
	return l.With(other)
}

// Take is the first half of Next: it copies the next n entries of one side.
func (l *Lists[T]) Take(one Side[T], n int) {
	l.n, l.one = n, one.appendTo(l.one[:0], l.before, n)
}

// With is the second half of Next: it compares the copies with the other side as it was when they
// were taken. After the last part the next one is the first again.
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

// An entry is one of a list, with what else is known of it.
type entry[T comparable] struct {
	is   T
	more any
}

// appendTo appends the n entries after a part to dst.
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
