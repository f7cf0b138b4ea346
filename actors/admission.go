package actors

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"exchange/actors/mailbox"
	"exchange/actors/owner"
	"exchange/core/event"
	"exchange/core/state"
)

// An admission is the way in: it counts commands between their handler and their release, and turns
// away those beyond the limits. No command is turned away later. Handlers and the release use it.
type admission struct {
	limits  *atomic.Pointer[Limits]
	timing  *Timing
	life    *mailbox.Life
	owner   *owner.Hold
	journal *journal
	behind  lagging

	inFlight  atomic.Int64 // clients' commands
	operating atomic.Int64 // operators'
	changing  atomic.Int64 // those of them that change maintenance
	firing    atomic.Int64 // those that no handler has sent: switches fire, sessions are lost
	// cancels of cancel-alls, but for the first of each
	extraCancels atomic.Int64
	maintenance  atomic.Pointer[event.Maintenance] // nil: there is none
	// capacity 1: an operator holds it while changing maintenance
	maintaining chan struct{}
	paused      atomic.Bool // an audit looks at the deciding side
	stopping    atomic.Bool // no new commands and reads are taken

	busyBooks atomic.Int64 // that do something without a command
	triggers  atomic.Int64 // triggered orders on their way, but for one of each book
	// for maintenance: they start nothing without a command, and they trigger nothing
	heldBooks, heldTriggers atomic.Bool

	clockError func() time.Duration
	// nowUs returns the time with which a command would be stamped now.
	nowUs func() int64
}

// lagging tells how many records the committed side is behind, and how many rows the store is.
type lagging interface {
	lag() (records uint64, rows int64)
}

// prepare makes the admission of an engine that is about to start.
func (a *admission) prepare(o *Options, limits *atomic.Pointer[Limits], l *mailbox.Life,
	hold *owner.Hold) {
	a.limits, a.timing, a.life, a.owner = limits, &o.Timing, l, hold
	a.maintaining, a.clockError, a.nowUs = make(chan struct{}, 1), o.ClockError, o.nowUs
}

// connect takes the maintenance of the state, and the parts that may be too far behind.
func (a *admission) connect(s *state.State, j *journal, behind lagging) {
	a.journal, a.behind = j, behind
	if m := s.Maintenance(); m.On {
		a.hold(&m)
		a.maintenance.Store(&m)
	}
}

// CloseAdmission refuses new commands and reads from now on.
func (a *admission) CloseAdmission() { a.stopping.Store(true) }

// open returns nil while new commands may come in.
func (a *admission) open(now int64) error {
	if a.stopping.Load() {
		return ErrStopping
	}
	return a.going(now)
}

// going returns nil while commands come to their end: also during an orderly stop.
func (a *admission) going(now int64) error {
	if a.life.Err() != nil {
		return ErrStopping
	}
	if a.stalls(now) {
		return ErrStalled
	}
	records, rows := a.behind.lag()
	limits := a.limits.Load()
	switch {
	case records > uint64(limits.FoldLag), rows > int64(limits.ProjectionLag):
		return ErrBehind
	case a.paused.Load():
		return ErrPaused
	}
	return nil
}

// stalls reports whether the store does not take what is appended now, or may lose it.
func (a *admission) stalls(now int64) bool {
	return a.journal.stalledFor(now) > a.timing.Stall || !a.owner.Leads() || a.owner.Unfit()
}

// confirmed returns nil while the store has lately confirmed that this process owns it, and has not
// denied it since.
func (a *admission) confirmed(now int64) error {
	if a.life.Err() != nil || a.owner.Released() {
		return ErrStopping
	}
	if now-a.owner.Checked() > int64(a.timing.OwnerStale) {
		return ErrNotConfirmed
	}
	if !a.owner.Leads() {
		return ErrNotConfirmed
	}
	return nil
}

// writable returns nil while clients' commands may come in.
func (a *admission) writable(now int64) error {
	if a.maintenance.Load() != nil {
		return ErrMaintenance
	}
	return a.open(now)
}

// cancelling returns nil while clients may cancel.
func (a *admission) cancelling(now int64) error {
	if m := a.maintenance.Load(); m != nil && m.BarsCancels() {
		return ErrMaintenance
	}
	return a.open(now)
}

// takes returns nil while commands of a list may come in. In a maintenance it bars those that are
// no cancels from a list that has cancels, too: nothing may come of them.
func (a *admission) takes(list []*Command) error {
	m := a.maintenance.Load()
	if m != nil && (m.BarsCancels() || !slices.ContainsFunc(list, (*Command).cancels)) {
		return ErrMaintenance
	}
	for _, c := range list {
		c.barred = m != nil && !c.cancels()
	}
	return a.open(list[0].made)
}

// Maintenance implements Commands.
func (a *admission) Maintenance() *event.Maintenance { return a.maintenance.Load() }

// settleMaintenance lets clients' commands in again when maintenance ends, and keeps them out when
// it begins.
func (a *admission) settleMaintenance(m *event.Maintenance) {
	if !m.On {
		a.maintenance.Store(nil)
		return
	}
	now := *m
	a.hold(&now)
	a.maintenance.Store(&now)
}

// hold keeps books from what they may not do in a maintenance; nil: there is none.
func (a *admission) hold(m *event.Maintenance) {
	a.heldTriggers.Store(m != nil)
	a.heldBooks.Store(m != nil && m.BarsCancels())
}

