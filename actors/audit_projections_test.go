package actors

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"exchange/actors/audit"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
	"exchange/persistence/memory"
)

// trade sells from ann to ben in the first pair.
func trade(t *testing.T, e *Engine, nonce uint64) {
	t.Helper()
	for side, name := range map[trading.Side]string{trading.Sell: "ann", trading.Buy: "ben"} {
		c := must[*Command](t)(e.Place(e.Key([]byte("key-of-"+name)), nonce,
			&OrderRequest{Pair: e.Pairs()[0], Side: side, Price: 100e8, Amount: coin}))
		if c.Outcome() != Accepted {
			t.Fatalf("%+v", c.Record())
		}
		c.Free()
	}
}

// history makes rows of every kind in an engine: trades of two accounts in two pairs, cancels,
// deposits, withdrawals with several ends, and operators' actions.
func history(t *testing.T, e *Engine) {
	t.Helper()
	nonce := uint64(0)
	next := func() uint64 { nonce++; return nonce }
	place := func(name string, pair int, side trading.Side) uint64 {
		t.Helper()
		c := must[*Command](t)(e.Place(e.Key([]byte("key-of-"+name)), next(),
			&OrderRequest{Pair: e.Pairs()[pair], Side: side, Price: 100e8, Amount: coin}))
		defer c.Free()
		if c.Outcome() != Accepted {
			t.Fatalf("%+v", c.Record())
		}
		return c.Record().Order.ID
	}
	for _, name := range []string{"ann", "ben"} {
		must[Admin](t)(e.CreateAccount("ops", name, name+"@example.org"))
		must[Admin](t)(e.CreateKey("ops", name, "key-of-"+name, "secret", event.AllPermissions,
			nil))
		for i, currency := range []string{"BTC", "USD", "EUR", "BTC"} {
			must[Admin](t)(e.Deposit("ops", name, currency, 10_000*coin, fmt.Sprint(name, i)))
		}
	}
	for i := range 12 {
		place("ann", i%2, trading.Sell)
		place("ben", i%2, trading.Buy)
	}
	ann := e.Key([]byte("key-of-ann"))
	for i := range 3 {
		must[*Command](t)(e.Cancel(ann, next(), place("ann", 0, trading.Sell))).Free()
		withdrawal, to := uint64(i+1), uint8(event.WithdrawalApproved)
		must[*Command](t)(e.Do(NewWithdrawal(ann, next(), 1, coin, "somewhere"))).Free()
		must[*Command](t)(e.Do(NewConfirmation(ann, next(), withdrawal, codeOf(t, e,
			withdrawal)))).Free()
		if i == 1 {
			to = event.WithdrawalRefused
		}
		must[*Command](t)(e.SetWithdrawalStatus("ops", withdrawal, to, "")).Free()
	}
}

// A backup contains the trades in the list of all trades. An account's older trades are gone after
// a restore, which is no difference.
func TestAnAuditAfterARestoreOfFewerTradesIsClean(t *testing.T) {
	for kind, keeping := range storeOpeners {
		t.Run(kind, func(t *testing.T) {
			keep := persistence.Retention{Trades: 2}
			store := keeping(t)(keep)
			defer store.Close()
			o := testOptions(store)
			o.Retention = keep
			e := start(t, o)
			old := fund(t, e, "old", map[string]money.Amount{"BTC": coin, "EUR": 100 * coin})
			for nonce, side := range []trading.Side{trading.Sell, trading.Buy} {
				o := &OrderRequest{Pair: e.Pairs()[1], Side: side, Price: 100e8, Amount: coin}
				must[*Command](t)(e.Place(old, uint64(nonce+1), o)).Free()
			}
			for _, name := range []string{"ann", "ben"} {
				fund(t, e, name, map[string]money.Amount{"BTC": 10 * coin, "USD": 1000 * coin})
			}
			for nonce := range uint64(3) {
				trade(t, e, nonce+1)
			}
			auditClean(t, e)
			b, _ := backUp(t, e)
			target := keeping(t)(keep)
			defer target.Close()
			restoreInto(t, target, b, e)
			o.Store = target
			restored := start(t, o)
			auditClean(t, restored)
			trade(t, restored, 100)
			auditClean(t, restored)
			stop(t, restored)
			stop(t, e)
		})
	}
}

// A storeOpener opens stores in one place, each with its own retention.
type storeOpener = func(persistence.Retention) persistence.Store

// storeOpeners make new places in kinds of stores. A proof adds others to that in memory.
var storeOpeners = map[string]func(*testing.T) storeOpener{"memory": keptInMemory}

func keptInMemory(*testing.T) storeOpener {
	disk := memory.NewDisk()
	return func(keep persistence.Retention) persistence.Store { return memory.Open(disk, keep) }
}

// No differences: rows trimmed during an audit's lookups, rows trimmed under an earlier, lower
// retention, and candles that change meanwhile.
func TestAuditsUnderLoadOfAHistoryThatIsTrimmedAreClean(t *testing.T) {
	for kind, keeping := range storeOpeners {
		t.Run(kind, func(t *testing.T) {
			a := loadedAudits{t: t, open: keeping(t)}
			for run, keep := range []persistence.Retention{{}, {Trades: 40, Orders: 15, Candles: 1},
				{Trades: 25, Orders: 300, Candles: 2}, {Trades: 1000, Orders: 1000}, {}} {
				a.run(run, keep)
			}
		})
	}
}

