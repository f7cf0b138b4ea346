package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"exchange/persistence/line"
)

const (
	// maxQueuedBytes bounds the frames that wait for one peer. One more frame always has room.
	maxQueuedBytes = 64 << 20
	// leastPause and mostPause are the time between two tries to dial.
	leastPause = 20 * time.Millisecond
	mostPause  = time.Second
	// writeWithin is the longest time that a peer may read nothing of the sent bytes.
	writeWithin = 10 * time.Second
)

// A peer is another node, the connection that sends it frames, and its own to this node.
type peer struct {
	Peer
	link *Link
	ctx  context.Context // ends when it is removed
	stop context.CancelFunc

	guest  bool // it is an observer
	visits int  // connections of a guest; guarded by the link's mu

	mu      sync.Mutex
	to      *line.Line // nil: no connection; guarded by mu
	inbound net.Conn   // guarded by mu
	cause   string     // of the last failure to reach it; "": none; guarded by mu
	calls   []*call    // the oldest first; guarded by mu
}

// Send queues a frame for a peer, or drops it. It does not block.
func (l *Link) Send(to string, frame []byte) {
	p := l.peer(to)
	if p == nil {
		return
	}
	p.mu.Lock()
	w := p.to
	p.mu.Unlock()
	if w != nil {
		//nolint:errcheck // a frame without room is dropped
		w.Send(func(b []byte) []byte { return append(b, frame...) })
	}
}

// replace ends an older connection of the peer: it has dialled again.
func (p *peer) replace(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inbound != nil {
		p.inbound.Close()
	}
	p.inbound = conn
	if p.ctx.Err() != nil {
		conn.Close()
	}
}

// end closes the connections of a removed peer.
func (p *peer) end() {
	p.stop()
	p.drop()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inbound != nil {
		p.inbound.Close()
	}
}

// pause waits, or returns false at the end.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// run dials the peer and sends, repeatedly.
func (p *peer) run() {
	for wait := leastPause; ; wait = min(2*wait, mostPause) {
		conn, err := p.open(p.ctx, kindFrames)
		if err != nil {
			p.unreachable(err)
		} else {
			begun := time.Now()
			p.serve(conn)
			if time.Since(begun) > mostPause { // the peer has taken it
				wait = leastPause
				p.reached()
			}
		}
		if !pause(p.ctx, wait) {
			return
		}
	}
}

// serve lets Send use a connection, until it ends.
func (p *peer) serve(conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(p.ctx, func() { conn.Close() })()
	w := p.link.frames(conn)
	p.mu.Lock()
	p.to = w
	p.mu.Unlock()
	//nolint:errcheck // nothing comes but the end
	w.Run(func([]byte) error { return line.ErrMalformed })
	p.mu.Lock()
	p.to = nil
	p.mu.Unlock()
}

// unreachable logs why the peer cannot be reached: once, until it can be or the cause changes.
func (p *peer) unreachable(err error) {
	cause := err.Error()
	if op, ok := errors.AsType[*net.OpError](err); ok {
		cause = op.Err.Error() // without the ports of this try
	}
	p.mu.Lock()
	same := cause == p.cause
	p.cause = cause
	p.mu.Unlock()
	if !same {
		p.link.o.Logger.Warn("a peer cannot be reached", "node", p.Name, "address", p.Address,
			"error", err)
	}
}

// reached resets the cause: the peer can be reached.
func (p *peer) reached() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cause = ""
}

// open opens a connection of a kind, and returns it once the peer has accepted it.
func (p *peer) open(ctx context.Context, kind byte) (net.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.link.o.within,
		fmt.Errorf("it has not answered within %s", p.link.o.within))
	defer cancel()
	conn, err := p.dial(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("node %s cannot be reached: %w", p.Name, err)
	}
	c := &call{Conn: conn, peer: p, dialed: true}
	if kind != kindFrames {
		p.keep(c)
		err = c.guard()
	}
	if err == nil {
		_, err = line.Greet(ctx, conn, kind, version, []byte(p.link.identity()))
	}
	if err != nil {
		c.Close() //nolint:errcheck // the other error counts
		return nil, fmt.Errorf("node %s: %w", p.Name, err)
	}
	return c, nil
}

func (p *peer) dial(ctx context.Context) (net.Conn, error) {
	conn, err := p.link.o.Dial(ctx, "tcp", p.Address)
	if err != nil {
		return nil, err
	}
	if c := p.link.o.Credentials; c != nil {
		secure := tls.Client(conn, c.config(identity(p.link.o.Cluster, p.Name)))
		if err = conn.SetDeadline(time.Now().Add(handshake)); err == nil {
			err = secure.HandshakeContext(ctx)
		}
		if err != nil {
			conn.Close()
			return nil, err
		}
		conn = secure
	}
	p.link.hold(conn)
	return conn, conn.SetDeadline(time.Time{})
}
