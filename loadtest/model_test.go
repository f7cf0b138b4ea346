package loadtest

import (
	"slices"
	"testing"

	"exchange/core/money"
)

func wishes(kind string, pairs []*pair, seed uint64, n int) []request {
	m := newModel(kind, pairs, seed, 0)
	var all []request
	for range n {
		all = append(all, m.next(pairs))
	}
	return all
}

func TestEqualSeedsMakeEqualOrders(t *testing.T) {
	pairs := testPairs(t)
	for _, kind := range Models {
		a, b, c := wishes(kind, pairs, 7, 2000), wishes(kind, pairs, 7, 2000),
			wishes(kind, pairs, 8, 2000)
		if !slices.Equal(a, b) {
			t.Errorf("%s: one seed makes two courses", kind)
		}
		if slices.Equal(a, c) {
			t.Errorf("%s: two seeds make one course", kind)
		}
	}
}

func TestOrdersFitTheRulesOfTheirPairs(t *testing.T) {
	pairs := testPairs(t)
	// 0.015 is no multiple of 0.01: a lot is. And half of the first price x a lot must be worth
	// 0.0001.
	if p := pairs[1]; p.lot%1e6 != 0 || p.lot < 15e5 || p.tick != 100 || p.maxLots*p.lot > 1e7 {
		t.Errorf("lot %d, tick %d, at most %d lots", p.lot, p.tick, p.maxLots)
	}
	if p := pairs[1]; money.Price(p.mid/2*p.tick).Times(money.Amount(p.lot)).Balance().Cmp(
		money.Amount(1e4).Balance()) < 0 {
		t.Errorf("a lot of %d is not worth the least value", p.lot)
	}
	for _, kind := range Models {
		for _, w := range wishes(kind, pairs, 1, 20_000) {
			if w.ticks < w.pair.mid/2 || w.lots < 1 || w.lots > w.pair.maxLots {
				t.Fatalf("%s: %+v", kind, w)
			}
		}
	}
	if _, err := newPairs(
		[]byte(
			`[{"name":"A_B","currency1":"A","currency2":"B","minimum_order_size":1,"maximum_order_size":1,"minimum_order_value":1000000,"price_precision":8,"amount_precision":0}]`)); err ==
		nil {
		t.Error("a pair that no order fits is taken")
	}
}

func TestModelsOfPricesHaveTheirShape(t *testing.T) {
	pairs := testPairs(t)
	const n = 20_000
	count := func(kind string, what func(w, before request) bool) (k int) {
		var before request
		for _, w := range wishes(kind, pairs[:], 3, n) {
			if what(w, before) {
				k++
			}
			before = w
		}
		return k
	}
	// The mid moves slowly, so nearly all orders of a storm are on the other side of its start.
	hot := count("hot-pair", func(w, _ request) bool { return w.pair.index == 0 })
	if hot < n*88/100 {
		t.Errorf("%d of %d orders are of the hot pair", hot, n)
	}
	if k := count("random-walk", func(w,
		_ request) bool {
		return w.pair.index == 0
	}); k < n*4/10 ||
		k > n*6/10 {
		t.Errorf("a random walk has %d of %d orders in one of two pairs", k, n)
	}
	crossing := func(kind string) (k int) {
		m := newModel(kind, pairs, 3, 0)
		for range n {
			w := m.next(pairs)
			if mid := m.mids[w.pair.index]; w.buy && w.ticks >= mid || !w.buy && w.ticks <= mid {
				k++
			}
		}
		return k
	}
	if k := crossing("crossing-storm"); k != n {
		t.Errorf("in a storm %d of %d orders cross", k, n)
	}
	if k := crossing("market-making"); k < n/100 || k > n/20 {
		t.Errorf("of market makers %d of %d orders cross", k, n)
	}
	if k := crossing("random-walk"); k < n/20 || k > n/5 {
		t.Errorf("in a random walk %d of %d orders cross", k, n)
	}
	for _, kind := range Models {
		if m := usualMix(kind); m.Place+m.Cancel+m.Read != 100 {
			t.Errorf("the mix of %s is %v", kind, m)
		}
	}
}
