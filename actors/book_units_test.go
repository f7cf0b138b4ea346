package actors

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/trading"
)

// special returns an order with instructions.
func (g *gated) special(w *OrderRequest, says ...orderOption) *OrderRequest {
	w.Special = new(SpecialRequest)
	for _, say := range says {
		say(w.Special)
	}
	return w
}

// find returns an order of the first pair from the book or its stops.
func (g *gated) find(id uint64) (o trading.Order, open bool) {
	g.t.Helper()
	g.e.probe(g.e.Pairs()[0].Book, func() { o, open = g.e.books[0].find(id) })
	return o, open
}

// rests reports whether an order rests in the book.
func (g *gated) rests(id uint64) (rests bool) {
	g.t.Helper()
	g.e.probe(g.e.Pairs()[0].Book, func() { _, rests = g.e.books[0].orders.Get(id) })
	return rests
}

// stop places a stop that triggers at a rise to 101.
func (g *gated) stop() uint64 {
	g.t.Helper()
	return g.rest(g.special(g.buy(90e8, coin/100), rising(101e8)))
}

// reach raises the price to 101.
func (g *gated) reach() func() (*Command, error) {
	g.t.Helper()
	sell := g.sell(coin / 100)
	sell.Price = 101e8
	g.rest(sell)
	return g.placing(g.buy(101e8, coin/100))
}

func TestMaintenanceWaitsForTriggeredOrders(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		stop := g.stop()
		buy := g.reach()
		g.hold()
		done := g.begin(buy)
		eventually(t, "the stop is executed", func() bool { return g.rests(stop) })
		soon, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		if _, err := g.e.SetMaintenance(soon, "op", maintained); !errors.Is(err, ErrNotQuiet) ||
			g.e.Writable() != nil {
			t.Errorf("maintenance begins while a triggered order is in flight: %v", err)
		}
		long := event.Maintenance{On: true, Message: strings.Repeat("x", MaxMessage+1)}
		if _, err := g.e.SetMaintenance(soon, "op", long); err == nil ||
			errors.Is(err, ErrNotQuiet) || g.e.Writable() != nil {
			t.Errorf("a message that is too long: %v", err)
		}
		g.letGo()
		wantOutcome(t, "done", <-done, accepted)
		must[any](t)(g.e.SetMaintenance(context.Background(), "op", maintained))
		if g.e.booksMayStart() || g.e.busyBooks.Load() != 0 {
			t.Error("a book may start something in maintenance")
		}
	})
}

func TestTheEndOfMaintenanceComesBeforeClients(t *testing.T) {
	onClocked(t, nil, func(t *testing.T, g *clocked) {
		order := g.rest(g.special(g.sell(coin/100), until(inAnHour())))
		must[any](t)(g.e.SetMaintenance(context.Background(), "op", maintained))
		g.crash()
		g.again()
		g.later(2 * time.Hour)
		g.e.wakeBooks()
		if _, open := g.find(order); !open {
			t.Error("an order expires in maintenance")
		}
		must[any](t)(g.e.SetMaintenance(context.Background(), "op", unmaintained))
		g.ends("it is gone by then", g.cancelling(order), refusedFor(4))
		if n := g.e.Stats().Expired; n != 1 {
			t.Errorf("%d orders have expired", n)
		}
	})
}

func TestAStopWaitsForTriggeredOrders(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		first := g.stop()
		buy := g.reach()
		g.hold()
		done := g.begin(buy)
		eventually(t, "the stop is executed", func() bool { return g.rests(first) })
		stopped := make(chan error, 1)
		e := g.e
		e.CloseAdmission()
		g.ends("a read", g.asking(new(committed.NewestTrades), nil, 0), ErrStopping.Error())
		go func() { stopped <- e.Stop(context.Background()) }()
		select {
		case err := <-stopped:
			t.Fatalf("it stops with a triggered order in flight: %v", err)
		case <-time.After(50 * time.Millisecond): // no wait is long enough
		}
		g.letGo()
		if got, err := <-done, <-stopped; got != accepted || err != nil {
			t.Errorf("%s, %v", got, err)
		}
		seq, image, err := g.LoadSnapshot(t.Context(), 0)
		if err != nil || seq != e.committed.Released() {
			t.Fatalf("the snapshot is at %d, the journal ends at %d: %v", seq,
				e.committed.Released(), err)
		}
		image.Close()
		g.close()
		g.again()
		if !g.rests(first) {
			t.Error("the triggered order is lost")
		}
	})
}

func TestUnitsAreCounted(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		stop := g.stop()
		g.ends("the trade", g.reach(), accepted)
		eventually(t, "the stop is executed", func() bool { return g.rests(stop) })
		own := g.special(g.sell(coin/100), apart(trading.SelfTradeCancelOldest))
		own.Price = 90e8
		g.ends("an order that meets its own", g.placing(own), accepted)
		eventually(t, "all is counted", g.e.quiet)
		s := g.e.Stats()
		if s.Triggered != 1 || s.Prevented != 1 || s.Orders != 4 || s.Trades != 1 {
			t.Errorf("%d triggered, %d prevented, %d orders, %d trades", s.Triggered, s.Prevented,
				s.Orders, s.Trades)
		}
	})
}
