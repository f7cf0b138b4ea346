//go:build !unix

package serve

import "log/slog"

// affordable returns all: this system has no limit of open files.
func affordable(connections int, _ *slog.Logger) (int, error) { return connections, nil }
