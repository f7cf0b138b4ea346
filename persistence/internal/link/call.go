package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"exchange/persistence/line"
)

const (
	// maxCalls is how many connections of a peer, opened with Dial, are open at a time. One more
	// closes the oldest, because a peer that has lost connections dials again before this node
	// detects that. So it is twice what a peer needs: one for its clients' commands, and eight for
	// its operators.
	maxCalls = 2 * (1 + 8)

	// aliveWithin is the time after which a connection fails if its other end does not acknowledge
	// sent bytes, or does not answer on an idle connection.
	aliveWithin = 5 * time.Second
	aliveEvery  = time.Second // between two probes on an idle connection
)

var errNoCalls = errors.New("this node takes no connections")

// A call is a connection for the layers above the link.
type call struct {
	net.Conn
	peer   *peer
	dialed bool // by this node
	closed sync.Once
}

// Close implements net.Conn.
func (c *call) Close() error {
	err := c.Conn.Close() // with TLS this signals the end
	c.closed.Do(func() {
		c.peer.forget(c)
		c.peer.link.free(c.Conn)
		c.peer.link.left(c.peer)
	})
	return err
}

// cut closes the connection without notifying the peer, which may not read.
func (c *call) cut() { socket(c.Conn).Close() }

// socket returns the connection below TLS.
func socket(conn net.Conn) net.Conn {
	if t, ok := conn.(*tls.Conn); ok {
		return t.NetConn()
	}
	return conn
}

// guard lets the connection fail when the peer's machine is unreachable.
func (c *call) guard() error {
	tcp, ok := socket(c.Conn).(*net.TCPConn)
	if !ok { // connections of Options.Listener may be others
		return nil
	}
	return errors.Join(failWithin(tcp, aliveWithin), tcp.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable: true, Idle: 2 * aliveEvery, Interval: aliveEvery,
		Count: int(aliveWithin/aliveEvery) - 2}))
}

// keep registers a call, so that it ends with the peer.
func (p *peer) keep(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, c)
	if p.ctx.Err() != nil {
		c.cut()
	}
	if c.dialed {
		return
	}
	n, oldest := 0, 0
	for i, c := range slices.Backward(p.calls) {
		if !c.dialed {
			n, oldest = n+1, i
		}
	}
	if n > p.mostCalls() {
		p.calls[oldest].cut()
		p.calls = slices.Delete(p.calls, oldest, oldest+1)
	}
}

// Drop ends the connections between this node and a peer that were opened with Dial. Admit is
// called after a connection is registered: so either Drop ends it, or Admit refuses it for the
// reason of the Drop.
func (l *Link) Drop(name string) {
	if p := l.peer(name); p != nil {
		p.drop()
	}
}

func (p *peer) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		c.cut()
	}
}

func (p *peer) forget(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = slices.DeleteFunc(p.calls, func(other *call) bool { return other == c })
}

// take answers a peer that requests a connection, and passes it to Accept.
func (l *Link) take(c *call, g *line.Greeting) {
	err := c.guard()
	c.peer.keep(c)
	accept, admit := l.handlers(c.peer, g.Kind)
	switch {
	case err != nil:
	case accept == nil:
		err = errNoCalls
	case admit != nil:
		err = admit(c.peer.Name)
	}
	if err != nil {
		g.Refuse(err)
	} else {
		err = g.Take(nil)
	}
	if err != nil {
		l.o.Logger.Debug("a connection of a peer is not taken", "node", c.peer.Name, "error", err)
		c.Close() //nolint:errcheck // the other error counts
		return
	}
	accept(c.peer.Name, c)
}

// Dial opens a connection to a peer, and returns it once the peer has accepted it. An error has the
// peer's reason if it has refused. The caller owns and closes the connection. It fails when the
// link is closed, when Set removes the peer, and some seconds after the peer's machine becomes
// unreachable, but not while the peer's process hangs: the caller bounds that. ctx bounds only the
// wait.
func (l *Link) Dial(ctx context.Context, name string) (net.Conn, error) {
	if l.o.Observes {
		return l.call(ctx, name, kindObserver)
	}
	return l.call(ctx, name, kindCall)
}

// call is Dial for a connection of a kind.
func (l *Link) call(ctx context.Context, name string, kind byte) (net.Conn, error) {
	p := l.peer(name)
	if p == nil {
		return nil, fmt.Errorf("node %s is not a node of this cluster", name)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	return p.open(ctx, kind)
}
