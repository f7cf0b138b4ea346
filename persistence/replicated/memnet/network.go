package memnet

import (
	"context"
	"net"
	"sync"
	"syscall"
	"testing"
)

// maxWaiting is how many connections of a listener wait to be accepted. More are refused.
const maxWaiting = 1024

// A Network is what the listeners and connections of a test have in common. The zero value is
// ready.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*listener
	port      int // the newest that was given
}

type listener struct {
	n       *Network
	address net.Addr
	waiting chan net.Conn
	closed  chan struct{}
}

// next returns another address of the loopback.
func (n *Network) next() *net.TCPAddr {
	n.port++
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: n.port}
}

// Listen listens on an address, "": on one that was not used before.
func (n *Network) Listen(t testing.TB, address string) net.Listener {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	at := n.next()
	if address != "" {
		var err error
		if at, err = net.ResolveTCPAddr("tcp", address); err != nil {
			t.Fatal(err)
		}
	}
	if n.listeners[at.String()] != nil {
		t.Fatalf("%s is in use", at)
	}
	l := &listener{n, at, make(chan net.Conn, maxWaiting), make(chan struct{})}
	if n.listeners == nil {
		n.listeners = map[string]*listener{}
	}
	n.listeners[at.String()] = l
	return l
}

// Dial opens a connection to a listener, as net.Dialer's DialContext does.
func (n *Network) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.listeners[address]
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	own, other := pipe(n.next(), l.address)
	select {
	case l.waiting <- other:
		return own, nil
	default:
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
}

// Pipe returns both ends of a connection.
func (n *Network) Pipe() (net.Conn, net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return pipe(n.next(), n.next())
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.waiting:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.address }

// Close implements net.Listener.
func (l *listener) Close() error {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	if l.n.listeners[l.address.String()] != l {
		return net.ErrClosed
	}
	delete(l.n.listeners, l.address.String())
	close(l.closed)
	for {
		select {
		case conn := <-l.waiting:
			conn.Close()
		default:
			return nil
		}
	}
}
