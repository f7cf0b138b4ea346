package serve

import (
	"errors"
	"log/slog"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
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

func TestAStartCollectsRarelyAndItsEndAsBefore(t *testing.T) {
	usual := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(usual) })
	now := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	f := func(before, within int) {
		t.Helper()
		debug.SetGCPercent(before)
		end := collectRarely()
		if got := now(); got != within {
			t.Errorf("with %d %% before, a start has %d %%, want %d %%", before, got, within)
		}
		if end(); now() != before {
			t.Errorf("with %d %% before, after a start there are %d %%", before, now())
		}
	}
	f(100, 100*startBytes/leastHeap)
	f(50, 100*startBytes/leastHeap)
	f(800, 800)
	f(-1, -1)

	debug.SetGCPercent(100)
	end := collectRarely()
	percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	for percent[0].Value.Kind() == metrics.KindBad || percent[0].Value.Uint64() != startPercent {
		runtime.GC() // until the cleanup of a collection has run
		metrics.Read(percent)
	}
	if end(); now() != 100 {
		t.Errorf("after a start with a collection there are %d %%", now())
	}
}
