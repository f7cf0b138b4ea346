package actors

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/market"
)

// spawn starts a witness.
func (g *gated) spawn() (*witness, *actor.PID) {
	w := new(witness)
	return w, g.e.SpawnChannel("witness", func() actor.Actor { return w })
}

func TestAWatcherOfTheBestPricesIsToldOfNothingElse(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		g.rest(g.sell(coin))
		w, pid := g.spawn()
		look := func(token uint64) {
			g.e.Watch(committed.Watch{Channel: pid, Pair: g.e.Pairs()[0],
				Kind: committed.WatchBest, View: committed.WatchTop, Token: token})
		}
		look(1)
		w.hears(t, "watched 1 at 1 with 1 and 0 levels")
		g.rest(g.buy(98e8, coin))
		w.hears(t, "changed")
		g.rest(g.buy(99e8, coin)) // it has not looked
		look(2)
		w.hears(t, "watched 2 at 3 with 1 and 1 levels")
		g.rest(g.buy(97e8, coin))
		g.rest(g.buy(98e8, coin))
		look(3)
		w.hears(t, "watched 3 at 5 with 1 and 1 levels")
		g.rest(g.buy(99e8, coin)) // the price is the same, and the amount is another
		w.hears(t, "changed")
		look(4)
		w.hears(t, "watched 4 at 6 with 1 and 1 levels")
		g.rest(g.buy(98e8, coin))
		g.end()
		w.isSilent(t)
	})
}

func TestAWatcherOfCandlesGetsAllThatCameSinceItsLast(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newClocked(t, fresh, nil)
		w, pid := g.spawn()
		look := func(token uint64, since int64) {
			g.e.Watch(committed.Watch{Channel: pid, Pair: g.e.Pairs()[0],
				Kind: committed.WatchTrades, View: committed.WatchChart, Frame: market.Minute,
				Since: since, Token: token})
		}
		trade := func() {
			g.rest(g.sell(coin))
			g.ends("a buy", g.placing(g.buy(100e8, coin)), accepted)
		}
		look(1, math.MaxInt64)
		w.hears(t, "watched 1 at 0 with 0 candles")
		g.rest(g.buy(99e8, coin))
		trade()
		w.hears(t, "changed")
		for range 3 { // it has not looked
			g.later(2 * time.Minute)
			trade()
		}
		look(2, math.MinInt64)
		w.hears(t, "watched 2 at 9 with 4 candles")
		look(3, math.MaxInt64)
		w.hears(t, "watched 3 at 9 with 1 candles")
		newest := market.Minute.Start(time.Now().Add(6 * time.Minute).UnixMicro())
		look(4, newest-60) // a minute that may be over, and has no candle of its own
		w.hears(t, "watched 4 at 9 with 1 candles")
		g.later(2 * time.Minute)
		trade()
		w.hears(t, "changed")
		look(5, newest-60)
		w.hears(t, "watched 5 at 11 with 2 candles")
		g.rest(g.buy(99e8, coin))
		g.end()
		w.isSilent(t)
	})
}

func TestTheStatusIsToldWhenItIsDurable(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		w, pid := g.spawn()
		pair := g.e.Pairs()[0]
		g.e.Watch(committed.Watch{Channel: pid, Kind: committed.WatchStatus, Token: 1})
		w.hears(t, "watched 1 {false  false} []")
		g.hold()
		halted := make(chan error, 1)
		go func() {
			_, err := g.e.Halt("test", pair.Name, true)
			halted <- err
		}()
		eventually(t, "the halt is at the store", g.held)
		g.e.Notify(pid, "not yet")
		w.hears(t, "not yet")
		g.letGo()
		succeeds(t, <-halted)
		w.hears(t, fmt.Sprintf("status %d true {false  false}", pair.Number))
		must[Admin](t)(g.e.SetMaintenance(context.Background(), "test",
			event.Maintenance{On: true, Message: "soon"}))
		w.hears(t, "status 0 false {true soon false}")
		g.e.Watch(committed.Watch{Channel: pid, Kind: committed.WatchStatus, Token: 2})
		w.hears(t, fmt.Sprintf("watched 2 {true soon false} [%d]", pair.Number))
		must[Admin](t)(g.e.SetMaintenance(context.Background(), "test", unmaintained))
		w.hears(t, "status 0 false {false  false}")
		g.e.Unwatch(pid, nil)
		synctest.Wait() // what is released overtakes it
		must[Admin](t)(g.e.Halt("test", pair.Name, false))
		g.end()
		w.isSilent(t)
	})
}
