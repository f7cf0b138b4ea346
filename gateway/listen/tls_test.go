package listen

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"exchange/gateway/tlstest"
)

// A recorder is a connection that records the deadlines of writes.
type recorder struct {
	net.Conn
	mu        sync.Mutex
	deadlines []time.Time
}

func (r *recorder) SetWriteDeadline(t time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deadlines = append(r.deadlines, t)
	return r.Conn.SetWriteDeadline(t)
}

// A client that reads nothing must not hold up the goroutine that closes the connection.
func TestAClosedTLSConnectionWaitsForNoClient(t *testing.T) {
	a, folder := tlstest.New(t), t.TempDir()
	a.Write(folder, 1, time.Now().Add(aDay))
	certFile, keyFile, _ := tlstest.Files(folder)
	certificate := must(LoadCertificate(certFile, keyFile, quiet()))
	near, far := net.Pipe() // without any buffer: each write waits for its reader
	r := &recorder{Conn: near}
	below := &farewell{Conn: r}
	c := &tlsConn{tls.Server(below, certificate.config()), below}
	shaken := make(chan error, 1)
	client := tls.Client(far, &tls.Config{RootCAs: a.Pool(), ServerName: "localhost",
		SessionTicketsDisabled: true})
	go func() {
		err := client.Handshake()
		if err == nil {
			_, err = bufio.NewReader(client).Peek(1)
		}
		shaken <- err
	}()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	worked(t, <-shaken)
	c.SetWriteDeadline(time.Time{}) //nolint:errcheck // the recorder's
	r.deadlines = nil
	c.Close() //nolint:errcheck // its goodbye cannot be said
	latest := time.Now().Add(farewellTimeout)
	if len(r.deadlines) == 0 {
		t.Error("there was no goodbye")
	}
	for _, d := range r.deadlines {
		if d.IsZero() || d.After(latest) {
			t.Errorf("a goodbye may take until %v, it is %v", d, latest)
		}
	}
	if _, err := near.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the connection is open: %v", err)
	}
}
