package listen

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"syscall"
	"time"
)

// A bounded listener bounds the connections at once, in all and from one address. At the limit, a
// new connection gets the place of an idle one (see places), or is answered and closed before its
// request. The server's own bounds would answer with texts outside the API.
type bounded struct {
	net.Listener
	places *Places
	// writes the answer to a connection above the limit; nil: no answer
	refuse func(io.Writer)
	log    *slog.Logger
}

// Bounds of an accept.
const (
	// refusalTimeout bounds the answer to a connection above the limit. It fits into the socket's
	// buffer, so it should not wait.
	refusalTimeout = 100 * time.Millisecond
	// acceptPause is the time between two attempts while no connection can be accepted.
	acceptPause = 50 * time.Millisecond
)

// New gives the connections of a listener places, and TLS if there is a certificate. refuse writes
// the answer to a connection above the limit. With TLS such a connection is closed without answer,
// because its handshake would cost more than the limit saves.
func New(l net.Listener, p *Places, c *Certificate, refuse func(io.Writer),
	log *slog.Logger) net.Listener {
	if c != nil {
		refuse = nil
	}
	return secure(&bounded{Listener: l, places: p, refuse: refuse, log: log}, c)
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
		b := &Conn{Conn: c, places: l.places}
		loser, ok := l.places.enter(b)
		if loser != nil {
			l.places.refused.Add(1)
			loser.Cut()
		}
		if ok {
			return b, nil
		}
		l.places.refused.Add(1)
		l.turnAway(c)
	}
}

// passes reports whether an accept's error is temporary, for example a lack of file descriptors.
// Then the listener stays open.
func passes(err error) bool {
	var e interface{ Temporary() bool }
	return errors.As(err, &e) && e.Temporary()
}

func (l *bounded) turnAway(c net.Conn) {
	defer c.Close()
	if l.refuse == nil {
		return
	}
	if c.SetWriteDeadline(time.Now().Add(refusalTimeout)) == nil {
		l.refuse(c)
	}
}

// Of returns the Conn that a server's connection wraps; nil: none.
func Of(c net.Conn) *Conn {
	switch c := c.(type) {
	case *Conn:
		return c
	case *tlsConn:
		return c.below.place
	case interface{ UnsafeConn() net.Conn }:
		return Of(c.UnsafeConn())
	}
	return nil
}

// Authenticated records that a connection's client has authenticated: it keeps its place.
func Authenticated(c net.Conn) {
	if b := Of(c); b != nil && b.state.Load() != kept {
		b.places.authenticate(b)
	}
}

// Hold records whether a connection has a subscription. A held connection keeps its place.
func Hold(c net.Conn, on bool) {
	if b := Of(c); b != nil {
		b.places.hold(b, on)
	}
}

// SyscallConn lets the stream write without waiting.
func (c *Conn) SyscallConn() (syscall.RawConn, error) {
	if s, ok := c.Conn.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}
