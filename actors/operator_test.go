package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"exchange/actors/audit"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
	"exchange/persistence"
)

func place1(b *teller, pair int, side trading.Side, price money.Price,
	amount money.Amount) string {
	c, err := b.e.Place(b.key, b.next(),
		&OrderRequest{Pair: b.e.Pairs()[pair], Side: side, Price: price, Amount: amount})
	return outcomeOf(c, err)
}

func TestEveryActionOfAnOperatorIsLogged(t *testing.T) {
	onTeller(t, nil, func(t *testing.T, b *teller) {
		b.expect(place1(b, 0, trading.Sell, 100e8, coin), "accepted")
		b.expect(place1(b, 1, trading.Sell, 100e8, coin), "accepted")
		for id := uint64(1); id <= 2; id++ {
			b.ask(coin)
			b.confirm(id, codeOf(b.t, b.e, id))
		}
		must[*Command](t)(b.e.OperatorCancel("eve", 1)).Free()
		if orders := must[[]uint64](t)(
			b.e.OperatorCancelAll(context.Background(), "eve", "",
				"BTC_EUR")); fmt.Sprint(orders) != "[3]" && len(orders) != 1 {
			t.Errorf("cancelled are %v", orders)
		}
		must[*Command](t)(b.e.SetWithdrawalStatus("eve", 1, event.WithdrawalApproved, "")).Free()
		must[Admin](t)(b.e.Halt("eve", "BTC_USD", true))
		must[Admin](t)(b.e.Freeze("eve", "ann", true))
		must[*Command](t)(b.e.ApproveDespiteFreeze("eve", 2, "")).Free()
		must[Admin](t)(b.e.SetMaintenance(context.Background(), "eve", maintained))
		must[Admin](t)(b.e.SetFees("eve", "ann", "BTC_USD", &state.FeeRates{Taker: 1}))
		must[Admin](t)(b.e.RevokeKey("eve", "key-of-ann"))
		succeeds(t, b.e.Ask(new(committed.Barrier), nil, 0))
		var got []string
		err := committed.History(b.e.Door).Actions(context.Background(),
			persistence.ActionQuery{}, func(a *persistence.Action) bool {
				got = append(got, a.Operator+" "+a.What)
				return true
			})
		succeeds(t, err)
		slices.Reverse(got)
		for i, want := range []string{"test opened account ann (ann@example.org)",
			"test made key key-of-ann for account ann", "test deposit 1: 10 BTC to account ann",
			"eve cancelled order 1 of account ann in BTC_USD",
			"eve cancelled order 2 of account ann in BTC_EUR",
			"eve withdraw 1 (1 BTC of account ann) is approved",
			"eve trading on BTC_USD halted: true", "eve account ann frozen: true",
			"eve withdraw 2 (1 BTC of account ann) is approved, though the account is frozen",
			"eve maintenance: true", "eve opened account fees",
			"eve fees of account ann in BTC_USD", "eve revoked key key-of-ann"} {
			if i >= len(got) || !strings.HasPrefix(got[i], want) {
				t.Errorf("action %d is not %q: %q", i, want, got)
				break
			}
		}
	})
}

func TestAnAuditUnderLoadIsClean(t *testing.T) {
	onTeller(t, func(o *Options) {
		// Rarely, or an audit on a slow machine is overtaken by them.
		o.Snapshot = committed.SnapshotPolicy{MinRecords: 50, MaxRecords: 1e6,
			MinInterval: 2 * time.Second}
		o.Timing.Projection, o.Timing.Stall = time.Millisecond, time.Minute
	}, func(t *testing.T, b *teller) {
		stopping := make(chan struct{})
		// The orders beside each audit are bounded. Otherwise their history would grow faster than
		// a slow machine audits it.
		allowed := make(chan struct{}, 2_000)
		var busy sync.WaitGroup
		for i := range 4 {
			key := fund(t, b.e, fmt.Sprint("busy-", i),
				map[string]money.Amount{"BTC": 100 * coin, "USD": 10_000 * coin})
			busy.Go(func() {
				for nonce := uint64(1); ; nonce++ {
					select {
					case <-stopping:
						return
					case <-allowed:
					}
					side := trading.Side(1 + (nonce+uint64(i))%2)
					c, err := b.e.Place(key, 2*nonce,
						&OrderRequest{Pair: b.e.Pairs()[nonce%2], Side: side, Price: 100e8,
							Amount: coin / 100})
					if err == nil {
						c.Free()
					} else if !errors.Is(err, ErrPaused) {
						t.Errorf("an order: %v", err)
						return
					}
					r := new(committed.Wallet)
					if err := b.e.Ask(r, key, 2*nonce+1); err != nil {
						t.Errorf("a read: %v", err)
						return
					}
				}
			})
		}
		for clean := 0; clean < 5; clean++ {
			for len(allowed) < cap(allowed) {
				allowed <- struct{}{}
			}
			report, err := b.e.Audit(context.Background(), nil, func(uint64, uint64) {})
			if errors.Is(err, audit.ErrOvertaken) {
				clean--
				continue
			}
			if err != nil || len(report.Differences) > 0 {
				t.Errorf("%+v, %v", report, err)
			}
		}
		close(stopping)
		busy.Wait()
	})
}

