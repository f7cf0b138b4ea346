package market

import (
	"reflect"
	"slices"
	"testing"

	"exchange/core/matching"
	"exchange/core/money"
	"exchange/core/trading"
)

func filled() *matching.Book {
	b := matching.New()
	for i, o := range []trading.Order{
		{Side: trading.Buy, Price: 90, Amount: 5}, {Side: trading.Buy, Price: 91, Amount: 1},
		{Side: trading.Buy, Price: 90, Amount: 2},
		{Side: trading.Sell, Price: 95, Amount: 3}, {Side: trading.Sell, Price: 96, Amount: 4},
		{Side: trading.Sell, Price: 95, Amount: 6},
	} {
		o.ID, o.Remaining = uint64(i+1), o.Amount
		b.Add(o)
	}
	return b
}

func level(price, amount int64, orders int) trading.Level {
	return trading.Level{Price: money.Price(price), Amount: money.Amount(amount).Total(),
		Orders: orders}
}

func TestUpdateIDCountsTheRecordsThatChangeTheDepth(t *testing.T) {
	var m Market
	m.Changed(10)
	m.Changed(12)
	m.Changed(12)
	if m.UpdateID != 3 || m.TimeUs != 12 {
		t.Errorf("%+v", m)
	}
}

func TestLevelsCopiesTheBestOfEachSide(t *testing.T) {
	m, b := Market{UpdateID: 7, TimeUs: 8}, filled()
	f := func(buy, sell int, wantBuy, wantSell []trading.Level) {
		t.Helper()
		var d Depth
		m.Levels(b, buy, sell, &d)
		if d.TimeUs != 8 || !slices.Equal(d.BuyLevels, wantBuy) ||
			!slices.Equal(d.SellLevels, wantSell) {
			t.Errorf("%+v", d)
		}
	}
	buys, sells := []trading.Level{level(91, 1, 1), level(90, 7, 2)},
		[]trading.Level{level(95, 9, 2), level(96, 4, 1)}
	f(-1, -1, buys, sells)
	f(1, -1, buys[:1], sells)
	f(-1, 1, buys, sells[:1])
	f(0, 0, nil, nil)
	f(9, 9, buys, sells)
}

func ids(orders []trading.Order) (ids []uint64) {
	for _, o := range orders {
		ids = append(ids, o.ID)
	}
	return ids
}

func TestOrdersCopiesTheFirstOfEachSide(t *testing.T) {
	m, b := Market{UpdateID: 7, TimeUs: 8}, filled()
	f := func(buy, sell int, wantBuy, wantSell []uint64) {
		t.Helper()
		var d Depth
		m.Orders(b, buy, sell, &d)
		if d.TimeUs != 8 || !slices.Equal(ids(d.BuyOrders), wantBuy) ||
			!slices.Equal(ids(d.SellOrders), wantSell) {
			t.Errorf("%+v", d)
		}
	}
	f(-1, -1, []uint64{2, 1, 3}, []uint64{4, 6, 5})
	f(2, 1, []uint64{2, 1}, []uint64{4})
	f(0, 0, nil, nil)
}

func TestADepthIsACopyInOneForm(t *testing.T) {
	m, b := Market{UpdateID: 1}, filled()
	var levels, orders, d Depth
	m.Levels(b, -1, -1, &levels)
	m.Orders(b, -1, -1, &orders)
	buys, sells := slices.Clone(levels.BuyLevels), slices.Clone(orders.SellOrders)
	b.Cancel(4)
	b.Match(trading.Sell, 1, 3, 10, nil)
	if !slices.Equal(levels.BuyLevels, buys) || !slices.Equal(orders.SellOrders, sells) {
		t.Error("a change of the book changes what was copied")
	}
	m.Orders(b, -1, -1, &d)
	m.Levels(b, -1, -1, &d)
	if len(d.BuyOrders)+len(d.SellOrders) != 0 || len(d.BuyLevels) == 0 {
		t.Errorf("orders of another moment are left beside levels: %+v", d)
	}
	m.Orders(b, -1, -1, &d)
	if len(d.BuyLevels)+len(d.SellLevels) != 0 || len(d.BuyOrders) == 0 {
		t.Errorf("levels of another moment are left beside orders: %+v", d)
	}
}

func TestADepthReusesItsMemory(t *testing.T) {
	m, b := Market{UpdateID: 1}, filled()
	var d, again Depth
	m.Levels(b, -1, -1, &d)
	m.Orders(b, -1, -1, &d)
	if n := testing.AllocsPerRun(100, func() {
		m.Levels(b, -1, -1, &d)
		m.Orders(b, -1, -1, &d)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	m.Orders(b, -1, -1, &again)
	if !reflect.DeepEqual(d.BuyOrders, again.BuyOrders) ||
		!reflect.DeepEqual(d.SellOrders, again.SellOrders) {
		t.Error("a used Depth gets other orders than a new one")
	}
}
