//go:build prove

package actors

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"exchange/actors/committed"
	"exchange/persistence"
	"exchange/persistence/redis"
	"exchange/persistence/redistest"
)

var damageTrials = flag.Int("damage.trials", 40,
	"how many bits TestAFlippedBitInRedisIsNoticed flips")

// orderLookUps is the number of order ids to look up, from the first on.
const orderLookUps = 40

// writing returns a function that writes each row of a query into b.
func writing[T any](b *strings.Builder) func(*T) bool {
	return func(r *T) bool {
		fmt.Fprintf(b, "%+v\n", *r)
		return true
	}
}

// allLists returns all rows of a store's lists as text.
func allLists(t *testing.T, store persistence.Store, accounts, pairs int) (string, error) {
	t.Helper()
	var b strings.Builder
	ctx := t.Context()
	var errs []error
	note := func(list string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", list, err))
		}
	}
	for pair := range pairs + 1 {
		for account := range accounts + 1 {
			fmt.Fprintf(&b, "trades of pair %d, account %d:\n", pair, account)
			q := persistence.TradeQuery{Pair: uint16(pair), Account: uint32(account)}
			note("trades", store.Trades(ctx, q, writing[persistence.Trade](&b)))
		}
		for frame := range uint8(20) {
			q := persistence.CandleQuery{Pair: uint16(pair), Frame: frame}
			note("candles", store.Candles(ctx, q, writing[persistence.Candle](&b)))
		}
	}
	for account := range uint32(accounts + 1) {
		fmt.Fprintf(&b, "account %d:\n", account)
		clients, write := map[string]bool{}, writing[persistence.Order](&b)
		note("orders", store.Orders(ctx, persistence.OrderQuery{Account: account},
			func(r *persistence.Order) bool {
				clients[r.ClientID] = true
				return write(r)
			}))
		for _, client := range slices.Sorted(maps.Keys(clients)) {
			fmt.Fprintf(&b, "of the client id %q:\n", client)
			note("client id", store.Orders(ctx, persistence.OrderQuery{Account: account,
				ClientID: client}, writing[persistence.Order](&b)))
		}
		for id := range uint64(orderLookUps) {
			if r, err := store.Order(ctx, account, id); !errors.Is(err, persistence.ErrNotFound) {
				fmt.Fprintf(&b, "by its id: %+v\n", r)
				note("order", err)
			}
		}
		note("deposits", store.Deposits(ctx, persistence.DepositQuery{Account: account},
			writing[persistence.Deposit](&b)))
		note("withdraws", store.Withdrawals(ctx, persistence.WithdrawalQuery{Account: account},
			writing[persistence.Withdrawal](&b)))
	}
	note("actions", store.Actions(ctx, persistence.ActionQuery{},
		writing[persistence.Action](&b)))
	note("nonces", store.Nonces(ctx,
		func(key string, nonce uint64) { fmt.Fprintf(&b, "%s %d\n", key, nonce) }))
	return b.String(), errors.Join(errs...)
}

// A flippedRedis is a Redis whose append-only file is damaged repeatedly.
type flippedRedis struct {
	t                  *testing.T
	server             *redistest.Server
	folder, kept, name string // of the file: Redis's folder, the folder of a whole copy, its name
	good, head         []byte // the file, and HEAD.redis
	headFile           string
	want               string // all lists
	deposits           []persistence.Deposit
}

