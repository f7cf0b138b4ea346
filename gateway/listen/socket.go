package listen

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
)

// The operator's socket: a listener of this machine that asks the kernel for the user at the other
// end, and so needs no token. A listener in its place cannot learn a token.

// Peers reports whether this system reports the user at the other end of a socket.
const Peers = peersReported

// A socketListener accepts connections of a socket and records their users.
type socketListener struct {
	*net.UnixListener
	most    int         // most bytes that are read from another user
	refused atomic.Bool // whether another user was logged
	warn    func(text string, args ...any)
}

// OnSocket records the users of a socket's connections. It reads at most most bytes from a user
// that may not operate, and warns of the first.
func OnSocket(l *net.UnixListener, most int, warn func(text string, args ...any)) net.Listener {
	return &socketListener{UnixListener: l, most: most, warn: warn}
}

// A localConn is a connection of the operator's socket.
type localConn struct {
	*net.UnixConn
	user User
	left int // bytes that may still be read from a user that may not operate
}

// A User is the user at the other end of a socket.
type User struct {
	ID    int
	HasID bool // whether the kernel reported the ID
}

// MayOperate reports whether the user is the exchange's own or root.
func (u User) MayOperate() bool { return u.HasID && (u.ID == 0 || u.ID == os.Geteuid()) }

// Accept implements net.Listener.
func (l *socketListener) Accept() (net.Conn, error) {
	conn, err := l.AcceptUnix()
	if err != nil {
		return nil, err
	}
	c := &localConn{UnixConn: conn, left: l.most}
	user, err := peerUser(conn)
	c.user = User{user, err == nil}
	if !c.user.MayOperate() && !l.refused.Swap(true) {
		l.warn("the operator's socket was used by another user and answers 403; logged once",
			"user", user, "error", err)
	}
	return c, nil
}

// Read implements net.Conn. From another user it reads the head of one request, which is answered,
// and no body.
func (c *localConn) Read(p []byte) (int, error) {
	if c.user.MayOperate() {
		return c.UnixConn.Read(p)
	}
	if c.left == 0 {
		return 0, errStranger
	}
	n, err := c.UnixConn.Read(p[:min(c.left, len(p))])
	c.left -= n
	return n, err
}

var errStranger = errors.New("gateway: the operator's socket is used by another user")

// UserOf returns the user of a connection of the operator's socket. ok is false for all others.
func UserOf(c net.Conn) (u User, ok bool) {
	b := Of(c)
	if b == nil {
		return User{}, false
	}
	if c, ok := b.Conn.(*localConn); ok {
		return c.user, true
	}
	return User{}, false
}
