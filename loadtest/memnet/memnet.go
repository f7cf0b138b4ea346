// Package memnet connects clients and servers of a test in memory, by addresses as those of TCP.
package memnet

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/valyala/fasthttp/fasthttputil"
)

var (
	mu        sync.Mutex // of the variables below
	listeners = map[string]*fasthttputil.InmemoryListener{}
	last      = net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 10_000}
)

// A listener has its address until it is closed, which ends its connections, too.
type listener struct {
	*fasthttputil.InmemoryListener
	conns []net.Conn // under mu
}

// Accept waits for a connection.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.InmemoryListener.Accept()
	mu.Lock()
	defer mu.Unlock()
	if err == nil {
		l.conns = append(l.conns, c)
	}
	return c, err
}

// Listen returns a listener on a port of its own of 127.0.0.1.
func Listen() net.Listener {
	mu.Lock()
	defer mu.Unlock()
	last.Port++
	a := last
	l := fasthttputil.NewInmemoryListener()
	l.SetLocalAddr(&a)
	listeners[a.String()] = l
	return &listener{InmemoryListener: l}
}

// Close frees the address.
func (l *listener) Close() error {
	err := l.InmemoryListener.Close()
	mu.Lock()
	defer mu.Unlock()
	delete(listeners, l.Addr().String())
	for _, c := range l.conns {
		err = errors.Join(err, c.Close())
	}
	return err
}

// Dial connects to a listener. Where there is none it is refused, as a system does.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if host == "localhost" {
		address = net.JoinHostPort("127.0.0.1", port)
	}
	mu.Lock()
	l := listeners[address]
	mu.Unlock()
	switch {
	case err != nil:
	case ctx.Err() != nil:
		err = ctx.Err()
	case l == nil:
		err = os.NewSyscallError("connect", syscall.ECONNREFUSED)
	default:
		var c net.Conn
		if c, err = l.DialWithLocalAddr(&net.TCPAddr{IP: last.IP, Port: 1}); err == nil {
			return c, nil
		}
	}
	return nil, &net.OpError{Op: "dial", Net: network, Err: err}
}

// DialTimeout connects at once or not at all.
func DialTimeout(network, address string, _ time.Duration) (net.Conn, error) {
	return Dial(context.Background(), network, address)
}
