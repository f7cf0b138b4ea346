//go:build unix

package sockettest

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Conn is one side of a connection.
type Conn struct {
	*wire
	fd      int
	peer    *Conn
	closed  bool
	reset   bool // by the peer
	readBy  deadline
	writeBy deadline
}

// A wire is the shared part of the two sides: the lock of all system calls, which return at once,
// and the condition variable for changes.
type wire struct {
	mu      sync.Mutex
	changed *sync.Cond
}

func pair() (a, b *Conn, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
		if err := unix.SetNonblock(fd, true); err != nil {
			return nil, nil, os.NewSyscallError("setnonblock", err)
		}
	}
	w := &wire{}
	w.changed = sync.NewCond(&w.mu)
	a, b = &Conn{wire: w, fd: fds[0]}, &Conn{wire: w, fd: fds[1]}
	a.peer, b.peer = b, a
	return a, b, nil
}

// A deadline is one of a side's reads or writes.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) over() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

// set changes a deadline, and wakes its waiters.
func (c *Conn) set(d *deadline, at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	if d.timer != nil {
		d.timer.Stop()
	}
	d.at = at
	if wait := time.Until(at); wait > 0 {
		d.timer = time.AfterFunc(wait, c.changed.Broadcast)
	}
	c.changed.Broadcast()
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.set(&c.readBy, t) }

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.set(&c.writeBy, t) }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return address }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return address }

// try calls f until it has done something, or the side has ended.
func (c *Conn) try(d *deadline, f func(fd int) (done bool)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case c.closed:
			return net.ErrClosed
		case d.over():
			return os.ErrDeadlineExceeded
		case c.reset:
			return unix.ECONNRESET
		case f(c.fd):
			c.changed.Broadcast()
			return nil
		}
		c.changed.Wait()
	}
}

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (n int, err error) {
	failed := c.try(&c.readBy, func(fd int) bool {
		n, err = unix.Read(fd, b)
		return err != unix.EAGAIN
	})
	switch {
	case failed != nil:
		return 0, failure("read", failed)
	case err != nil:
		return 0, failure("read", err)
	case n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// failure returns an error in the form of a system connection's.
func failure(op string, err error) error {
	if number, ok := err.(unix.Errno); ok {
		err = os.NewSyscallError(op, number)
	}
	return &net.OpError{Op: op, Net: "unix", Err: err}
}

// Write implements net.Conn.
func (c *Conn) Write(b []byte) (sent int, err error) {
	for sent < len(b) && err == nil {
		n := 0
		failed := c.try(&c.writeBy, func(fd int) bool {
			n, err = unix.Write(fd, b[sent:])
			return err != unix.EAGAIN
		})
		if failed == nil {
			failed = err
		}
		if failed != nil {
			return sent, failure("write", failed)
		}
		sent += n
	}
	return sent, nil
}

// Close implements net.Conn. After SetLinger(0), bytes in flight are lost, and the other side gets
// a reset, as over TCP.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	if l, err := unix.GetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER); err == nil {
		c.peer.reset = l.Onoff != 0 && l.Linger == 0
	}
	for _, d := range []*deadline{&c.readBy, &c.writeBy} {
		if d.timer != nil {
			d.timer.Stop()
		}
	}
	c.closed = true
	c.changed.Broadcast()
	return unix.Close(c.fd)
}

// control calls f with the file descriptor.
func (c *Conn) control(f func(fd int) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	defer c.changed.Broadcast()
	return f(c.fd)
}

// CloseWrite ends the writing side.
func (c *Conn) CloseWrite() error {
	return c.control(func(fd int) error { return unix.Shutdown(fd, unix.SHUT_WR) })
}

// SetWriteBuffer bounds the system's buffer to about that many bytes.
func (c *Conn) SetWriteBuffer(bytes int) error {
	return c.control(func(fd int) error {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, bytes)
	})
}

// SetLinger sets the effect of Close, as for a net.TCPConn.
func (c *Conn) SetLinger(sec int) error {
	l := &unix.Linger{Onoff: 1, Linger: int32(sec)}
	if sec < 0 {
		l = &unix.Linger{}
	}
	return c.control(func(fd int) error {
		return unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, l)
	})
}

// SyscallConn implements syscall.Conn.
func (c *Conn) SyscallConn() (syscall.RawConn, error) { return raw{c}, nil }

// raw implements syscall.RawConn.
type raw struct{ c *Conn }

func (r raw) Control(f func(fd uintptr)) error {
	return r.c.control(func(fd int) error {
		f(uintptr(fd))
		return nil
	})
}

func (r raw) Read(f func(fd uintptr) (done bool)) error {
	return r.c.try(&r.c.readBy, func(fd int) bool { return f(uintptr(fd)) })
}

func (r raw) Write(f func(fd uintptr) (done bool)) error {
	return r.c.try(&r.c.writeBy, func(fd int) bool { return f(uintptr(fd)) })
}
