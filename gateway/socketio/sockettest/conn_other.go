//go:build !unix

package sockettest

import "net"

// A Conn is one side of a connection.
type Conn struct{ net.Conn }

func pair() (a, b *Conn, err error) {
	x, y := net.Pipe()
	return &Conn{x}, &Conn{y}, nil
}

// SetWriteBuffer does nothing: there is no buffer.
func (*Conn) SetWriteBuffer(int) error { return nil }

// SetLinger does nothing.
func (*Conn) SetLinger(int) error { return nil }

// CloseWrite ends both sides.
func (c *Conn) CloseWrite() error { return c.Close() }

// RemoteAddr returns an address of the internet, as servers expect it.
func (*Conn) RemoteAddr() net.Addr { return address }
