package persistence

import (
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Seldom logs events that others can cause as often as they like: one line for each message, other
// side and cause in a second. The zero value is ready; any goroutine may use it.
type Seldom struct {
	mu    sync.Mutex
	lines map[lineKey]*lineState // guarded by mu
}

// A lineKey identifies the lines that share one rate limit.
type lineKey struct{ message, who, cause string }

type lineState struct {
	at   time.Time // of the newest line
	left int       // lines since then that were left out
}

const (
	// lineInterval is the time between two lines of one key.
	lineInterval = time.Second
	// maxKeys bounds the keys in memory. While more are in use within lineInterval, the excess ones
	// share a key per message.
	maxKeys = 256
	// causeBytes is the length of an error's text, without its numbers, that identifies its cause.
	causeBytes = 32
)

// Warn logs a message about another side, with an error and further attributes, or leaves it out.
// The line has the number of those left out before it.
func (s *Seldom) Warn(log *slog.Logger, message, who string, err error, more ...any) {
	if left, ok := s.allow(lineKey{message, who, causeOf(err)}); ok {
		more = append(more, "error", err)
		if left > 0 {
			more = append(more, "left_out", left)
		}
		log.Warn(message, more...)
	}
}

// causeOf returns a text that is the same for errors of one cause, whatever values they have.
func causeOf(err error) string {
	if err == nil {
		return ""
	}
	for {
		inner, ok := err.(interface{ Unwrap() error }) //nolint:errorlint // it goes one by one
		if !ok || inner.Unwrap() == nil {
			break
		}
		err = inner.Unwrap()
	}
	text := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, err.Error())
	return text[:min(len(text), causeBytes)]
}

// allow reports whether a line of a key is to be logged now, and how many were left out before.
func (s *Seldom) allow(x lineKey) (left int, ok bool) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines == nil {
		s.lines = map[lineKey]*lineState{}
	}
	if s.lines[x] == nil && len(s.lines) >= maxKeys {
		for other, at := range s.lines {
			if now.Sub(at.at) >= lineInterval {
				delete(s.lines, other)
			}
		}
		if len(s.lines) >= maxKeys {
			x = lineKey{message: x.message}
		}
	}
	at := s.lines[x]
	switch {
	case at == nil:
		at = &lineState{}
		s.lines[x] = at
	case now.Sub(at.at) < lineInterval:
		at.left++
		return 0, false
	}
	left, at.at, at.left = at.left, now, 0
	return left, true
}
