package actors

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"exchange/actors/directory"
	"exchange/core/event"
)

// A simSession is a session of a key, from its client's view.
type simSession struct {
	Session
	l   *life
	key *directory.Key

	known    bool // its begin was answered
	ended    bool // ended or about to end
	replaced bool // another one may have replaced it
}

// streamClients lets some clients of the stream come or go; l may be nil.
func (s *sim) streamClients(r *rand.Rand, l *life) {
	s.ownClients(r, l)
	s.sessionClients(r, l)
}

// sessionClients lets some clients of keys log in, or go; l may be nil.
func (s *sim) sessionClients(r *rand.Rand, l *life) {
	if l == nil || r.IntN(4) > 0 {
		return
	}
	key := l.key(r, fmt.Sprintf("key-%s-%d", pick(r, s.names), r.IntN(2)))
	if len(l.sessions) > 0 && r.IntN(3) > 0 {
		key = pick(r, l.sessions).key
	}
	if key == nil {
		return
	}
	live := slices.DeleteFunc(slices.Clone(l.sessions), func(x *simSession) bool {
		return x.key.Number != key.Number || x.ended || x.replaced
	})
	switch n := r.IntN(6); {
	case len(live) == 0, len(live) < 4 && n < 3:
		s.logIn(r, l, key, live)
	default:
		if x := pick(r, live); n == 5 && x.known {
			s.leave(x)
		} else {
			s.lose(x)
		}
	}
}

// logIn has a client begin a session, mostly as the others of its key.
func (s *sim) logIn(r *rand.Rand, l *life, key *directory.Key, live []*simSession) {
	s.sessions++
	x := &simSession{l: l, key: key, Session: Session{Number: s.sessions,
		Seconds: pick(r, []uint32{0, 5, 60, 60}), Filter: drawFilter(r, l.engine)}}
	var instead *simSession
	if len(live) > 0 {
		like := pick(r, live)
		if r.IntN(8) > 0 {
			x.Seconds, x.Filter = like.Seconds, like.Filter
		}
		if r.IntN(4) == 0 {
			instead, like.replaced, x.Instead = like, true, like.Number
		}
	}
	others := slices.Clone(live)
	l.sessions = append(l.sessions, x)
	s.spawn(l, fmt.Sprintf("%d.client: %v", l.number, x), func() {
		c, err := l.engine.Do(NewSession(key, &x.Session).Through(openGate{}))
		s.loggedIn(x, instead, others, c, err)
	})
}

func (x *simSession) String() string {
	return fmt.Sprintf("session %d of key %s, of %d s%s", x.Number, x.key.Public, x.Seconds,
		filterText(x.Filter))
}

// alike reports whether two sessions of a key may coexist.
func (x *simSession) alike(y *simSession) bool {
	return x.Seconds == y.Seconds && x.Filter == y.Filter
}

// loggedIn checks the answer to a login.
func (s *sim) loggedIn(x, instead *simSession, others []*simSession, c *Command, err error) {
	accepted := err == nil && c.Outcome() == Accepted
	differs := err == nil && len(c.Faults()) > 0
	if instead != nil {
		if accepted || err != nil {
			s.lose(instead) // its socket is closed
		} else {
			instead.replaced = false
		}
	}
	var beside bool
	for _, y := range others { // that were alive when it was sent
		if y == instead || !y.known || y.ended || y.replaced {
			continue
		}
		if beside = true; accepted && !x.alike(y) {
			s.violate("engine %d begins %v beside %v", x.l.number, x, y)
		}
	}
	switch {
	case accepted:
		x.known = true
		s.outcomes["sessions, begun"]++
		if instead != nil {
			s.outcomes["sessions, begun instead of others"]++
		} else if beside {
			s.outcomes["sessions, begun beside others"]++
		}
		if !x.ended && !x.replaced && s.owns(x.l) {
			s.isArmed(x)
		}
	case differs:
		s.outcomes["sessions, refused"]++
		if !slices.ContainsFunc(x.l.sessions, func(y *simSession) bool {
			return y != x && y != instead && y.key.Number == x.key.Number && !x.alike(y)
		}) {
			s.violate("engine %d refuses %v, and there is no other that differs", x.l.number, x)
		}
	case err == nil:
		if f := c.Record().Refusal.Reason; f != event.RefusedKey && f != event.RefusedFrozen {
			s.violate("%v is refused for %s", x, event.RefusalName(f))
		}
	}
	if c != nil {
		c.Free()
	}
	if !accepted || x.ended { // its socket may have gone before the begin was sent
		s.lose(x)
	}
}

