package link

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange/persistence/line"
	"exchange/prove/memnet"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// An authority is an Authority whose errors end the test.
type authority struct {
	*Authority
	t *testing.T
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a, err := NewAuthority("c1")
	succeeds(t, err)
	return &authority{a, t}
}

// of returns credentials with those names.
func (a *authority) of(names ...string) *Credentials {
	a.t.Helper()
	raw, key, err := a.issue(names...)
	succeeds(a.t, err)
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return &Credentials{Roots: roots,
		Certificate: tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}}
}

// voter returns the credentials of a voter; nil: there is no authority.
func (a *authority) voter(name string) *Credentials {
	if a == nil {
		return nil
	}
	return a.of(identity("c1", name))
}

// A node is an end of a link, with the received frames and connections.
type node struct {
	*Link
	got  chan received
	took chan accepted
}

type accepted struct {
	net.Conn
	from string
}

type received struct {
	from  string
	frame string
}

// network has all nodes of tests, but for those with a given address.
var network memnet.Network

// nowhere is an address without a listener.
const nowhere = "127.0.0.1:65535"

// dial opens a connection to a listener.
func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := network.Dial(t.Context(), "tcp", address)
	succeeds(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// open opens a link until the test ends.
func open(t *testing.T, o Options) *Link {
	t.Helper()
	o.Cluster, o.Logger = "c1", cmp.Or(o.Logger, quiet)
	if o.Address == "" {
		o.Dial = network.Dial
		if !o.Observes && o.Listener == nil {
			o.Listener = network.Listen("")
		}
	}
	l, err := Open(o)
	succeeds(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// pair opens the nodes a and b.
func pair(t *testing.T, credentials func(name string) *Credentials) (a, b *node) {
	t.Helper()
	return pairAt(t, "", credentials)
}

// pairAt opens the nodes a and b so that they listen on an address; "": in the network of tests.
func pairAt(t *testing.T, address string, credentials func(name string) *Credentials) (a, b *node) {
	t.Helper()
	for name, n := range map[string]**node{"a": &a, "b": &b} {
		x := &node{got: make(chan received, 10_000), took: make(chan accepted, 10)}
		x.Link = open(t, Options{Name: name, Address: address, Credentials: credentials(name),
			Receive: func(from string, frame []byte) { x.got <- received{from, string(frame)} },
			Accept:  func(from string, conn net.Conn) { x.took <- accepted{conn, from} }})
		*n = x
	}
	for _, to := range [][2]*node{{a, b}, {b, a}} {
		peer := Peer{Name: to[1].o.Name, Address: to[1].listener.Addr().String()}
		succeeds(t, to[0].Set([]Peer{peer}))
	}
	return a, b
}

func plain(string) *Credentials { return nil }

// greets is a greeting of a kind.
func greets(kind byte, name string) string { return string([]byte{kind, version}) + name }

// framed returns texts in wire form.
func framed(texts ...string) (b []byte) {
	for _, text := range texts {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...)
	}
	return b
}

// reach sends until a frame arrives: those before there is a connection are dropped.
func reach(t *testing.T, from, to *node, name string) {
	t.Helper()
	for range 1000 {
		from.Send(name, []byte("hello"))
		select {
		case <-to.got:
			return
		case <-time.After(leastPause):
		}
	}
	t.Fatal("no frame comes")
}

func TestFramesOfEverySizeArriveInOrder(t *testing.T) {
	both(t, func(t *testing.T, ca *authority) {
		a, b := pair(t, ca.voter)
		reach(t, a, b, "b")
		reach(t, b, a, "a")
		sizes := []int{1, 100, 64 << 10, 1 << 20, 1<<20 + 1, 9 << 20}
		for i, n := range sizes {
			a.Send("b", bytes.Repeat([]byte{byte('0' + i)}, n))
		}
		for i, n := range sizes {
			r := <-b.got
			for r.frame == "hello" {
				r = <-b.got
			}
			if r.from != "a" || r.frame != strings.Repeat(string(rune('0'+i)), n) {
				t.Fatalf("frame %d is of node %s with %d bytes, want %d", i, r.from,
					len(r.frame), n)
			}
		}
	})
}

// A peer that comes back is reached again.
func TestLinkReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, plain)
		reach(t, a, b, "b")
		for conn := range a.conns() {
			conn.Close()
		}
		reach(t, a, b, "b")
	})
}

// conns returns the open connections.
func (l *Link) conns() map[net.Conn]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[net.Conn]bool{}
	for c := range l.open {
		all[c] = true
	}
	return all
}

