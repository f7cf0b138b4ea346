package link

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange/persistence/line"
)

// both runs a test with certificates, and on the loopback without.
func both(t *testing.T, play func(t *testing.T, ca *authority)) {
	t.Helper()
	t.Run("plain", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { play(t, nil) })
	})
	t.Run("TLS", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { play(t, newAuthority(t)) })
	})
}

// open2 opens a connection from one node to the other, and returns both ends. None of them waits
// longer than a minute.
func open2(t *testing.T, from, to *node) (dialed, taken net.Conn) {
	t.Helper()
	dialed, err := from.Dial(t.Context(), to.o.Name)
	succeeds(t, err)
	c := <-to.took
	if c.from != from.o.Name {
		t.Errorf("node %s is taken for %q", from.o.Name, c.from)
	}
	for _, conn := range []net.Conn{dialed, c} {
		t.Cleanup(func() { conn.Close() })
		succeeds(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	}
	return dialed, c
}

// ended checks that a connection has ended.
func ended(t *testing.T, what string, conn net.Conn) {
	t.Helper()
	_, err := conn.Read(make([]byte, 1))
	if late, ok := errors.AsType[net.Error](err); err == nil || ok && late.Timeout() {
		t.Fatalf("%s: the connection is open: %v", what, err)
	}
}

// speaks checks that bytes come from one end to the other.
func speaks(t *testing.T, from, to net.Conn) {
	t.Helper()
	text := bytes.Repeat([]byte("some text."), 100_000)
	wrote := make(chan error, 1)
	go func() {
		_, err := from.Write(text)
		wrote <- err
	}()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(to, got); err != nil || !bytes.Equal(got, text) {
		t.Errorf("another text comes: %v", err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
}

func TestConnectionCarriesBytesBothWays(t *testing.T) {
	both(t, func(t *testing.T, ca *authority) {
		a, b := pair(t, ca.voter)
		dialed, taken := open2(t, a, b)
		speaks(t, dialed, taken)
		speaks(t, taken, dialed)
		reach(t, a, b, "b") // frames come besides
		if err := dialed.Close(); err != nil {
			t.Error(err)
		}
		if _, err := taken.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("after its end: %v", err)
		}
		taken.Close()
		if n := len(a.peer("b").calls) + len(b.peer("a").calls); n > 0 {
			t.Errorf("%d connections are kept that were closed", n)
		}

		taken, dialed = open2(t, b, a)
		if err := dialed.Close(); err != nil {
			t.Error(err)
		}
		ended(t, "it was closed", taken)
	})
}

// Bytes right after the first frame are not lost.
func TestBytesAfterFirstFrameAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, plain)
		a.Close()
		conn := dial(t, b.listener.Addr().String())
		first := framed(greets(kindCall, identity("c1", "a")))
		if _, err := conn.Write(append(first, "more"...)); err != nil {
			t.Fatal(err)
		}
		taken := <-b.took
		taken.SetDeadline(time.Now().Add(time.Minute))
		got := make([]byte, 4)
		if _, err := io.ReadFull(taken, got); err != nil || string(got) != "more" {
			t.Errorf("%q comes: %v", got, err)
		}
	})
}

// refuses wants Dial to fail, for a reason.
func refuses(t *testing.T, l *Link, name, why string) {
	t.Helper()
	conn, err := l.Dial(t.Context(), name)
	if err == nil {
		conn.Close()
	}
	if err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("it is %v, want %q", err, why)
	}
}

// A node that takes no connection sends the reason.
func TestDialReturnsReasonOfRefusal(t *testing.T) {
	both(t, func(t *testing.T, ca *authority) {
		refuses(t, joiner(t, source(t, nil)), "b", "takes no connections")
		a, b := pair(t, ca.voter)
		refuses(t, a.Link, "c", "node c is not a node of this cluster")
		why := "not now" + strings.Repeat("!", 2000)
		b.o.Admit = func(from string) error {
			if from != "a" {
				t.Errorf("node a is taken for %q", from)
			}
			return errors.New(why)
		}
		refuses(t, a.Link, "b", "not now!")
		why = "" // still a refusal
		refuses(t, a.Link, "b", "refuses")
		b.Close()
		refuses(t, a.Link, "b", "node b cannot be reached")
		select {
		case <-b.took:
			t.Error("a connection is taken that was refused")
		default:
		}
		a.Close()
		refuses(t, a.Link, "b", "node b cannot be reached")
	})
}

// A dialling node refuses any node but the intended one.
func TestDialChecksNodeIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := newAuthority(t)
		a, b := pair(t, func(name string) *Credentials {
			if name == "b" {
				return ca.of(identity("c1", "c"))
			}
			return ca.of(identity("c1", name))
		})
		refuses(t, a.Link, "b", "certificate")
		if len(b.took) > 0 {
			t.Error("a connection is taken")
		}
	})
}

