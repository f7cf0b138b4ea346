package actors

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/persistence"
)

// An AuditReport is what an audit found. Without Differences the books balance.
type AuditReport struct {
	Sequence    uint64 // of the state that was audited
	From        uint64 // where the journal was replayed from: a snapshot, or 0, the very beginning
	Records     uint64 // replayed
	Accounts    int
	OpenOrders  int
	Withdraws   int           // pending
	Wallets     int           // projections that were compared
	Changed     int           // projections that had changed since, and were not
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

// A JournalReader reads batches from the first record on, as persistence.Journal.Read does: an archive.
type JournalReader func(ctx context.Context, after uint64, fn func(prev, next uint64, batch []byte) error) error

// Audit derives every balance, reserve, open order and pending withdraw anew, from the oldest kept snapshot
// and the journal after it, or from archive, which begins at the first record, if it is not nil. It compares
// them with the committed state, the deciding wallets and books, and the projected wallets, all at one
// sequence. Commands are refused for the moment that the deciding side is looked at; everything else goes
// on. progress is told how far the replay is, of what.
func (e *Engine) Audit(ctx context.Context, archive JournalReader, progress func(at, of uint64)) (*AuditReport, error) {
	if !e.auditing.CompareAndSwap(false, true) {
		return nil, ErrAuditRunning
	}
	defer e.auditing.Store(false)
	a := &audit{engine: e, report: &AuditReport{}}
	if err := a.atRest(ctx); err != nil {
		return nil, err
	}
	if err := a.projections(ctx); err != nil {
		return nil, err
	}
	if err := a.replay(ctx, archive, progress); err != nil {
		return nil, err
	}
	a.totals()
	return a.report, nil
}

type audit struct {
	engine *Engine
	report *AuditReport
	image  []byte
	state  *state.State // as the committed state was
}

func (a *audit) differ(format string, args ...any) {
	r := a.report
	switch n := len(r.Differences); {
	case n < maxDifferences-1:
		r.Differences = append(r.Differences, fmt.Sprintf(format, args...))
	case n == maxDifferences-1:
		r.Differences = append(r.Differences, "there are more")
	}
}

// atRest compares the deciding side with the committed one while nothing is in flight, and keeps an image
// of that moment.
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
	a.report.Sequence, a.report.Accounts, a.report.Withdraws = a.state.Seq(), len(a.state.Accounts()), len(a.state.Withdraws())
	for _, p := range a.state.Pairs() {
		a.report.OpenOrders += p.Book.Len()
	}
	return nil
}

// rest waits until nothing is in flight.
func (e *Engine) rest(ctx context.Context) error {
	t := time.NewTicker(time.Millisecond)
	defer t.Stop()
	for e.inFlight.Load() > 0 || e.journal.pending.Load() > 0 {
		select {
		case <-e.dead:
			return e.failure
		case <-ctx.Done():
			return ErrTimeout
		case <-t.C:
		}
	}
	return nil
}

// projections compares the store's wallets, those that have not changed since.
func (a *audit) projections(ctx context.Context) error {
	barrier := NewRead(ReadHistory)
	if err := a.engine.Ask(barrier, nil, 0); err != nil {
		return err
	}
	barrier.Free()
	seen := make(map[uint32]bool)
	err := a.engine.opts.Store.Wallets(ctx, func(w *persistence.Wallet) bool {
		seen[w.Account] = true
		if w.Seq > a.report.Sequence {
			a.report.Changed++
			return true
		}
		a.report.Wallets++
		a.wallet(w)
		return true
	})
	if err != nil {
		return fmt.Errorf("reading the projected wallets: %w", err)
	}
	for _, account := range a.state.Accounts() {
		if !seen[account.ID] && len(account.Wallet.Holdings()) > 0 {
			a.differ("account %s has no projected wallet", account.Name)
		}
	}
	return nil
}

func (a *audit) wallet(w *persistence.Wallet) {
	account := a.state.Account(w.Account)
	if account == nil || account.Name != w.Name {
		a.differ("there is a projected wallet of account %d %s, which does not exist", w.Account, w.Name)
		return
	}
	projected := map[string]persistence.Holding{}
	for _, h := range w.Holdings {
		projected[h.Currency] = h
	}
	for _, h := range account.Wallet.Holdings() {
		code := a.state.Currencies()[h.Currency-1].Code
		if p := projected[code]; p.Balance != h.Balance || p.Reserve != h.Reserve {
			a.differ("account %s, %s: projected are %v with %v reserved, committed %v with %v", w.Name, code, p.Balance, p.Reserve, h.Balance, h.Reserve)
		}
		delete(projected, code)
	}
	for code, h := range projected {
		if !h.Balance.IsZero() || !h.Reserve.IsZero() {
			a.differ("account %s, %s: projected are %v, committed is nothing", w.Name, code, h.Balance)
		}
	}
}

var errFarEnough = errors.New("the replay is far enough")

// replayTries is how often a replay begins: while it runs the snapshot that it began with may be replaced,
// and the journal after that trimmed.
const replayTries = 3

