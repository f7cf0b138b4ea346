package actors

import (
	"testing"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

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

// A resting order keeps its own mode. The account's setting is dropped if it met nothing.
func TestAnOwnSelfTradeModeStays(t *testing.T) {
	d := newDesk(t, nil)
	d.sell(ann, 2, 100)
	d.want("a killed fok prevents nothing", d.buy(ann, 2, 100, fok,
		apart(trading.SelfTradeCancelOldest)), "special 2: cancelled 2 (fok)")
	d.want("a mode that meets nothing", d.buy(ann, 2, 99, apart(trading.SelfTradeCancelBoth)),
		"order 3: rests 2 at 99")
	d.want("it stays if it is its own", d.buy(ann, 1, 98, own(trading.SelfTradeCancelBoth)),
		"special 4: rests 1 at 98")
	if s := d.b.extras[4]; s == nil || s.SelfTrade != trading.SelfTradeCancelBoth ||
		d.b.extras[3] != nil {
		t.Errorf("the orders' extras: %+v, %+v", d.b.extras[3], s)
	}
}

// Of several reasons to refuse an order, the first is returned: the trigger, the band, post-only,
// and the limits of the book last.
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
	d.want("a change beyond the band", d.amend(5, AmendRequest{Price: 89}), "price_band")
	d.want("a limit and a full book", d.buy(bob, 1, 330, rising(300)), "too_many_stops")
	d.want("a full book", d.sell(bob, 1, 110, postOnly), "book_limit")
	d.want("an order that never rests needs no slot", d.buy(bob, 1, 99, ioc),
		"special 6: cancelled 1 (ioc)")
}

func TestOldOrdersArePlainRecords(t *testing.T) {
	d := newDesk(t, nil)
	c := d.order(ann, trading.Sell, 5, 100)
	d.send(c)
	if r := c.Record(); r.Kind != event.KindOrder || len(d.b.extras) != 0 {
		t.Errorf("a plain order is %v", r.Kind)
	}
	d.want("a mode that meets nothing", d.buy(ann, 2, 99, apart(trading.SelfTradeCancelBoth)),
		"order 2: rests 2 at 99")
}
