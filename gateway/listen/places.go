package listen

import (
	"container/list"
	"math/bits"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"exchange/gateway/ratelimit"
)

// places are a listener's places for connections, in all and for one address.
//
// When all places are taken, a newer connection replaces one that never authenticated and is idle:
// it waits for a request or for the rest of one. Among the addresses with an idle connection, the
// address with most unauthenticated connections loses its oldest idle one. So idle connections of a
// few addresses keep no other client out, and a client with a right signature keeps its connection.
//
// When no connection is idle, loopback addresses and trusted proxies still have a few spare places.
// Otherwise a supervisor might believe that a process with many clients is dead.
//
// The mutex guards the lists. Work under it takes the same time however many connections there are.
// Requests do not take it: see Conn.state.
type Places struct {
	most       int
	spare      int // places above most, for loopback addresses
	perAddress int // maximum of places of one address; 0: no bound
	trusted    []netip.Prefix
	patience   time.Duration // bound of each lingering close
	refused    atomic.Uint64 // connections refused, and those that lost their place

	mu          sync.Mutex
	open        int
	lingering   list.List // open *Conn that linger, the longest first
	hosts       map[uint64]*host
	hostsByRank []hostList // hostsByRank[n] holds the hosts of rank n, for n > 0
	usedRanks   numberSet  // the ranks with a host
}

// Bounds of lingering closes.
const (
	mostLingering = 256 // maximum of one listener
	// maximum of one address, except this machine and trusted proxies
	mostLingeringOfAddress = 32
	lingerTimeout          = 2 * time.Second // bound of each lingering close
)

// NewPlaces makes most places for connections, and spare ones for loopback addresses. perAddress is
// the maximum of one address; 0: no bound.
func NewPlaces(most, spare, perAddress int, trusted []netip.Prefix) *Places {
	return &Places{most: most, spare: spare, perAddress: perAddress, trusted: trusted,
		patience: lingerTimeout, hosts: map[uint64]*host{}}
}

// Open returns the number of connections that have a place.
func (p *Places) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// Refused counts the connections that got no place, and those that lost theirs to a newer one.
func (p *Places) Refused() uint64 { return p.refused.Load() }

// A host is an address that has connections. Fields are guarded by places.mu.
type host struct {
	key         uint64
	local       bool // an address of this machine
	open        int
	unproven    int   // open connections that never authenticated
	lingering   int   // open connections that linger
	first, last *Conn // connections that may be given up, the oldest first
	rank        int   // unproven, or 0 if none may be given up

	before, after *host // in its rank
}

type hostList struct{ first, last *host }

// States of a connection.
const (
	idle   uint32 = iota // waits for a request, or for the rest of one
	busy                 // a request is being answered
	parked               // busy, and unlisted by a search for an idle connection
	kept                 // never given up: it authenticated, has a subscription, or is a proxy's
	lost                 // given up
)

// enter gives a connection a place. The caller closes the loser, whose place it took. ok is false
// if all places are taken and none is given up.
func (p *Places) enter(c *Conn) (loser *Conn, ok bool) {
	from, trusted := p.origin(c)
	p.mu.Lock()
	defer p.mu.Unlock()
	var h *host
	local, full := from.IsLoopback(), p.open >= p.most
	if !trusted {
		key := ratelimit.AddressKey(from)
		if h = p.hosts[key]; h == nil {
			h = &host{key: key, local: local}
		}
		if p.perAddress > 0 && h.open >= p.perAddress && !local {
			if loser = p.giveUp(h); loser == nil {
				return nil, false
			}
			full = false
		}
	}
	for full && loser == nil {
		top := p.usedRanks.max()
		if top == 0 && local && p.open < p.most+p.spare {
			break
		}
		if top == 0 {
			return nil, false
		}
		loser = p.giveUp(p.hostsByRank[top].first)
	}
	p.open++
	if h == nil {
		c.state.Store(kept)
		return loser, true
	}
	c.host = h
	p.hosts[h.key] = h
	h.open++
	h.unproven++
	p.list(c)
	return loser, true
}

