package link

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"exchange/persistence/line"
)

const (
	// callHello begins the first frame of a connection that a peer has opened with Dial. One frame
	// answers it: callTaken, or callRefused and the reason. What follows is not the link's.
	callHello   = "exCALL1 "
	callTaken   = 't'
	callRefused = 'r'

	// maxCalls is how many connections a peer has opened with Dial at a time. One more ends the
	// oldest, because a peer that has lost connections dials again before this node notices. So it
	// is twice what a peer needs: one for its clients' commands, and eight for its operators.
	maxCalls = 2 * (1 + 8)

	// aliveWithin is the time after which a connection fails whose other end does not acknowledge
	// what is sent, or does not answer on an idle connection.
	aliveWithin = 5 * time.Second
	aliveEvery  = time.Second // between two questions on an idle connection
)

var errNoCalls = errors.New("this node takes no connections")

// A call is a connection for what is above the link.
type call struct {
	net.Conn
	r      io.Reader // Conn, behind its first frame
	peer   *peer
	dialed bool // by this node
	closed sync.Once
}

func (c *call) Read(b []byte) (int, error) { return c.r.Read(b) }

// Close implements net.Conn.
func (c *call) Close() error {
	err := c.Conn.Close() // with TLS this says that it was all
	c.closed.Do(func() {
		c.peer.forget(c)
		c.peer.link.free(c.Conn)
		c.peer.link.left(c.peer)
	})
	return err
}

// cut ends the connection without a word to the peer, which may take none.
func (c *call) cut() { socket(c.Conn).Close() }

// socket returns what is below TLS.
func socket(conn net.Conn) net.Conn {
	if t, ok := conn.(*tls.Conn); ok {
		return t.NetConn()
	}
	return conn
}

// guard lets the connection fail when the peer's machine is gone.
func (c *call) guard() error {
	tcp, ok := socket(c.Conn).(*net.TCPConn)
	if !ok { // a listener that was given makes others
		return nil
	}
	return errors.Join(failWithin(tcp, aliveWithin), tcp.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable: true, Idle: 2 * aliveEvery, Interval: aliveEvery,
		Count: int(aliveWithin/aliveEvery) - 2}))
}

// keep notes a call, so that it ends with the peer.
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

// Drop ends the connections between this node and a peer that were opened with Dial. Admit is asked
// after a connection is one of those: so one is dropped, or Admit knows why there was a Drop.
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

// take answers a peer that wants a connection of a kind, and lets Accept have it.
func (l *Link) take(c *call, kind string) {
	accept, admit := l.callers(c.peer, kind)
	if err := c.answer(accept != nil, admit); err != nil {
		l.o.Logger.Debug("a connection of a peer is not taken", "node", c.peer.Name, "error", err)
		c.Close() //nolint:errcheck // the other error counts
		return
	}
	accept(c.peer.Name, c)
}

// answer tells the peer whether its connection is taken, and returns why not.
func (c *call) answer(accepts bool, admit func(string) error) error {
	if err := c.guard(); err != nil {
		return err
	}
	c.peer.keep(c)
	var reason error
	switch {
	case !accepts:
		reason = errNoCalls
	case admit != nil:
		reason = admit(c.peer.Name)
	}
	if reason != nil {
		text := reason.Error()
		return errors.Join(reason, c.say(callRefused, text[:min(len(text), maxReason)]))
	}
	if err := c.say(callTaken, ""); err != nil {
		return err
	}
	return c.SetWriteDeadline(time.Time{})
}

// say sends an answer.
func (c *call) say(word byte, reason string) error {
	b := binary.BigEndian.AppendUint32(nil, uint32(1+len(reason)))
	b = append(append(b, word), reason...)
	err := c.SetWriteDeadline(time.Now().Add(writeWithin))
	if err == nil {
		_, err = c.Write(b)
	}
	return err
}

// Dial opens a connection to a peer, and returns it once the peer has taken it. An error has the
// peer's reason if it has refused. The connection is the caller's, who closes it. It fails when the
// link is closed, when Set ends the peer, and some seconds after the peer's machine has gone, but
// not while the peer's process stands still: the caller bounds that. ctx ends the wait alone.
func (l *Link) Dial(ctx context.Context, name string) (net.Conn, error) {
	return l.call(ctx, name, l.callsAs())
}

// call is Dial for a connection with a first frame.
func (l *Link) call(ctx context.Context, name, first string) (net.Conn, error) {
	p := l.peer(name)
	if p == nil {
		return nil, fmt.Errorf("node %s is not a node of this cluster", name)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, l.o.within,
		fmt.Errorf("it has not answered within %s", l.o.within))
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	conn, err := p.dial(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("node %s cannot be reached: %w", name, err)
	}
	c := &call{Conn: conn, r: conn, peer: p, dialed: true}
	p.keep(c)
	if err := c.greet(ctx, first); err != nil {
		c.Close() //nolint:errcheck // the other error counts
		return nil, fmt.Errorf("node %s: %w", name, err)
	}
	return c, nil
}

// greet asks the peer to take the connection.
func (c *call) greet(ctx context.Context, first string) error {
	stop := context.AfterFunc(ctx, c.cut)
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(first))), first...)
	err := c.guard()
	if err == nil {
		_, err = c.Write(b)
	}
	if err == nil {
		err = c.taken()
	}
	if !stop() {
		return context.Cause(ctx)
	}
	return err
}

// taken waits for the answer.
func (c *call) taken() error {
	answer, err := line.ReadFrame(c, 1+maxReason)
	switch {
	case err != nil:
		return err
	case string(answer) == string(callTaken):
		return nil
	case len(answer) > 0 && answer[0] == callRefused:
		return fmt.Errorf("it refuses the connection: %q", answer[1:])
	}
	return fmt.Errorf("it says %.64q, which is no answer to a connection", answer)
}
