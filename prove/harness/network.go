package harness

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"exchange/gateway/listen"
	"exchange/gateway/socketio/sockettest"
	"exchange/gateway/tlstest"
)

// ADay is the life of certificates in tests that are not about a certificate's end.
const ADay = 24 * time.Hour

// NewCertificate makes files with a certificate of serial number 1 and loads them.
func NewCertificate(t *testing.T, until time.Time, log *slog.Logger) (a *tlstest.Authority,
	folder string, c *listen.Certificate) {
	t.Helper()
	a, folder = tlstest.New(t), t.TempDir()
	a.Write(folder, 1, until)
	certFile, keyFile, _ := tlstest.Files(folder)
	c = Must(listen.LoadCertificate(certFile, keyFile, log))
	return a, folder, c
}

// A Network is a listener of connections in memory, of any address.
type Network struct {
	*sockettest.Listener
	from chan netip.AddrPort
	At   net.Addr
}

func NewNetwork(t testing.TB) *Network {
	l := sockettest.Listen(t)
	return &Network{l, make(chan netip.AddrPort), l.Addr()}
}

// Addr implements net.Listener.
func (l *Network) Addr() net.Addr { return l.At }

// Accept implements net.Listener.
func (l *Network) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &elsewhere{c, net.TCPAddrFromAddrPort(<-l.from)}, nil
}

// An elsewhere is a connection of another address.
type elsewhere struct {
	net.Conn
	address net.Addr
}

func (c *elsewhere) RemoteAddr() net.Addr { return c.address }

// CloseWrite ends the writing side, if that has an end of its own.
func (c *elsewhere) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Dialed is a connection from this machine.
func Dialed(t *testing.T, l *Network) net.Conn {
	t.Helper()
	return DialedFrom(t, "127.0.0.1", l)
}

// DialedFrom is a connection from an address.
func DialedFrom(t *testing.T, source string, l *Network) net.Conn {
	t.Helper()
	c := Must(l.Dial())
	l.from <- netip.AddrPortFrom(netip.MustParseAddr(source), 1234)
	t.Cleanup(func() { c.Close() })
	Worked(t, c.SetDeadline(time.Now().Add(30*time.Second)))
	return c
}

// Served is a network of a harness's gateway.
func (h *Exchange) Served() *Network {
	l := NewNetwork(h.T)
	go h.Gateway.Serve(l) //nolint:errcheck // ends with the listener
	return l
}
