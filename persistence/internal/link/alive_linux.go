package link

import (
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// failWithin lets a connection fail if sent bytes are not acknowledged within a time: keepalive
// does not probe a connection that waits for that.
func failWithin(conn *net.TCPConn, within time.Duration) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT,
			int(within.Milliseconds()))
	})
	return errors.Join(err, set)
}
