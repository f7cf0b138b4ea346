//go:build prove

package link

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Both ends of a connection fail when the other machine is unreachable, with and without bytes in
// flight.
func TestBothEndsDetectUnreachableMachine(t *testing.T) {
	ca := newAuthority(t)
	for _, credentials := range []func(string) *Credentials{plain, ca.voter} {
		a, b := pairAt(t, "127.0.0.1:0", credentials)
		dialed, taken := open2(t, a, b)
		for _, conn := range []net.Conn{dialed, taken.(accepted).Conn} {
			raw, err := socket(conn.(*call).Conn).(*net.TCPConn).SyscallConn()
			succeeds(t, err)
			get := func(option int) (value int) {
				succeeds(t, raw.Control(func(fd uintptr) {
					value, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option)
				}))
				return value
			}
			if d := time.Duration(get(unix.TCP_USER_TIMEOUT)) * time.Millisecond; d != aliveWithin {
				t.Errorf("sent bytes may be in flight for %s", d)
			}
			if s := get(unix.TCP_KEEPIDLE) + get(unix.TCP_KEEPINTVL)*get(unix.TCP_KEEPCNT); s !=
				int(aliveWithin/time.Second) {
				t.Errorf("silence may take %d s", s)
			}
			if get(unix.TCP_NODELAY) == 0 {
				t.Error("bytes wait for others")
			}
		}
	}
}
