package actors

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
)

// Due work that an engine may not do yet, or a lot of it at once.

// The history lags so far that clients are refused. A switch that came due while no engine ran does
// not wait for that: it fires before its account is admitted.
func TestASwitchFiresAtAStartThoughTheHistoryLags(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newTimed(t, func(o *Options) { o.Limits.ProjectionLag = 100 })
		g.rest(g.sellAt(200e8, 1e5))
		for range 100 {
			g.rest(g.sell(1e5))
		}
		g.arm(60, CancelFilter{})
		g.ends("the history is written", g.asking(new(committed.Barrier), nil, 0), accepted)
		g.set(func() { g.applying = true })
		g.ends("a buy with many rows", g.placing(g.buy(100e8, 100*1e5)), accepted)
		lags := func() bool { return errors.Is(g.e.Writable(), ErrBehind) }
		eventually(t, "the history lags", lags)
		if _, _, err := g.Acquire(context.Background(),
			persistence.Claim{Owner: "another"}); err != nil { // no row is written any more
			t.Fatal(err)
		}
		g.later(time.Hour)
		g.crash()
		g.gate = newGate(g.at())
		g.set(func() { g.applying = true })
		g.o.Store = g.gate
		g.e = start(t, g.o)
		g.key = g.e.Key([]byte(g.key.Public))
		if !lags() {
			t.Error("the history does not lag at the start: this test proves nothing")
		}
		g.fired()
		g.noneOpen()
		g.end()
	})
}

// crowd is the number of orders due at once: a test with 100,000 takes long under the race
// detector.
func crowd(t *testing.T) int {
	if n, err := strconv.Atoi(os.Getenv("EXCHANGE_DUE_AT_ONCE")); err == nil {
		return n
	}
	return 5_000
}

// newCrowded starts an engine on a journal in which ten accounts have n open sells of the first
// pair at 100, which expire in an hour if ends is set.
func newCrowded(t *testing.T, n int, ends bool, change func(*Options)) *clocked {
	t.Helper()
	g := &clocked{gated: &gated{t: t, at: memoryPlaces(t)}}
	store := g.at()
	s := newScribe(t, store)
	s.accounts(10)
	r := event.Record{Kind: event.KindOrder, Pair: 1}
	if ends {
		r.Kind = event.KindInstructed
		r.Instructions.ExpireUs = time.Now().Add(time.Hour).UnixMicro()
	}
	for range n {
		s.orders++
		account := uint32(1)
		if ends {
			account += uint32(s.orders % 10)
		}
		r.Order = event.Order{ID: s.orders, Account: account, Key: account, Nonce: s.orders,
			Side: trading.Sell, Price: 100e8, Amount: 1e6, Remaining: 1e6}
		s.add(r)
	}
	s.flush()
	g.nonce = s.orders
	succeeds(t, store.Close())
	g.gate = newGate(g.at())
	g.o = testOptions(g.gate)
	g.o.Timing.Request, g.o.Timing.Stall, g.o.Timing.OwnerStale = time.Minute, time.Minute,
		time.Minute
	g.o.Limits.OpenOrdersPerAccount, g.o.Limits.OpenOrdersPerAccountAndBook = 2*n, 2*n
	g.o.ClockError = func() time.Duration { return time.Duration(g.ahead.Load()) }
	if change != nil {
		change(&g.o)
	}
	g.e = start(t, g.o)
	g.key = g.crowdKey(1)
	return g
}

func (g *gated) crowdKey(account int) *directory.Key {
	return g.e.Key([]byte(fmt.Sprintf("%032x", account)))
}

// by sends a command with another account's key of a crowd, until its book has it.
func (g *gated) by(account int, run func(key *directory.Key, nonce uint64) (*Command,
	error)) <-chan string {
	g.t.Helper()
	g.nonce++
	key, nonce := g.crowdKey(account), g.nonce
	done := g.begin(func() (*Command, error) { return run(key, nonce) })
	g.decided(key, 1)
	return done
}

// placesOf returns the indexes of the records of a kind in a list.
func placesOf(list []event.Record, kind event.Kind) (places []int) {
	for i := range list {
		if list[i].Kind == kind {
			places = append(places, i)
		}
	}
	return places
}

