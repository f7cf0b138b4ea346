//go:build !linux && !darwin

package gateway

import (
	"errors"
	"net"
)

const peersKnown = false

// OverflowUser is no user's id: this system has no user namespaces.
func OverflowUser() int { return -1 }

func peerUser(*net.UnixConn) (int, error) { return 0, errors.ErrUnsupported }
