package actors

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"exchange/actors/audit"
	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
)

// A swapped is a store whose journal is read otherwise than it was written: change changes each
// batch, and before runs before the first. Both may be nil.
type swapped struct {
	persistence.Store
	before func()
	change func(batch []byte) []byte
	reads  atomic.Int64
}

func (s *swapped) Read(ctx context.Context, after uint64, fn func(prev, next uint64,
	batch []byte) error) error {
	s.reads.Add(1)
	if s.before != nil {
		s.before()
	}
	return s.Store.Read(ctx, after, func(prev, next uint64, batch []byte) error {
		if s.change != nil {
			batch = s.change(slices.Clone(batch))
		}
		return fn(prev, next, batch)
	})
}

func (s *swapped) Histories() ([]persistence.HistoryID, error) { return nil, nil }

func (s *swapped) Base(context.Context) (uint64, []byte, error) { return 0, nil, nil }

// rewritten gives each record of a batch to change.
func rewritten(t *testing.T, change func(r *event.Record)) func([]byte) []byte {
	return func(batch []byte) []byte {
		b := must[event.Batch](t)(event.OpenBatch(batch))
		out := event.BeginBatch(nil)
		var r event.Record
		for rest := b.Records; len(rest) > 0; {
			rest = must[[]byte](t)(r.Decode(rest))
			change(&r)
			out = r.Append(out)
		}
		return event.EndBatch(out, b.Epoch, b.Prev, b.Count)
	}
}

// A journal or an archive that cannot be replayed is damage: trying again does not help, and is not
// tried.
func TestAnAuditOfAJournalThatDoesNotReplayIsOfDamagedData(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		store := fresh(t)()
		defer store.Close()
		j := &swapped{Store: store}
		e := start(t, testOptions(j))
		fund(t, e, "ann", map[string]money.Amount{"BTC": 10 * coin})
		auditClean(t, e)
		f := func(what, want string, change func([]byte) []byte) {
			t.Helper()
			for _, archive := range []audit.Archive{nil, &swapped{Store: store, change: change}} {
				j.change = change
				if archive != nil {
					j.change = nil
				}
				j.reads.Store(0)
				report, err := e.Audit(t.Context(), archive, func(uint64, uint64) {})
				if !errors.Is(err, persistence.ErrCorrupt) ||
					!strings.Contains(err.Error(), want) || report != nil {
					t.Errorf("%s: %v", what, err)
				}
				if n := j.reads.Load(); archive == nil && n != 1 || archive != nil && n > 0 {
					t.Errorf("%s: the journal was read %d times", what, n)
				}
			}
		}
		skipped := rewritten(t, func(r *event.Record) {
			if r.Kind == event.KindDeposit {
				r.Deposit.ID++
			}
		})
		f("another deposit", "deposit 2 is not the next after 0", skipped)
		f("a batch of another place", "comes after 0", func(batch []byte) []byte {
			b := must[event.Batch](t)(event.OpenBatch(batch))
			return event.EndBatch(append(event.BeginBatch(nil), b.Records...), b.Epoch, b.Prev+1,
				b.Count)
		})
		f("a flipped bit", "", func(batch []byte) []byte {
			batch[len(batch)/2] ^= 1
			return batch
		})
		j.change = nil
		auditClean(t, e)
		stop(t, e)
	})
}

// A record that fits and says something else is a difference.
func TestAnAuditFindsWhereTheJournalSaysOtherwise(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		store := fresh(t)()
		defer store.Close()
		j := &swapped{Store: store}
		e := start(t, testOptions(j))
		fund(t, e, "ann", map[string]money.Amount{"BTC": 10 * coin})
		j.change = rewritten(t, func(r *event.Record) {
			if r.Kind == event.KindDeposit {
				r.Deposit.Amount++
			}
		})
		report := must[*audit.Report](t)(e.Audit(t.Context(), nil, func(uint64, uint64) {}))
		begin, end := e.meter.Auditing.Times()
		if begin.IsZero() || end.Before(begin) {
			t.Errorf("the audit ran from %v to %v", begin, end)
		}
		if text := strings.Join(report.Differences, "\n"); !strings.Contains(text,
			"account ann, BTC: committed are 10 with 0 reserved, replayed 10.00000001 with 0") {
			t.Errorf("the differences are %s", text)
		}
		j.change = nil
		stop(t, e)
	})
}

