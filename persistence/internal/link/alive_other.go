//go:build !linux

package link

import (
	"net"
	"time"
)

// failWithin does nothing: this system has no such bound, and detects it later.
func failWithin(*net.TCPConn, time.Duration) error { return nil }
