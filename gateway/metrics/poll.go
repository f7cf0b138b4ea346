package metrics

import (
	"sync"
	"time"
)

const (
	// pollFresh is the age up to which a polled value is reused. It bounds the rate of lookups,
	// whatever the rate of scrapes.
	pollFresh = 5 * time.Second
	// pollPatience bounds a scrape's wait for a lookup, so that a disk, a store or a fold that
	// hangs hides no other number.
	pollPatience = 500 * time.Millisecond
	// pollKept is the age up to which a value is shown while newer lookups fail or hang.
	pollKept = 2 * time.Minute
)

// A poll caches a value whose lookup may take longer than a scrape. A scrape that finds the value
// older than fresh starts a lookup, and waits at most pollPatience. One lookup runs at a time.
type poll[T any] struct {
	fresh time.Duration // pollFresh; different in tests

	mu     sync.Mutex
	value  *T            // guarded by mu; nil: none
	at     time.Time     // guarded by mu: time of its lookup
	ending chan struct{} // guarded by mu: closed after the running lookup; nil: none runs
}

// newest returns the newest value; nil: there is none, or it is too old. It waits for lookup, which
// returns nil if it fails.
func (p *poll[T]) newest(patience time.Duration, lookup func() *T) *T {
	p.mu.Lock()
	if p.ending == nil && (p.value == nil || time.Since(p.at) > p.fresh) {
		p.ending = make(chan struct{})
		go p.lookup(lookup)
	}
	ending := p.ending
	p.mu.Unlock()
	if ending != nil {
		t := time.NewTimer(patience)
		defer t.Stop()
		select {
		case <-ending:
		case <-t.C:
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.value == nil || time.Since(p.at) > pollKept {
		return nil
	}
	return p.value
}

func (p *poll[T]) lookup(lookup func() *T) {
	at, value := time.Now(), lookup()
	p.mu.Lock()
	defer p.mu.Unlock()
	if value != nil {
		p.value, p.at = value, at
	}
	close(p.ending)
	p.ending = nil
}
