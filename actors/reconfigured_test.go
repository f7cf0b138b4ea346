package actors

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// Configurations that change over a restart, while waiting orders fit only the old one.

// restartWith starts the next engine with other options.
func (g *gated) restartWith(change func(*Options)) {
	g.t.Helper()
	g.end()
	g.o.Pairs = slices.Clone(g.o.Pairs)
	change(&g.o)
	g.again()
}

// reloadWith applies other options to the running engine.
func (g *gated) reloadWith(change func(*Options)) {
	g.t.Helper()
	g.o.Pairs = slices.Clone(g.o.Pairs)
	change(&g.o)
	succeeds(g.t, g.e.Reconfigure(g.o.Limits, g.o.Pairs))
}

// A trader places orders with a key of its own.
type trader struct {
	g     *gated
	key   string
	nonce uint64
}

func (x *trader) places(w *OrderRequest) (id uint64, trades []event.Trade) {
	x.g.t.Helper()
	x.nonce++
	c := must[*Command](x.g.t)(x.g.e.Place(x.g.e.Key([]byte(x.key)), x.nonce, w))
	defer c.Free()
	if c.Outcome() != Accepted {
		x.g.t.Fatalf("order %+v: %+v", w, c.Record())
	}
	return c.Record().Order.ID, slices.Clone(c.Record().Order.Trades)
}

func (g *gated) sellAt(price money.Price, amount money.Amount) *OrderRequest {
	w := g.sell(amount)
	w.Price = price
	return w
}

// coarse are rules that none of the waiting orders fits.
func coarse(o *Options) {
	p := &o.Pairs[0]
	p.PricePrecision, p.PriceTick = 0, 10e8
	p.AmountPrecision, p.AmountStep = 1, coin/2
	p.MinimumOrderSize, p.MaximumOrderSize = 2*coin, 3*coin
	p.MinimumOrderValue = (500 * coin).Balance()
	p.PriceBand, p.MarketCollar, p.StopCollar = money.MaxRate/2, 0, 0
	l := &o.Limits
	l.StopsPerBook, l.StopsPerAccountAndBook, l.GTDPerBook, l.GTDPerAccountAndBook = 1, 1, 1, 1
	l.OpenOrdersPerBook, l.OpenOrdersPerAccount, l.OpenOrdersPerAccountAndBook = 30, 30, 30
	l.TriggersInFlight = 1
}

func TestWaitingOrdersKeepTheirTermsUnderOtherRules(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, end := range []string{"crash", "stop", "reload"} {
			waitUnderOtherRules(t, end)
		}
	})
}

