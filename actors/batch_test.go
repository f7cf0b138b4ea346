package actors

import (
	"testing"

	"exchange/core/event"
)

// batchOf sends commands together, under the key's next nonce, and returns what became of each.
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

// A change that lowers an amount frees money, so it has the places that are kept for cancels.
func TestAnAmendThatOnlyLowersAnAmountHasThePlacesOfCancels(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, func(o *Options) {
			o.Limits.InFlight, o.Limits.InFlightCancels, o.Limits.InFlightPerAccount = 32, 4, 16
		})
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
		eventually(t, "they have their places", func() bool {
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
		eventually(t, "it has a place", func() bool { return g.key.Account.InFlight.Load() == 15 })
		g.letGo()
		for i, one := range <-orders {
			if one != accepted {
				t.Errorf("order %d: %s", i, one)
			}
		}
		g.each("a smaller amount", lower, accepted)
		g.end()
	})
}
