package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"exchange/actors/committed"
	"exchange/actors/metrics"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/persistence"
	"exchange/persistence/memory"
)

// deposit deposits BTC to ann, for begin and ends.
func (g *gated) deposit(reference string, amount money.Amount) func() (*Command, error) {
	return func() (*Command, error) {
		_, err := g.e.Deposit("test", "ann", "BTC", amount, reference)
		return nil, err
	}
}

func (g *gated) projected() {
	g.t.Helper()
	succeeds(g.t, g.e.Ask(new(committed.Barrier), nil, 0))
}

// During the lookup of a reference only a deposit with the same one waits.
func TestTheRegistryDoesNotWaitForTheStoresAnswer(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		g.set(func() { g.holdLookups = true })
		first := g.begin(g.deposit("one", coin))
		eventually(t, "the store is asked", func() bool { return g.lookups() == 1 })
		second := g.begin(g.deposit("one", coin))
		third := g.begin(g.deposit("one", 2*coin))
		other := g.begin(g.deposit("other", coin))
		eventually(t, "the store is asked for the other, too",
			func() bool { return g.lookups() == 2 })
		must[Admin](t)(g.e.CreateAccount("test", "ben", ""))
		g.ends("an order", g.placing(g.sell(coin)), accepted)
		g.ends("a wrong deposit", g.deposit("", coin), "a reference has 1 to 128 bytes")
		eventually(t, "all are in flight", func() bool { return g.e.operatorInFlight.Load() == 4 })
		if n := g.lookups(); n != 2 {
			t.Errorf("the store is asked %d times", n)
		}
		g.set(func() { g.holdLookups = false })
		// Two deposits with one reference come at once. Either may be first, so the test accepts
		// either amount.
		got := []string{<-first, <-second, <-third}
		refused := slices.IndexFunc(got,
			func(s string) bool {
				return strings.Contains(s,
					"which is another one: 1 BTC to ann")
			})
		if n := slices.Index(got, accepted); n != 0 || refused != 2 || got[1] != accepted ||
			<-other != accepted {
			t.Errorf("they end as %q", got)
		}
		if balance := g.funds(1, 1); balance != "12/1" {
			t.Errorf("ann has %s, of 10 and two deposits of 1", balance)
		}
	})
}

// With no answer from the store about a reference nothing is done: no record, no id.
func TestADepositIsNotMadeWhileTheStoreDoesNotAnswer(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		before := g.e.committed.Released()
		failures := g.e.meter.Failures[metrics.OperationReference].Load()
		for i, err := range []error{errors.New("away"), persistence.ErrGap, persistence.ErrCorrupt,
			context.DeadlineExceeded} {
			g.set(func() { g.lookupErr = err })
			want, damaged := committed.ErrUnanswered, uint64(0)
			if errors.Is(err, persistence.ErrCorrupt) {
				want, damaged = committed.ErrIndexDamaged, 1
			}
			before := g.e.meter.Damaged[metrics.ListReferences].Load()
			_, got := g.e.Deposit("test", "ann", "BTC", coin, "one")
			if !errors.Is(got, want) || !errors.Is(got, err) {
				t.Errorf("%v: %v", err, got)
			}
			if n := g.e.meter.Damaged[metrics.ListReferences].Load() - before; n != damaged {
				t.Errorf("%v: %d damaged entries are counted", err, n)
			}
			if n := g.e.meter.Failures[metrics.OperationReference].Load() - failures; n !=
				uint64(i+1) {
				t.Errorf("%d failures are counted", n)
			}
		}
		if at := g.e.committed.Released(); at != before {
			t.Errorf("%d records were made", at-before)
		}
		g.set(func() { g.lookupErr = nil })
		if made := must[Admin](t)(g.e.Deposit("test", "ann", "BTC", coin, "one")); made.Repeated ||
			made.Deposit != 3 {
			t.Errorf("%+v", made)
		}
	})
}

// A store that has lost projections lags its deposits. A lost deposit is found neither in memory
// nor there, so the answer of such a store does not count.
func TestAStoreThatHasLostItsProjectionsMakesNoDeposit(t *testing.T) {
	disk := memory.NewDisk()
	g := newGated(t, func(testing.TB) place {
		return func() persistence.Store { return memory.Open(disk, persistence.Retention{}) }
	}, nil)
	must[Admin](t)(g.e.Deposit("test", "ann", "BTC", coin, "one"))
	g.projected()
	disk.Crash(1<<20, 0) // with the journal, and without unsynced projections
	if _, err := g.e.Deposit("test", "ann", "BTC", coin,
		"one"); !errors.Is(err, committed.ErrUnanswered) ||
		!errors.Is(err, persistence.ErrGap) {
		t.Error(err)
	}
	g.e.Abandon()
}