// The store bounds texts: a longer one must not stop the projections, and so the engine.
func TestAnActionThatTakesManyWordsIsCut(t *testing.T) {
	onTeller(t, nil, func(t *testing.T, b *teller) {
		var from []string
		for i := range 100 { // the maximum number and length
			from = append(from, fmt.Sprintf("ffff:ffff:ffff:ffff:ffff:ffff:ffff:f%03x", 0x100+i))
		}
		must[Admin](t)(b.e.CreateKey("eve", "ann", "key-from-everywhere", "secret",
			event.AllPermissions, from))
		newest := func() (what string) {
			t.Helper()
			if err := b.e.Ask(new(committed.Barrier), nil, 0); err != nil {
				t.Fatalf("%v, the engine: %v", err, b.e.Err())
			}
			if err := committed.History(b.e.Door).Actions(context.Background(),
				persistence.ActionQuery{}, func(a *persistence.Action) bool {
					what = a.What
					return false
				}); err != nil {
				t.Fatal(err)
			}
			return what
		}
		if what := newest(); len(what) != 4096 ||
			!strings.HasPrefix(what, "made key key-from-everywhere for account ann") ||
			!strings.HasSuffix(what, "...") {
			t.Errorf("%d bytes: %s", len(what), what)
		}
		b.restart()
		if n := len(b.e.Key([]byte("key-from-everywhere")).Allow); n != 100 {
			t.Errorf("the key has %d addresses", n)
		}
		newest()
	})
}

func TestFeesThatCannotBeSetOpenNoAccount(t *testing.T) {
	onTeller(t, nil, func(t *testing.T, b *teller) {
		own := &state.FeeRates{Maker: 1, Taker: 2}
		for _, target := range [][2]string{{"nobody", "BTC_USD"}, {"ann", "BTC_XYZ"}} {
			var refused *RequestError
			if _, err := b.e.SetFees("ops", target[0], target[1], own); !errors.As(err, &refused) {
				t.Errorf("fees of %v: %v", target, err)
			}
		}
		// nothing to be paid
		must[Admin](t)(b.e.SetFees("ops", "ann", "BTC_USD", &state.FeeRates{}))
		r := &committed.Accounts{Limit: 10}
		if err := b.e.Ask(r, nil, 0); err != nil || len(r.List) != 1 {
			t.Errorf("there are accounts %+v, %v", r.List, err)
		}
		must[Admin](t)(b.e.SetFees("ops", "ann", "BTC_USD", own))
		if a, err := b.e.CreateAccount("ops", directory.FeeAccount, ""); err == nil {
			t.Errorf("there was no account for fees: %+v", a)
		}
	})
}

// Each compared place is changed once, and the audit names it.
func TestAnAuditNamesEachPlaceThatDiffersInMemory(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		one := ledger.Change{Currency: 1, Credit: money.Amount(1).Balance()}
		f := func(change func(b *teller), want ...string) {
			t.Helper()
			b := newTeller(t, fresh(t), nil)
			b.expect(place1(b, 0, trading.Sell, 100e8, coin), "accepted")
			b.expect(b.ask(2*coin), "withdraw 1")
			b.code(1)
			change(b)
			report, err := b.e.Audit(context.Background(), nil, func(uint64, uint64) {})
			succeeds(t, err)
			for _, text := range want {
				if !slices.ContainsFunc(report.Differences, func(d string) bool {
					return strings.Contains(d, text)
				}) {
					t.Errorf("the audit finds %q, want %q", report.Differences, text)
				}
			}
			if len(want) == 0 && len(report.Differences) > 0 {
				t.Errorf("the audit finds %q", report.Differences)
			}
			b.e.Abandon() // no orderly end is possible after that
			succeeds(t, b.store.Close())
		}
		decided := func(change func(w *wallet)) func(*teller) {
			return func(b *teller) { b.e.probeWallet(b.key.Account, change) }
		}
		committed := func(change func(s *state.State)) func(*teller) {
			return func(b *teller) {
				b.e.probe(b.e.work.Fold, func() { change(b.e.committed.State()) })
			}
		}
		imaged := func(change func(s *state.State)) func(*teller) {
			return func(b *teller) {
				b.e.probe(b.e.work.Imager, func() { change(b.e.committed.Imager().State()) })
			}
		}
		f(func(*teller) {})
		f(decided(func(w *wallet) { w.balances.Apply(&one) }), "account ann: its wallet has [")
		f(decided(func(w *wallet) { w.nonces[0].greatest-- }),
			"account ann: its wallet has taken nonce 1 of key number 1, committed is 2")
		f(decided(func(w *wallet) { w.pendingWithdrawals[1].Tries++ }),
			"account ann: its wallet has other pending withdrawals than are committed")
		f(decided(func(w *wallet) { w.open.Remove(1) }),
			"account ann: of its open orders its wallet has nothing where committed is order")
		f(func(b *teller) {
			b.e.probe(b.e.Pairs()[0].Book, func() { b.e.books[0].orders.Cancel(1) })
		},
			"BTC_USD: the working book has nothing where the committed one has {ID:1 Account:1 ")
		f(committed(func(s *state.State) { s.Account(1).Wallet.Apply(&one) }),
			"account ann: its wallet has [", "the states differ in account ann")
		f(committed(func(s *state.State) { s.Pair(1).Market.UpdateID++ }),
			"the states differ in the market of BTC_USD")
		f(imaged(func(s *state.State) { s.Account(1).Wallet.Apply(&one) }),
			"the states differ in account ann",
			"account ann, BTC: committed are 10.00000001 with 3 reserved, replayed 10 with 3",
			"BTC: all balances are 10.00000001, deposits 10 - withdrawals 0")
		f(imaged(func(s *state.State) { s.Pair(1).Market.UpdateID++ }),
			"the states differ in the market of BTC_USD",
			"the replayed state differs from the committed one, in something else than")
	})
}
