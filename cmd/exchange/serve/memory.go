package serve

import (
	"log/slog"
	"math"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// memoryShare is the part of a container's memory that heap and stacks may take before the
// collector works harder. The rest is for memory that Go does not count.
const memoryShare = 0.9

// limitMemory gives the garbage collector its limit: GOMEMLIMIT, otherwise memoryShare of the
// provider's container limit. Without either, the heap may double between two collections however
// little is left, and a container ends a process that still has garbage.
func limitMemory(container memlimit.Provider, log *slog.Logger) {
	if _, err := memlimit.SetGoMemLimitWithOpts(memlimit.WithRatio(memoryShare),
		memlimit.WithProvider(container)); err != nil {
		log.Debug("there is no limit of the container's memory", "reason", err)
	}
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		log.Info("the collector keeps within a limit of memory", "bytes", limit)
	}
}

// Almost all allocations of a start stay, so at the usual 100 % the collector would scan the same
// memory many times. A start is not collected at all until the heap has about startBytes, unless
// the limit of memory is lower. From then on the heap may grow by startPercent between two
// collections.
const (
	startBytes   = 1 << 30
	startPercent = 400
	// leastHeap is the heap before Go's first collection, at 100 %.
	leastHeap = 4 << 20
)

// collectRarely sets this for a start. The result undoes it.
func collectRarely() (end func()) {
	var mu sync.Mutex
	ended := false
	before := debug.SetGCPercent(startBytes / leastHeap * 100)
	if before < 0 || before > startPercent {
		debug.SetGCPercent(before)
		return func() {}
	}
	atFirstCollection(func() {
		mu.Lock()
		defer mu.Unlock()
		if !ended {
			debug.SetGCPercent(startPercent)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
		debug.SetGCPercent(before)
	}
}

// atFirstCollection calls do when the collector has run.
func atFirstCollection(do func()) {
	garbage := new([64]byte)
	runtime.AddCleanup(garbage, func(do func()) { do() }, do)
}
