package actors

import (
	"context"
	"errors"
	"testing"
	"time"

	"exchange/actors/committed"
	"exchange/actors/mailbox"
	"exchange/core/event"
)

var (
	maintained, unmaintained = event.Maintenance{On: true}, event.Maintenance{}
	// clients may cancel in it
	cancelsOnly = event.Maintenance{On: true, Cancels: true}
)

// maintaining begins a change of maintenance.
func (g *gated) maintaining(ctx context.Context, on bool) <-chan string {
	return g.changing(ctx, event.Maintenance{On: on})
}

// changing begins a change of maintenance to another one.
func (g *gated) changing(ctx context.Context, m event.Maintenance) <-chan string {
	return g.begin(func() (*Command, error) {
		_, err := g.e.SetMaintenance(ctx, "ops", m)
		return nil, err
	})
}

func (g *gated) closed() bool { return errors.Is(g.e.Writable(), ErrMaintenance) }

func TestMaintenanceSeesAClientsCommandHoweverBusyOperatorsAre(t *testing.T) {
	e := new(Engine)
	limits := DefaultLimits
	e.live.Store(&limits)
	e.life.Begin(mailbox.Runners{}, e.opts.Timing.Request)
	e.prepare(&e.opts, &e.live, &e.life, nil)
	e.inFlight.Store(1)
	e.stopping.Store(true) // operators' commands are refused, after they were counted
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				if err := e.admitOperator(newCommand(event.KindDeposit)); err != ErrStopping {
					t.Error(err)
				}
			}
		}
	}()
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for range 100_000 {
		if err := e.awaitZero(over, &e.inFlight); !errors.Is(err, ErrNotQuiet) {
			t.Errorf("a command of a client's is in flight: %v", err)
			break
		}
	}
	close(stop)
	<-stopped
}

func TestTheEndOfMaintenanceDoesNotLetClientsInWhileItBegins(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		g.hold()
		order := g.begin(g.placing(g.sell(coin)))
		eventually(t, "the order is at the store", g.held)
		on := g.maintaining(context.Background(), true)
		eventually(t, "new orders are refused", g.closed)
		off := g.maintaining(context.Background(), false)
		silent(t, "the end of what has not begun", off)
		g.turnedAway("an order while it begins", g.placing(g.sell(coin)), ErrMaintenance)
		g.letGo()
		if a, b, c := <-order, <-on, <-off; a != accepted || b != accepted || c != accepted {
			t.Errorf("the order: %s, on: %s, off: %s", a, b, c)
		}
		g.ends("an order after it", g.placing(g.sell(coin)), accepted)
	})
}

// The end of one maintenance is in flight, and its operator waits no longer. That end must not
// admit clients while the next maintenance begins.
func TestMaintenanceWaitsForTheEndOfTheOneBefore(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		if got := <-g.maintaining(context.Background(), true); got != accepted {
			t.Fatal(got)
		}
		g.hold()
		g.e.setPatience(50 * time.Millisecond)
		if got := <-g.maintaining(context.Background(),
			false); got != committed.ErrTimeout.Error() {
			t.Fatal(got)
		}
		g.e.setPatience(time.Minute)
		over, cancel := context.WithCancel(context.Background())
		cancel()
		wantOutcome(t, "maintaining", <-g.maintaining(over, true), ErrNotQuiet.Error())
		next := g.maintaining(context.Background(), true)
		silent(t, "maintenance before the end of the one before", next)
		if n := g.e.operatorInFlight.Load(); n != 1 || !g.closed() {
			t.Errorf("%d commands of operators are in flight, closed: %v", n, g.closed())
		}
		g.letGo()
		if got := <-next; got != accepted || !g.closed() || g.e.maintenanceChanges.Load() != 0 {
			t.Errorf("it is %s, closed: %v, %d are in flight", got, g.closed(),
				g.e.maintenanceChanges.Load())
		}
	})
}

func TestMaintenanceThatCouldNotBeginDoesNotOpenForAnother(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		g.hold()
		order := g.begin(g.placing(g.sell(coin)))
		eventually(t, "the order is at the store", g.held)
		patience, cancel := context.WithCancel(context.Background())
		first := g.maintaining(patience, true)
		eventually(t, "new orders are refused", g.closed)
		second := g.maintaining(context.Background(), true)
		silent(t, "the second", second)
		cancel()
		wantOutcome(t, "first", <-first, ErrNotQuiet.Error())
		eventually(t, "new orders are refused again", g.closed)
		silent(t, "maintenance with an order in flight", second)
		g.turnedAway("an order while the second begins", g.placing(g.sell(coin)), ErrMaintenance)
		g.letGo()
		if a, b := <-order, <-second; a != accepted || b != accepted || !g.closed() {
			t.Errorf("the order: %s, the second: %s, closed: %v", a, b, g.closed())
		}
	})
}

func TestMaintenanceIsRefusedWhenTheEngineFailsFirst(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		g.hold()
		order := g.begin(g.placing(g.sell(coin)))
		eventually(t, "the order is at the store", g.held)
		on := g.maintaining(context.Background(), true)
		eventually(t, "new orders are refused", g.closed)
		g.e.fail(errors.New("fenced"))
		wantOutcome(t, "the order", <-order, committed.ErrTimeout.Error())
		wantOutcome(t, "maintenance", <-on, ErrStopping.Error())
		g.crash()
	})
}
