package memnet

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// A conn is one end of a connection. Its buffer is unbounded, so that no write blocks.
type conn struct {
	in, out       *stream
	local, remote net.Addr
}

func pipe(a, b net.Addr) (net.Conn, net.Conn) {
	there, back := newStream(), newStream()
	return &conn{back, there, a, b}, &conn{there, back, b, a}
}

func (c *conn) Read(b []byte) (int, error)         { return c.in.read(b) }
func (c *conn) Write(b []byte) (int, error)        { return c.out.write(b) }
func (c *conn) LocalAddr() net.Addr                { return c.local }
func (c *conn) RemoteAddr() net.Addr               { return c.remote }
func (c *conn) SetDeadline(at time.Time) error     { return c.SetReadDeadline(at) }
func (*conn) SetWriteDeadline(time.Time) error     { return nil }
func (c *conn) SetReadDeadline(at time.Time) error { return c.in.until(at) }

// Close ends both directions: the other end can still read the buffered bytes.
func (c *conn) Close() error {
	c.in.end(net.ErrClosed, syscall.EPIPE)
	c.out.end(io.EOF, net.ErrClosed)
	return nil
}

// A stream is one direction of a connection.
type stream struct {
	mu            sync.Mutex
	changed       sync.Cond
	data          bytes.Buffer
	reads, writes error // after an end is closed; guarded by mu
	late          bool  // the reader's deadline has passed; guarded by mu
	timer         *time.Timer
}

func newStream() *stream {
	s := new(stream)
	s.changed.L = &s.mu
	return s
}

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.reads == net.ErrClosed:
			return 0, s.reads
		case s.late:
			return 0, os.ErrDeadlineExceeded
		case s.data.Len() > 0 || len(b) == 0:
			return s.data.Read(b)
		case s.reads != nil:
			return 0, s.reads
		}
		s.changed.Wait()
	}
}

func (s *stream) write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writes != nil {
		return 0, s.writes
	}
	s.changed.Broadcast()
	return s.data.Write(b)
}

// end sets the errors of later reads and writes. The first error of an end stays.
func (s *stream) end(reads, writes error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reads != net.ErrClosed {
		s.reads = reads
	}
	if s.writes != net.ErrClosed {
		s.writes = writes
	}
	s.changed.Broadcast()
}

// until sets the reader's deadline.
func (s *stream) until(at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reads == net.ErrClosed {
		return net.ErrClosed
	}
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	s.late = !at.IsZero() && !at.After(time.Now())
	s.changed.Broadcast()
	if at.IsZero() || s.late {
		return nil
	}
	var timer *time.Timer
	timer = time.AfterFunc(time.Until(at), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.timer == timer {
			s.late = true
			s.changed.Broadcast()
		}
	})
	s.timer = timer
	return nil
}
