//go:build !linux && !darwin

package listen

import (
	"errors"
	"net"
)

const peersKnown = false

// OverflowUser returns no user's id, because this system has no user namespaces.
func OverflowUser() int { return -1 }

func peerUser(*net.UnixConn) (int, error) { return 0, errors.ErrUnsupported }
