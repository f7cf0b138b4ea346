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

	mu       sync.Mutex
	answered time.Time
	since    time.Time // zero: it answers
	said     bool
	newest   time.Time // when a request had no answer
}

func newSilence(bound time.Duration) *silence {
	return &silence{bound: bound, say: func(string) {}}
}

// forgotten is how long after a request without an answer another one is a silence of its own.
const forgotten = restTimeout + 10*time.Second

// lasts notes a request that was sent at that time and got no answer, and reports whether to ask
// again. One that is asked on a connection that was closed is no silence.
func (s *silence) lasts(sent time.Time, err error) bool { return s.note(sent, askAgain, err) }

// hangs notes a request that was sent at that time and has no answer yet, and reports whether to
// wait for it no more. Once nobody waits, a request still has the time of a usual answer.
func (s *silence) hangs(sent time.Time, err error) bool {
	return !s.note(sent, slow, err) && time.Since(sent) >= usualAnswer
}

// The times in which an exchange usually answers, and after which it is said to be waited for.
const (
	usualAnswer = time.Second
	slow        = 2 * time.Second
)

// note says what is waited for, if the silence has lasted that long.
func (s *silence) note(sent time.Time, quiet time.Duration, err error) (goesOn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() || time.Since(s.newest) > forgotten {
		s.since, s.said = sent, false
		if sent.Before(s.answered) {
			s.since = s.answered
		}
	}
	s.newest = time.Now()
	lasted := time.Since(s.since)
	if !s.said && lasted >= quiet {
		s.said = true
		s.say(fmt.Sprintf("waiting up to %v (--wait) for the exchange: %v", s.bound, err))
	}
	return lasted < s.bound
}

// ends notes an answer.
func (s *silence) ends() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since, s.answered = time.Time{}, time.Now()
}

// impatient has nobody wait for longer than it takes to connect again.
func (s *silence) impatient() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bound = min(s.bound, usualAnswer)
}
