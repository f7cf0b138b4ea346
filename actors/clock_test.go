package actors

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/trading"
	"exchange/persistence"
	"exchange/persistence/memory"
)

// Clocks that jump, go back or stand still, while orders expire and switches are armed.

// memoryPlaces makes places in memory, where commands are cheapest.
func memoryPlaces(testing.TB) place {
	disk, head := memory.NewDisk(), new(memory.Head)
	return func() persistence.Store {
		s := memory.Open(disk, persistence.Retention{})
		s.Head = head
		return s
	}
}

// newTimed starts an engine in memory whose clock a test sets, and whose journal is never trimmed.
func newTimed(t *testing.T, change func(*Options)) *clocked {
	t.Helper()
	return newClocked(t, memoryPlaces, func(o *Options) {
		o.Archive = func(context.Context, persistence.Store, persistence.Authority,
			persistence.HistoryID, uint64) (uint64, error) {
			return 0, nil
		}
		if change != nil {
			change(o)
		}
	})
}

// written returns the records of the journal after a sequence.
func written(t *testing.T, s persistence.Store, after uint64) (list []event.Record) {
	t.Helper()
	err := s.Read(context.Background(), after, func(_, _ uint64, data []byte) error {
		b, err := event.OpenBatch(slices.Clone(data))
		for rest := b.Records; err == nil && len(rest) > 0; {
			var r event.Record
			rest, err = r.Decode(rest)
			list = append(list, r)
		}
		return err
	})
	succeeds(t, err)
	return list
}

// orderEnds checks how the orders of a journal end.
type orderEnds struct {
	t       *testing.T
	ends    map[uint64]int64 // when orders expire
	closed  map[uint64]bool
	last    map[uint16]int64 // newest time by pair
	expired int              // orders
	swept   int              // orders cancelled by a switch
	fired   int              // switches
}

// ended checks in the records that each order ends once, and trades only before its end, that no
// switch fires early, and that the times of a pair never go back.
func ended(t *testing.T, list []event.Record) *orderEnds {
	t.Helper()
	e := &orderEnds{t: t, ends: map[uint64]int64{}, closed: map[uint64]bool{},
		last: map[uint16]int64{}}
	for i := range list {
		e.take(&list[i])
	}
	return e
}

func (e *orderEnds) take(r *event.Record) {
	e.t.Helper()
	if r.Pair != 0 {
		if r.TimeUs < e.last[r.Pair] {
			e.t.Errorf("%d us after %d us, in pair %d: %+v", r.TimeUs, e.last[r.Pair], r.Pair, r)
		}
		e.last[r.Pair] = r.TimeUs
	}
	switch r.Kind {
	case event.KindOrder, event.KindInstructed, event.KindStop, event.KindTriggered,
		event.KindAmended:
		e.order(r)
	case event.KindExpired:
		for _, x := range r.Expired {
			e.close(x.Order)
			if e.expired++; r.TimeUs < e.ends[x.Order] {
				e.t.Errorf("order %d expires at %d us, before its end", x.Order, r.TimeUs)
			}
		}
	case event.KindSwitchCancel:
		e.close(r.Cancel.Order)
		e.swept++
	case event.KindCancel:
		e.close(r.Cancel.Order)
	case event.KindSwitch:
		if s := &r.Switch; !s.Armed && s.DueUs != 0 {
			if e.fired++; r.TimeUs < s.DueUs {
				e.t.Errorf("a switch fires at %d us: %+v", r.TimeUs, s)
			}
		}
	}
}

func (e *orderEnds) order(r *event.Record) {
	e.t.Helper()
	o := &r.Order
	e.ends[o.ID] = r.Instructions.ExpireUs
	for _, id := range append([]uint64{o.ID}, makers(o)...) {
		if len(o.Trades) > 0 && due(e.ends[id], r.TimeUs) {
			e.t.Errorf("order %d trades at %d us, and ends at %d us", id, r.TimeUs, e.ends[id])
		}
	}
	for _, x := range o.Trades {
		if e.closed[x.Maker] {
			e.t.Errorf("order %d has ended, and trades", x.Maker)
		} else if x.MakerRemaining == 0 {
			e.close(x.Maker)
		}
	}
	if o.Remaining == 0 || o.RestCancelled {
		e.close(o.ID)
	}
}

func makers(o *event.Order) (ids []uint64) {
	for _, x := range o.Trades {
		ids = append(ids, x.Maker)
	}
	return ids
}

func (e *orderEnds) close(id uint64) {
	e.t.Helper()
	if e.closed[id] {
		e.t.Errorf("order %d ends twice", id)
	}
	e.closed[id] = true
}

// counts wants the given numbers of orders expired and swept, and of switches fired.
func (e *orderEnds) counts(expired, swept, fired int) {
	e.t.Helper()
	if e.expired != expired || e.swept != swept || e.fired != fired {
		e.t.Errorf("%d orders expired and %d were swept by %d switches, want %d, %d, %d",
			e.expired, e.swept, e.fired, expired, swept, fired)
	}
}

// acts has the books and the switches do their due work.
func (g *clocked) acts() {
	g.e.wakeBooks()
	g.e.fireSwitches()
}

// ending returns an order that expires a while from now.
func (g *clocked) ending(w *OrderRequest, d time.Duration) *OrderRequest {
	return g.special(w, until(g.e.nowUs()+d.Microseconds()))
}

