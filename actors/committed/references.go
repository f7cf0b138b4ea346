package committed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"exchange/actors/mailbox"
	"exchange/actors/metrics"
	"exchange/persistence"
)

// ErrUnanswered: nothing was done, because the store did not report whether a deposit's reference
// was used before.
var ErrUnanswered = errors.New(
	"the store did not say whether the reference was used before: nothing was done, try again")

// ErrIndexDamaged: nothing was done, because the store's index of references is damaged. This
// persists until a backup is restored.
var ErrIndexDamaged = errors.New(
	"the index of references is damaged: nothing was done, and trying again does not help; " +
		"run exchange audit, restore a backup")

// A Lookup asks for the deposit that a reference belongs to.
//
// The committed side holds only the deposits that the store may not have yet. A lookup that finds
// nothing there continues in the store. The order matters: a deposit that leaves memory between the
// two lookups is in the store.
type Lookup struct {
	reference string
	watermark uint64 // deposits up to it are in the store

	Deposit persistence.Deposit // ID 0: none
	Err     error               // the store did not answer
}

// LookUp looks up the deposit of a reference in memory, on the actor's turn.
func (c *Side) LookUp(reference string) *Lookup {
	return &Lookup{reference: reference, watermark: c.watermark, Deposit: c.references[reference]}
}

// An Index looks up deposits in the store by reference for the registry, which must not wait. At
// most referenceLookups run at once, each in a goroutine. The others are queued; the limit of
// commands in flight bounds the queue. They finish in any order, with an error if the store has not
// answered by the deadline.
type Index struct {
	store    persistence.History
	patience time.Duration // for each lookup, including its time in the queue
	log      *slog.Logger
	meter    *metrics.Engine

	mu     sync.Mutex
	queue  mailbox.FIFO[queuedLookup] // guarded by mu
	active int                        // guarded by mu
}

// NewIndex makes an index that waits patience for each lookup, including its time in the queue.
func NewIndex(store persistence.History, patience time.Duration, log *slog.Logger,
	meter *metrics.Engine) *Index {
	return &Index{store: countingHistory{store, meter}, patience: patience, log: log, meter: meter}
}

// referenceLookups is the number of concurrent lookups of an index.
const referenceLookups = 8

type queuedLookup struct {
	*Lookup
	deadline time.Time
	over     func()
}

// Start begins a lookup in the store, and calls over after it. It does not wait.
func (x *Index) Start(l *Lookup, over func()) {
	next := queuedLookup{l, time.Now().Add(x.patience), over}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.active == referenceLookups {
		x.queue.Push(next)
		return
	}
	x.active++
	go x.run(next)
}

// run runs lookups until the queue is empty.
func (x *Index) run(next queuedLookup) {
	for more := true; more; {
		x.query(next.Lookup, next.deadline)
		next.over()
		x.mu.Lock()
		if more = x.queue.Len() > 0; more {
			next = x.queue.Pop()
		} else {
			x.active--
		}
		x.mu.Unlock()
	}
}

// query asks the store once. Only ErrNotFound means that there is no such deposit.
func (x *Index) query(l *Lookup, deadline time.Time) {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	err := ctx.Err()
	if err == nil {
		l.Deposit, err = x.store.Reference(ctx, l.watermark, l.reference)
	}
	switch {
	case err == nil:
	case errors.Is(err, persistence.ErrNotFound):
	case errors.Is(err, persistence.ErrVersion):
		x.meter.Failures[metrics.OperationReference].Add(1)
		x.log.Error("a deposit was not made, for its reference could not be looked for", "error",
			err)
		l.Err = fmt.Errorf("nothing was done: %w", err)
	case errors.Is(err, persistence.ErrCorrupt):
		x.meter.Failures[metrics.OperationReference].Add(1)
		x.log.Error(
			"a deposit was not made, for the index of references is damaged: run exchange audit, "+
				"restore a backup", "error", err)
		l.Err = fmt.Errorf("%w (%w)", ErrIndexDamaged, err)
	default:
		x.meter.Failures[metrics.OperationReference].Add(1)
		x.log.Warn("a deposit was not made, for its reference could not be looked for", "error",
			err)
		l.Err = fmt.Errorf("%w (%w)", ErrUnanswered, err)
	}
}
