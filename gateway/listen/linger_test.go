package listen

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// Lingering closes are bounded in all, and for each address. A newer close ends the one that has
// lingered longest.
func TestLingeringClosesAreFew(t *testing.T) {
	p := NewPlaces(10_000, 0, 0, nil)
	linger := func(from string) (c, loser *Conn, ok bool) {
		t.Helper()
		c = &Conn{Conn: &closing{from: netip.MustParseAddr(from)}, places: p}
		if _, ok := p.enter(c); !ok {
			t.Fatal("there is no place")
		}
		loser, ok = p.mayLinger(c)
		return c, loser, ok
	}
	var all []*Conn
	for i := range mostLinger(t) {
		c, loser, ok := linger(fmt.Sprintf("192.0.2.%d", i%16))
		if !ok || loser != nil {
			t.Fatalf("close %d: %v, %v", i, ok, loser)
		}
		all = append(all, c)
	}
	for i := range 2 * mostLingering {
		c, loser, ok := linger(fmt.Sprintf("198.51.100.%d", i%16))
		if !ok || loser != all[i] {
			t.Fatalf("one more, %d: %v, %v", i, ok, loser)
		}
		loser.Cut()
		if all = append(all, c); p.lingering.Len() != mostLingering || p.open != mostLingering {
			t.Fatalf("%d are lingering, of %d", p.lingering.Len(), p.open)
		}
	}
	for _, c := range all[2*mostLingering:] {
		p.lingered(c)
		c.Close() //nolint:errcheck
	}
	if p.open != 0 || p.lingering.Len() != 0 || len(p.hosts) != 0 {
		t.Errorf("%d places, %d closes, %d hosts are left", p.open, p.lingering.Len(), len(p.hosts))
	}
	for i := range mostLingeringOfAddress + 5 {
		if _, loser, ok := linger("203.0.113.1"); ok != (i < mostLingeringOfAddress) ||
			loser != nil {
			t.Errorf("close %d of one address: %v, %v", i, ok, loser)
		}
	}
	if _, _, ok := linger("203.0.113.2"); !ok {
		t.Error("another address may not linger")
	}
	for i := range 2 * mostLingeringOfAddress {
		if _, _, ok := linger("127.0.0.1"); !ok {
			t.Errorf("close %d of this machine may not linger", i)
		}
	}
}

// mostLinger is how many closes may linger: the documentation says it, too.
func mostLinger(t *testing.T) int {
	t.Helper()
	if mostLingering != 256 || lingerTimeout != 2*time.Second || lingerBytes != 8<<20 {
		t.Errorf("%d closes, %v and %d bytes each", mostLingering, lingerTimeout, lingerBytes)
	}
	return mostLingering
}