func (a *audit) replay(ctx context.Context, archive JournalReader, progress func(at, of uint64)) error {
	var err error
	for range replayTries {
		var s *state.State
		if s, err = a.replayed(ctx, archive, progress); err == nil {
			a.compare(s)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return err
}

func (a *audit) replayed(ctx context.Context, archive JournalReader, progress func(at, of uint64)) (*state.State, error) {
	s, r := state.New(), a.report
	r.Records = 0
	if archive == nil {
		var err error
		if s, err = oldestSnapshot(ctx, a.engine.opts.Store, r.Sequence); err != nil {
			return nil, err
		}
	}
	r.From = s.Seq()
	var record event.Record
	var effects state.Effects
	fold := func(prev, next uint64, data []byte) error {
		if s.Seq() == r.Sequence {
			return errFarEnough
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		b, err := event.OpenBatch(data)
		if err == nil && (b.Prev != prev || prev != s.Seq()) {
			err = fmt.Errorf("a batch after sequence %d comes at %d", b.Prev, s.Seq())
		}
		for rest := b.Records; err == nil && len(rest) > 0; r.Records++ {
			if rest, err = record.Decode(rest); err == nil {
				err = s.Apply(&record, &effects)
			}
		}
		progress(s.Seq()-r.From, r.Sequence-r.From)
		return err
	}
	if archive != nil {
		if err := archive(ctx, 0, fold); err != nil && !errors.Is(err, errFarEnough) {
			return nil, fmt.Errorf("replaying the archive: %w", err)
		}
	}
	if err := a.engine.opts.Store.Read(ctx, s.Seq(), fold); err != nil && !errors.Is(err, errFarEnough) {
		return nil, fmt.Errorf("replaying the journal after sequence %d: %w", s.Seq(), err)
	}
	if s.Seq() != r.Sequence {
		return nil, fmt.Errorf("the replay ends at sequence %d instead of %d", s.Seq(), r.Sequence)
	}
	return s, nil
}

// oldestSnapshot is the state of the oldest snapshot that is kept and not above a sequence, an empty one if
// there is none: the very first may have been taken just now, and then the journal is whole.
func oldestSnapshot(ctx context.Context, store persistence.Store, most uint64) (*state.State, error) {
	for back := 1; back >= 0; back-- {
		image, seq, err := loadSnapshot(ctx, store, back)
		if errors.Is(err, persistence.ErrNoSnapshot) || err == nil && seq > most {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading a snapshot: %w", err)
		}
		return state.Decode(image)
	}
	return state.New(), nil
}

// compare says where two states at one sequence differ. The images decide; the rest is to find out where.
func (a *audit) compare(replayed *state.State) {
	if err := replayed.Check(); err != nil {
		a.differ("after the replay: %v", err)
	}
	if bytes.Equal(replayed.AppendTo(nil), a.image) {
		return
	}
	before := len(a.report.Differences)
	for _, account := range a.state.Accounts() {
		other := replayed.Account(account.ID)
		if other == nil {
			a.differ("account %s is not in the replayed state", account.Name)
			continue
		}
		a.holdings(account, other)
		if working, derived := openOf(&account.Open), openOf(&other.Open); fmt.Sprint(working) != fmt.Sprint(derived) {
			a.differ("account %s: open orders are %v, replayed %v", account.Name, working, derived)
		}
	}
	for i, c := range a.state.Currencies() {
		if i >= len(replayed.Currencies()) || replayed.Currencies()[i] != c {
			a.differ("currency %s: %v deposited and %v withdrawn are not what the replay finds", c.Code, c.Deposited, c.Withdrawn)
		}
	}
	if len(a.report.Differences) == before {
		a.differ("the replayed state differs from the committed one, in something else than balances, reserves and open orders")
	}
}

func (a *audit) holdings(account, other *state.Account) {
	for _, h := range account.Wallet.Holdings() {
		if o := other.Wallet.Get(h.Currency); o != h {
			a.differ("account %s, %s: committed are %v with %v reserved, replayed %v with %v", account.Name, a.state.Currencies()[h.Currency-1].Code,
				h.Balance, h.Reserve, o.Balance, o.Reserve)
		}
	}
	for _, o := range other.Wallet.Holdings() {
		if account.Wallet.Get(o.Currency) == (ledger.Holding{Currency: o.Currency}) && o != (ledger.Holding{Currency: o.Currency}) {
			a.differ("account %s, %s: committed is nothing, replayed are %v", account.Name, a.state.Currencies()[o.Currency-1].Code, o.Balance)
		}
	}
}

func (a *audit) totals() {
	for i, c := range a.state.Currencies() {
		t := AuditTotal{Code: c.Code, Deposited: c.Deposited, Withdrawn: c.Withdrawn}
		for _, account := range a.state.Accounts() {
			h := account.Wallet.Get(uint16(i + 1))
			t.Balances, t.Reserved = t.Balances.Add(h.Balance), t.Reserved.Add(h.Reserve)
		}
		if t.Withdrawn.Cmp(t.Deposited) > 0 || t.Balances != t.Deposited.Sub(t.Withdrawn) {
			a.differ("%s: all balances are %v, deposits %v - withdrawals %v", t.Code, t.Balances, t.Deposited, t.Withdrawn)
		}
		a.report.Totals = append(a.report.Totals, t)
	}
}
