package actors

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
	"exchange/actors/metrics"
	"exchange/persistence"
)

// These tests slow something down: the store, the committed side, or the owner's confirmation.

// folded waits until the committed side and the imager have all that was answered.
func (g *gated) folded() {
	g.t.Helper()
	g.ends("a read", g.asking(new(committed.NewestTrades), nil, 0), accepted)
	eventually(g.t, "the imager has followed", func() bool {
		return g.e.committed.ImagerFolded() == g.e.committed.Released()
	})
}

func TestNothingNewIsTakenWhileTheCommittedSideIsTooFarBehind(t *testing.T) {
	onGated(t, func(o *Options) { o.Limits.FoldLag = 5 }, func(t *testing.T, g *gated) {
		for _, stuckActor := range []*actor.PID{g.e.work.Fold, g.e.work.Imager} {
			id := g.rest(g.sell(1e5))
			g.folded()
			wait, stuck := make(chan struct{}), make(chan struct{})
			go g.e.probe(stuckActor, func() { close(stuck); <-wait })
			<-stuck
			for lag := range 6 { // 0 to 5 records behind
				g.ends("an order while the fold may be behind", g.placing(g.sell(1e5)), accepted)
				eventually(t, fmt.Sprintf("a fold is %d records behind", lag+1), func() bool {
					records, _ := g.e.lag()
					return records == uint64(lag+1)
				})
			}
			g.turnedAway("an order at 6 records", g.placing(g.sell(1e5)), ErrBehind)
			g.turnedAway("a cancel", g.cancelling(id), ErrBehind)
			g.turnedAway("a deposit", g.depositing(), ErrBehind)
			close(wait)
			g.folded()
			g.ends("when the fold has caught up", g.cancelling(id), accepted)
		}
	})
}

func TestNothingNewIsTakenWhileTheStoresProjectionsAreTooFarBehind(t *testing.T) {
	onGated(t, func(o *Options) { o.Limits.ProjectionLag = 4 }, func(t *testing.T, g *gated) {
		for range 2 {
			g.ends("the history is written", g.asking(new(committed.Barrier), nil, 0), accepted)
			eventually(t, "no row is waiting", func() bool {
				return g.e.committed.Unsaved() == 0
			})
			g.set(func() { g.applying = true })
			for rows := range int64(5) { // 0 to 4 rows wait: each cancel makes one
				id := g.rest(g.sell(1e5))
				g.ends("a cancel while rows may wait", g.cancelling(id), accepted)
				g.folded()
				if got := g.e.committed.Unsaved(); got != rows+1 {
					t.Fatalf("%d rows wait, want %d", got, rows+1)
				}
			}
			g.turnedAway("an order beside 5 rows", g.placing(g.sell(1e5)), ErrBehind)
			g.turnedAway("a cancel", g.cancelling(1), ErrBehind)
			g.turnedAway("a deposit", g.depositing(), ErrBehind)
			g.ends("a read", g.asking(new(committed.Wallet), g.key, g.nonce+1), accepted)
			g.nonce++
			g.set(func() { g.applying = false })
			eventually(t, "orders are taken when the rows are written", func() bool {
				g.e.committed.Send(committed.Tick{})
				return outcome(g.placing(g.sell(1e5))) == accepted
			})
		}
	})
}

func TestNothingNewIsTakenWhileAnAppendHasNoAnswer(t *testing.T) {
	onGated(t, func(o *Options) { o.Timing.StallMax = time.Hour }, func(t *testing.T, g *gated) {
		id := g.rest(g.sell(1e5))
		g.hold()
		held := &heldCommands{g: g}
		held.send(g.placing(g.sell(1e5)))
		eventually(t, "the order is at the store", g.held)
		since := g.e.journal.since.Load()
		if err := g.e.open(since + int64(g.o.Timing.Stall)); err != nil {
			t.Errorf("as long as it may take: %v", err)
		}
		if err := g.e.open(since + int64(g.o.Timing.Stall) + 1); !errors.Is(err, ErrStalled) {
			t.Errorf("a nanosecond more: %v", err)
		}
		// The same holds for the writer and its watchdog.
		g.mu.Lock()
		deadline := metrics.At(g.deadline)
		g.mu.Unlock()
		least := since + int64(g.o.Timing.StallMax)
		if most := least + int64(g.o.Timing.StallMax/16); deadline < least || deadline > most {
			t.Errorf("the append may last until %v, want %v to %v", deadline, least, most)
		}
		g.e.opts.Timing.Stall = 0
		time.Sleep(time.Nanosecond)
		g.turnedAway("an order", g.placing(g.sell(1e5)), ErrStalled)
		g.turnedAway("a cancel", g.cancelling(id), ErrStalled)
		g.turnedAway("a deposit", g.depositing(), ErrStalled)
		if err := g.e.Ready(); !errors.Is(err, ErrStalled) {
			t.Errorf("it is ready: %v", err)
		}
		g.ends("a read", g.asking(new(committed.NewestTrades), nil, 0), accepted)
		held.want("what was taken before", accepted)
		g.ends("when the store answers again", g.cancelling(id), accepted)
	})
}

