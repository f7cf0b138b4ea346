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

// ErrUnanswered: nothing was done, because the store did not say whether a deposit's reference was
// used before.
var ErrUnanswered = errors.New(
	"the store did not say whether the reference was used before: nothing was done, try again")

// ErrIndexDamaged: nothing was done, because the store's index cannot say whether a deposit's
// reference was used before. It stays so until a backup is restored.
var ErrIndexDamaged = errors.New(
	"the index of references is damaged: nothing was done, and trying again does not help; " +
		"run exchange audit, restore a backup")

// A Lookup asks for the deposit that a reference belongs to.
//
// The committed side has only the deposits that the store may not have yet. A lookup that finds
// nothing there goes on to the store. The order matters: a deposit that leaves the memory between
// the two looks is in the store.
type Lookup struct {
	reference string
	watermark uint64 // up to there the committed side leaves deposits to the store

	Deposit persistence.Deposit // its ID is 0: there is none
	Err     error               // the store did not say
}

// LookUp looks for the deposit of a reference in memory, on the actor's turn.
func (c *Side) LookUp(reference string) *Lookup {
	return &Lookup{reference: reference, watermark: c.watermark, Deposit: c.references[reference]}
}

// An Index asks the store for deposits by their references on behalf of the registry, which must
// not wait. At most referenceLooks go on at once, each in a goroutine. The others stand in a line,
// which the limit of commands in flight bounds. They come to their end in any order, with an error
// if the store has not answered by the deadline.
type Index struct {
	store    persistence.History
	patience time.Duration // for each lookup, its time in line included
	log      *slog.Logger
	meter    *metrics.Engine

	mu     sync.Mutex
	queue  mailbox.FIFO[queuedLookup] // guarded by mu
	active int                        // guarded by mu
}

// NewIndex makes an index that waits patience for each lookup, its time in line included.
func NewIndex(store persistence.History, patience time.Duration, log *slog.Logger,
	meter *metrics.Engine) *Index {
	return &Index{store: countingHistory{store, meter}, patience: patience, log: log, meter: meter}
}

// referenceLookups is how many goroutines of an index are at the store at once.
const referenceLookups = 8

type queuedLookup struct {
	*Lookup
	deadline time.Time
	over     func()
}

// Start begins a look into the store, and calls over behind it. It does not wait.
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

// run looks, and then takes the next lookup of the line until the line is empty.
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

// query asks the store once. Only ErrNotFound says that there is no such deposit; any other error
// leaves it open.
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
