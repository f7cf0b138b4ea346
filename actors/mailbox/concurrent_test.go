package mailbox

import (
	"errors"
	"sync/atomic"
	"testing"
)

func TestAtOnceCallsWithEachNumberOnce(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 63, 64, 65, 1000, 10_001} {
		calls := make([]atomic.Int32, n)
		if err := AtOnce(n, func(i int) error { calls[i].Add(1); return nil }); err != nil {
			t.Error(err)
		}
		for i := range calls {
			if c := calls[i].Load(); c != 1 {
				t.Fatalf("of %d numbers %d was called with %d times", n, i, c)
			}
		}
	}
}

func TestAtOnceReturnsAnError(t *testing.T) {
	wrong := errors.New("wrong")
	for _, n := range []int{1, 2, 1000} {
		err := AtOnce(n, func(i int) error {
			if i == n-1 {
				return wrong
			}
			return nil
		})
		if err != wrong {
			t.Errorf("of %d numbers the last fails: %v", n, err)
		}
	}
}
