package listen

import (
	"net"
	"net/netip"
	"time"
)

// SetSpare changes the number of spare places and returns the previous one. For tests of which
// connections a listener refuses.
func (p *Places) SetSpare(n int) (before int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, p.spare = p.spare, n
	return before
}

// SetPatience changes the bound of each lingering close. For tests of how connections end.
func (p *Places) SetPatience(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.patience = d
}

// Lingering returns the number of connections with a place, and of those that linger. For tests of
// places given back.
func (p *Places) Lingering() (open, lingering int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open, p.lingering.Len()
}

// Idle returns the number of connections that may be given up now. For tests of which connection
// loses its place.
func (p *Places) Idle() int {
	return p.listed(func(c *Conn) bool { return c.state.Load() == idle })
}

// Busy returns the number of an address's listed connections whose request is being answered. For
// tests of which connection loses its place.
func (p *Places) Busy(a netip.Addr) int {
	return p.listed(func(c *Conn) bool {
		from, _ := p.origin(c)
		return from == a && c.state.Load() == busy
	})
}

func (p *Places) listed(such func(*Conn) bool) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.hosts {
		for c := h.first; c != nil; c = c.after {
			if such(c) {
				n++
			}
		}
	}
	return n
}

// Lost gives a connection a place and takes the place away, as for a newer connection. For tests of
// the answer after that.
func Lost(c net.Conn, p *Places) (_ *Conn, ok bool) {
	b := &Conn{Conn: c, places: p}
	_, ok = p.enter(b)
	b.state.Store(lost)
	return b, ok
}