// newFlippedRedis makes one with rows of every kind, and the first records trimmed.
func newFlippedRedis(t *testing.T) *flippedRedis {
	f := &flippedRedis{t: t, server: redistest.Start(t), kept: t.TempDir()}
	f.headFile = filepath.Join(t.TempDir(), redis.HeadFile)
	store, err := f.open()
	succeeds(t, err)
	writeEverything(t, store)
	stop(t, start(t, testOptions(store))) // with a second snapshot
	f.want, err = allLists(t, store, 3, 2)
	err2 := store.References(t.Context(), func(d *persistence.Deposit) bool {
		f.deposits = append(f.deposits, *d)
		return true
	})
	if err := errors.Join(err, err2, store.Close()); err != nil || len(f.deposits) == 0 {
		t.Fatal(err)
	}
	f.server.Kill()
	f.folder = filepath.Join(f.server.Dir(), "appendonlydir")
	files, err := filepath.Glob(filepath.Join(f.folder, "*.incr.aof"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	f.name = filepath.Base(files[0])
	copyFolder(t, f.kept, f.folder)
	f.good, err = os.ReadFile(files[0])
	f.head, err2 = os.ReadFile(f.headFile)
	succeeds(t, errors.Join(err, err2))
	return f
}

func (f *flippedRedis) open() (persistence.Store, error) {
	o := redis.Options{Logger: testOptions(nil).Log, Head: f.headFile}
	return redis.Open(f.t.Context(), f.server.URL(), o)
}

// flip starts Redis and an exchange on the file with one bit flipped, and returns the outcome.
func (f *flippedRedis) flip(what string, bit int) (outcome string) {
	f.t.Helper()
	succeeds(f.t, os.RemoveAll(f.folder))
	copyFolder(f.t, f.folder, f.kept)
	bad := bytes.Clone(f.good)
	bad[bit/8] ^= 1 << (bit % 8)
	err := os.WriteFile(filepath.Join(f.folder, f.name), bad, 0o600)
	succeeds(f.t, errors.Join(err, os.WriteFile(f.headFile, f.head, 0o600)))
	outcome, wrong := f.after()
	if wrong != "" {
		from := max(bit/8-100, 0)
		to := min(bit/8+20, len(bad))
		f.t.Errorf("%s, bit %d, %q became %q: %s", what, bit, f.good[from:to], bad[from:to], wrong)
	}
	f.server.Stop()
	return outcome
}

// A flipped bit in Redis's append-only file, which has no checksum of its own, has one of these
// outcomes. Redis does not start, the exchange does not start and reports corruption, the audit
// reports it, or nothing has changed. It never ends in a clean audit of another history, nor in a
// deposit made twice.
func TestAFlippedBitInRedisIsNoticed(t *testing.T) {
	f := newFlippedRedis(t)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	outcomes := map[string]int{}
	for range *damageTrials {
		outcomes[f.flip(fmt.Sprint("seed ", seed), random.IntN(len(f.good)*8))]++
	}
	t.Logf("seed %d: %v", seed, outcomes)
}

// Of each kind of command in the file, each argument and each length loses a bit.
func TestAFlippedBitInEachPartOfACommandIsNoticed(t *testing.T) {
	f := newFlippedRedis(t)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	outcomes := map[string]int{}
	parts := partsOfCommands(t, f.good)
	for _, what := range slices.Sorted(maps.Keys(parts)) {
		places := parts[what]
		at := places[random.IntN(len(places))]
		bit := (at.from+random.IntN(at.length))*8 + random.IntN(8)
		outcome := f.flip(fmt.Sprintf("seed %d, %s", seed, what), bit)
		outcomes[outcome]++
		if what == "HSET {main}:references, argument 2" && outcome != "a deposit: damaged" {
			t.Errorf("a reference that is not what it was: %s", outcome)
		}
	}
	t.Logf("seed %d, %d parts: %v", seed, len(parts), outcomes)
}

// A span is some bytes of a file.
type span struct{ from, length int }

// partsOfCommands finds the arguments of all commands in a file. Their names are the command, the
// key without its numbers, and the argument's position.
func partsOfCommands(t *testing.T, file []byte) map[string][]span {
	parts := map[string][]span{}
	at := 0
	number := func(begin byte) int {
		end := bytes.Index(file[at:], []byte("\r\n"))
		n, err := strconv.Atoi(string(file[at+1 : at+end]))
		if file[at] != begin || err != nil {
			t.Fatalf("%q is no command", file[at:][:end])
		}
		at += end + 2
		return n
	}
	for at < len(file) {
		if file[at] == '#' { // its time
			at += bytes.IndexByte(file[at:], '\n') + 1
			continue
		}
		name := ""
		for i := range number('*') {
			length := at + 1
			n := number('$')
			arg := file[at : at+n]
			switch {
			case i == 0:
				name = strings.ToUpper(string(arg))
			case i == 1:
				name += " " + digits.ReplaceAllString(string(arg), "0")
			}
			of := name + ", argument " + strconv.Itoa(min(i, 7))
			if strings.HasSuffix(name, "{main}:m") && i >= 2 && i%2 == 0 {
				of = name + ", field " + string(arg)
			}
			if n > 0 {
				parts[of] = append(parts[of], span{at, n})
			}
			parts[of+", length"] = append(parts[of+", length"], span{length, at - 2 - length})
			at += n + 2
		}
	}
	return parts
}

var digits = regexp.MustCompile(`[0-9]+(\.[0-9a-f]{8,})*`)

// after returns the outcome of a start. wrong names a forbidden outcome: another exit code, another
// history that no check notices, or a deposit made twice.
func (f *flippedRedis) after() (outcome, wrong string) {
	t := f.t
	if err := f.server.TryRestart(); err != nil {
		return "Redis does not start", ""
	}
	o := testOptions(nil)
	store, err := f.open()
	switch {
	case errors.Is(err, persistence.ErrCorrupt):
		return "the store does not open: corrupt", ""
	case err != nil:
		return "the store does not open", err.Error()
	}
	defer store.Close()
	o.Store = store
	e, err := Start(t.Context(), o)
	switch {
	case errors.Is(err, persistence.ErrCorrupt):
		return "the exchange does not start: corrupt", ""
	case err != nil:
		return "the exchange does not start", err.Error()
	}
	defer e.Abandon()
	damaged := false
	for i := range f.deposits {
		d := &f.deposits[i]
		again, err := e.Deposit("test", e.dir.Account(d.Account).Name, e.CurrencyCode(d.Currency),
			d.Amount, d.Reference)
		switch {
		case errors.Is(err, committed.ErrIndexDamaged):
			damaged = true
		case err != nil || !again.Repeated || again.Deposit != d.ID:
			return "a deposit", fmt.Sprintf("deposit %+v was asked for again, and is %+v, %v", *d,
				again, err)
		}
	}
	if damaged {
		return "a deposit: damaged", ""
	}
	report, err := e.Audit(t.Context(), nil, func(uint64, uint64) {})
	switch {
	case errors.Is(err, persistence.ErrCorrupt):
		return "the audit: corrupt", ""
	case err != nil:
		return "the audit", err.Error()
	case len(report.Differences) > 0:
		return "the audit finds differences", ""
	}
	got, err := allLists(t, o.Store, 3, 2)
	switch {
	case errors.Is(err, persistence.ErrCorrupt):
		return "a list: corrupt, after a clean audit", ""
	case err != nil || got != f.want:
		return "another history", fmt.Sprintf("a clean audit of another history, %v:\n%s\nwas\n%s",
			err, got, f.want)
	}
	return "nothing has changed", ""
}
