package actors

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"exchange/actors/directory"
	"exchange/core/event"
)

// clocked is a gated engine whose clock a test sets ahead.
type clocked struct {
	*gated
	ahead atomic.Int64 // nanoseconds
}

func newClocked(t *testing.T, fresh places, change func(*Options)) *clocked {
	t.Helper()
	g := new(clocked)
	g.gated = newGated(t, fresh, func(o *Options) {
		o.ClockError = func() time.Duration { return time.Duration(g.ahead.Load()) }
		if change != nil {
			change(o)
		}
	})
	return g
}

// onClocked is onGated with a clocked engine.
func onClocked(t *testing.T, change func(*Options), test func(t *testing.T, g *clocked)) {
	t.Helper()
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newClocked(t, fresh, change)
		test(t, g)
		g.end()
	})
}

// later sets the clock ahead.
func (g *clocked) later(d time.Duration) { g.ahead.Add(int64(d)) }

// inAnHour is the end of an order that a test outlives with later: no machine is slow enough for it
// to end before.
func inAnHour() int64 { return time.Now().Add(time.Hour).UnixMicro() }

// arming is a call that sets the key's switch; 0 seconds disarm it.
func (g *gated) arming(seconds uint32, f CancelFilter) func() (*Command, error) {
	g.nonce++
	nonce := g.nonce
	return func() (*Command, error) { return g.e.setSwitch(g.key, nonce, seconds, f) }
}

// arm sets the key's switch, and returns when it is due.
func (g *gated) arm(seconds uint32, f CancelFilter) (dueUs int64) {
	g.t.Helper()
	c := must[*Command](g.t)(g.arming(seconds, f)())
	defer c.Free()
	s := c.Record().Switch
	if c.Outcome() != Accepted || !s.Armed || s.Seconds != seconds {
		g.t.Fatalf("a switch that should be armed: %+v", c.Record())
	}
	return s.DueUs
}

// openIDs returns the open orders of the account, oldest first.
func (g *gated) openIDs() (ids []uint64) {
	g.t.Helper()
	g.e.probe(g.e.work.Fold, func() {
		for o := range g.e.committed.State().Account(g.key.Account.ID).Open.Newest() {
			ids = append(ids, o.ID)
		}
	})
	slices.Reverse(ids)
	return ids
}

// noneOpen wants the account to have no open order.
func (g *gated) noneOpen() {
	g.t.Helper()
	if got := g.openIDs(); len(got) != 0 {
		g.t.Errorf("%v are open", got)
	}
}

// armedSwitches returns the switches of the account that are committed.
func (g *gated) armedSwitches() (list []event.Switch) {
	g.t.Helper()
	g.e.probe(g.e.work.Fold, func() {
		list = slices.Clone(g.e.committed.State().Account(g.key.Account.ID).Switches())
	})
	return list
}

// fired waits until no switch of the account is armed.
func (g *gated) fired() {
	g.t.Helper()
	eventually(g.t, "the switch has fired", func() bool { return len(g.armedSwitches()) == 0 })
}

// recordKinds returns the kinds of records since note, each with its order.
func (g *gated) recordKinds() string {
	g.t.Helper()
	var list []string
	for _, r := range g.records() {
		switch r.Kind {
		case event.KindOrder:
			list = append(list, fmt.Sprint("order ", r.Order.ID))
		case event.KindCancel, event.KindSwitchCancel:
			list = append(list, fmt.Sprintf("%v %d %v", r.Kind, r.Cancel.Order, r.Cancel.Reason))
		default:
			list = append(list, r.Kind.String())
		}
	}
	return strings.Join(list, ", ")
}

// note records the journal from now on.
func (g *gated) note() {
	g.hold()
	g.letGo()
}

// A switch may leave the schedule just before a call that renews it.
func TestARenewedSwitchDoesNotFireAtItsOldTime(t *testing.T) {
	onClocked(t, nil, func(t *testing.T, g *clocked) {
		id := g.rest(g.sell(1e5))
		first := g.arm(600, CancelFilter{})
		second := g.arm(1200, CancelFilter{})
		g.later(11 * time.Minute)
		c := newCommand(event.KindSwitch)
		g.e.stamp(c)
		succeeds(t, g.e.admitInternal(c, g.e.writable))
		c.account = g.key.Account
		c.switchRequest = switchRequest{fires: switchID{key: g.key.Number}, dueUs: first}
		g.e.toWallet(c.account, c)
		eventually(t, "the old time passes",
			func() bool { return g.e.internalInFlight.Load() == 0 })
		if open, armed := g.openIDs(), g.armedSwitches(); !slices.Equal(open, []uint64{id}) ||
			len(armed) != 1 || armed[0].DueUs != second {
			t.Errorf("%v are open, the switches are %+v", open, armed)
		}
	})
}

