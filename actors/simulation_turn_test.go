package actors

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A goroutine woken by the clock, or by the end of an engine, has no turn until it has parked and
// was chosen. Its touch before that fails the run where it happens, whether another goroutine
// touches the same then or not.
func TestAGoroutineThatWasNotChosenHasNoTurn(t *testing.T) {
	for what, c := range map[string]struct {
		parks bool
		want  string
	}{"it parks": {true, ""}, "it does not park": {false, noTurn}} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSim(1)
				s.spawn(nil, "sleeper", func() {
					time.Sleep(time.Millisecond)
					if s.failed(); c.parks {
						s.park(nil, "awake", nil)
					}
					s.outcomes["touched"]++
				})
				s.run(1)
				s.advance(time.Millisecond)
				s.run(1)
				switch err := s.failed(); {
				case c.want == "" && (err != nil || s.outcomes["touched"] != 1):
					t.Errorf("it has touched %d, and failed: %v", s.outcomes["touched"], err)
				case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)):
					t.Errorf("it failed: %v", err)
				}
			})
		})
	}
}
