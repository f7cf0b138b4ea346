package actors

import (
	"slices"
	"testing"

	"exchange/core/event"
	"exchange/core/trading"
)

// naming is a cancel by a client order id, with the account's next nonce.
func (g *gated) naming(id event.ClientID) func() (*Command, error) {
	g.nonce++
	nonce := g.nonce
	return func() (*Command, error) { return g.e.cancelNamed(g.key, nonce, id) }
}

// A client that got no answer to an order cancels it by its own name for it. The cancel waits until
// the order is decided: it cancels an order that rests, and is refused for good behind one that is
// refused.
func TestACancelByClientIDWaitsForTheOrderOnItsWay(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		id, _ := event.NewClientID("mine")
		named := func() *OrderRequest {
			w := g.sell(1e5)
			w.ClientID = id
			return w
		}
		g.hold()
		order := g.begin(g.placing(named()))
		g.inMailbox(1)
		first := g.begin(g.naming(id))
		g.queued(1)
		g.letGo()
		if a, b := <-order, <-first; a != accepted || b != accepted {
			t.Errorf("the order: %s, its cancel: %s", a, b)
		}
		g.ends("a cancel of a cancelled order", g.naming(id), refusedFor(event.RefusedNotOpen))

		id, _ = event.NewClientID("another")
		if _, err := g.e.Halt("ops", g.e.Pairs()[0].Name, true); err != nil {
			t.Fatal(err)
		}
		g.hold()
		order = g.begin(g.placing(named()))
		g.inMailbox(1)
		second := g.begin(g.naming(id))
		g.queued(1)
		silent(t, "the end of a cancel", second)
		g.letGo()
		if a, b := <-order, <-second; a != refusedFor(event.RefusedHalted) ||
			b != refusedFor(event.RefusedNotOpen) {
			t.Errorf("the order: %s, its cancel: %s", a, b)
		}
		g.end()
	})
}

// A start knows the sides and the names of open orders as an engine that ran on does.
func TestACancelAllTakesOnlyWhatPassesItsFilters(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		place := func(name string, pair int, side trading.Side) uint64 {
			t.Helper()
			w := g.sell(1e5)
			if w.Pair = g.e.Pairs()[pair]; side == trading.Buy {
				w.Side, w.Price = trading.Buy, 50e8
			}
			if name != "" {
				w.ClientID, _ = event.NewClientID(name)
			}
			return g.rest(w)
		}
		ids := []uint64{place("a-1", 0, trading.Buy), place("a-2", 1, trading.Sell),
			place("b-1", 0, trading.Sell), place("", 1, trading.Sell), place("a-3", 0, trading.Buy),
			place("a", 1, trading.Sell)}
		g.crash()
		g.again()
		f := func(filter CancelFilter, prefix string, want ...uint64) {
			t.Helper()
			if prefix != "" {
				filter.Prefix, _ = event.NewClientID(prefix)
			}
			g.nonce++
			c := must[*Command](t)(g.e.CancelAll(g.key, g.nonce, filter))
			defer c.Free()
			if !slices.Equal(c.Cancelled(), want) {
				t.Errorf("%+v cancels %v, want %v", filter, c.Cancelled(), want)
			}
		}
		f(CancelFilter{Side: trading.Buy}, "b")
		f(CancelFilter{Pair: g.e.Pairs()[1]}, "a-", ids[1])
		f(CancelFilter{Side: trading.Sell, Pair: g.e.Pairs()[0]}, "", ids[2])
		f(CancelFilter{}, "a-", ids[0], ids[4])
		f(CancelFilter{Side: trading.Sell}, "a", ids[5])
		f(CancelFilter{}, "", ids[3])
		g.end()
	})
}
