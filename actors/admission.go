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

// An admission counts commands from their handler to their release, and refuses those beyond the
// limits. After admission no command is refused for load. Handlers and the release use it.
type admission struct {
	limits      *atomic.Pointer[Limits]
	timing      *Timing
	life        *mailbox.Life
	owner       *owner.Hold
	journal     *journal
	lagReporter lagReporter

	inFlight           atomic.Int64 // clients' commands
	operatorInFlight   atomic.Int64 // operators' commands
	maintenanceChanges atomic.Int64 // operators' commands that change maintenance
	internalInFlight   atomic.Int64 // commands without a handler: switches that fire, lost sessions
	// cancels of cancel-alls, except the first of each
	extraCancels atomic.Int64
	maintenance  atomic.Pointer[event.Maintenance] // nil: none
	// capacity 1: an operator holds it while changing maintenance
	maintaining chan struct{}
	paused      atomic.Bool // an audit reads the deciding side
	stopping    atomic.Bool // new commands and reads are refused

	busyBooks atomic.Int64 // books with work of their own, without a command
	triggers  atomic.Int64 // triggered orders in flight, except one of each book
	// in maintenance: books start no work of their own; they trigger no orders
	heldBooks, heldTriggers atomic.Bool

	clockError func() time.Duration
	// nowUs returns the stamp of a command created now.
	nowUs func() int64
}

// lagReporter reports how many records the committed side is behind, and how many rows the store.
type lagReporter interface {
	lag() (records uint64, rows int64)
}

// prepare sets up the admission of an engine that is about to start.
func (a *admission) prepare(o *Options, limits *atomic.Pointer[Limits], l *mailbox.Life,
	hold *owner.Hold) {
	a.limits, a.timing, a.life, a.owner = limits, &o.Timing, l, hold
	a.maintaining, a.clockError, a.nowUs = make(chan struct{}, 1), o.ClockError, o.nowUs
}

// connect adopts the state's maintenance, and the parts that may lag too far.
func (a *admission) connect(s *state.State, j *journal, lag lagReporter) {
	a.journal, a.lagReporter = j, lag
	if m := s.Maintenance(); m.On {
		a.holdBooks(&m)
		a.maintenance.Store(&m)
	}
}

// CloseAdmission refuses new commands and reads from now on.
func (a *admission) CloseAdmission() { a.stopping.Store(true) }

// open returns nil while new commands are admitted.
func (a *admission) open(now int64) error {
	if a.stopping.Load() {
		return ErrStopping
	}
	return a.checkRunning(now)
}

// checkRunning returns nil while commands can complete, also during an orderly stop.
func (a *admission) checkRunning(now int64) error {
	if a.life.Err() != nil {
		return ErrStopping
	}
	if a.storeStalled(now) {
		return ErrStalled
	}
	records, rows := a.lagReporter.lag()
	limits := a.limits.Load()
	switch {
	case records > uint64(limits.FoldLag), rows > int64(limits.ProjectionLag):
		return ErrBehind
	case a.paused.Load():
		return ErrPaused
	}
	return nil
}

// storeStalled reports whether the store does not accept appends now, or may lose them.
func (a *admission) storeStalled(now int64) bool {
	return a.journal.stalledFor(now) > a.timing.Stall || !a.owner.Leads() || a.owner.Unfit()
}

// confirmed returns nil while the store has recently confirmed this process's ownership, and has
// not denied it since.
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

// writable returns nil while clients' commands are admitted.
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

// checkList returns nil while commands of a list are admitted. In a maintenance that allows cancels
// it excludes the other commands of the list, which then have no effect.
func (a *admission) checkList(list []*Command) error {
	m := a.maintenance.Load()
	if m != nil && (m.BarsCancels() || !slices.ContainsFunc(list, (*Command).passesMaintenance)) {
		return ErrMaintenance
	}
	for _, c := range list {
		c.excluded = m != nil && !c.passesMaintenance()
	}
	return a.open(list[0].createdAt)
}

// Maintenance implements Commands.
func (a *admission) Maintenance() *event.Maintenance { return a.maintenance.Load() }

// applyMaintenance admits clients' commands again when maintenance ends, and refuses them when it
// begins.
func (a *admission) applyMaintenance(m *event.Maintenance) {
	if !m.On {
		a.maintenance.Store(nil)
		return
	}
	current := *m
	a.holdBooks(&current)
	a.maintenance.Store(&current)
}

// holdBooks stops the book activity that a maintenance forbids; nil: no maintenance.
func (a *admission) holdBooks(m *event.Maintenance) {
	a.heldTriggers.Store(m != nil)
	a.heldBooks.Store(m != nil && m.BarsCancels())
}

// quiet reports whether nothing is in flight: no command, and no book activity without one.
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

