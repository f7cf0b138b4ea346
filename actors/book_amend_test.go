package actors

import (
	"strings"
	"testing"

	"exchange/actors/directory"
	"exchange/core/money"
	"exchange/core/trading"
)

// A price given by a client is refused if it, or its reference, moves out of the band. A derived
// price is clamped into the band.
func TestBandsOfGivenAndOfDerivedPrices(t *testing.T) {
	d := newDesk(t, func(r *directory.PairRules, _ *Limits) {
		r.PriceBand, r.StopCollar = money.MaxRate/20, money.MaxRate/10
	})
	derived := func(s *SpecialRequest) { s.Derived = true }
	d.last(1000)
	d.sell(ann, 1, 1050)
	d.sell(ann, 1, 1060)
	d.want("a given price", d.buy(bob, 2, 1100, marketOrder), "price_band")
	d.want("a derived one", d.buy(bob, 2, 1100, marketOrder, derived),
		"special 5: 1x1050#3 cancelled 1 (ioc)")
	d.last(1000)
	d.want("a given stop", d.buy(bob, 1, 1320, rising(1200), marketOrder), "price_band")
	d.want("a derived one", d.buy(bob, 1, 1320, rising(1200), marketOrder, derived),
		"stop 8: rests 1 at 1260")
	d.want("whose trigger moves", d.amend(8, AmendRequest{Trigger: 1100}),
		"lost 8: rests 1 at 1155")
	d.want("which gets a price", d.amend(8, AmendRequest{Price: 1156}), "price_band")
	d.buy(bob, 1, 1250, rising(1200), marketOrder)
	d.want("a given one whose trigger moves", d.amend(10, AmendRequest{Trigger: 1100}),
		"price_band")
	d.want("and its price", d.amend(10, AmendRequest{Trigger: 1100, Price: 1155}),
		"lost 10: rests 1 at 1155")
	d.sell(cid, 1, 1045, oco(900, 860))
	d.want("another half whose trigger moves", d.amend(12, AmendRequest{Trigger: 940}),
		"price_band")
	d.want("within its band", d.amend(12, AmendRequest{Trigger: 905}), "kept 12: rests 1 at 1045")
	d.want("its price", d.amend(12, AmendRequest{Price: 949}), "price_band")
	d.cancel(12)
	d.sell(cid, 1, 1045, oco(960, 0))
	d.buy(ann, 1, 960)
	d.buy(ann, 1, 911)
	d.want("a derived other half", d.sell(bob, 1, 960),
		"order 18: 1x960#16 done | triggered 15: cancelled 1 (ioc)")
	d.buy(bob, 1, 1320, rising(1200), marketOrder, derived)
	rules := *d.b.pair.Rules()
	rules.PriceBand, rules.StopCollar = money.MaxRate/100, money.MaxRate/50
	d.b.pair.SetRules(rules)
	d.want("another band and collar", d.amend(19, AmendRequest{Trigger: 1100}),
		"lost 19: rests 1 at 1111")
}

func TestAmendsOfQueuedStops(t *testing.T) {
	d := newDesk(t, nil)
	d.last(100)
	d.buy(ann, 1, 50, rising(101))
	d.buy(ann, 1, 51, rising(101))
	d.sell(ann, 1, 110, oco(90, 80))
	d.sell(bob, 1, 101)
	d.buy(bob, 1, 90)
	d.held = true
	d.buy(cid, 1, 101)
	d.sell(cid, 1, 90)
	d.lines = nil
	d.want("its trigger is over", d.amend(3, AmendRequest{Trigger: 150}), "would_trigger")
	d.want("its price is not", d.amend(3, AmendRequest{Price: 60}), "lost 3: rests 1 at 60")
	d.want("nor the position of an OCO half", d.amend(5, AmendRequest{Price: 111}), "would_trigger")
	d.held = false
	d.b.tick(2e6)
	d.want("it has kept its position in the queue", d.newLines(), "triggered 3: rests 1 at 60 | "+
		"triggered 4: rests 1 at 51 | triggered 5: rests 1 at 80")
	d.settle()
	d.want("a triggered one has no trigger", d.amend(3, AmendRequest{Trigger: 150}),
		"rules")
	d.want("and no other half", d.amend(5, AmendRequest{Price: 85}), "lost 5: rests 1 at 85")
}

