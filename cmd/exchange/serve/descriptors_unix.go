//go:build unix

package serve

import (
	"fmt"
	"log/slog"
	"syscall"

	"exchange/gateway/edge"
)

const (
	// storeDescriptors is the number of file descriptors kept for the store and the rest of the
	// program. Pebble uses 400 open tables, its logs, and tables being written. The rest is for the
	// journal's segments and readers, connections to Redis and the mail server, listeners, metrics,
	// archives and backups.
	storeDescriptors = 692
	// keptDescriptors are these, the operator's, and the public listener's spare places. Each
	// listener accepts one more connection, to refuse it.
	keptDescriptors = storeDescriptors + edge.OperatorConnections + edge.SpareConnections + 2
	// leastConnections is the least number of connections of an exchange.
	leastConnections = 64
)

// affordable returns the number of connections that the public listener may hold, at most the
// wanted one. Clients must not take the descriptors of the store's next files, because without
// these trading stops. So if the system allows too few, the listener holds fewer connections, or
// the start is refused.
func affordable(connections int, log *slog.Logger) (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("how many files may be open cannot be read: %w", err)
	}
	kept := uint64(keptDescriptors)
	if least := uint64(min(connections, leastConnections)); limit.Cur < kept+least {
		return 0,
			fmt.Errorf(
				"the system allows %d open files, and %d are needed: %d for the store and the "+
					"operator,"+
					" and %d connections; raise the limit (ulimit -n, LimitNOFILE)", limit.Cur,
				kept+least, kept, least)
	}
	if most := limit.Cur - kept; uint64(connections) > most {
		log.Warn(
			"the system allows too few open files for limits.connections: fewer connections are "+
				"held;"+
				" raise the limit (ulimit -n, LimitNOFILE), or lower limits.connections",
			"limits.connections", connections,
			"held", most, "open_files", limit.Cur, "kept_for_the_store", kept, "needed",
			uint64(connections)+kept)
		return int(most), nil
	}
	return connections, nil
}
