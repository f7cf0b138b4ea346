package link

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxQueued and maxQueuedBytes bound what waits for one peer. One frame always has room.
	maxQueued      = 1024
	maxQueuedBytes = 128 << 20
	// leastPause and mostPause are the time between two tries to dial.
	leastPause = 20 * time.Millisecond
	mostPause  = time.Second
	// writeWithin is the longest time that a peer may take none of what is sent.
	writeWithin = 10 * time.Second
)

// A peer is another node, what waits for it, and its own connection to this node.
type peer struct {
	Peer
	link   *Link
	ctx    context.Context // ends when it is no peer any more
	stop   context.CancelFunc
	frames chan []byte
	bytes  atomic.Int64 // of frames

	guest  bool // it is an observer
	visits int  // connections of a guest; guarded by the link's mu

	mu      sync.Mutex
	inbound net.Conn // guarded by mu
	cause   string   // why it could not be reached last, "": it can be; guarded by mu
	calls   []*call  // the oldest first; guarded by mu
}

// Send puts a frame behind those that wait for a peer, or drops it. It does not block. The frame is
// the link's from then on.
func (l *Link) Send(to string, frame []byte) {
	p := l.peer(to)
	if p == nil || len(frame) > maxFrame {
		return
	}
	n := int64(len(frame))
	if p.bytes.Add(n) > max(maxQueuedBytes, n) {
		p.bytes.Add(-n)
		return
	}
	select {
	case p.frames <- frame:
	default:
		p.bytes.Add(-n)
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

// end ends the connections of a peer that is none any more.
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

// run dials the peer and sends, again and again.
func (p *peer) run() {
	wait := leastPause
	for p.ctx.Err() == nil {
		conn, err := p.dial(p.ctx)
		if err != nil {
			p.unreachable(err)
			p.empty()
			if !pause(p.ctx, wait) {
				return
			}
			wait = min(2*wait, mostPause)
			continue
		}
		begun := time.Now()
		p.write(conn)
		p.link.free(conn)
		if time.Since(begun) > mostPause { // the peer has taken it
			wait = leastPause
			p.reached()
		}
		if !pause(p.ctx, wait) {
			return
		}
		wait = min(2*wait, mostPause)
	}
}

// unreachable logs why the peer cannot be reached: once, until it can be or the cause is another.
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

// reached notes that the peer can be reached.
func (p *peer) reached() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cause = ""
}

// empty drops what waits: when the peer can be reached again it is old.
func (p *peer) empty() {
	for {
		select {
		case f := <-p.frames:
			p.bytes.Add(-int64(len(f)))
		default:
			return
		}
	}
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

// alerted reports whether a peer's TLS has ended a connection for a reason.
func alerted(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}

// write sends what comes, until the connection ends.
func (p *peer) write(conn net.Conn) {
	ended := make(chan struct{})
	p.link.all.Go(func() {
		defer close(ended)
		// Nothing comes but the end: with an alert where the peer refuses this node's certificate.
		if _, err := io.Copy(io.Discard, conn); alerted(err) {
			p.unreachable(err)
		}
		conn.Close()
	})
	w := bufio.NewWriterSize(conn, bufferAll)
	frame := []byte(p.link.identified(hello))
	for {
		if err := conn.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
			return
		}
		w.Write(binary.BigEndian.AppendUint32(nil, uint32(len(frame)))) // Flush has its error
		w.Write(frame)
		if len(p.frames) == 0 {
			if err := w.Flush(); err != nil {
				return
			}
		}
		select {
		case frame = <-p.frames:
			p.bytes.Add(-int64(len(frame)))
		case <-ended:
			return
		case <-p.ctx.Done():
			return
		}
	}
}
