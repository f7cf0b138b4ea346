package actors

import (
	"fmt"
	"testing"
	"time"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/market"
	"exchange/core/money"
	"exchange/core/trading"
)

// A chart in memory shows no more than the store keeps, because otherwise a restart would shorten
// it.
func TestAChartShowsNoMoreThanIsKept(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		for _, keep := range []int{1, 3, 0} { // 0 keeps all
			b := newTeller(t, fresh(t), func(o *Options) { o.Retention.Candles = keep })
			pair := b.e.Pairs()[0]
			must[Admin](t)(b.e.Deposit("test", "ann", "USD", 1000*coin, "for candles"))
			const minutes = 8
			begin := time.Now().Add(-time.Hour).UnixMicro()
			for i := range int64(minutes) {
				for _, side := range []trading.Side{trading.Sell, trading.Buy} {
					c := newCommand(event.KindOrder)
					c.key, c.account, c.pair, c.timeUs = b.key, b.key.Account, pair,
						begin+60_000_000*i
					c.order.nonce, c.order.side, c.order.price, c.order.amount = b.next(), side,
						1e8, 1e5
					c.record.Pair = pair.Number
					b.expect(outcomeOf(b.e.Do(c)), "accepted")
				}
			}
			want := minutes
			if keep > 0 {
				want = keep
			}
			v := must[*committed.View](t)(
				b.e.View(committed.ViewCandles, pair, market.Minute, 0, 0))
			if len(v.Candles) != want || v.Older != (want < minutes) {
				t.Errorf("of %d kept %d are shown, older: %v", keep, len(v.Candles), v.Older)
			}
			b.end()
		}
	})
}

// A view whose update id does not reveal its age is rebuilt after a time.
func TestTickersAreRebuiltEachMinuteAndDeepBooksWhenOld(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		pair := g.e.Pairs()[0]
		for i := range money.Price(committed.ShownLevels + 2) {
			w := g.sell(1000)
			w.Price += i * 1e6
			g.rest(w)
		}
		view := func(kind committed.ViewKind, sell int) *committed.View {
			t.Helper()
			return must[*committed.View](t)(g.e.View(kind, pair, 0, -1, sell))
		}
		ticker := view(committed.ViewTicker, -1)
		committed.SetMinute(ticker, time.Now().Unix()/60-1) // no other reader has it
		if again := view(committed.ViewTicker, -1); again == ticker || again.Ticker.Sell != 100e8 {
			t.Errorf("in the next minute the ticker is %+v", again.Ticker)
		}

		deep := view(committed.ViewLevels, -1)
		committed.SetAge(deep, -time.Hour) // it stays new, however slow the test is
		g.ends("a cancel", g.cancelling(1), accepted)
		if again := view(committed.ViewLevels, -1); again != deep ||
			len(again.Depth.SellLevels) != committed.ShownLevels+2 {
			t.Errorf("a deep book is copied before it is old: %d levels",
				len(again.Depth.SellLevels))
		}
		if top := view(committed.ViewLevels,
			committed.ShownLevels); top.UpdateID != deep.UpdateID+1 ||
			top.Depth.SellLevels[0].Price != 100e8+1e6 {
			t.Errorf("its top is old: %d after %d, from %v", top.UpdateID, deep.UpdateID,
				top.Depth.SellLevels[0].Price)
		}
		committed.SetAge(deep, committed.DeepAge+1)
		if again := view(committed.ViewLevels, -1); again.UpdateID != deep.UpdateID+1 ||
			len(again.Depth.SellLevels) != committed.ShownLevels+1 {
			t.Errorf("an old deep book stays: %d after %d", again.UpdateID, deep.UpdateID)
		}
	})
}

func TestABookOfManyOrdersIsCurrentByOrderAsFarAsItsTopLevels(t *testing.T) {
	onGated(t, func(o *Options) {
		o.Limits.OpenOrdersPerAccount, o.Limits.OpenOrdersPerAccountAndBook = 10_000, 10_000
		o.Limits.KeysPerAccount = 1000
	}, func(t *testing.T, g *gated) {
		pair := g.e.Pairs()[0]
		const orders, atOnce = committed.ShownOrders + 500, 100
		var keys []*directory.Key // each key has nonces of its own
		for i := range atOnce {
			name := fmt.Sprint("key-", i)
			must[Admin](t)(g.e.CreateKey("test", "ann", name, "secret", event.AllPermissions, nil))
			keys = append(keys, g.e.Key([]byte(name)))
		}
		for i := range orders / atOnce {
			var rest []<-chan string
			for level, key := range keys {
				rest = append(rest, g.begin(func() (*Command, error) {
					w := g.sell(1000)
					w.Price += money.Price(level%committed.ShownLevels) * 1e6
					return g.e.Place(key, uint64(i+1), w)
				}))
			}
			for _, r := range rest {
				if got := <-r; got != accepted {
					t.Fatal(got)
				}
			}
		}
		for range 3 {
			for _, limit := range []int{-1, orders, committed.ShownOrders + 1} {
				before := must[*committed.View](t)(
					g.e.View(committed.ViewOrders, pair, 0, -1, limit))
				g.rest(g.sell(1000))
				v := must[*committed.View](t)(g.e.View(committed.ViewOrders, pair, 0, -1, limit))
				if v.UpdateID != before.UpdateID+1 ||
					len(v.Depth.SellOrders) != len(before.Depth.SellOrders)+1 {
					t.Errorf(
						"with limit %d the book is of update %d, and before the last order it "+
							"was %d", limit, v.UpdateID, before.UpdateID)
				}
			}
		}
	})
}
