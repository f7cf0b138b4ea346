package gateway

import (
	"errors"
	"net"
	"os"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

// The operator's socket: a listener of this machine that asks the system for the user at the other
// end, and so needs no token. A listener in its place cannot learn a token.

// Peers reports whether this system tells the user at the other end of a socket.
const Peers = peersKnown

// A socketListener accepts connections of a socket and notes their users.
type socketListener struct {
	*net.UnixListener
	most    int         // most bytes that are read from another user
	refused atomic.Bool // another user was logged
	warn    func(text string, args ...any)
}

// A localConn is a connection of the operator's socket.
type localConn struct {
	*net.UnixConn
	user  int
	known bool // the system has told the user
	left  int  // bytes that may still be read from another user
}

// mayOperate reports whether the user is the exchange's own or root.
func (c *localConn) mayOperate() bool {
	return c.known && (c.user == 0 || c.user == os.Geteuid())
}

// Accept implements net.Listener.
func (l *socketListener) Accept() (net.Conn, error) {
	conn, err := l.AcceptUnix()
	if err != nil {
		return nil, err
	}
	c := &localConn{UnixConn: conn, left: l.most}
	user, err := peerUser(conn)
	c.user, c.known = user, err == nil
	if !c.mayOperate() && !l.refused.Swap(true) {
		l.warn("the operator's socket was used by another user and answers 403; this is said once",
			"user", c.user, "error", err)
	}
	return c, nil
}

// Read implements net.Conn. From another user it reads the head of one request, which is answered,
// and no body.
func (c *localConn) Read(p []byte) (int, error) {
	if c.mayOperate() {
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

// socketOf returns the connection of the operator's socket that a request came over, nil for other
// requests.
func socketOf(ctx *fasthttp.RequestCtx) *localConn {
	b := placeOf(ctx.Conn())
	if b == nil {
		return nil
	}
	c, _ := b.Conn.(*localConn)
	return c
}
