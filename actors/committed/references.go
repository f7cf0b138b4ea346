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

// A Lookup asks for the deposit that a reference belongs to, or whether a mail is in the outbox. It
// is part of its asker's message, which comes back with the answer.
//
// The committed side has only the deposits that the store may not have yet. A lookup that finds
// nothing there goes on to the store. The order matters: a deposit that leaves the memory between
// the two looks is in the store.
type Lookup struct {
	Reference string // of a deposit
	Mail      uint64 // 0: the question is for a deposit or an account
	Account   uint32 // 0: the question is for a deposit or a mail
	By        Finder // gets the answer

	ID        uint64 // of the deposit or the mail; 0: there is none
	Email     string // of the account; "": it has none
	HeldUs    int64  // until when its withdrawals were held by its last change; 0: there was none
	Deposit   persistence.Deposit
	watermark uint64 // up to there the committed side leaves deposits to the store
	Asked     bool   // the store was asked, too
	Err       error  // the store did not say
}

// A Looker is a message that a Lookup is part of.
type Looker interface{ lookup() *Lookup }

func (l *Lookup) lookup() *Lookup { return l }

// A Finder gives lookups back to their asker.
type Finder interface{ Found(l Looker) }

// answer fills the lookup from the committed side.
func (l *Lookup) answer(c *Side) {
	if l.Account != 0 {
		a := c.state.Account(l.Account)
		l.Email, l.HeldUs = a.Email, a.HeldUs()
	} else if l.Mail == 0 {
		l.Deposit, l.watermark = c.references[l.Reference], c.watermark
		l.ID = l.Deposit.ID
	} else if c.state.Mail(l.Mail) != nil {
		l.ID = l.Mail
	}
}

// An Index asks the store for deposits by their references on behalf of the registry, which must
// not wait. At most referenceLooks go on at once, each in a goroutine. The others stand in a line,
// which the limit of commands in flight bounds. Each lookup goes back to the registry, in any
// order, with an error if the store has not answered by the deadline.
type Index struct {
	store    persistence.History
	patience time.Duration // for each lookup, its time in line included
	log      *slog.Logger
	meter    *metrics.Engine
	out      Finder

	mu     sync.Mutex
	line   mailbox.FIFO[lookupInLine] // guarded by mu
	asking int                        // guarded by mu
}

// NewIndex makes an index that waits patience for each lookup, its time in line included.
func NewIndex(store persistence.History, patience time.Duration, log *slog.Logger,
	meter *metrics.Engine, out Finder) *Index {
	return &Index{store: watched{store, meter}, patience: patience, log: log, meter: meter,
		out: out}
}

// referenceLooks is how many goroutines of an index are at the store at once.
const referenceLooks = 8

type lookupInLine struct {
	looker   Looker
	deadline time.Time
}

// Ask begins a look into the store. It does not wait.
func (x *Index) Ask(l Looker) {
	next := lookupInLine{l, time.Now().Add(x.patience)}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.asking == referenceLooks {
		x.line.Push(next)
		return
	}
	x.asking++
	go x.run(next)
}

// run looks, and then takes the next lookup of the line until the line is empty.
func (x *Index) run(next lookupInLine) {
	for more := true; more; {
		x.look(next.looker.lookup(), next.deadline)
		x.out.Found(next.looker)
		x.mu.Lock()
		if more = x.line.Len() > 0; more {
			next = x.line.Pop()
		} else {
			x.asking--
		}
		x.mu.Unlock()
	}
}

// look asks the store once. Only ErrNotFound says that there is no such deposit; any other error
// leaves it open.
func (x *Index) look(l *Lookup, deadline time.Time) {
	l.Asked = true
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	err := ctx.Err()
	if err == nil {
		l.Deposit, err = x.store.Reference(ctx, l.watermark, l.Reference)
	}
	switch {
	case err == nil:
		l.ID = l.Deposit.ID
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
