package matching

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

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

// compared goes through two books in steps of n, and calls between after each.
func compared(one, other *Book, n int, between func()) (steps int, differ *Difference) {
	var c Comparison
	for done := false; !done; steps++ {
		if done, differ = c.Next(one, other, n); differ == nil {
			between()
		}
	}
	return steps, differ
}

// orders returns the orders of a list that hides nothing.
func orders(list []whole) (orders []trading.Order) {
	for _, w := range list {
		orders = append(orders, w.Order)
	}
	return orders
}

func TestOrdersAfterAPlaceAreTheRestOfTheSide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, _ := drawBook(t)
		for _, side := range [...]trading.Side{trading.Buy, trading.Sell} {
			all := b.AppendOrders(nil, side, -1)
			if got := b.appendAfter(nil, side, nil, len(all)+1); !slices.Equal(orders(got), all) {
				t.Fatalf("from the begin there are %d orders, want %d", len(got), len(all))
			}
			if len(all) == 0 {
				continue
			}
			at := rapid.IntRange(0, len(all)-1).Draw(t, "at")
			n := rapid.IntRange(0, len(all)).Draw(t, "n")
			var before []whole
			for _, o := range all[:at+1] {
				before = append(before, whole{Order: o})
			}
			for range rapid.IntRange(0, at+1).Draw(t, "gone") {
				b.Cancel(all[at].ID)
				all = slices.Delete(all, at, at+1)
				at--
			}
			want := all[at+1:]
			want = want[:min(n, len(want))]
			got := orders(b.appendAfter(nil, side, before, n))
			if !slices.Equal(got, want) {
				t.Fatalf("%d orders after %+v: %v, want %v", n, before, got, want)
			}
		}
	})
}

func TestAComparisonFindsEachDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one, orders := drawBook(t)
		other := New()
		for _, o := range orders {
			other.Add(o)
		}
		n := rapid.IntRange(1, 300).Draw(t, "n")
		if steps, differ := compared(one, other, n, func() {}); differ != nil {
			t.Fatalf("equal books differ: %+v", differ)
		} else if most := len(orders)/n + 4; steps > most {
			t.Fatalf("%d steps of %d for %d orders", steps, n, len(orders))
		}
		if len(orders) == 0 {
			return
		}
		victim := rapid.SampledFrom(orders).Draw(t, "victim")
		removed, _ := other.Cancel(victim.ID)
		if _, differ := compared(one, other, n, func() {}); differ == nil ||
			differ.one.Order != removed {
			t.Fatalf("without %+v: %+v", removed, differ)
		}
		if _, differ := compared(other, one, n, func() {}); differ == nil ||
			differ.other.Order != removed {
			t.Fatalf("with %+v too many: %+v", removed, differ)
		}
	})
}

func TestAComparisonGoesOnWhileBothBooksChangeAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one, orders := drawBook(t)
		other := New()
		for _, o := range orders {
			other.Add(o)
		}
		id := uint64(len(orders))
		n := rapid.IntRange(1, 50).Draw(t, "n")
		left := 20
		_, differ := compared(one, other, n, func() {
			if len(orders) > 0 {
				gone := rapid.SampledFrom(orders).Draw(t, "gone").ID
				one.Cancel(gone)
				other.Cancel(gone)
			}
			if left--; left > 0 {
				id++
				o := trading.Order{ID: id, Account: 1, Side: trading.Buy, Amount: 1, Remaining: 1,
					Price: money.Price(rapid.IntRange(1, 3).Draw(t, "price"))}
				one.Add(o)
				other.Add(o)
			}
		})
		if differ != nil {
			t.Fatalf("books that change alike differ: %+v", differ)
		}
	})
}

// Ids do not ascend within a level of which orders go back, or come with an old id.
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
		_, differ := compared(one, other, n, func() {
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
		if differ == nil || differ.one.ID != victim || differ.other.ID != victim {
			t.Fatalf("order %d hides another amount: %+v", victim, differ)
		}
		if one, other := differ.Texts(); one == other {
			t.Fatalf("both are told as %s", one)
		}
	})
}
