package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"exchange/actors"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
	"exchange/persistence/memory"
)

// Shared by the tests of nodes: options, accounts, and a clock that advances when all wait.

// testOptions returns the options of an engine on a store, with two pairs of three currencies.
func testOptions(store persistence.Store) actors.Options {
	sealer, err := seal.New(make([]byte, seal.KeyBytes))
	if err != nil {
		panic(err)
	}
	o := actors.Options{Store: store, Owner: "test", Limits: actors.DefaultLimits,
		Timing: actors.DefaultTiming, Snapshot: actors.DefaultSnapshot,
		Withdrawal: actors.DefaultWithdrawal, Scheduler: goroutines{},
		Sealer:      func(bool) (*seal.Sealer, error) { return sealer, nil },
		KeyMaterial: func(secret []byte) any { return string(secret) },
		Mail: func(context.Context, *actors.Mail) error {
			return errors.New("the mail server takes nothing")
		},
		Exit: func(code int) { panic(fmt.Sprintf("exit %d", code)) },
		Log:  slog.New(slog.NewTextHandler(io.Discard, nil))}
	if os.Getenv("EXCHANGE_TEST_LOG") != "" {
		o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	for _, code := range []string{"BTC", "USD", "EUR"} {
		o.Currencies = append(o.Currencies, directory.Currency{Code: code})
	}
	for _, quote := range []string{"USD", "EUR"} {
		o.Pairs = append(o.Pairs, directory.PairRules{Name: "BTC_" + quote, Base: "BTC",
			Quote: quote, PricePrecision: 2, AmountPrecision: 8, MinimumOrderSize: 1,
			MaximumOrderSize: money.MaxAmount})
	}
	return o
}

// goroutines is a Scheduler whose goroutines end: no mailbox of another bubble gets one.
type goroutines struct{ mailbox.Runners }

func (goroutines) Schedule(m *mailbox.Mailbox) { go m.Run() }

// bubble runs a test with a clock of its own, which advances when all its goroutines wait. Pools
// are emptied before and after: their timers and channels belong to one bubble.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	actors.EmptyPools()
	t.Cleanup(actors.EmptyPools)
	synctest.Test(t, test)
}

// stores make an empty location for each kind of store, and return a function that opens the store
// there. A proof has others beside that in memory.
var stores = map[string]func(testing.TB) func() persistence.Store{
	"memory": func(testing.TB) func() persistence.Store {
		disk := memory.NewDisk()
		return func() persistence.Store { return memory.Open(disk, persistence.Retention{}) }
	},
}

// succeeds ends a test whose call has failed.
func succeeds(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must returns the value of a call that must not fail.
func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		succeeds(t, err)
		return v
	}
}

// eventually waits for a condition that other goroutines of the bubble bring about.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for synctest.Wait(); !condition(); synctest.Wait() {
		if time.Now().After(deadline) {
			t.Fatalf("it did not happen: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

const coin = money.Amount(1e8)

// fund opens an account with a key and deposits.
func fund(t testing.TB, e *actors.Engine, name string,
	amounts map[string]money.Amount) *directory.Key {
	t.Helper()
	must[actors.Admin](t)(e.CreateAccount("test", name, ""))
	must[actors.Admin](t)(e.CreateKey("test", name, "key-of-"+name, "secret",
		event.AllPermissions, nil))
	for currency, amount := range amounts {
		must[actors.Admin](t)(e.Deposit("test", name, currency, amount, name+currency))
	}
	return e.Key([]byte("key-of-" + name))
}

// orderOf returns a request for an order in the first pair.
func orderOf(e *actors.Engine, side trading.Side, price money.Price,
	amount money.Amount) *actors.OrderRequest {
	return &actors.OrderRequest{Pair: e.Pair([]byte("BTC_USD")), Side: side, Price: price,
		Amount: amount}
}

// An openGate lets every command through.
type openGate struct{}

func (openGate) Pass(give func()) bool {
	give()
	return true
}