// isArmed wants the switch of a session's key to be armed with the session's terms, without a due
// time.
func (s *sim) isArmed(x *simSession) {
	want := event.Switch{Account: x.key.Account.ID, Key: x.key.Number, Session: true, Armed: true,
		Seconds: x.Seconds, Side: x.Filter.Side, Prefix: x.Filter.Prefix}
	if x.Filter.Pair != nil {
		want.Pair = x.Filter.Pair.Number
	}
	if got, _ := s.model.SessionsSwitch(x.key.Number); got != want {
		s.violate("engine %d has %v, and durable is %+v", x.l.number, x, got)
	}
}

// lose ends a session, as the end of its socket does.
func (s *sim) lose(x *simSession) {
	if !x.ended {
		s.say("  session %d of engine %d is lost", x.Number, x.l.number)
		s.outcomes["sessions, lost"]++
	}
	x.ended = true
	x.l.engine.SessionLost(x.key, x.Number)
}

// leave ends a session whose client wants no cancels.
func (s *sim) leave(x *simSession) {
	x.ended = true
	s.spawn(x.l, fmt.Sprintf("%d.client: the end of %v", x.l.number, x), func() {
		c, err := x.l.engine.Do(NewLeave(x.key, x.Number).Through(openGate{}))
		if err == nil {
			if c.Outcome() == Accepted {
				s.left(x)
			}
			c.Free()
		}
		s.lose(x)
	})
}

// left checks the switch after a client has left.
func (s *sim) left(x *simSession) {
	s.outcomes["sessions, left"]++
	if slices.ContainsFunc(x.l.sessions, func(y *simSession) bool {
		return y != x && y.key.Number == x.key.Number
	}) || !s.owns(x.l) {
		return
	}
	if armed, is := s.model.SessionsSwitch(x.key.Number); is {
		s.violate("engine %d: the last session of key %s has left, and armed is %+v", x.l.number,
			x.key.Public, armed)
	}
}

// sessionsAtRest compares the sessions of an engine with its wallets, and with the armed switches.
// While the store accepts no writes, an end may wait.
func (s *sim) sessionsAtRest(l *life) error {
	counts, waits, unsure := map[uint32]int{}, map[uint64]bool{}, map[uint32]bool{}
	q := &l.engine.lost.queue
	for range q.Len() {
		c := q.Pop()
		waits[c.switchRequest.session], unsure[c.account.ID] = true, true
		q.Push(c)
	}
	l.sessions = slices.DeleteFunc(l.sessions, func(x *simSession) bool {
		return x.ended && !waits[x.Number]
	})
	for _, x := range l.sessions {
		counts[x.key.Account.ID]++
		if !x.ended {
			s.isArmed(x)
		}
	}
	for _, k := range s.model.Keys {
		armed, is := s.model.SessionsSwitch(k.Number)
		if is && armed.DueUs == 0 && !slices.ContainsFunc(l.sessions, func(x *simSession) bool {
			return x.key.Number == k.Number
		}) {
			return fmt.Errorf("key %s has no session, and %+v waits for the end of one", k.Name,
				armed)
		}
	}
	for id, w := range l.wallets {
		n := 0
		if w.rare != nil {
			n = len(w.sessions)
		}
		if n != counts[id] && !unsure[id] {
			return fmt.Errorf("wallet %s counts %d sessions, not %d", w.account.Name, n, counts[id])
		}
	}
	return nil
}
