package memnet

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// maxWaiting bounds a listener's connections that wait to be accepted. More are refused.
const maxWaiting = 1024

// A Network connects the listeners and connections of a test. The zero value is ready.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*listener
	port      int // the newest assigned one
}

type listener struct {
	n       *Network
	address net.Addr
	waiting chan net.Conn
	closed  chan struct{}
	conns   []net.Conn // to end with it
}

// next returns another address of the loopback.
func (n *Network) next() *net.TCPAddr {
	n.port++
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 20_000 + n.port}
}

// Listen listens on an address; "": on an unused one. It panics if another listener has it.
func (n *Network) Listen(address string) net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := n.next()
	if address != "" {
		var err error
		if at, err = net.ResolveTCPAddr("tcp", address); err != nil {
			panic(err)
		}
	}
	if n.listeners[at.String()] != nil {
		panic(fmt.Sprintf("%s is in use", at))
	}
	l := &listener{n: n, address: at, waiting: make(chan net.Conn, maxWaiting),
		closed: make(chan struct{})}
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
	l := n.listeners[strings.Replace(address, "localhost", "127.0.0.1", 1)]
	if l == nil {
		return nil, refused(network)
	}
	own, other := pipe(n.next(), l.address)
	select {
	case l.waiting <- other:
		l.conns = append(l.conns, other)
		return own, nil
	default:
		return nil, refused(network)
	}
}

func refused(network string) error {
	return &net.OpError{Op: "dial", Net: network,
		Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

// DialTimeout is Dial, which never blocks.
func (n *Network) DialTimeout(network, address string, _ time.Duration) (net.Conn, error) {
	return n.Dial(context.Background(), network, address)
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

// Close frees the address, and ends the listener's connections, as the end of a process does.
func (l *listener) Close() error {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	if l.n.listeners[l.address.String()] != l {
		return net.ErrClosed
	}
	delete(l.n.listeners, l.address.String())
	close(l.closed)
	for _, conn := range l.conns {
		conn.Close()
	}
	return nil
}
