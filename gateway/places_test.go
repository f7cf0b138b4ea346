package gateway

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
)

// dialedFrom dials an address from another one of this machine.
func dialedFrom(t *testing.T, source, address string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	c, err := d.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

// A crowded exchange has so many places, and trades.
func crowded(t *testing.T, places int) (h *harness, address string) {
	h = traded(t)
	h.tune = func(o *Options) { o.Connections = places }
	h.stop()
	h.start()
	h.gateway.publicPlaces.spare = 0 // all clients of the tests are on this machine
	return h, h.served()
}

// When subscribers have all places, which none of them gives up, a supervisor on this machine is
// answered all the same.
func TestASupervisorOfThisMachineFindsAPlace(t *testing.T) {
	h, address := crowded(t, 3)
	for i := range 3 {
		subscriber(t, fmt.Sprintf("127.0.0.%d", 11+i), address, "trades")
	}
	if a := talk(t, dialedFrom(t, "127.0.0.1", address), "GET", alive); a.status != 503 {
		t.Errorf("%d %s", a.status, a.body)
	}
	p := h.gateway.publicPlaces
	p.mu.Lock()
	p.spare = 1
	p.mu.Unlock()
	for range 5 { // the spare place has an idle connection from then on
		if a := talk(t, dialedFrom(t, "127.0.0.1", address), "GET", alive); a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
		h.gateway.idle(t, 1)
	}
}

// So is one at an address that a proxy of this machine has, too. Connections from there are never
// given up, so the spare place is free again only when the probe leaves it.
func TestASupervisorBesideATrustedProxyFindsAPlace(t *testing.T) {
	h := traded(t)
	h.tune = func(o *Options) {
		o.Connections = 3
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	}
	h.stop()
	h.start()
	p, address := h.gateway.publicPlaces, h.served()
	p.spare = 1
	for range p.most {
		subscriber(t, "127.0.0.1", address, "trades")
	}
	for range 3 {
		c := dialedFrom(t, "127.0.0.1", address)
		if a := talk(t, c, "GET", alive); a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
		if a := talk(t, dialedFrom(t, "127.0.0.1", address), "GET", alive); a.status != 503 {
			t.Errorf("beyond the spare place: %d %s", a.status, a.body)
		}
		c.Close()
		eventually(t, "the spare place is free", func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.open == p.most
		})
	}
}

func TestThePublicListenerHasSparePlaces(t *testing.T) {
	g := New(Options{Log: quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10, Connections: 10})
	if g.publicPlaces.spare != SpareConnections || SpareConnections < 1 ||
		g.operatorPlaces.spare != 0 || g.metricsPlaces.spare != 0 {
		t.Errorf("%d, %d, %d", g.publicPlaces.spare, g.operatorPlaces.spare, g.metricsPlaces.spare)
	}
}

// occupiers take all places from eight addresses and hold them. Some say nothing, some send a part
// of a request, some were answered, and some have a stream without a subscription.
func occupiers(t *testing.T, address string, places int) {
	t.Helper()
	for i := range places {
		source := fmt.Sprintf("127.0.0.%d", 11+i%8)
		switch i / 8 % 4 {
		case 0:
			dialedFrom(t, source, address)
		case 1:
			c := dialedFrom(t, source, address)
			if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nX-A: "); err != nil {
				t.Fatal(err)
			}
		case 2:
			c := dialedFrom(t, source, address)
			if a := talk(t, c, "GET", alive); a.status != 200 {
				t.Fatalf("%d %s", a.status, a.body)
			}
		case 3:
			subscriber(t, source, address, "")
		}
	}
}

