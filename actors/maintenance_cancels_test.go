package actors

import (
	"context"
	"testing"
	"time"

	"exchange/core/event"
	"exchange/core/trading"
)

// maintains changes the maintenance.
func (g *gated) maintains(m event.Maintenance) {
	g.t.Helper()
	if got := <-g.changing(context.Background(), m); got != accepted {
		g.t.Fatalf("maintenance %+v: %s", m, got)
	}
}

// doing is a call with the account's next nonce.
func (g *gated) doing(command func(nonce uint64) *Command) func() (*Command, error) {
	g.nonce++
	nonce := g.nonce
	return func() (*Command, error) { return g.e.Do(command(nonce)) }
}

// asksFor requests a withdrawal, and returns its number.
func (g *gated) asksFor() uint64 {
	g.t.Helper()
	c := must[*Command](g.t)(g.doing(func(nonce uint64) *Command {
		return NewWithdrawal(g.key, nonce, 1, coin/100, "somewhere")
	})())
	defer c.Free()
	if c.Outcome() != Accepted {
		g.t.Fatalf("a withdrawal: %+v", c.Record())
	}
	return c.Record().Withdrawal.ID
}

// wantsCancelsOnly wants clients' cancels accepted, and their other commands refused.
func (g *gated) wantsCancelsOnly(order, other, withdrawal uint64) {
	g.t.Helper()
	if m := g.e.Maintenance(); m == nil || *m != cancelsOnly {
		g.t.Errorf("the maintenance is %+v", m)
	}
	if err := g.e.Writable(); err != ErrMaintenance {
		g.t.Errorf("it is writable: %v", err)
	}
	if err := g.e.Cancelling(); err != nil {
		g.t.Errorf("clients may not cancel: %v", err)
	}
	for what, run := range map[string]func() (*Command, error){
		"an order":  g.placing(g.sell(coin / 100)),
		"a change":  g.amending(AmendRequest{Order: order, Amount: coin / 200}),
		"a setting": g.setting(trading.SelfTradeCancelBoth),
		"a switch":  g.arming(60, CancelFilter{}),
		"no switch": g.arming(0, CancelFilter{}),
		"a session": g.beginning(g.key, Session{Number: 9, Seconds: 10}),
		"its leave": g.leaving(9),
		"a withdrawal": g.doing(func(nonce uint64) *Command {
			return NewWithdrawal(g.key, nonce, 1, coin/100, "somewhere")
		}),
		"a code": g.doing(func(nonce uint64) *Command {
			return NewConfirmation(g.key, nonce, withdrawal, "123456")
		}),
	} {
		g.nonce++ // turnedAway returns it
		g.turnedAway(what, run, ErrMaintenance)
	}
	g.ends("a cancel", g.cancelling(order), accepted)
	g.ends("the cancel of a withdrawal", g.doing(func(nonce uint64) *Command {
		return NewWithdrawalCancel(g.key, nonce, withdrawal)
	}), accepted)
	g.ends("a cancel of all", g.doing(func(nonce uint64) *Command {
		return NewCancelAll(g.key, nonce, CancelFilter{})
	}), accepted)
	if _, open := g.find(other); open {
		g.t.Error("the other order is open")
	}
}

func TestClientsMayOnlyCancelInAMaintenanceWithCancels(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		for _, end := range []string{"", "crash", "stop"} {
			g := newGated(t, fresh, nil)
			order, other, withdrawal := g.rest(g.sell(coin/100)), g.rest(g.sell(coin/100)),
				g.asksFor()
			g.maintains(cancelsOnly)
			if end != "" {
				g.restart(end)
			}
			g.wantsCancelsOnly(order, other, withdrawal)
			g.maintains(unmaintained)
			g.ends("an order after it", g.placing(g.sell(coin/100)), accepted)
			g.end()
		}
	})
}

