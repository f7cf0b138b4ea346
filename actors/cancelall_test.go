package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
)

// block keeps a pair's book from its next messages until the returned function is called.
func (g *gated) block(pair *directory.Pair) (unblock func()) {
	blocked, goOn := make(chan struct{}), make(chan struct{})
	go g.e.probe(pair.Book, func() { close(blocked); <-goOn })
	<-blocked
	return func() { close(goOn) }
}

// cancellingAll begins to cancel all orders of the account, and sends the orders at the end.
func (g *gated) cancellingAll() <-chan []uint64 {
	g.nonce++
	nonce, done := g.nonce, make(chan []uint64, 1)
	go func() {
		c, err := g.e.CancelAll(g.key, nonce, CancelFilter{})
		if err != nil {
			g.t.Error(err)
			done <- nil
			return
		}
		done <- slices.Clone(c.CancelledOrders())
		c.Free()
	}()
	return done
}

// queued waits until n commands wait in the account's wallet.
func (g *gated) queued(n int) {
	g.t.Helper()
	eventually(g.t, fmt.Sprint(n, " commands wait"), func() (so bool) {
		g.e.probeWallet(g.key.Account, func(w *wallet) {
			so = w.flight != nil && w.queue.Len() == n
		})
		return so
	})
}

// sweeps waits until a cancel-all of the account is under way.
func (g *gated) sweeps() {
	g.t.Helper()
	eventually(g.t, "the cancel-all is under way", func() (so bool) {
		g.e.probeWallet(g.key.Account, func(w *wallet) { so = w.cancellingAll != nil })
		return so
	})
}

// records returns the records that were appended since the gate began to hold.
func (g *gated) records() (list []event.Record) {
	g.t.Helper()
	for _, b := range g.batches() {
		for rest := b.Records; len(rest) > 0; {
			var r event.Record
			var err error
			if rest, err = r.Decode(rest); err != nil {
				g.t.Fatal(err)
			}
			list = append(list, r)
		}
	}
	return list
}

func TestConcurrentCancelAllsMakeAtMostOneRecordPerOrder(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		const orders, commands = 2*cancelAllWidth + 10, 50
		for range orders {
			g.rest(g.sell(1e5))
		}
		g.hold()
		first := g.begin(g.placing(g.sell(1e5))) // so that the cancel-alls gather
		g.inMailbox(1)
		var all []<-chan []uint64
		for i := range commands {
			all = append(all, g.cancellingAll())
			g.queued(i + 1)
		}
		g.letGo()
		wantOutcome(t, "first", <-first, accepted)
		cancelled := 0
		for _, done := range all {
			cancelled += len(<-done)
		}
		if records := g.records(); cancelled != orders+1 || len(records) != 1+orders+1+commands-1 {
			t.Errorf("%d of %d orders are cancelled, with %d records for %d cancel-alls", cancelled,
				orders+1, len(records), commands)
		}
	})
}

func TestACancelAllCancelsTheOrdersSentBeforeItAlone(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		unblock := g.block(g.e.Pairs()[0])
		before := g.begin(g.placing(g.sell(1e5)))
		g.inMailbox(1)
		one := g.cancellingAll()
		g.queued(1)
		other := g.sell(1e5)
		other.Pair = g.e.Pairs()[1] // its book is not blocked
		after := g.begin(g.placing(other))
		g.queued(2)
		silent(t, "an order after a cancel-all", after)
		unblock()
		wantOutcome(t, "before", <-before, accepted)
		wantOutcome(t, "after", <-after, accepted)
		first := <-one

		unblock = g.block(g.e.Pairs()[1])
		two := g.cancellingAll()
		g.sweeps()
		last := g.rest(g.sell(1e5))
		three := g.cancellingAll()
		g.queued(1)
		unblock()
		second, third := <-two, <-three
		if len(first) != 1 || len(second) != 1 || first[0] >= second[0] ||
			!slices.Equal(third, []uint64{last}) {
			t.Errorf("cancelled are %v, %v and %v, the last order is %d", first, second, third,
				last)
		}
	})
}

func TestACancelAllCancelsAnEarlierOrderThatWaited(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		one, two := g.named("mine"), g.named("mine")
		two.Pair = g.e.Pairs()[1]
		g.hold()
		halt := g.begin(func() (*Command, error) {
			_, err := g.e.Halt("ops", g.e.Pairs()[0].Name, true)
			return nil, err
		})
		eventually(t, "the halt is at the store", g.held)
		first := g.begin(g.placing(one))
		g.inMailbox(1)
		second := g.begin(g.placing(two)) // waits for the first, which has its client order id
		g.queued(1)
		all := g.cancellingAll()
		g.queued(2)
		g.letGo()
		wantOutcome(t, "halt", <-halt, accepted)
		wantOutcome(t, "first", <-first, refusedFor(event.RefusedHalted))
		wantOutcome(t, "second", <-second, accepted)
		if list := <-all; len(list) != 1 || g.open("ann") != 0 {
			t.Errorf("cancelled are %v, open are %d", list, g.open("ann"))
		}
	})
}

