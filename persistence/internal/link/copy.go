package link

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

const (
	// copyRate is how many bytes of a copy are sent in a second: much less than disks and networks
	// take, so that a node that serves is not disturbed.
	copyRate = 32 << 20
	// copySilence is the longest time until more of a copy comes, or is taken.
	copySilence = time.Minute
	// maxCopy bounds a copy, in bytes.
	maxCopy = 1 << 40
)

// copy writes what a peer has asked for, and ends the connection.
func (l *Link) copy(p *peer, k *known) {
	select {
	case l.copying <- struct{}{}:
		defer func() { <-l.copying }()
	default:
		return // the peer asks again
	}
	if l.o.Copy == nil {
		return
	}
	err := l.o.Copy(p.ctx, p.Name, k.nonce, &pacedWriter{ctx: p.ctx, conn: k.conn})
	if err == nil {
		err = k.conn.Close() // with TLS this says that it was all
	}
	if err != nil {
		l.o.Logger.Warn("a copy for another node has ended early", "node", p.Name, "error", err)
	}
}

// A pacedWriter sends at copyRate, to a peer that goes on reading.
type pacedWriter struct {
	ctx  context.Context
	conn net.Conn
}

func (w *pacedWriter) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		piece := b[:min(len(b), copyRate/64)]
		// the peer rests while it looks at what has come
		if err := w.conn.SetWriteDeadline(time.Now().Add(copySilence)); err != nil {
			return n, err
		}
		begin := time.Now()
		m, err := w.conn.Write(piece)
		if n += m; err != nil {
			return n, err
		}
		rest := time.Second*time.Duration(m)/copyRate - time.Since(begin)
		if !pause(w.ctx, max(rest, 0)) {
			return n, w.ctx.Err()
		}
		b = b[m:]
	}
	return n, nil
}

// Fetch asks a peer for a copy, on a connection of its own. nonce, without a space, says which
// start of this node asks. The reader does not tell a whole copy from one that was cut off: what is
// copied must. ctx ends it.
func (l *Link) Fetch(ctx context.Context, from, nonce string) (io.ReadCloser, error) {
	p := l.peer(from)
	if p == nil {
		return nil, fmt.Errorf("node %s is not a node of this cluster", from)
	}
	conn, err := p.dial()
	if err != nil {
		return nil, err
	}
	f := &fetched{link: l, conn: conn, r: io.LimitReader(conn, maxCopy)}
	f.stop = context.AfterFunc(ctx, func() { conn.Close() })
	first := copyHello + nonce + " " + identity(l.o.Cluster, l.o.Name)
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(first))), first...)
	if err = conn.SetWriteDeadline(time.Now().Add(writeWithin)); err == nil {
		_, err = conn.Write(b)
	}
	if err != nil {
		f.Close() //nolint:errcheck // the other error counts
		return nil, err
	}
	return f, nil
}

// fetched is a copy that comes.
type fetched struct {
	link *Link
	conn net.Conn
	r    io.Reader
	stop func() bool
}

func (f *fetched) Read(b []byte) (int, error) {
	if err := f.conn.SetReadDeadline(time.Now().Add(copySilence)); err != nil {
		return 0, err
	}
	return f.r.Read(b)
}

// Close ends the connection.
func (f *fetched) Close() error {
	f.stop()
	f.link.free(f.conn)
	return nil
}