// A store that may lose what comes, and still says whose it is, ends no private read: no other
// exchange can have taken over.
func TestPrivateReadsGoOnWhileAStoreThatIsNotFitConfirmsItsOwner(t *testing.T) {
	onGated(t, func(o *Options) {
		o.Timing.OwnerCheck = time.Millisecond
	}, func(t *testing.T, g *gated) {
		for _, why := range []error{persistence.ErrNotInEffect, persistence.ErrNotDurable} {
			g.set(func() { g.checkErr = why })
			eventually(t, "the store is not fit", func() bool { return g.e.own.Unfit() })
			g.set(func() {
				g.checkErr = fmt.Errorf("%w, and %w", persistence.ErrConfirmed, why)
			})
			begin := metrics.Now()
			eventually(t, "the owner is confirmed", func() bool {
				return g.e.own.Checked() > begin
			})
			if err := g.e.Ready(); !g.e.own.Unfit() || err == nil ||
				errors.Is(err, ErrNotConfirmed) {
				t.Errorf("it is ready: %v", err)
			}
			g.nonce++
			g.ends("a private read", g.asking(new(committed.Wallet), g.key, g.nonce), accepted)
		}
		g.set(func() { g.checkErr = nil })
		eventually(t, "it is ready again", func() bool { return g.e.Ready() == nil })
	})
}

func TestAStopGivesUpInTimeAndIsSafe(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		for _, c := range []struct {
			name string
			hold func(*gate)
			told string
		}{
			{"an append does not return", func(g *gate) { g.holding, g.deaf = true, true },
				committed.ErrTimeout.Error()},
			{"a projection does not return", func(g *gate) { g.applying = true }, accepted},
		} {
			g := newGated(t, fresh, nil)
			g.ends("the history is written", g.asking(new(committed.Barrier), nil, 0), accepted)
			g.set(func() { c.hold(g.gate) })
			order := g.begin(g.placing(g.sell(coin)))
			eventually(t, "the order is at the store, or through", func() bool {
				return g.held() || len(order) > 0
			})
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			if err := g.e.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: the stop ends with %v", c.name, err)
			}
			cancel()
			if got := <-order; got != c.told {
				t.Errorf("%s: an order in flight is told %q", c.name, got)
			}
			// The append lands late: it happened, and no client was told.
			g.set(func() { g.holding, g.applying = false, false })
			<-g.e.journal.stopped
			<-g.e.work.Projector.Finished()
			g.close()
			g.again()
			if got := g.funds(1, 1); got != "10/1" {
				t.Errorf("%s: afterwards the wallet has %s BTC", c.name, got)
			}
			g.end()
		}
	})
}

func TestASnapshotIsDueByItsRecordsAndItsAge(t *testing.T) {
	p := committed.SnapshotPolicy{MinRecords: 10, MaxRecords: 100, MinInterval: time.Minute}
	f := func(records uint64, age time.Duration, want bool) {
		t.Helper()
		if got := p.Due(records, age); got != want {
			t.Errorf("due after %d records and %v: %v", records, age, got)
		}
	}
	f(10, time.Minute, true)
	f(9, time.Hour, false)
	f(10, time.Minute-1, false)
	f(99, time.Minute-1, false)
	f(100, 6*time.Second, true) // a tenth, so that a store that fails is not tried at once again
	f(100, 6*time.Second-1, false)
}

