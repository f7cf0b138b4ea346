//go:build linux || darwin

package socketio

import (
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A rawWriter writes to a connection without the net package's waiting: so a write that would block
// can leave the rest to somebody else.
type rawWriter struct{ syscall.RawConn }

// ok is false of a connection without a raw side.
func (w rawWriter) ok() bool { return w.RawConn != nil }

// direct is the raw side of a connection, if it has one. A connection that wraps another one takes
// part by having the method SyscallConn; one that changes the bytes, as TLS does, must not have it.
func direct(c net.Conn) rawWriter {
	if s, ok := c.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			return rawWriter{raw}
		}
	}
	return rawWriter{}
}

// maxPieces is how many pieces one write takes; systems allow 1024.
const maxPieces = 64

// An attempt is the memory of one write: what it writes, and the function that RawConn wants, made
// once.
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

// release gives an attempt's memory back.
func (a *attempt) release() {
	clear(a.pieces)
	a.pieces, a.n, a.err, a.wait = a.pieces[:0], 0, nil, false
	attempts.Put(a)
}

// write writes the pieces of an attempt once: at least a byte of them if wait is true, or until the
// connection's write deadline; else what there is room for at this moment.
func (w rawWriter) write(a *attempt, wait bool) (int, error) {
	a.wait, a.n, a.err = wait, 0, nil
	if err := w.Write(a.try); err != nil {
		return 0, err
	}
	return a.n, a.err
}

// alive is false of a connection that the peer has closed, as far as that is known here.
func alive(c net.Conn) bool {
	raw := direct(c)
	if !raw.ok() {
		return true
	}
	alive := true
	raw.Control(func(fd uintptr) { //nolint:errcheck // closed by us, it fails where it is written to
		n, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		alive = n > 0 || err == unix.EAGAIN || err == unix.EINTR
	})
	return alive
}

// closeWrite says to the peer that nothing more comes.
func (w rawWriter) closeWrite() {
	w.Control(func(fd uintptr) { unix.Shutdown(int(fd), unix.SHUT_WR) }) //nolint:errcheck // it may be gone already
}

// reset makes the close that follows a reset: what the system still holds for a peer that does not
// read is thrown away.
func (w rawWriter) reset() {
	w.Control(func(fd uintptr) { //nolint:errcheck // it may be gone already
		unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}) //nolint:errcheck
	})
}