func TestACancelAllSkipsOrdersClosedMeanwhile(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		ben := fund(t, g.e, "ben", map[string]money.Amount{"USD": 1e6 * coin})
		for range cancelAllWidth {
			w := g.sell(1e5)
			w.Pair = g.e.Pairs()[1]
			g.rest(w)
		}
		for range 10 {
			g.rest(g.sell(1e5))
		}
		unblock := g.block(g.e.Pairs()[1])
		all := g.cancellingAll() // the maximum in flight is with that book
		g.sweeps()
		must[*Command](t)(g.e.Place(ben, 1, g.buy(100e8, 10*1e5))).Free()
		g.hold()
		g.letGo()
		unblock()
		if list := <-all; len(list) != cancelAllWidth {
			t.Errorf("%d orders are cancelled", len(list))
		}
		if records := g.records(); len(records) != cancelAllWidth {
			t.Errorf("it took %d records for %d orders that were open", len(records),
				cancelAllWidth)
		}
	})
}

// resting places n resting orders of a new account, in the pair with the number pair + 1.
func (g *gated) resting(name string, pair, n int) *directory.Key {
	g.t.Helper()
	key := fund(g.t, g.e, name, map[string]money.Amount{"BTC": coin})
	for i := range n {
		w := g.sell(1e5)
		w.Pair = g.e.Pairs()[pair]
		must[*Command](g.t)(g.e.Place(key, uint64(i+1), w)).Free()
	}
	return key
}

func (g *gated) open(name string) int {
	g.t.Helper()
	r := &committed.Account{Name: name}
	succeeds(g.t, g.e.Ask(r, nil, 0))
	return r.Open
}

func TestAnOperatorsCancelAllHasNoTimeLimit(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		var accounts []uint32
		for i := range 3 * accountsAtOnce {
			accounts = append(accounts, g.resting(fmt.Sprint("account-", i), 0, 3).Account.ID)
		}
		g.e.setPatience(0) // no other client waits
		orders, err := g.e.cancelAllOf(context.Background(), "ops", accounts, nil)
		g.e.setPatience(g.o.Timing.Request)
		if err != nil || len(orders) != 9*accountsAtOnce || !slices.IsSorted(orders) {
			t.Errorf("%d orders are cancelled, %v", len(orders), err)
		}
	})
}

func TestAnOperatorsCancelAllContinuesAfterAFailedAccount(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		g.resting("slow", 1, 2)
		others := []*directory.Key{g.resting("single", 0, 1),
			g.resting("quick", 0, 2*accountsAtOnce)}
		accounts := []uint32{2, 3, 4}
		unblock := g.block(g.e.Pairs()[1])
		ctx, cancel := context.WithCancel(context.Background())
		type end struct {
			orders []uint64
			err    error
		}
		done := make(chan end, 1)
		go func() {
			orders, err := g.e.cancelAllOf(ctx, "ops", accounts, nil)
			done <- end{orders, err}
		}()
		eventually(t, "the others' orders are cancelled", func() bool {
			return g.open("single")+g.open("quick") == 0
		})
		for _, key := range others {
			eventually(t, "and that is answered", func() (so bool) {
				g.e.probeWallet(key.Account, func(w *wallet) { so = w.cancellingAll == nil })
				return so
			})
		}
		cancel()
		got := <-done
		if len(got.orders) != 1+2*accountsAtOnce || !errors.Is(got.err, committed.ErrTimeout) ||
			!strings.Contains(got.err.Error(), "account slow: ") ||
			strings.Contains(got.err.Error(), "quick") {
			t.Errorf("%d orders are cancelled, %v", len(got.orders), got.err)
		}
		unblock()
		eventually(t, "the rest is cancelled", func() bool { return g.open("slow") == 0 })
	})
}

func TestOfManyFailuresSomeAreNamed(t *testing.T) {
	var many []error
	for i := range 100 {
		many = append(many, fmt.Errorf("account %d: %w", i, ErrBusy))
	}
	err := joined(many)
	if !errors.Is(err, ErrBusy) || errors.Is(err, committed.ErrTimeout) ||
		strings.Count(err.Error(), "account") != maxFailures ||
		!strings.Contains(err.Error(), "and 90 more") {
		t.Error(err)
	}
	if err := joined(append(many[:3:3], committed.ErrTimeout)); errors.Is(err, ErrBusy) ||
		!errors.Is(err, committed.ErrTimeout) {
		t.Errorf("when of one it is not known: %v", err)
	}
	if joined(nil) != nil {
		t.Error("of none there is one")
	}
}
