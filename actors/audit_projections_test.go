package actors

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	redisclient "github.com/redis/go-redis/v9"

	"exchange/actors/audit"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
	"exchange/persistence/pebble"
	"exchange/persistence/redis"
	"exchange/persistence/redistest"
)

// trade has ann sell to ben in the first pair.
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

// history gives an engine something of everything that rows are written of: trades of two accounts
// in two pairs, cancels, deposits, withdrawals with several ends, and operators' actions.
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
		must[*Command](t)(e.MoveWithdrawal("ops", withdrawal, to, "")).Free()
	}
}

// The lists and sorted sets that Redis has of the history, each by the name that an audit gives it.
var (
	historyLists = map[string]string{"trades": "trades", "trades:1": "trades of pair BTC_USD",
		"trades:2":         "trades of pair BTC_EUR",
		"trades:account:1": "trades of account ann", "trades:account:2": "trades of account ben",
		"deposits:1": "deposits of account ann",
		"deposits:2": "deposits of account ben", "actions": "actions",
		"candles:1:0": "candles of pair BTC_USD, timeframe 1",
		"candles:1:1": "candles of pair BTC_USD, timeframe 5",
		"candles:2:6": "candles of pair BTC_EUR, timeframe D"}
	historySets = map[string]string{
		"orders:1": "closed orders of account ann", "orders:2": "closed orders of account ben",
		"withdraws": "withdraws", "withdraws:1": "withdraws of account ann"}
)

// A damagedHistory is an engine with a history in Redis, which a test damages.
type damagedHistory struct {
	t       *testing.T
	client  *redisclient.Client
	options Options
	e       *Engine
}

func newDamagedHistory(t *testing.T) *damagedHistory {
	t.Helper()
	server := redistest.Start(t)
	store := openRedis(t, server.URL(), "")
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	d := &damagedHistory{t: t, client: server.Client(), options: testOptions(store)}
	d.options.rowRefs, d.options.deposits = 10, 3
	d.e = start(t, d.options)
	history(t, d.e)
	return d
}

// find damages a key, runs an audit that must find the damage, and puts the key back.
func (d *damagedHistory) find(damage, key, want string, do func(key string) error) {
	d.t.Helper()
	full := "{main}:" + key
	was := must[string](d.t)(d.client.Dump(d.t.Context(), full).Result())
	if err := do(full); err != nil {
		d.t.Fatal(err)
	}
	d.audit(damage, key, want)
	if err := d.client.RestoreReplace(d.t.Context(), full, 0, was).Err(); err != nil {
		d.t.Fatal(err)
	}
}

// audit wants a difference that begins with a text, or one that names the key as damaged.
func (d *damagedHistory) audit(damage, key, want string) {
	d.t.Helper()
	report, err := d.e.Audit(d.t.Context(), nil, func(uint64, uint64) {})
	if err != nil || !slices.ContainsFunc(report.Differences, func(d string) bool {
		return strings.HasPrefix(d, want) ||
			strings.HasPrefix(d, "damaged: ") && strings.Contains(d, " {main}:"+key+": ")
	}) {
		d.t.Errorf("%s of %s: the audit finds %+v, %v", damage, key, report, err)
	}
}

// startAnew ends the run that has written the rows.
func (d *damagedHistory) startAnew() {
	d.t.Helper()
	auditClean(d.t, d.e) // waits until the rows are written
	d.e.Abandon()
	d.e = start(d.t, d.options)
}

func (d *damagedHistory) findsAListMissing(list, name string) {
	d.t.Helper()
	d.find("all", list, name+": ", func(key string) error {
		return d.client.Del(d.t.Context(), key).Err()
	})
}

// findsARowMissing takes out the newest or the oldest row of a list or set.
func (d *damagedHistory) findsARowMissing(row, key string) {
	d.t.Helper()
	ctx := d.t.Context()
	if name, isSet := historySets[key]; isSet {
		rank := map[string]int64{"the oldest": 0, "the newest": -1}[row]
		d.find(row, key, name+": ", func(key string) error {
			return d.client.ZRemRangeByRank(ctx, key, rank, rank).Err()
		})
		return
	}
	take := map[string]func(context.Context, string) *redisclient.StringCmd{
		"the oldest": d.client.LPop, "the newest": d.client.RPop}[row]
	d.find(row, key, historyLists[key]+": ", func(key string) error { return take(ctx, key).Err() })
}

// findsAChangedRow changes the last byte of the oldest row. That byte belongs to a trade's fees, to
// the text of a deposit or an action, or to a candle's volume.
func (d *damagedHistory) findsAChangedRow(list string) {
	d.t.Helper()
	ctx := d.t.Context()
	d.find("the words", list, historyLists[list]+": ", func(key string) error {
		row := []byte(must[string](d.t)(d.client.LIndex(ctx, key, 0).Result()))
		row[len(row)-1] ^= 1
		return d.client.LSet(ctx, key, 0, row).Err()
	})
}