// A book expires 1,024 orders a turn. Cancels, and its other messages, come between the turns;
// orders that may trade come after them. Other pairs continue.
func TestOthersAreServedBetweenOrdersThatExpireAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := crowd(t)
		g := newCrowded(t, n, true, nil)
		bid := must[*Command](t)(g.e.Place(g.crowdKey(2), g.nonce+1, g.buy(1e8, 1e6)))
		g.nonce++
		pair := g.e.Pairs()[0]
		unblock := g.block(pair)
		g.note()
		g.later(2 * time.Hour)
		g.e.wakeBooks()
		cancel := g.by(2, func(key *directory.Key, nonce uint64) (*Command, error) {
			return g.e.Cancel(key, nonce, bid.Record().Order.ID)
		})
		order := g.by(3, func(key *directory.Key, nonce uint64) (*Command, error) {
			return g.e.Place(key, nonce, g.buy(100e8, 1e6))
		})
		left := 0
		probe := mailbox.NewProbe(func(actor.Actor) { left = g.e.books[0].expirySchedule.Len() })
		g.e.root.Send(pair.Book, probe)
		other := g.buy(1e8, 1e6)
		other.Pair = g.e.Pairs()[1]
		g.ends("an order of the other pair", g.placing(other), accepted)
		unblock()
		wantOutcome(t, "the cancel", <-cancel, accepted)
		wantOutcome(t, "the order", <-order, accepted)
		<-probe.Done
		if least := n - 3*expiredAtOnce*event.MaxExpired; left < least {
			t.Errorf("%d orders are left after two commands, want %d at least", left, least)
		}
		list := g.records()
		expired := placesOf(list, event.KindExpired)
		placed := placesOf(list, event.KindOrder) // that of the other pair, and the last one
		if c := placesOf(list, event.KindCancel); len(c) != 1 || c[0] > expired[2*expiredAtOnce] {
			t.Errorf("the cancel is record %v, the expiries are %v", c, expired)
		}
		if last := list[placed[1]].Order; len(placed) != 2 || placed[1] < expired[len(expired)-1] ||
			len(last.Trades) > 0 {
			t.Errorf("the orders are records %v, after all expiries: %+v", placed, last)
		}
		bid.Free()
		eventually(t, "all is released", g.e.quiet)
		ended(t, written(t, g.Store, 0)).counts(n, 0, 0)
		auditClean(t, g.e)
		g.end()
	})
}

// cutShort ends an engine whose appends are held: the store does not have them.
func (g *gated) cutShort() {
	g.t.Helper()
	g.set(func() { g.holding, g.appendErr = false, persistence.ErrFenced })
	<-g.e.Dead()
	g.e.Abandon()
	g.close()
}

func TestACrashAmidOrdersThatExpireAtOnceEndsEachOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := crowd(t)
		g := newCrowded(t, n, true, func(o *Options) { o.Limits.BatchBytes = 8 << 10 })
		g.set(func() { g.holding, g.passing, g.tries = true, 3, nil })
		g.later(2 * time.Hour)
		eventually(t, "some have expired", g.held)
		g.cutShort()
		store := g.at()
		if some := ended(t, written(t, store, 0)).expired; some == 0 || some == n {
			t.Errorf("%d of %d have expired before the crash: this test proves nothing", some, n)
		}
		store.Close()
		g.again()
		g.acts()
		eventually(t, "all have expired", func() bool { return g.openIn(0) == 0 && g.e.quiet() })
		ended(t, written(t, g.Store, 0)).counts(n, 0, 0)
		auditClean(t, g.e)
		g.end()
	})
}

// openIn returns the number of committed open orders in a pair.
func (g *gated) openIn(pair int) (n int) {
	g.e.probe(g.e.work.Fold, func() {
		n = g.e.committed.State().Pair(g.e.Pairs()[pair].Number).OpenOrders()
	})
	return n
}

