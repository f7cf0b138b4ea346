//go:build linux || darwin

package socketio

import (
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A rawWriter writes to a connection without the waits of package net, so that a write that would
// block leaves the rest to the writer.
type rawWriter struct{ syscall.RawConn }

// ok reports whether the connection has a raw side.
func (w rawWriter) ok() bool { return w.RawConn != nil }

// direct returns the raw side of a connection, if it has one. A wrapper of a connection has the
// method SyscallConn for that. A wrapper that changes the bytes, as TLS does, must not have it.
func direct(c net.Conn) rawWriter {
	if s, ok := c.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			return rawWriter{raw}
		}
	}
	return rawWriter{}
}

// maxPieces is the most pieces of one write; systems allow 1024.
const maxPieces = 64

// An attempt is the memory of one write: its pieces, and the function for RawConn, made once.
type attempt struct {
	pieces [][]byte
	wait   bool
	n      int
	err    error
	try    func(fd uintptr) bool
}

var attempts = sync.Pool{New: func() any {
	a := &attempt{}
	a.try = a.write
	return a
}}

func (a *attempt) write(fd uintptr) bool {
	for {
		var n int
		var err error
		if len(a.pieces) == 1 {
			n, err = unix.Write(int(fd), a.pieces[0])
		} else {
			n, err = unix.Writev(int(fd), a.pieces)
		}
		switch err {
		case nil:
			a.n = n
			return true
		case unix.EINTR:
		case unix.EAGAIN:
			return !a.wait
		default:
			a.err = err
			return true
		}
	}
}

func acquireAttempt() *attempt { return attempts.Get().(*attempt) }

// release recycles an attempt.
func (a *attempt) release() {
	clear(a.pieces)
	a.pieces, a.n, a.err, a.wait = a.pieces[:0], 0, nil, false
	attempts.Put(a)
}

// write writes the pieces of an attempt once. If wait is true it waits until at least a byte is
// written, or for the connection's write deadline. Otherwise it writes as much as there is room for
// now.
func (w rawWriter) write(a *attempt, wait bool) (int, error) {
	a.wait, a.n, a.err = wait, 0, nil
	if err := w.Write(a.try); err != nil {
		return 0, err
	}
	return a.n, a.err
}

// alive returns false if the peer has closed the connection, as far as this system can tell.
func alive(c net.Conn) bool {
	raw := direct(c)
	if !raw.ok() {
		return true
	}
	alive := true
	// If this side has closed the connection, the next write fails.
	raw.Control(func(fd uintptr) { //nolint:errcheck
		n, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		alive = n > 0 || err == unix.EAGAIN || err == unix.EINTR
	})
	return alive
}

// closeWrite ends the writing side.
func (w rawWriter) closeWrite() {
	w.Control(func(fd uintptr) { //nolint:errcheck // the peer may be gone already
		unix.Shutdown(int(fd), unix.SHUT_WR) //nolint:errcheck
	})
}

// reset turns the next close into a reset, which drops the bytes that the system still holds for a
// peer that does not read.
func (w rawWriter) reset() {
	w.Control(func(fd uintptr) { //nolint:errcheck // it may be gone already
		linger := unix.Linger{Onoff: 1}
		unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &linger) //nolint:errcheck
	})
}