// findsAnyDamage tries the damages that an audit finds of the running engine's rows and of those
// that an earlier one has written. Of an earlier run's actions it cannot know the words.
func (d *damagedHistory) findsAnyDamage(ownActions bool) {
	d.t.Helper()
	for list, name := range historyLists {
		d.findsAListMissing(list, name)
		d.findsARowMissing("the newest", list)
		if list != "actions" || ownActions {
			d.findsAChangedRow(list)
		}
	}
	for set, name := range historySets {
		d.findsAListMissing(set, name)
		d.findsARowMissing("the newest", set)
	}
	d.findsADamagedField()
	// These are kept for ever.
	for _, key := range []string{"deposits:1", "actions", "withdraws", "withdraws:1"} {
		d.findsARowMissing("the oldest", key)
	}
	auditClean(d.t, d.e)
}

// findsADamagedField damages nonces, references and wallets, which Redis has as hashes.
func (d *damagedHistory) findsADamagedField() {
	d.t.Helper()
	ctx := d.t.Context()
	d.find("a nonce", "nonces",
		"key key-of-ann of account ann: projected is nonce 1, committed ",
		func(key string) error { return d.client.HSet(ctx, key, "key-of-ann", 1).Err() })
	d.find("a nonce", "nonces",
		"key key-of-ben of account ben: projected is nonce 0, committed ",
		func(key string) error { return d.client.HDel(ctx, key, "key-of-ben").Err() })
	const index = "references of deposits: "
	d.find("all", "references", index,
		func(key string) error { return d.client.Del(ctx, key).Err() })
	d.find("one reference", "references", index+"that of deposit 1 is missing",
		func(key string) error { return d.client.HDel(ctx, key, "ann0").Err() })
	d.find("a balance", "wallet:ann", "account ann, BTC: projected are 1 with 0 reserved",
		func(key string) error { return d.client.HSet(ctx, key, "BTC", "1:0").Err() })
}

func TestAnAuditFindsDamagedProjections(t *testing.T) {
	d := newDamagedHistory(t)
	report := auditClean(t, d.e)
	if report.Rows < 12*4+27+8+6+14 || report.Trimmed != 0 {
		t.Errorf("%+v", report)
	}
	d.findsAnyDamage(true)
	for list := range historyLists {
		if !strings.HasPrefix(list, "candles") {
			d.findsARowMissing("the oldest", list)
		}
	}
	for set := range historySets {
		d.findsARowMissing("the oldest", set)
	}
	stop(t, d.e)
}

// An earlier run may have kept fewer rows and written other words of operators' actions. So neither
// the oldest rows nor these words are compared.
func TestAnAuditFindsDamagedProjectionsOfAnEarlierRun(t *testing.T) {
	d := newDamagedHistory(t)
	d.startAnew()
	d.findsAnyDamage(false)
	stop(t, d.e)
}

// findsOlderRowsMissing deletes a list or set, and has the engine write new rows into it. It puts
// the older rows back beside the new ones.
func (d *damagedHistory) findsOlderRowsMissing(key, name string) {
	d.t.Helper()
	ctx, full := d.t.Context(), "{main}:"+key
	was := must[string](d.t)(d.client.Dump(ctx, full).Result())
	if err := d.client.Del(ctx, full).Err(); err != nil {
		d.t.Fatal(err)
	}
	trade(d.t, d.e, 1000+d.e.committed.Released())
	d.audit("all older rows", key, name+": ")
	newer := d.client.LRange(ctx, full, 0, -1).Val() // none of a set
	members := d.client.ZRangeWithScores(ctx, full, 0, -1).Val()
	if len(newer)+len(members) == 0 {
		d.t.Errorf("%s has no new rows", key)
	}
	errs := []error{d.client.RestoreReplace(ctx, full, 0, was).Err()}
	for _, row := range newer {
		errs = append(errs, d.client.RPush(ctx, full, row).Err())
	}
	for _, m := range members {
		errs = append(errs, d.client.ZAdd(ctx, full, m).Err())
	}
	if err := errors.Join(errs...); err != nil {
		d.t.Fatal(err)
	}
}

func TestAnAuditFindsThatOnlyNewRowsAreLeft(t *testing.T) {
	d := newDamagedHistory(t)
	d.startAnew()
	d.findsOlderRowsMissing("orders:1", historySets["orders:1"])
	d.findsOlderRowsMissing("trades:1", historyLists["trades:1"])
	d.findsOlderRowsMissing("trades:account:1", historyLists["trades:account:1"])
	auditClean(t, d.e)
	stop(t, d.e)
}

