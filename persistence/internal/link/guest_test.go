package link

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
)

// observers opens node a, which takes observers, and returns a function that opens an observer of
// it.
func observers(t *testing.T, ca *authority, admit func(string) error) (a *node,
	observer func(name string) *Link) {
	t.Helper()
	proof := func(role, name string) *Credentials {
		if ca == nil {
			return nil
		}
		return ca.of(identityOf(role, "c1", name))
	}
	a = &node{got: make(chan received, 10), took: make(chan accepted, 2*maxGuests)}
	a.Link = open(t, Options{Name: "a", Peers: []Peer{{"b", nowhere}},
		Credentials: proof(roleVoter, "a"), AdmitObserver: admit,
		Receive: func(from string, frame []byte) { a.got <- received{from, string(frame)} },
		Accept:  func(from string, _ net.Conn) { t.Errorf("%s is taken for a node", from) },
		AcceptObserver: func(from string, conn net.Conn) {
			a.took <- accepted{conn, from}
		}})
	return a, func(name string) *Link {
		return open(t, Options{Name: name, Observes: true, Credentials: proof(roleObserver, name),
			Peers: []Peer{{"a", a.listener.Addr().String()}}})
	}
}

// An observer opens connections, and is no node: its frames are dropped, and it may have the name
// of one.
func TestObserverOpensConnections(t *testing.T) {
	both(t, func(t *testing.T, ca *authority) {
		a, observer := observers(t, ca, nil)
		for _, name := range []string{"o1", "b", "a"} {
			o := observer(name)
			conn, err := o.Dial(t.Context(), "a")
			succeeds(t, err)
			taken := <-a.took
			if taken.from != name {
				t.Errorf("observer %s is taken for %q", name, taken.from)
			}
			speaks(t, conn, taken)
			speaks(t, taken, conn)
			o.Send("a", []byte("a frame"))
			a.Send(name, []byte("a frame"))
			if err := o.Close(); err != nil {
				t.Error(err)
			}
			ended(t, "its observer has ended", taken)
			taken.Close()
			taken.Close() // as often as one likes
		}
		if n := len(a.guests); n > 0 {
			t.Errorf("%d observers are kept that have left", n)
		}
		if len(a.got) > 0 {
			t.Error("a frame of an observer is received")
		}
	})
}

// A node sends the reason why it refuses an observer.
func TestObserverReceivesReasonOfRefusal(t *testing.T) {
	both(t, func(t *testing.T, ca *authority) {
		a, observer := observers(t, ca, func(name string) error {
			return fmt.Errorf("%s is none of ours", name)
		})
		o := observer("o1")
		refuses(t, o, "a", "o1 is none of ours")
		refuses(t, o, "b", "node b is not a node of this cluster")
		a.o.AdmitObserver, a.o.AcceptObserver = nil, nil
		refuses(t, o, "a", "takes no connections")
	})
}

// Each observer has a bounded number of connections, one more ends its oldest, and the number of
// observers is bounded.
func TestObserversAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, observer := observers(t, nil, nil)
		first := observer("o0")
		var oldest net.Conn
		for range maxGuestCalls + 1 {
			conn, err := first.Dial(t.Context(), "a")
			succeeds(t, err)
			taken := <-a.took
			if oldest == nil {
				oldest = taken
			}
			t.Cleanup(func() { conn.Close() })
		}
		ended(t, "the oldest", oldest)
		for i := range maxGuests - 1 {
			conn, err := observer(fmt.Sprint("o", i+1)).Dial(t.Context(), "a")
			succeeds(t, err)
			t.Cleanup(func() { conn.Close() })
			<-a.took
		}
		refuses(t, observer("more"), "a", "EOF")
		if _, err := first.Dial(t.Context(), "a"); err != nil {
			t.Errorf("one that is there: %v", err)
		}
	})
}

// A voter's certificate proves no observer, and an observer's no voter.
func TestRolesAreNotMixed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := newAuthority(t)
		a, observer := observers(t, ca, nil)
		o := observer("o1")
		o.o.Credentials = ca.of(identity("c1", "o1"))
		refuses(t, o, "a", "EOF")
		o.o.Credentials, o.o.Observes = ca.of(identityOf(roleObserver, "c1", "b")), false
		o.o.Name = "b"
		refuses(t, o, "a", "EOF")
		posing := open(t, Options{Name: "a", // an observer that would be a node
			Credentials: ca.of(identityOf(roleObserver, "c1", "a"))})
		o2 := observer("o2")
		succeeds(t, o2.Set([]Peer{{"a", posing.listener.Addr().String()}}))
		refuses(t, o2, "a", "certificate")
		if len(a.took) > 0 {
			t.Error("a connection is taken")
		}
	})
}

// The certificate of an observer is made from its name alone.
func TestAuthorityIssuesObservers(t *testing.T) {
	ca := newAuthority(t)
	for _, name := range []string{"", "O", "a.voter", "-"} {
		if _, _, err := ca.IssueObserver(name); err == nil {
			t.Errorf("%q is the name of an observer", name)
		}
	}
	cert, _, err := ca.IssueObserver("a")
	if err != nil || !strings.HasPrefix(string(cert), "-----BEGIN") {
		t.Error(err)
	}
	l, conn := open(t, Options{Name: "a"}), dial(t, network.Listen("").Addr().String())
	for _, hostile := range []string{"", "a.b", strings.Repeat("a", maxLabel+1), "A"} {
		_, _, err := l.identify(greeting{conn, greets(kindObserver, hostile+
			identityOf(roleObserver, "c1", ""))})
		if err == nil {
			t.Errorf("%q is the name of an observer", hostile)
		}
	}
	if _, err := Open(Options{Cluster: "c1", Name: "o", Observes: true, Logger: quiet,
		Peers: []Peer{{Name: "a", Address: "10.0.0.1:1"}}}); !errors.Is(err, errPlain) {
		t.Errorf("without a certificate: %v", err)
	}
}
