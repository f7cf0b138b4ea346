package gateway

import (
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

// A bounded listener holds a number of connections at once. One more is answered and closed, whatever
// it was about to ask; the others do not notice. The server's own bound would answer in its own words,
// which are no part of the API.
type bounded struct {
	net.Listener
	most   int64
	meter  *connectionMeter
	refuse func(*fasthttp.RequestCtx) // fills the answer for one connection too many
	log    *slog.Logger
}

// Bounds of an accept.
const (
	// refusalTimeout is how long the answer to one connection too many may take: it fits into the
	// socket's buffer, so it does not wait for anybody.
	refusalTimeout = 100 * time.Millisecond
	// acceptPause is the time between two tries while no connection can be accepted.
	acceptPause = 50 * time.Millisecond
)

// bounded puts the limit of connections on a listener.
func (g *Gateway) bounded(l net.Listener, m *connectionMeter, refuse func(*fasthttp.RequestCtx)) net.Listener {
	return &bounded{Listener: l, most: int64(g.opts.Connections), meter: m, refuse: refuse, log: g.log}
}

// Accept implements net.Listener; the server calls it from one goroutine.
func (l *bounded) Accept() (net.Conn, error) {
	for said := false; ; {
		c, err := l.Listener.Accept()
		if err != nil {
			if !passes(err) {
				return nil, err
			}
			if !said {
				l.log.Error("no connection can be accepted, trying again", "error", err)
				said = true
			}
			time.Sleep(acceptPause)
			continue
		}
		if l.meter.open.Add(1) <= l.most {
			return &boundedConn{Conn: c, open: &l.meter.open}, nil
		}
		l.meter.refused.Add(1)
		l.turnAway(c)
		l.meter.open.Add(-1)
	}
}

// passes is true of errors that end by themselves, such as when there is no file descriptor left: the
// connections that are open must not suffer from the ones that are not.
func passes(err error) bool {
	var e interface{ Temporary() bool }
	return errors.As(err, &e) && e.Temporary()
}

func (l *bounded) turnAway(c net.Conn) {
	defer c.Close()
	var ctx fasthttp.RequestCtx
	l.refuse(&ctx)
	ctx.Response.SetConnectionClose()
	if c.SetWriteDeadline(time.Now().Add(refusalTimeout)) == nil {
		ctx.Response.WriteTo(c) //nolint:errcheck // it may be gone already
	}
}

// A boundedConn gives its place back when it is closed.
type boundedConn struct {
	net.Conn
	open   *atomic.Int64
	closed atomic.Bool
}

// SyscallConn lets the stream write without waiting.
func (c *boundedConn) SyscallConn() (syscall.RawConn, error) {
	if s, ok := c.Conn.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

func (c *boundedConn) Close() error {
	err := c.Conn.Close()
	if !c.closed.Swap(true) {
		c.open.Add(-1)
	}
	return err
}
