package actors

import (
	"fmt"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
)

// A witness is a channel that records its messages.
type witness struct {
	mu  sync.Mutex
	got []string
}

func (w *witness) Receive(ctx actor.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch m := ctx.Message().(type) {
	case *committed.Watched:
		text := fmt.Sprint("watched ", m.Token)
		if v := m.View; v != nil && v.Depth != nil {
			text += fmt.Sprintf(" at %d with %d and %d levels", v.UpdateID, len(v.Depth.SellLevels),
				len(v.Depth.BuyLevels))
		} else if v != nil && v.Ticker.TimeUs == 0 {
			text += fmt.Sprintf(" at %d with %d candles", v.UpdateID, len(v.Candles))
		} else if v != nil {
			text += fmt.Sprintf(" at %d, best %v %v", v.UpdateID, v.Ticker.Buy, v.Ticker.Sell)
		}
		if s := m.Status; s != nil {
			text += fmt.Sprintf(" %v %v", s.Maintenance, s.Halted)
		}
		w.got = append(w.got, text)
	case *committed.BookUpdates:
		for _, u := range m.List {
			text := fmt.Sprintf("update %d: %v %v %v at %v", u.UpdateID, u.ID, u.Side, u.Remaining,
				u.Price)
			if u.Cancel {
				text += fmt.Sprint(" instead of ", u.Cancelled)
			}
			for _, t := range u.Trades {
				text += fmt.Sprintf(", trade %d of %v", t.ID, t.Amount)
			}
			for _, l := range u.Levels {
				text += fmt.Sprintf(", %v at %v", l.Amount, l.Price)
			}
			w.got = append(w.got, text)
		}
		if m.Best != nil {
			w.got = append(w.got, fmt.Sprintf("best %v %v", m.Best.BuyLevels,
				m.Best.SellLevels))
		}
	case *committed.StatusChanges:
		for _, x := range m.List {
			w.got = append(w.got, fmt.Sprintf("status %d %v %v", x.Pair, x.Halted,
				x.Maintenance))
		}
	case committed.Changed:
		w.got = append(w.got, "changed")
	case string:
		if m == "fail" {
			panic("the test wants it")
		}
		w.got = append(w.got, m)
	case *actor.Restarting:
		w.got = append(w.got, "restarting")
	}
}

// receives waits for the next messages and compares them.
func (w *witness) receives(t *testing.T, want ...string) {
	t.Helper()
	for _, text := range want {
		var got string
		eventually(t, text, func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			if len(w.got) == 0 {
				return false
			}
			got, w.got = w.got[0], w.got[1:]
			return true
		})
		if got != text {
			t.Fatalf("it receives %q, want %q", got, text)
		}
	}
}

// watchers watch the first pair of an engine, in which order first rests.
type watchers struct {
	*gated
	first                           uint64
	levels, trades, ticker          *witness
	quiet                           *witness // watches the other pair
	levelsPID, tradesPID, tickerPID *actor.PID
}

func newAudience(t *testing.T, fresh places) *watchers {
	t.Helper()
	g := newGated(t, fresh, nil)
	a := &watchers{gated: g, first: g.rest(g.sell(coin))} // before there is a watcher
	spawn := func(name string) (*witness, *actor.PID) {
		w := new(witness)
		return w, g.e.SpawnChannel(name, func() actor.Actor { return w })
	}
	var quietPID *actor.PID
	a.levels, a.levelsPID = spawn("levels")
	a.trades, a.tradesPID = spawn("trades")
	a.ticker, a.tickerPID = spawn("ticker")
	a.quiet, quietPID = spawn("quiet")
	pair, other := g.e.Pairs()[0], g.e.Pairs()[1]
	g.e.Watch(committed.Watch{Channel: a.levelsPID, Pair: pair, Kind: committed.WatchLevels,
		View: committed.WatchBook, Levels: -1, Token: 1})
	g.e.Watch(committed.Watch{Channel: a.tradesPID, Pair: pair, Kind: committed.WatchUpdates,
		Token: 2})
	a.watchTicker(3)
	g.e.Watch(committed.Watch{Channel: quietPID, Pair: other, Kind: committed.WatchLevels,
		View: committed.WatchBook, Levels: 20, Token: 4})
	a.levels.receives(t, "watched 1 at 1 with 1 and 0 levels")
	a.trades.receives(t, "watched 2")
	a.ticker.receives(t, "watched 3 at 1, best 0 100")
	a.quiet.receives(t, "watched 4 at 0 with 0 and 0 levels")
	return a
}

func (a *watchers) watchTicker(token uint64) {
	a.e.Watch(committed.Watch{Channel: a.tickerPID, Pair: a.e.Pairs()[0],
		Kind: committed.WatchChanges, View: committed.WatchTicker, Token: token})
}

// isSilent wants no further message.
func (w *witness) isSilent(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.got) > 0 {
		t.Errorf("it receives %q", w.got)
	}
}

func TestWatchersReceiveOnlyReleasedEvents(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		a := newAudience(t, fresh)
		a.hold()
		order := a.begin(a.placing(a.buy(100e8, 2*coin)))
		eventually(t, "the order is at the store", a.held)
		a.e.Notify(a.levelsPID, "not yet")
		a.levels.receives(t, "not yet")
		a.letGo()
		if got := <-order; got != accepted {
			t.Fatal(got)
		}
		update := fmt.Sprintf("update 2: %d buy 1 at 100, trade 1 of 1, 0 at 100, 1 at 100",
			a.first+1)
		a.levels.receives(t, update)
		a.trades.receives(t, update) // the levels come with it, because another watcher wants them
		a.ticker.receives(t, "changed")
		a.end()
		a.quiet.isSilent(t)
	})
}

func TestAChannelReceivesNothingOfAnUnwatchedPair(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		a := newAudience(t, fresh)
		a.e.Unwatch(a.levelsPID, a.e.Pairs()[0])
		a.e.Watch(committed.Watch{Channel: a.levelsPID, Pair: a.e.Pairs()[1],
			Kind: committed.WatchLevels, Token: 5})
		a.levels.receives(t, "watched 5")
		a.ends("a cancel", a.cancelling(a.first), accepted)
		a.trades.receives(t, fmt.Sprintf("update 2: %d sell 1 at 100 instead of %d", a.first+1,
			a.first))
		a.end()
		a.levels.isSilent(t)
	})
}

func TestAChannelOfChangesIsNotifiedOnceUntilItReads(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		a := newAudience(t, fresh)
		a.rest(a.sell(coin))
		a.ticker.receives(t, "changed")
		a.ends("a cancel", a.cancelling(a.first), accepted) // it has not read
		a.watchTicker(6)
		a.ticker.receives(t, "watched 6 at 3, best 0 100")
		a.rest(a.sell(coin))
		a.ticker.receives(t, "changed")
		a.end()
		a.ticker.isSilent(t)
	})
}

func TestAFailedChannelIsRestartedAndReceivesTheRest(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		a := newAudience(t, fresh)
		a.rest(a.sell(coin))
		a.trades.receives(t, fmt.Sprintf("update 2: %d sell 1 at 100, 2 at 100", a.first+1))
		a.e.Notify(a.tradesPID, "fail")
		a.e.Notify(a.tradesPID, "after")
		a.trades.receives(t, "restarting", "after")
		a.end()
	})
}