// A malformed answer is an error, and so is silence.
func TestDialRefusesMalformedAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, x := range []struct{ says, why string }{
			{"\x00\x00\x00\x01x", "it answers a greeting with"},
			{"\x00\x00\x00\x00", "it answers a greeting with"},
			{"\x00\x00\x00\x02\x03\x00", "version 3 and this program reads version 2"},
			{"\x40\x00\x00\x00t", "a message of 1073741824 bytes"},
			{"\x00\x00", "unexpected EOF"},
			{"", "EOF"},
			{"silence", ""},
		} {
			l := network.Listen("")
			o := Options{Name: "a", Peers: []Peer{{"b", l.Addr().String()}}}
			if x.says == "silence" {
				o.within = 30 * time.Millisecond
			}
			a := open(t, o)
			release := make(chan struct{})
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					b, err := line.ReadFrame(conn, 100)
					switch {
					case err != nil || b[0] != kindCall:
					case x.says == "silence":
						<-release
					default:
						io.WriteString(conn, x.says) //nolint:errcheck // the other end checks
					}
					conn.Close()
				}
			}()
			refuses(t, a, "b", x.why)
			close(release)
			l.Close()
		}
	})
}

// The caller's context ends the wait, and not the connection.
func TestContextEndsOnlyTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, plain)
		ctx, cancel := context.WithCancel(t.Context())
		conn, err := a.Dial(ctx, "b")
		succeeds(t, err)
		defer conn.Close()
		cancel()
		taken := <-b.took
		speaks(t, conn, taken)
		speaks(t, taken, conn)
		if _, err := a.Dial(ctx, "b"); !errors.Is(err, context.Canceled) {
			t.Errorf("after its end: %v", err)
		}
		block := make(chan struct{})
		b.o.Admit = func(string) error { <-block; return nil }
		ctx, cancel = context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() {
			_, err := a.Dial(ctx, "b")
			result <- err
		}()
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("it has ended with %v", err)
		}
		close(block)
	})
}

// A peer that sends nothing, or announces a first frame of 1 GB, is not waited for.
func TestSilentOrLongGreetingEndsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for says, within := range map[string]time.Duration{
			"": 30 * time.Millisecond,
			"\x00\x00\x00\x20" + greets(kindCall, ""): 30 * time.Millisecond,
			"\x40\x00\x00\x00" + greets(kindCall, ""): time.Hour,
		} {
			b := open(t, Options{Name: "b", Peers: []Peer{{"a", nowhere}}, within: within,
				Accept: func(string, net.Conn) { t.Error("a connection is taken") }})
			conn := dial(t, b.listener.Addr().String())
			conn.SetDeadline(time.Now().Add(time.Minute))
			io.WriteString(conn, says) //nolint:errcheck // it may have ended
			ended(t, says, conn)
		}
	})
}

// One connection too many of a peer ends its oldest. Those that the other node has opened do not
// count.
func TestExcessConnectionEndsOldest(t *testing.T) {
	both(t, func(t *testing.T, ca *authority) {
		a, b := pair(t, ca.voter)
		back, backTaken := open2(t, b, a)
		var dialed, taken [maxCalls + 1]net.Conn
		for i := range dialed {
			dialed[i], taken[i] = open2(t, a, b)
		}
		ended(t, "the oldest", dialed[0])
		ended(t, "the oldest", taken[0])
		for i := range dialed[1:] {
			speaks(t, dialed[1+i], taken[1+i])
			speaks(t, taken[1+i], dialed[1+i])
		}
		speaks(t, back, backTaken)
		taken[1].Close()
		another, anotherTaken := open2(t, a, b)
		speaks(t, another, anotherTaken)
		speaks(t, dialed[maxCalls], taken[maxCalls])
	})
}

// A peer that is removed, or whose connections are dropped, has none, whichever node opened them.
func TestConnectionsEndWithTheirPeer(t *testing.T) {
	both(t, func(t *testing.T, ca *authority) {
		a, b := pair(t, ca.voter)
		peer := a.peer("b").Peer
		for what, end := range map[string]func() error{
			"removed": func() error { return a.Set(nil) },
			"moved":   func() error { return a.Set([]Peer{{"b", nowhere}}) },
			"dropped": func() error { a.Drop("b"); return nil },
			"nobody":  func() error { a.Drop("c"); return a.Set(nil) },
		} {
			dialed, dialedThere := open2(t, a, b)
			taken, takenThere := open2(t, b, a)
			succeeds(t, end())
			for _, conn := range []net.Conn{dialed, dialedThere, taken, takenThere} {
				ended(t, what, conn)
			}
			if what == "removed" {
				refuses(t, a.Link, "b", "not a node of this cluster")
				refuses(t, b.Link, "a", "EOF")
			}
			succeeds(t, a.Set([]Peer{peer}))
		}
	})
}

// Close ends all connections, and waits for their handlers.
func TestCloseEndsConnections(t *testing.T) {
	both(t, func(t *testing.T, ca *authority) {
		a, b := pair(t, ca.voter)
		var over []error
		b.o.Accept = func(_ string, conn net.Conn) {
			b.took <- accepted{conn, "a"}
			_, err := conn.Read(make([]byte, 1))
			over = append(over, err, conn.Close())
		}
		dialed, _ := open2(t, a, b)
		back, taken := open2(t, b, a)
		succeeds(t, b.Close())
		if len(over) != 2 || over[0] == nil {
			t.Errorf("the handler of a connection ended with %v", over)
		}
		for _, conn := range []net.Conn{dialed, back, taken} {
			ended(t, "its node has ended", conn)
		}
	})
}