// An audit begins again if its snapshot was replaced and the journal after it trimmed. It takes the
// oldest kept snapshot then. If that snapshot is newer than the audited state, the caller must ask
// again.
func TestAnAuditBeginsAgainWhenItsSnapshotWasReplaced(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		store := fresh(t)()
		defer store.Close()
		j := &swapped{Store: store}
		g := newGate(j)
		o := testOptions(g)
		o.Snapshot = committed.SnapshotPolicy{MinRecords: 1, MaxRecords: 1}
		e := start(t, o)
		key := fund(t, e, "ann", map[string]money.Amount{"BTC": 100 * coin})
		nonce := uint64(0)
		snapshot := func() {
			t.Helper()
			eventually(t, "the last snapshot is done", func() (done bool) {
				e.probe(e.work.Fold, func() { done = !committed.Snapshotting(e.committed) })
				return done
			})
			var trims int
			g.set(func() { trims = len(g.trimmed) })
			nonce++
			must[*Command](t)(e.Place(key, nonce,
				&OrderRequest{Pair: e.Pairs()[0], Side: trading.Sell, Price: 100e8, Amount: coin})).
				Free()
			succeeds(t, e.Ask(new(committed.Barrier), nil, 0))
			eventually(t, "a snapshot is taken and the journal trimmed", func() (done bool) {
				g.set(func() { done = len(g.trimmed) > trims })
				return done
			})
		}
		for n := range 3 {
			snapshot()
			snapshot()
			_, at, err := persistence.ReadSnapshot(t.Context(), store, 0)
			succeeds(t, err)
			j.before = func() {
				j.before = nil
				for range n {
					snapshot()
				}
			}
			report, err := e.Audit(t.Context(), nil, func(uint64, uint64) {})
			switch {
			case n == 2:
				if !errors.Is(err, audit.ErrOvertaken) || errors.Is(err, persistence.ErrCorrupt) {
					t.Errorf("both snapshots were replaced: %v", err)
				}
			case err != nil || len(report.Differences) > 0 || report.Sequence != at ||
				report.From != at-uint64(1-n):
				t.Errorf("%d snapshots were replaced, the newest was at %d: %+v, %v", n, at, report,
					err)
			}
		}
		stop(t, e)
	})
}

// An archive goes on where the journal was trimmed while the archive was read.
func TestAnAuditOfAnArchiveGoesOnWhereTheJournalWasTrimmed(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		store := fresh(t)()
		defer store.Close()
		j := &swapped{Store: store}
		e := start(t, testOptions(j))
		key := fund(t, e, "ann", map[string]money.Amount{"BTC": 100 * coin})
		a := &growing{}
		a.grow(t, store)
		must[*Command](t)(e.Place(key, 1, wishOf(e, trading.Sell, 100e8, coin))).Free()
		must[*Command](t)(e.Place(key, 2, wishOf(e, trading.Sell, 100e8, coin))).Free()
		// the snapshot's way: first it goes into the archive, then it is trimmed
		j.before = func() {
			j.before = nil
			a.grow(t, store)
			if err := store.Trim(t.Context(), e.journal.token,
				e.committed.Released()-1); err != nil {
				t.Error(err)
			}
		}
		report := must[*audit.Report](t)(e.Audit(t.Context(), a, func(uint64, uint64) {}))
		if len(report.Differences) > 0 || report.From != 0 || report.Records != report.Sequence {
			t.Errorf("%+v", report)
		}
		stop(t, e)
	})
}

// A growing archive has the first batches of a journal.
type growing struct {
	batches   [][]byte
	histories []persistence.HistoryID
}

func (g *growing) grow(t *testing.T, store persistence.Store) {
	t.Helper()
	g.batches = nil
	err := store.Read(t.Context(), 0, func(_, _ uint64, batch []byte) error {
		g.batches = append(g.batches, slices.Clone(batch))
		return nil
	})
	succeeds(t, err)
}

func (g *growing) Histories() ([]persistence.HistoryID, error) { return g.histories, nil }

func (g *growing) Base(context.Context) (uint64, []byte, error) { return 0, nil, nil }

func (g *growing) Read(_ context.Context, after uint64, fn func(prev, next uint64,
	batch []byte) error) error {
	for _, batch := range g.batches {
		b, err := event.OpenBatch(batch)
		if err != nil {
			return err
		}
		if next := b.Prev + uint64(b.Count); next > after {
			if err := fn(b.Prev, next, batch); err != nil {
				return err
			}
		}
	}
	return nil
}

// A part of an archive that was written under another history is found, though its records fit.
func TestAnAuditFindsAPartOfAnotherHistory(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		store := fresh(t)()
		defer store.Close()
		e := start(t, testOptions(store))
		fund(t, e, "ann", map[string]money.Amount{"BTC": 100 * coin})
		a := &growing{histories: []persistence.HistoryID{persistence.HistoryID(e.history)}}
		a.grow(t, store)
		report := must[*audit.Report](t)(e.Audit(t.Context(), a, func(uint64, uint64) {}))
		if len(report.Differences) > 0 {
			t.Errorf("%+v", report)
		}
		a.histories = append(a.histories, persistence.HistoryID{9})
		_, err := e.Audit(t.Context(), a, func(uint64, uint64) {})
		if !errors.Is(err, persistence.ErrCorrupt) ||
			!strings.Contains(err.Error(), "which no record names") {
			t.Errorf("a part of another history: %v", err)
		}
		stop(t, e)
	})
}
