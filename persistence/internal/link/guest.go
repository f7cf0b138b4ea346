package link

import (
	"context"
	"fmt"
	"net"
)

const (
	// maxGuestCalls is how many connections an observer has at a time: twice its need, because it
	// dials again before this node detects a lost one. One more closes the oldest.
	maxGuestCalls = 2 * 2
	// maxGuests is how many observers have connections to this node.
	maxGuests = 64
)

// mostCalls bounds the open connections that the peer has opened.
func (p *peer) mostCalls() int {
	if p.guest {
		return maxGuestCalls
	}
	return maxCalls
}

// guest returns an observer that has opened a connection, which left releases.
func (l *Link) guest(name string) (*peer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.guests[name]
	if p == nil {
		if len(l.guests) >= maxGuests {
			return nil, fmt.Errorf("observer %s: %d others are connected to this node, and more "+
				"are not taken", name, maxGuests)
		}
		p = &peer{Peer: Peer{Name: name}, link: l, guest: true}
		p.ctx, p.stop = context.WithCancel(l.ctx)
		l.guests[name] = p
	}
	p.visits++
	return p, nil
}

// left releases an observer's connection.
func (l *Link) left(p *peer) {
	if !p.guest {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.visits--; p.visits == 0 {
		delete(l.guests, p.Name)
		p.stop()
	}
}

// handlers returns the functions that take and that admit a peer's connections of a kind.
func (l *Link) handlers(p *peer, kind byte) (accept func(string, net.Conn),
	admit func(string) error) {
	switch {
	case p.guest:
		return l.o.AcceptObserver, l.o.AdmitObserver
	case kind == kindCopy:
		return l.serveCopy, nil
	}
	return l.o.Accept, l.o.Admit
}