// Behind its last snapshot an audit has no records to replay. It still knows the rows that are kept
// for ever, and the lists that cannot be empty.
func TestAnAuditWithoutRecordsFindsMissingListsAndRows(t *testing.T) {
	d := newDamagedHistory(t)
	stop(t, d.e)
	d.e = start(t, d.options)
	if report := auditClean(t, d.e); report.Records > 0 {
		t.Errorf("%+v", report)
	}
	for list, name := range historyLists {
		if list != "actions" {
			d.findsAListMissing(list, name)
		}
	}
	for set, name := range historySets {
		d.findsAListMissing(set, name)
	}
	for _, key := range []string{"deposits:1", "withdraws", "withdraws:1", "candles:1:0"} {
		d.findsARowMissing("the newest", key)
	}
	stop(t, d.e)
}

// A backup has the trades that the list of all trades keeps. An account's older trades are gone
// after a restore, which is no difference.
func TestAnAuditAfterARestoreOfFewerTradesIsClean(t *testing.T) {
	for _, kind := range []string{"pebble", "redis"} {
		t.Run(kind, func(t *testing.T) {
			keep := persistence.Retention{Trades: 2}
			store := keeping(t, kind)(keep)
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
			target := keeping(t, kind)(keep)
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

// keeping returns a function that opens stores in one place, each with its own retention.
func keeping(t *testing.T, kind string) func(persistence.Retention) persistence.Store {
	if kind == "pebble" {
		dir := t.TempDir()
		return func(keep persistence.Retention) persistence.Store {
			return must[persistence.Store](t)(
				pebble.Open(dir, pebble.Options{Logger: testOptions(nil).Log, Retention: keep}))
		}
	}
	server := redistest.Start(t)
	return func(keep persistence.Retention) persistence.Store {
		return must[persistence.Store](t)(
			redis.Open(t.Context(), server.URL(),
				redis.Options{Logger: testOptions(nil).Log, Retention: keep}))
	}
}

// These are no differences: rows that are trimmed while an audit looks for them, rows that an
// earlier, lower retention has trimmed, and candles that change meanwhile.
func TestAuditsUnderLoadOfAHistoryThatIsTrimmedAreClean(t *testing.T) {
	for _, kind := range []string{"pebble", "redis"} {
		t.Run(kind, func(t *testing.T) {
			a := loadedAudits{t: t, open: keeping(t, kind)}
			for run, keep := range []persistence.Retention{{}, {Trades: 40, Orders: 15, Candles: 1},
				{Trades: 25, Orders: 300, Candles: 2}, {Trades: 1000, Orders: 1000}, {}} {
				a.run(run, keep)
			}
		})
	}
}

// loadedAudits are runs of an engine that is audited while accounts trade at random.
type loadedAudits struct {
	t     *testing.T
	open  func(persistence.Retention) persistence.Store
	keys  []string
	nonce uint64
}

func (a *loadedAudits) run(run int, keep persistence.Retention) {
	t, store := a.t, a.open(keep)
	o := testOptions(store)
	o.Retention, o.rowRefs, o.stepRows = keep, 50+run*200, 50
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
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// auditUnder audits until the load has made 300 records and an audit has compared rows. Where
// candles are trimmed, an audit must also have met trimmed rows.
func (a *loadedAudits) auditUnder(load *allowance, keep persistence.Retention) (trimmed, rows int) {
	e, begun := load.engine, load.engine.committed.Released()
	goesOn := func() bool {
		return e.committed.Released() < begun+300 || rows == 0 ||
			trimmed == 0 && keep.Candles > 0
	}
	for goesOn() && !a.t.Failed() {
		// The load makes fewer records than lie between two snapshots, so on a slow machine, too,
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

// An allowance bounds the records that a load makes.
type allowance struct {
	engine *Engine
	mu     sync.Mutex
	more   sync.Cond
	most   uint64 // sequence up to which the load may make records
	over   bool
}

// wait waits before each command until the load may send it. It returns false when the load is
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

// A rangesRead is a store that notes the ranges of deposits that an audit reads.
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

// An audit has the deposits of one range of ids in memory, and not all that were ever made.
func TestAnAuditComparesDepositsRangeByRange(t *testing.T) {
	for atOnce, want := range map[int][]uint64{
		1: {2, 3, 4, 5, 6, 7, 8, 9}, 3: {4, 7, 9}, 4: {5, 9}, 7: {8, 9}, 8: {9}, 100: {9}, 0: {9},
	} {
		store := &rangesRead{Store: keeping(t, "pebble")(persistence.Retention{}),
			before: map[uint64]bool{}}
		o := testOptions(store)
		o.deposits = atOnce
		e := start(t, o)
		history(t, e) // with 8 deposits
		stop(t, e)
		e = start(t, o) // the records are in a snapshot, so no row is looked for by its id
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
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
