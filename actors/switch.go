package actors

import (
	"exchange/core/event"
	"exchange/core/ledger"
)

// A dead man's switch cancels an account's open orders at a time, unless its API key renews it
// before. It belongs to its account's wallet, which orders it with all commands of the account,
// even if the key is revoked or the account frozen.
//
// One schedule holds the times of all switches. The ticker checks it, and sends a command to the
// wallet for each due switch. The command waits its turn there, and cancels as a cancel-all does.
// Then its own record ends the switch, and names its due time. Until then the switch stays armed in
// the state: after a crash it fires again.

// changeSwitch executes a command that sets or fires a switch. It returns false if the command must
// wait.
func (w *wallet) changeSwitch(c *Command) (decided bool) {
	if c.switchRequest.fires != (switchID{}) {
		return w.fireSwitch(c)
	}
	id := switchID{key: c.keyNumber(), session: c.switchRequest.session != 0}
	if s := w.runningCancelAll(); s != nil && s.parent.switchRequest.fires == id {
		return false
	}
	if id.session {
		return w.changeSession(c)
	}
	s := w.requestedSwitch(c)
	if s.Armed = s.Seconds > 0; s.Armed {
		s.DueUs = c.timeUs + int64(s.Seconds)*1e6
	}
	w.setSwitch(c, &s)
	return true
}

// requestedSwitch returns a command's switch, not armed.
func (w *wallet) requestedSwitch(c *Command) event.Switch {
	s := event.Switch{Account: c.account.ID, Key: c.keyNumber(), Nonce: c.order.nonce,
		Session: c.switchRequest.session != 0}
	if s.Seconds = c.switchRequest.seconds; s.Seconds == 0 && !s.Session {
		return s
	}
	s.Side, s.Prefix = c.order.side, c.order.clientID
	if c.pair != nil {
		s.Pair = c.pair.Number
	}
	return s
}

// runningCancelAll returns the running cancel-all, nil if none.
func (w *wallet) runningCancelAll() *cancelAll {
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

// keepSwitch stores a switch in the wallet and in the schedule.
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
	w.out.scheduleSwitch(w.account, switchOf(s), dueUs)
}

// findSwitch returns the index of an armed switch in the list, the list's length if absent.
func (w *wallet) findSwitch(id switchID) int {
	for i := range w.switches {
		if switchOf(&w.switches[i]) == id {
			return i
		}
	}
	return len(w.switches)
}

// fireSwitch begins to cancel the orders of a due switch. It returns false while anything is in
// flight, as for a cancel-all. A switch renewed meanwhile does not fire.
func (w *wallet) fireSwitch(c *Command) (decided bool) {
	if w.cancellingAll != nil || w.tickets.out() > 0 {
		return false
	}
	id := c.switchRequest.fires
	i := w.findSwitch(id)
	if i == len(w.switches) || w.switches[i].DueUs != c.switchRequest.dueUs {
		w.out.finish(c, Refused)
		return true
	}
	s := &w.switches[i]
	w.startCancels(c, ledger.OpenFilter{Pair: s.Pair, Side: s.Side}, s.Prefix)
	if w.cancellingAll == nil {
		w.endSwitch(c)
	}
	return true
}

// endSwitch ends a switch whose orders are cancelled.
func (w *wallet) endSwitch(c *Command) {
	id := c.switchRequest.fires
	w.setSwitch(c, &event.Switch{Account: c.account.ID, Key: id.key, Session: id.session,
		DueUs: c.switchRequest.dueUs})
}
