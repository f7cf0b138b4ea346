package edge_test

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"exchange/gateway"
	"exchange/gateway/api"
	"exchange/gateway/edge"
	"exchange/prove/harness"
)

// Clients that hold connections without using them.

// A slowServer has two seconds for a request, for an answer and between two of them.
func slowServer(t *testing.T, change func(*edge.Options)) (g *gateway.Gateway, l *harness.Network) {
	t.Helper()
	o := edge.Options{Log: harness.Quiet(), BodyBytes: 1 << 20, HeaderBytes: 8 << 10,
		Connections: 1000,
		ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, IdleTimeout: 5 * time.Second}
	if change != nil {
		change(&o)
	}
	g = gateway.New(o)
	t.Cleanup(func() { g.Shutdown(time.Minute) })
	l = harness.NewNetwork(t)
	go g.Serve(l) //nolint:errcheck // ends with the listener
	return g, l
}

// drip sends a byte from time to time, until the connection takes no more.
func drip(c net.Conn) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if _, err := c.Write([]byte{'x'}); err != nil {
			return
		}
	}
}

func TestSlowSenderIsRefusedAndOthersServed(t *testing.T) {
	harness.Bubble(t, testSlowSenderIsRefusedAndOthersServed)
}

func testSlowSenderIsRefusedAndOthersServed(t *testing.T) {
	g, l := slowServer(t, nil)
	var all sync.WaitGroup
	for name, begin := range map[string]string{
		"a first line": "G",
		"a path":       "GET /",
		"headers":      "GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: ",
		"a body":       "POST /api/v1/order HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n",
		"a chunk": "POST /api/v1/order HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: " +
			"chunked\r\n\r\nf0000\r\n",
	} {
		all.Go(func() {
			for _, second := range []bool{false, true} { // a request that was answered
				begun := func() net.Conn {
					c := harness.Dialed(t, l)
					if second {
						if a := harness.Talk(t, c, "GET", alive); a.Status != 200 {
							t.Errorf("%s: %d", name, a.Status)
						}
					}
					if _, err := io.WriteString(c, begin); err != nil {
						t.Error(err)
					}
					return c
				}
				text, err := io.ReadAll(begun())
				if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 408 ") ||
					!strings.Contains(string(text), api.RequestTimeout.Detail) ||
					!strings.Contains(string(text), "Connection: close\r\n") {
					t.Errorf("%s, after another: %v: %q, %v", name, second, text, err)
				}
				// A client that sends single bytes is no better off. Its answer may be lost,
				// because the client continues to send.
				c := begun()
				go drip(c)
				text, err = io.ReadAll(c)
				var timeout net.Error
				if strings.Contains(string(text), "HTTP/1.1 2") ||
					errors.As(err, &timeout) && timeout.Timeout() {
					t.Errorf("%s, byte by byte: %q, %v", name, text, err)
				}
			}
		})
	}
	slow := make(chan struct{})
	go func() { all.Wait(); close(slow) }()
	for n := 0; ; n++ { // meanwhile
		time.Sleep(100 * time.Millisecond)
		c := harness.Dialed(t, l)
		harness.Talk(t, c, "GET", alive).Is(t, 200, "another client")
		c.Close()
		select {
		case <-slow:
			if n == 0 {
				t.Error("no client was served meanwhile")
			}
			harness.Eventually(t, "all connections are given back", func() bool {
				return g.Public().Places.Open() == 0
			})
			return
		default:
		}
	}
}

// The outcome of a carried-out request is sent, even if the next request on the connection is lost.
func TestAnswerIsNotLostWithTheNextRequest(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		_, l := slowServer(t, nil)
		for name, begin := range map[string]string{"headers": "GET /healthz HTTP/1.1\r\nX-A: ",
			"a body": "POST /api/v1/order HTTP/1.1\r\nHost: x\r\nContent-Length: " +
				"1000000\r\n\r\n",
			"bytes that are no request": "x\r\n\r\n"} {
			c := harness.Dialed(t, l)
			if _, err := io.WriteString(c, alive+begin); err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(c)
			if answers := strings.Split(string(text), "HTTP/1.1 ")[1:]; err != nil ||
				len(answers) != 2 || !strings.HasPrefix(answers[0], "200 ") ||
				!strings.HasPrefix(answers[1], "40") {
				t.Errorf("%s: %q, %v", name, answers, err)
			}
		}
	})
}

// A client that asks whether it may send a body gets an answer, also after a long idle time of its
// connection.
func TestABodyIsAskedForAlsoAfterALongPause(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		g, l := slowServer(t, func(o *edge.Options) {
			o.IdleTimeout, o.ReadTimeout = 20*time.Second, 20*time.Second
		})
		c := harness.Dialed(t, l)
		harness.Talk(t, c, "GET", alive).Must(t, 200)
		answered := time.Now()
		harness.Eventually(t, "the time for the answer is over", func() bool {
			return time.Since(answered) > g.Options().WriteTimeout*3/2
		})
		if _, err := io.WriteString(c,
			"POST /api/v1/order HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: "+
				"100-continue\r\nContent-Length: 5\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		const declared = "HTTP/1.1 100 Continue\r\n\r\n"
		got := make([]byte, len(declared))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != declared {
			t.Fatalf("%q, %v", got, err)
		}
		if _, err := io.WriteString(c, "hello"); err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(c)
		if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 503 ") {
			t.Errorf("%q, %v", text, err)
		}
	})
}