// quiet reports whether nothing is in flight: no command, and nothing that a book does without one.
func (a *admission) quiet() bool {
	return a.commandsInFlight() == 0 && a.busyBooks.Load() == 0 && a.journal.pending.Load() == 0
}

// countBook implements bookOut.
func (a *admission) countBook(n int64) { a.busyBooks.Add(n) }

// booksMayStart implements bookOut.
func (a *admission) booksMayStart() bool {
	return !a.heldBooks.Load() && !a.paused.Load() && !a.stopping.Load()
}

// booksMayTrigger implements bookOut.
func (a *admission) booksMayTrigger() bool { return !a.heldTriggers.Load() && a.booksMayStart() }

// takeTriggerSlot implements bookOut.
func (a *admission) takeTriggerSlot() bool {
	if a.triggers.Add(1) <= int64(a.limits.Load().TriggersInFlight) {
		return true
	}
	a.triggers.Add(-1)
	return false
}

// giveTriggerSlot implements bookOut.
func (a *admission) giveTriggerSlot() { a.triggers.Add(-1) }

// commandsInFlight returns the number of commands of clients and operators, and of switches that
// fire.
func (a *admission) commandsInFlight() int64 {
	return a.inFlight.Load() + a.operating.Load() + a.firing.Load()
}

// none waits until a number of commands in flight is 0.
func (a *admission) none(ctx context.Context, count *atomic.Int64) error {
	switch err := a.life.Until(ctx, func() bool { return count.Load() == 0 }); {
	case err == nil:
		return nil
	case err == ctx.Err():
		return ErrNotQuiet
	}
	return ErrStopping // the engine is dead
}

// takeSlots takes a slot for each command of a list, which are of one account, or none; giveBack
// returns one. This is the only place where a client's command is turned away for load, and no
// actor has seen it yet.
func (a *admission) takeSlots(list []*Command) error {
	n, ofCancels := int64(len(list)), int64(0)
	for _, c := range list {
		if c.TakesBack() {
			ofCancels++
		}
	}
	account := list[0].account
	// Of the slots that are kept for cancels a list may have as many as it has cancels.
	limits := a.limits.Load()
	most, mostOfAccount := int64(limits.InFlight), int32(limits.InFlightPerAccount)
	if ofCancels < n {
		most += ofCancels - int64(limits.InFlightCancels)
		most = min(most, int64(limits.InFlight))
		mostOfAccount = min(mostOfAccount, mostOfAccount-mostOfAccount/8+int32(ofCancels))
	}
	if a.inFlight.Add(n)+a.operating.Load() > most {
		a.inFlight.Add(-n)
		return ErrBusy
	}
	if account.InFlight.Add(int32(n)) > mostOfAccount {
		account.InFlight.Add(int32(-n))
		a.inFlight.Add(-n)
		return ErrAccountBusy
	}
	// after the count: either a drain sees these commands, or they see the drain
	if err := a.takes(list); err != nil {
		account.InFlight.Add(int32(-n))
		a.inFlight.Add(-n)
		return err
	}
	for _, c := range list {
		c.admitted = true
	}
	return nil
}

// stamp makes the time of a command as wrong as the simulated clock.
func (a *admission) stamp(c *Command) {
	if a.clockError != nil {
		c.timeUs += a.clockError().Microseconds()
	}
}

// admitOperator takes a slot for an operator's command.
func (a *admission) admitOperator(c *Command) error {
	a.stamp(c)
	if a.operating.Add(1)+a.inFlight.Load() > int64(a.limits.Load().InFlight) {
		a.operating.Add(-1)
		return ErrBusy
	}
	c.admitted = true
	if c.kind == event.KindMaintenance {
		a.changing.Add(1)
	}
	open := a.open
	if c.kind == event.KindMailed { // the mail may have been sent while the engine began to stop
		open = a.going
	}
	if err := open(c.made); err != nil {
		a.giveBack(c)
		return err
	}
	return nil
}

// admitUnasked lets a command in that no handler has sent, unless it may not go now. It takes no
// slot from clients: the schedule of switches, and the sockets, bound the number of such commands.
// Maintenance, audits and stops wait for it.
func (a *admission) admitUnasked(c *Command, may func(now int64) error) error {
	a.firing.Add(1)
	c.admitted, c.unasked = true, true
	if err := may(c.made); err != nil {
		a.giveBack(c)
		return err
	}
	return nil
}

// unhindered returns nil while a command may go that no load turns away, also in maintenance. It
// waits while the store takes no writes: an append that waits too long ends the process.
func (a *admission) unhindered(now int64) error {
	switch {
	case a.stopping.Load(), a.life.Err() != nil:
		return ErrStopping
	case a.stalls(now):
		return ErrStalled
	case a.paused.Load():
		return ErrPaused
	}
	return nil
}

// startsCancelling is cancelling at a start, when nothing is in flight.
func (a *admission) startsCancelling(now int64) error {
	if m := a.Maintenance(); m != nil && m.BarsCancels() {
		return ErrMaintenance
	}
	return a.unhindered(now)
}

func (a *admission) giveBack(c *Command) {
	if !c.admitted {
		return
	}
	c.admitted = false
	if c.unasked {
		a.firing.Add(-1)
		return
	}
	if c.key == nil {
		a.operating.Add(-1)
		if c.kind == event.KindMaintenance {
			a.changing.Add(-1)
		}
		return
	}
	c.account.InFlight.Add(-1)
	a.inFlight.Add(-1)
}