// origin returns the address to which a connection is charged. trusted: it is from a trusted proxy,
// and charged to no address, because many clients share it. Connections of this machine have no
// bound by address.
func (p *Places) origin(c *Conn) (from netip.Addr, trusted bool) {
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		from = tcp.AddrPort().Addr().Unmap()
	} else {
		from = netip.IPv6Loopback() // a socket of this machine
	}
	return from, Within(p.trusted, from)
}

// Within reports whether one of the networks has an address.
func Within(networks []netip.Prefix, a netip.Addr) bool {
	for _, n := range networks {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

// giveUp takes the place of a host's oldest idle connection; nil: none is idle. Connections that
// turn out to be busy come back to the list when they are idle again. mu is held.
func (p *Places) giveUp(h *host) *Conn {
	for c := h.first; c != nil; c = h.first {
		switch {
		case c.state.CompareAndSwap(idle, lost):
			p.forget(c)
			return c
		case c.state.CompareAndSwap(busy, parked):
			p.unlist(c)
		}
	}
	return nil
}

// leave gives back the place of a connection. Later calls have no effect.
func (p *Places) leave(c *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(c)
}

// forget is leave with mu held.
func (p *Places) forget(c *Conn) {
	if c.gone {
		return
	}
	c.gone = true
	p.endLinger(c)
	p.unlist(c)
	p.open--
	h := c.host
	if h == nil {
		return
	}
	if !c.authenticated {
		h.unproven--
		p.rank(h)
	}
	if h.open--; h.open == 0 {
		delete(p.hosts, h.key)
	}
}

// settle sets a connection's state and list after a change. mu is held.
func (p *Places) settle(c *Conn) {
	switch {
	case c.gone:
	case c.authenticated || c.held || c.host == nil:
		c.state.Store(kept)
		p.unlist(c)
	default:
		c.state.Store(idle)
		p.list(c)
	}
}

// authenticate records that a request with a right signature came over a connection.
func (p *Places) authenticate(c *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := c.host; h != nil && !c.authenticated && !c.gone {
		h.unproven--
		defer p.rank(h)
	}
	c.authenticated = true
	p.settle(c)
}

// hold records whether a connection has a stream with a subscription.
func (p *Places) hold(c *Conn, on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.held = on
	p.settle(c)
}

// unpark lists a parked connection again that is now idle.
func (p *Places) unpark(c *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settle(c)
}

// mayLinger lets one more connection linger, unless too many of its address linger. Meanwhile the
// connection keeps its place, and may lose the place like an idle one. If too many linger in all,
// the longest one loses its place, and the caller closes it.
func (p *Places) mayLinger(c *Conn) (loser *Conn, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := c.host
	if c.gone || h != nil && !h.local && h.lingering == mostLingeringOfAddress {
		return nil, false
	}
	if p.lingering.Len() == mostLingering {
		loser = p.lingering.Front().Value.(*Conn)
		p.forget(loser)
	}
	c.lingers = p.lingering.PushBack(c)
	if h != nil {
		h.lingering++
	}
	p.settle(c)
	return loser, true
}

// lingered ends a connection's linger.
func (p *Places) lingered(c *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLinger(c)
}

// endLinger is lingered with mu held.
func (p *Places) endLinger(c *Conn) {
	if c.lingers == nil {
		return
	}
	p.lingering.Remove(c.lingers)
	c.lingers = nil
	if c.host != nil {
		c.host.lingering--
	}
}

// list puts a connection after the others that its host may give up. mu is held.
func (p *Places) list(c *Conn) {
	h := c.host
	if c.listed {
		return
	}
	c.listed = true
	if c.before = h.last; h.last == nil {
		h.first = c
	} else {
		h.last.after = c
	}
	h.last = c
	p.rank(h)
}

// unlist takes a connection out of its host's list. mu is held.
func (p *Places) unlist(c *Conn) {
	h := c.host
	if !c.listed {
		return
	}
	c.listed = false
	if c.before == nil {
		h.first = c.after
	} else {
		c.before.after = c.after
	}
	if c.after == nil {
		h.last = c.before
	} else {
		c.after.before = c.before
	}
	c.before, c.after = nil, nil
	p.rank(h)
}

// rank moves a host to its current rank, after the other hosts there. mu is held.
func (p *Places) rank(h *host) {
	n := 0
	if h.first != nil {
		n = h.unproven
	}
	if n == h.rank {
		return
	}
	if old := h.rank; old > 0 {
		l := &p.hostsByRank[old]
		if h.before == nil {
			l.first = h.after
		} else {
			h.before.after = h.after
		}
		if h.after == nil {
			l.last = h.before
		} else {
			h.after.before = h.before
		}
		h.before, h.after = nil, nil
		if l.first == nil {
			p.usedRanks.remove(old)
		}
	}
	h.rank = n
	for len(p.hostsByRank) <= n {
		p.hostsByRank = append(p.hostsByRank, hostList{})
	}
	if n > 0 {
		l := &p.hostsByRank[n]
		if h.before = l.last; l.last == nil {
			l.first = h
		} else {
			l.last.after = h
		}
		l.last = h
		p.usedRanks.add(n)
	}
}

// A numberSet is a set of numbers below 64^4 that finds its maximum in four steps. Its first level
// has a bit for each number. Each other level has a bit for each word of the level before that is
// not 0.
type numberSet [4][]uint64

func (s *numberSet) add(n int) {
	for level := range s {
		word := n >> 6
		for len(s[level]) <= word {
			s[level] = append(s[level], 0)
		}
		s[level][word] |= 1 << (n & 63)
		n = word
	}
}

func (s *numberSet) remove(n int) {
	for level := range s {
		word := n >> 6
		if s[level][word] &^= 1 << (n & 63); s[level][word] != 0 {
			return
		}
		n = word
	}
}

// max returns the greatest number, 0 for an empty set.
func (s *numberSet) max() (n int) {
	for level := len(s) - 1; level >= 0; level-- {
		if len(s[level]) == 0 || s[level][n] == 0 {
			return 0
		}
		n = n<<6 | (bits.Len64(s[level][n]) - 1)
	}
	return n
}

// A Conn is a connection that has a place until it is closed.
type Conn struct {
	net.Conn
	places *Places
	// state decides whether the connection may be given up. The goroutine that serves the
	// connection moves state from idle to busy and back without the mutex; all other changes are
	// made under it.
	state atomic.Uint32
	// first step of Close
	lingering atomic.Uint32
	requests  boundaries // owned by the goroutine that reads
	below     bool       // the connection carries TLS, whose tlsConn follows the requests

	// Guarded by places.mu.
	host          *host // nil: a trusted proxy's
	before, after *Conn
	listed        bool          // in its host's list
	authenticated bool          // authenticated
	held          bool          // has a stream with a subscription
	gone          bool          // has no place any longer
	lingers       *list.Element // in places.lingering; nil: it does not linger
}

// Occupy records that a request is being answered. It returns false if the connection was given up.
// Then the request must not be carried out, because the client cannot get the answer.
func (c *Conn) Occupy() bool {
	for {
		switch c.state.Load() {
		case idle:
			if c.state.CompareAndSwap(idle, busy) {
				return true
			}
		case lost:
			return false
		default:
			return true
		}
	}
}

// Read implements net.Conn. The server reads after it has answered the previous request.
func (c *Conn) Read(p []byte) (int, error) {
	switch c.state.Load() {
	case busy:
		if !c.state.CompareAndSwap(busy, idle) {
			c.places.unpark(c)
		}
	case parked:
		c.places.unpark(c)
	}
	if c.below {
		return c.Conn.Read(p)
	}
	return c.requests.read(c.Conn, p)
}

// IsSilent reports whether no byte of a next request has come.
func (c *Conn) IsSilent() bool { return c.requests.none() }

// AskedForUpgrade reports whether the last request asked for another protocol: the bytes after the
// request were not followed.
func (c *Conn) AskedForUpgrade() bool { return c.requests.off }
