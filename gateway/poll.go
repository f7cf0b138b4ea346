package gateway

import (
	"sync"
	"time"
)

const (
	// pollFresh is the age up to which a polled value is not looked up again. However many scrapes
	// come, a look is at most so often.
	pollFresh = 5 * time.Second
	// pollPatience is how long a scrape waits for a look, so that a disk, a store or a fold that
	// hangs hides no other number.
	pollPatience = 500 * time.Millisecond
	// pollKept is the age up to which a value counts while newer looks fail or hang.
	pollKept = 2 * time.Minute
)

// A poll has a value that takes longer to look up than a scrape may. The first scrape after a while
// begins a look, and all scrapes wait for it a little. One look is under way at a time.
type poll[T any] struct {
	fresh time.Duration // pollFresh; of tests another

	mu     sync.Mutex
	value  *T            // guarded by mu; nil: there is none
	at     time.Time     // guarded by mu: when it was looked up
	ending chan struct{} // guarded by mu: closed behind the look under way; nil: none is
}

// newest returns the newest value; nil: there is none, or it is too old. It waits for a look, which
// returns nil if it fails.
func (p *poll[T]) newest(patience time.Duration, look func() *T) *T {
	p.mu.Lock()
	if p.ending == nil && (p.value == nil || time.Since(p.at) > p.fresh) {
		p.ending = make(chan struct{})
		go p.look(look)
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

func (p *poll[T]) look(look func() *T) {
	at, value := time.Now(), look()
	p.mu.Lock()
	defer p.mu.Unlock()
	if value != nil {
		p.value, p.at = value, at
	}
	close(p.ending)
	p.ending = nil
}
