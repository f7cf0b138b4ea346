package actors

import (
	"exchange/core/event"
	"exchange/core/ledger"
)

// A dead man's switch cancels an account's open orders at a time, unless its API key sets it anew
// before. It belongs to its account's wallet, which decides on it as on all commands of the
// account, also when the key has ended or the account is frozen.
//
// The times of all switches are in one schedule. The ticker looks at it, and sends a command for
// each switch that is due to the wallet. The command waits its turn there, and cancels as a
// cancel-all does. Then its own record ends the switch, and names the time that it was due. While
// this goes on the switch is still armed in the state: behind a crash it fires again.

// switched carries a command about a switch out: it sets it, or fires it. It returns false if the
// command must wait.
func (w *wallet) switched(c *Command) (decided bool) {
	if c.switching.fires != (switchID{}) {
		return w.fireSwitch(c)
	}
	id := switchID{key: c.keyNumber(), session: c.switching.session != 0}
	if s := w.sweeping(); s != nil && s.parent.switching.fires == id {
		return false
	}
	if id.session {
		return w.changeSession(c)
	}
	s := w.asked(c)
	if s.Armed = s.Seconds > 0; s.Armed {
		s.DueUs = c.timeUs + int64(s.Seconds)*1e6
	}
	w.setSwitch(c, &s)
	return true
}

// asked returns the switch that a command names, not armed.
func (w *wallet) asked(c *Command) event.Switch {
	s := event.Switch{Account: c.account.ID, Key: c.keyNumber(), Nonce: c.order.nonce,
		Session: c.switching.session != 0}
	if s.Seconds = c.switching.seconds; s.Seconds == 0 && !s.Session {
		return s
	}
	s.Side, s.Prefix = c.order.side, c.order.clientID
	if c.pair != nil {
		s.Pair = c.pair.Number
	}
	return s
}

// sweeping returns the cancel-all that is under way, nil if none is.
func (w *wallet) sweeping() *cancelAll {
	if w.flight == nil {
		return nil
	}
	return w.cancellingAll
}

// setSwitch arms or disarms a switch by the command's record.
func (w *wallet) setSwitch(c *Command, s *event.Switch) {
	c.begin(event.KindSwitch, 0).Switch = *s
	w.keepSwitch(s)
	w.accept(c)
}

// keepSwitch notes a switch as it is set now, in the wallet and in the schedule.
func (w *wallet) keepSwitch(s *event.Switch) {
	r, kept := w.rareParts(), *s
	kept.Nonce = 0
	i := w.findSwitch(switchOf(s))
	switch {
	case i < len(r.switches) && s.Armed:
		r.switches[i] = kept
	case i < len(r.switches):
		r.switches = append(r.switches[:i], r.switches[i+1:]...)
	case s.Armed:
		r.switches = append(r.switches, kept)
	}
	dueUs := s.DueUs
	if !s.Armed {
		dueUs = 0
	}
	w.out.switchDue(w.account, switchOf(s), dueUs)
}

// findSwitch returns the place of an armed switch in the list, its length if it is not there.
func (w *wallet) findSwitch(id switchID) int {
	for i := range w.switches {
		if switchOf(&w.switches[i]) == id {
			return i
		}
	}
	return len(w.switches)
}

// fireSwitch begins to cancel the orders of a switch that is due. It returns false while anything
// is on its way, as for a cancel-all. A switch that was set anew meanwhile does not fire.
func (w *wallet) fireSwitch(c *Command) (decided bool) {
	if w.cancellingAll != nil || w.tickets.out() > 0 {
		return false
	}
	id := c.switching.fires
	i := w.findSwitch(id)
	if i == len(w.switches) || w.switches[i].DueUs != c.switching.dueUs {
		w.out.finish(c, Refused)
		return true
	}
	s := &w.switches[i]
	w.sweep(c, ledger.OpenFilter{Pair: s.Pair, Side: s.Side}, s.Prefix)
	if w.cancellingAll == nil {
		w.endSwitch(c)
	}
	return true
}

// endSwitch ends a switch whose orders are cancelled.
func (w *wallet) endSwitch(c *Command) {
	id := c.switching.fires
	w.setSwitch(c, &event.Switch{Account: c.account.ID, Key: id.key, Session: id.session,
		DueUs: c.switching.dueUs})
}
