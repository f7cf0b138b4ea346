package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"exchange/actors/metrics"
	"exchange/persistence"
)

// A referenceIndex asks the store for deposits by their references, for the registry, which must
// not wait. At most referenceLooks go on at once, each in a goroutine; the others stand in line,
// which the limit of commands in flight bounds. Each lookup goes back to the registry, in any
// order, with an error if the store has not said by its deadline.
type referenceIndex struct {
	store    persistence.History
	patience time.Duration // for each lookup, its time in line included
	log      *slog.Logger
	meter    *metrics.Engine
	out      interface{ found(l *lookup) } // gives a lookup back to the registry

	mu     sync.Mutex
	line   []lookupInLine // guarded by mu
	asking int            // guarded by mu
}

// referenceLooks is how many goroutines of an index are at the store at once.
const referenceLooks = 8

type lookupInLine struct {
	lookup   *lookup
	deadline time.Time
}

// ask begins a look into the store. It does not wait.
func (x *referenceIndex) ask(l *lookup) {
	next := lookupInLine{l, time.Now().Add(x.patience)}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.asking == referenceLooks {
		x.line = append(x.line, next)
		return
	}
	x.asking++
	go x.run(next)
}

// run looks, and goes on with the line until it is empty.
func (x *referenceIndex) run(next lookupInLine) {
	for more := true; more; {
		x.look(next.lookup, next.deadline)
		x.out.found(next.lookup)
		x.mu.Lock()
		if more = len(x.line) > 0; more {
			next = x.line[0]
			x.line[0] = lookupInLine{}
			x.line = x.line[1:]
		} else {
			x.line = nil
			x.asking--
		}
		x.mu.Unlock()
	}
}

// look asks the store once. Only a store that says so knows that there is no such deposit: any
// other error leaves it open.
func (x *referenceIndex) look(l *lookup, deadline time.Time) {
	l.asked = true
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	err := ctx.Err()
	if err == nil {
		l.deposit, err = x.store.Reference(ctx, l.watermark, l.command.admin.Reference)
	}
	switch {
	case err == nil:
		l.id = l.deposit.ID
	case errors.Is(err, persistence.ErrNotFound):
	case errors.Is(err, persistence.ErrCorrupt):
		x.meter.Failures[metrics.OperationReference].Add(1)
		x.log.Error(
			"a deposit was not made, for the index of references is damaged: run exchange audit, "+
				"restore a backup", "error", err)
		l.err = fmt.Errorf("%w (%w)", ErrIndexDamaged, err)
	default:
		x.meter.Failures[metrics.OperationReference].Add(1)
		x.log.Warn("a deposit was not made, for its reference could not be looked for", "error",
			err)
		l.err = fmt.Errorf("%w (%w)", ErrUnanswered, err)
	}
}
