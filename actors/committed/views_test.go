package committed

import (
	"testing"
	"time"

	"exchange/core/matching"
	"exchange/core/money"
	"exchange/core/trading"
)

// The always current part of an answer by orders depends on the levels, and on mostShownOrders.
func TestOrdersOfTopLevelsAreAlwaysCurrent(t *testing.T) {
	f := func(levels, ordersOfEach, want int, more bool) {
		t.Helper()
		b, id := matching.New(), uint64(0)
		for i := range levels {
			for range ordersOfEach {
				id++
				b.Add(trading.Order{ID: id, Account: 1, Side: trading.Sell,
					Price: money.Price(1 + i), Amount: 1, Remaining: 1})
			}
		}
		if got := reachOf(ViewOrders, b, trading.Sell); got != (reach{want, more}) {
			t.Errorf("%d levels of %d orders: %+v", levels, ordersOfEach, got)
		}
		if got := reachOf(ViewLevels, b,
			trading.Sell); got != (reach{shownLevels, levels > shownLevels}) {
			t.Errorf("%d levels: %+v", levels, got)
		}
	}
	f(0, 0, shownOrders, false)
	f(100, 20, shownOrders, false)
	f(2000, 1, shownOrders, false)
	f(2001, 1, shownOrders, true)
	f(100, 50, 5000, false)
	f(101, 50, 5000, true)
	f(100, 100, mostShownOrders, false)
	f(101, 100, mostShownOrders, true)
	f(99, 102, mostShownOrders, true) // the exception
	f(1, mostShownOrders, mostShownOrders, false)
	f(1, mostShownOrders+1, mostShownOrders, true)
}

// The copy of a book, and its JSON, do not outlive the time in which clients ask for it: a burst
// would leave the copy of its largest book behind in each pair.
func TestUnusedBookCopiesAreDropped(t *testing.T) {
	now := time.Now()
	depths := []int{slotLevels, slotDeepLevels, slotOrders, slotDeepOrders}
	others := []int{slotTicker, slotChart}
	b := new(viewCache)
	c := &Side{caches: []*viewCache{new(viewCache), b}}
	there := func(want bool, slots ...int) {
		t.Helper()
		for _, slot := range slots {
			if v := b.views[slot].Load(); (v != nil) != want {
				t.Errorf("slot %d has %v", slot, v)
			}
		}
	}
	for _, slot := range append(others, depths...) {
		b.views[slot].Store(new(View).taken())
	}
	c.forgetDepths(now)
	there(true, append(others, depths...)...)
	b.views[slotOrders].Load().taken()
	c.forgetDepths(now.Add(depthKept - 1)) // it has looked just before
	there(true, append(others, depths...)...)
	c.forgetDepths(now.Add(depthKept))
	there(false, slotLevels, slotDeepLevels, slotDeepOrders)
	there(true, append(others, slotOrders)...)
	c.forgetDepths(now.Add(2 * depthKept))
	there(false, depths...)
	there(true, others...)
}
