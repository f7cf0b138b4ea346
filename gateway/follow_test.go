package gateway

import (
	"fmt"
	"slices"
	"testing"
)

// A client goes on behind its last trade, while more trades of the pair and of others come in, from
// memory and from the store: it gets each trade once, in order.
func TestPagesOfTradesGoOnWhileTradesComeIn(t *testing.T) {
	random := seeded(t)
	h := newHarness(t, nil)
	for _, name := range []string{"alice", "bob"} {
		h.account(name)
		for _, c := range []string{"BTC", "ETH", "USDT"} {
			if _, err := h.deposit(name, "10000000", c, name+c); err != nil {
				t.Fatal(err)
			}
		}
	}
	var made []uint64 // trades of BTC_USDT
	trade := func() {
		t.Helper()
		pair := "BTC_USDT"
		if random.IntN(3) == 0 {
			pair = "ETH_USDT"
		}
		a := h.post("alice", "/api/v1/order/", order("sell", pair, "1", "100"))
		if a.status != 201 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		got := decode[struct{ Trades []struct{ TID uint64 } }](t,
			h.post("bob", "/api/v1/order/", order("buy", pair, "1", "100")))
		if pair == "BTC_USDT" {
			made = append(made, got.Trades[0].TID)
		}
	}
	const most = 1200 // more than memory keeps
	seen := map[string][]uint64{}
	ask := map[string]func(path string) answer{
		"/api/v1/exchanges/":     func(path string) answer { return h.do("GET", path, "", "") },
		"/api/v1/exchanges/own/": func(path string) answer { return h.get("alice", path) }}
	for len(made) < most || len(seen["/api/v1/exchanges/"]) < most ||
		len(seen["/api/v1/exchanges/own/"]) < most {
		for i := random.IntN(60); i > 0 && len(made) < most; i-- {
			trade()
		}
		for path, get := range ask {
			after := uint64(0)
			if list := seen[path]; len(list) > 0 {
				after = list[len(list)-1]
			}
			address := fmt.Sprintf("%s?pair=BTC_USDT&after=%d&limit=%d", path, after,
				1+random.IntN(25))
			for _, x := range decode[[]listedTrade](t, get(address)) {
				seen[path] = append(seen[path], x.ID)
			}
		}
	}
	for path, ids := range seen {
		if !slices.Equal(ids, made[:len(ids)]) {
			t.Errorf("%s: the pages have %d trades that are not the first %d", path, len(ids),
				len(made))
		}
	}
}
