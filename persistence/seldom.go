package persistence

import (
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Seldom logs what others can bring about as often as they like: a line for each message, other
// side and cause once a second at most. The zero value is ready; any goroutine may use it.
type Seldom struct {
	mu   sync.Mutex
	said map[saying]*said // guarded by mu
}

// A saying is what is logged once a second.
type saying struct{ message, who, cause string }

type said struct {
	at   time.Time // of the newest line
	left int       // lines since then that were left out
}

const (
	// sayEach is the time between two lines of a saying.
	sayEach = time.Second
	// maxSayings bounds what is remembered. While there are more within sayEach, those that are too
	// many are one.
	maxSayings = 256
	// causeBytes is how much of an error's text, without its numbers, tells it from others.
	causeBytes = 32
)

// Warn logs a message about another side, with an error and further attributes, or leaves it out.
// The line tells how many like it were left out.
func (s *Seldom) Warn(log *slog.Logger, message, who string, err error, more ...any) {
	if left, ok := s.may(saying{message, who, causeOf(err)}); ok {
		more = append(more, "error", err)
		if left > 0 {
			more = append(more, "left_out", left)
		}
		log.Warn(message, more...)
	}
}

// causeOf returns what tells errors of one cause from those of others, whatever values they have.
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

// may reports whether a saying is to be logged now, and how many were left out before.
func (s *Seldom) may(x saying) (left int, ok bool) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.said == nil {
		s.said = map[saying]*said{}
	}
	if s.said[x] == nil && len(s.said) >= maxSayings {
		for other, at := range s.said {
			if now.Sub(at.at) >= sayEach {
				delete(s.said, other)
			}
		}
		if len(s.said) >= maxSayings {
			x = saying{message: x.message}
		}
	}
	at := s.said[x]
	switch {
	case at == nil:
		at = &said{}
		s.said[x] = at
	case now.Sub(at.at) < sayEach:
		at.left++
		return 0, false
	}
	left, at.at, at.left = at.left, now, 0
	return left, true
}
