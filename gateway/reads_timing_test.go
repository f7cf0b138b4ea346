package gateway

import (
	"strconv"
	"testing"

	"exchange/actors"
	"exchange/core/trading"
	"exchange/gateway/api"
)

// tradedLately fills the first pair's book with alice's orders and has bob take some of them. It
// returns alice's key.
func tradedLately(b *testing.B, h *harness) string {
	b.Helper()
	for name, currency := range map[string]string{"alice": "BTC", "bob": "USDT"} {
		h.account(name)
		if _, err := h.deposit(name, "100000", currency, name); err != nil {
			b.Fatal(err)
		}
	}
	place := func(key string, nonce uint64, w actors.OrderRequest) {
		w.Pair = h.engine.Pairs()[0]
		c, err := h.engine.Place(h.engine.Key([]byte(key)), nonce, &w)
		if err != nil || c.Outcome() != actors.Accepted {
			b.Fatal(c, err)
		}
		c.Free()
	}
	for n := range uint64(300) {
		place("key-alice", n+1, actors.OrderRequest{Side: trading.Sell, Price: 100e8, Amount: 1e6})
	}
	for n := range uint64(200) {
		place("key-bob", n+1, actors.OrderRequest{Side: trading.Buy, Price: 100e8, Amount: 1e6})
	}
	return "key-alice"
}

// BenchmarkReads is the answer to a read, from the call to its body, without an edge.
func BenchmarkReads(b *testing.B) {
	h := newHarness(b, nil)
	key, nonce := h.engine.Key([]byte(tradedLately(b, h))), uint64(1e6)
	answers, budget := h.gateway.api.Load(), api.NewBudget(1<<30)
	for _, r := range []struct{ name, path, query string }{
		{"market trades", "/api/v1/exchanges", "pair=BTC_USDT&limit=100"},
		{"ticker", "/api/v1/ticker", "pair=BTC_USDT"},
		{"levels", "/api/v1/orderbook/{pair}", "group=1"},
		{"wallet", "/api/v1/wallets", ""},
		{"own active orders", "/api/v1/orders/own", "status=1&limit=50"},
		{"own orders", "/api/v1/orders/own", "limit=200"},
		{"one order", "/api/v1/order/{pk}", ""},
		{"own trades", "/api/v1/exchanges/own", "limit=100"},
		{"deposits", "/api/v1/deposits", ""},
	} {
		var operation *api.Operation
		for i := range api.Operations {
			if api.Operations[i].Path == r.path {
				operation = &api.Operations[i]
			}
		}
		b.Run(r.name, func(b *testing.B) {
			c := new(api.Call)
			c.Reset()
			b.ReportAllocs()
			for b.Loop() {
				c.Begin(answers)
				c.Names = api.Names{Pair: "BTC_USDT", Order: strconv.Itoa(290)}
				if operation.Private {
					nonce++
					c.Key, c.Nonce = key, nonce
				}
				if err := c.Query.ParseQuery([]byte(r.query)); err != nil {
					b.Fatal(err)
				}
				operation.Run(c)
				if large := c.End(budget, false); large != nil {
					large.Close()
				} else if body, _ := c.Body(); c.Status != 200 || len(body) < 10 {
					b.Fatal(c.Status, len(body))
				}
				c.Reset()
			}
		})
	}
}
