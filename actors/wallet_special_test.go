package actors

import (
	"slices"
	"strings"
	"testing"
	"time"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/money"
	"exchange/core/trading"
)

// amending is a change of an open order of the account.
func (g *gated) amending(a AmendRequest) func() (*Command, error) {
	g.nonce++
	nonce := g.nonce
	return func() (*Command, error) { return g.e.Amend(g.key, nonce, &a) }
}

// setting sets the account's self-trade mode.
func (g *gated) setting(mode trading.SelfTrade) func() (*Command, error) {
	g.nonce++
	nonce := g.nonce
	return func() (*Command, error) { return g.e.Do(NewSettings(g.key, nonce, mode)) }
}

// special adds instructions to an order.
func special(w *OrderRequest, s SpecialRequest) *OrderRequest {
	w.Special = &s
	return w
}

// stopBuy is a buy that waits for the price to rise to 200.
func (g *gated) stopBuy(price money.Price, amount money.Amount) *OrderRequest {
	return special(g.buy(price, amount),
		SpecialRequest{Trigger: trading.Trigger{Price: 200e8, When: trading.Rise}})
}

// gtd is an order that expires in an hour.
func gtd(w *OrderRequest) *OrderRequest {
	return special(w, SpecialRequest{Instructions: trading.Instructions{
		ExpireUs: time.Now().Add(time.Hour).UnixMicro()}})
}

// wantFunds wants the account's committed funds: "balance/reserve".
func (g *gated) wantFunds(what, btc, usd string) {
	g.t.Helper()
	if b, u := g.funds(g.key.Account.ID, 1), g.funds(g.key.Account.ID, 2); b != btc || u != usd {
		g.t.Errorf("%s: %s BTC and %s USD, want %s and %s", what, b, u, btc, usd)
	}
}

func TestAnAmendNeedsWhatItCanNeedAtMost(t *testing.T) {
	pair := &directory.Pair{BaseNumber: 1, QuoteNumber: 2}
	was := ledger.Terms{Price: 10, Amount: 100}
	for _, c := range []struct {
		what   string
		side   trading.Side
		change AmendRequest
		marks  marks
		want   int64 // units of price x amount; of a sell units of amount
	}{
		{"nothing", trading.Buy, AmendRequest{}, 0, 0},
		{"less", trading.Buy, AmendRequest{Amount: 50}, 0, 0},
		{"more", trading.Buy, AmendRequest{Amount: 150}, 0, 500},
		{"a higher price", trading.Buy, AmendRequest{Price: 12}, 0, 200},
		{"more at a lower price, when it is filled", trading.Buy,
			AmendRequest{Price: 5, Amount: 150}, 0, 250},
		{"less at a higher price, when it is not", trading.Buy,
			AmendRequest{Price: 20, Amount: 60}, 0, 200},
		{"another price of one that may slide before", trading.Buy, AmendRequest{Price: 12},
			marksStop | marksSlides, 1200},
		{"more to sell", trading.Sell, AmendRequest{Price: 1, Amount: 130}, 0, 30},
		{"more to sell of one that may slide before", trading.Sell,
			AmendRequest{Price: 1, Amount: 130}, marksStop | marksSlides, 30},
		{"less to sell", trading.Sell, AmendRequest{Price: 99, Amount: 30}, 0, 0},
	} {
		a := &amendRequest{AmendRequest: c.change}
		currency, need := a.need(c.side, was, c.marks, pair)
		want, in := money.Price(1).Times(money.Amount(c.want)).Balance(), uint16(2)
		if c.side == trading.Sell {
			want, in = money.Amount(c.want).Balance(), 1
		}
		if currency != in || need != want {
			t.Errorf("%s: %v of currency %d, want %v of %d", c.what, need, currency, want, in)
		}
	}
}