func TestASwitchWaitsForCommandsInFlightAndCancelsNoLaterOrder(t *testing.T) {
	onClocked(t, nil, func(t *testing.T, g *clocked) {
		g.arm(10, CancelFilter{})
		unblock := g.block(g.e.Pairs()[0])
		before := g.begin(g.placing(g.sell(1e5)))
		g.inMailbox(1)
		g.later(11 * time.Second)
		g.queued(1)
		other := g.sell(1e5)
		other.Pair = g.e.Pairs()[1]
		after := g.begin(g.placing(other))
		g.queued(2)
		unblock()
		wantOutcome(t, "before", <-before, accepted)
		wantOutcome(t, "after", <-after, accepted)
		g.fired()
		if got := g.openIDs(); len(got) != 1 {
			t.Errorf("%v are open", got)
		}
	})
}

// An orderly stop waits for a switch that fires, and lets no other begin.
func TestAStopWaitsForASwitchThatFires(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newClocked(t, fresh, nil)
		id := g.rest(g.sell(1e5))
		g.arm(10, CancelFilter{})
		g.hold()
		g.later(11 * time.Second)
		eventually(t, "the cancel is at the store", g.held)
		stopped := make(chan error, 1)
		go func() { stopped <- g.e.Stop(context.Background()) }()
		eventually(t, "it stops", g.e.stopping.Load)
		select {
		case err := <-stopped:
			t.Errorf("it has stopped before the switch has fired: %v", err)
		case <-time.After(50 * time.Millisecond): // no wait is long enough
		}
		g.letGo()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		if got, want := g.recordKinds(), fmt.Sprintf("swept %d switch, switch", id); got != want {
			t.Errorf("the records are %s, want %s", got, want)
		}
		g.close()
	})
}

// restart ends the engine in a way, and starts another.
func (g *gated) restart(end string) {
	g.t.Helper()
	if end == "crash" {
		g.crash()
	} else {
		g.end()
	}
	g.again()
}

// Switches that came due while the exchange was down fire before their account is admitted: an
// order sent right after the engine's start stays.
func TestASwitchThatCameDueWithoutTheExchangeFiresBeforeTheAccountIsAdmitted(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		for _, end := range []string{"crash", "stop"} {
			g := newClocked(t, fresh, nil)
			old := g.rest(g.sell(1e5))
			g.arm(10, CancelFilter{})
			g.later(9 * time.Second)
			if end == "crash" {
				g.crash()
			} else {
				g.end()
			}
			g.later(2 * time.Second)
			g.again()
			id := g.rest(g.sell(1e5))
			g.fired()
			if got := g.openIDs(); !slices.Equal(got, []uint64{id}) {
				t.Errorf("after a %s: %v are open, not %d alone (%d was there before)", end, got,
					id, old)
			}
			g.end()
		}
	})
}

func TestMaintenanceWaitsForASwitchThatFires(t *testing.T) {
	onClocked(t, nil, func(t *testing.T, g *clocked) {
		id := g.rest(g.sell(1e5))
		g.arm(10, CancelFilter{})
		g.hold()
		g.later(11 * time.Second)
		eventually(t, "the cancel is at the store", g.held)
		on := g.maintaining(context.Background(), true)
		eventually(t, "new orders are refused", g.closed)
		silent(t, "maintenance while a switch fires", on)
		g.letGo()
		wantOutcome(t, "on", <-on, accepted)
		want := fmt.Sprintf("swept %d switch, switch, maintenance", id)
		if got := g.recordKinds(); got != want {
			t.Errorf("the records are %s, want %s", got, want)
		}
	})
}

func TestSwitchesAreTakenInTheOrderOfTheirTimes(t *testing.T) {
	var s switches
	ann, ben := &directory.Account{Name: "ann"}, &directory.Account{Name: "ben"}
	s.due(ann, switchID{key: 1}, 30)
	s.due(ben, switchID{key: 2}, 10)
	s.due(ann, switchID{1, true}, 20)
	s.due(ben, switchID{key: 2}, 40) // renewed
	s.due(ann, switchID{key: 3}, 5)
	s.due(ann, switchID{key: 3}, 0)
	s.wait(15, 10)
	if s.hasDue(24) {
		t.Error("one may fire within the grace")
	}
	for _, want := range []scheduledSwitch{{ann, switchID{1, true}, 20},
		{ann, switchID{key: 1}, 30}, {ben, switchID{key: 2}, 40}} {
		if s.hasDue(want.dueUs-1) && want.dueUs > 25 {
			t.Errorf("%+v may fire before its time", want)
		}
		if got, ok := s.take(max(25, want.dueUs)); !ok || got != want {
			t.Errorf("%+v is taken, %v, want %+v", got, ok, want)
		}
	}
	if got, ok := s.take(1e9); ok || len(s.set) != 0 || s.schedule.Len() != 0 {
		t.Errorf("there is another: %+v", got)
	}
}
