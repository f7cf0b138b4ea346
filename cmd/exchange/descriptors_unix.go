//go:build unix

package main

import (
	"log/slog"
	"syscall"
)

// storeDescriptors is how many file descriptors the store, its files and the rest of the program may take
// beside connections.
const storeDescriptors = 2000

// checkDescriptors warns when the system allows fewer open files than connections are configured: then
// connections wait for a free descriptor before their limit is reached.
func checkDescriptors(connections int, log *slog.Logger) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return
	}
	if need := uint64(connections) + storeDescriptors; limit.Cur < need {
		log.Warn("the system allows fewer open files than limits.connections may need: raise it (ulimit -n, LimitNOFILE), or lower limits.connections",
			"allowed", limit.Cur, "needed", need)
	}
}