func waitUnderOtherRules(t *testing.T, end string) {
	g := newGated(t, memoryPlaces, nil)
	fund(t, g.e, "ben", map[string]money.Amount{"BTC": 10 * coin, "USD": 10_000 * coin})
	ben := &trader{g: g, key: "key-of-ben"}
	in := time.Now().Add(time.Hour).UnixMicro()
	g.rest(g.sellAt(100_01e6, 1_23456789))
	g.rest(g.special(g.sellAt(100_03e6, coin), until(in)))
	g.rest(g.special(g.sellAt(100_05e6, 1_11111111), display(11111111)))
	second := g.rest(g.special(g.sellAt(150_07e6, coin), oco(90_01e6, 0)))
	first := g.rest(g.special(g.sellAt(150_09e6, coin), oco(90_03e6, 80_07e6)))
	limit := g.rest(g.special(g.buy(120_11e6, 33333333), rising(110_01e6)))
	slides := g.rest(g.special(g.buy(115_01e6, 33333333), rising(110_03e6),
		slide(115_01e6)))
	ben.places(g.buy(90_01e6, 5*coin))
	before, btc, usd := hashAtRest(t, g.e), g.funds(1, 1), g.funds(1, 2)
	if end == "crash" {
		g.crash()
		g.again()
	}
	if end == "reload" {
		g.reloadWith(coarse)
	} else {
		g.restartWith(coarse)
	}
	if hashAtRest(t, g.e) != before || g.funds(1, 1) != btc || g.funds(1, 2) != usd {
		t.Errorf("after a %s the state is another", end)
	}
	g.ends("one more stop", g.placing(g.stopBuy(1e8, 1e6)),
		refusedFor(event.RefusedStopLimit))
	g.ends("one more that expires", g.placing(gtd(g.buy(1e8, 1e6))),
		refusedFor(event.RefusedGTDLimit))

	// The fall triggers both other halves. The one without a price sells at its trigger,
	// where ben buys, though that is no multiple of the tick.
	ben.places(g.sellAt(90_01e6, coin))
	eventually(t, "both other halves have sold", func() bool {
		_, a := g.find(first)
		_, b := g.find(second)
		return !a && !b && g.e.quiet()
	})
	if got := g.funds(1, 2); got != "1180.02/78.3733325496" {
		t.Errorf("ann has %s USD", got)
	}
	_, trades := ben.places(g.buy(100_05e6, 1_23456789+coin+1_11111111))
	if len(trades) != 2+11 {
		t.Errorf("the buy trades %+v", trades)
	}
	ben.places(g.sellAt(110_03e6, coin))
	ben.places(g.buy(110_03e6, coin))
	eventually(t, "both stops rest", func() bool {
		return g.rests(limit) && g.rests(slides)
	})
	if end != "reload" { // the step is as it was
		g.ends("an amount that is no multiple", g.amending(AmendRequest{Order: limit,
			Amount: 2_20000000}), refusedFor(event.RefusedRules))
	}
	g.ends("an amount that is", g.amending(AmendRequest{Order: limit, Amount: 2_50000000}),
		refusedFor(event.RefusedRules))
	for _, id := range []uint64{limit, slides} {
		g.ends("a cancel", g.cancelling(id), accepted)
	}
	g.noneOpen()
	if btc, usd := g.funds(1, 1), g.funds(1, 2); !strings.HasSuffix(btc, "/0") ||
		!strings.HasSuffix(usd, "/0") {
		t.Errorf("ann has %s BTC and %s USD", btc, usd)
	}
	auditClean(t, g.e)
	g.end()
}

// Orders beyond a lowered limit stay, and can be changed. New ones are refused until there are few
// enough.
func TestLimitsBelowTheOpenOrdersRefuseOnlyNewOnes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for what, lower := range map[string]func(*Limits){
			"of an account": func(l *Limits) {
				l.StopsPerAccountAndBook, l.GTDPerAccountAndBook = 2, 2
			},
			"of a book": func(l *Limits) { l.StopsPerBook, l.GTDPerBook = 2, 2 },
			"of an account, by a reload": func(l *Limits) {
				l.StopsPerAccountAndBook, l.GTDPerAccountAndBook = 2, 2
			},
			"of a book, by a reload": func(l *Limits) { l.StopsPerBook, l.GTDPerBook = 2, 2 },
		} {
			g := newGated(t, memoryPlaces, nil)
			change := g.restartWith
			if strings.HasSuffix(what, "reload") {
				change = g.reloadWith
			}
			in := time.Now().Add(time.Hour).UnixMicro()
			var stops, ending []uint64
			for range 4 {
				stops = append(stops, g.rest(g.stopBuy(1e8, 1e6)))
				ending = append(ending, g.rest(g.special(g.buy(1e8, 1e6), until(in))))
			}
			plain := g.rest(g.buy(1e8, 1e6))
			change(func(o *Options) { lower(&o.Limits) })
			more := func(stop, end string) {
				t.Helper()
				g.ends(what+": one more stop", g.placing(g.stopBuy(1e8, 1e6)), stop)
				g.ends(what+": one more that expires",
					g.placing(g.special(g.buy(1e8, 1e6), until(in))), end)
			}
			tooManyStops, tooMany := refusedFor(event.RefusedStopLimit),
				refusedFor(event.RefusedGTDLimit)
			more(tooManyStops, tooMany)
			g.ends(what+": a plain one gets an end",
				g.amending(AmendRequest{Order: plain, ExpireUs: in}), tooMany)
			g.ends(what+": another end", g.amending(AmendRequest{Order: ending[0],
				ExpireUs: in + 1}),
				accepted)
			g.ends(what+": another trigger",
				g.amending(AmendRequest{Order: stops[0], Trigger: 199e8}), accepted)
			for i := range 2 {
				g.ends(what+": a cancel", g.cancelling(stops[i]), accepted)
				g.ends(what+": a cancel", g.cancelling(ending[i]), accepted)
				more(tooManyStops, tooMany)
			}
			g.ends(what+": a cancel", g.cancelling(stops[2]), accepted)
			g.ends(what+": a cancel", g.cancelling(ending[2]), accepted)
			more(accepted, accepted)
			more(tooManyStops, tooMany)
			auditClean(t, g.e)
			g.end()
		}
	})
}

