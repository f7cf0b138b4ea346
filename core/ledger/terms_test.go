package ledger

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"exchange/core/money"
	"exchange/core/trading"
)

func TestOpenTermsAgreeWithOpenOrdersAndAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o OpenTerms
		var orders OpenOrders
		naive, next := map[uint64]Terms{}, uint64(1)
		terms := func() Terms {
			return Terms{money.Price(rapid.Int64Range(1, 9).Draw(t, "price")),
				money.Amount(rapid.Int64Range(1, 9).Draw(t, "amount"))}
		}
		add := func(id uint64) {
			x := terms()
			added := orders.Add(id, 1, trading.Buy)
			if o.Add(id, 1, trading.Buy, x) != added {
				t.Fatalf("adding %d, which OpenOrders took: %v", id, added)
			}
			if added {
				naive[id] = x
			}
		}
		remove := func(id uint64) {
			if there := orders.Remove(id); o.Remove(id) != there {
				t.Fatalf("removing %d, which OpenOrders had: %v", id, there)
			}
			delete(naive, id)
		}
		anyID := func() uint64 { return rapid.Uint64Range(0, next+1).Draw(t, "id") }
		t.Repeat(map[string]func(*rapid.T){
			"add last":        func(*rapid.T) { next += 2; add(next) },
			"add anywhere":    func(*rapid.T) { add(anyID()) },
			"remove anything": func(*rapid.T) { remove(anyID()) },
			"remove and add": func(*rapid.T) {
				id := anyID()
				remove(id)
				add(id)
			},
			"change": func(*rapid.T) {
				id, x := anyID(), terms()
				_, there := naive[id]
				if o.Change(id, x) != there {
					t.Fatalf("changing %d, there before: %v", id, there)
				}
				if there {
					naive[id] = x
				}
			},
			"add many": func(*rapid.T) {
				for range 50 {
					next++
					add(next)
				}
			},
			"remove many, compact": func(*rapid.T) {
				for id := next; id > 0 && id+80 > next; id-- {
					remove(id)
				}
			},
			"continue a copy": func(*rapid.T) {
				c := NewOpenTerms(o.Orders(), func(e OpenOrder) Terms { return naive[e.ID] })
				o.Add(next+100, 1, trading.Buy, Terms{})
				o.Remove(next)
				o = c
			},
			"": func(t *rapid.T) { checkTerms(t, &o, &orders, naive, next) },
		})
	})
}

func checkTerms(t *rapid.T, o *OpenTerms, orders *OpenOrders, naive map[uint64]Terms, next uint64) {
	if got, want := slices.Collect(o.Orders().Newest()),
		slices.Collect(orders.Newest()); !slices.Equal(got, want) || o.Len() != len(want) {
		t.Fatalf("%d orders: %v, want %v", o.Len(), got, want)
	}
	for id := range next + 3 {
		order, terms, open := o.Find(id)
		want, there := naive[id]
		if terms != want || open != there || open && order.ID != id ||
			o.Pair(id) != orders.Pair(id) {
			t.Fatalf("order %d: %+v %+v, open %v; want %+v, %v", id, order, terms, open, want,
				there)
		}
	}
}

func TestRemovedTermsReleaseTheirMemory(t *testing.T) {
	var o OpenTerms
	for id := range uint64(100_000) {
		o.Add(id+1, 1, trading.Sell, Terms{1, money.Amount(id + 1)})
	}
	for id := range uint64(99_990) {
		o.Remove(id + 1)
	}
	if _, terms, _ := o.Find(99_995); o.Len() != 10 || cap(o.terms) > 200 ||
		terms.Amount != 99_995 {
		t.Errorf("%d orders in memory for the terms of %d, those of one are %+v", o.Len(),
			cap(o.terms), terms)
	}
}
