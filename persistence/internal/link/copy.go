package link

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
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

// A Want is the copy that a peer asks for.
type Want struct {
	Nonce string // of the peer's start; without a space
	Least uint64 // sequence below which a copy is of no use to the peer
}

// hello returns the first frame of a connection for a copy.
func (q Want) hello(identity string) string {
	return fmt.Sprintf("%s%s %d %s", copyHello, q.Nonce, q.Least, identity)
}

// cut takes a Want from the front of what follows copyHello.
func (q *Want) cut(text string) (rest string, ok bool) {
	nonce, rest, ok := strings.Cut(text, " ")
	if !ok {
		return "", false
	}
	least, rest, ok := strings.Cut(rest, " ")
	if !ok {
		return "", false
	}
	number, err := strconv.ParseUint(least, 10, 64)
	q.Nonce, q.Least = nonce, number
	return rest, err == nil
}

// What a source says until the first byte of a copy.
const (
	copyComes   = 'w' // it is on its way: the peer waits on
	copyBegins  = 'c' // the copy follows, up to the connection's end
	copyRefused = 'r' // there is none: a frame with the reason follows
)

const (
	// copyBeat is the time between two copyComes. The source may read all of a state before the
	// first byte of it.
	copyBeat = 5 * time.Second
	// maxBeats is how many of them a peer takes.
	maxBeats = 720
	// maxReason bounds the bytes of a reason.
	maxReason = 1 << 10
)

var errBusy = errors.New("it is giving a copy to another node: ask again later")

// copy writes what a peer has asked for, and ends the connection.
func (l *Link) copy(p *peer, k *known) {
	w := &copyWriter{pacedWriter: pacedWriter{ctx: p.ctx, conn: k.conn}}
	err := errBusy
	select {
	case l.copying <- struct{}{}:
		err = l.write(p, k, w)
		<-l.copying
	default:
	}
	if err == nil {
		err = w.begin() // of a copy without a byte
	} else if !w.begun {
		err = errors.Join(err, w.refuse(err))
	}
	if err == nil {
		err = k.conn.Close() // with TLS this says that it was all
	}
	if err != nil {
		l.refused.Warn(l.o.Logger, "a copy for another node has ended early", p.Name, err, "node",
			p.Name)
	}
}

// write has the copy written, and tells the peer meanwhile that it comes.
func (l *Link) write(p *peer, k *known, w *copyWriter) error {
	if l.o.Copy == nil {
		return errors.New("this node has no copy to give")
	}
	ended := make(chan struct{})
	var told sync.WaitGroup
	told.Go(func() {
		beat := time.NewTicker(cmp.Or(l.o.beat, copyBeat))
		defer beat.Stop()
		for w.comes() {
			select {
			case <-beat.C:
			case <-ended:
				return
			}
		}
	})
	err := l.o.Copy(p.ctx, p.Name, k.want, w)
	close(ended)
	told.Wait()
	return err
}

// A copyWriter is a pacedWriter that begins with what a source says.
type copyWriter struct {
	pacedWriter
	mu    sync.Mutex // held while something is said
	begun bool       // the copy is; written under mu
}

func (w *copyWriter) Write(b []byte) (int, error) {
	if err := w.begin(); err != nil {
		return 0, err
	}
	return w.pacedWriter.Write(b)
}

func (w *copyWriter) begin() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun {
		return nil
	}
	w.begun = true
	return w.say(copyBegins)
}

// comes says that the copy is on its way. It reports whether to say so again.
func (w *copyWriter) comes() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.begun && w.say(copyComes) == nil
}

// refuse says why there is no copy.
func (w *copyWriter) refuse(reason error) error {
	text := reason.Error()
	text = text[:min(len(text), maxReason)]
	b := binary.BigEndian.AppendUint32([]byte{copyRefused}, uint32(len(text)))
	return w.say(append(b, text...)...)
}

func (w *copyWriter) say(b ...byte) error {
	err := w.conn.SetWriteDeadline(time.Now().Add(writeWithin))
	if err == nil {
		_, err = w.conn.Write(b)
	}
	return err
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

// Fetch asks a peer for a copy, on a connection of its own, and waits until it begins. An error has
// the peer's reason why there is none. The reader does not tell a whole copy from one that was cut
// off: what is copied must. ctx ends it.
func (l *Link) Fetch(ctx context.Context, from string, q Want) (io.ReadCloser, error) {
	p := l.peer(from)
	if p == nil {
		return nil, fmt.Errorf("node %s is not a node of this cluster", from)
	}
	conn, err := p.dial(p.ctx)
	if err != nil {
		return nil, err
	}
	f := &fetched{link: l, conn: conn, r: io.LimitReader(conn, maxCopy)}
	f.stop = context.AfterFunc(ctx, func() { conn.Close() })
	first := q.hello(identity(l.o.Cluster, l.o.Name))
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(first))), first...)
	if err = conn.SetWriteDeadline(time.Now().Add(writeWithin)); err == nil {
		_, err = conn.Write(b)
	}
	if err == nil {
		err = f.begins()
	}
	if err != nil {
		f.Close() //nolint:errcheck // the other error counts
		return nil, err
	}
	return f, nil
}

// begins waits until the copy begins.
func (f *fetched) begins() error {
	var says [1]byte
	for range maxBeats {
		if _, err := io.ReadFull(f, says[:]); err != nil {
			return err
		}
		switch says[0] {
		case copyComes:
		case copyBegins:
			return nil
		case copyRefused:
			reason, err := readFrame(f, maxReason)
			if err != nil {
				return err
			}
			return fmt.Errorf("there is no copy: %q", reason)
		default:
			return fmt.Errorf("the other node says %q, which is no word of a copy", says)
		}
	}
	return errors.New("the copy does not begin")
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
