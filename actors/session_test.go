package actors

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/trading"
	"exchange/persistence"
)

// An openGate lets every command through.
type openGate struct{}

func (openGate) Pass(give func()) bool {
	give()
	return true
}

// beginning is a call that begins a session.
func (g *gated) beginning(key *directory.Key, s Session) func() (*Command, error) {
	return func() (*Command, error) { return g.e.Do(NewSession(key, &s).Through(openGate{})) }
}

// leaving is a call that ends a session without cancels.
func (g *gated) leaving(session uint64) func() (*Command, error) {
	return func() (*Command, error) { return g.e.Do(NewLeave(g.key, session).Through(openGate{})) }
}

// session begins a session of the key.
func (g *gated) session(s Session) {
	g.t.Helper()
	g.ends(fmt.Sprintf("the session %+v", s), g.beginning(g.key, s), accepted)
}

// lose ends a session of the key, once its wallet has received that.
func (g *gated) lose(session uint64) {
	g.t.Helper()
	g.e.SessionLost(g.key, session)
	eventually(g.t, "the end is settled", func() bool { return g.e.internalInFlight.Load() == 0 })
}

// differs is the outcome of a session that differs from the others of its key.
const differs = "refused for 0"

func (g *gated) stays(when string, order uint64) {
	g.t.Helper()
	g.e.fireSwitches()
	if got := g.openIDs(); !slices.Equal(got, []uint64{order}) {
		g.t.Errorf("%s: %v are open, not %d", when, got, order)
	}
}

func TestTheSessionsOfAKeyAreAlike(t *testing.T) {
	onClocked(t, nil, func(t *testing.T, g *clocked) {
		prefix := g.named("bot-").ClientID
		first := Session{Number: 1, Seconds: 10, Filter: CancelFilter{Pair: g.e.Pairs()[0],
			Side: trading.Sell, Prefix: prefix}}
		must[Admin](t)(g.e.CreateKey("test", "ann", "another-key", "secret", 7, nil))
		g.session(first)
		g.note()
		for what, change := range map[string]func(s *Session){
			"other seconds": func(s *Session) { s.Seconds = 11 },
			"another pair":  func(s *Session) { s.Filter.Pair = g.e.Pairs()[1] },
			"all pairs":     func(s *Session) { s.Filter.Pair = nil },
			"another side":  func(s *Session) { s.Filter.Side = trading.Buy },
			"no prefix":     func(s *Session) { s.Filter.Prefix = event.ClientID{} },
		} {
			s := first
			s.Number = 2
			change(&s)
			g.ends(what, g.beginning(g.key, s), differs)
			g.ends(what+" for another key", g.beginning(g.e.Key([]byte("another-key")), s),
				accepted)
			g.e.SessionLost(g.e.Key([]byte("another-key")), 2)
			g.lose(2)
			// the replaced session no longer counts
			s.Number, s.Instead = 3, 1
			g.ends(what+" instead", g.beginning(g.key, s), accepted)
			g.lose(1)
			first.Number, first.Instead = 1, 3
			g.ends("the first instead", g.beginning(g.key, first), accepted)
			before := len(g.records())
			first.Number, first.Instead = 5, 1 // which needs no record
			g.ends("the same instead", g.beginning(g.key, first), accepted)
			first.Number, first.Instead = 1, 5
			g.ends("the same instead of that", g.beginning(g.key, first), accepted)
			if after := len(g.records()); after != before {
				t.Errorf("%s: %d records more", what, after-before)
			}
			g.lose(5)
			g.lose(3)
			first.Instead = 0
		}
		if armed := g.armedSwitches(); len(armed) != 2 || armed[0].DueUs != 0 {
			t.Errorf("armed are %+v", armed)
		}
	})
}

// During an audit at rest nothing may change. A store that may lose writes gets none: an append
// that waits too long would end the process.
func TestALostSessionWaitsForAnAuditAndForTheStore(t *testing.T) {
	onClocked(t, func(o *Options) {
		o.Timing.OwnerCheck = time.Millisecond
	}, func(t *testing.T, g *clocked) {
		g.rest(g.sell(1e5))
		g.session(Session{Number: 1})
		g.session(Session{Number: 2})
		waits := func(when string) {
			t.Helper()
			g.e.endSessions()
			if armed := g.armedSwitches(); len(armed) != 1 || armed[0].DueUs != 0 ||
				g.e.journal.pending.Load() != 0 {
				t.Errorf("%s armed are %+v", when, armed)
			}
		}
		eventually(t, "nothing is in flight",
			func() bool { return g.e.journal.pending.Load() == 0 })
		g.e.paused.Store(true)
		g.e.SessionLost(g.key, 1)
		g.e.SessionLost(g.key, 2)
		waits("during the audit")
		g.set(func() { g.checkErr = persistence.ErrNotDurable })
		eventually(t, "the store is not fit", func() bool { return g.e.own.Unfit() })
		g.e.paused.Store(false)
		waits("while the store may lose what it takes")
		g.set(func() { g.checkErr = nil })
		g.fired() // the ticker retries
	})
}
