package actors

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"exchange/actors/audit"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
	"exchange/persistence"
	"exchange/persistence/backup"
)

// tradeAtRandom has each account place and cancel orders, one after the other, while more returns
// true before each. It returns when all have ended. used is the highest nonce of them all.
func tradeAtRandom(t *testing.T, e *Engine, keys []*directory.Key, used uint64, more func() bool) {
	var wg sync.WaitGroup
	for i, key := range keys {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		wg.Go(func() {
			var open []uint64
			for nonce := used + 1; more(); nonce++ {
				var c *Command
				var err error
				if n := len(open); n > 0 && random.IntN(4) == 0 {
					c, err = e.Cancel(key, nonce, open[n-1])
					open = open[:n-1]
				} else {
					c, err = e.Place(key, nonce, &OrderRequest{Pair: e.Pairs()[random.IntN(2)],
						Side:   trading.Side(1 + random.IntN(2)),
						Price:  money.Price(1+random.Int64N(9)) * 1e8,
						Amount: money.Amount(1 + random.Int64N(1e8))})
				}
				if errors.Is(err, ErrPaused) { // an audit; the client tries again
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if r := c.Record(); c.Outcome() == Accepted && r.Order.Rests() && nonce%4 != 0 {
					open = append(open, r.Order.ID)
				}
				c.Free()
			}
		})
	}
	wg.Wait()
}

// tradeBeside runs accounts that trade during a test, until end. await returns when more than a
// number of records are released.
func tradeBeside(t *testing.T, e *Engine, keys []*directory.Key) (await func(records uint64),
	end func()) {
	var over atomic.Bool
	released := make(chan uint64) // closed after the last trade
	go func() {
		defer close(released)
		tradeAtRandom(t, e, keys, 0, func() bool {
			select {
			case released <- e.committed.Released():
			default:
			}
			return !over.Load()
		})
	}()
	await = func(records uint64) {
		for n := range released {
			if n > records {
				break
			}
		}
	}
	return await, func() {
		over.Store(true)
		await(math.MaxUint64)
	}
}

// backUp returns a backup of a running engine, and the backup's state.
func backUp(t *testing.T, e *Engine) ([]byte, *state.State) {
	t.Helper()
	image := must[[]byte](t)(e.Image(t.Context()))
	var b bytes.Buffer
	if err := backup.Write(t.Context(), &b, e.opts.Store, image, e.Authority(),
		func(int) {}); err != nil {
		t.Fatal(err)
	}
	must[any](t)(backup.Verify(bytes.NewReader(b.Bytes()), e.Authority()))
	return b.Bytes(), must[*state.State](t)(state.Decode(image))
}

// restoreInto fills an empty store from a backup.
func restoreInto(t *testing.T, target persistence.Store, b []byte, of *Engine) {
	t.Helper()
	opened, err := backup.Open(bytes.NewReader(b), of.Authority())
	succeeds(t, err)
	defer opened.Close()
	if _, err := opened.Load(t.Context(), target, func(int) {}); err != nil {
		t.Fatal(err)
	}
}

func auditClean(t *testing.T, e *Engine) *audit.Report {
	t.Helper()
	report, err := e.Audit(t.Context(), nil, func(uint64, uint64) {})
	if err != nil || len(report.Differences) > 0 {
		t.Fatalf("the audit: %+v, %v", report, err)
	}
	return report
}

func TestAnExchangeResumesFromABackupOfARunningOne(t *testing.T) {
	forEachStore(t, func(t *testing.T, from places) {
		forEachStore(t, func(t *testing.T, to places) {
			source := from(t)()
			defer source.Close()
			o := testOptions(source)
			o.Snapshot, o.Timing.Stall = committed.SnapshotPolicy{MinRecords: 100, MaxRecords: 200},
				time.Minute
			e := start(t, o)
			var keys []*directory.Key
			for i := range 4 {
				keys = append(keys, fund(t, e, fmt.Sprint("account-", i),
					map[string]money.Amount{"BTC": 50 * coin, "USD": 500 * coin,
						"EUR": 500 * coin}))
			}
			await, end := tradeBeside(t, e, keys)
			var b []byte
			var want *state.State
			for _, records := range []uint64{300, 600} {
				await(records)
				b, want = backUp(t, e)
			}
			await(want.Seq() + 100) // it continues meanwhile
			end()
			auditClean(t, e)

			at := to(t)
			target := at()
			restoreInto(t, target, b, e)
			o.Store = target
			restored := start(t, o)
			begins(t, restored, want)
			restoredIs(t, restored, want)
			sameTrades(t, restored, e, want)
			if report := auditClean(t, restored); report.Sequence != want.Seq() ||
				report.Wallets != len(want.Accounts()) {
				t.Errorf("audited were %+v, at %d", report, want.Seq())
			}
			goOn(t, restored, want)
			auditClean(t, restored)
			stop(t, restored)
			succeeds(t, target.Close())
			target = at()
			defer target.Close()
			o.Store = target
			restored = start(t, o)
			auditClean(t, restored)
			stop(t, restored)
			stop(t, e)
		})
	})
}

// begins applies the first record of the first start on a restored store: it names a history.
func begins(t *testing.T, e *Engine, s *state.State) {
	t.Helper()
	r := event.Record{Kind: event.KindHistory, History: e.history}
	e.probe(e.work.Fold, func() { r.TimeUs = e.committed.State().TimeUs() })
	if before := s.History(); before.IsZero() || before == e.history {
		t.Errorf("the history %v is restored, and is %v", before, e.history)
	}
	succeeds(t, s.Apply(&r, new(state.Effects)))
}

// restoredIs wants an engine's state to be the given one: books, balances, and everything else.
func restoredIs(t *testing.T, e *Engine, want *state.State) {
	t.Helper()
	r := new(committed.Hash)
	if err := e.Ask(r, nil, 0); err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	var is, was strings.Builder
	e.probe(e.work.Fold, func() { describe(&is, e.committed.State()) })
	describe(&was, want)
	if is.String() != was.String() {
		t.Fatalf("restored is\n%s\nwant\n%s", is.String(), was.String())
	}
	if r.Seq != want.Seq() || r.Hash != sha256.Sum256(want.AppendTo(nil)) {
		t.Fatalf("restored is another state at %d, want that at %d", r.Seq, want.Seq())
	}
	for _, p := range e.Pairs() {
		market := want.Pair(p.Number)
		for _, side := range [...]trading.Side{trading.Buy, trading.Sell} {
			wanted, n := market.Book.AppendOrders(nil, side, -1), 0
			var book []trading.Order
			e.probe(p.Book, func() {
				book = e.books[p.Number-1].orders.AppendOrders(nil, side,
					-1)
			})
			for i := range book {
				if i < len(wanted) && book[i] == wanted[i] {
					n++
				}
			}
			if n != len(wanted) || n != len(book) {
				t.Errorf("%s has %d %v orders, want %d", p.Name, len(book), side, len(wanted))
			}
		}
	}
	for _, a := range want.Accounts() {
		for _, h := range a.Wallet.Holdings() {
			r := &committed.Wallet{Account: a.ID}
			succeeds(t, e.Ask(r, nil, 0))
			for _, got := range r.Holdings {
				if got.Currency == h.Currency && got != h {
					t.Errorf("%s has %+v, want %+v", a.Name, got, h)
				}
			}
		}
	}
}

// sameTrades wants one engine's history in another, as far as a state reaches.
func sameTrades(t *testing.T, restored, source *Engine, until *state.State) {
	t.Helper()
	list := func(e *Engine) (all []persistence.Trade) {
		err := committed.History(e.Door).Trades(context.Background(),
			persistence.TradeQuery{Ascending: true}, func(trade *persistence.Trade) bool {
				if trade.ID <= until.Pair(trade.Pair).LastTrade() {
					all = append(all, *trade)
				}
				return true
			})
		succeeds(t, err)
		return all
	}
	got, want := list(restored), list(source)
	if len(want) == 0 {
		t.Fatal("there was no trade: this test proves nothing")
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%d trades are restored, want %d", len(got), len(want))
	}
}

// goOn trades on a restored exchange: numbers continue after the last ones, and used names and
// nonces stay used.
func goOn(t *testing.T, e *Engine, was *state.State) {
	t.Helper()
	key := e.Key([]byte("key-of-account-0"))
	order, _, _ := was.LastIDs()
	req := OrderRequest{Pair: e.Pairs()[0], Side: trading.Sell, Price: 1000e8, Amount: 1}
	c := must[*Command](t)(e.Place(key, was.KeyByName("key-of-account-0").Nonce, &req))
	if c.Outcome() != Refused {
		t.Errorf("a nonce of before the backup is taken again: %+v", c.Record())
	}
	c.Free()
	c = must[*Command](t)(e.Place(key, 1<<40, &req))
	if id := c.Record().Order.ID; c.Outcome() != Accepted || id <= order {
		t.Errorf("an order after the restore: %+v", c.Record())
	}
	c.Free()
	if a, err := e.Deposit("test", "account-1", "USD", 5*coin, "account-1USD"); err == nil {
		t.Errorf("the reference of a deposit is used again: %+v", a)
	}
	must[Admin](t)(e.Deposit("test", "account-1", "USD", 5*coin, "after the restore"))
}