func TestAnAmendReservesAndReleases(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		buy, sell := g.rest(g.buy(50e8, 2*coin)), g.rest(g.sell(2*coin))
		g.wantFunds("placed", "10/2", "1000/100")
		g.ends("a higher price, more", g.amending(AmendRequest{Order: buy, Price: 90e8,
			Amount: 10 * coin}), accepted)
		g.wantFunds("the buy amended", "10/2", "1000/900")
		c := must[*Command](t)(g.amending(AmendRequest{Order: buy, Price: 95e8,
			Amount: 11 * coin})())
		currency, missing := c.Shortfall()
		if c.Outcome() != Refused || c.Record().Refusal.Reason != event.RefusedFunds ||
			currency != 2 || missing.String() != "45" {
			t.Errorf("too much: %+v, %v of currency %d is missing", c.Record(), missing, currency)
		}
		c.Free()
		g.ends("less", g.amending(AmendRequest{Order: buy, Amount: coin}), accepted)
		g.ends("more to sell", g.amending(AmendRequest{Order: sell, Amount: 10 * coin}), accepted)
		g.wantFunds("both amended", "10/10", "1000/90")
		g.ends("too much to sell", g.amending(AmendRequest{Order: sell, Amount: 10*coin + 1}),
			refusedFor(event.RefusedFunds))
		g.ends("another's", g.amending(AmendRequest{Order: 999, Amount: coin}),
			refusedFor(event.RefusedNotOpen))
		g.ends("no order", g.amending(AmendRequest{Amount: coin}),
			refusedFor(event.RefusedNotOpen))
		for _, id := range []uint64{buy, sell} {
			g.ends("its cancel", g.cancelling(id), accepted)
			g.ends("a cancelled one", g.amending(AmendRequest{Order: id, Amount: coin}),
				refusedFor(event.RefusedNotOpen))
		}
		g.wantFunds("cancelled", "10/0", "1000/0")
		g.end()
	})
}

// An amend that asks for too much money is told first what else is wrong with it. Nothing of it is
// reserved, and it uses its nonce.
func TestAnAmendIsRefusedForItsMoneyLast(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, func(o *Options) {
			p := &o.Pairs[0]
			p.PriceTick, p.AmountStep, p.PriceBand = 5e7, coin/10, money.MaxRate/10
			p.MinimumOrderSize, p.MinimumOrderValue = coin/2, coin.Balance()
			o.Limits.GTDPerAccountAndBook = 1
		})
		g.rest(g.sell(coin))
		g.ends("a trade at 100", g.placing(g.buy(100e8, coin)), accepted)
		buy, sell := g.rest(g.buy(50e8, 2*coin)), g.rest(special(g.sell(coin),
			SpecialRequest{Instructions: trading.Instructions{Display: coin / 2}}))
		first := g.rest(gtd(g.buy(1e8, coin)))
		later := time.Now().Add(time.Hour).UnixMicro()
		g.wantFunds("placed", "10/1", "1000/101")
		for _, c := range []struct {
			what   string
			change AmendRequest
			reason uint8
			fields string
		}{
			{"a price off the tick", AmendRequest{Order: buy, Price: 90_25e6, Amount: 90 * coin},
				event.RefusedRules, "price"},
			{"a price with too many digits", AmendRequest{Order: buy, Price: 90e8 + 1,
				Amount: 90 * coin}, event.RefusedRules, "price"},
			{"an amount off the step", AmendRequest{Order: buy, Amount: 90*coin + 1},
				event.RefusedRules, "amount"},
			{"both", AmendRequest{Order: buy, Price: 90_25e6, Amount: 90*coin + 1},
				event.RefusedRules, "price amount"},
			{"too small an amount", AmendRequest{Order: buy, Price: 90000e8, Amount: coin / 10},
				event.RefusedRules, "amount"},
			{"too many parts", AmendRequest{Order: sell, Amount: 90 * coin}, event.RefusedRules,
				"amount"},
			{"a part larger than the order", AmendRequest{Order: sell, Amount: 10 * coin,
				Display: 11 * coin}, event.RefusedRules, "display_amount"},
			{"a trigger of an order that waits for none", AmendRequest{Order: buy,
				Amount: 90 * coin, Trigger: 200e8}, event.RefusedRules, "trigger_price"},
			{"a price beyond the band", AmendRequest{Order: buy, Price: 111e8, Amount: 90 * coin},
				event.RefusedPriceBand, ""},
			{"too small an amount, and one more that expires", AmendRequest{Order: buy,
				Amount: coin / 10, ExpireUs: later}, event.RefusedRules, "amount"},
			{"one more that expires", AmendRequest{Order: buy, ExpireUs: later},
				event.RefusedGTDLimit, ""},
			{"the money alone", AmendRequest{Order: buy, Price: 110e8, Amount: 90 * coin},
				event.RefusedFunds, ""},
			{"an order that is over", AmendRequest{Order: 1, Price: 90_25e6, Amount: 90 * coin},
				event.RefusedNotOpen, ""},
		} {
			change := must[*Command](t)(g.amending(c.change)())
			var fields []string
			for _, f := range change.Faults() {
				fields = append(fields, f.Field)
			}
			if reason := change.Record().Refusal.Reason; change.Outcome() != Refused ||
				reason != c.reason || strings.Join(fields, " ") != c.fields {
				t.Errorf("%s: refused for %q, fields %q, want %q, %q", c.what,
					event.RefusalName(reason), fields, event.RefusalName(c.reason), c.fields)
			}
			nonce := change.Record().Refusal.Nonce
			change.Free()
			g.ends("its nonce again", func() (*Command, error) {
				return g.e.Amend(g.key, nonce, &c.change)
			}, refusedFor(event.RefusedNonce))
			g.wantFunds(c.what, "10/1", "1000/101")
		}
		for _, id := range []uint64{buy, sell, first} {
			g.ends("its cancel", g.cancelling(id), accepted)
		}
		g.end()
	})
}

