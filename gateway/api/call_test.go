package api

import (
	"errors"
	"testing"

	"exchange/actors/committed"
)

func TestAViewThatIsNotThereInTimeIsAFailureWithItsReason(t *testing.T) {
	var c Call
	if c.failRead(committed.ErrTimeout); !errors.Is(c.Cause, committed.ErrTimeout) ||
		c.Failure != StoreUnavailable {
		t.Errorf("%v for the reason %v", c.Failure, c.Cause)
	}
}