// subscriber has a stream, and a subscription if it names a channel.
func subscriber(t *testing.T, source, address, channel string) *websocket.Conn {
	t.Helper()
	d := websocket.Dialer{NetDial: func(string, string) (net.Conn, error) {
		return dialedFrom(t, source, address), nil
	}}
	c, resp, err := d.Dial("ws://"+address+streamPath+"?EIO=4&transport=websocket", http.Header{})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	heard := func(what string) {
		t.Helper()
		for {
			_, text, err := c.ReadMessage()
			if err != nil {
				t.Fatalf("before %s: %v", what, err)
			}
			if strings.HasPrefix(string(text), what) {
				return
			}
		}
	}
	say := func(text string) {
		t.Helper()
		if err := c.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	heard("0{")
	say("40")
	heard("40{")
	if channel != "" {
		say(`42["subscribe","` + channel + `"]`)
		heard(`42["subscribe.success"`)
	}
	return c
}

func signedRequest(account string, nonce uint64) string {
	s := signed(account, nonce, "")
	return "GET /api/v1/wallets HTTP/1.1\r\nHost: x\r\n" + s[0] + ": " + s[1] + "\r\n" + s[2] +
		": " + s[3] + "\r\n" + s[4] + ": " + s[5] + "\r\n\r\n"
}

func TestIdleConnectionsKeepNobodyOut(t *testing.T) {
	const places = 64
	h, address := crowded(t, places)
	ask := func(c net.Conn, text string) {
		t.Helper()
		if a := talk(t, c, "GET", text); a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	owner := dialedFrom(t, "127.0.0.1", address)
	ask(owner, signedRequest("alice", h.nextNonce("alice")))
	// shares an address with others
	watcher := subscriber(t, "127.0.0.11", address, "trades.BTC_USDT")
	poll := h.polled(streamPath) // in memory: its request goes over TCP
	poll.hears("40{")
	held := dialedFrom(t, "127.0.0.12", address)
	if _, err := io.WriteString(held, "GET "+poll.path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	g := h.gateway
	eventually(t, "a request is under way", func() bool { return g.busy("127.0.0.12") == 1 })
	taken := int(g.publicConnections.open.Load())
	occupiers(t, address, places-taken)
	eventually(t, "all places are taken",
		func() bool { return g.publicConnections.open.Load() == places })
	for i := range 3 * places {
		c := dialedFrom(t, "127.0.0.2", address)
		ask(c, alive)
		if i%2 == 0 {
			ask(c, signedRequest("bob", h.nextNonce("bob")))
		}
		c.Close()
		dialedFrom(t, fmt.Sprintf("127.0.0.%d", 11+i%8), address) // and they come again
	}
	ask(owner, signedRequest("alice", h.nextNonce("alice")))
	poll.say(`42["subscribe","ticker.BTC_USDT"]`)
	ask(held, "")
	if a := h.post("alice", "/api/v1/order/",
		order("sell", "BTC_USDT", "0.1", "100.5")); a.status != 201 {
		t.Fatal(a.body)
	}
	if a := h.post("bob", "/api/v1/order/",
		order("buy", "BTC_USDT", "0.1", "101")); a.status != 201 {
		t.Fatal(a.body)
	}
	if _, text, err := watcher.ReadMessage(); err != nil ||
		!strings.HasPrefix(string(text), `42["trades"`) {
		t.Errorf("%s, %v", text, err)
	}
}

// busy is how many connections of an address have a request under way.
func (g *Gateway) busy(address string) (n int) {
	p := g.publicPlaces
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.hosts {
		for c := h.first; c != nil; c = c.after {
			if from, _ := p.origin(c); from == netip.MustParseAddr(address) &&
				c.state.Load() == busy {
				n++
			}
		}
	}
	return n
}

// idle waits until so many connections could be given up.
func (g *Gateway) idle(t *testing.T, n int) {
	t.Helper()
	p := g.publicPlaces
	eventually(t, "connections are idle", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		found := 0
		for _, h := range p.hosts {
			for c := h.first; c != nil; c = c.after {
				if c.state.Load() == idle {
					found++
				}
			}
		}
		return found == n
	})
}

// A client that gives a subscription up may lose its place again, and so may a client that never
// had one.
func TestAStreamWithoutASubscriptionGivesItsPlaceUp(t *testing.T) {
	h, address := crowded(t, 3)
	once, never := subscriber(t, "127.0.0.11", address, "trades"),
		subscriber(t, "127.0.0.11", address, "")
	if err := once.WriteMessage(websocket.TextMessage,
		[]byte(`421["unsubscribe","trades"]`)); err != nil {
		t.Fatal(err)
	}
	if _, text, err := once.ReadMessage(); err != nil || !strings.HasPrefix(string(text), "431") {
		t.Fatalf("%s, %v", text, err)
	}
	h.gateway.idle(t, 2)
	stays := subscriber(t, "127.0.0.12", address, "trades")
	for range 2 {
		if a := talk(t, dialedFrom(t, "127.0.0.13", address), "GET",
			signedRequest("alice", h.nextNonce("alice"))); a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	for _, c := range []*websocket.Conn{once, never} {
		if _, text, err := c.ReadMessage(); err == nil {
			t.Errorf("%s", text)
		}
	}
	c := dialedFrom(t, "127.0.0.14", address) // no connection is left to give a place up
	if a := talk(t, c, "GET", ""); a.status != 503 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if err := stays.WriteMessage(websocket.TextMessage,
		[]byte(`421["subscribe","ticker"]`)); err != nil {
		t.Fatal(err)
	}
	if _, text, err := stays.ReadMessage(); err != nil {
		t.Errorf("%s, %v", text, err)
	}
}

// A claim is a connection of the model.
type claim struct {
	c                            *boundedConn
	answering, authenticated, on bool
	waited                       int // step since which it could be given up
	listed                       bool
}

type closing struct {
	net.Conn
	from   netip.Addr
	closed bool
}

func (c *closing) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.from, 1))
}
func (c *closing) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }
func (c *closing) Close() error             { c.closed = true; return nil }

