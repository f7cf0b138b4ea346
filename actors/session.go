package actors

import (
	"fmt"
	"slices"
	"sync"

	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/actors/metrics"
	"exchange/core/event"
)

// A session is a client that has logged in, and whose end cancels orders. While a key has sessions,
// its second switch is armed without a time. The end of the last one gives it its time, and a new
// one takes that back.
//
// The account's wallet counts the sessions, and writes a record for the first one and the last
// end. Behind a start there are none, whatever became of the clients: the start is their end.

// A SessionChange is what a command says of a session.
type SessionChange uint8

const (
	SessionBegins SessionChange = iota
	sessionLost                 // its end gives the switch its time
	SessionLeaves               // its client wants no cancels
)

// A liveSession is a session of a key, in its account's wallet.
type liveSession struct {
	key    uint32
	number uint64
	ticket uint64 // of the command behind whose release the switch is known to be armed
}

// A Session is a client of a key that logs in.
type Session struct {
	Number  uint64 // that no other session has had since the start, not 0
	Instead uint64 // number of the session that it ends; 0: none
	Seconds uint32 // from the end of the key's last session to the cancels
	Filter  CancelFilter
}

// NewSession makes the command for the begin of a session, which Do sends through a gate. It is
// refused with Faults if another session of the key has other seconds, or another filter.
// Otherwise the caller tells SessionLost of the end, also if the outcome is unknown.
func NewSession(key *directory.Key, s *Session) *Command {
	c := newCommand(event.KindSwitch)
	c.key, c.account, c.pair = key, key.Account, s.Filter.Pair
	c.order.side, c.order.clientID = s.Filter.Side, s.Filter.Prefix
	c.switching = switchRequest{seconds: s.Seconds, session: s.Number, instead: s.Instead}
	return c
}

// NewLeave makes the command for the end of a session whose client wants no cancels, which Do sends
// through a gate.
func NewLeave(key *directory.Key, session uint64) *Command {
	c := newCommand(event.KindSwitch)
	c.key, c.account = key, key.Account
	c.switching = switchRequest{session: session, change: SessionLeaves}
	return c
}

// lostSessions are sessions that have ended, until their wallets are told.
type lostSessions struct {
	mu    sync.Mutex
	queue mailbox.FIFO[*Command] // guarded by mu
}

// SessionLost implements Commands. Nothing turns it away for load.
func (e *Engine) SessionLost(key *directory.Key, session uint64) {
	c := newCommand(event.KindSwitch)
	c.key, c.account, c.unasked = key, key.Account, true
	c.switching = switchRequest{session: session, change: sessionLost}
	c.trace = metrics.Trace{} // it may wait
	e.stamp(c)
	e.lost.mu.Lock()
	e.lost.queue.Push(c)
	e.lost.mu.Unlock()
	e.endSessions()
}

// endSessions tells the wallets of lost sessions, unless an audit wants rest, or the store takes no
// writes: then the ticker comes again. When the engine stops it tells them nothing: the next start
// is the end of all sessions.
func (e *Engine) endSessions() {
	e.lost.mu.Lock()
	defer e.lost.mu.Unlock()
	for e.lost.queue.Len() > 0 && e.admitUnasked(*e.lost.queue.First(), e.unhindered) == nil {
		c := e.lost.queue.Pop()
		e.toWallet(c.account, c)
	}
}

// changeSession begins or ends a session. It returns false while it cannot be known whether the
// switch of the key's other sessions is durable.
func (w *wallet) changeSession(c *Command) (decided bool) {
	s, key := &c.switching, c.keyNumber()
	if s.change == SessionBegins {
		return w.beginSession(c)
	}
	dropped := w.dropSession(key, s.session)
	if _, others := w.otherSession(key, 0); dropped && !others {
		w.lastSessionEnds(c)
	} else {
		w.out.finish(c, Accepted)
	}
	return true
}

// beginSession arms the switch for the first session of a key, and adds others to it.
func (w *wallet) beginSession(c *Command) (decided bool) {
	s, wants := &c.switching, w.asked(c)
	wants.Armed = true
	other, others := w.otherSession(wants.Key, s.instead)
	if !others { // then the one that it ends may hand its switch over
		other, others = w.lastSession(&wants, s.instead)
	}
	if others && !w.tickets.allBack(other.ticket) {
		return false
	}
	if others {
		if armed := *w.armedBySessions(wants.Key); armed != wants {
			c.faults = []Fault{{"cancel_on_disconnect", "Another socket of the key is logged in " +
				"with other seconds, or for other orders."}}
			w.out.finish(c, Refused)
			return true
		}
	}
	w.dropSession(wants.Key, s.instead)
	live := liveSession{key: wants.Key, number: s.session}
	if others {
		live.ticket = other.ticket
		w.out.finish(c, Accepted)
	} else {
		w.setSwitch(c, &wants)
		live.ticket = w.tickets.last()
	}
	r := w.rareParts() // the command may have ended by now
	r.sessions = append(r.sessions, live)
	return true
}

// lastSessionEnds gives the switch of a key's sessions its time, or disarms it.
func (w *wallet) lastSessionEnds(c *Command) {
	s := *w.armedBySessions(c.keyNumber())
	if c.switching.change == SessionLeaves {
		s = event.Switch{Account: s.Account, Key: s.Key, Session: true}
	} else {
		s.DueUs = c.timeUs + int64(s.Seconds)*1e6
	}
	w.setSwitch(c, &s)
}

// armedBySessions returns the switch of a key's sessions. One of them lives.
func (w *wallet) armedBySessions(key uint32) *event.Switch {
	i := w.findSwitch(switchID{key, true})
	if i == len(w.switches) || w.switches[i].DueUs != 0 {
		panic(fmt.Sprintf("BUG: wallet %s has a session of key number %d, and the switches %+v",
			w.account.Name, key, w.switches))
	}
	return &w.switches[i]
}

// otherSession returns a session of a key, but not one of a number; false: there is none.
func (w *wallet) otherSession(key uint32, number uint64) (s liveSession, ok bool) {
	if w.rare == nil {
		return s, false
	}
	for _, s := range w.sessions {
		if s.key == key && s.number != number {
			return s, true
		}
	}
	return s, false
}

// lastSession returns the session of a number, if it lives, is the only one of its key, and has
// armed the same switch.
func (w *wallet) lastSession(wants *event.Switch, number uint64) (s liveSession, ok bool) {
	s, ok = w.otherSession(wants.Key, 0)
	return s, ok && s.number == number && *w.armedBySessions(wants.Key) == *wants
}

// dropSession forgets a session. It returns false if there is no such one.
func (w *wallet) dropSession(key uint32, number uint64) bool {
	if w.rare == nil {
		return false
	}
	i := slices.IndexFunc(w.sessions, func(s liveSession) bool {
		return s.key == key && s.number == number
	})
	if i >= 0 {
		w.sessions = slices.Delete(w.sessions, i, i+1)
	}
	return i >= 0
}
