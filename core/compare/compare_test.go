package compare

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A list has ascending numbers, and further details of some.
type list struct {
	numbers []int
	more    map[int]string
}

func (l *list) side() Side[int] {
	return Side[int]{After: func(before []int) iter.Seq[int] {
		at := 0
		if last := len(before) - 1; last >= 0 {
			at, _ = slices.BinarySearch(l.numbers, before[last]+1)
		}
		return slices.Values(l.numbers[at:])
	}, More: func(n int) any {
		if l.more[n] == "" {
			return nil
		}
		return l.more[n]
	}}
}

func drawList(t *rapid.T) *list {
	l := &list{more: map[int]string{}}
	for n := range rapid.IntRange(0, 200).Draw(t, "numbers") {
		l.numbers = append(l.numbers, n)
		if n%3 == 0 {
			l.more[n] = fmt.Sprint("more-", n)
		}
	}
	return l
}

func (l *list) clone() *list {
	c := &list{slices.Clone(l.numbers), map[int]string{}}
	for n, more := range l.more {
		c.more[n] = more
	}
	return c
}

// compared compares both lists in chunks of n, and calls between after each.
func compared(one, other *list, n int, between func()) (parts int, differ *Difference) {
	var l Lists[int]
	for left := 0; left == 0; parts++ {
		left, differ = l.Next(one.side(), other.side(), n)
		between()
	}
	return parts, differ
}

func TestAComparisonFindsEachDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := drawList(t)
		other := one.clone()
		n := rapid.IntRange(1, 60).Draw(t, "n")
		if parts, differ := compared(one, other, n, func() {}); differ != nil ||
			parts != len(one.numbers)/n+1 {
			t.Fatalf("equal lists of %d: %d parts of %d, %+v", len(one.numbers), parts, n, differ)
		}
		if len(one.numbers) == 0 {
			return
		}
		i := rapid.IntRange(0, len(one.numbers)-1).Draw(t, "i")
		victim := one.numbers[i]
		text, changed := fmt.Sprint(victim), ""
		if one.more[victim] != "" {
			text += ", " + one.more[victim]
		}
		if rapid.Bool().Draw(t, "gone") {
			other.numbers = slices.Delete(other.numbers, i, i+1)
			if changed = "nothing"; i < len(other.numbers) {
				changed = ""
			}
		} else {
			other.more[victim] = "other"
			changed = fmt.Sprint(victim, ", other")
		}
		for _, flip := range [...]bool{false, true} {
			a, b := one, other
			if flip {
				a, b = other, one
			}
			_, differ := compared(a, b, n, func() {})
			if differ != nil && flip {
				differ.One, differ.Other = differ.Other, differ.One
			}
			if differ == nil || differ.One != text || changed != "" && differ.Other != changed ||
				differ.Other == text {
				t.Fatalf("%+v, want %s and %s", differ, text, changed)
			}
		}
	})
}

func TestAComparisonContinuesWhileBothListsChangeAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := drawList(t)
		other, next, left := one.clone(), 1000, 40
		_, differ := compared(one, other, rapid.IntRange(1, 60).Draw(t, "n"), func() {
			if len(one.numbers) > 0 {
				i := rapid.IntRange(0, len(one.numbers)-1).Draw(t, "gone")
				one.numbers = slices.Delete(one.numbers, i, i+1)
				other.numbers = slices.Delete(other.numbers, i, i+1)
			}
			if left--; left > 0 {
				next++
				one.numbers = append(one.numbers, next)
				other.numbers = append(other.numbers, next)
			}
		})
		if differ != nil {
			t.Fatalf("%+v", differ)
		}
	})
}