func (x *claim) idle() bool { return !x.answering && !x.authenticated && !x.on }

// Against a model: no needed connection is given up, none is refused while one is idle, and the
// books agree, after any course of connections.
func TestPlacesGoToTheRightConnections(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := &places{most: 1 + r.IntN(20), spare: r.IntN(3), perAddress: r.IntN(8),
			meter: &connectionMeter{}, hosts: map[uint64]*host{},
			trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"),
				netip.MustParsePrefix("127.0.0.2/32")}}
		addresses := []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1",
			"127.0.0.1", "10.0.0.1", "127.0.0.2"}
		var open []*claim
		of := func(key netip.Addr, such func(*claim) bool) (n int) {
			for _, x := range open {
				if x.c.Conn.(*closing).from == key && such(x) {
					n++
				}
			}
			return n
		}
		everyone := func(*claim) bool { return true }
		for step := range 2000 {
			for _, x := range open {
				if x.c.listed && !x.listed {
					x.waited = step
				}
				x.listed = x.c.listed
			}
			if k := len(open); k > 0 && r.IntN(3) > 0 {
				x := open[r.IntN(k)]
				switch r.IntN(8) {
				case 0:
					if !x.c.occupy() {
						t.Fatalf("seed %d, step %d: an open connection was given up", seed, step)
					}
					x.answering = true
				case 1, 2, 3:
					x.c.Read(nil) //nolint:errcheck // it only says that the answer is out
					x.answering = false
				case 4:
					if x.answering && !x.on && r.IntN(4) == 0 {
						known(x.c)
						x.authenticated = x.c.host != nil
					}
				case 5:
					if !x.answering {
						x.on = !x.on
						p.hold(x.c, x.on)
					}
				case 6, 7:
					x.c.Close() //nolint:errcheck
					open = without(open, x)
				}
			} else {
				from := netip.MustParseAddr(addresses[r.IntN(len(addresses))])
				full := len(open) >= p.most
				crowded := p.perAddress > 0 && of(from, everyone) >= p.perAddress &&
					!from.IsLoopback() && from.String() != "10.0.0.1"
				x := &claim{c: &boundedConn{Conn: &closing{from: from}, places: p},
					waited: step, listed: true}
				loser, ok := p.enter(x.c)
				if loser != nil {
					loser.cut()
				}
				free := 0
				for _, a := range addresses[:5] {
					if a := netip.MustParseAddr(a); !crowded || a == from {
						free += of(a, (*claim).idle)
					}
				}
				switch {
				case !full && !crowded && (!ok || loser != nil), !ok && loser != nil:
					t.Fatalf("seed %d, step %d: there was a place", seed, step)
				case (full || crowded) && ok !=
					(free > 0 || !crowded && from.IsLoopback() && len(open) < p.most+p.spare):
					t.Fatalf("seed %d, step %d: let in: %v, idle: %d", seed, step, ok, free)
				case ok && (loser != nil) != (free > 0) && (full || crowded):
					t.Fatalf("seed %d, step %d: idle: %d, and %v was given up", seed,
						step, free, loser)
				}
				if loser != nil {
					open = wasRight(t, open, loser, of, addresses[:5], crowded)
				}
				if ok {
					open = append(open, x)
				}
			}
			if n := len(open); p.open != n || p.meter.open.Load() != int64(n) ||
				n > p.most+p.spare {
				t.Fatalf("seed %d, step %d: %d are open, %d counted, of %d", seed, step,
					n, p.open, p.most)
			}
		}
		for _, x := range open {
			x.c.Close() //nolint:errcheck
		}
		if p.open != 0 || len(p.hosts) != 0 || p.ranked.max() != 0 {
			t.Fatalf("seed %d: %d places, %d hosts, rank %d are left", seed, p.open,
				len(p.hosts), p.ranked.max())
		}
	}
}