// Of revoked keys an engine keeps only their names: in snapshots, in wallets and in the directory.
// Of deposits it keeps nothing.
func TestRevokedKeysAndDepositsDoNotGrowAnEngine(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		const n = 50
		g := newGated(t, fresh, nil)
		image := func() int {
			return len(must[[]byte](t)(g.e.Image(t.Context())))
		}
		before := image()
		for i := range n {
			g.useAndRevokeKey(i)
			must[Admin](t)(g.e.Deposit("test", "ann", "USD", coin,
				fmt.Sprint(strings.Repeat("r", 100), i)))
		}
		g.projected()
		if grown, most := image()-before, n*(len(manyKeys(0))+4)+64; grown > most {
			t.Errorf("%d revoked keys and deposits grow the image by %d bytes, more than %d", n,
				grown, most)
		}
		g.hasOnlyNamesOfKeys("at first", n)
		stop(t, g.e)
		g.close()
		g.again()
		g.hasOnlyNamesOfKeys("after a stop", n)
		g.crash()
		g.again()
		g.hasOnlyNamesOfKeys("after a crash", n)
		g.end()
	})
}

// manyKeys names keys of ann.
func manyKeys(i int) string { return fmt.Sprintf("key-number-%04d", i) }

// useAndRevokeKey gives ann a key, uses its nonces for an order, a cancel and a read, and revokes
// it.
func (g *gated) useAndRevokeKey(i int) {
	t := g.t
	t.Helper()
	allow := slices.Repeat([]string{"192.0.2.0/24"}, 50)
	must[Admin](t)(g.e.CreateKey("test", "ann", manyKeys(i), strings.Repeat("s", 60),
		event.AllPermissions, allow))
	key := g.e.Key([]byte(manyKeys(i)))
	c := must[*Command](t)(g.e.Place(key, 1<<40, g.sell(coin/100)))
	id := c.Record().Order.ID
	c.Free()
	must[*Command](t)(g.e.Cancel(key, 1<<40+1, id)).Free()
	succeeds(t, g.e.Ask(new(committed.Wallet), key, 1<<40+2))
	must[Admin](t)(g.e.RevokeKey("test", manyKeys(i)))
}

// hasOnlyNamesOfKeys checks each place that could keep more of n revoked keys, and of deposits.
func (g *gated) hasOnlyNamesOfKeys(when string, n int) {
	t := g.t
	t.Helper()
	g.e.probeWallet(g.key.Account, func(w *wallet) {
		if list := w.nonces; len(list) > 1 {
			t.Errorf("%s the wallet has the nonces %v", when, list)
		}
	})
	g.e.probe(g.e.work.Fold, func() {
		c := g.e.committed
		if nonces, refs := committed.ReadNonces(c),
			committed.References(c); nonces > 1 || len(refs) > 0 {
			t.Errorf("%s there are %d nonces of reads and %d references", when, nonces, len(refs))
		}
	})
	for i := range n {
		if g.e.Key([]byte(manyKeys(i))) != nil {
			t.Errorf("%s key %s is there", when, manyKeys(i))
		}
	}
	name := manyKeys(7)
	if _, err := g.e.CreateKey("test", "ann", name, "secret", event.PermissionRead,
		nil); err == nil || err.Error() != "key "+name+" exists already" {
		t.Errorf("%s a name is given again: %v", when, err)
	}
	if a, err := g.e.RevokeKey("test", name); err == nil ||
		err.Error() != "key "+name+" is revoked already" || a.Account != "ann" {
		t.Errorf("%s a key is revoked again: %+v, %v", when, a, err)
	}
	q := &committed.Keys{Account: 1}
	if err := g.e.Ask(q, nil, 0); err != nil || len(q.List) != n+1 {
		t.Fatal(q.List, err)
	}
	for _, k := range q.List[1:] {
		if !k.Revoked || k.Account != "ann" || k.Permissions != 0 || k.Allow != nil {
			t.Errorf("%s of a revoked key there is %+v", when, k)
		}
	}
	auditClean(t, g.e)
}

// A lyingStore returns other deposits than it contains.
type lyingStore struct {
	persistence.Store
	row, entry func(*persistence.Deposit)
	more       []persistence.Deposit // entries of the index
}

func (s *lyingStore) Deposits(ctx context.Context, q persistence.DepositQuery,
	fn func(*persistence.Deposit) bool) error {
	return s.Store.Deposits(ctx, q, func(d *persistence.Deposit) bool {
		changed := *d
		if s.row != nil {
			s.row(&changed)
		}
		return fn(&changed)
	})
}

func (s *lyingStore) References(ctx context.Context, fn func(*persistence.Deposit) bool) error {
	for i := range s.more {
		fn(&s.more[i])
	}
	return s.Store.References(ctx, func(d *persistence.Deposit) bool {
		changed := *d
		if s.entry != nil {
			s.entry(&changed)
		}
		return changed.ID == 0 || fn(&changed)
	})
}

