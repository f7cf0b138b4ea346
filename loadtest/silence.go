package loadtest

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// A silence is the time in which the exchange has answered nobody, at any address, or with 503 alone.
// All that ask wait for its end together. Any goroutine may use it.
type silence struct {
	bound time.Duration
	say   func(string)

	mu    sync.Mutex
	since time.Time // zero: it answers
	said  bool
	short bool // nobody waits
}

// lasts notes a request without an answer, and reports whether to ask again.
func (s *silence) lasts(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.short {
		return false
	}
	if s.since.IsZero() {
		s.since, s.said = time.Now(), false
	}
	lasted := time.Since(s.since)
	if _, none := errors.AsType[noAnswer](err); !s.said && (none || lasted > time.Second) {
		s.said = true
		s.say(fmt.Sprintf("waiting up to %v (--wait) for the exchange: %v", s.bound, err))
	}
	return lasted < s.bound
}

// ends notes an answer.
func (s *silence) ends() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = time.Time{}
}

// impatient has nobody wait any more.
func (s *silence) impatient() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.short = true
}
