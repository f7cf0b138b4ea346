package actors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
	"exchange/persistence/pebble"
	"exchange/persistence/redis"
)

// testOptions returns the options of an engine on a store, with two pairs of three currencies.
func testOptions(store persistence.Store) Options {
	sealer, err := seal.New(make([]byte, seal.KeyBytes))
	if err != nil {
		panic(err)
	}
	limits := DefaultLimits
	o := Options{Store: store, Owner: "test", Limits: limits, Timing: DefaultTiming,
		Snapshot: DefaultSnapshot, Withdrawal: DefaultWithdrawal,
		Scheduler:   goroutines{},
		Sealer:      func(bool) (*seal.Sealer, error) { return sealer, nil },
		KeyMaterial: func(secret []byte) any { return string(secret) },
		Mail:        unsent,
		Exit:        func(code int) { panic(fmt.Sprintf("exit %d", code)) },
		Log:         slog.New(slog.NewTextHandler(io.Discard, nil))}
	if os.Getenv("EXCHANGE_TEST_LOG") != "" {
		o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	for _, code := range []string{"BTC", "USD", "EUR"} {
		o.Currencies = append(o.Currencies, directory.Currency{Code: code})
	}
	for _, quote := range []string{"USD", "EUR"} {
		o.Pairs = append(o.Pairs, directory.PairRules{Name: "BTC_" + quote, Base: "BTC",
			Quote:          quote,
			PricePrecision: 2, AmountPrecision: 8,
			MinimumOrderSize: 1, MaximumOrderSize: money.MaxAmount})
	}
	return o
}

// unsent is a mail server that accepts nothing: mails stay in the outbox and leave no record.
func unsent(context.Context, *Mail) error { return errors.New("the mail server takes nothing") }

// goroutines is a Scheduler whose goroutines end, so that none serves a mailbox of another bubble.
type goroutines struct{ mailbox.Runners }

func (goroutines) Schedule(m *mailbox.Mailbox) { go m.Run() }

func openPebble(t testing.TB, dir string) persistence.Store {
	t.Helper()
	s, err := pebble.Open(dir, pebble.Options{
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	succeeds(t, err)
	return s
}

func openRedis(t testing.TB, url, engine string) persistence.Store {
	t.Helper()
	s, err := redis.Open(context.Background(), url,
		redis.Options{Engine: engine, Logger: testOptions(nil).Log})
	succeeds(t, err)
	return s
}

// start starts an engine, which the test stops or abandons.
func start(t testing.TB, o Options) *Engine {
	t.Helper()
	e := must[*Engine](t)(Start(context.Background(), o))
	t.Cleanup(func() {
		select {
		case <-e.life.Over():
		default:
			t.Error("the test has not stopped an engine that shares its pools with other tests")
			e.Abandon()
		}
	})
	return e
}

func stop(t testing.TB, e *Engine) {
	t.Helper()
	succeeds(t, e.Stop(context.Background()))
}

// An ender can end a test or a run of a property.
type ender interface {
	Helper()
	Fatal(args ...any)
}

// succeeds ends a test whose call has failed.
func succeeds(t ender, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must returns the value of a call that must not fail.
func must[T any](t ender) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		succeeds(t, err)
		return v
	}
}

// fund opens an account with a key and deposits.
func fund(t testing.TB, e *Engine, name string, amounts map[string]money.Amount) *directory.Key {
	t.Helper()
	must[Admin](t)(e.CreateAccount("test", name, ""))
	must[Admin](t)(e.CreateKey("test", name, "key-of-"+name, "secret", event.AllPermissions, nil))
	for currency, amount := range amounts {
		must[Admin](t)(e.Deposit("test", name, currency, amount, name+currency))
	}
	return e.Key([]byte("key-of-" + name))
}

const coin = money.Amount(1e8)

// requestOf returns a request for an order in the first pair.
func requestOf(e *Engine, side trading.Side, price money.Price, amount money.Amount) *OrderRequest {
	return &OrderRequest{Pair: e.Pair([]byte("BTC_USD")), Side: side, Price: price, Amount: amount}
}

// hashAtRest compares the deciding side with the fold, and returns the fold's hash.
func hashAtRest(t testing.TB, e *Engine) [32]byte {
	t.Helper()
	succeeds(t, e.VerifyAtRest())
	r := new(committed.Hash)
	succeeds(t, e.Ask(r, nil, 0))
	return r.Hash
}

// overtaken is a store that another owner takes over, and appends to, just before the first owner
// reads the journal.
type overtaken struct {
	persistence.Store
	owned bool
}

func (o *overtaken) Acquire(ctx context.Context,
	c persistence.Claim) (persistence.Token, uint64, error) {
	o.owned = true
	return o.Store.Acquire(ctx, c)
}

func (o *overtaken) Read(ctx context.Context, after uint64, fn func(prev, next uint64,
	batch []byte) error) error {
	if !o.owned {
		return o.Store.Read(ctx, after, fn)
	}
	token, last, err := o.Store.Acquire(ctx, persistence.Claim{Owner: "another"})
	if err == nil {
		err = o.Append(ctx, token, last, last+1, []byte("of another"))
	}
	if err != nil {
		return err
	}
	return o.Store.Read(ctx, after, fn)
}

func TestAStartThatAnotherOwnerOvertakesIsFencedAndFindsNothingCorrupt(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		store := fresh(t)()
		defer store.Close()
		_, err := Start(context.Background(), testOptions(&overtaken{Store: store}))
		if !errors.Is(err, persistence.ErrFenced) || errors.Is(err, persistence.ErrCorrupt) {
			t.Errorf("the start ends with %v", err)
		}
	})
}
