package gateway

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

const peersKnown = true

// OverflowUser is no user's id: this system has no user namespaces.
func OverflowUser() int { return -1 }

// peerUser is the id of the user that opened the other end of a socket, as the kernel noted it then.
func peerUser(c *net.UnixConn) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *unix.Xucred
	var asked error
	err = raw.Control(func(fd uintptr) {
		peer, asked = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	})
	if err = errors.Join(err, asked); err != nil {
		return 0, err
	}
	return int(peer.Uid), nil
}
