package api

import (
	"errors"
	"testing"

	"exchange/actors"
)

func TestAViewThatIsNotThereInTimeIsAFailureWithItsReason(t *testing.T) {
	var c Call
	if c.viewFailed(actors.ErrTimeout); !errors.Is(c.Cause, actors.ErrTimeout) ||
		c.Failure != StoreUnavailable {
		t.Errorf("%v for the reason %v", c.Failure, c.Cause)
	}
}
