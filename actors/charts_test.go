package actors

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/market"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
)

// The newest candles of a chart and its history are those of all trades. It does not matter which
// candles are in memory, on their way to the store, or stored, nor how often the process ends. Here
// a chart keeps few candles, and orders have times of their own.
func TestChartsAreThoseOfAllTrades(t *testing.T) {
	checkInBubbles(t, 8, func(t *testing.T, rt *rapid.T, fresh places) {
		p := &chartist{t: t, rt: rt, at: fresh(t), keep: rapid.IntRange(1, 5).Draw(rt, "keep"),
			now: time.Now().Add(-100 * 24 * time.Hour).UnixMicro()}
		p.start()
		fund(t, p.e, "ann", map[string]money.Amount{"BTC": 1000 * coin, "USD": 1_000_000 * coin})
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			p.step()
		}
		p.check(true)
		stop(t, p.e)
		p.close()
	})
}

type chartist struct {
	t      *testing.T
	rt     *rapid.T
	at     place
	store  persistence.Store
	e      *Engine
	keep   int
	now    int64 // of the newest order, in microseconds
	nonce  uint64
	trades []event.Record
}

func (p *chartist) start() {
	p.store = p.at()
	o := testOptions(p.store)
	o.candles = p.keep
	o.Snapshot = committed.SnapshotPolicy{MinRecords: 10, MaxRecords: 20}
	p.e = start(p.t, o)
}

func (p *chartist) close() {
	if err := p.store.Close(); err != nil {
		p.t.Fatal(err)
	}
}

func (p *chartist) step() {
	switch rapid.IntRange(0, 14).Draw(p.rt, "step") {
	case 0:
		stop(p.t, p.e)
		p.close()
		p.start()
	case 1:
		p.e.Abandon()
		p.close()
		p.start()
	case 2:
		p.check(true)
	default:
		p.now += rapid.SampledFrom([]int64{0, 1, 30, 60, 61, 300, 3600, 90_000}).Draw(p.rt,
			"seconds") * 1e6
		p.trade()
		p.check(false)
	}
}

// trade has one order meet one or two that rest.
func (p *chartist) trade() {
	makers := rapid.IntRange(1, 2).Draw(p.rt, "makers")
	amount := money.Amount(rapid.Int64Range(1, 1000).Draw(p.rt, "amount"))
	for range makers {
		p.place(trading.Sell, money.Price(rapid.Int64Range(1, 9).Draw(p.rt, "price"))*1e6, amount)
	}
	r := p.place(trading.Buy, 9e6, amount*money.Amount(makers))
	if len(r.Order.Trades) != makers {
		p.rt.Fatalf("%d trades with %d orders", len(r.Order.Trades), makers)
	}
	p.trades = append(p.trades, r)
}

// place is Engine.Place with the time of the test.
func (p *chartist) place(side trading.Side, price money.Price, amount money.Amount) event.Record {
	key := p.e.Key([]byte("key-of-ann"))
	p.nonce++
	c := newCommand(event.KindOrder)
	c.key, c.account, c.pair, c.timeUs = key, key.Account, p.e.Pairs()[0], p.now
	c.order.nonce, c.order.side, c.order.price, c.order.amount = p.nonce, side, price, amount
	c.record.Pair = c.pair.Number
	c = must[*Command](p.t)(p.e.Do(c))
	defer c.Free()
	if c.Outcome() != Accepted {
		p.rt.Fatalf("an order ends as %+v", c.Record())
	}
	r := *c.Record()
	r.Order.Trades = slices.Clone(r.Order.Trades)
	return r
}

// candles returns all candles of a frame, oldest first.
func (p *chartist) candles(f market.Frame) (list []market.Candle) {
	for i := range p.trades {
		r := &p.trades[i]
		at := r.TimeUs / 1e6 / f.Seconds() * f.Seconds()
		for _, x := range r.Order.Trades {
			if n := len(list); n == 0 || list[n-1].Time != at {
				list = append(list, market.Candle{Time: at, Open: x.Price, High: x.Price,
					Low: x.Price})
			}
			c := &list[len(list)-1]
			c.High, c.Low, c.Close, c.Volume = max(c.High, x.Price), min(c.Low, x.Price), x.Price,
				c.Volume.Add(x.Amount)
		}
	}
	return list
}

// check looks at what is in memory, and with the history at what the store has.
func (p *chartist) check(history bool) {
	if history {
		if err := p.e.Ask(new(committed.Written), nil, 0); err != nil {
			p.rt.Fatal(err)
		}
	}
	for f := range market.Frame(market.FrameCount) {
		all := p.candles(f)
		v := must[*committed.View](p.t)(p.e.View(committed.ViewCandles, p.e.Pairs()[0], f, 0, 0))
		if newest := all[max(0, len(all)-p.keep):]; !slices.Equal(v.Candles, newest) ||
			v.Older != (len(all) > p.keep) {
			p.rt.Fatalf("of frame %v are shown %+v, older %v, want %+v of %d", f, v.Candles,
				v.Older, newest, len(all))
		}
		if !history {
			continue
		}
		var stored []market.Candle
		err := committed.History(p.e.Door).Candles(context.Background(),
			persistence.CandleQuery{Pair: 1, Frame: uint8(f)}, func(c *persistence.Candle) bool {
				stored = append(stored, market.Candle{Time: c.Time, Open: c.Open, High: c.High,
					Low: c.Low, Close: c.Close, Volume: c.Volume})
				return true
			})
		if slices.Reverse(stored); err != nil || !slices.Equal(stored, all) {
			p.rt.Fatalf("of frame %v are stored %+v, %v, want %+v", f, stored, err, all)
		}
	}
}

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

// A view whose update id says nothing about its age is made anew when its time is over.
func TestTickersAreMadeAnewEachMinuteAndDeepBooksWhenTheyAreOld(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
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
		g.end()
	})
}

func TestABookOfManyOrdersIsCurrentByOrderAsFarAsItsTopLevels(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, func(o *Options) {
			o.Limits.OpenOrdersPerAccount, o.Limits.OpenOrdersPerAccountAndBook = 10_000, 10_000
			o.Limits.KeysPerAccount = 1000
		})
		pair := g.e.Pairs()[0]
		const orders, atOnce = committed.ShownOrders + 500, 100
		var keys []*directory.Key // each has nonces of its own
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
		g.end()
	})
}
