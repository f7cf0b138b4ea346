package line

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Options of New. All of them must be set.
type Options struct {
	Longest int           // bytes of a sent message, at most
	Takes   int           // bytes of a received message, at most
	Own     bool          // a received message then belongs to the receiver
	Waiting int           // bytes that may wait to be sent; a longer message may wait alone
	Beat    time.Duration // after which a side that has sent nothing sends a beat
	// Silence is the time after which a side that has received nothing, or could not write, gives
	// up. A message that has begun must have come within twice that, and a second for each MB.
	Silence time.Duration
}

// Errors of Send: nothing was sent.
var (
	// errClosed: the line has ended, or is about to.
	errClosed = errors.New("the connection has ended")
	// errFull: too much waits to be sent. The message is not sent.
	errFull = errors.New("the other side takes too little of the queued messages")
)

// ErrMalformed ends a connection on which a malformed message came.
var ErrMalformed = errors.New("a malformed message of the other side")

// A LongMessage is the error of a received message with too many bytes.
type LongMessage struct {
	bytes int64
	most  int
}

func (m LongMessage) Error() string {
	return fmt.Sprintf("a message of %d bytes: at most %d are possible", m.bytes, m.most)
}

// headBytes are those of a message's length, big endian. A length of 0 is a beat.
const headBytes = 4

const (
	// keptBytes is the most memory that a side keeps for its next write.
	keptBytes = 1 << 20
	// pieceBytes is how many bytes the other side has to take within Options.Silence.
	pieceBytes = 1 << 20
)

// A Line is one side of a connection. Send and Close may be called from any goroutine, Run from
// one.
type Line struct {
	conn net.Conn
	o    Options
	wake chan struct{} // capacity 1: there is something to write, or the end

	mu      sync.Mutex
	forming []byte // messages that wait; guarded by mu
	closing bool   // nothing may be added; guarded by mu
}

// New makes a line of a connection, which is its own from then on. Run follows.
func New(conn net.Conn, o Options) *Line {
	return &Line{conn: conn, o: o, wake: make(chan struct{}, 1)}
}

// Send sends a message, which add appends to its argument. It does not wait. add must not be
// called for a message of no bytes.
func (l *Line) Send(add func(b []byte) []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := len(l.forming)
	switch {
	case l.closing:
		return errClosed
	case at > l.o.Waiting:
		return errFull
	}
	b := add(append(l.forming, make([]byte, headBytes)...))
	n := len(b) - at - headBytes
	if n <= 0 || n > l.o.Longest {
		l.forming = b[:at]
		return fmt.Errorf("BUG: a message of %d bytes: 1 to %d are possible", n, l.o.Longest)
	}
	binary.BigEndian.PutUint32(b[at:], uint32(n))
	l.forming = b
	l.wakeWriter()
	return nil
}

// Close ends the line once the queued messages are sent, or cannot be within Options.Silence.
func (l *Line) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closing = true
	l.wakeWriter()
}

// wakeWriter makes write send the queue, or notice the end.
func (l *Line) wakeWriter() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Run gives receive each message that comes, until the line ends or receive returns an error, and
// returns why. The message is valid until receive returns, but for Options.Own. After Run the
// connection is closed.
func (l *Line) Run(receive func(message []byte) error) error {
	written := make(chan struct{})
	go func() {
		defer close(written)
		l.write()
	}()
	err := l.read(receive)
	l.conn.Close()
	l.Close()
	<-written
	return err
}

func (l *Line) read(receive func(message []byte) error) error {
	from := &deadlineReader{Line: l}
	r := bufio.NewReaderSize(from, 64<<10)
	var head [headBytes]byte
	var message []byte
	for {
		from.due = time.Time{}
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return err
		}
		n := int64(binary.BigEndian.Uint32(head[:]))
		from.due = time.Now().Add(2*l.o.Silence + time.Duration(n/pieceBytes)*time.Second)
		switch {
		case n == 0:
			continue
		case n > int64(l.o.Takes):
			return LongMessage{n, l.o.Takes}
		case n <= keptBytes:
			if int64(cap(message)) < n {
				message = make([]byte, n)
			}
			message = message[:n]
			if _, err := io.ReadFull(r, message); err != nil {
				return err
			}
			if err := receive(message); err != nil {
				return err
			}
			if l.o.Own {
				message = nil
			}
		default:
			long, err := readBytes(r, n)
			if err == nil {
				err = receive(long)
			}
			if err != nil {
				return err
			}
		}
	}
}

// deadlineReader reads from the connection, and gives up when nothing comes for too long.
type deadlineReader struct {
	*Line
	due time.Time // when a message that has begun must be there; zero: none has
}

// Read implements io.Reader.
func (h *deadlineReader) Read(b []byte) (int, error) {
	until := time.Now().Add(h.o.Silence)
	if !h.due.IsZero() && h.due.Before(until) {
		until = h.due
	}
	if err := h.conn.SetReadDeadline(until); err != nil {
		return 0, err
	}
	return h.conn.Read(b)
}

// ReadFrame reads a length, of four bytes, big endian, and that many bytes.
func ReadFrame(r io.Reader, most int) ([]byte, error) {
	var head [headBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(head[:]))
	if n > int64(most) {
		return nil, LongMessage{n, most}
	}
	return readBytes(r, n)
}

// readBytes reads bytes, whose memory grows with those that have come.
func readBytes(r io.Reader, n int64) ([]byte, error) {
	if n <= keptBytes {
		b := make([]byte, n)
		_, err := io.ReadFull(r, b)
		return b, err
	}
	var b bytes.Buffer
	b.Grow(keptBytes)
	if _, err := io.CopyN(&b, r, n); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// write sends the queued messages, or a beat, until the end.
func (l *Line) write() {
	defer l.conn.Close()
	beat := time.NewTimer(l.o.Beat)
	defer beat.Stop()
	var spare []byte
	for {
		select {
		case <-l.wake:
		case <-beat.C:
		}
		l.mu.Lock()
		b, closing := l.forming, l.closing
		l.forming = spare[:0]
		l.mu.Unlock()
		if len(b) == 0 && !closing {
			b = append(b, make([]byte, headBytes)...)
		}
		if l.writeAll(b) != nil || closing {
			l.Close()
			return
		}
		if spare = b; cap(spare) > keptBytes {
			spare = nil
		}
		beat.Reset(l.o.Beat)
	}
}

func (l *Line) writeAll(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), pieceBytes)
		if err := l.conn.SetWriteDeadline(time.Now().Add(l.o.Silence)); err != nil {
			return err
		}
		if _, err := l.conn.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
