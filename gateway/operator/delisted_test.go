package operator_test

import (
	"slices"
	"strings"
	"testing"

	"exchange/actors"
	"exchange/actors/directory"
	"exchange/prove/harness"
)

// The rows of a pair or a currency that is no longer configured can still be listed by name, by
// operators and by clients.
func TestDelistedRowsAreFoundByName(t *testing.T) {
	h := withFees(t)
	h.Deposit("alice", "1", "ETH", "of ETH")
	ask := harness.AsOperator(t, h.Gateway)
	if a := ask("POST", "/operator/v1/adjustments",
		`{"account":"alice","currency":"ETH","amount":"-1","reason":"a mistake"}`); a.Status != 200 {
		t.Fatal(a.Body)
	}
	h.Stop()
	h.Change = func(o *actors.Options) {
		o.Pairs = slices.DeleteFunc(o.Pairs, func(p directory.PairRules) bool {
			return p.Name == "BTC_USDT" || strings.Contains(p.Name, "ETH")
		})
		o.Currencies = slices.DeleteFunc(o.Currencies, func(c directory.Currency) bool {
			return c.Code == "ETH"
		})
	}
	h.Start()
	ask = harness.AsOperator(t, h.Gateway)
	if list, end := streamed(t, ask("GET", "/operator/v1/trades?pair=BTC_USDT",
		"")); len(list) != 3 {
		t.Errorf("an export has %v, %s", list, end)
	}
	if list, end := streamed(t, ask("GET", "/operator/v1/statement?account=alice&currency=ETH",
		"")); len(list) != 2 {
		t.Errorf("a statement has %v, %s", list, end)
	}
	harness.Says(t, "open orders", ask("GET", "/operator/v1/orders?pair=BTC_USDT", ""), 200,
		`{"orders":[]}`)
	for path, n := range map[string]int{"orders/own/?pair=BTC_USDT": 3,
		"exchanges/own/?pair=BTC_USDT": 3, "deposits/?currency_id=ETH": 1,
		"withdraws/?currency_id=ETH": 1} {
		a := h.Get("bob", "/api/v1/"+path)
		if strings.HasSuffix(path, "ETH") {
			a = h.Get("alice", "/api/v1/"+path)
		}
		if got := strings.Count(a.Body, `"id":`); a.Status != 200 || got != n {
			t.Errorf("%s: %d %s, want %d rows", path, a.Status, a.Body, n)
		}
	}
	if a := h.Do("GET", "/api/v1/exchanges/?pair=BTC_USDT", "", ""); a.Status != 200 ||
		strings.Count(a.Body, `"id":`) != 3 {
		t.Errorf("all trades: %d %s", a.Status, a.Body)
	}
	for _, path := range []string{"ticker/?pair=BTC_USDT", "exchanges/?pair=BTC"} {
		if a := h.Do("GET", "/api/v1/"+path, "", ""); a.Status != 400 {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
}
