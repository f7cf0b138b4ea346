package loadtest

import (
	"fmt"
	"sync"
	"time"
)

// A silence is the time in which the exchange has answered nobody, at any address, or with 503
// alone. All that ask wait for its end together. Any goroutine may use it.
type silence struct {
	bound time.Duration
	say   func(string)

	mu     sync.Mutex
	since  time.Time // zero: it answers
	said   bool
	newest time.Time // request without an answer
}

func newSilence(bound time.Duration) *silence {
	return &silence{bound: bound, say: func(string) {}}
}

// forgotten is how long after a request without an answer another one is a silence of its own.
const forgotten = restTimeout + 10*time.Second

// lasts notes a request without an answer, and reports whether to ask again.
func (s *silence) lasts(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() || time.Since(s.newest) > forgotten {
		s.since, s.said = time.Now(), false
	}
	s.newest = time.Now()
	lasted := time.Since(s.since)
	if !s.said && lasted >= askAgain { // one that is asked on a connection that was closed is none
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

// impatient has nobody wait for longer than it takes to connect again.
func (s *silence) impatient() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bound = min(s.bound, time.Second)
}
