package cli

import (
	"errors"
	"fmt"
	"testing"
)

func TestExitCodes(t *testing.T) {
	plain := errors.New("x")
	for _, x := range []struct {
		err  error
		want int
	}{
		{nil, ExitDone},
		{plain, ExitBroken},
		{WithExit(ExitFenced, plain), ExitFenced},
		{fmt.Errorf("more: %w", WithExit(ExitUnavailable, plain)), ExitUnavailable},
		{WithExit(ExitBroken, WithExit(ExitUnavailable, plain)), ExitUnavailable},
		{WithExit(ExitBroken, nil), ExitDone},
	} {
		if got := ExitCode(x.err); got != x.want {
			t.Errorf("%v: %d, want %d", x.err, got, x.want)
		}
	}
}