// A rewriter is a store whose server rewrites its file when a test says so.
type rewriter struct {
	persistence.Store
	rewrites atomic.Bool
	looks    atomic.Int64
}

func (r *rewriter) Rewriting() bool {
	r.looks.Add(1)
	return r.rewrites.Load()
}

func TestProjectionsWaitForTheEndOfARewrite(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		r := new(rewriter)
		g := newGated(t, fresh, func(o *Options) {
			r.Store, o.Store = o.Store, r
			o.Timing.Projection, o.Limits.ProjectionLag = time.Millisecond, 16
		})
		cancel := func() {
			t.Helper()
			g.ends("a cancel, which makes a row", g.cancelling(g.rest(g.sell(1e5))), accepted)
		}
		written := func(when string) {
			t.Helper()
			eventually(t, "no row is waiting "+when, func() bool {
				return g.e.committed.Unsaved() == 0
			})
		}
		wait := func(rows int64) {
			t.Helper()
			looks := r.looks.Load()
			eventually(t, "projections were due", func() bool { return r.looks.Load() > looks+2 })
			g.folded()
			if got := g.e.committed.Unsaved(); got != rows {
				t.Fatalf("%d rows wait, want %d", got, rows)
			}
		}
		written("at the begin")
		r.rewrites.Store(true)
		wait(0)
		for rows := range int64(3) {
			cancel()
			wait(rows + 1)
		}
		g.ends("who asks for the history", g.asking(new(committed.Barrier), nil, 0), accepted)
		written("for who has asked")
		for range 4 {
			cancel()
		}
		written("behind a quarter of what may wait")
		cancel()
		wait(1)
		r.rewrites.Store(false)
		written("behind the rewrite")

		r.rewrites.Store(true)
		wait(0)
		cancel()
		wait(1)
		g.crash()
		g.again()
		g.ends("the history behind a crash", g.asking(new(committed.Barrier), nil, 0), accepted)
		if err := g.e.VerifyAtRest(); err != nil {
			t.Error(err)
		}
		r.Store, g.o.Store = g.o.Store, r
		restart := func() {
			t.Helper()
			stop(t, g.e)
			g.e = start(t, g.o)
			g.key = g.e.Key([]byte(g.key.Public))
			wait(0)
		}
		restart()
		cancel()
		wait(1)
		restart() // the last projection waits for nothing
		g.end()
	})
}

func TestARewriteThatDoesNotEndHoldsProjectionsForAWhile(t *testing.T) {
	rewriting := true
	r := projectionRest{rewriting: func() bool { return rewriting }, most: 100}
	now := time.Now()
	for _, c := range []struct {
		rewriting bool
		after     time.Duration
		behind    int64
		holds     bool
	}{
		{true, 0, 0, true},
		{true, time.Second, 99, true},
		{true, time.Second, 100, false},
		{true, restLongest - 1, 0, true},
		{true, restLongest, 0, false},
		{true, 2 * restLongest, 0, false},
		{false, 2 * restLongest, 0, false},
		{true, 2 * restLongest, 0, true}, // another one
		{true, 3*restLongest - 1, 0, true},
		{true, 3 * restLongest, 0, false},
	} {
		rewriting = c.rewriting
		if holds := r.holds(now.Add(c.after), c.behind); holds != c.holds {
			t.Errorf("%+v: %v", c, holds)
		}
	}
	if new(projectionRest).holds(now, 0) {
		t.Error("projections wait for a store that rewrites nothing")
	}
}

func TestAReadThatIsTooLateGivesItsSlotBack(t *testing.T) {
	onGated(t, func(o *Options) { o.Limits.Reads = 1 }, func(t *testing.T, g *gated) {
		g.set(func() { g.applying = true })
		g.rest(g.sell(1e5))
		g.e.setPatience(time.Millisecond)
		g.ends("a read of a history that is held", g.asking(new(committed.Barrier), nil, 0),
			committed.ErrTimeout.Error())
		g.e.setPatience(time.Minute)
		eventually(t, "the slot is given back while the history is held", func() bool {
			return g.e.ReadsInFlight() == 0
		})
		g.ends("the next one", g.asking(new(committed.NewestTrades), nil, 0), accepted)
	})
}
