package listen

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// config is for the listener. Handshakes in progress keep the certificate that they began with.
func (c *Certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		// The suites of TLS 1.3 are all good and cannot be chosen. Of TLS 1.2 only suites with
		// forward secrecy and authenticated encryption are served.
		CipherSuites: []uint16{
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
			tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
		NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return c.serving.Load(), nil
		},
	}
}

// A secured listener speaks TLS. The server does the handshake, in the connection's own goroutine
// and within the read timeout.
type secured struct {
	net.Listener
	config *tls.Config
}

// secure puts TLS on a listener that has a certificate.
func secure(l net.Listener, c *Certificate) net.Listener {
	if c == nil {
		return l
	}
	return &secured{l, c.config()}
}

// Accept implements net.Listener.
func (l *secured) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	place, ok := c.(*Conn)
	if ok {
		place.below = true
	}
	below := &farewell{Conn: c, place: place}
	return &tlsConn{tls.Server(below, l.config), below}, nil
}

// A tlsConn is a connection whose Close does not wait. Close of crypto/tls first says goodbye, and
// waits up to five seconds for a client that does not read. Messages to other clients may be queued
// after that.
type tlsConn struct {
	*tls.Conn
	below *farewell
}

// Read implements net.Conn.
func (c *tlsConn) Read(p []byte) (int, error) {
	if c.below.place == nil {
		return c.Conn.Read(p)
	}
	n, err := c.below.place.requests.read(c.Conn, p)
	var plain tls.RecordHeaderError
	if err != nil && errors.As(err, &plain) && plain.Conn != nil && asks(plain.RecordHeader) {
		plain.Conn.SetWriteDeadline(time.Now().Add(farewellTimeout)) //nolint:errcheck // as Write
		io.WriteString(plain.Conn, refusedPlain)                     //nolint:errcheck // it closes
	}
	return n, err
}

// refusedPlain answers a client that speaks plain HTTP to a listener with TLS.
const refusedPlain = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n" +
	"Content-Length: 55\r\nConnection: close\r\nCache-Control: no-store\r\n\r\n" +
	"This address speaks TLS alone: use https:// before it.\n"

// asks reports whether a connection begins like a request of plain HTTP.
func asks(begin [5]byte) bool {
	switch string(begin[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "DELET", "OPTIO", "PATCH":
		return true
	}
	return false
}

func (c *tlsConn) Close() error {
	switch p := c.below.place; {
	case p == nil:
	case p.lingering.Load() == lingerWanted:
		c.below.most.Store(int64(p.places.patience))
		c.CloseWrite() //nolint:errcheck // the connection is closed either way
	default:
		p.places.leave(p) // before the client sees the end: it may come again at once
	}
	c.below.most.Store(int64(farewellTimeout))
	return c.Conn.Close()
}

// farewellTimeout bounds the goodbye of TLS: it fits into the socket's buffer, or is left out.
const farewellTimeout = time.Millisecond

// A farewell is the connection below TLS.
type farewell struct {
	net.Conn
	place *Conn        // the same, if it has a place
	most  atomic.Int64 // longest write, in nanoseconds; 0: any
}

// SetWriteDeadline implements net.Conn. At the end, the deadline is shorter than TLS wants for its
// goodbye.
func (c *farewell) SetWriteDeadline(t time.Time) error {
	if most := c.most.Load(); most > 0 {
		if soon := time.Now().Add(time.Duration(most)); t.IsZero() || t.After(soon) {
			t = soon
		}
	}
	return c.Conn.SetWriteDeadline(t)
}

// ErrPlain refuses a listener for operators or monitoring that others can reach and that has no
// certificate.
var ErrPlain = errors.New("it is not on a loopback address and has no certificate: " +
	"its token, and what it answers, would cross the network in clear text")

// Protected returns ErrPlain for a listener that other machines reach and that has no certificate.
func Protected(l net.Listener, c *Certificate) error {
	if c == nil && !onlyHere(l) {
		return ErrPlain
	}
	return nil
}

// onlyHere reports whether nothing but this machine, or this process, reaches a listener.
func onlyHere(l net.Listener) bool {
	a, ok := l.Addr().(*net.TCPAddr)
	return !ok || a.IP.IsLoopback()
}