// Frames of a connection that is not proven to be a voter of the cluster are refused.
func TestOnlyCertifiedNodeIsReceived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, other := newAuthority(t), newAuthority(t)
		a, b := pair(t, ca.voter)
		a.Close() // it would dial again, and replace the connection of the test
		address := b.listener.Addr().String()
		for _, c := range []struct {
			what       string
			own        *Credentials
			hello      string
			isReceived bool
		}{
			{"node a", ca.of(identity("c1", "a")), identity("c1", "a"), true},
			{"node c, which is no peer", ca.of(identity("c1", "c")), identity("c1", "c"), false},
			{"node c as node a", ca.of(identity("c1", "c")), identity("c1", "a"), false},
			{"an observer", ca.of("a.observer.c1.exchange"), identity("c1", "a"), false},
			{"node a of another cluster", ca.of(identity("c2", "a")), identity("c1", "a"), false},
			{"another cluster's name", ca.of(identity("c1", "a")), identity("c2", "a"), false},
			{"another authority", other.of(identity("c1", "a")), identity("c1", "a"), false},
			{"no certificate", nil, identity("c1", "a"), false},
		} {
			config := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: x509.NewCertPool(),
				ServerName: identity("c1", "b")}
			config.RootCAs.AddCert(ca.cert)
			if c.own != nil {
				config.Certificates = []tls.Certificate{c.own.Certificate}
			}
			for _, kind := range []byte{kindFrames, kindCopy, kindCall} {
				conn := tls.Client(dial(t, address), config)
				if err := conn.Handshake(); err != nil {
					t.Fatalf("%s: %v", c.what, err)
				}
				conn.Write(framed(greets(kind, c.hello), c.what))
				if c.isReceived {
					b.receives(t, kind, c.what)
					conn.Close()
					continue
				}
				ended := make(chan error, 1)
				go func() {
					_, err := conn.Read(make([]byte, 1))
					ended <- err
				}()
				select {
				case err := <-ended:
					if err == nil {
						t.Errorf("%s gets an answer to %c", c.what, kind)
					}
				case r := <-b.got:
					t.Errorf("%s is received: %+v", c.what, r)
				case <-b.took:
					t.Errorf("a connection of %s is taken", c.what)
				}
				conn.Close()
			}
		}
	})
}

// receives checks that a frame comes from node a, on a connection of a kind.
func (n *node) receives(t *testing.T, kind byte, frame string) {
	t.Helper()
	var from, text string
	if kind == kindCopy {
		return
	}
	select {
	case r := <-n.got:
		from, text = r.from, r.frame
	case c := <-n.took:
		b, err := line.ReadFrame(c, 100)
		if err != nil {
			t.Error(err)
		}
		from, text = c.from, string(b)
		c.Close()
	case <-time.After(time.Minute):
		t.Fatalf("nothing comes on a connection of kind %c", kind)
	}
	if from != "a" || text != frame {
		t.Errorf("%q comes from node %q, want %q", text, from, frame)
	}
}

// A node does not send to a server that is not the intended node.
func TestFrameGoesOnlyToIntendedNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := newAuthority(t)
		a, b := pair(t, func(name string) *Credentials {
			if name == "b" {
				return ca.of(identity("c1", "c"))
			}
			return ca.of(identity("c1", name))
		})
		p := a.peer("b")
		if conn, err := p.dial(p.ctx); err == nil {
			conn.Close()
			t.Fatal("node a takes another node for node b")
		} else if !strings.Contains(err.Error(), "certificate") {
			t.Fatal(err)
		}
		if len(b.got) > 0 {
			t.Fatal("a frame has come")
		}
	})
}

// Frames of a removed peer are not received, and its connection ends. Once it is a peer again, its
// frames are received again.
func TestPeersAreAddedAndRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, plain)
		reach(t, a, b, "b")
		reach(t, b, a, "a")
		peer := a.peer("b").Peer
		gone := a.peer("b")
		succeeds(t, a.Set(nil))
		gone.mu.Lock()
		_, err := gone.inbound.Read(make([]byte, 1))
		gone.mu.Unlock()
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("its connection: %v", err)
		}
		conn := dial(t, a.listener.Addr().String())
		if p, _, err := a.identify(greeting{conn, greets(kindFrames, b.identity())}); err == nil {
			t.Errorf("node %s is a peer", p.Name)
		}
		if err := a.Set([]Peer{{"B", peer.Address}}); err == nil {
			t.Error("a name that cannot be is taken")
		}
		succeeds(t, a.Set([]Peer{peer}))
		reach(t, a, b, "b")
		reach(t, b, a, "a")
		succeeds(t, a.Close())
		if err := a.Set([]Peer{peer, {"c", peer.Address}}); err != nil || a.peer("c") != nil {
			t.Error("a link that is closed dials", err)
		}
	})
}

// A greeting is a connection over which a first frame comes.
type greeting struct {
	net.Conn
	text string
}

func (g greeting) Read(p []byte) (int, error) {
	return copy(p, framed(g.text)), nil
}

func TestTooLongFrameEndsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, plain)
		a.Close()
		conn := dial(t, b.listener.Addr().String())
		conn.Write(framed(greets(kindFrames, identity("c1", "a"))))
		conn.Write(binary.BigEndian.AppendUint32(nil, maxFrame+1))
		conn.SetReadDeadline(time.Now().Add(time.Second)) // long before the silence is over
		if _, err := io.ReadAll(conn); err != nil {
			t.Fatal(err)
		}
	})
}