// returnTriggerSlot implements bookOut.
func (a *admission) returnTriggerSlot() { a.triggers.Add(-1) }

// commandsInFlight returns the number of commands of clients and operators, and of internal ones.
func (a *admission) commandsInFlight() int64 {
	return a.inFlight.Load() + a.operatorInFlight.Load() + a.internalInFlight.Load()
}

// awaitZero waits until a count of commands in flight is 0.
func (a *admission) awaitZero(ctx context.Context, count *atomic.Int64) error {
	switch err := a.life.Until(ctx, func() bool { return count.Load() == 0 }); {
	case err == nil:
		return nil
	case err == ctx.Err():
		return ErrNotQuiet
	}
	return ErrStopping // the engine is dead
}

// takeSlots takes a slot for each command of a list, all of one account, or none; returnSlot
// returns one. Only here is a client's command refused for load, before any actor has received it.
func (a *admission) takeSlots(list []*Command) error {
	n, ofCancels := int64(len(list)), int64(0)
	for _, c := range list {
		if c.MayUseCancelSlot() {
			ofCancels++
		}
	}
	account := list[0].account
	// A list may use as many of the slots reserved for cancels as it contains cancels.
	limits := a.limits.Load()
	most, mostOfAccount := int64(limits.InFlight), int32(limits.InFlightPerAccount)
	if ofCancels < n {
		most += ofCancels - int64(limits.InFlightCancels)
		most = min(most, int64(limits.InFlight))
		mostOfAccount = min(mostOfAccount, mostOfAccount-mostOfAccount/8+int32(ofCancels))
	}
	if a.inFlight.Add(n)+a.operatorInFlight.Load() > most {
		a.inFlight.Add(-n)
		return ErrBusy
	}
	if account.InFlight.Add(int32(n)) > mostOfAccount {
		account.InFlight.Add(int32(-n))
		a.inFlight.Add(-n)
		return ErrAccountBusy
	}
	// after the count: whoever awaits a count of 0 sees these commands, or they are refused here
	if err := a.checkList(list); err != nil {
		account.InFlight.Add(int32(-n))
		a.inFlight.Add(-n)
		return err
	}
	for _, c := range list {
		c.holdsSlot = true
	}
	return nil
}

// stamp adds the simulated clock's error to the time of a command.
func (a *admission) stamp(c *Command) {
	if a.clockError != nil {
		c.timeUs += a.clockError().Microseconds()
	}
}

// admitOperator takes a slot for an operator's command.
func (a *admission) admitOperator(c *Command) error {
	a.stamp(c)
	if a.operatorInFlight.Add(1)+a.inFlight.Load() > int64(a.limits.Load().InFlight) {
		a.operatorInFlight.Add(-1)
		return ErrBusy
	}
	c.holdsSlot = true
	if c.kind == event.KindMaintenance {
		a.maintenanceChanges.Add(1)
	}
	open := a.open
	if c.kind == event.KindMailed { // the mail may have been sent as the engine began to stop
		open = a.checkRunning
	}
	if err := open(c.createdAt); err != nil {
		a.returnSlot(c)
		return err
	}
	return nil
}

// admitInternal admits a command that no handler sent, if check allows it. It takes no slot from
// clients: the schedule of switches and the sockets bound the number of such commands. Maintenance,
// audits and shutdowns wait for it.
func (a *admission) admitInternal(c *Command, check func(now int64) error) error {
	a.internalInFlight.Add(1)
	c.holdsSlot, c.internal = true, true
	if err := check(c.createdAt); err != nil {
		a.returnSlot(c)
		return err
	}
	return nil
}

// checkInternal returns nil while internal commands may run, also in maintenance. Load never
// refuses them. After an error their sender keeps them, and the ticker tries again.
func (a *admission) checkInternal(now int64) error {
	switch {
	case a.stopping.Load(), a.life.Err() != nil:
		return ErrStopping
	case a.storeStalled(now):
		return ErrStalled
	case a.paused.Load():
		return ErrPaused
	}
	return nil
}

// checkStartCancel is cancelling without the limits on lag, for switches that fire at a start.
func (a *admission) checkStartCancel(now int64) error {
	if m := a.Maintenance(); m != nil && m.BarsCancels() {
		return ErrMaintenance
	}
	return a.checkInternal(now)
}

// returnSlot returns the slot that a command holds, if any.
func (a *admission) returnSlot(c *Command) {
	if !c.holdsSlot {
		return
	}
	c.holdsSlot = false
	if c.internal {
		a.internalInFlight.Add(-1)
		return
	}
	if c.key == nil {
		a.operatorInFlight.Add(-1)
		if c.kind == event.KindMaintenance {
			a.maintenanceChanges.Add(-1)
		}
		return
	}
	c.account.InFlight.Add(-1)
	a.inFlight.Add(-1)
}
