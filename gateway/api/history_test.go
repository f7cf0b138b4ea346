package api_test

import (
	"strings"
	"testing"

	"exchange/actors"
	"exchange/prove/harness"
)

// A removed pair keeps its name in its history.
func TestHistoryKeepsTheNamesOfPairsThatAreGone(t *testing.T) {
	gone := false
	h := harness.New(t, func(o *actors.Options) {
		if gone {
			o.Pairs = o.Pairs[:2] // without ETH_BTC
		}
	})
	h.Account("alice")
	for _, currency := range []string{"ETH", "BTC"} {
		h.Deposit("alice", "10", currency, currency)
	}
	for _, side := range []string{"sell", "buy"} {
		h.Post("alice", "/api/v1/order/",
			"amount=1&client_order_id="+side+"&pair=ETH_BTC&price=0.5&type="+side).Must(t, 201)
	}
	gone = true
	h.Stop()
	h.Start()
	for path, want := range map[string]string{
		"/api/v1/exchanges/own/":                      `"pair":"ETH_BTC","type":"buy"`,
		"/api/v1/orders/own/":                         `"pair":"ETH_BTC"`,
		"/api/v1/orders/own/?client_order_id=sell":    `[{"id":1,"pair":"ETH_BTC","type":"sell","status":3,`,
		"/api/v1/orders/own/?client_order_id=unknown": `[]`,
		"/api/v1/order/2/":                            `"pair":"ETH_BTC"`,
	} {
		if a := h.Get("alice", path); a.Status != 200 || !strings.Contains(a.Body, want) {
			t.Errorf("%s: %d %s, want %s", path, a.Status, a.Body, want)
		}
	}
	if a := h.Get("alice", "/api/v1/exchanges/own/"); !strings.Contains(a.Body,
		`"fee_currency":"ETH"`) {
		t.Errorf("own trades: %s", a.Body)
	}
	if a := h.Do("GET", "/api/v1/exchanges/", "", ""); !strings.Contains(a.Body,
		`"pair":"ETH_BTC"`) {
		t.Errorf("public trades: %s", a.Body)
	}
}