// A peer that reads nothing does not delay the sender, and its queue is bounded.
func TestQueueOfPeerIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := pair(t, plain)
		conn, _ := net.Pipe()
		w := a.frames(conn)
		a.mu.Lock()
		a.peers["i"] = &peer{Peer: Peer{Name: "i"}, link: a.Link, to: w} // and nothing is written
		a.mu.Unlock()
		large := make([]byte, maxFrame)
		for range 5 {
			a.Send("i", large)
		}
		a.Send("i", make([]byte, maxFrame+1))
		a.Send("h", large)
		if err := w.Send(func(b []byte) []byte { return append(b, 1) }); err == nil {
			t.Error("more has room")
		}
	})
}

func TestWithoutCertificatesAddressesAreLoopback(t *testing.T) {
	good := Options{Cluster: "c", Name: "a", Address: "127.0.0.1:0", Logger: quiet,
		Peers: []Peer{{"b", "[::1]:7"}}}
	for what, change := range map[string]func(*Options){
		"all interfaces": func(o *Options) { o.Address = ":0" },
		"another host":   func(o *Options) { o.Peers[0].Address = "10.0.0.1:7" },
		"a name":         func(o *Options) { o.Peers[0].Address = "localhost:7" },
		"no port":        func(o *Options) { o.Address = "127.0.0.1" },
		"a capital":      func(o *Options) { o.Name = "A" },
		"no cluster":     func(o *Options) { o.Cluster = "" },
		"two labels":     func(o *Options) { o.Peers[0].Name = "b.c" },
		"a hyphen":       func(o *Options) { o.Name = "a-" },
	} {
		o := good
		o.Peers = slices.Clone(good.Peers)
		change(&o)
		if l, err := Open(o); err == nil {
			l.Close()
			t.Errorf("%s is not refused", what)
		}
	}
	good.Listener = network.Listen("")
	l, err := Open(good)
	succeeds(t, err)
	succeeds(t, l.Close())
}

// An unfinished frame ends its connection.
func TestUnfinishedFrameEndsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logText
		b := open(t, Options{Name: "b", Peers: []Peer{{"a", nowhere}},
			Logger:  slog.New(slog.NewTextHandler(&log, nil)),
			Receive: func(string, []byte) { t.Error("half a frame is received") }})
		for _, says := range []string{"\x00", "\x00\x00\x00\x09half"} {
			conn := dial(t, b.listener.Addr().String())
			conn.SetDeadline(time.Now().Add(time.Minute))
			first := framed(greets(kindFrames, identity("c1", "a")))
			if _, err := conn.Write(append(first, says...)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(conn); err != nil {
				t.Errorf("%q: %v", says, err)
			}
		}
		if text := log.String(); !strings.Contains(text, "the connection of a node was ended") ||
			!strings.Contains(text, "node=a") {
			t.Errorf("the log has no line of it:\n%s", text)
		}
	})
}

// logText is a log.
type logText struct {
	mu sync.Mutex
	bytes.Buffer
}

func (s *logText) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Buffer.Write(b)
}

func (s *logText) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Buffer.String()
}

// Silent connections are closed for newer ones, those of the host with most of them first. So a
// node gets in, from another host or from the same one.
func TestManySilentConnectionsKeepNoNodeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Options{Name: "b", Peers: []Peer{{"a", nowhere}},
			Accept: func(_ string, conn net.Conn) { conn.Close() }, within: time.Hour})
		var crowd []net.Conn
		for range maxArriving {
			crowd = append(crowd, dial(t, b.listener.Addr().String()))
		}
		a := joiner(t, b.listener.Addr().String())
		for i := range 3 {
			conn, err := a.Dial(t.Context(), "b")
			succeeds(t, err)
			conn.Close()
			if i == 0 {
				ended(t, "the oldest", crowd[0])
			}
		}
		var all arriving
		ends := func(conn net.Conn) bool {
			_, err := conn.Write([]byte{1})
			return err != nil
		}
		var others []net.Conn
		for i := range maxArriving {
			conn := new(hosted)
			if conn.host = "crowd:1"; i < 2 {
				conn.host = "other:1"
			}
			others = append(others, conn)
			all.enter(conn)
		}
		for range 5 {
			all.enter(&hosted{host: "other:2"})
		}
		for i, conn := range others {
			if want := i >= 2 && i < 7; ends(conn) != want {
				t.Errorf("connection %d has ended: %t", i, !want)
			}
			if all.leave(conn) == ends(conn) {
				t.Errorf("connection %d is waiting and has ended, or neither", i)
			}
		}
	})
}

// A hosted is a connection from a host.
type hosted struct {
	net.Conn
	host  string
	ended bool
}

func (h *hosted) RemoteAddr() net.Addr { return &net.UnixAddr{Name: h.host} }
func (h *hosted) Close() error         { h.ended = true; return nil }
func (h *hosted) Write(b []byte) (int, error) {
	if h.ended {
		return 0, net.ErrClosed
	}
	return len(b), nil
}

// succeeds wants no errors.
func succeeds(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