func TestAPairWithWaitingOrdersMustBeConfigured(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newGated(t, memoryPlaces, nil)
		pairs := g.o.Pairs
		without := func() error {
			g.end()
			o := g.o
			o.Store, o.Pairs = g.at(), pairs[1:]
			defer o.Store.Close()
			e, err := Start(context.Background(), o)
			if err == nil {
				e.Abandon()
			}
			return err
		}
		in := time.Now().Add(time.Hour).UnixMicro()
		for what, w := range map[string]func() *OrderRequest{
			"a stop": func() *OrderRequest { return g.stopBuy(1e8, 1e6) },
			"an order that expires": func() *OrderRequest {
				return g.special(g.buy(1e8, 1e6), until(in))
			},
			"a stop that expires": func() *OrderRequest {
				return g.special(g.buy(1e8, 1e6), rising(200e8), until(in))
			},
			"an order with another half": func() *OrderRequest {
				return g.special(g.sell(1e6), oco(50e8, 0))
			},
		} {
			id := g.rest(w())
			err := without()
			if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "BTC_USD") ||
				!strings.Contains(err.Error(), "1 orders are open") ||
				!strings.Contains(err.Error(), "put it back") {
				t.Errorf("%s: the start ends with %v", what, err)
			}
			g.again()
			g.ends(what+": a cancel", g.cancelling(id), accepted)
		}
		g.end()
	})
}

// A switch that names the pair does not prevent its removal: there is nothing to cancel.
func TestASwitchOutlivesItsPair(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newTimed(t, nil)
		pairs := g.o.Pairs
		dueUs := g.arm(60, CancelFilter{Pair: g.e.Pairs()[0], Side: trading.Sell})
		other := g.sell(1e6)
		other.Pair = g.e.Pairs()[1]
		id := g.rest(other)
		g.restartWith(func(o *Options) { o.Pairs = pairs[1:] })
		q := &committed.KeySwitch{Key: g.key.Number}
		g.nonce++
		if err := g.e.Ask(q, g.key, g.nonce); err != nil || q.Switch.DueUs != dueUs ||
			g.e.Market(q.Switch.Pair).Name != "BTC_USD" {
			t.Errorf("armed is %+v, %v", q.Switch, err)
		}
		auditClean(t, g.e)
		g.later(time.Hour)
		g.acts()
		g.fired()
		if got := g.openIDs(); !slices.Equal(got, []uint64{id}) {
			t.Errorf("%v are open", got)
		}
		ended(t, written(t, g.Store, 0)).counts(0, 0, 1)
		g.restartWith(func(o *Options) { o.Pairs = []directory.PairRules{pairs[1], pairs[0]} })
		w := g.sell(1e6)
		w.Pair = g.e.PairNamed("BTC_USD")
		g.rest(w)
		g.restart("crash")
		g.end()
	})
}
