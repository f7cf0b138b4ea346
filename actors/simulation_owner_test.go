package actors

import (
	"context"
	"fmt"
	"time"

	"exchange/persistence"
	"exchange/persistence/memory"
)

// A host is a data folder: one process at a time uses it.
type host struct {
	number     int
	life       *life // the newest
	ownerships persistence.Ownerships
	head       memory.Head     // of a store that is a server
	restores   int             // when it last had the store, or its HEAD was made
	ids        map[string]bool // of all its claims, landed or not
}

// An identity is a life's use of its folder: a dead process no longer writes there.
type identity struct {
	s *sim
	l *life
}

func (f identity) Load() (persistence.Ownerships, error) { return f.l.host.ownerships, nil }

func (f identity) Save(known persistence.Ownerships) error {
	// the clock may have woken it
	f.s.park(f.l, fmt.Sprintf("%d.identity", f.l.number), nil)
	f.l.host.ownerships = known
	return nil
}

// An ownerCheck is a start's check of the store's owner, and its time.
type ownerCheck struct {
	at   time.Time
	beat persistence.Beat
}

// hosts is the number of hosts: more than engines at once.
const hosts = 4

// openStore opens the disk for its intended use.
func (s *sim) openStore() *memory.Store {
	m := memory.Open(s.disk, persistence.Retention{})
	m.Server = s.server
	return m
}

// takeHost gives a life an unused host: mostly the last one, as in a restart. ctx is the start's.
func (s *sim) takeHost(l *life, o *Options) (ctx context.Context) {
	for len(s.hosts) < hosts {
		s.hosts = append(s.hosts, &host{number: len(s.hosts), ids: map[string]bool{}})
	}
	var free []*host
	var last *host
	for _, h := range s.hosts {
		if h.life != nil && !h.life.gone {
			continue
		}
		free = append(free, h)
		if h.life != nil && (last == nil || h.life.number > last.life.number) {
			last = h
		}
	}
	if l.host = last; last == nil || !s.ending && s.rng.IntN(3) == 0 {
		l.host = pick(s.rng, free)
	}
	l.host.life = l
	ctx, l.cancel = context.WithCancel(context.Background())
	l.takesOver = s.server && !s.ending && s.rng.IntN(3) == 0
	o.Identity, o.TakeOver = identity{s, l}, l.takesOver
	if s.rng.IntN(3) == 0 { // a host may have another configuration
		times := pick(s.rng, []time.Duration{2, 4})
		o.Timing.OwnerCheck, o.Timing.OwnerStale = times*o.Timing.OwnerCheck,
			times*o.Timing.OwnerStale
	}
	l.heartbeat = o.OwnerOptions().Heartbeat()
	o.StandsBy = func(owner string) {
		// the clock may have woken it, and others with it
		s.park(l, fmt.Sprintf("%d.standby", l.number), nil)
		if l.standby = owner != ""; l.standby {
			s.say("  engine %d waits for %s", l.number, owner)
			s.outcomes["standbys"]++
		}
	}
	return ctx
}

// standby returns a life that waits for an owner, nil if there is none.
func (s *sim) standby() *life {
	for _, l := range s.lives {
		if l.standby {
			return l
		}
	}
	return nil
}

// dismiss makes a standby end.
func (s *sim) dismiss(l *life) {
	s.say("  engine %d, a standby, is asked to stop", l.number)
	s.outcomes["standbys, asked to stop"]++
	l.cancelled = true
	s.wake(l.cancel)
}

// dismissOthers makes the standbys end, if another life owns the store.
func (s *sim) dismissOthers() {
	for _, l := range s.lives {
		if !l.ready || l.engine.Err() != nil || l.stopping || !s.owns(l) {
			continue
		}
		for other := s.standby(); other != nil && !other.cancelled; other = s.standby() {
			s.dismiss(other)
			s.rest()
			s.reap()
		}
		return
	}
}

// pass lets the clock run in steps shorter than those between two checks of the store.
func (s *sim) pass(d time.Duration) {
	for ; d > 0 && s.failed() == nil; d -= 200 * time.Millisecond {
		s.advance(200 * time.Millisecond)
		s.run(50)
	}
}

// Beat returns the heartbeat that a start checks before it claims the store.
func (k *link) Beat(ctx context.Context) (beat persistence.Beat, err error) {
	err = k.ask("beat", func(func() bool) (err error) {
		beat, err = k.Store.Beat(ctx)
		return err
	})
	if err == nil {
		k.l.ownerChecks = append(k.l.ownerChecks, ownerCheck{time.Now(), beat})
	}
	return beat, err
}

func (k *link) Release(ctx context.Context, tok persistence.Token) error {
	err := k.call("release", nil, func(m *memory.Store) error { return m.Release(ctx, tok) })
	k.l.releases = true
	return err
}

// mayTake checks a landed claim against the heartbeats that the start has seen. If the owner is
// another host's, the start has seen the same heartbeat for long enough, without a gap, or it takes
// over.
func (k *link) mayTake(before persistence.Beat) {
	s, l := k.s, k.l
	switch {
	case !s.server:
		return
	case !before.HasOwner():
		s.outcomes["starts that find the store given back"]++
		return
	case l.host.ids[before.Token.ID()]:
		s.outcomes["starts that find the owner of their own folder"]++
		return
	case l.takesOver:
		s.outcomes["starts that take over"]++
		return
	}
	s.outcomes["takeovers after a wait"]++
	if before.Heartbeat != l.heartbeat {
		s.outcomes["takeovers from an owner with another heartbeat interval"]++
	}
	var waited time.Duration
	for i := len(l.ownerChecks) - 1; i > 0 && l.ownerChecks[i-1].beat == before &&
		l.ownerChecks[i].beat == before; i-- {
		gap := l.ownerChecks[i].at.Sub(l.ownerChecks[i-1].at)
		if gap > 2*max(l.heartbeat.Check, before.Heartbeat.Check) {
			break
		}
		waited += gap
	}
	if waited < 2*max(l.heartbeat.Stale, before.Heartbeat.Stale) {
		s.violate("engine %d takes over from %s, of which it has seen the same beat for %v",
			l.number, before.Owner, waited)
	}
}

// opensAlone checks, when an engine opens admission, that no other one still answers private reads.
func (s *sim) opensAlone(l *life) {
	for _, other := range s.lives {
		if other == l || !other.ready || other.stopping || other.over || other.engine.Err() != nil {
			continue
		}
		if age := time.Since(other.confirmed); age <= other.heartbeat.Stale {
			s.violate(
				"engine %d opens, and engine %d was confirmed %v ago: it still answers private "+
					"reads", l.number, other.number, age)
		}
	}
}
