package gateway

import (
	"strings"
	"testing"

	"exchange/actors"
)

// A removed pair keeps its name in its history.
func TestHistoryKeepsTheNamesOfPairsThatAreGone(t *testing.T) {
	gone := false
	h := newHarness(t, func(o *actors.Options) {
		if gone {
			o.Pairs = o.Pairs[:2] // without ETH_BTC
		}
	})
	h.account("alice")
	for _, currency := range []string{"ETH", "BTC"} {
		h.deposit("alice", "10", currency, currency)
	}
	for _, side := range []string{"sell", "buy"} {
		h.post("alice", "/api/v1/order/",
			"amount=1&client_order_id="+side+"&pair=ETH_BTC&price=0.5&type="+side).must(t, 201)
	}
	gone = true
	h.stop()
	h.start()
	for path, want := range map[string]string{
		"/api/v1/exchanges/own/":                      `"pair":"ETH_BTC","type":"buy"`,
		"/api/v1/orders/own/":                         `"pair":"ETH_BTC"`,
		"/api/v1/orders/own/?client_order_id=sell":    `[{"id":1,"pair":"ETH_BTC","type":"sell","status":3,`,
		"/api/v1/orders/own/?client_order_id=unknown": `[]`,
		"/api/v1/order/2/":                            `"pair":"ETH_BTC"`,
	} {
		if a := h.get("alice", path); a.status != 200 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s, want %s", path, a.status, a.body, want)
		}
	}
	if a := h.get("alice", "/api/v1/exchanges/own/"); !strings.Contains(a.body,
		`"fee_currency":"ETH"`) {
		t.Errorf("own trades: %s", a.body)
	}
	if a := h.do("GET", "/api/v1/exchanges/", "", ""); !strings.Contains(a.body,
		`"pair":"ETH_BTC"`) {
		t.Errorf("public trades: %s", a.body)
	}
}
