// Package mailtest runs a mail server in the process of a test.
package mailtest

import (
	"io"
	"log"
	"net"
	"testing"

	gosmtp "github.com/emersion/go-smtp"
)

// Serve runs a mail server on a free port until the test ends, and returns its address. tune
// changes the server and its listener before the server begins; optional.
func Serve(t testing.TB, b gosmtp.Backend, tune func(*gosmtp.Server, net.Listener) net.Listener,
) *net.TCPAddr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := New(b)
	if tune != nil {
		l = tune(g, l)
	}
	Run(t, g, l)
	return l.Addr().(*net.TCPAddr)
}

// New returns a mail server that does not run yet.
func New(b gosmtp.Backend) *gosmtp.Server {
	g := gosmtp.NewServer(b)
	g.Domain = "localhost"
	// clients abort handshakes, and are killed while they send
	g.ErrorLog = log.New(io.Discard, "", 0)
	return g
}

// Run runs a mail server on a listener until the test ends.
func Run(t testing.TB, g *gosmtp.Server, l net.Listener) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = g.Serve(l)
	}()
	t.Cleanup(func() {
		g.Close()
		l.Close() // Serve may not have begun, and then Close does not close the listener
		<-done
	})
}
