package listen

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"testing"
)

// A claim is a connection of the model.
type claim struct {
	c                            *Conn
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

// A crowd is the model of places and their connections.
type crowd struct {
	t    *testing.T
	r    *rand.Rand
	p    *Places
	open []*claim
	step int
	seed uint64
}

// The addresses of a crowd. The last two are trusted proxies.
var crowdAddresses = []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1", "127.0.0.1",
	"10.0.0.1", "127.0.0.2"}

func newCrowd(t *testing.T, seed uint64) *crowd {
	r := rand.New(rand.NewPCG(seed, 1))
	return &crowd{t: t, r: r, seed: seed, p: &Places{most: 1 + r.IntN(20), spare: r.IntN(3),
		perAddress: r.IntN(8), hosts: map[uint64]*host{},
		trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"),
			netip.MustParsePrefix("127.0.0.2/32")}}}
}

func (m *crowd) fail(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("seed %d, step %d: "+format, append([]any{m.seed, m.step}, args...)...)
}

// of counts an address's connections.
func (m *crowd) of(a netip.Addr, such func(*claim) bool) (n int) {
	for _, x := range m.open {
		if x.c.Conn.(*closing).from == a && such(x) {
			n++
		}
	}
	return n
}

// change makes a random event happen to an open connection.
func (m *crowd) change(x *claim) {
	switch m.r.IntN(8) {
	case 0:
		if !x.c.Occupy() {
			m.fail("an open connection was given up")
		}
		x.answering = true
	case 1, 2, 3:
		x.c.Read(nil) //nolint:errcheck // it only marks the answer as sent
		x.answering = false
	case 4:
		if x.answering && !x.on && m.r.IntN(4) == 0 {
			Authenticated(x.c)
			x.authenticated = x.c.host != nil
		}
	case 5:
		if !x.answering {
			x.on = !x.on
			m.p.hold(x.c, x.on)
		}
	case 6, 7:
		x.c.Close() //nolint:errcheck
		m.open = without(m.open, x)
	}
}

// enter lets an address open a connection, and wants the right one to lose its place.
func (m *crowd) enter(from netip.Addr) {
	p, everyone := m.p, func(*claim) bool { return true }
	full := len(m.open) >= p.most
	crowded := p.perAddress > 0 && m.of(from, everyone) >= p.perAddress &&
		!from.IsLoopback() && from.String() != "10.0.0.1"
	x := &claim{c: &Conn{Conn: &closing{from: from}, places: p}, waited: m.step, listed: true}
	loser, ok := p.enter(x.c)
	if loser != nil {
		loser.Cut()
	}
	free := 0
	for _, a := range crowdAddresses[:5] {
		if a := netip.MustParseAddr(a); !crowded || a == from {
			free += m.of(a, (*claim).idle)
		}
	}
	switch {
	case !full && !crowded && (!ok || loser != nil), !ok && loser != nil:
		m.fail("there was a place")
	case (full || crowded) && ok !=
		(free > 0 || !crowded && from.IsLoopback() && len(m.open) < p.most+p.spare):
		m.fail("let in: %v, idle: %d", ok, free)
	case ok && (loser != nil) != (free > 0) && (full || crowded):
		m.fail("idle: %d, and %v was given up", free, loser)
	}
	if loser != nil {
		m.open = wasRight(m.t, m.open, loser, m.of, crowdAddresses[:5], crowded)
	}
	if ok {
		m.open = append(m.open, x)
	}
}

// Places agree with the model after any course of connections: no needed connection is given up,
// none is refused while one is idle, and the counts agree.
func TestPlacesGoToTheRightConnections(t *testing.T) {
	for seed := range uint64(200) {
		m := newCrowd(t, seed)
		p := m.p
		for m.step = range 2000 {
			for _, x := range m.open {
				if x.c.listed && !x.listed {
					x.waited = m.step
				}
				x.listed = x.c.listed
			}
			if k := len(m.open); k > 0 && m.r.IntN(3) > 0 {
				m.change(m.open[m.r.IntN(k)])
			} else {
				m.enter(netip.MustParseAddr(crowdAddresses[m.r.IntN(len(crowdAddresses))]))
			}
			if n := len(m.open); p.open != n || n > p.most+p.spare {
				m.fail("%d are open, %d counted, of %d", n, p.open, p.most)
			}
		}
		for _, x := range m.open {
			x.c.Close() //nolint:errcheck
		}
		if p.open != 0 || len(p.hosts) != 0 || p.usedRanks.max() != 0 {
			t.Fatalf("seed %d: %d places, %d hosts, rank %d are left", seed, p.open,
				len(p.hosts), p.usedRanks.max())
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
// for longer. No address with an idle connection has more unauthenticated ones, unless the loser's
// address had all its places.
func wasRight(t *testing.T, open []*claim, loser *Conn, of func(netip.Addr,
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

// The address with most connections loses first, and its oldest.
func TestTheAddressWithMostIdleConnectionsLosesItsOldest(t *testing.T) {
	p := &Places{most: 6, hosts: map[uint64]*host{}}
	enter := func(from string) (c, loser *Conn) {
		t.Helper()
		c = &Conn{Conn: &closing{from: netip.MustParseAddr(from)}, places: p}
		loser, ok := p.enter(c)
		if !ok {
			t.Fatal("refused")
		}
		return c, loser
	}
	var few, many []*Conn
	for range 2 {
		c, _ := enter("192.0.2.1")
		few = append(few, c)
	}
	for range 4 {
		c, _ := enter("192.0.2.2")
		many = append(many, c)
	}
	// then both have two: the one that has had them longer loses
	for i, want := range []*Conn{many[0], many[1], few[0]} {
		if _, loser := enter(fmt.Sprintf("192.0.2.%d", 10+i)); loser != want {
			t.Errorf("%d: %v", i, loser.RemoteAddr())
		}
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
	p := &Places{most: 1, hosts: map[uint64]*host{}}
	dial := func() *Conn {
		return &Conn{Conn: &closing{from: netip.MustParseAddr("192.0.2.1")}, places: p}
	}
	c := dial()
	if _, ok := p.enter(c); !ok {
		t.Fatal("refused")
	}
	for range 20_000 {
		next, occupied := dial(), make(chan bool)
		go func(c *Conn) {
			ok := c.Occupy()
			occupied <- ok
		}(c)
		loser, ok := p.enter(next)
		if answered := <-occupied; answered == ok || ok != (loser == c) {
			t.Fatalf("answered: %v, another one has its place: %v", answered, ok)
		}
		if ok {
			c = next
		} else {
			c.Read(nil) //nolint:errcheck // it only marks the answer as sent
		}
	}
}
