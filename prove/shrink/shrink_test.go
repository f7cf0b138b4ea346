package shrink

import (
	"errors"
	"slices"
	"testing"
)

func TestShrinkKeepsTheActionsThatFail(t *testing.T) {
	var all []int
	for i := range 100 {
		all = append(all, i)
	}
	for _, needed := range [][]int{{}, {0}, {99}, {17, 18}, {3, 50, 98},
		{0, 1, 2, 3, 4, 95, 96, 97, 98, 99}} {
		runs := 0
		least := Shrink(all, 10_000, func(list []int) bool {
			runs++
			return !slices.ContainsFunc(needed, func(n int) bool {
				return !slices.Contains(list, n)
			})
		})
		if !slices.Equal(least, needed) {
			t.Errorf("Shrink keeps %v; the failure needs %v", least, needed)
		}
		if runs > 500 {
			t.Errorf("Shrink runs %d lists to find %v", runs, needed)
		}
	}
}

func TestFailuresOfOneKindDifferInNumbersAndNamesOnly(t *testing.T) {
	for _, one := range []struct {
		a, b string
		same bool
	}{
		{"record 38 (order): account ann has 300 of BTC and 400 of it reserved",
			"record 7 (order): account ben has 1 of USD and 2 of it reserved", true},
		{"record 38 (order): account ann has 300 of BTC and 400 of it reserved",
			"record 7 (cancel): account ann has 300 of BTC and 400 of it reserved", false},
		{"engine 2, stream of BTC_USD: unit {ID:1 Trades:[]} is not &{ID:2 Trades:[{}]}",
			"engine 3, stream of BTC_EUR: unit {ID:9} is not &{ID:7}", true},
		{"nonce 3 of key key-ann-0 was used before, for a cancel",
			"nonce 41 of key key-eve-1 was used before, for a cancel", true},
		{"the 1.writer panicked: it is so\ngoroutine 7",
			"the 2.writer panicked: it is so\ngoroutine 8", true},
		{"records 5 of 6 answer", "records 5 of 6 are lost", false},
	} {
		if same := SameFailure(errors.New(one.a), errors.New(one.b)); same != one.same {
			t.Errorf("%q and %q are of one kind: %v", one.a, one.b, same)
		}
	}
	if SameFailure(nil, errors.New("it fails")) || SameFailure(errors.New("it fails"), nil) {
		t.Error("no failure is of the same kind as a failure")
	}
}

func TestShrinkRunsNoMoreListsThanItMay(t *testing.T) {
	runs := 0
	all := make([]int, 1000)
	least := Shrink(all, 7, func(list []int) bool { runs++; return len(list) > 990 })
	if runs != 7 || len(least) <= 990 {
		t.Errorf("after %d runs %d of %d actions remain", runs, len(least), len(all))
	}
}