// What is in flight may be why a change lacks money, or may bring that money. So the change waits
// for it.
func TestAnAmendThatLacksMoneyWaitsForWhatIsInFlight(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		id := g.rest(g.buy(50e8, coin))
		g.hold()
		order := g.begin(g.placing(g.buy(90e8, 10*coin)))
		eventually(t, "it is at the store", g.held)
		change := g.begin(g.amending(AmendRequest{Order: id, Amount: 3 * coin}))
		g.inMailbox(2)
		waiting := 0
		g.e.probeWallet(g.key.Account, func(w *wallet) { waiting = w.queue.Len() })
		if waiting != 1 {
			t.Fatalf("%d commands wait: the change does not", waiting)
		}
		behind := g.begin(g.cancelling(id)) // the account's commands keep their order
		g.queued(2)
		g.letGo()
		if a, b, c := <-order, <-change, <-behind; a != accepted ||
			b != refusedFor(event.RefusedFunds) || c != accepted {
			t.Errorf("the order: %s, the change: %s, its cancel: %s", a, b, c)
		}
		g.wantFunds("the order rests", "10/0", "1000/900")

		large := g.openIDs()[0]
		id = g.rest(g.buy(50e8, coin))
		unblock := g.block(g.e.Pairs()[0])
		gives := g.begin(g.cancelling(large))
		g.inMailbox(1)
		change = g.begin(g.amending(AmendRequest{Order: id, Amount: 3 * coin}))
		g.queued(1)
		unblock()
		if a, b := <-gives, <-change; a != accepted || b != accepted {
			t.Errorf("the cancel: %s, the change: %s", a, b)
		}
		g.wantFunds("there was money in the end", "10/0", "1000/150")
		g.end()
	})
}

// The terms of an order are known when the change before is released. So the second change reserves
// by the first, and is refused where the first took the money.
func TestAnAmendWaitsForTheAmendBefore(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		one, two := g.rest(g.buy(50e8, coin)), g.rest(g.buy(50e8, coin))
		g.hold()
		first := g.begin(g.amending(AmendRequest{Order: one, Amount: 10 * coin}))
		eventually(t, "it is at the store", g.held)
		second := g.begin(g.amending(AmendRequest{Order: one, Amount: 19 * coin}))
		g.queued(1)
		other := g.begin(g.amending(AmendRequest{Order: two, Amount: 2 * coin}))
		g.queued(2) // the account's commands keep their order
		g.letGo()
		if a, b, c := <-first, <-second, <-other; a != accepted || b != accepted ||
			c != refusedFor(event.RefusedFunds) {
			t.Errorf("first: %s, second: %s, of another order: %s", a, b, c)
		}
		g.wantFunds("amended", "10/0", "1000/1000")
		g.end()
	})
}

