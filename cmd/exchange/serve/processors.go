package serve

import (
	"log/slog"
	"os"
	"runtime"
)

// spareProcessors is the number of Go's processors beyond the cores. A flush of the embedded store,
// a compaction and a step of the projections keep one each while they last. Go gives each of these
// a processor for 10 ms at a time before an order gets its turn. With spare processors the kernel
// shares the cores instead, and prefers threads that run for a moment only.
const spareProcessors = 2

// addProcessors adds the spare ones, unless the environment sets the number, or a container's quota
// is less than the cores. CPU time used beyond a quota in one moment is taken away in the next.
func addProcessors(log *slog.Logger) {
	cores := runtime.NumCPU()
	if os.Getenv("GOMAXPROCS") != "" || runtime.GOMAXPROCS(0) < cores {
		return
	}
	runtime.GOMAXPROCS(cores + spareProcessors)
	log.Debug("there are processors to spare", "processors", cores+spareProcessors, "cores", cores)
}
