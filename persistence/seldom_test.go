package persistence

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A line is logged once a second for each side and cause, with the number of those left out.
func TestSeldomLogsOncePerSecondAndCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		log := slog.New(slog.NewTextHandler(&text, nil))
		var s Seldom
		inner := errors.New("no certificate")
		for i := range 100 {
			s.Warn(log, "refused", "a", fmt.Errorf("connection %d: %w", i, inner), "from", "a")
			s.Warn(log, "refused", "a", fmt.Errorf("a frame of %d bytes", 7*i))
			s.Warn(log, "refused", "b", inner)
			s.Warn(log, "dropped", "b", nil)
		}
		if n := strings.Count(text.String(), "\n"); n != 4 {
			t.Errorf("%d lines:\n%s", n, text.String())
		}
		text.Reset()
		<-time.After(lineInterval) // of the bubble
		s.Warn(log, "refused", "a", inner, "from", "a")
		s.Warn(log, "refused", "a", inner, "from", "a")
		if out := text.String(); strings.Count(out, "\n") != 1 || !strings.Contains(out,
			`from=a error="no certificate" left_out=99`) {
			t.Error(out)
		}
	})
}

// Keys are kept for as long as they count, and the excess ones share a key.
func TestSeldomMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		log := slog.New(slog.NewTextHandler(&text, nil))
		var s Seldom
		for range 3 {
			for i := range 10 * maxKeys {
				s.Warn(log, "refused", fmt.Sprint(i), nil)
			}
			lines := strings.Count(text.String(), "\n")
			if lines > maxKeys+1 || lines < maxKeys || len(s.lines) > maxKeys+1 {
				t.Errorf("%d lines, and %d keys are kept", lines, len(s.lines))
			}
			text.Reset()
			<-time.After(lineInterval)
		}
	})
}