// An audit proves that each reference leads to one deposit, and each deposit is the one that its
// reference leads to.
func TestAnAuditFindsWrongReferences(t *testing.T) {
	store := &lyingStore{Store: memory.Open(memory.NewDisk(), persistence.Retention{})}
	o := testOptions(store)
	e := start(t, o)
	fund(t, e, "ann", map[string]money.Amount{"BTC": coin})
	for i := range 4 {
		must[Admin](t)(e.Deposit("test", "ann", "BTC", coin, fmt.Sprint("reference ", i)))
	}
	stop(t, e) // with a snapshot: earlier records are not replayed
	e = start(t, o)
	must[Admin](t)(e.Deposit("test", "ann", "BTC", coin, "newest"))
	const index = "references of deposits: "
	second := func(change func(*persistence.Deposit)) func(*persistence.Deposit) {
		return func(d *persistence.Deposit) {
			if d.ID == 2 {
				change(d)
			}
		}
	}
	for what, c := range map[string]struct {
		row, entry func(*persistence.Deposit)
		more       []persistence.Deposit
		want       string
	}{
		"a reference of two deposits": {
			row:  second(func(d *persistence.Deposit) { d.Reference = "reference 1" }),
			want: index + `"reference 0" leads to `},
		"an entry that is missing": {entry: second(func(d *persistence.Deposit) { d.ID = 0 }),
			want: index + "that of deposit 2 is missing"},
		"an entry of another amount": {entry: second(func(d *persistence.Deposit) { d.Amount++ }),
			want: index + `"reference 0" leads to `},
		"an entry of another account": {entry: second(func(d *persistence.Deposit) { d.Account++ }),
			want: index + `"reference 0" leads to `},
		"a second entry": {
			more: []persistence.Deposit{{ID: 2, Account: 1, Currency: 1, Amount: coin,
				Reference: "other"}}, want: index + `"other" leads to `},
		"an entry of no deposit": {
			more: []persistence.Deposit{{ID: 7, Account: 1, Currency: 1, Amount: coin,
				Reference: "other"}}, want: index + "one leads to deposit 7, the newest is 6"},
		"a row of another amount": {row: second(func(d *persistence.Deposit) { d.Amount++ }),
			want: "deposits: of BTC there are 6.00000001 in all, committed are 6"},
		"a row that is there twice": {row: second(func(d *persistence.Deposit) { d.ID = 3 }),
			want: "deposits of account ann: 3 is stored as "},
	} {
		store.row, store.entry, store.more = c.row, c.entry, c.more
		report, err := e.Audit(t.Context(), nil, func(uint64, uint64) {})
		if err != nil || !slices.ContainsFunc(report.Differences,
			func(d string) bool { return strings.HasPrefix(d, c.want) }) {
			t.Errorf("%s: %+v, %v", what, report, err)
		}
	}
	store.row, store.entry, store.more = nil, nil, nil
	auditClean(t, e)
	stop(t, e)
}

// A miscounted store counts more or fewer entries than its index contains. It may also contain one
// deposit of an interrupted Apply.
type miscounted struct {
	persistence.Store
	more int
	half *persistence.Deposit
	hold bool // nothing is projected
}

func (s *miscounted) CountReferences(ctx context.Context) (uint64, error) {
	n, err := s.Store.CountReferences(ctx)
	return n + uint64(s.more), err
}

func (s *miscounted) Reference(ctx context.Context, watermark uint64,
	reference string) (persistence.Deposit, error) {
	if s.half != nil && reference == s.half.Reference {
		return *s.half, nil
	}
	return s.Store.Reference(ctx, watermark, reference)
}

func (s *miscounted) Apply(ctx context.Context, tok persistence.Token, from, to uint64,
	w *persistence.Writes) error {
	if s.hold {
		return errors.New("held")
	}
	return s.Store.Apply(ctx, tok, from, to, w)
}

// A start refuses an index that lacks deposits up to its watermark, or has too many. Entries above
// the watermark, left by an interrupted Apply, are not counted.
func TestAStartCountsTheReferencesOfDeposits(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		s := &miscounted{Store: fresh(t)()}
		defer s.Close()
		begins := func(what string, want error) {
			t.Helper()
			e, err := Start(t.Context(), testOptions(s))
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
			if err == nil {
				e.Abandon()
			} else if !strings.Contains(err.Error(), "the index of references has") {
				t.Errorf("%s: %v", what, err)
			}
		}
		e := start(t, testOptions(s))
		fund(t, e, "ann", map[string]money.Amount{"BTC": coin})
		succeeds(t, e.Ask(new(committed.Barrier), nil, 0))
		s.hold = true
		half := must[Admin](t)(e.Deposit("test", "ann", "BTC", coin, "half"))
		e.Abandon()
		begins("the index as it is", nil)
		s.more = -1
		begins("one is lost", persistence.ErrCorrupt)
		s.more = 1
		begins("one more", persistence.ErrCorrupt)
		s.half = &persistence.Deposit{ID: half.Deposit, Account: 1, Currency: 1, Amount: coin,
			Reference: "half"}
		begins("a part of an Apply", nil)
		s.more = 0
		begins("a part of an Apply, and one is lost", persistence.ErrCorrupt)
		s.more, s.half, s.hold = 0, nil, false
		begins("the index as it is, again", nil)
	})
}
