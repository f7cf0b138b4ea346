package actors

import (
	"testing"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

func TestOrdersThatTakeAtOnceNeverRest(t *testing.T) {
	f := func(what, want string, says ...saying) {
		t.Helper()
		d := newDesk(t, nil)
		d.sell(ann, 2, 100)
		d.sell(ann, 3, 101)
		d.want(what, d.buy(bob, 9, 101, says...), want)
		if n := d.b.orders.Len(); n != 0 {
			t.Errorf("%s: %d orders are left", what, n)
		}
	}
	f("ioc", "special 3: 2x100#1 3x101#2 cancelled 4 (ioc)", ioc)
	f("market", "special 3: 2x100#1 3x101#2 cancelled 4 (ioc)", marketOrder)

	d := newDesk(t, nil)
	d.sell(ann, 2, 100)
	d.want("ioc that trades nothing", d.buy(bob, 1, 99, ioc), "special 2: cancelled 1 (ioc)")
	d.want("ioc that trades all", d.buy(bob, 1, 100, ioc), "special 3: 1x100#1 done")
	d.want("fok of too much", d.buy(bob, 2, 100, fok), "special 4: cancelled 2 (fok)")
	d.want("fok", d.buy(bob, 1, 100, fok), "special 5: 1x100#1 done")
}

func TestFillsOfSpecialOrdersAreBounded(t *testing.T) {
	d := newDesk(t, func(_ *directory.PairRules, l *Limits) { l.MaxFills = 2 })
	for range 3 {
		d.sell(ann, 1, 100)
	}
	d.want("fok beyond the bound", d.buy(bob, 3, 100, fok), "special 4: cancelled 3 (max_fills)")
	d.want("ioc beyond the bound", d.buy(bob, 3, 100, ioc),
		"special 5: 1x100#1 1x100#2 cancelled 1 (max_fills)")
	d.sell(ann, 1, 100)
	d.sell(ann, 1, 100)
	d.want("a mode that met nothing leaves a plain order", d.buy(bob, 3, 100,
		apart(trading.SelfTradeCancelNewest)), "order 8: 1x100#3 1x100#6 cancelled 1 ()")
}

func TestASumBuysAsMuchAsItCan(t *testing.T) {
	sum := func(quote money.Amount) saying {
		return func(s *SpecialRequest) { s.Market, s.IOC, s.Quote = true, true, quote }
	}
	const unit = 1e8 // of a price: so many units of 1e-16 are one of a sum
	d := newDesk(t, func(r *directory.PairRules, _ *Limits) { r.AmountStep = 5 })
	d.sell(ann, 10, 2*unit)
	d.sell(ann, 100, 3*unit)
	d.want("it takes whole steps", d.buy(bob, 0, 3*unit, sum(70)),
		"special 3: 10x200000000#1 15x300000000#2 done")
	d.want("its money buys no step", d.buy(bob, 0, 3*unit, sum(14)),
		"special 4: cancelled 0 (ioc)")
	d.want("more than there is", d.buy(bob, 0, 3*unit, sum(1000)),
		"special 5: 85x300000000#2 cancelled 0 (ioc)")
}

func TestPostOnlyOrdersNeverTake(t *testing.T) {
	d := newDesk(t, func(r *directory.PairRules, _ *Limits) {
		r.PriceTick, r.MinimumOrderValue = 5, money.Price(90).Times(2).Balance()
	})
	d.sell(ann, 2, 100)
	d.want("it meets the best price", d.buy(bob, 2, 100, postOnly), "would_trade")
	d.want("its own order is one, too", d.buy(ann, 2, 100, postOnly), "would_trade")
	d.want("it does not meet", d.buy(bob, 2, 95, postOnly), "special 2: rests 2 at 95")
	d.want("it slides by a tick", d.buy(bob, 2, 110, slide(110)), "special 3: rests 2 at 95")
	d.want("it slides up", d.sell(bob, 2, 90, slide(90)), "special 4: rests 2 at 100")
	d.want("nothing to slide from", d.buy(bob, 2, 90, slide(90)), "special 5: rests 2 at 90")
	d.want("it would be worth too little", d.buy(bob, 1, 110, slide(110)), "would_trade")
}

func TestSelfTradeModes(t *testing.T) {
	f := func(mode trading.SelfTrade, want string, left ...uint64) {
		t.Helper()
		d := newDesk(t, nil)
		d.sell(bob, 1, 99)
		d.sell(ann, 2, 100)
		d.sell(bob, 3, 100)
		d.want("a taker meets its own", d.buy(ann, 5, 100, apart(mode)), want)
		for _, id := range left {
			if _, open := d.b.orders.Get(id); !open {
				t.Errorf("mode %d: order %d is gone", mode, id)
			}
		}
		if n := d.b.orders.Len(); n != len(left) {
			t.Errorf("mode %d: %d orders are left, want %d", mode, n, len(left))
		}
	}
	f(trading.SelfTradeNone, "order 4: 1x99#1 2x100#2 2x100#3 done", 3)
	f(trading.SelfTradeCancelNewest, "special 4: 1x99#1 cancelled 4 (self_trade)", 2, 3)
	f(trading.SelfTradeCancelOldest, "special 4: 1x99#1 -#2 3x100#3 rests 1 at 100", 4)
	f(trading.SelfTradeCancelBoth, "special 4: 1x99#1 -#2 cancelled 4 (self_trade)", 3)

	d := newDesk(t, nil)
	d.sell(ann, 2, 100)
	d.want("a killed fok prevents nothing", d.buy(ann, 2, 100, fok,
		apart(trading.SelfTradeCancelOldest)), "special 2: cancelled 2 (fok)")
	d.want("a mode that meets nothing", d.buy(ann, 2, 99, apart(trading.SelfTradeCancelBoth)),
		"order 3: rests 2 at 99")
	d.want("it stays with other instructions", d.buy(ann, 1, 98, postOnly,
		apart(trading.SelfTradeCancelBoth)), "special 4: rests 1 at 98")
	if s := d.b.standing[4]; s == nil || s.SelfTrade != trading.SelfTradeCancelBoth ||
		d.b.standing[3] != nil {
		t.Errorf("known of the orders: %+v, %+v", d.b.standing[3], s)
	}
}

func TestIcebergsComeAgain(t *testing.T) {
	d := newDesk(t, nil)
	d.sell(ann, 10, 100, display(3))
	d.sell(bob, 2, 100)
	if got := d.displays(1); got != 3 {
		t.Errorf("it displays %d", int64(got))
	}
	d.want("a taker meets it again", d.buy(cid, 7, 100),
		"order 3: 3x100#1 2x100#2 2x100#1 done")
	if got := d.displays(1); got != 1 {
		t.Errorf("it displays %d", int64(got))
	}
	d.want("a plain taker takes the rest", d.buy(cid, 9, 100),
		"order 4: 1x100#1 3x100#1 1x100#1 rests 4 at 100")
	d.want("as a taker it trades with all it has", d.sell(ann, 9, 100, display(2)),
		"special 5: 4x100#4 rests 5 at 100")
	if got := d.displays(5); got != 2 {
		t.Errorf("it displays %d", int64(got))
	}
	d.want("its hidden part is cancelled, too", d.cancel(5), "cancel 5")
}

func TestBandsOfSpecialOrders(t *testing.T) {
	d := newDesk(t, func(r *directory.PairRules, _ *Limits) { r.PriceBand = money.MaxRate / 10 })
	d.want("no trade, no band", d.buy(ann, 1, 1, ioc), "special 1: cancelled 1 (ioc)")
	d.last(100)
	d.want("beyond the band", d.buy(ann, 1, 111, ioc), "price_band")
	d.want("the harmless side", d.buy(ann, 1, 1, ioc), "special 4: cancelled 1 (ioc)")
	d.want("a stop is measured at its trigger", d.buy(ann, 1, 220, rising(200)),
		"stop 5: rests 1 at 220")
	c := d.order(ann, trading.Buy, 1, 221, rising(200))
	d.want("beyond that", d.send(c), "price_band")
	if c.Bound() != 220 {
		t.Errorf("the bound is %v", c.Bound())
	}
	d.want("the other half, too", d.sell(ann, 1, 100, oco(90, 80)), "price_band")
	d.want("the other half within the band", d.sell(ann, 1, 100, oco(90, 81)),
		"special 6: rests 1 at 100")
}

func TestSpecialOrdersAreRefusedAtTheLimits(t *testing.T) {
	d := newDesk(t, func(_ *directory.PairRules, l *Limits) {
		l.OpenOrdersPerBook, l.StopsPerBook, l.GTDPerBook = 4, 2, 1
	})
	d.sell(ann, 1, 100, until(5e6))
	d.want("too many that expire", d.sell(ann, 1, 100, until(5e6)), "too_many_gtd")
	d.sell(ann, 1, 110, rising(200))
	d.sell(ann, 1, 110, oco(50, 0))
	d.want("too many stops", d.sell(ann, 1, 110, rising(200)), "too_many_stops")
	d.want("another half is a stop, too", d.sell(ann, 1, 110, oco(50, 0)), "too_many_stops")
	d.sell(ann, 1, 120)
	d.want("a full book", d.buy(ann, 1, 90), "book_limit")
	d.want("for instructions, too", d.buy(ann, 1, 90, postOnly), "book_limit")
	d.want("what never rests needs no place", d.buy(ann, 1, 90, ioc),
		"special 5: cancelled 1 (ioc)")
	d.want("what trades gets one", d.buy(bob, 2, 100, postOnly, func(s *SpecialRequest) {
		s.PostOnly, s.Display = false, 1
	}), "special 6: 1x100#1 rests 1 at 100")
}

func TestHaltsComeBeforeAllElse(t *testing.T) {
	d := newDesk(t, nil)
	d.last(100)
	d.halt(true)
	d.want("halted", d.buy(ann, 1, 100, rising(50)), "halted")
	d.want("halted, also for what is due", d.buy(ann, 1, 100, until(1)), "halted")
	d.halt(false)
	d.want("it would trigger", d.buy(ann, 1, 100, rising(100)), "would_trigger")
}

// Where several reasons refuse an order, the first of them is told: the trigger, the band,
// post-only, and the limits of the book last.
func TestRefusalsOfABookHaveTheirOrder(t *testing.T) {
	d := newDesk(t, func(r *directory.PairRules, l *Limits) {
		r.PriceBand = money.MaxRate / 10
		l.OpenOrdersPerBook, l.StopsPerBook, l.GTDPerBook = 3, 1, 1
	})
	d.last(100)
	d.sell(ann, 1, 100, until(5e6))
	d.buy(ann, 1, 220, rising(200))
	d.want("a trigger, a band and a limit", d.buy(bob, 1, 200, rising(100)), "would_trigger")
	d.want("another half's trigger, and a band", d.sell(bob, 1, 80, oco(100, 0)),
		"would_trigger")
	d.want("a band and a limit", d.buy(bob, 1, 331, rising(300)), "price_band")
	d.want("a band and post-only", d.buy(bob, 1, 111, postOnly), "price_band")
	d.want("post-only and a limit", d.buy(bob, 1, 100, postOnly, until(5e6)), "would_trade")
	d.want("the limit", d.buy(bob, 1, 99, postOnly, until(5e6)), "too_many_gtd")
	d.sell(ann, 1, 105)
	d.want("a band and a full book", d.sell(bob, 1, 89), "price_band")
	d.want("post-only and a full book", d.buy(bob, 1, 100, postOnly), "would_trade")
	d.want("a limit and a full book", d.buy(bob, 1, 330, rising(300)), "too_many_stops")
	d.want("a full book", d.sell(bob, 1, 110, postOnly), "book_limit")
}

func TestOldOrdersArePlainRecords(t *testing.T) {
	d := newDesk(t, nil)
	c := d.order(ann, trading.Sell, 5, 100)
	d.send(c)
	if r := c.Record(); r.Kind != event.KindOrder || len(d.b.standing) != 0 {
		t.Errorf("a plain order is %v", r.Kind)
	}
}
