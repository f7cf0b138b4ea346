//go:build !linux && !darwin

package gateway

import (
	"errors"
	"net"
)

const peersKnown = false

func peerUser(*net.UnixConn) (int, error) { return 0, errors.ErrUnsupported }
