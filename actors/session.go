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

// A session is a logged-in client whose end cancels orders. While a key has sessions, its second
// switch is armed without a due time. The end of the last session sets the time, and a new session
// clears it.
//
// The account's wallet counts the sessions, and writes a record for the first begin and the last
// end. After a start there are none, whatever happened to the clients: the start ends them.

// A SessionChange is the change of a session in a command.
type SessionChange uint8

const (
	SessionBegins SessionChange = iota
	sessionLost                 // its end sets the switch's time
	SessionLeaves               // its client wants no cancels
)

// A liveSession is a session of a key, in its account's wallet.
type liveSession struct {
	key    uint32
	number uint64
	ticket uint64 // of the command after whose release the switch is armed durably
}

// A Session is a key's client that logs in.
type Session struct {
	Number  uint64 // unique since the start, not 0
	Instead uint64 // number of the session that it replaces; 0: none
	Seconds uint32 // from the end of the key's last session to the cancels
	Filter  CancelFilter
}

// NewSession makes the command that begins a session, which Do sends through a gate. Faults:
// another session of the key has other seconds, or another filter. Otherwise the caller calls
// SessionLost at the end, even if the outcome is unknown.
func NewSession(key *directory.Key, s *Session) *Command {
	c := newCommand(event.KindSwitch)
	c.key, c.account, c.pair = key, key.Account, s.Filter.Pair
	c.order.side, c.order.clientID = s.Filter.Side, s.Filter.Prefix
	c.switchRequest = switchRequest{seconds: s.Seconds, session: s.Number, instead: s.Instead}
	return c
}

// NewLeave makes the command that ends a session without cancels, which Do sends through a gate.
func NewLeave(key *directory.Key, session uint64) *Command {
	c := newCommand(event.KindSwitch)
	c.key, c.account = key, key.Account
	c.switchRequest = switchRequest{session: session, change: SessionLeaves}
	return c
}

// lostSessions are ended sessions whose wallets are not yet notified.
type lostSessions struct {
	mu    sync.Mutex
	queue mailbox.FIFO[*Command] // guarded by mu
}

// SessionLost implements Commands. Load never refuses it.
func (e *Engine) SessionLost(key *directory.Key, session uint64) {
	c := newCommand(event.KindSwitch)
	c.key, c.account, c.internal = key, key.Account, true
	c.switchRequest = switchRequest{session: session, change: sessionLost}
	c.trace = metrics.Trace{} // it may wait
	e.stamp(c)
	e.lost.mu.Lock()
	e.lost.queue.Push(c)
	e.lost.mu.Unlock()
	e.endSessions()
}

// endSessions notifies the wallets of lost sessions, unless an audit waits for rest, or the store
// accepts no writes: then the ticker retries. A stopping engine notifies none: the next start ends
// all sessions.
func (e *Engine) endSessions() {
	e.lost.mu.Lock()
	defer e.lost.mu.Unlock()
	for e.lost.queue.Len() > 0 && e.admitInternal(*e.lost.queue.First(), e.checkInternal) == nil {
		c := e.lost.queue.Pop()
		e.toWallet(c.account, c)
	}
}

// changeSession begins or ends a session. It returns false while the durability of the key's
// session switch is unknown.
func (w *wallet) changeSession(c *Command) (decided bool) {
	s, key := &c.switchRequest, c.keyNumber()
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
	s, wants := &c.switchRequest, w.requestedSwitch(c)
	wants.Armed = true
	other, others := w.otherSession(wants.Key, s.instead)
	if !others { // then the session that it replaces may hand over its switch
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
	r := w.rareParts() // the command may have completed by now
	r.sessions = append(r.sessions, live)
	return true
}

// lastSessionEnds sets the due time of the key's session switch, or disarms it.
func (w *wallet) lastSessionEnds(c *Command) {
	s := *w.armedBySessions(c.keyNumber())
	if c.switchRequest.change == SessionLeaves {
		s = event.Switch{Account: s.Account, Key: s.Key, Session: true}
	} else {
		s.DueUs = c.timeUs + int64(s.Seconds)*1e6
	}
	w.setSwitch(c, &s)
}

// armedBySessions returns the armed switch of a key with sessions.
func (w *wallet) armedBySessions(key uint32) *event.Switch {
	i := w.findSwitch(switchID{key, true})
	if i == len(w.switches) || w.switches[i].DueUs != 0 {
		panic(fmt.Sprintf("BUG: wallet %s has a session of key number %d, and the switches %+v",
			w.account.Name, key, w.switches))
	}
	return &w.switches[i]
}

// otherSession returns a session of a key other than a given one; false: none.
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

// lastSession returns a given session, if it is alive, is the only one of its key, and has armed
// the same switch.
func (w *wallet) lastSession(wants *event.Switch, number uint64) (s liveSession, ok bool) {
	s, ok = w.otherSession(wants.Key, 0)
	return s, ok && s.number == number && *w.armedBySessions(wants.Key) == *wants
}

// dropSession removes a session. It returns false if it does not exist.
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