func without(open []*claim, x *claim) []*claim {
	for i := range open {
		if open[i] == x {
			return append(open[:i:i], open[i+1:]...)
		}
	}
	return open
}

// wasRight wants the loser to be an idle connection, and no connection of its address to be idle
// for longer. No address with an idle connection has more that never authenticated, unless the
// loser's address had all that an address may have.
func wasRight(t *testing.T, open []*claim, loser *boundedConn, of func(netip.Addr,
	func(*claim) bool) int,
	addresses []string, crowded bool,
) []*claim {
	t.Helper()
	at := slices.IndexFunc(open, func(x *claim) bool { return x.c == loser })
	if at < 0 {
		t.Fatal("one that is not open was given up")
	}
	x, from := open[at], loser.Conn.(*closing).from
	if !x.idle() || !loser.Conn.(*closing).closed {
		t.Fatalf("%+v was given up", x)
	}
	if n := of(from, func(y *claim) bool { return y.idle() && y.waited < x.waited }); n > 0 {
		t.Fatalf("%+v was given up, and %d of its address have been idle for longer", x, n)
	}
	unproven := func(y *claim) bool { return !y.authenticated }
	for _, a := range addresses {
		a := netip.MustParseAddr(a)
		if n := of(a, unproven); !crowded && of(a, (*claim).idle) > 0 && n > of(from, unproven) {
			t.Fatalf("%s gave one of its %d up, and %s has %d", from, of(from, unproven), a, n)
		}
	}
	return without(open, x)
}

// The address with most loses first, and its oldest.
func TestTheAddressWithMostIdleConnectionsLosesItsOldest(t *testing.T) {
	p := &places{most: 6, meter: &connectionMeter{}, hosts: map[uint64]*host{}}
	enter := func(from string) (c, loser *boundedConn) {
		t.Helper()
		c = &boundedConn{Conn: &closing{from: netip.MustParseAddr(from)}, places: p}
		loser, ok := p.enter(c)
		if !ok {
			t.Fatal("refused")
		}
		return c, loser
	}
	var few, many []*boundedConn
	for range 2 {
		c, _ := enter("192.0.2.1")
		few = append(few, c)
	}
	for range 4 {
		c, _ := enter("192.0.2.2")
		many = append(many, c)
	}
	// then both have two: the one that has had them longer loses
	for i, want := range []*boundedConn{many[0], many[1], few[0]} {
		if _, loser := enter(fmt.Sprintf("192.0.2.%d", 10+i)); loser != want {
			t.Errorf("%d: %v", i, loser.RemoteAddr())
		}
	}
}