// A switch has cancelAllWidth cancels in flight at once. Others' orders come between.
func TestOthersAreServedBetweenTheCancelsOfASwitch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := crowd(t)
		g := newCrowded(t, n, false, nil)
		g.arm(60, CancelFilter{})
		g.hold()
		g.later(time.Hour)
		eventually(t, "the first cancels are at the store", g.held)
		order := g.by(2, func(key *directory.Key, nonce uint64) (*Command, error) {
			return g.e.Place(key, nonce, g.sellAt(300e8, 1e6))
		})
		g.letGo()
		wantOutcome(t, "order", <-order, accepted)
		g.fired()
		eventually(t, "all is released", g.e.quiet)
		list := g.records()
		swept, placed := placesOf(list, event.KindSwitchCancel), placesOf(list, event.KindOrder)
		if len(placed) != 1 || len(swept) != n || placed[0] > swept[cancelAllWidth] {
			t.Errorf("the order is record %v among %d cancels, the first %d of which end with %d",
				placed, len(swept), cancelAllWidth, swept[cancelAllWidth])
		}
		ended(t, written(t, g.Store, 0)).counts(0, n, 1)
		g.end()
	})
}

func TestACrashAmidTheCancelsOfASwitchEndsEachOrderOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := crowd(t)
		g := newCrowded(t, n, false, nil)
		g.arm(60, CancelFilter{})
		g.set(func() { g.holding, g.passing, g.tries = true, 3, nil })
		g.later(time.Hour)
		eventually(t, "some are cancelled", g.held)
		g.cutShort()
		store := g.at()
		if some := ended(t, written(t, store, 0)).swept; some == 0 || some == n {
			t.Errorf("%d of %d are cancelled before the crash: this test proves nothing", some, n)
		}
		store.Close()
		g.again()
		g.fired()
		eventually(t, "all is released", g.e.quiet)
		if left := g.openIn(0); left != 0 {
			t.Errorf("%d orders are open", left)
		}
		ended(t, written(t, g.Store, 0)).counts(0, n, 1)
		auditClean(t, g.e)
		g.end()
	})
}

// A freeze takes effect while a trade is in flight that triggers the account's OCO half. The order
// can trade, its account can do nothing, and its end frees no money.
func TestAFreezeWhileAnOCOHalfIsTriggered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, end := range []string{"", "crash"} {
			g := newTimed(t, nil)
			fund(t, g.e, "ben", map[string]money.Amount{"BTC": coin, "USD": 1000 * coin})
			ben := &trader{g: g.gated, key: "key-of-ben"}
			half := g.rest(g.special(g.sellAt(150e8, coin), oco(90e8, 80e8)))
			expires := g.rest(g.ending(g.sellAt(200e8, coin), time.Hour))
			ben.places(g.buy(90e8, coin/2))
			g.hold()
			sell := g.begin(func() (*Command, error) {
				return g.e.Place(g.e.Key([]byte(ben.key)), 2, g.sellAt(90e8, coin/4))
			})
			eventually(t, "the other half is in flight", func() bool {
				return g.held() && g.e.busyBooks.Load() > 0
			})
			freeze := g.begin(func() (*Command, error) {
				_, err := g.e.Freeze("ops", "ann", true)
				return nil, err
			})
			g.letGo()
			wantOutcome(t, "the trade", <-sell, accepted)
			wantOutcome(t, "the freeze", <-freeze, accepted)
			eventually(t, "the other half rests with what it has not sold", func() bool {
				o, _ := g.find(half)
				return o.Remaining == coin-coin/4 && g.e.quiet()
			})
			if end != "" {
				g.restart(end)
			}
			g.wantFunds("frozen", "9.75/1.75", "1022.5/0")
			g.ends("its cancel", g.cancelling(half), refusedFor(event.RefusedFrozen))
			ben.nonce = 2
			if _, trades := ben.places(g.buy(80e8, coin/4)); len(trades) != 1 ||
				trades[0].Maker != half {
				t.Errorf("the buy trades %+v", trades)
			}
			g.later(24 * time.Hour)
			g.acts()
			eventually(t, "the other has expired", func() bool {
				return slices.Equal(g.openIDs(), []uint64{half}) && g.e.quiet()
			})
			if _, open := g.find(expires); open {
				t.Error("it is open")
			}
			g.wantFunds("in the end", "9.5/0.5", "1042.5/0")
			auditClean(t, g.e)
			g.end()
		}
	})
}