func TestAmendsOfOCOHalves(t *testing.T) {
	d := newDesk(t, nil)
	d.last(100)
	d.sell(ann, 2, 110, oco(90, 80))
	d.want("the other half's trigger", d.amend(3, AmendRequest{Trigger: 85}),
		"kept 3: rests 2 at 110")
	d.want("reached", d.amend(3, AmendRequest{Trigger: 100}), "would_trigger")
	d.want("not below its price", d.amend(3, AmendRequest{Price: 85}), "rules")
	d.want("its price", d.amend(3, AmendRequest{Price: 105}), "lost 3: rests 2 at 105")
	d.buy(bob, 1, 85)
	d.want("it keeps waiting", d.sell(cid, 1, 85),
		"order 7: 1x85#6 done | triggered 3: rests 2 at 80")
}

func TestAmendsOnAHaltedPair(t *testing.T) {
	d := newDesk(t, nil)
	d.last(100)
	d.buy(ann, 5, 90)
	d.buy(ann, 5, 150, rising(120))
	d.halt(true)
	d.lines = nil
	d.want("a change that keeps its position", d.amend(3, AmendRequest{Amount: 4}),
		"kept 3: rests 4 at 90")
	d.want("its parts", d.amend(3, AmendRequest{Display: 1}), "kept 3: rests 4 at 90")
	d.want("its end", d.amend(3, AmendRequest{ExpireUs: 1 << 40}), "kept 3: rests 4 at 90")
	d.want("that it never takes", d.amend(3, AmendRequest{PostOnly: true}),
		"kept 3: rests 4 at 90")
	d.want("what grows", d.amend(3, AmendRequest{Amount: 5}), "halted")
	d.want("a change that loses it", d.amend(3, AmendRequest{Price: 91}), "halted")
	d.want("a waiting order", d.amend(4, AmendRequest{Price: 151}), "lost 4: rests 5 at 151")
}

func TestAmendsPreventTradesOfTheirAccount(t *testing.T) {
	d := newDesk(t, nil)
	d.sell(ann, 1, 100)
	d.sell(bob, 1, 100)
	d.buy(ann, 3, 90)
	c := d.amending(3, AmendRequest{Price: 100})
	c.amend.selfTrade = trading.SelfTradeCancelOldest
	d.want("by the account's setting", d.send(c), "lost 3: -#1 1x100#2 rests 2 at 100")
	d.buy(ann, 3, 90)
	c = d.amending(6, AmendRequest{Price: 91})
	c.amend.selfTrade = trading.SelfTradeCancelOldest
	d.want("which met nothing", d.send(c), "lost 6: rests 3 at 91")
	if d.b.extras[6] != nil {
		t.Error("the account's setting stays with the order")
	}
}

// A resting order keeps its own self-trade mode, also none. Otherwise it has the account's setting,
// which each change rereads.
func TestAnAmendUsesTheOrdersOwnSelfTradeMode(t *testing.T) {
	const none, newest, oldest = trading.SelfTradeNone, trading.SelfTradeCancelNewest,
		trading.SelfTradeCancelOldest
	for name, x := range map[string]struct {
		says    []orderOption
		setting trading.SelfTrade
		want    string
	}{
		"the setting":     {nil, oldest, "lost 2: -#1 rests 1 at 100"},
		"its own":         {[]orderOption{own(newest)}, none, "lost 2: cancelled 1 (self_trade)"},
		"its own, before": {[]orderOption{own(oldest)}, newest, "lost 2: -#1 rests 1 at 100"},
		"its own is none": {[]orderOption{own(none)}, newest, "lost 2: 1x100#1 done"},
		"of an iceberg":   {[]orderOption{own(none), display(1)}, newest, "lost 2: 1x100#1 done"},
		"that it had then": {[]orderOption{apart(newest), until(5e6)}, none,
			"lost 2: 1x100#1 done"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, nil)
			d.sell(ann, 1, 100)
			d.buy(ann, 1, 90, x.says...)
			d.compare(newBook(d.b.pair, d.s, d.b.bookShares))
			d.lines = nil
			for _, a := range []AmendRequest{{Price: 91}, {Amount: 1}, {Price: 100}} {
				c := d.amending(2, a)
				c.amend.selfTrade = x.setting
				if got := d.send(c); a.Price == 100 {
					d.want("its change", got, x.want)
				}
			}
		})
	}
}

