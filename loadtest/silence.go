package loadtest

import (
	"fmt"
	"sync"
	"time"
)

// A silence is a period in which the exchange answers nothing at any address, or only 503. All
// requests wait for its end together. Any goroutine may use it.
type silence struct {
	bound time.Duration
	say   func(string)

	mu       sync.Mutex
	answered time.Time
	since    time.Time // zero: it answers
	logged   bool
	newest   time.Time // time of the last request without an answer
}

func newSilence(bound time.Duration) *silence {
	return &silence{bound: bound, say: func(string) {}}
}

// forgotten is how long after a request without an answer another one starts a new silence.
const forgotten = restTimeout + 10*time.Second

// lasts notes a request sent at that time without an answer, and reports whether to retry. A
// request on a closed connection is no silence.
func (s *silence) lasts(sent time.Time, err error) bool { return s.note(sent, askAgain, err) }

// hangs notes a request sent at that time and still unanswered, and reports whether to abandon it.
// After impatient a request still has the time of a usual answer.
func (s *silence) hangs(sent time.Time, err error) bool {
	return !s.note(sent, slow, err) && time.Since(sent) >= usualAnswer
}

// Usual time of an answer, and the time after which the wait is reported.
const (
	usualAnswer = time.Second
	slow        = 2 * time.Second
)

// note reports the wait, if the silence has lasted that long.
func (s *silence) note(sent time.Time, quiet time.Duration, err error) (continues bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() || time.Since(s.newest) > forgotten {
		s.since, s.logged = sent, false
		if sent.Before(s.answered) {
			s.since = s.answered
		}
	}
	s.newest = time.Now()
	lasted := time.Since(s.since)
	if !s.logged && lasted >= quiet {
		s.logged = true
		s.say(fmt.Sprintf("waiting up to %v (--wait) for the exchange: %v", s.bound, err))
	}
	return lasted < s.bound
}

// reset notes an answer.
func (s *silence) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since, s.answered = time.Time{}, time.Now()
}

// impatient limits all waits to the time of a reconnect.
func (s *silence) impatient() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bound = min(s.bound, usualAnswer)
}
