package committed

import (
	"slices"
	"testing"
)

func TestSpansAreContiguous(t *testing.T) {
	list := []int{1, 2, 3, 4, 5}
	for most := 1; most < 7; most++ {
		var all []int
		turns := 0
		for after, more := uint64(0), true; more; more = after != 0 {
			var part []int
			part, after = span(list, after, most)
			if all = append(all, part...); len(part) > most {
				t.Fatalf("a turn of %d visits %d", most, len(part))
			}
			turns++
		}
		if want := (len(list) + most - 1) / most; !slices.Equal(all, list) || turns != want {
			t.Errorf("at most %d: %v in %d turns", most, all, turns)
		}
	}
	if part, next := span(list, 1<<62, 2); len(part) != 0 || next != 0 {
		t.Errorf("after the end: %v, %d", part, next)
	}
}