// A time from the operator's or another pair's record does not apply to a halted pair: its orders
// last until their own end.
func TestAHaltDoesNotBringTheTimeOfAClockThatWasAhead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, end := range []string{"", "crash", "stop"} {
			g := newTimed(t, nil)
			g.later(1000 * time.Hour)
			g.ends("a deposit, by a wrong clock", g.depositing(), accepted)
			plain := g.rest(g.sell(1e5))
			g.later(-1000 * time.Hour)
			other := func() *OrderRequest {
				w := g.ending(g.sell(1e5), time.Hour)
				w.Pair = g.e.Pairs()[1]
				return w
			}
			open := []uint64{plain, g.rest(other())}
			if end != "" {
				g.restart(end)
			}
			for _, on := range []bool{true, false} {
				must[Admin](t)(g.e.Halt("ops", g.e.Pairs()[1].Name, on))
				must[Admin](t)(g.e.Halt("ops", g.e.Pairs()[0].Name, on))
			}
			open = append(open, g.rest(other()))
			g.acts()
			eventually(t, "nothing is in flight", g.e.quiet)
			if got := g.openIDs(); !slices.Equal(got, open) {
				t.Errorf("%q: %v are open, want %v", end, got, open)
			}
			ended(t, written(t, g.Store, 0)).counts(0, 0, 0)
			auditClean(t, g.e)
			g.end()
		}
	})
}

// The engine's answer says when a requested switch cancels, and the fold alone predicts the same.
func TestTheFoldPredictsWhenASwitchFires(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newTimed(t, func(o *Options) { o.Timing.SwitchGrace = time.Hour })
		dueUs := g.arm(60, CancelFilter{})
		fires := func() (asked, folded int64) {
			q := &committed.KeySwitch{Key: g.key.Number}
			g.nonce++
			succeeds(t, g.e.Ask(q, g.key, g.nonce))
			fold := *g.e.Public
			fold.firesAt = nil
			return g.e.Public.SwitchFires(q), fold.SwitchFires(q)
		}
		if asked, folded := fires(); asked != dueUs || folded != dueUs {
			t.Errorf("due at %d, it fires at %d, by the fold at %d", dueUs, asked, folded)
		}
		for _, on := range []bool{true, false} {
			must[Admin](t)(g.e.SetMaintenance(context.Background(), "ops",
				event.Maintenance{On: on}))
		}
		asked, folded := fires()
		if asked != folded || asked < dueUs+(58*time.Minute).Microseconds() {
			t.Errorf("due at %d, it fires at %d, by the fold at %d", dueUs, asked, folded)
		}
		g.end()
	})
}

func TestAGraceCountsFromTheFirstCheckOfALaggingClock(t *testing.T) {
	g := Grace{endUs: 1000, lengthUs: 10}
	for i, c := range []struct{ nowUs, want int64 }{
		{1000, 1010}, {1005, 1010}, {1010, 1010}, // the clock was right
		{500, 510}, {505, 510}, {510, 510}, {700, 510},
		{400, 410}, {405, 410}, // it has gone back once more
		{1003, 1010}, {2000, 1010},
	} {
		if got := g.OverAt(c.nowUs); got != c.want {
			t.Errorf("check %d at %d: over at %d, want %d", i, c.nowUs, got, c.want)
		}
	}
	if got := new(Grace).OverAt(5); got > 5 {
		t.Errorf("without a maintenance it is over at %d", got)
	}
}

func TestNothingEndsWhileTheClockStandsStill(t *testing.T) {
	bubble(t, func(t *testing.T) {
		stillUs := time.Now().Add(time.Hour).UnixMicro()
		var clock atomic.Int64
		clock.Store(stillUs)
		g := &clocked{gated: newGated(t, memoryPlaces, func(o *Options) {
			o.ClockError = func() time.Duration { return time.Until(time.UnixMicro(clock.Load())) }
		})}
		sold := g.rest(g.special(g.sell(coin), until(stillUs+1)))
		waits := g.rest(g.special(g.buy(90e8, coin), rising(101e8), until(stillUs+1)))
		g.arm(5, CancelFilter{Side: trading.Buy})
		for _, end := range []string{"crash", "stop"} {
			for range 10 {
				g.rest(g.buy(1e8, 1e5))
				g.acts()
			}
			g.restart(end)
		}
		g.acts()
		g.ends("a buy", g.placing(g.buy(100e8, coin/2)), accepted)
		if got, left := g.openIDs(), len(g.armedSwitches()); len(got) != 22 || left != 1 ||
			got[0] != sold || got[1] != waits {
			t.Errorf("%v are open, %d switches are armed", got, left)
		}
		list := written(t, g.Store, 0)
		for i := range list {
			if list[i].Pair != 0 && list[i].TimeUs > stillUs {
				t.Errorf("it is later than the clock: %+v", list[i])
			}
		}
		ended(t, list).counts(0, 0, 0)
		clock.Add(60e6)
		g.restart("crash")
		g.acts()
		eventually(t, "all is over", func() bool {
			return len(g.openIDs()) == 0 && len(g.armedSwitches()) == 0 && g.e.quiet()
		})
		g.wantFunds("all is over", "10/0", "1000/0")
		g.end()
	})
}
