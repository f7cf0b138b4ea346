package main

import (
	"log/slog"
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// memoryShare is the part of a container's memory that heap and stacks may take before the
// collector works harder. The rest is for memory that Go does not count.
const memoryShare = 0.9

// limitMemory gives the garbage collector its limit: GOMEMLIMIT, otherwise memoryShare of the
// container's limit, which the provider knows. Without either, the heap may double between two
// collections however little is left, and a container ends a process that still has garbage.
func limitMemory(container memlimit.Provider, log *slog.Logger) {
	if _, err := memlimit.SetGoMemLimitWithOpts(memlimit.WithRatio(memoryShare),
		memlimit.WithProvider(container)); err != nil {
		log.Debug("there is no limit of the container's memory", "reason", err)
	}
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		log.Info("the collector keeps within a limit of memory", "bytes", limit)
	}
}

// startPercent is how far the heap may grow between two collections of a start: almost all that a
// start makes stays, so the usual 100 % would have it look at the same memory many times.
const startPercent = 400

// collectRarely lets a start run with startPercent. The result ends that.
func collectRarely() (end func()) {
	before := debug.SetGCPercent(startPercent)
	if before < 0 || before > startPercent {
		debug.SetGCPercent(before)
	}
	return func() { debug.SetGCPercent(before) }
}