// loadedAudits audits an engine while accounts trade at random.
type loadedAudits struct {
	t     *testing.T
	open  func(persistence.Retention) persistence.Store
	keys  []string
	nonce uint64
}

func (a *loadedAudits) run(run int, keep persistence.Retention) {
	t, store := a.t, a.open(keep)
	o := testOptions(store)
	o.Retention, o.Tests.rowRefs, o.Tests.StepRows = keep, 50+run*200, 50
	if run > 0 {
		o.Snapshot = committed.SnapshotPolicy{MinRecords: 200, MaxRecords: 200}
	}
	e := start(t, o)
	if run == 0 {
		for i := range 4 {
			a.keys = append(a.keys, fund(t, e, fmt.Sprint("account-", i), map[string]money.Amount{
				"BTC": 50 * coin, "USD": 500 * coin, "EUR": 500 * coin}).Public)
		}
	}
	auditClean(t, e)
	load, ended := &allowance{engine: e}, make(chan struct{})
	load.more.L = &load.mu
	var loaded []*directory.Key
	for _, public := range a.keys {
		loaded = append(loaded, e.Key([]byte(public)))
	}
	go func() {
		tradeAtRandom(t, e, loaded, a.nonce, load.wait)
		close(ended)
	}()
	trimmed, rows := a.auditUnder(load, keep)
	load.end()
	<-ended
	auditClean(t, e)
	if trimmed > 0 && run == 0 {
		t.Errorf("run %d, keeping %+v: %d rows were found, %d were trimmed", run, keep, rows,
			trimmed)
	}
	a.nonce += 1_000_000
	if run%2 == 0 {
		e.Abandon()
	} else {
		stop(t, e)
	}
	succeeds(t, store.Close())
}

// auditUnder audits until the load has made 300 records and an audit has compared rows. With
// trimmed candles, an audit must also have met trimmed rows.
func (a *loadedAudits) auditUnder(load *allowance, keep persistence.Retention) (trimmed, rows int) {
	e, begun := load.engine, load.engine.committed.Released()
	goesOn := func() bool {
		return e.committed.Released() < begun+300 || rows == 0 ||
			trimmed == 0 && keep.Candles > 0
	}
	for goesOn() && !a.t.Failed() {
		// The load makes fewer records than lie between two snapshots, so even on a slow machine
		// most audits are not overtaken.
		load.allow(e.committed.Released() + 150)
		report, err := e.Audit(a.t.Context(), nil, func(uint64, uint64) {})
		if errors.Is(err, audit.ErrOvertaken) {
			continue
		}
		if err != nil || len(report.Differences) > 0 {
			a.t.Errorf("keeping %+v: %+v, %v", keep, report, err)
			break
		}
		trimmed, rows = trimmed+report.Trimmed, rows+report.Rows
	}
	return trimmed, rows
}

// An allowance bounds the records of a load.
type allowance struct {
	engine *Engine
	mu     sync.Mutex
	more   sync.Cond
	most   uint64 // sequence up to which the load may make records
	over   bool
}

// wait blocks before each command until the load may send it. It returns false when the load is
// over.
func (l *allowance) wait() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.engine.committed.Released() >= l.most && !l.over {
		l.more.Wait()
	}
	return !l.over
}

func (l *allowance) allow(most uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most = most
	l.more.Broadcast()
}

func (l *allowance) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.more.Broadcast()
}

// A rangesRead is a store that records the ranges of deposits that an audit reads.
type rangesRead struct {
	persistence.Store
	mu     sync.Mutex
	before map[uint64]bool // ids; guarded by mu
	scans  int             // of the index
}

func (s *rangesRead) Deposits(ctx context.Context, q persistence.DepositQuery,
	fn func(*persistence.Deposit) bool) error {
	s.mu.Lock()
	s.before[q.Before] = true
	s.mu.Unlock()
	return s.Store.Deposits(ctx, q, fn)
}

func (s *rangesRead) References(ctx context.Context, fn func(*persistence.Deposit) bool) error {
	s.scans++
	return s.Store.References(ctx, fn)
}

// An audit holds the deposits of one range of ids in memory, and not all deposits ever made.
func TestAnAuditComparesDepositsRangeByRange(t *testing.T) {
	for atOnce, want := range map[int][]uint64{
		1: {2, 3, 4, 5, 6, 7, 8, 9}, 3: {4, 7, 9}, 4: {5, 9}, 7: {8, 9}, 8: {9}, 100: {9}, 0: {9},
	} {
		store := &rangesRead{Store: keptInMemory(t)(persistence.Retention{}),
			before: map[uint64]bool{}}
		o := testOptions(store)
		o.Tests.deposits = atOnce
		e := start(t, o)
		history(t, e) // with 8 deposits
		stop(t, e)
		e = start(t, o) // the records are in a snapshot, so no row is looked up by its id
		store.before, store.scans = map[uint64]bool{}, 0
		if report := auditClean(t, e); report.Records > 0 {
			t.Errorf("%+v", report)
		}
		if got := slices.Sorted(maps.Keys(store.before)); !slices.Equal(got, want) ||
			store.scans != len(want) {
			t.Errorf("%d at once: the rows below %v are read, and the index %d times", atOnce,
				got, store.scans)
		}
		stop(t, e)
		succeeds(t, store.Close())
	}
}
