package gateway

import (
	"errors"
	"log/slog"
	"net"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

// A bounded listener holds a number of connections at once, in all and from one address. One more
// gets the place of an idle one, see places, or is answered and closed, whatever it was about to
// ask; the others do not notice. The server's own bounds would answer in their own words, which are
// no part of the API.
type bounded struct {
	net.Listener
	places *places
	// fills the answer for one connection too many; nil: there is none
	refuse func(*fasthttp.RequestCtx)
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

// bounded puts the limits of connections on a listener, and TLS if it has a certificate. Then one
// connection too many is closed without a word: a handshake for each would cost more than what the
// limit saves.
func (g *Gateway) bounded(l net.Listener, p *places, c *Certificate,
	refuse func(*fasthttp.RequestCtx)) net.Listener {
	if c != nil {
		refuse = nil
	}
	return secure(&bounded{Listener: l, places: p, refuse: refuse, log: g.log}, c)
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
		b := &boundedConn{Conn: c, places: l.places}
		loser, ok := l.places.enter(b)
		if loser != nil {
			l.places.meter.refused.Add(1)
			loser.cut()
		}
		if ok {
			return b, nil
		}
		l.places.meter.refused.Add(1)
		l.turnAway(c)
	}
}

// passes is true of errors that end by themselves, such as when there is no file descriptor left:
// the connections that are open must not suffer from the ones that are not.
func passes(err error) bool {
	var e interface{ Temporary() bool }
	return errors.As(err, &e) && e.Temporary()
}

func (l *bounded) turnAway(c net.Conn) {
	defer c.Close()
	if l.refuse == nil {
		return
	}
	var ctx fasthttp.RequestCtx
	l.refuse(&ctx)
	ctx.Response.SetConnectionClose()
	if c.SetWriteDeadline(time.Now().Add(refusalTimeout)) == nil {
		ctx.Response.WriteTo(c) //nolint:errcheck // it may be gone already
	}
}

// SyscallConn lets the stream write without waiting.
func (c *boundedConn) SyscallConn() (syscall.RawConn, error) {
	if s, ok := c.Conn.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}
