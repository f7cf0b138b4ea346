package matching

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"exchange/core/compare"
	"exchange/core/money"
	"exchange/core/trading"
)

// drawBook draws a book of many orders at few prices, or few at many.
func drawBook(t *rapid.T) (*Book, []trading.Order) {
	b := New()
	var orders []trading.Order
	prices := rapid.SampledFrom([]int{1, 3, 700}).Draw(t, "prices")
	for id := range uint64(rapid.IntRange(0, 900).Draw(t, "orders")) {
		o := trading.Order{ID: id + 1, Account: 1, Amount: 2, Remaining: 1 + money.Amount(id%2),
			Side:  trading.Side(1 + rapid.IntRange(0, 1).Draw(t, "side")),
			Price: money.Price(rapid.IntRange(1, prices).Draw(t, "price"))}
		if o.Side == trading.Sell {
			o.Price += 1000
		}
		b.Add(o)
		orders = append(orders, o)
	}
	return b, orders
}

func TestOpenOrdersAfterAPlaceAreTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, _ := drawBook(t)
		all := slices.Concat(b.AppendOrders(nil, trading.Buy, -1),
			b.AppendOrders(nil, trading.Sell, -1))
		before := slices.Collect(b.Open(nil))
		if got := orders(before); !slices.Equal(got, all) {
			t.Fatalf("there are %v, want %v", got, all)
		}
		if len(all) == 0 {
			return
		}
		at := rapid.IntRange(0, len(all)-1).Draw(t, "at")
		before = before[:at+1]
		for range rapid.IntRange(0, at+1).Draw(t, "gone") {
			b.Cancel(all[at].ID)
			all = slices.Delete(all, at, at+1)
			at--
		}
		if got := orders(slices.Collect(b.Open(before))); !slices.Equal(got, all[at+1:]) {
			t.Fatalf("after %+v: %v, want %v", before, got, all[at+1:])
		}
	})
}

// orders returns the orders of a list without hidden parts.
func orders(list []Resting) (orders []trading.Order) {
	for _, r := range list {
		orders = append(orders, r.Order)
	}
	return orders
}

// compared compares two books in chunks of n, and calls between after each.
func compared(one, other *Book, n int, between func()) (differ *compare.Difference) {
	var lists compare.Lists[Resting]
	for left := 0; left == 0; between() {
		left, differ = lists.Next(compare.Side[Resting]{After: one.Open},
			compare.Side[Resting]{After: other.Open}, n)
	}
	return differ
}

// Ids do not ascend within a level when orders move back, or arrive with an old id.
func TestAComparisonMissesNothingWhenOrdersMoveBackInTheirLevel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const count = 60
		one, other := New(), New()
		victim := uint64(rapid.IntRange(1, count).Draw(t, "victim"))
		for id := uint64(count); id > 0; id-- {
			o := trading.Order{ID: id, Account: 1, Side: trading.Sell, Price: 10, Amount: 1000,
				Remaining: 1000}
			i := Iceberg{Display: 2, Hidden: 998}
			one.AddIceberg(o, i)
			if id == victim {
				i.Hidden = 997
			}
			other.AddIceberg(o, i)
		}
		n := rapid.IntRange(1, 40).Draw(t, "n")
		differ := compared(one, other, n, func() {
			for range rapid.IntRange(0, 3).Draw(t, "moves") {
				o, _ := one.Next(trading.Sell)
				if o.ID == victim {
					break // it would be another one in either book
				}
				amount := money.Amount(rapid.IntRange(1, 2).Draw(t, "amount"))
				one.Match(trading.Buy, 10, amount, 1, nil)
				other.Match(trading.Buy, 10, amount, 1, nil)
			}
		})
		text := fmt.Sprintf("{ID:%d ", victim)
		if differ == nil || differ.One == differ.Other || !strings.HasPrefix(differ.One, text) ||
			!strings.HasPrefix(differ.Other, text) {
			t.Fatalf("order %d hides another amount: %+v", victim, differ)
		}
	})
}