func TestAnAmendByClientIDWaitsForThePlacement(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		id, _ := event.NewClientID("mine")
		w := g.buy(50e8, coin)
		w.ClientID = id
		g.ends("one that was never placed", g.amending(AmendRequest{ClientID: id, Amount: coin}),
			refusedFor(event.RefusedNotOpen))
		g.hold()
		placed := g.begin(g.placing(w))
		eventually(t, "the order is at the store", g.held)
		change := g.begin(g.amending(AmendRequest{ClientID: id, Amount: 3 * coin}))
		g.queued(1)
		g.letGo()
		if a, b := <-placed, <-change; a != accepted || b != accepted {
			t.Errorf("placed: %s, amended: %s", a, b)
		}
		g.wantFunds("amended", "10/0", "1000/150")
		g.end()
	})
}

// The wallet reserves for an order that is not filled. By the time the book decides, the order is
// filled in part, or closed.
func TestAnAmendMeetsAnOrderThatWasFilledMeanwhile(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		for _, c := range []struct {
			filled   money.Amount
			want     string
			btc, usd string
		}{
			{coin, accepted, "11/0", "950/180"},
			{2 * coin, refusedFor(event.RefusedNotOpen), "12/0", "900/0"},
		} {
			g := newGated(t, fresh, nil)
			ben := fund(t, g.e, "ben", map[string]money.Amount{"BTC": 10 * coin})
			id := g.rest(g.buy(50e8, 2*coin))
			unblock := g.block(g.e.Pairs()[0])
			fill := g.begin(func() (*Command, error) {
				w := g.sell(c.filled)
				w.Price = 50e8
				return g.e.Place(ben, 1, w)
			})
			g.decided(ben, 1)
			change := g.begin(g.amending(AmendRequest{Order: id, Price: 60e8, Amount: 4 * coin}))
			g.inMailbox(1)
			unblock()
			if a, b := <-fill, <-change; a != accepted || b != c.want {
				t.Errorf("filled: %s, amended: %s, want %s", a, b, c.want)
			}
			g.wantFunds("amended", c.btc, c.usd)
			g.end()
		}
	})
}

func TestTermsOfOpenOrdersOutliveARestart(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		for _, end := range []string{"crash", "stop"} {
			g := newGated(t, fresh, nil)
			id, stop := g.rest(g.buy(50e8, coin)), g.rest(g.stopBuy(210e8, coin))
			g.ends("a change", g.amending(AmendRequest{Order: id, Amount: 2 * coin}), accepted)
			g.restart(end)
			g.ends("a change after a "+end, g.amending(AmendRequest{Order: id, Price: 100e8}),
				accepted)
			g.ends("a change of a stop", g.amending(AmendRequest{Order: stop, Amount: 2 * coin}),
				accepted)
			g.wantFunds("after a "+end, "10/0", "1000/620")
			g.end()
		}
	})
}

// stopsAndGTD returns how many of its orders the account's wallet counts as stops, and as orders
// that expire.
func (g *gated) stopsAndGTD() (stops, gtd int32) {
	g.e.probeWallet(g.key.Account, func(w *wallet) {
		for _, n := range w.inBook {
			stops += n.stops
			gtd += n.gtd
		}
	})
	return stops, gtd
}

func (g *gated) wantCounted(what string, stops, gtd int32) {
	g.t.Helper()
	if s, n := g.stopsAndGTD(); s != stops || n != gtd {
		g.t.Errorf("%s: %d stops and %d that expire, want %d and %d", what, s, n, stops, gtd)
	}
}

