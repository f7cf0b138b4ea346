package actors

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange/persistence"
	"exchange/persistence/redis"
	"exchange/persistence/redistest"
)

var damageTrials = flag.Int("damage.trials", 40, "how many bits TestAFlippedBitInRedisIsNoticed flips")

// allLists is all that the lists of a store have, as text.
func allLists(t *testing.T, store persistence.Store, accounts, pairs int) (string, error) {
	t.Helper()
	var b strings.Builder
	ctx := t.Context()
	var errs []error
	note := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
	}
	for pair := range pairs + 1 {
		for account := range accounts + 1 {
			fmt.Fprintf(&b, "trades of pair %d, account %d:\n", pair, account)
			note("trades", store.Trades(ctx, persistence.TradeQuery{Pair: uint16(pair), Account: uint32(account)}, func(r *persistence.Trade) bool {
				fmt.Fprintf(&b, "%+v\n", *r)
				return true
			}))
		}
		for frame := range uint8(20) {
			note("candles", store.Candles(ctx, persistence.CandleQuery{Pair: uint16(pair), Frame: frame}, func(r *persistence.Candle) bool {
				fmt.Fprintf(&b, "%+v\n", *r)
				return true
			}))
		}
	}
	for account := range accounts + 1 {
		fmt.Fprintf(&b, "account %d:\n", account)
		note("orders", store.Orders(ctx, persistence.OrderQuery{Account: uint32(account)}, func(r *persistence.Order) bool {
			fmt.Fprintf(&b, "%+v\n", *r)
			return true
		}))
		note("deposits", store.Deposits(ctx, persistence.DepositQuery{Account: uint32(account)}, func(r *persistence.Deposit) bool {
			fmt.Fprintf(&b, "%+v\n", *r)
			return true
		}))
		note("withdraws", store.Withdraws(ctx, persistence.WithdrawQuery{Account: uint32(account)}, func(r *persistence.Withdraw) bool {
			fmt.Fprintf(&b, "%+v\n", *r)
			return true
		}))
	}
	note("actions", store.Actions(ctx, persistence.ActionQuery{}, func(r *persistence.Action) bool {
		fmt.Fprintf(&b, "%+v\n", *r)
		return true
	}))
	note("nonces", store.Nonces(ctx, func(key string, nonce uint64) { fmt.Fprintf(&b, "%s %d\n", key, nonce) }))
	return b.String(), errors.Join(errs...)
}

// A bit that flips in Redis's append-only file, which has no checksum of its own, ends in one of these: Redis does not start, the
// exchange does not start and says corrupt, the audit says so, or nothing has changed. It never ends in a clean audit of
// another history.
func TestAFlippedBitInRedisIsNoticed(t *testing.T) {
	r := redistest.Start(t)
	store := openRedis(t, r.URL(), "")
	writeEverything(t, store)
	o := testOptions(store)
	e := start(t, o)
	stop(t, e) // with a second snapshot: the first records are trimmed
	want, err := allLists(t, store, 3, 2)
	if err = errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	r.Kill()
	files, err := filepath.Glob(filepath.Join(r.Dir(), "appendonlydir", "*.incr.aof"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	folder := filepath.Join(r.Dir(), "appendonlydir")
	kept := t.TempDir()
	copyFolder(t, kept, folder)
	good, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	outcomes := map[string]int{}
	for range *damageTrials {
		bit := random.IntN(len(good) * 8)
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
		copyFolder(t, folder, kept)
		bad := append([]byte(nil), good...)
		bad[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(files[0], bad, 0o600); err != nil {
			t.Fatal(err)
		}
		outcome := afterFlip(t, r, want)
		if outcome == "" {
			from := max(bit/8-100, 0)
			t.Errorf("seed %d, bit %d, %q became %q: a clean audit of another history", seed, bit, good[from:bit/8+20], bad[from:bit/8+20])
		}
		outcomes[outcome]++
		r.Stop()
	}
	t.Logf("seed %d: %v", seed, outcomes)
}

// afterFlip is what becomes of a start, "" if it is a history that is not so and that nobody notices.
func afterFlip(t *testing.T, r *redistest.Server, want string) string {
	if err := r.TryRestart(); err != nil {
		return "Redis does not start"
	}
	o := testOptions(nil)
	store, err := redis.Open(t.Context(), r.URL(), redis.Options{Logger: o.Log})
	if errors.Is(err, persistence.ErrCorrupt) {
		return "the exchange does not start: corrupt"
	}
	if err != nil {
		return "the store does not open: " + err.Error()
	}
	defer store.Close()
	o.Store = store
	e, err := Start(t.Context(), o)
	if err != nil {
		if !errors.Is(err, persistence.ErrCorrupt) {
			return "the exchange does not start: " + err.Error()
		}
		return "the exchange does not start: corrupt"
	}
	defer e.Abandon()
	report, err := e.Audit(t.Context(), nil, func(uint64, uint64) {})
	switch {
	case errors.Is(err, persistence.ErrCorrupt):
		return "the audit: corrupt"
	case errors.Is(err, context.Canceled), err != nil:
		t.Errorf("the audit: %v", err)
		return "the audit: another error"
	case len(report.Differences) > 0:
		return "the audit finds differences"
	}
	got, err := allLists(t, o.Store, 3, 2)
	switch {
	case errors.Is(err, persistence.ErrCorrupt):
		return "a list: corrupt, after a clean audit"
	case got == want:
		return "nothing has changed"
	}
	t.Logf("the history is\n%s\nwas\n%s", got, want)
	return ""
}
