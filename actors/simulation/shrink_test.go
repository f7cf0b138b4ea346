package simulation

import (
	"slices"
	"testing"
)

func TestShrinkLeavesWhatIsNeeded(t *testing.T) {
	var all []int
	for i := range 100 {
		all = append(all, i)
	}
	for _, needed := range [][]int{{}, {0}, {99}, {17, 18}, {3, 50, 98}, {0, 1, 2, 3, 4, 95, 96, 97, 98, 99}} {
		asked := 0
		least := Shrink(all, 10_000, func(list []int) bool {
			asked++
			return !slices.ContainsFunc(needed, func(n int) bool { return !slices.Contains(list, n) })
		})
		if !slices.Equal(least, needed) {
			t.Errorf("of what needs %v remains %v", needed, least)
		}
		if asked > 500 {
			t.Errorf("%v: it was asked %d times", needed, asked)
		}
	}
}

func TestShrinkAsksNoMoreThanItMay(t *testing.T) {
	asked := 0
	all := make([]int, 1000)
	least := Shrink(all, 7, func(list []int) bool { asked++; return len(list) > 990 })
	if asked != 7 || len(least) <= 990 {
		t.Errorf("after %d questions %d of %d remain", asked, len(least), len(all))
	}
}