func TestAConnectionThatSendsNothingIsClosed(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		g, l := slowServer(t, nil)
		silent, idle := harness.Dialed(t, l), harness.Dialed(t, l)
		harness.Talk(t, idle, "GET", alive).Must(t, 200)
		for name, c := range map[string]net.Conn{"from the start": silent,
			"after an answer": idle} {
			text, err := io.ReadAll(c)
			if err != nil || len(text) > 0 && !strings.HasPrefix(string(text), "HTTP/1.1 408 ") {
				t.Errorf("%s: %q, %v", name, text, err)
			}
		}
		harness.Eventually(t, "both are given back", func() bool {
			return g.Public().Places.Open() == 0
		})
	})
}

func TestAConnectionWithoutAHandshakeIsClosed(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		_, _,
			certificate := harness.NewCertificate(t, time.Now().Add(harness.ADay), harness.Quiet())
		g, l := slowServer(t, func(o *edge.Options) { o.Certificate = certificate })
		for name, begin := range map[string]string{"nothing": "",
			"a part of a greeting": "\x16\x03\x01\x02\x00\x01\x00", "no greeting": alive} {
			c := harness.Dialed(t, l)
			if _, err := io.WriteString(c, begin); err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(c)
			if strings.Contains(string(text), "HTTP/1.1 2") ||
				err != nil && !strings.Contains(err.Error(), "reset by peer") {
				t.Errorf("%s: %q, %v", name, text, err)
			}
			if says := strings.Contains(string(text), " 400 ") &&
				strings.HasSuffix(string(text), "\r\n\r\nThis address speaks TLS alone: use "+
					"https:// before it.\n"); says != (begin == alive) {
				t.Errorf("%s is answered %q", name, text)
			}
		}
		harness.Eventually(t, "all are given back",
			func() bool { return g.Public().Places.Open() == 0 })
	})
}

// A client that requests much and takes none of it does not keep the answers in memory permanently.
func TestAClientThatTakesNoAnswersIsClosed(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		g, l := slowServer(t, nil)
		c := harness.Dialed(t, l)
		request := []byte(strings.Repeat("GET /trade HTTP/1.1\r\nHost: x\r\n\r\n", 100))
		for {
			if _, err := c.Write(request); err != nil {
				var timeout net.Error
				if errors.As(err, &timeout) && timeout.Timeout() {
					t.Fatal("the server takes requests without end, or keeps the connection")
				}
				break
			}
		}
		harness.Eventually(t, "its connection is given back", func() bool {
			return g.Public().Places.Open() == 0
		})
	})
}

func TestNoAddressTakesAllPlaces(t *testing.T) { harness.Bubble(t, testNoAddressTakesAllPlaces) }

func testNoAddressTakesAllPlaces(t *testing.T) {
	g := gateway.New(edge.Options{Log: harness.Quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10,
		Connections: 20, ConnectionsPerAddress: 3,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	t.Cleanup(func() { g.Shutdown(time.Minute) })
	l := harness.NewNetwork(t)
	l.At = &net.TCPAddr{}
	go g.Serve(l) //nolint:errcheck // ends with the listener
	in := func(address string) net.Conn {
		t.Helper()
		c := harness.DialedFrom(t, address, l)
		harness.Talk(t, c, "GET", alive).Is(t, 200, address)
		return c
	}
	stays := func(c net.Conn) {
		t.Helper()
		harness.Talk(t, c, "GET", alive).Is(t, 200)
	}
	other := in("192.0.2.2")
	var of []net.Conn
	for range 3 {
		of = append(of, in("192.0.2.1"))
	}
	// an address loses its own, the oldest first
	for i, again := range []string{"192.0.2.1", "::ffff:192.0.2.1"} {
		idle(t, g, 4)
		of = append(of, in(again))
		closedAfter(t, of[i])
	}
	for _, c := range append(of[2:], other) {
		stays(c)
	}
	of[2].Close()
	harness.Eventually(t, "its place is free", func() bool { return g.Public().Places.Open() == 3 })
	in("192.0.2.1")
	stays(of[3])

	for range 5 { // behind a proxy there are many clients, and this machine has no bound
		stays(in("10.1.2.3"))
		in("127.0.0.1")
	}
	if n, refused := g.Public().Places.Open(), g.Public().Places.Refused(); n != 14 ||
		refused != 2 {
		t.Errorf("%d connections are open, %d were closed for others", n, refused)
	}
}

// Lingering closes have places, and give them up.
func TestALingeringCloseMakesRoom(t *testing.T) { harness.Bubble(t, testALingeringCloseMakesRoom) }

func testALingeringCloseMakesRoom(t *testing.T) {
	g, l := slowServer(t, func(o *edge.Options) { o.Connections = 4; o.BodyBytes = 1 << 10 })
	g.Public().Places.SetSpare(0) // the test's clients are on this machine
	for range 4 {
		harness.Talk(t, harness.Dialed(t, l), "POST",
			"POST /api/v1/order HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n").Is(t, 413)
	}
	for range 20 {
		c := harness.Dialed(t, l)
		harness.Talk(t, c, "GET", alive).Is(t, 200)
		if open, lingering := g.Public().Places.Lingering(); open > 4 || lingering > open {
			t.Errorf("%d are open, %d of them lingering", open, lingering)
		}
	}
}
