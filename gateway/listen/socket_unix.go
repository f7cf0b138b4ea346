//go:build darwin || linux

package listen

import (
	"errors"
	"net"
)

const peersReported = true

// peerUser returns the id of the user that opened the other end of a socket.
func peerUser(c *net.UnixConn) (user int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var asked error
	err = raw.Control(func(fd uintptr) { user, asked = userOf(int(fd)) })
	return user, errors.Join(err, asked)
}
