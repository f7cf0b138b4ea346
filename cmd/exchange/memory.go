package main

import (
	"log/slog"
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// memoryShare is how much of a container's memory the collector may let the heap and the stacks
// reach before it works harder; the rest is for what Go does not count.
const memoryShare = 0.9

// limitMemory tells the garbage collector how much memory there is: what GOMEMLIMIT says, else
// memoryShare of what the provider knows, which is the container's limit. Without either, the heap
// may double between two collections however little is left, and a container ends a process that
// still has garbage.
func limitMemory(container memlimit.Provider, log *slog.Logger) {
	if _, err := memlimit.SetGoMemLimitWithOpts(memlimit.WithRatio(memoryShare),
		memlimit.WithProvider(container)); err != nil {
		log.Debug("there is no limit of the container's memory", "reason", err)
	}
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		log.Info("the collector keeps within a limit of memory", "bytes", limit)
	}
}
