package serve

import (
	"log/slog"
	"runtime"
	"testing"
)

func TestProcessorsAreAddedUnlessTheirNumberIsSet(t *testing.T) {
	before, cores := runtime.GOMAXPROCS(0), runtime.NumCPU()
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	f := func(environment string, now, want int) {
		t.Helper()
		t.Setenv("GOMAXPROCS", environment)
		runtime.GOMAXPROCS(now)
		addProcessors(slog.New(slog.DiscardHandler))
		if got := runtime.GOMAXPROCS(0); got != want {
			t.Errorf("with %q, and %d of them for %d cores: %d, want %d", environment, now, cores,
				got, want)
		}
	}
	f("", cores, cores+spareProcessors)
	f("1", 1, 1)
	f("7", 7, 7)
	if cores > 1 { // a quota of less
		f("", cores-1, cores-1)
	}
}
