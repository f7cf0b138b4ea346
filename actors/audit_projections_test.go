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

// history has an engine do some of everything that rows are written of: trades of two accounts in
// two pairs, cancels, deposits, withdraws of several ends, and what operators do.
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
		withdraw, to := uint64(i+1), uint8(event.WithdrawApproved)
		must[*Command](t)(e.Withdraw(ann, next(), 1, coin, "somewhere")).Free()
		must[*Command](t)(e.ConfirmWithdraw(ann, next(), withdraw, codeOf(t, e, withdraw))).Free()
		if i == 1 {
			to = event.WithdrawRefused
		}
		must[*Command](t)(e.MoveWithdraw("ops", withdraw, to, "")).Free()
	}
}

// Whatever is wrong with what Redis has of the history is found and named; what is put back is not.
func TestAnAuditFindsDamagedProjections(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client()
	ctx := t.Context()
	store := openRedis(t, server.URL(), "")
	o := testOptions(store)
	o.rowRefs, o.deposits = 10, 3
	e := start(t, o)
	history(t, e)
	report := auditClean(t, e)
	if report.Rows < 12*4+27+8+6+14 || report.Trimmed != 0 {
		t.Errorf("%+v", report)
	}
	lists := []string{"trades", "trades:1", "trades:2", "trades:account:1", "trades:account:2",
		"deposits:1", "deposits:2", "actions",
		"candles:1:0", "candles:1:1", "candles:2:6"}
	sets := []string{"orders:1", "orders:2", "withdraws", "withdraws:1"}
	names := map[string]string{"trades": "trades", "trades:1": "trades of pair BTC_USD",
		"trades:2":         "trades of pair BTC_EUR",
		"trades:account:1": "trades of account ann", "trades:account:2": "trades of account ben",
		"deposits:1": "deposits of account ann",
		"deposits:2": "deposits of account ben", "actions": "actions",
		"candles:1:0": "candles of pair BTC_USD, timeframe 1",
		"candles:1:1": "candles of pair BTC_USD, timeframe 5",
		"candles:2:6": "candles of pair BTC_EUR, timeframe D",
		"orders:1":    "closed orders of account ann", "orders:2": "closed orders of account ben",
		"withdraws": "withdraws", "withdraws:1": "withdraws of account ann"}
	// damaged runs an audit of a damaged key, and puts it back. It wants a difference that begins
	// so.
	damaged := func(what, key, want string, damage func(key string) error) {
		t.Helper()
		key = "{main}:" + key
		was := must[string](t)(client.Dump(ctx, key).Result())
		if err := damage(key); err != nil {
			t.Fatal(err)
		}
		report, err := e.Audit(ctx, nil, func(uint64, uint64) {})
		if err != nil || !slices.ContainsFunc(report.Differences, func(d string) bool {
			return strings.HasPrefix(d, want) ||
				strings.HasPrefix(d, "damaged: ") && strings.Contains(d, " "+key+": ")
		}) {
			t.Errorf("%s of %s: %+v, %v", what, key, report, err)
		}
		var newer []string
		var members []redisclient.Z
		if what == "all that is older" {
			newer = client.LRange(ctx, key, 0, -1).Val()
			members = client.ZRangeWithScores(ctx, key, 0, -1).Val()
		}
		if err := client.RestoreReplace(ctx, key, 0, was).Err(); err != nil {
			t.Fatal(err)
		}
		if len(members) > 0 {
			if err := client.ZAdd(ctx, key, members...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		for _, row := range newer {
			if err := client.RPush(ctx, key, row).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := func(words bool) {
		t.Helper()
		for _, list := range append(slices.Clone(lists), sets...) {
			damaged("all", list, names[list]+": ", func(key string) error {
				return client.Del(ctx, key).Err()
			})
		}
		for _, list := range lists {
			damaged("the newest", list, names[list]+": ", func(key string) error {
				return client.RPop(ctx, key).Err()
			})
			if list == "actions" && !words {
				continue
			}
			damaged("the words", list, names[list]+": ", func(key string) error {
				row := []byte(must[string](t)(client.LIndex(ctx, key, 0).Result()))
				// of a trade its fees, of a deposit or an action its text, of a candle its volume
				row[len(row)-1] ^= 1
				return client.LSet(ctx, key, 0, row).Err()
			})
		}
		for _, set := range sets {
			damaged("the newest", set, names[set]+": ", func(key string) error {
				return client.ZRemRangeByRank(ctx, key, -1, -1).Err()
			})
		}
		damaged("a nonce", "nonces",
			"key key-of-ann of account ann: projected is nonce 1, committed ",
			func(key string) error { return client.HSet(ctx, key, "key-of-ann", 1).Err() })
		damaged("a nonce", "nonces",
			"key key-of-ben of account ben: projected is nonce 0, committed ",
			func(key string) error { return client.HDel(ctx, key, "key-of-ben").Err() })
		const index = "references of deposits: "
		damaged("all", "references", index,
			func(key string) error { return client.Del(ctx, key).Err() })
		damaged("one reference", "references", index+"that of deposit 1 is missing",
			func(key string) error { return client.HDel(ctx, key, "ann0").Err() })
		damaged("a balance", "wallet:ann",
			"account ann, BTC: projected are 1 with 0 reserved", func(key string) error {
				return client.HSet(ctx, key, "BTC", "1:0").Err()
			})
		for _, list := range []string{"deposits:1", "actions"} { // these are kept for ever
			damaged("the oldest", list, names[list]+": ", func(key string) error {
				return client.LPop(ctx, key).Err()
			})
		}
		for _, set := range []string{"withdraws", "withdraws:1"} {
			damaged("the oldest", set, names[set]+": ", func(key string) error {
				return client.ZRemRangeByRank(ctx, key, 0, 0).Err()
			})
		}
		auditClean(t, e)
	}
	all(true)
	for _, list := range lists {
		if !strings.HasPrefix(list, "candles") {
			damaged("the oldest", list, names[list]+": ", func(key string) error {
				return client.LPop(ctx, key).Err()
			})
		}
	}
	for _, set := range sets {
		damaged("the oldest", set, names[set]+": ", func(key string) error {
			return client.ZRemRangeByRank(ctx, key, 0, 0).Err()
		})
	}
	// The same of what an earlier run has written, but for the oldest rows, for it may have kept
	// fewer, and the words of operators' actions, which may have been others.
	e.Abandon()
	e = start(t, o)
	all(false)
	for _, list := range []string{"orders:1", "trades:1", "trades:account:1"} {
		damaged("all that is older", list, names[list]+": ", func(key string) error {
			if err := client.Del(ctx, key).Err(); err != nil {
				return err
			}
			trade(t, e, 1000+e.committed.Released())
			return nil
		})
	}
	stop(t, e)

	// Behind its last snapshot nothing is left to be replayed, but what is for ever is known, and
	// what cannot be empty.
	e = start(t, o)
	if report := auditClean(t, e); report.Records > 0 {
		t.Errorf("%+v", report)
	}
	for _, list := range append(slices.Clone(lists), sets...) {
		if list != "actions" {
			damaged("all", list, names[list]+": ", func(key string) error {
				return client.Del(ctx, key).Err()
			})
		}
	}
	for _, list := range []string{"deposits:1", "withdraws", "withdraws:1", "candles:1:0"} {
		damaged("the newest", list, names[list]+": ", func(key string) error {
			if strings.HasPrefix(list, "withdraws") {
				return client.ZRemRangeByRank(ctx, key, -1, -1).Err()
			}
			return client.RPop(ctx, key).Err()
		})
	}
	stop(t, e)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// A backup has the trades that the list of all of them keeps. Those of who traded last before that
// are gone with a restore, which is no difference.
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
				must[*Command](t)(e.Place(old, uint64(nonce+1),
					&OrderRequest{Pair: e.Pairs()[1], Side: side, Price: 100e8, Amount: coin})).Free()
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

// keeping opens stores in one place with the retention that it is told.
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

// Rows that are trimmed while an audit looks for them are no differences, nor are those that were
// trimmed by a lower retention than today's, and nor are candles that change meanwhile.
func TestAuditsUnderLoadOfAHistoryThatIsTrimmedAreClean(t *testing.T) {
	for _, kind := range []string{"pebble", "redis"} {
		t.Run(kind, func(t *testing.T) {
			open := keeping(t, kind)
			var keys []string
			nonce := uint64(0)
			for run, keep := range []persistence.Retention{{}, {Trades: 40, Orders: 15, Candles: 1},
				{Trades: 25, Orders: 300, Candles: 2}, {Trades: 1000, Orders: 1000}, {}} {
				store := open(keep)
				o := testOptions(store)
				o.Retention, o.rowRefs, o.stepRows = keep, 50+run*200, 50
				if run > 0 {
					o.Snapshot = committed.SnapshotPolicy{MinRecords: 200, MaxRecords: 200}
				}
				e := start(t, o)
				if run == 0 {
					for i := range 4 {
						keys = append(keys, fund(t, e, fmt.Sprint("account-", i),
							map[string]money.Amount{"BTC": 50 * coin, "USD": 500 * coin,
								"EUR": 500 * coin}).Public)
					}
				}
				auditClean(t, e)
				load, ended := &allowance{engine: e}, make(chan struct{})
				load.more.L = &load.mu
				var loaded []*directory.Key
				for _, public := range keys {
					loaded = append(loaded, e.Key([]byte(public)))
				}
				go func() {
					tradeAtRandom(t, e, loaded, nonce, load.wait)
					close(ended)
				}()
				begun, trimmed, rows := e.committed.Released(), 0, 0
				// an audit may be overtaken, or come before a row is trimmed
				goesOn := func() bool {
					return e.committed.Released() < begun+300 || rows == 0 ||
						trimmed == 0 && keep.Candles > 0
				}
				for goesOn() && !t.Failed() {
					// less than what lies between snapshots: on a slow machine, too, most audits
					// are not overtaken
					load.allow(e.committed.Released() + 150)
					report, err := e.Audit(t.Context(), nil, func(uint64, uint64) {})
					if errors.Is(err, audit.ErrOvertaken) {
						continue
					}
					if err != nil || len(report.Differences) > 0 {
						t.Errorf("run %d, keeping %+v: %+v, %v", run, keep, report, err)
						break
					}
					trimmed, rows = trimmed+report.Trimmed, rows+report.Rows
				}
				load.end()
				<-ended
				auditClean(t, e)
				if trimmed > 0 && run == 0 {
					t.Errorf("run %d, keeping %+v: %d rows were found, %d were trimmed", run, keep,
						rows, trimmed)
				}
				nonce += 1_000_000
				if run%2 == 0 {
					e.Abandon()
				} else {
					stop(t, e)
				}
				if err := store.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// An allowance lets a load make so many records and no more.
type allowance struct {
	engine *Engine
	mu     sync.Mutex
	more   sync.Cond
	most   uint64 // sequence up to which there may be records
	over   bool
}

// wait is before each command: it waits until there may be one, and says whether there may be any
// more.
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

// A rangesRead notes how far an audit's look at the deposits reaches.
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

// An audit holds something of each deposit of one range of ids, and not of all that were ever made.
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
