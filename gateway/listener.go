package gateway

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/gateway/ratelimit"
)

// A bounded listener holds a number of connections at once, in all and from one address. One more is answered and
// closed, whatever it was about to ask; the others do not notice. The server's own bounds would answer in their own
// words, which are no part of the API.
type bounded struct {
	net.Listener
	most int64
	from *peers // nil: one address may have all
	// strangers give their places up for newer connections. nil: nobody has to
	strangers *strangers
	meter     *connectionMeter
	refuse    func(*fasthttp.RequestCtx) // fills the answer for one connection too many; nil: there is none
	log       *slog.Logger
}

// Bounds of an accept.
const (
	// refusalTimeout is how long the answer to one connection too many may take: it fits into the
	// socket's buffer, so it does not wait for anybody.
	refusalTimeout = 100 * time.Millisecond
	// acceptPause is the time between two tries while no connection can be accepted.
	acceptPause = 50 * time.Millisecond
)

// bounded puts the limit of connections on a listener, and TLS if it has a certificate. Then one connection too many
// is closed without a word: a handshake for each would cost more than what the limit saves.
func (g *Gateway) bounded(l net.Listener, most, perAddress int, who *strangers, c *Certificate, m *connectionMeter, refuse func(*fasthttp.RequestCtx)) net.Listener {
	if c != nil {
		refuse = nil
	}
	from := newPeers(perAddress, g.opts.TrustedProxies)
	return secure(&bounded{Listener: l, most: int64(most), from: from, strangers: who, meter: m, refuse: refuse, log: g.log}, c)
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
		b := &boundedConn{Conn: c, open: &l.meter.open, from: l.from, strangers: l.strangers}
		if l.from.enter(b) || l.replace(func(c *boundedConn) bool { return c.some && c.peer == b.peer }) && l.from.enter(b) {
			if l.meter.open.Add(1) <= l.most || l.replace(anybody) {
				l.strangers.enter(b)
				return b, nil
			}
			l.meter.open.Add(-1)
			l.from.leave(b)
		}
		l.meter.refused.Add(1)
		l.turnAway(c)
	}
}

func anybody(*boundedConn) bool { return true }

// replace closes the oldest connection of such a stranger; false if there is none.
func (l *bounded) replace(such func(*boundedConn) bool) bool {
	c := l.strangers.oldest(such)
	if c == nil {
		return false
	}
	l.meter.refused.Add(1)
	c.Close()
	return true
}

// passes is true of errors that end by themselves, such as when there is no file descriptor left: the
// connections that are open must not suffer from the ones that are not.
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

// A boundedConn gives its place back when it is closed.
type boundedConn struct {
	net.Conn
	open      *atomic.Int64
	from      *peers
	peer      uint64 // its key in from, if it is counted there
	some      bool   // it is
	strangers *strangers
	closed    atomic.Bool
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
		c.strangers.leave(c)
		c.open.Add(-1)
		c.from.leave(c)
	}
	return err
}

// strangers are the connections of a listener that have not shown yet who they are, the oldest first. Whoever can reach the
// listener can open as many as there are places; this way they keep nobody out who shows it at once, with a whole request.
type strangers struct {
	mu   sync.Mutex
	open []*boundedConn // guarded by mu; no more than the listener has places, which are few
}

func (s *strangers) enter(c *boundedConn) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, c)
}

// leave is for one that is closed, or has shown who it is.
func (s *strangers) leave(c *boundedConn) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.open, c); i >= 0 {
		s.open = slices.Delete(s.open, i, i+1)
	}
}

// oldest is nil if there is none such.
func (s *strangers) oldest(such func(*boundedConn) bool) *boundedConn {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.open, such); i >= 0 {
		return s.open[i]
	}
	return nil
}

// known notes that a connection has shown who it is.
func known(c net.Conn) {
	switch c := c.(type) {
	case *tlsConn:
		known(c.below.Conn)
	case *boundedConn:
		c.strangers.leave(c)
	}
}

// peers counts connections by the address that they come from; of IPv6 a network of 64 bits is one. Addresses of this
// machine and of trusted proxies are not counted: behind them there are many.
type peers struct {
	most    int
	trusted []netip.Prefix

	mu   sync.Mutex
	open map[uint64]int // guarded by mu
}

// newPeers is nil if there is no limit.
func newPeers(most int, trusted []netip.Prefix) *peers {
	if most == 0 {
		return nil
	}
	return &peers{most: most, trusted: trusted, open: map[uint64]int{}}
}

// enter counts a connection; false if its address has as many as it may.
func (p *peers) enter(c *boundedConn) bool {
	if p == nil {
		return true
	}
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return true
	}
	a := tcp.AddrPort().Addr().Unmap()
	if a.IsLoopback() || within(p.trusted, a) {
		return true
	}
	c.peer = ratelimit.AddressKey(a)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[c.peer] >= p.most {
		return false
	}
	p.open[c.peer]++
	c.some = true
	return true
}

// leave gives the place of a connection back, if it has one.
func (p *peers) leave(c *boundedConn) {
	if !c.some {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[c.peer]--; p.open[c.peer] == 0 {
		delete(p.open, c.peer)
	}
}
