package edge_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"exchange/gateway"
	"exchange/gateway/edge"
	"exchange/gateway/listen"
	"exchange/prove/harness"
)

// listening is a gateway without an engine, whose connections are limited.
func listening(t *testing.T, connections int, secure *listen.Certificate,
	wrap func(net.Listener) net.Listener) (public, operator func() net.Conn) {
	g := gateway.New(edge.Options{Log: harness.Quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10,
		Connections: connections, OperatorToken: harness.OperatorToken,
		TrustedProxies: thisMachine, Certificate: secure})
	g.Public().Places.SetSpare(0) // the tests' clients are on this machine
	t.Cleanup(func() { g.Shutdown(time.Minute) })
	serve := func(serve func(net.Listener) error) func() net.Conn {
		l := harness.NewNetwork(t)
		go serve(wrap(l)) //nolint:errcheck // ends with the listener
		return func() net.Conn { return harness.Dialed(t, l) }
	}
	return serve(g.Serve), serve(g.ServeOperator)
}

// thisMachine as trusted proxies: connections that are never given up.
var thisMachine = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func asIs(l net.Listener) net.Listener { return l }

const (
	alive     = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	operating = "GET /operator/v1/accounts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " +
		harness.OperatorToken + "\r\n\r\n"
)

// closedAfter wants nothing more to come.
func closedAfter(t *testing.T, c net.Conn) {
	t.Helper()
	if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 {
		t.Errorf("after the answer: %q, %v", rest, err)
	}
}

func TestConnectionAboveLimitIsRefusedAndOthersServed(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		public, operator := listening(t, 3, nil, asIs)
		full := `{"error":"Too many connections are open."}` + "\n"
		f := func(name string, dial func() net.Conn, text string, speak int,
			served, refused func(what string, a harness.Answer) bool) {
			t.Log(name)
			held := []net.Conn{dial(), dial(), dial()}
			ask := func(what string, c net.Conn) {
				t.Helper()
				if a := harness.Talk(t, c, "GET", text); !served(what, a) {
					t.Errorf("%s: %d %s", what, a.Status, a.Body)
				}
			}
			for i, c := range held[:speak] {
				ask(fmt.Sprint("connection ", i+1), c)
			}
			for range 5 {
				c := dial()
				if a := harness.Talk(t, c, "GET", ""); !refused("one more", a) ||
					string(a.Header.Peek("Retry-After")) != "1" {
					t.Errorf("one more: %d %s\n%s", a.Status, a.Body, a.Header)
				}
				closedAfter(t, c)
			}
			for i, c := range held {
				ask(fmt.Sprint("meanwhile, connection ", i+1), c)
			}
			held[1].Close()
			var next net.Conn
			harness.Eventually(t, "the place of one that was closed is free", func() bool {
				next = dial()
				return served("next", harness.Talk(t, next, "GET", text))
			})
			if a := harness.Talk(t, dial(), "GET", ""); !refused("one more again", a) {
				t.Errorf("one more again: %d %s", a.Status, a.Body)
			}
			ask("the one in its place", next)
		}
		f("public", public, alive, 2, // the third says nothing, and counts
			func(_ string, a harness.Answer) bool { return a.Status == 200 },
			func(what string, a harness.Answer) bool {
				harness.Want(t, what, a, 503, harness.Detail("Too many connections are open."))
				return true
			})
		// No engine yet: 503 too, in other words. A connection that has not shown the token would
		// give its place up.
		f("operator", operator, operating, 3,
			func(_ string, a harness.Answer) bool {
				return a.Body == `{"error":"The exchange is starting."}`+"\n"
			},
			func(_ string, a harness.Answer) bool { return a.Status == 503 && a.Body == full })
	})
}

func TestSecureConnectionAboveLimitIsClosedAndOthersServed(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		a, _, certificate := harness.NewCertificate(t, time.Now().Add(harness.ADay),
			harness.Quiet())
		public, _ := listening(t, 2, certificate, asIs)
		dial := func() *tls.Conn {
			return tls.Client(public(), &tls.Config{RootCAs: a.Pool(), ServerName: "127.0.0.1"})
		}
		held := []*tls.Conn{dial(), dial()}
		for _, c := range held {
			harness.Worked(t, c.Handshake())
		}
		for range 5 {
			if err := dial().Handshake(); err == nil {
				t.Error("one more is let in")
			}
		}
		for _, c := range held {
			harness.Talk(t, c, "GET", alive).Is(t, 200)
		}
		harness.Worked(t, held[0].Close())
		harness.Eventually(t, "the place of one that was closed is free", func() bool {
			return dial().Handshake() == nil
		})
	})
}

// A short listener has no file descriptors for the first few connections.
type short struct {
	net.Listener
	failures atomic.Int32
}

func (l *short) Accept() (net.Conn, error) {
	if l.failures.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.Addr(), Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

func TestAListenerWithoutFileDescriptorsServesAgainWhenThereAreSome(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		public, operator := listening(t, 3, nil, func(l net.Listener) net.Listener {
			s := &short{Listener: l}
			s.failures.Store(3)
			return s
		})
		harness.Talk(t, public(), "GET", alive).Is(t, 200)
		harness.Talk(t, operator(), "GET", operating).Is(t, 503, "operator")
	})
}
