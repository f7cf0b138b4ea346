package actors

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/trading"
	"exchange/persistence"
)

// named is a sell order of ann's with a client order id.
func (g *gated) named(id string) *OrderRequest {
	g.t.Helper()
	w := g.sell(coin)
	w.ClientID = must[event.ClientID](g.t)(event.NewClientID(id))
	return w
}

// closedOrder places an order with a client order id, and cancels it.
func (g *gated) closedOrder(id string) (order uint64) {
	g.t.Helper()
	order = g.rest(g.named(id))
	g.ends("the cancel of "+id, g.cancelling(order), accepted)
	return order
}

// taken wants an order with a client order id to be refused, with the order that has it.
func (g *gated) taken(when, id string, order uint64) {
	g.t.Helper()
	c, err := g.placing(g.named(id))()
	if err != nil {
		g.t.Fatalf("%s: %v", when, err)
	}
	defer c.Free()
	if c.Outcome() != Refused || c.Record().Refusal.Reason != event.RefusedClientID ||
		c.TakenBy() != order {
		g.t.Errorf("%s: an order with the id %s of order %d is %v, taken by order %d", when, id,
			order, c.Record(), c.TakenBy())
	}
}

// remembers returns how many closed orders ann's wallet and the committed side remember.
func (g *gated) remembers() (settled, projecting int) {
	g.t.Helper()
	g.e.probeWallet(g.key.Account, func(w *wallet) {
		if w.closed != nil {
			settled = w.closed.line.Len()
		}
	})
	return settled, committed.NamedOrders(g.e.committed)
}

// filled waits for the filter of an engine.
func (g *gated) filled() {
	g.t.Helper()
	eventually(g.t, "the filter is filled", func() bool { return committed.Filled(g.e.committed) })
}

// An id is taken while its order is open, while its close is in memory only, and when it is in the
// store only, also after a crash; and nothing of it stays in memory.
func TestAClientOrderIDIsTakenForItsHours(t *testing.T) {
	for _, filter := range []int{0, 64 << 10} {
		t.Run(fmt.Sprint("filter of ", filter), func(t *testing.T) {
			onEachStore(t, func(t *testing.T, fresh places) {
				isTakenForItsHours(t, fresh, filter)
			})
		})
	}
}

func isTakenForItsHours(t *testing.T, fresh places, filter int) {
	var late atomic.Int64 // how much later it is for the engine, whose ticker looks, too
	g := newGated(t, fresh, func(o *Options) {
		o.Limits.ClientIDFilter = filter
		o.ClockError = func() time.Duration { return time.Duration(late.Load()) }
	})
	if filter > 0 {
		g.filled()
	}
	open := g.rest(g.named("open"))
	projected := g.closedOrder("projected")
	g.projected()
	eventually(t, "closed orders are forgotten", func() bool {
		settled, projecting := g.remembers()
		return settled == 0 && projecting == 0
	})
	g.set(func() { g.applying = true })
	fresher := g.closedOrder("fresher")
	g.ends("a buy", g.placing(g.buy(100e8, coin)), accepted) // it fills the open order
	eventually(t, "the wallet has forgotten", func() bool {
		settled, projecting := g.remembers()
		return settled == 0 && projecting == 2
	})
	for _, when := range []string{"in the first engine", "after a crash"} {
		g.taken(when, "open", open)
		g.taken(when, "projected", projected)
		g.taken(when, "fresher", fresher)
		g.ends(when+", a new one", g.placing(g.named("new-"+when[:2])), accepted)
		if when == "in the first engine" {
			g.crash()
			g.again()
		}
	}
	resting := g.rest(g.named("resting"))
	late.Store(int64(25 * time.Hour))
	if again := g.rest(g.named("projected")); again == projected {
		t.Error("the order is the first one")
	}
	g.taken("after a day", "resting", resting)
	g.ends("the cancel of it", g.cancelling(resting), accepted)
	g.ends("an order with the id of one that rested for a day", g.placing(g.named("resting")),
		accepted)
	g.end()
}

