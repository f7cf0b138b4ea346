package actors

import (
	"strings"
	"testing"

	"exchange/core/money"
	"exchange/core/trading"
)

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
	d.told = nil
	d.want("its trigger is over", d.amend(3, AmendRequest{Trigger: 150}), "would_trigger")
	d.want("its price is not", d.amend(3, AmendRequest{Price: 60}), "lost 3: rests 1 at 60")
	d.want("nor the place of another half", d.amend(5, AmendRequest{Price: 111}), "would_trigger")
	d.held = false
	d.b.tick(2e6)
	d.want("it has kept its place in the queue", d.news(), "triggered 3: rests 1 at 60 | "+
		"triggered 4: rests 1 at 51 | triggered 5: rests 1 at 80")
	d.settle()
	d.want("a triggered one has no trigger", d.amend(3, AmendRequest{Trigger: 150}),
		"rules")
	d.want("and no other half", d.amend(5, AmendRequest{Price: 85}), "lost 5: rests 1 at 85")
}

func TestAmendsOfOtherHalves(t *testing.T) {
	d := newDesk(t, nil)
	d.last(100)
	d.sell(ann, 2, 110, oco(90, 80))
	d.want("the other half's trigger", d.amend(3, AmendRequest{Trigger: 85}),
		"kept 3: rests 2 at 110")
	d.want("reached", d.amend(3, AmendRequest{Trigger: 100}), "would_trigger")
	d.want("not below its price", d.amend(3, AmendRequest{Price: 85}), "rules")
	d.want("its price", d.amend(3, AmendRequest{Price: 105}), "lost 3: rests 2 at 105")
	d.buy(bob, 1, 85)
	d.want("it waits on", d.sell(cid, 1, 85), "order 7: 1x85#6 done | triggered 3: rests 2 at 80")
}

func TestAmendsOnAHaltedPair(t *testing.T) {
	d := newDesk(t, nil)
	d.last(100)
	d.buy(ann, 5, 90)
	d.buy(ann, 5, 150, rising(120))
	d.halt(true)
	d.told = nil
	d.want("what keeps its place", d.amend(3, AmendRequest{Amount: 4}), "kept 3: rests 4 at 90")
	d.want("its parts", d.amend(3, AmendRequest{Display: 1}), "kept 3: rests 4 at 90")
	d.want("its end", d.amend(3, AmendRequest{ExpireUs: 1 << 40}), "kept 3: rests 4 at 90")
	d.want("that it never takes", d.amend(3, AmendRequest{PostOnly: true}),
		"kept 3: rests 4 at 90")
	d.want("what grows", d.amend(3, AmendRequest{Amount: 5}), "halted")
	d.want("what loses it", d.amend(3, AmendRequest{Price: 91}), "halted")
	d.want("what waits", d.amend(4, AmendRequest{Price: 151}), "lost 4: rests 5 at 151")
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
	if d.b.standing[6] != nil {
		t.Error("the account's setting stays with the order")
	}
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
