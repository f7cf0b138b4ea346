package actors

import (
	"context"
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

// lose ends a session of the key, once its wallet knows.
func (g *gated) lose(session uint64) {
	g.t.Helper()
	g.e.SessionLost(g.key, session)
	eventually(g.t, "the wallet knows the end", func() bool { return g.e.firing.Load() == 0 })
}

// differs is the outcome of a session that is not as the others of its key.
const differs = "refused for 0"

func (g *gated) stays(when string, order uint64) {
	g.t.Helper()
	g.e.fireSwitches()
	if got := g.openIDs(); !slices.Equal(got, []uint64{order}) {
		g.t.Errorf("%s: %v are open, not %d", when, got, order)
	}
}

func (g *gated) toldAre(want string) {
	g.t.Helper()
	if got := g.told(); got != want {
		g.t.Errorf("the records are %s, want %s", got, want)
	}
}

func TestTheEndOfAKeysLastSessionGivesItsSwitchATime(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newClocked(t, fresh, nil)
		id := g.rest(g.sell(1e5))
		g.note()
		g.session(Session{Number: 1, Seconds: 600})
		g.session(Session{Number: 2, Seconds: 600})
		g.lose(1)
		g.lose(1)  // it has ended
		g.lose(77) // it has never begun
		g.later(time.Hour)
		g.stays("a session lives", id)
		g.lose(2)
		g.toldAre("switch, switch")
		armed := g.armedSwitches()
		if last := g.records()[1]; len(armed) != 1 || !armed[0].Session ||
			armed[0].DueUs != last.TimeUs+600e6 {
			t.Errorf("armed are %+v, by %+v", armed, last)
		}
		g.later(9 * time.Minute)
		g.stays("before its time", id)
		g.later(2 * time.Minute)
		g.fired()
		g.toldAre(fmt.Sprintf("switch, switch, swept %d disconnect, switch", id))
		g.end()
	})
}

func TestASessionTakesTheTimeBack(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newClocked(t, fresh, nil)
		id := g.rest(g.sell(1e5))
		g.session(Session{Number: 1, Seconds: 600})
		g.lose(1)
		g.later(9 * time.Minute)
		// no session lives, so it may be another switch
		g.session(Session{Number: 2, Filter: CancelFilter{Side: trading.Sell}})
		g.later(time.Hour)
		g.stays("a session lives again", id)
		g.lose(2)
		g.fired()
		if got := g.openIDs(); len(got) != 0 {
			t.Errorf("a switch of 0 seconds has fired: %v are open", got)
		}
		g.end()
	})
}

func TestTheSessionsOfAKeyAreAlike(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newClocked(t, fresh, nil)
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
			// the session that it ends counts no more
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
		g.end()
	})
}

func TestAClientThatLeavesKeepsItsOrders(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newClocked(t, fresh, nil)
		id := g.rest(g.sell(1e5))
		g.note()
		g.ends("the end of no session", g.leaving(1), accepted)
		g.session(Session{Number: 1, Seconds: 10})
		g.session(Session{Number: 2, Seconds: 10})
		g.ends("the first leaves", g.leaving(1), accepted)
		g.lose(1)
		g.toldAre("switch")
		g.ends("the last leaves", g.leaving(2), accepted)
		g.lose(2)
		g.toldAre("switch, switch")
		g.later(time.Hour)
		g.stays("all have left", id)
		if armed := g.armedSwitches(); len(armed) != 0 {
			t.Errorf("armed are %+v", armed)
		}
		g.end()
	})
}

// A second session is known only behind the record of the first: its client would believe itself
// protected, and a crash would forget it.
func TestASecondSessionWaitsForTheRecordOfTheFirst(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newClocked(t, fresh, nil)
		g.hold()
		one := g.begin(g.beginning(g.key, Session{Number: 1, Seconds: 10}))
		eventually(t, "the record is at the store", g.held)
		two := g.begin(g.beginning(g.key, Session{Number: 2, Seconds: 10}))
		g.queued(1)
		g.e.SessionLost(g.key, 1)
		silent(t, "the second session", two)
		g.letGo()
		if a, b := <-one, <-two; a != accepted || b != accepted {
			t.Error(a, b)
		}
		g.lose(1)
		g.toldAre("switch")
		g.end()
	})
}