// A look that is slow does not let an order pass that was placed and closed meanwhile.
func TestAnOrderThatClosedDuringALookHasItsClientOrderID(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, func(o *Options) { o.Limits.ClientIDFilter = 0 })
		looked := make(chan struct{})
		g.set(func() { g.nextName = looked })
		mine := g.named("mine")
		slow := g.begin(func() (*Command, error) { return g.e.Place(g.key, 1000, mine) })
		eventually(t, "the first look is at the store", func() bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.names == 1
		})
		quick := g.closedOrder("mine")
		g.projected()
		for range 20 { // the rounds would go on, if the look did not hold them
			g.closedOrder(fmt.Sprint("other-", g.nonce))
			g.e.forget()
		}
		if settled, _ := g.remembers(); settled != 21 {
			t.Errorf("the wallet remembers %d of 21 orders that closed since the look", settled)
		}
		close(looked)
		if got := <-slow; got != refusedFor(event.RefusedClientID) {
			t.Errorf("an order with the id of order %d: %s", quick, got)
		}
		g.nonce = 1000
		eventually(t, "the wallet forgets", func() bool {
			settled, _ := g.remembers()
			return settled == 0
		})
		g.end()
	})
}

// A store that does not say whether an id is taken leaves nothing done: no record, no nonce.
func TestAnOrderIsNotPlacedWhenItsClientOrderIDCannotBeLookedUp(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, func(o *Options) { o.Limits.ClientIDFilter = 0 })
		before := g.e.committed.Released()
		g.nonce++
		nonce := g.nonce
		for _, err := range []error{errors.New("away"), persistence.ErrGap,
			persistence.ErrCorrupt} {
			g.set(func() { g.nameErr = err })
			c, got := g.e.Place(g.key, nonce, g.named("mine"))
			var history *committed.HistoryError
			if c != nil || !errors.Is(got, err) || !errors.As(got, &history) {
				t.Errorf("%v: %v", err, got)
			}
		}
		if n := g.e.committed.Released(); n != before || g.e.inFlight.Load() != 0 {
			t.Errorf("%d records were made, %d commands are in flight", n-before,
				g.e.inFlight.Load())
		}
		g.set(func() { g.nameErr = nil })
		c := must[*Command](t)(g.e.Place(g.key, nonce, g.named("mine")))
		if c.Outcome() != Accepted {
			t.Errorf("with the same nonce: %+v", c.Record())
		}
		c.Free()
		g.end()
	})
}

// The list of an id has its open order, orders that the store does not have yet, and the others.
func TestTheOrdersOfAClientOrderIDAreFoundEverywhere(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		var late atomic.Int64 // as in isTakenForItsHours
		g := newGated(t, fresh, func(o *Options) {
			o.ClockError = func() time.Duration { return time.Duration(late.Load()) }
		})
		var want []uint64
		list := func(when string, status uint8, want ...uint64) {
			t.Helper()
			g.nonce++
			q := committed.OrderQuery{Limit: 10, Status: status}
			q.ClientID = g.named("mine").ClientID
			l, err := g.e.Orders(committed.Asker{Key: g.key, Nonce: g.nonce}, q)
			if err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			defer l.Free()
			var got []uint64
			for i := range l.Rows {
				got = append(got, l.Rows[i].ID)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s, of status %d: orders %v, want %v", when, status, got, want)
			}
		}
		next := func(id uint64) { want = append([]uint64{id}, want...) }
		list("at first", 0)
		next(g.closedOrder("mine"))
		list("one that closed", 0, want...)
		g.projected()
		list("one in the store", 0, want...)
		g.set(func() { g.applying = true })
		late.Add(int64(25 * time.Hour))
		next(g.closedOrder("mine"))
		late.Add(int64(25 * time.Hour))
		next(g.closedOrder("mine"))
		list("one in the store, two in memory", 0, want...)
		late.Add(int64(25 * time.Hour))
		open := g.rest(g.named("mine"))
		list("none that is done", trading.StatusDone)
		list("the cancelled ones", trading.StatusCancelled, want...)
		list("the open one", trading.StatusActive, open)
		next(open)
		list("one is open", 0, want...)
		g.end()
	})
}

func TestRoundsKnowTheOldestLookInFlight(t *testing.T) {
	var r rounds
	r.begin(10)
	known := func(want uint64) {
		t.Helper()
		if got := r.known.Load(); got != want {
			t.Errorf("all looks know the records up to %d, want %d", got, want)
		}
	}
	first := r.join() // it knows 10
	r.next(20)
	known(10)
	second := r.join() // it knows 20
	r.next(30)         // the first is in flight
	known(10)
	third := r.join()
	r.leave(first)
	r.next(40)
	known(20)
	r.next(50) // the second and the third are in flight
	known(20)
	r.leave(second)
	r.next(60)
	known(20)
	r.leave(third)
	r.next(70)
	known(40)
	r.next(80)
	known(70)
}