func TestStopsAndOrdersThatExpireAreCountedByAccountAndPair(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, func(o *Options) {
			o.Limits.StopsPerAccountAndBook, o.Limits.GTDPerAccountAndBook = 2, 2
		})
		oco := special(g.sell(coin), SpecialRequest{Instructions: trading.Instructions{
			OCO: trading.OCO{Trigger: 50e8, Price: 40e8}}})
		stop, both := g.rest(g.stopBuy(1e8, coin)), g.rest(oco)
		g.wantCounted("a stop and an OCO", 2, 0)
		g.ends("a third stop", g.placing(g.stopBuy(1e8, coin)),
			refusedFor(event.RefusedStopLimit))
		other := g.stopBuy(1e8, coin)
		other.Pair = g.e.Pairs()[1]
		g.ends("one of another pair", g.placing(other), refusedFor(event.RefusedFunds))
		g.ends("a cancel", g.cancelling(both), accepted)
		g.wantCounted("a stop", 1, 0)
		one := g.rest(gtd(g.buy(1e8, coin)))
		g.ends("an end for the stop", g.amending(AmendRequest{Order: stop,
			ExpireUs: time.Now().Add(time.Hour).UnixMicro()}), accepted)
		g.wantCounted("with ends", 1, 2)
		g.ends("a third that expires", g.placing(gtd(g.buy(1e8, coin))),
			refusedFor(event.RefusedGTDLimit))
		plain := g.rest(g.buy(1e8, coin))
		g.ends("an end for a third", g.amending(AmendRequest{Order: plain,
			ExpireUs: time.Now().Add(time.Hour).UnixMicro()}), refusedFor(event.RefusedGTDLimit))
		g.ends("another end of the first", g.amending(AmendRequest{Order: one,
			ExpireUs: time.Now().Add(2 * time.Hour).UnixMicro()}), accepted)
		g.restart("stop")
		g.wantCounted("after a restart", 1, 2)
		for _, id := range []uint64{stop, one, plain} {
			g.ends("a cancel", g.cancelling(id), accepted)
		}
		g.wantCounted("all cancelled", 0, 0)
		g.end()
	})
}

// Orders on their way count, and a refused one counts no more.
func TestStopsOnTheirWayAreCounted(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, func(o *Options) { o.Limits.StopsPerAccountAndBook = 1 })
		must[Admin](t)(g.e.Halt("ops", g.e.Pairs()[0].Name, true))
		g.ends("a stop on a halted pair", g.placing(g.stopBuy(1e8, coin)),
			refusedFor(event.RefusedHalted))
		g.wantCounted("refused", 0, 0)
		must[Admin](t)(g.e.Halt("ops", g.e.Pairs()[0].Name, false))
		unblock := g.block(g.e.Pairs()[0])
		first := g.begin(g.placing(g.stopBuy(1e8, coin)))
		g.inMailbox(1)
		g.wantCounted("on its way", 1, 0)
		second := g.begin(g.placing(g.stopBuy(1e8, coin)))
		g.inMailbox(2)
		unblock()
		if a, b := <-first, <-second; a != accepted || b != refusedFor(event.RefusedStopLimit) {
			t.Errorf("first: %s, second: %s", a, b)
		}
		g.end()
	})
}

func TestATriggeredOrderIsNoStopAnyMore(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		ben := fund(t, g.e, "ben",
			map[string]money.Amount{"BTC": 10 * coin, "USD": 1000 * coin})
		stop := g.rest(g.stopBuy(205e8, coin))
		g.wantFunds("waiting", "10/0", "1000/205")
		for i, side := range []trading.Side{trading.Sell, trading.Buy} {
			w := &OrderRequest{Pair: g.e.Pairs()[0], Side: side, Price: 200e8, Amount: coin}
			must[*Command](t)(g.e.Place(ben, uint64(i+1), w)).Free()
		}
		eventually(t, "the stop rests", func() bool {
			stops, _ := g.stopsAndGTD()
			return stops == 0
		})
		g.ends("its change", g.amending(AmendRequest{Order: stop, Price: 210e8}), accepted)
		g.wantFunds("amended", "10/0", "1000/210")
		g.end()
	})
}

