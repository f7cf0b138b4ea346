package actors

import (
	"exchange/actors/committed"
	"fmt"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// A witness is a channel that keeps what it is told.
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
		} else if v != nil {
			text += fmt.Sprintf(" at %d, best %v %v", v.UpdateID, v.Ticker.Buy, v.Ticker.Sell)
		}
		w.said = append(w.said, text)
	case *committed.BookUpdates:
		for _, u := range m.List {
			text := fmt.Sprintf("unit %d: %v %v %v at %v", u.UpdateID, u.ID, u.Side, u.Remaining,
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

// hears waits until the witness has been told something, and wants it to be this.
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

func TestWatchersAreToldWhatIsReleased(t *testing.T) {
	onBothStores(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		pair, other := g.e.Pairs()[0], g.e.Pairs()[1]
		spawn := func(name string) (*witness, *actor.PID) {
			w := new(witness)
			return w, g.e.SpawnChannel(name, func() actor.Actor { return w })
		}
		diff, diffPID := spawn("diff")
		trades, tradesPID := spawn("trades")
		ticker, tickerPID := spawn("ticker")
		quiet, quietPID := spawn("quiet")

		first := g.rest(g.sell(coin)) // before anybody watches
		g.e.Watch(committed.Watch{Channel: diffPID, Pair: pair, Kind: committed.WatchLevels,
			View:   committed.WatchBook,
			Levels: -1, Token: 1})
		g.e.Watch(committed.Watch{Channel: tradesPID, Pair: pair, Kind: committed.WatchUpdates,
			Token: 2})
		g.e.Watch(committed.Watch{Channel: tickerPID, Pair: pair, Kind: committed.WatchChanges,
			View:  committed.WatchTicker,
			Token: 3})
		g.e.Watch(committed.Watch{Channel: quietPID, Pair: other, Kind: committed.WatchLevels,
			View:   committed.WatchBook,
			Levels: 20, Token: 4})
		diff.hears(t, "watched 1 at 1 with 1 and 0 levels")
		trades.hears(t, "watched 2")
		ticker.hears(t, "watched 3 at 1, best 0 100")
		quiet.hears(t, "watched 4 at 0 with 0 and 0 levels")

		// Nothing is told before it is durable.
		g.hold()
		order := g.begin(g.placing(g.buy(100e8, 2*coin)))
		eventually(t, "the order is at the store", g.held)
		g.e.Tell(diffPID, "not yet")
		diff.hears(t, "not yet")
		g.letGo()
		if got := <-order; got != accepted {
			t.Fatal(got)
		}
		diff.hears(t, fmt.Sprintf("unit 2: %d buy 1 at 100, trade 1 of 1, 0 at 100, 1 at 100",
			first+1))
		// shared with who wants levels
		trades.hears(t, fmt.Sprintf("unit 2: %d buy 1 at 100, trade 1 of 1, 0 at 100, 1 at 100",
			first+1))
		ticker.hears(t, "changed")

		g.e.Unwatch(diffPID, pair)
		g.e.Watch(committed.Watch{Channel: diffPID, Pair: other, Kind: committed.WatchLevels,
			Token: 5})
		diff.hears(t, "watched 5")
		g.ends("a cancel", g.cancelling(first+1), accepted)
		trades.hears(t, fmt.Sprintf("unit 3: %d buy 1 at 100 instead of %d", first+2, first+1))
		// It has not looked, so it is not told again; when it looks it gets what is.
		g.e.Watch(committed.Watch{Channel: tickerPID, Pair: pair, Kind: committed.WatchChanges,
			View:  committed.WatchTicker,
			Token: 6})
		ticker.hears(t, "watched 6 at 3, best 0 0")
		g.rest(g.sell(coin))
		ticker.hears(t, "changed")
		trades.hears(t, fmt.Sprintf("unit 4: %d sell 1 at 100", first+3))

		// A channel that fails is started again, and goes on with what it has not seen.
		g.e.Tell(tradesPID, "fail")
		g.e.Tell(tradesPID, "after")
		trades.hears(t, "restarting", "after")
		diff.mu.Lock()
		if len(diff.said) > 0 {
			t.Errorf("who does not watch hears %q", diff.said)
		}
		diff.mu.Unlock()
		g.end()
	})
}
