package operator_test

import (
	"strings"
	"testing"

	"exchange/prove/harness"
)

func TestOperatorsSeeOpenOrdersAndSwitches(t *testing.T) {
	h := harness.RuledHarness(t)
	ask := harness.AsOperator(t, h.Gateway)
	for i, says := range []string{"client_order_id=plain",
		"order_type=market&price=-&trigger_price=110", "display_amount=0.1&post_only=1",
		"pair=ETH_USDT&type=buy"} {
		h.Post("bob", "/api/v1/order/", harness.InstructionForm(says)).Must(t, 201, "order", i+1)
	}
	f := func(query, body string) {
		t.Helper()
		a := ask("GET", "/operator/v1/orders?account=bob"+query, "")
		a.Body = harness.Clocks.ReplaceAllString(a.Body, `"time":"T"`)
		harness.Says(t, query, a, 200, body)
	}
	const (
		bid     = `"pair":"BTC_USDT","type":"buy","price":100,"amount":1,"remaining":1,"time":"T","account":"bob"`
		plain   = `{"order":1,` + bid + `,"client_order_id":"plain","waiting":false}`
		waiting = `{"order":2,"pair":"BTC_USDT","type":"buy","price":115.5,"amount":1,` +
			`"remaining":1,"time":"T","account":"bob","waiting":true,"order_type":"market","time_in_force":"ioc",` +
			`"trigger_price":110,"trigger_when":"rise"}`
		iceberg = `{"order":3,` + bid + `,"waiting":false,"order_type":"limit",` +
			`"time_in_force":"gtc","post_only":true,"display_amount":0.1}`
		other = `{"order":4,"pair":"ETH_USDT","type":"buy","price":100,"amount":1,"remaining":1,` +
			`"time":"T","account":"bob","waiting":false}`
	)
	f("", `{"orders":[`+other+`,`+iceberg+`,`+waiting+`,`+plain+`]}`)
	f("&pair=BTC_USDT&limit=2", `{"orders":[`+iceberg+`,`+waiting+`],"next":2}`)
	f("&pair=BTC_USDT&before=2&limit=2", `{"orders":[`+plain+`]}`)
	for query, text := range map[string]string{"account=bob&pair=X": `there is no pair "X"`,
		"account=eve":          `there is no account "eve"`,
		"account=bob&before=0": "before: the id of an order",
		"account=bob&limit=0":  "limit: 1 to 100000"} {
		harness.Says(t, query, ask("GET", "/operator/v1/orders?"+query, ""), 400,
			harness.Refusal(text))
	}
	const none = `{"switches":[]}`
	harness.Says(t, "no switch", ask("GET", "/operator/v1/switches", ""), 200, none)
	h.Post("bob", "/api/v1/order-cancel-after/",
		"client_order_id_prefix=p&pair=BTC_USDT&timeout=600&type=buy")
	a := ask("GET", "/operator/v1/switches?account=bob", "")
	if a.Status != 200 || !strings.Contains(a.Body, `{"account":"bob","key":"key-bob",`+
		`"seconds":600,"due":"20`) || !strings.Contains(a.Body, `"session":false,"pair":`+
		`"BTC_USDT","type":"buy","client_order_id_prefix":"p"}]}`) {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	harness.Says(t, "another's", ask("GET", "/operator/v1/switches?account=alice", ""), 200, none)
	harness.Says(t, "a stop is cancelled", ask("POST", "/operator/v1/orders/cancel", `{"order":2}`),
		200, `{"order":2,"account":"bob","pair":"BTC_USDT"}`)
}