// A key that has ended, or whose account is frozen, begins no session; those that it had end.
func TestTheSwitchOfLostSessionsFiresForFrozenAccountsAndEndedKeys(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		for what, end := range map[string]func(g *clocked) (Admin, error){
			"frozen": func(g *clocked) (Admin, error) { return g.e.Freeze("op", "ann", true) },
			"ended":  func(g *clocked) (Admin, error) { return g.e.RevokeKey("op", "key-of-ann") },
		} {
			g := newClocked(t, fresh, nil)
			g.rest(g.sell(1e5))
			g.session(Session{Number: 1, Seconds: 10})
			must[Admin](t)(end(g))
			if outcome(g.beginning(g.key, Session{Number: 2, Seconds: 10})) == accepted {
				t.Errorf("%s: a session begins", what)
			}
			g.lose(2)
			g.lose(1)
			g.later(11 * time.Second)
			g.fired()
			if got := g.openIDs(); len(got) != 0 {
				t.Errorf("%s: %v are open", what, got)
			}
			g.end()
		}
	})
}

// Clients come and go in maintenance, too; nothing fires then.
func TestASessionThatIsLostInMaintenanceCancelsBehindIt(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newClocked(t, fresh, nil)
		id := g.rest(g.sell(1e5))
		g.session(Session{Number: 1, Seconds: 10})
		must[Admin](t)(g.e.SetMaintenance(context.Background(), "ops", maintained))
		g.ends("a session in maintenance", g.beginning(g.key, Session{Number: 2, Seconds: 10}),
			ErrMaintenance.Error())
		g.lose(1)
		g.later(time.Minute)
		g.stays("in maintenance", id)
		must[Admin](t)(g.e.SetMaintenance(context.Background(), "ops", unmaintained))
		g.stays("just behind it", id)
		g.later(g.o.Timing.SwitchGrace + time.Second)
		g.fired()
		g.noneOpen()
		g.end()
	})
}

// The sessions of an engine end with it: the next start is their end, whether its clients went
// before it had stopped, or their end never became durable.
func TestAStartIsTheEndOfAllSessionsBefore(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		ends := map[string]func(g *clocked){
			"a crash": func(g *clocked) { g.crash() },
			"a stop": func(g *clocked) {
				g.e.CloseAdmission()
				g.e.SessionLost(g.key, 1)
				g.gated.end()
			},
			"a crash before the record of the end": func(g *clocked) {
				g.hold()
				g.e.SessionLost(g.key, 1)
				eventually(g.t, "the record is at the store", g.held)
				g.set(func() { g.holding, g.appendErr = false, persistence.ErrFenced })
				<-g.e.Dead()
				g.e.Abandon()
				g.close()
			},
		}
		for what, end := range ends {
			g := newClocked(t, fresh, nil)
			id := g.rest(g.sell(1e5))
			g.session(Session{Number: 1, Seconds: 600})
			g.later(time.Hour)
			end(g)
			g.later(9 * time.Minute)
			g.again()
			g.note()
			g.stays(what+", a moment ago", id)
			g.later(9 * time.Minute)
			g.stays(what+", 9 min ago", id)
			g.later(2 * time.Minute)
			g.fired()
			g.toldAre(fmt.Sprintf("swept %d disconnect, switch", id))
			g.end()
		}
	})
}

// An audit at rest wants nothing to change meanwhile. A store that may lose what it takes gets
// nothing: an append that waits too long would end the process.
func TestALostSessionWaitsForAnAuditAndForTheStore(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newClocked(t, fresh, func(o *Options) { o.Timing.OwnerCheck = time.Millisecond })
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
		eventually(t, "the store is not fit", func() bool { return g.e.own.unfit.Load() })
		g.e.paused.Store(false)
		waits("while the store may lose what it takes")
		g.set(func() { g.checkErr = nil })
		g.fired() // the ticker comes again
		g.end()
	})
}

// While the switch fires, a session that would arm it waits, and arms it anew.
func TestASessionWaitsWhileItsSwitchFires(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newClocked(t, fresh, nil)
		id := g.rest(g.sell(1e5))
		g.session(Session{Number: 1, Seconds: 10})
		g.lose(1)
		g.hold()
		g.later(11 * time.Second)
		eventually(t, "the cancel is at the store", g.held)
		call := g.begin(g.beginning(g.key, Session{Number: 2, Seconds: 10}))
		g.queued(1)
		g.letGo()
		if got := <-call; got != accepted {
			t.Error(got)
		}
		g.toldAre(fmt.Sprintf("swept %d disconnect, switch, switch", id))
		if armed := g.armedSwitches(); len(armed) != 1 || armed[0].DueUs != 0 {
			t.Errorf("armed are %+v", armed)
		}
		g.end()
	})
}
