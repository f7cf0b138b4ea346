package link

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
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
			p.link.o.Logger.Debug("a peer cannot be reached", "node", p.Name, "error", err)
			p.empty()
			if !pause(p.ctx, wait) {
				return
			}
			wait = min(2*wait, mostPause)
			continue
		}
		wait = leastPause
		p.write(conn)
		p.link.free(conn)
		if !pause(p.ctx, leastPause) {
			return
		}
	}
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

// write sends what comes, until the connection ends.
func (p *peer) write(conn net.Conn) {
	ended := make(chan struct{})
	p.link.all.Go(func() {
		defer close(ended)
		io.Copy(io.Discard, conn) // nothing comes but the end
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