// Each change of a maintenance's kind waits for commands in flight, as its begin does.
func TestMaintenanceChangesBetweenItsKinds(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		first, second := g.rest(g.sell(coin/100)), g.rest(g.sell(coin/100))
		g.hold()
		order := g.begin(g.placing(g.sell(coin / 100)))
		eventually(t, "the order is at the store", g.held)
		on := g.changing(context.Background(), cancelsOnly)
		eventually(t, "new orders are refused", g.closed)
		g.turnedAway("a cancel before it has begun", g.cancelling(first), ErrMaintenance)
		silent(t, "maintenance with an order in flight", on)
		g.letGo()
		wantOutcome(t, "the order", <-order, accepted)
		wantOutcome(t, "maintenance", <-on, accepted)
		g.hold()
		cancel := g.begin(g.cancelling(first))
		eventually(t, "the cancel is at the store", g.held)
		soon, over := context.WithCancel(context.Background())
		plain := g.changing(soon, maintained)
		eventually(t, "cancels are refused", func() bool {
			return g.e.Cancelling() == ErrMaintenance
		})
		over()
		wantOutcome(t, "with a cancel in flight", <-plain, ErrNotQuiet.Error())
		if g.e.Cancelling() != nil || !g.closed() {
			t.Error("a change that did not come about is one")
		}
		plain = g.changing(context.Background(), maintained)
		silent(t, "maintenance with a cancel in flight", plain)
		g.letGo()
		wantOutcome(t, "the cancel", <-cancel, accepted)
		wantOutcome(t, "maintenance", <-plain, accepted)
		g.turnedAway("a cancel", g.cancelling(second), ErrMaintenance)
		g.maintains(cancelsOnly)
		g.maintains(cancelsOnly)
		g.turnedAway("an order", g.placing(g.sell(coin/100)), ErrMaintenance)
		g.ends("a cancel", g.cancelling(second), accepted)
	})
}

func TestABatchInAMaintenanceWithCancelsOnlyCancels(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		g.each("before it", g.batchOf(g.order("a"), g.order("b")), accepted, accepted)
		g.maintains(cancelsOnly)
		barred := ErrMaintenance.Error()
		g.each("in it", g.batchOf(g.order("c"), g.cancelOf("a"), g.order(""), g.cancelOf("b")),
			barred, accepted, barred, accepted)
		g.each("without a cancel", g.batchOf(g.order("d"), g.order("")), "all: "+barred,
			"all: "+barred)
		if a, b := g.e.inFlight.Load(), g.key.Account.InFlight.Load(); a != 0 || b != 0 {
			t.Errorf("%d are in flight, %d of the account", a, b)
		}
		g.maintains(maintained)
		g.each("in a plain one", g.batchOf(g.order("c"), g.cancelOf("a")), "all: "+barred,
			"all: "+barred)
		g.maintains(unmaintained)
		g.each("after it", g.batchOf(g.order("c"), g.order("d")), accepted, accepted)
	})
}

// Orders expire, and switches cancel; triggered orders wait for the end.
func TestDueOrdersExpireInAMaintenanceWithCancelsAndNothingTriggers(t *testing.T) {
	onClocked(t, nil, func(t *testing.T, g *clocked) {
		stop := g.stop()
		buy := g.reach()
		g.e.heldTriggers.Store(true)
		g.ends("the trade", buy, accepted)
		order := g.rest(g.special(g.sell(coin/100), until(inAnHour())))
		stays := g.rest(g.sellAt(150e8, coin/100))
		g.maintains(maintained)
		g.later(2 * time.Hour)
		g.e.wakeBooks()
		if _, open := g.find(order); !open {
			t.Error("an order expires in a plain maintenance")
		}
		g.maintains(cancelsOnly)
		eventually(t, "it expires", func() bool {
			_, open := g.find(order)
			return !open
		})
		g.crash()
		g.again()
		g.e.wakeBooks()
		if _, open := g.find(stays); !open || g.rests(stop) || g.e.booksMayTrigger() {
			t.Errorf("an order is open: %v, one is triggered: %v", open, g.rests(stop))
		}
		g.maintains(unmaintained)
		eventually(t, "the stop is executed", func() bool { return g.rests(stop) })
	})
}

func TestSwitchesFireInAMaintenanceWithCancels(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		for _, session := range []bool{false, true} {
			for _, from := range []event.Maintenance{unmaintained, maintained} {
				g := newClocked(t, fresh, nil)
				id := g.rest(g.sell(1e5))
				if session {
					g.session(Session{Number: 1, Seconds: 600})
				} else {
					g.arm(600, CancelFilter{})
				}
				g.maintains(from)
				g.maintains(cancelsOnly)
				if session {
					g.lose(1)
				}
				g.stays("before its time", id)
				g.later(time.Hour)
				g.fired()
				g.noneOpen()
				g.end()
			}
		}
	})
}
