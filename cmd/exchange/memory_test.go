package main

import (
	"errors"
	"log/slog"
	"math"
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

func TestMemoryIsLimitedByTheEnvironmentElseByTheContainer(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	none := func() (uint64, error) { return 0, errors.New("there is none") }
	f := func(environment string, container memlimit.Provider, want int64) {
		t.Helper()
		debug.SetMemoryLimit(math.MaxInt64)
		if environment != "" {
			t.Setenv("GOMEMLIMIT", environment)
			debug.SetMemoryLimit(5 << 30) // the runtime has read it before main
		}
		limitMemory(container, slog.New(slog.DiscardHandler))
		if got := debug.SetMemoryLimit(-1); got != want {
			t.Errorf("with %q: %d, want %d", environment, got, want)
		}
	}
	f("", none, math.MaxInt64)
	f("", memlimit.Limit(10<<30), 9<<30)
	f("5GiB", memlimit.Limit(10<<30), 5<<30)
	f("5GiB", none, 5<<30)
}
