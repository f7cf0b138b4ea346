package actors

import (
	"fmt"
	"testing"
	"time"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
)

func TestStopsWaitForTheirPrice(t *testing.T) {
	d := newDesk(t, nil)
	d.last(100)
	d.want("a rise that was reached", d.buy(ann, 1, 120, rising(100)), "would_trigger")
	d.want("a fall that was reached", d.buy(ann, 1, 120, falling(100)), "would_trigger")
	d.want("a stop", d.buy(ann, 3, 120, rising(110)), "stop 3: rests 3 at 120")
	if d.b.orders.Len() != 0 {
		t.Error("a stop is in the book")
	}
	d.sell(bob, 2, 109)
	d.want("below its price", d.buy(cid, 1, 109), "order 5: 1x109#4 done")
	d.sell(bob, 1, 110)
	d.want("at its price", d.buy(cid, 2, 110), "order 7: 1x109#4 1x110#6 done | "+
		"triggered 3: rests 3 at 120")
	d.want("it is in the book", d.sell(bob, 1, 120), "order 8: 1x120#3 done")
}

func TestACascadeContinuesWithItsOwnTrades(t *testing.T) {
	d := newDesk(t, nil)
	d.last(100)
	d.sell(ann, 1, 101)
	d.sell(ann, 1, 102)
	d.sell(ann, 1, 103)
	d.buy(bob, 1, 102, rising(101))
	d.buy(bob, 1, 103, rising(102), marketOrder)
	d.want("one sets off the other", d.buy(cid, 1, 101), "order 8: 1x101#3 done | "+
		"triggered 6: 1x102#4 done | triggered 7: 1x103#5 done")
}

func TestOneTurnExecutesSomeOfAQueue(t *testing.T) {
	d := newDesk(t, nil)
	d.last(100)
	const stops = 3*executedAtOnce + 1
	for range stops {
		d.buy(ann, 1, 50, rising(101))
	}
	d.sell(bob, 1, 101)
	d.lines = nil
	d.buy(cid, 1, 101)
	if got := len(d.ownEntries); got != executedAtOnce || !d.called || d.busy != 1 {
		t.Fatalf("%d orders are executed in a turn, it calls itself: %v", got, d.called)
	}
	d.want("another's order comes between", d.buy(cid, 1, 49), "order 54: rests 1 at 49"+
		turns(executedAtOnce, 19))
	d.settle()
	if d.b.stopBook.Len() != 0 || d.busy != 0 {
		t.Errorf("%d stops are left, busy: %d", d.b.stopBook.Len(), d.busy)
	}
}

// turns describes n triggered orders that rest, with ids from a first one.
func turns(n int, from uint64) (text string) {
	for i := range n {
		text += " | triggered " + fmt.Sprint(from+uint64(i)) + ": rests 1 at 50"
	}
	return text
}

// These numbers are in the docs on order types.
func TestTurnsOfABookAreBounded(t *testing.T) {
	if executedAtOnce != 16 || executedFills != 1000 || expiredAtOnce*event.MaxExpired != 1024 ||
		dueEvery != 200*time.Millisecond {
		t.Errorf("a turn executes %d orders and ends after %d fills, it expires %d, and a tick "+
			"comes every %v", executedAtOnce, executedFills, expiredAtOnce*event.MaxExpired,
			dueEvery)
	}
}

func TestALongMatchEndsATurn(t *testing.T) {
	d := newDesk(t, nil)
	d.last(100)
	for range executedFills {
		d.sell(ann, 1, 110)
	}
	d.buy(bob, executedFills, 110, rising(101))
	d.buy(bob, 1, 50, rising(101))
	d.sell(ann, 1, 101)
	d.lines = nil
	d.buy(cid, 1, 101)
	if len(d.ownEntries) != 1 || !d.called {
		t.Errorf("%d orders are executed after %d fills", len(d.ownEntries), executedFills)
	}
}

func TestTriggeredOrdersInFlightAreBounded(t *testing.T) {
	d := newDesk(t, nil)
	d.slots = 2
	d.last(100)
	for range 5 {
		d.buy(ann, 1, 50, rising(101))
	}
	d.sell(bob, 1, 101)
	d.buy(cid, 1, 101)
	d.called = false
	d.call()
	if len(d.ownEntries) != 3 || d.called || d.busy != 1 || d.taken != 2 {
		t.Fatalf("%d are in flight, calls itself: %v, busy: %d, slots taken: %d", len(d.ownEntries),
			d.called, d.busy, d.taken)
	}
	d.settle()
	if d.b.stopBook.Len() != 0 || d.taken != 0 {
		t.Errorf("%d stops are left, %d slots taken", d.b.stopBook.Len(), d.taken)
	}
}

func TestNothingIsTriggeredWhileBooksAreHeldOrHalted(t *testing.T) {
	d := newDesk(t, nil)
	d.last(100)
	d.buy(ann, 1, 50, rising(101))
	d.buy(ann, 1, 51, rising(101))
	d.buy(ann, 1, 52, rising(101))
	d.sell(bob, 1, 101)
	d.held = true
	d.want("held", d.buy(cid, 1, 101), "order 7: 1x101#6 done")
	if d.busy != 0 || d.called || d.b.wakeAtUs.Load() != 0 {
		t.Errorf("busy: %d, calls itself: %v, wakes at %d", d.busy, d.called, d.b.wakeAtUs.Load())
	}
	d.want("a queued stop can be cancelled", d.cancel(3), "cancel 3")
	d.b.tick(2e6)
	d.want("a tick while it is held", d.newLines(), "")
	d.halt(true)
	d.held = false
	d.b.tick(3e6)
	d.want("a tick while it is halted", d.newLines(), "")
	if at := d.b.wakeAtUs.Load(); at != never {
		t.Errorf("a halted book wakes at %d", at)
	}
	d.want("resumed", d.halt(false),
		"halt | triggered 4: rests 1 at 51 | triggered 5: rests 1 at 52")
	d.settle()
	d.want("both are orders", d.sell(bob, 2, 51), "order 9: 1x52#5 1x51#4 done")
}

func TestTheOCOHalfOfAnIcebergHasItsWholeAmount(t *testing.T) {
	d := newDesk(t, func(r *directory.PairRules, _ *Limits) { r.StopCollar = money.MaxRate / 10 })
	d.last(100)
	d.sell(ann, 4, 110, oco(80, 0), display(1))
	d.buy(bob, 1, 80)
	d.buy(bob, 3, 78)
	d.want("at the market", d.sell(cid, 1, 80), "order 6: 1x80#4 done | "+
		"triggered 3: 3x78#5 cancelled 1 (ioc)")
	d.sell(ann, 4, 110, oco(60, 59), display(1))
	d.buy(bob, 2, 60)
	d.want("at a price of its own", d.sell(cid, 1, 60), "order 9: 1x60#8 done | "+
		"triggered 7: 1x60#8 rests 3 at 59")
	if got := d.displays(7); got != 1 {
		t.Errorf("it displays %d", int64(got))
	}
}