// A waiting order has the setting of its newest change, because its book sees no other when it
// enters: this applies to a stop, and to the OCO half of a resting order.
func TestStopsUseTheSettingOfTheirNewestChange(t *testing.T) {
	const none, newest = trading.SelfTradeNone, trading.SelfTradeCancelNewest
	smaller, dearer := []AmendRequest{{Amount: 1}}, []AmendRequest{{Price: 131}, {Amount: 1}}
	for name, x := range map[string]struct {
		twofold bool
		says    orderOption
		changes []AmendRequest
		setting trading.SelfTrade // then
		trades  bool
	}{
		"a stop":                            {false, apart(newest), nil, none, false},
		"a stop that is changed":            {false, apart(none), smaller, newest, false},
		"a stop that is freed":              {false, apart(newest), smaller, none, true},
		"a stop with its own mode":          {false, own(newest), smaller, none, false},
		"a stop whose own is none":          {false, own(none), smaller, newest, true},
		"another half":                      {true, apart(newest), nil, none, false},
		"another half that is changed":      {true, apart(none), smaller, newest, false},
		"another half that is freed":        {true, apart(newest), smaller, none, true},
		"another half that enters again":    {true, apart(none), dearer[:1], newest, false},
		"another half of both changes":      {true, apart(newest), dearer, none, true},
		"another half with its own mode":    {true, own(newest), dearer, none, false},
		"another half whose own is none":    {true, own(none), dearer, newest, true},
		"another half that rests untouched": {true, apart(none), nil, newest, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, nil)
			d.last(100)
			price, want := money.Price(110), "triggered 4: 1x120#3 "
			if x.twofold {
				price, want = 90, "triggered 4: 1x85#3 "
				d.buy(ann, 1, 85)
				d.sell(ann, 2, 130, x.says, oco(90, 80))
			} else {
				d.sell(ann, 1, 120)
				d.buy(ann, 2, 120, x.says, rising(110))
			}
			for _, a := range x.changes {
				c := d.amending(4, a)
				c.amend.selfTrade = x.setting
				d.send(c)
			}
			d.compare(newBook(d.b.pair, d.s, d.b.bookShares))
			if !x.trades {
				want = "triggered 4: cancelled "
			}
			d.sell(cid, 1, price)
			if got := d.buy(bob, 1, price); !strings.Contains(got, want) {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// An order's prevented trades by the account's setting stay with it; the setting does not.
func TestAnAmendRereadsTheSettingAfterAPreventedTrade(t *testing.T) {
	d := newDesk(t, nil)
	d.sell(ann, 1, 100)
	d.want("it prevents", d.buy(ann, 2, 100, apart(trading.SelfTradeCancelOldest)),
		"special 2: -#1 rests 2 at 100")
	d.sell(ann, 1, 101)
	d.want("and does not", d.amend(2, AmendRequest{Price: 101}), "lost 2: 1x101#4 rests 1 at 101")
}

func TestAnAmendWithoutItsReserveIsABug(t *testing.T) {
	d := newDesk(t, nil)
	d.buy(ann, 3, 90)
	c := d.amending(1, AmendRequest{Price: 91})
	c.reserved.amount = money.Amount(0).Balance()
	defer func() {
		if p, _ := recover().(string); !strings.HasPrefix(p, "BUG: ") {
			t.Errorf("panic %q", p)
		}
	}()
	d.b.decide(c)
}
