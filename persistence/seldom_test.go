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

// A line is logged once a second for each side and cause, and tells how many were left out.
func TestWhatOthersBringAboutIsLoggedOnceASecond(t *testing.T) {
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
		<-time.After(sayEach) // of the bubble
		s.Warn(log, "refused", "a", inner, "from", "a")
		s.Warn(log, "refused", "a", inner, "from", "a")
		if out := text.String(); strings.Count(out, "\n") != 1 || !strings.Contains(out,
			`from=a error="no certificate" left_out=99`) {
			t.Error(out)
		}
	})
}

// Many sides are remembered for as long as they count, and those that are too many are one.
func TestWhatIsRememberedOfLinesIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		log := slog.New(slog.NewTextHandler(&text, nil))
		var s Seldom
		for range 3 {
			for i := range 10 * maxSayings {
				s.Warn(log, "refused", fmt.Sprint(i), nil)
			}
			lines := strings.Count(text.String(), "\n")
			if lines > maxSayings+1 || lines < maxSayings || len(s.said) > maxSayings+1 {
				t.Errorf("%d lines, and %d are remembered", lines, len(s.said))
			}
			text.Reset()
			<-time.After(sayEach)
		}
	})
}