// An address whose connections are busy, or have subscriptions, has them all the same.
func TestAnAddressIsRankedByAllThatNeverAuthenticated(t *testing.T) {
	p := newPlaces(10, 0, nil, &connectionMeter{})
	enter := func(from string) (c, loser *boundedConn) {
		t.Helper()
		c = &boundedConn{Conn: &closing{from: netip.MustParseAddr(from)}, places: p}
		loser, ok := p.enter(c)
		if !ok {
			t.Fatal("refused")
		}
		return c, loser
	}
	for range 3 {
		enter("192.0.2.1")
	}
	for range 3 {
		c, _ := enter("192.0.2.3")
		p.know(c)
	}
	var many []*boundedConn
	for i := range 4 {
		c, _ := enter("192.0.2.2")
		if many = append(many, c); i < 3 {
			p.hold(c, true)
		}
	}
	if _, loser := enter("192.0.2.4"); loser != many[3] {
		t.Errorf("%v", loser.RemoteAddr())
	}
	if _, loser := enter("192.0.2.4"); loser == nil ||
		loser.RemoteAddr().String() != "192.0.2.1:1" {
		t.Errorf("the address with none that is idle: %v", loser)
	}
}

func TestANumberSetFindsItsGreatest(t *testing.T) {
	var s numberSet
	in := map[int]bool{}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		n := 1 + r.IntN(1<<r.IntN(18))
		if in[n] = !in[n]; in[n] {
			s.add(n)
		} else {
			s.remove(n)
			delete(in, n)
		}
		most := 0
		if r.IntN(50) == 0 {
			for n := range in {
				most = max(most, n)
			}
			if got := s.max(); got != most {
				t.Fatalf("%d, want %d", got, most)
			}
		}
	}
}

// Requests and places at once: none is carried out on a connection that was given up.
func TestARequestOrAPlaceIsLostNotBoth(t *testing.T) {
	p := &places{most: 1, meter: &connectionMeter{}, hosts: map[uint64]*host{}}
	dial := func() *boundedConn {
		return &boundedConn{Conn: &closing{from: netip.MustParseAddr("192.0.2.1")}, places: p}
	}
	c := dial()
	if _, ok := p.enter(c); !ok {
		t.Fatal("refused")
	}
	for range 20_000 {
		next, occupied := dial(), make(chan bool)
		go func(c *boundedConn) {
			ok := c.occupy()
			occupied <- ok
		}(c)
		loser, ok := p.enter(next)
		if answered := <-occupied; answered == ok || ok != (loser == c) {
			t.Fatalf("answered: %v, another one has its place: %v", answered, ok)
		}
		if ok {
			c = next
		} else {
			c.Read(nil) //nolint:errcheck // it only says that the answer is out
		}
	}
}

func BenchmarkARequestKeepsItsPlace(b *testing.B) {
	p := &places{most: 1, meter: &connectionMeter{}, hosts: map[uint64]*host{}}
	for _, authenticated := range []bool{false, true} {
		b.Run(fmt.Sprintf("authenticated=%v", authenticated), func(b *testing.B) {
			c := &boundedConn{Conn: &closing{from: netip.MustParseAddr("192.0.2.1")}, places: p}
			p.enter(c)
			defer c.Close() //nolint:errcheck
			if authenticated {
				known(c)
			}
			b.ReportAllocs()
			for b.Loop() {
				c.occupy()
				if authenticated {
					known(c)
				}
				c.Read(nil) //nolint:errcheck
			}
		})
	}
}

func BenchmarkAConnectionGetsAPlace(b *testing.B) {
	p := &places{most: 65536, meter: &connectionMeter{}, hosts: map[uint64]*host{}}
	var all [1 << 16]*boundedConn
	for i := range all { // of 256 addresses
		all[i] = &boundedConn{Conn: &closing{from: netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})},
			places: p}
		p.enter(all[i])
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c := &boundedConn{Conn: &closing{from: netip.AddrFrom4([4]byte{192, 0, 3, byte(i)})},
			places: p}
		if loser, ok := p.enter(c); !ok || loser == nil {
			b.Fatal("no place")
		}
	}
}
