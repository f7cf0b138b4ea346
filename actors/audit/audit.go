package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"exchange/actors/seal"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/persistence"
)

// A Report is the result of an audit. Without Differences the books balance.
type Report struct {
	Sequence    uint64 // of the audited state
	From        uint64 // sequence at which the replay began: a snapshot's, or 0
	Records     uint64 // replayed records
	Accounts    int
	OpenOrders  int
	Withdrawals int           // pending withdrawals
	Wallets     int           // compared stored wallets
	Changed     int           // stored wallets not compared, because they changed since
	Rows        int           // rows of replayed records found in the history
	Trimmed     int           // rows of replayed records no longer in the history
	Paused      time.Duration // time without commands; filled in by the caller
	Totals      []Total
	Differences []string // at most maxDifferences; the last one reports that there are more
}

// A Total is one currency over all accounts: Balances = Deposited - Withdrawn - Adjusted.
//
//tidy:keep a Report has it
type Total struct {
	Code                           string
	Deposited, Withdrawn, Adjusted money.Balance
	Balances, Reserved             money.Balance
}

const maxDifferences = 100

// A Store is the reading side of a persistence.Store.
//
//tidy:keep Stored takes it
type Store interface {
	persistence.Images
	persistence.History
	Read(ctx context.Context, after uint64, fn func(prev, next uint64, batch []byte) error) error
	Watermark(ctx context.Context) (uint64, error)
	Wallets(ctx context.Context, fn func(*persistence.Wallet) bool) error
	Nonces(ctx context.Context, fn func(key string, nonce uint64)) error
	Verify(ctx context.Context, wrong func(place string)) (rows int, err error)
}

// An Archive holds the journal's batches from the first record on, or, begun late, from a state on.
type Archive interface {
	// Base returns the image of the archive's first state, and its sequence. It returns nil and 0
	// if the archive begins with the first record.
	Base(ctx context.Context) (seq uint64, image []byte, err error)
	// Read passes the batches from after on to fn, as persistence.Journal.Read does.
	Read(ctx context.Context, after uint64, fn func(prev, next uint64, batch []byte) error) error
	// Histories returns the history ids of the archive's parts.
	Histories() ([]persistence.HistoryID, error)
}

// A Target is a store to audit, with one state folded from it.
type Target struct {
	Store     Store
	Retention persistence.Retention // the store's
	Image     []byte                // of the audited state
	// Earlier is the last sequence of earlier runs. Those may have kept fewer rows than Retention,
	// or none where a backup was restored.
	Earlier uint64
	Sealer  *seal.Sealer // opens the seals of API keys; nil: no seal is opened
	Present Present
	Found   error // differences found by the caller; nil: none

	RowsAtOnce     int // rows gathered per comparison; 0: rowsAtOnce
	DepositsAtOnce int // deposits compared per range; 0: depositsAtOnce
}

// A Present describes a store's progress since the image of its Target was taken.
//
//tidy:keep a Target has it
type Present interface {
	// Written returns once the projections hold everything durable by now.
	Written() error
	// Newest returns the ids of the newest trade of each pair, by the pair's number-1, and of the
	// newest deposit.
	Newest() (trades []uint64, deposit uint64, err error)
}

// Run derives every balance, reserve, open order and pending withdrawal again. It starts from the
// oldest kept snapshot, or from the archive's beginning if archive is not nil, and replays the
// journal up to the target's state. It compares the result with that state and with the
// projections: wallets, nonces, deposits, withdrawals, and all rows of the replayed records. Run
// reports the number of replayed records, and their total, to progress.
func Run(ctx context.Context, target *Target, archive Archive, progress func(at, of uint64)) (
	*Report, error) {
	a, err := newAudit(target)
	if err != nil {
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
		// The store has already reported the damaged places. A read stops at the first of them.
		if err := compare(); err != nil && (sound || !errors.Is(err, persistence.ErrCorrupt)) {
			return nil, err
		}
	}
	a.totals()
	return a.report, nil
}

type audit struct {
	target *Target
	report *Report
	state  *state.State // decoded from the target's image
	mu     sync.Mutex   // guards report, and the data compared with its rows
}

// newAudit decodes the audited state.
func newAudit(target *Target) (*audit, error) {
	s, err := state.Decode(target.Image)
	if err != nil {
		return nil, fmt.Errorf("BUG: an image of the state cannot be read: %w", err)
	}
	a := &audit{target: target, state: s, report: &Report{Sequence: s.Seq(),
		Accounts: len(s.Accounts()), Withdrawals: len(s.Withdrawals())}}
	for _, p := range s.Pairs() {
		a.report.OpenOrders += p.OpenOrders()
	}
	if target.Found != nil {
		a.differ("%v", target.Found)
	}
	return a, nil
}

// sound reports whether the store finds the projections undamaged.
func (a *audit) sound(ctx context.Context) (bool, error) {
	if err := a.target.Present.Written(); err != nil {
		return false, err
	}
	before := len(a.report.Differences)
	_, err := a.target.Store.Verify(ctx,
		func(place string) { a.differ("damaged: %s", place) })
	if err != nil {
		return false, fmt.Errorf("looking at the rows of the projections: %w", err)
	}
	return len(a.report.Differences) == before, nil
}

// differ adds a difference to the report, once.
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

// missing adds the difference that a list lacks a row.
func (a *audit) missing(list string, id uint64) { a.differ("%s: %d is missing", list, id) }

// stored adds the difference that a row of a list does not match its record.
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

// totals compares each currency's balances with its deposits, withdrawals and adjustments.
func (a *audit) totals() {
	for i, c := range a.state.Currencies() {
		t := Total{Code: c.Code, Deposited: c.Deposited, Withdrawn: c.Withdrawn,
			Adjusted: c.Adjusted}
		for _, account := range a.state.Accounts() {
			h := account.Wallet.Get(uint16(i + 1))
			t.Balances, t.Reserved = t.Balances.Add(h.Balance), t.Reserved.Add(h.Reserve)
		}
		if left := t.Withdrawn.Add(t.Adjusted); left.Cmp(t.Deposited) > 0 ||
			t.Balances != t.Deposited.Sub(left) {
			a.differ("%s: all balances are %v, deposits %v - withdrawals %v - adjustments %v",
				t.Code, t.Balances, t.Deposited, t.Withdrawn, t.Adjusted)
		}
		a.report.Totals = append(a.report.Totals, t)
	}
}
