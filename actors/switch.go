package actors

import (
	"context"
	"slices"
	"sync"
	"time"

	"exchange/actors/directory"
	"exchange/actors/metrics"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/matching"
	"exchange/core/state"
	"exchange/core/trading"
)

// A dead man's switch cancels an account's open orders at a time, unless its API key sets it anew
// before. It belongs to its account's wallet, which decides on it as on all commands of the
// account, also when the key has ended or the account is frozen.
//
// The times of all switches are in one schedule. The ticker looks at it, and sends a command for
// each switch that is due to the wallet. The command waits its turn there, and cancels as a
// cancel-all does. Then its own record ends the switch, and names the time that it was due. While
// this goes on the switch is still armed in the state: behind a crash it fires again.

// A switchID names one of the two switches of an API key.
type switchID struct {
	key     uint32 // number
	session bool   // that of the key's sessions, not that of its calls
}

// number returns a number that no other switch has.
func (id switchID) number() uint64 {
	n := uint64(id.key) << 1
	if id.session {
		n++
	}
	return n
}

// reason returns why an order was cancelled that the switch cancelled.
func (id switchID) reason() trading.Reason {
	if id.session {
		return trading.CancelledDisconnect
	}
	return trading.CancelledSwitch
}

func switchOf(s *event.Switch) switchID { return switchID{s.Key, s.Session} }

// switched carries a command about a switch out: it sets it, or fires it. It returns false if the
// command must wait.
func (w *wallet) switched(c *Command) (decided bool) {
	if c.switching.fires != (switchID{}) {
		return w.fireSwitch(c)
	}
	id := switchID{key: c.keyNumber()}
	if s := w.sweeping(); s != nil && s.parent.switching.fires == id {
		return false
	}
	w.setSwitch(c, id)
	return true
}

// sweeping returns the cancel-all that is under way, nil if none is.
func (w *wallet) sweeping() *cancelAll {
	if w.flight == nil {
		return nil
	}
	return w.cancellingAll
}

// setSwitch arms a switch for some seconds from the command's time, or disarms it.
func (w *wallet) setSwitch(c *Command, id switchID) {
	r := c.begin(event.KindSwitch, 0)
	r.Switch = event.Switch{Account: c.account.ID, Key: id.key, Nonce: c.order.nonce,
		Session: id.session}
	if s := &r.Switch; c.switching.seconds > 0 {
		s.Armed, s.Seconds = true, c.switching.seconds
		s.DueUs = c.timeUs + int64(s.Seconds)*1e6
		s.Side, s.Prefix = c.order.side, c.order.clientID
		if c.pair != nil {
			s.Pair = c.pair.Number
		}
	}
	w.keepSwitch(&r.Switch)
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
	r := c.begin(event.KindSwitch, 0)
	r.Switch = event.Switch{Account: c.account.ID, Key: id.key, Session: id.session,
		DueUs: c.switching.dueUs}
	w.keepSwitch(&r.Switch)
	w.accept(c)
}

// switches have the times at which switches are due. Wallets change them, and the ticker looks.
type switches struct {
	mu       sync.Mutex
	schedule matching.Schedule          // by switchID.number; guarded by mu
	set      map[uint64]scheduledSwitch // those in the schedule, by the same; guarded by mu
	graceUs  int64                      // until then none fires; guarded by mu
}

type scheduledSwitch struct {
	account *directory.Account
	id      switchID
	dueUs   int64
}

// due notes when a switch of an account is due; 0: never.
func (s *switches) due(a *directory.Account, id switchID, dueUs int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := id.number()
	if before, there := s.set[n]; there {
		s.schedule.Remove(before.dueUs, n)
		delete(s.set, n)
	}
	if dueUs == 0 {
		return
	}
	if s.set == nil {
		s.set = make(map[uint64]scheduledSwitch)
	}
	s.schedule.Add(dueUs, n)
	s.set[n] = scheduledSwitch{a, id, dueUs}
}

// ready reports whether a switch may fire at a time.
func (s *switches) ready(nowUs int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return nowUs >= s.graceUs && s.schedule.Due(nowUs)
}

// take takes the switch out that is due first; false if none is due.
func (s *switches) take(nowUs int64) (first scheduledSwitch, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if nowUs < s.graceUs || !s.schedule.Due(nowUs) {
		return first, false
	}
	dueUs, n, _ := s.schedule.First()
	first = s.set[n]
	s.schedule.Remove(dueUs, n)
	delete(s.set, n)
	return first, true
}

// wait keeps all switches from firing before a time.
func (s *switches) wait(untilUs int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.graceUs = max(s.graceUs, untilUs)
}

// fireSwitches sends each switch that is due to its wallet, while the engine takes commands.
func (e *Engine) fireSwitches() {
	for e.switches.ready(e.nowUs()) {
		c := newCommand(event.KindSwitch)
		if err := e.admitSwitch(c); err != nil {
			c.Free()
			return
		}
		due, ok := e.switches.take(c.timeUs)
		if !ok {
			e.finish(c, Refused)
			return
		}
		c.account, c.trace = due.account, metrics.Trace{}
		c.switching = switchRequest{fires: due.id, dueUs: due.dueUs}
		e.root.Send(due.account.Wallet, c)
	}
}

// switchDue implements walletOut.
func (e *Engine) switchDue(a *directory.Account, id switchID, dueUs int64) {
	e.switches.due(a, id, dueUs)
}

// scheduleSwitches notes when the switches are due that a start finds armed.
func (w *wallet) scheduleSwitches() {
	if w.rare == nil {
		return
	}
	for i := range w.switches {
		w.out.switchDue(w.account, switchOf(&w.switches[i]), w.switches[i].DueUs)
	}
}

// switchesAtOnce bounds the records of one append of a start about switches.
const switchesAtOnce = 500

// disconnect writes the records that give switches their times whose sessions lived when the engine
// before ended: the start counts as the end of these sessions.
func (r *recovered) disconnect(ctx context.Context, o *Options) error {
	for list := range slices.Chunk(disconnected(r.committed.State(), o), switchesAtOnce) {
		if err := r.append(ctx, o, list); err != nil {
			return err
		}
	}
	return nil
}

func disconnected(s *state.State, o *Options) (records []event.Record) {
	now := time.Now().UnixMicro()
	if o.clockError != nil {
		now += o.clockError().Microseconds()
	}
	for _, a := range s.Accounts() {
		for _, armed := range a.Switches() {
			if armed.DueUs == 0 {
				armed.DueUs = now + int64(armed.Seconds)*1e6
				records = append(records, event.Record{Kind: event.KindSwitch, TimeUs: now,
					Switch: armed})
			}
		}
	}
	return records
}
