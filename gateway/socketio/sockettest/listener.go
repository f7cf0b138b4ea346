package sockettest

import (
	"net"
	"sync"
	"testing"
)

// A Listener accepts the connections dialed to it.
type Listener struct {
	dialed chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Listen makes a listener, which ends with the test.
func Listen(t testing.TB) *Listener {
	l := &Listener{dialed: make(chan net.Conn), closed: make(chan struct{})}
	t.Cleanup(func() { l.Close() }) //nolint:errcheck // it never fails
	return l
}

// Dial returns the client's side of a new connection, once the server has the other one.
func (l *Listener) Dial() (*Conn, error) {
	client, server, err := pair()
	if err != nil {
		return nil, err
	}
	select {
	case l.dialed <- server:
		return client, nil
	case <-l.closed:
		client.Close() //nolint:errcheck // unused
		server.Close() //nolint:errcheck
		return nil, net.ErrClosed
	}
}

// Accept returns the server's side of the next connection, a *Conn.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.dialed:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the listener, and no connection.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns the address of all sides, which means nothing.
func (l *Listener) Addr() net.Addr { return address }

var address = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