func TestAnOrderForASumReservesJustThat(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		ben := fund(t, g.e, "ben", map[string]money.Amount{"BTC": 10 * coin})
		must[*Command](t)(g.e.Place(ben, 1, g.sell(10*coin))).Free()
		spend := func(sum money.Amount) *OrderRequest {
			return special(g.buy(105e8, 0), SpecialRequest{Instructions: trading.Instructions{
				Market: true, IOC: true, Quote: sum}})
		}
		g.ends("more than there is", g.placing(spend(1000*coin+1)),
			refusedFor(event.RefusedFunds))
		g.hold()
		order := g.begin(g.placing(spend(950 * coin)))
		eventually(t, "the order is at the store", g.held)
		second := g.begin(g.placing(spend(50*coin + 1)))
		g.inMailbox(2)
		g.letGo()
		if a, b := <-order, <-second; a != accepted || b != refusedFor(event.RefusedFunds) {
			t.Errorf("the order: %s, one unit more than is left: %s", a, b)
		}
		g.wantFunds("bought", "19.5/0", "50/0")
		g.end()
	})
}

// selfTraded returns the reason for which the rest of an order was cancelled.
func (g *gated) selfTraded(w *OrderRequest) trading.Reason {
	g.t.Helper()
	c := must[*Command](g.t)(g.placing(w)())
	defer c.Free()
	if c.Record().Kind == event.KindOrder {
		return 0
	}
	return c.Record().Instructions.Cancelled
}

func TestAnOrderThatNamesNoSelfTradeModeTakesTheAccounts(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		g.rest(g.sell(5 * coin))
		if got := g.selfTraded(g.buy(100e8, 1e5)); got != 0 {
			t.Errorf("without a setting: %v", got)
		}
		g.hold()
		set := g.begin(g.setting(trading.SelfTradeCancelNewest))
		eventually(t, "the setting is at the store", g.held)
		order := g.begin(g.placing(g.buy(100e8, 1e5))) // it is decided by the setting on its way
		g.inMailbox(2)
		g.letGo()
		if a, b := <-set, <-order; a != accepted || b != accepted {
			t.Errorf("the setting: %s, the order: %s", a, b)
		}
		kinds := []event.Kind{}
		for _, r := range g.records() {
			kinds = append(kinds, r.Kind)
		}
		if want := []event.Kind{event.KindSettings, event.KindInstructed}; !slices.Equal(kinds,
			want) {
			t.Errorf("the records are %v, want %v", kinds, want)
		}
		none := special(g.buy(100e8, 1e5), SpecialRequest{SelfTradeGiven: true})
		if got := g.selfTraded(none); got != 0 {
			t.Errorf("an order that says none: %v", got)
		}
		g.restart("crash")
		if got := g.selfTraded(g.buy(100e8, 1e5)); got != trading.CancelledSelfTrade {
			t.Errorf("after a restart: %v", got)
		}
		g.ends("none again", g.setting(trading.SelfTradeNone), accepted)
		if got := g.selfTraded(g.buy(100e8, 1e5)); got != 0 {
			t.Errorf("without a setting again: %v", got)
		}
		g.end()
	})
}

// An order that others of the account prevented is closed in the wallet, too.
func TestAPreventedOrderIsClosedInItsWallet(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		mine, _ := event.NewClientID("mine")
		w := g.sell(5 * coin)
		w.ClientID = mine
		g.rest(w)
		g.ends("the setting", g.setting(trading.SelfTradeCancelOldest), accepted)
		id := g.rest(g.buy(100e8, coin))
		g.wantFunds("prevented", "10/0", "1000/100")
		if got := g.openIDs(); !slices.Equal(got, []uint64{id}) {
			t.Errorf("%v are open", got)
		}
		g.ends("its cancel", g.cancelling(id), accepted)
		g.end()
	})
}
