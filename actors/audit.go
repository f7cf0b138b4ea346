package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"exchange/core/money"
	"exchange/core/state"
	"exchange/persistence"
)

// An AuditReport is what an audit found. Without Differences the books balance.
type AuditReport struct {
	Sequence   uint64 // of the state that was audited
	From       uint64 // where the journal was replayed from: a snapshot, or 0, the very beginning
	Records    uint64 // replayed
	Accounts   int
	OpenOrders int
	Withdraws  int // pending
	// rows of the projections, wallets and nonces, that the store looked at
	Verified    int
	Wallets     int           // in the store, that were compared
	Changed     int           // in the store, that had changed since, and were not
	Rows        int           // of the history, that replayed records gave rise to and were found
	Trimmed     int           // of these rows, that are not kept any more
	Paused      time.Duration // for how long no commands were taken
	Totals      []AuditTotal
	Differences []string // at most maxDifferences; the last one says that there are more
}

// An AuditTotal is one currency over all accounts: Balances = Deposited - Withdrawn.
type AuditTotal struct {
	Code                                     string
	Deposited, Withdrawn, Balances, Reserved money.Balance
}

const maxDifferences = 100

// restPatience bounds the wait, without commands, for what is in flight.
const restPatience = 5 * time.Second

// ErrAuditRunning: there is one audit at a time.
var ErrAuditRunning = &RequestError{"an audit is running already"}

// An Archive has the journal's batches from the first record on, or, begun late, from a state on.
type Archive interface {
	// Base is the image of the state that it begins with, and its sequence; nil and 0: it begins
	// with the first record.
	Base(ctx context.Context) (seq uint64, image []byte, err error)
	// Read gives batches from after on, as persistence.Journal.Read does.
	Read(ctx context.Context, after uint64, fn func(prev, next uint64, batch []byte) error) error
	// Histories are the ids of the histories that its parts were written under.
	Histories() ([]persistence.HistoryID, error)
}

// Audit derives every balance, reserve, open order and pending withdraw anew, from the oldest kept
// snapshot and the journal after it, or from what archive begins with, if it is not nil. It
// compares them with the committed state, the deciding wallets and books, and the projections, all
// at one sequence: wallets, nonces, deposits and withdraws, and all rows that the replayed records
// gave rise to. Commands are refused for the moment that the deciding side is looked at; everything
// else goes on. progress is told how far the replay is, of what.
func (e *Engine) Audit(ctx context.Context, archive Archive,
	progress func(at, of uint64)) (*AuditReport, error) {
	if !e.auditing.CompareAndSwap(false, true) {
		return nil, ErrAuditRunning
	}
	defer e.auditing.Store(false)
	a := &audit{engine: e, report: &AuditReport{}}
	if err := a.atRest(ctx); err != nil {
		return nil, err
	}
	sound, err := a.sound(ctx)
	if err != nil {
		return nil, err
	}
	for _, compare := range []func() error{
		func() error { return a.projections(ctx) },
		func() error { return a.replay(ctx, archive, progress) },
	} {
		// What is damaged has been named; the reads end there.
		if err := compare(); err != nil && (sound || !errors.Is(err, persistence.ErrCorrupt)) {
			return nil, err
		}
	}
	a.totals()
	return a.report, nil
}

// sound lets the store look at everything that the projections hold.
func (a *audit) sound(ctx context.Context) (bool, error) {
	if err := a.barrier(); err != nil {
		return false, err
	}
	before := len(a.report.Differences)
	rows, err := a.engine.opts.Store.Verify(ctx,
		func(place string) { a.differ("damaged: %s", place) })
	if err != nil {
		return false, fmt.Errorf("looking at the rows of the projections: %w", err)
	}
	a.report.Verified = rows
	return len(a.report.Differences) == before, nil
}

// barrier waits until the history is exact for all that is durable.
func (a *audit) barrier() error {
	barrier := NewRead(ReadHistory)
	if err := a.engine.Ask(barrier, nil, 0); err != nil {
		return err
	}
	barrier.Free()
	return nil
}

type audit struct {
	engine *Engine
	report *AuditReport
	image  []byte
	state  *state.State // as the committed state was
	mu     sync.Mutex   // of the report, and of what its rows are compared with
}

// differ notes a difference, once.
func (a *audit) differ(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, text := a.report, fmt.Sprintf(format, args...)
	switch n := len(r.Differences); {
	case slices.Contains(r.Differences, text):
	case n < maxDifferences-1:
		r.Differences = append(r.Differences, text)
	case n == maxDifferences-1:
		r.Differences = append(r.Differences, "there are more")
	}
}

// missing and stored note what is wrong with a row of a list.
func (a *audit) missing(list string, id uint64) { a.differ("%s: %d is missing", list, id) }

func (a *audit) stored(list string, id uint64, row any) {
	a.differ("%s: %d is stored as %+v, the records say otherwise", list, id, row)
}

func (a *audit) accountName(id uint32) string {
	if account := a.state.Account(id); account != nil {
		return account.Name
	}
	return fmt.Sprintf("number %d, which does not exist", id)
}

func (a *audit) pairName(number uint32) string {
	if pair := a.state.Pair(uint16(number)); pair != nil {
		return pair.Name
	}
	return fmt.Sprintf("number %d, which does not exist", number)
}

// atRest compares the deciding side with the committed one while nothing is in flight, and keeps an
// image of that moment.
func (a *audit) atRest(ctx context.Context) error {
	e := a.engine
	begin := time.Now()
	patience, cancel := context.WithTimeout(ctx, restPatience)
	defer cancel()
	e.paused.Store(true)
	err := e.rest(patience)
	if err == nil {
		e.probe(e.fold, func() {
			if difference := e.verify(e.committed.state, true); difference != nil {
				a.differ("%v", difference)
			}
			a.image = e.committed.state.AppendTo(nil)
		})
	}
	e.paused.Store(false)
	a.report.Paused = time.Since(begin)
	if err != nil {
		return err
	}
	if a.state, err = state.Decode(a.image); err != nil {
		return fmt.Errorf("BUG: an image of the state cannot be read: %w", err)
	}
	a.report.Sequence, a.report.Accounts, a.report.Withdraws = a.state.Seq(),
		len(a.state.Accounts()), len(a.state.Withdraws())
	for _, p := range a.state.Pairs() {
		a.report.OpenOrders += p.Book.Len()
	}
	return nil
}

// rest waits until nothing is in flight.
func (e *Engine) rest(ctx context.Context) error {
	err := e.until(ctx, func() bool {
		return e.commandsInFlight() == 0 && e.journal.pending.Load() == 0
	})
	if err != nil && err == ctx.Err() {
		return ErrTimeout
	}
	return err
}

func (a *audit) totals() {
	for i, c := range a.state.Currencies() {
		t := AuditTotal{Code: c.Code, Deposited: c.Deposited, Withdrawn: c.Withdrawn}
		for _, account := range a.state.Accounts() {
			h := account.Wallet.Get(uint16(i + 1))
			t.Balances, t.Reserved = t.Balances.Add(h.Balance), t.Reserved.Add(h.Reserve)
		}
		if t.Withdrawn.Cmp(t.Deposited) > 0 || t.Balances != t.Deposited.Sub(t.Withdrawn) {
			a.differ("%s: all balances are %v, deposits %v - withdraws %v", t.Code, t.Balances,
				t.Deposited, t.Withdrawn)
		}
		a.report.Totals = append(a.report.Totals, t)
	}
}
