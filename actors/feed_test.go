package actors

import (
	"fmt"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
)

// A witness is a channel that keeps the messages it gets.
type witness struct {
	mu   sync.Mutex
	said []string
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
		w.said = append(w.said, text)
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
			w.said = append(w.said, text)
		}
		if m.Best != nil {
			w.said = append(w.said, fmt.Sprintf("best %v %v", m.Best.BuyLevels,
				m.Best.SellLevels))
		}
	case *committed.StatusChanges:
		for _, x := range m.List {
			w.said = append(w.said, fmt.Sprintf("status %d %v %v", x.Pair, x.Halted,
				x.Maintenance))
		}
	case committed.Changed:
		w.said = append(w.said, "changed")
	case string:
		if m == "fail" {
			panic("the test wants it")
		}
		w.said = append(w.said, m)
	case *actor.Restarting:
		w.said = append(w.said, "restarting")
	}
}

// hears waits for the next messages and wants them to be these.
func (w *witness) hears(t *testing.T, want ...string) {
	t.Helper()
	for _, text := range want {
		var got string
		eventually(t, text, func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			if len(w.said) == 0 {
				return false
			}
			got, w.said = w.said[0], w.said[1:]
			return true
		})
		if got != text {
			t.Fatalf("it hears %q, want %q", got, text)
		}
	}
}

// An audience watches the first pair of an engine, in which order first rests.
type audience struct {
	*gated
	first                           uint64
	levels, trades, ticker          *witness
	quiet                           *witness // watches the other pair
	levelsPID, tradesPID, tickerPID *actor.PID
}

func newAudience(t *testing.T, fresh places) *audience {
	t.Helper()
	g := newGated(t, fresh, nil)
	a := &audience{gated: g, first: g.rest(g.sell(coin))} // before there is a watcher
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
	a.levels.hears(t, "watched 1 at 1 with 1 and 0 levels")
	a.trades.hears(t, "watched 2")
	a.ticker.hears(t, "watched 3 at 1, best 0 100")
	a.quiet.hears(t, "watched 4 at 0 with 0 and 0 levels")
	return a
}

func (a *audience) watchTicker(token uint64) {
	a.e.Watch(committed.Watch{Channel: a.tickerPID, Pair: a.e.Pairs()[0],
		Kind: committed.WatchChanges, View: committed.WatchTicker, Token: token})
}

// isSilent wants the witness to have heard nothing more.
func (w *witness) isSilent(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.said) > 0 {
		t.Errorf("it hears %q", w.said)
	}
}

func TestWatchersAreToldWhatIsReleasedAndNothingBefore(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		a := newAudience(t, fresh)
		a.hold()
		order := a.begin(a.placing(a.buy(100e8, 2*coin)))
		eventually(t, "the order is at the store", a.held)
		a.e.Notify(a.levelsPID, "not yet")
		a.levels.hears(t, "not yet")
		a.letGo()
		if got := <-order; got != accepted {
			t.Fatal(got)
		}
		update := fmt.Sprintf("update 2: %d buy 1 at 100, trade 1 of 1, 0 at 100, 1 at 100",
			a.first+1)
		a.levels.hears(t, update)
		a.trades.hears(t, update) // the levels come with it, because another watcher wants them
		a.ticker.hears(t, "changed")
		a.end()
		a.quiet.isSilent(t)
	})
}

func TestAChannelHearsNothingOfAPairThatItHasStoppedWatching(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		a := newAudience(t, fresh)
		a.e.Unwatch(a.levelsPID, a.e.Pairs()[0])
		a.e.Watch(committed.Watch{Channel: a.levelsPID, Pair: a.e.Pairs()[1],
			Kind: committed.WatchLevels, Token: 5})
		a.levels.hears(t, "watched 5")
		a.ends("a cancel", a.cancelling(a.first), accepted)
		a.trades.hears(t, fmt.Sprintf("update 2: %d sell 1 at 100 instead of %d", a.first+1,
			a.first))
		a.end()
		a.levels.isSilent(t)
	})
}

func TestAChannelOfChangesIsToldOnceUntilItLooks(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		a := newAudience(t, fresh)
		a.rest(a.sell(coin))
		a.ticker.hears(t, "changed")
		a.ends("a cancel", a.cancelling(a.first), accepted) // it has not looked
		a.watchTicker(6)
		a.ticker.hears(t, "watched 6 at 3, best 0 100")
		a.rest(a.sell(coin))
		a.ticker.hears(t, "changed")
		a.end()
		a.ticker.isSilent(t)
	})
}

func TestAChannelThatFailsIsStartedAgainAndHearsTheRest(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		a := newAudience(t, fresh)
		a.rest(a.sell(coin))
		a.trades.hears(t, fmt.Sprintf("update 2: %d sell 1 at 100, 2 at 100", a.first+1))
		a.e.Notify(a.tradesPID, "fail")
		a.e.Notify(a.tradesPID, "after")
		a.trades.hears(t, "restarting", "after")
		a.end()
	})
}
