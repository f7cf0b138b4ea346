package actors

import (
	"testing"

	"exchange/core/event"
	"exchange/core/money"
)

// batchOf sends commands as one batch, under the key's next nonce, and returns each outcome.
func (g *gated) batchOf(makes ...func(nonce uint64) *Command) <-chan []string {
	g.nonce++
	list, done := make([]*Command, len(makes)), make(chan []string, 1)
	for i, one := range makes {
		list[i] = one(g.nonce)
	}
	go func() {
		errs, said := make([]error, len(list)), make([]string, len(list))
		err := g.e.DoAll(list, errs)
		for i, c := range list {
			switch {
			case err != nil:
				said[i] = "all: " + err.Error()
			case c == nil:
				said[i] = errs[i].Error()
			case c.Outcome() == Accepted:
				said[i] = accepted
			default:
				said[i] = refusedFor(c.Record().Refusal.Reason)
			}
			if c != nil {
				c.Free()
			}
		}
		done <- said
	}()
	return done
}

func (g *gated) order(id string) func(nonce uint64) *Command {
	w := g.sell(1e5)
	if id != "" {
		w = g.named(id)
		w.Amount = 1e5
	}
	return func(nonce uint64) *Command { return NewOrder(g.key, nonce, w) }
}

func (g *gated) cancelOf(id string) func(nonce uint64) *Command {
	name := must[event.ClientID](g.t)(event.NewClientID(id))
	return func(nonce uint64) *Command { return NewCancel(g.key, nonce, 0, name) }
}

func (g *gated) each(what string, done <-chan []string, want ...string) {
	g.t.Helper()
	got := <-done
	if len(got) != len(want) {
		g.t.Fatalf("%s: %q", what, got)
	}
	for i := range got {
		if got[i] != want[i] {
			g.t.Errorf("%s, command %d: %s, want %s", what, i, got[i], want[i])
		}
	}
}

func TestABatchTakesASlotForEachCommandOrNone(t *testing.T) {
	onGated(t, func(o *Options) {
		o.Limits.InFlight, o.Limits.InFlightCancels, o.Limits.InFlightPerAccount = 18, 2, 15
	}, func(t *testing.T, g *gated) {
		orders := func(n, cancels int) (list []func(uint64) *Command) {
			for range n {
				list = append(list, g.order(""))
			}
			for range cancels {
				list = append(list, g.cancelOf("unknown"))
			}
			return list
		}
		f := func(what, want string, n, cancels int) {
			t.Helper()
			got := <-g.batchOf(orders(n, cancels)...)
			for _, one := range got {
				if one != want && (want != accepted || one != refusedFor(event.RefusedNotOpen)) {
					t.Errorf("%s: %s, want %s", what, one, want)
				}
			}
			if all, own := g.e.commandsInFlight(), g.key.Account.InFlight.Load(); all+
				int64(own) != 0 {
				t.Errorf("%s: %d in flight, %d of the account", what, all, own)
			}
		}
		f("all slots for orders", accepted, 14, 0)
		f("one more", "all: "+ErrAccountBusy.Error(), 15, 0)
		f("with the slot for cancels", accepted, 14, 1)
		f("one cancel more", "all: "+ErrAccountBusy.Error(), 14, 2)
		f("cancels in slots for orders", accepted, 10, 5)
		f("cancels alone", accepted, 0, 15)
		ben := fund(t, g.e, "ben", map[string]money.Amount{"BTC": coin})
		g.hold()
		other := g.begin(func() (*Command, error) { return g.e.Place(ben, 1, g.sell(1e5)) })
		eventually(t, "it has its slot", func() bool { return g.e.commandsInFlight() == 1 })
		busy := g.batchOf(orders(0, 15)...)
		eventually(t, "all have slots", func() bool { return g.e.commandsInFlight() == 16 })
		g.ends("more than the exchange takes", func() (*Command, error) {
			return g.e.Place(ben, 2, g.sell(1e5))
		}, ErrBusy.Error())
		cancel := func() (*Command, error) { return g.e.Cancel(ben, 2, 1<<40) }
		last := []<-chan string{g.begin(cancel), g.begin(g.depositing())} // of all slots
		eventually(t, "the slots are taken", func() bool { return g.e.commandsInFlight() == 18 })
		g.ends("a cancel more", cancel, ErrBusy.Error())
		g.turnedAway("a deposit more", g.depositing(), ErrBusy)
		g.letGo()
		wantOutcome(t, "the last cancel", <-last[0], refusedFor(event.RefusedNotOpen))
		wantOutcome(t, "the last deposit", <-last[1], accepted)
		for i, one := range <-busy {
			if one != refusedFor(event.RefusedNotOpen) {
				t.Errorf("cancel %d: %s", i, one)
			}
		}
		wantOutcome(t, "other", <-other, accepted)
	})
}

// A change that lowers an amount frees money, so it may use the slots reserved for cancels.
func TestAnAmendThatOnlyLowersAnAmountUsesSlotsOfCancels(t *testing.T) {
	onGated(t, func(o *Options) {
		o.Limits.InFlight, o.Limits.InFlightCancels, o.Limits.InFlightPerAccount = 32, 4, 16
	}, func(t *testing.T, g *gated) {
		id := g.rest(g.sell(4e5))
		amend := func(a AmendRequest) func(uint64) *Command {
			a.Order = id
			return func(nonce uint64) *Command { return NewAmend(g.key, nonce, &a) }
		}
		g.hold()
		var full []func(uint64) *Command
		for range 14 {
			full = append(full, g.order(""))
		}
		orders := g.batchOf(full...)
		eventually(t, "they have their slots", func() bool {
			return g.key.Account.InFlight.Load() == 14
		})
		busy := "all: " + ErrAccountBusy.Error()
		g.each("a larger amount", g.batchOf(amend(AmendRequest{Amount: 5e5})), busy)
		g.each("the same amount", g.batchOf(amend(AmendRequest{Amount: 4e5})), busy)
		g.each("another price, too",
			g.batchOf(amend(AmendRequest{Amount: 3e5, Price: 101e8})), busy)
		g.each("an order beside it", g.batchOf(amend(AmendRequest{Amount: 3e5}), g.order("")),
			busy, busy)
		lower := g.batchOf(amend(AmendRequest{Amount: 3e5}))
		eventually(t, "it has a slot", func() bool { return g.key.Account.InFlight.Load() == 15 })
		g.letGo()
		for i, one := range <-orders {
			if one != accepted {
				t.Errorf("order %d: %s", i, one)
			}
		}
		g.each("a smaller amount", lower, accepted)
	})
}
