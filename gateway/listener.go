package gateway

import (
	"errors"
	"log/slog"
	"net"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

// A bounded listener bounds the connections at once, in all and from one address. One connection
// more gets the place of an idle one (see places), or is answered and closed before its request.
// The server's own bounds would answer with texts that are no part of the API.
type bounded struct {
	net.Listener
	places *places
	// writes the answer for one connection too many; nil: no answer
	refuse func(*fasthttp.RequestCtx)
	log    *slog.Logger
}

// Bounds of an accept.
const (
	// refusalTimeout bounds the answer to one connection too many, which fits into the socket's
	// buffer and so does not wait.
	refusalTimeout = 100 * time.Millisecond
	// acceptPause is the time between two attempts while no connection can be accepted.
	acceptPause = 50 * time.Millisecond
)

// bounded adds the limits of connections to a listener, and TLS if it has a certificate. With TLS,
// one connection too many is closed without an answer, because its handshake would cost more than
// the limit saves.
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

// passes reports whether an error ends by itself, for example a lack of file descriptors, so that
// open connections do not suffer from refused ones.
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
		ctx.Response.WriteTo(c) //nolint:errcheck // the client may be gone
	}
}

// SyscallConn lets the stream write without waiting.
func (c *boundedConn) SyscallConn() (syscall.RawConn, error) {
	if s, ok := c.Conn.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}
