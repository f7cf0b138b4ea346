package api_test

import (
	"strings"
	"testing"

	"exchange/gateway/api"
	"exchange/prove/harness"
)

// Values that fields of several operations take: null, flags, and whole numbers.

func TestAFlagIsWrittenInAnyForm(t *testing.T) {
	h := harness.Traded(t)
	const cancelAll, bid = "/api/v1/order-cancel-all/", "amount=1&pair=BTC_USDT&price=1&type=buy"
	before := h.Hash()
	for _, off := range []string{`{"all":false}`, `{"all":0}`, `{"all":null}`, `{"all":"0"}`, `{}`,
		`{"all":null,"pair":null,"type":null,"client_order_id_prefix":null}`, "all=false", "all=0",
		"all=False", ""} {
		harness.Want(t, off, h.BobSends(cancelAll, off), 400, `{"all":["This field is required."]}`)
	}
	for _, bad := range []string{"all=null", "all=", "all=2", `{"all":"yes"}`, `{"all":[1]}`} {
		harness.Want(t, bad, h.BobSends(cancelAll, bad), 400,
			`{"all":["Not a valid choice. It must be 1, 0, true or false."]}`)
	}
	h.StillAt(before)
	for _, other := range []string{`{"all":false,"type":"sell"}`, "all=0&type=sell"} {
		harness.Want(t, other, h.BobSends(cancelAll, other), 200, `{"orders":[]}`)
	}
	for _, on := range []string{`{"all":true}`, `{"all":1}`, `{"all":"1"}`, `{"all":"true"}`, "all=1",
		"all=true", "all=True", `{"all":false,"type":"buy"}`} {
		h.BobSends("/api/v1/order/", bid).Is(t, 201)
		if a := h.BobSends(cancelAll, on); a.Status != 200 || a.Body == `{"orders":[]}` {
			t.Errorf("%s: %d %s", on, a.Status, a.Body)
		}
	}
	h.BobSends("/api/v1/order/", bid).Is(t, 201)
	for _, path := range []string{"/api/v1/orderbook/BTC_USDT/?group=",
		"/api/v1/orders/own/?waiting="} {
		for word, digit := range map[string]string{"true": "1", "True": "1", "false": "0"} {
			if got, a := h.Get("bob", path+word), h.Get("bob", path+digit); got.Status != 200 ||
				got.Body != a.Body {
				t.Errorf("%s%s: %d %s, and %s: %s", path, word, got.Status, got.Body, digit, a.Body)
			}
		}
	}
}

func TestNullOfAnOptionalFieldIsAbsent(t *testing.T) {
	h := harness.Traded(t)
	var nulls string
	for _, name := range []string{"client_order_id", "clientOrderId", "order_type", "orderType",
		"time_in_force", "timeInForce", "expire_time", "post_only", "postOnly", "quote_amount",
		"cost", "display_amount", "trigger_price", "triggerPrice", "stopPrice", "trigger_when",
		"stopLossPrice", "takeProfitPrice", "oco_trigger_price", "oco_price", "self_trade",
		"selfTradePrevention", "trailingPercent", "trailingAmount", "stopLoss", "takeProfit"} {
		nulls += `"` + name + `":null,`
	}
	placed := strings.NewReplacer(`"oid":4`, `"oid":0`, `"oid":5`, `"oid":0`)
	plain := `{"success":true,"type":"buy","date":T,"oid":0,"price":1,"amount":1,` +
		`"amount_filled":0,"amount_original":1,"trades":[]}`
	body := `{` + nulls + `"amount":1,"pair":"BTC_USDT","price":1,"type":"buy"}`
	for _, headers := range [][]string{harness.SignedJSON("bob", h.NextNonce("bob"), body),
		harness.Signed("bob", h.NextNonce("bob"), harness.Order("buy", "BTC_USDT", "1", "1"))} {
		a := h.Do("POST", "/api/v1/order/", harness.JsonType, body, headers...)
		a.Body = placed.Replace(a.Body)
		harness.Want(t, "an order with null", a, 201, plain)
	}
	for _, c := range [][3]string{
		{"/api/v1/order-amend/", `{"order":null,"client_order_id":"bid-1","amount":0.00002,"price":null,` +
			`"display_amount":null,"post_only":null}`, `"amount_original":0.00002,`},
		{"/api/v1/order-test/", `{"amount":null,"cost":1,"order_type":"market","price":1,` +
			`"pair":"BTC_USDT","type":"buy"}`, `"valid":true,`},
		{"/api/v1/order-cancel-after/", `{"timeout":60,"pair":null,"type":null}`, `"timeout":60,`},
		{"/api/v1/order-batch/", `{"orders":[{"do":"cancel","order":null,"client_order_id":"bid-1"}]}`,
			`{"status":200,"body":{"order":`},
	} {
		if a := h.BobSends(c[0], c[1]); !strings.Contains(a.Body, c[2]) {
			t.Errorf("%s %s: %d %s", c[0], c[1], a.Status, a.Body)
		}
	}
	for _, name := range []string{"all", "self_trade", "timeout"} { // signed without it
		path := map[string]string{"all": "order-cancel-all", "self_trade": "trading-settings",
			"timeout": "order-cancel-after"}[name]
		headers := harness.SignedJSON("bob", h.NextNonce("bob"), "{}")
		h.Do("POST", "/api/v1/"+path+"/", harness.JsonType, `{"`+name+`":null}`, headers...).Is(t,
			400)
	}
	h.Verify()
}

func TestWholeNumbersAreWrittenAsOtherNumbersAre(t *testing.T) {
	h := harness.Traded(t)
	for _, c := range [][3]string{
		{"/api/v1/orders/own/?", "limit=2&offset=1&before=1000&status=1",
			"limit=2.0&offset=1e0&before=1e3&status=10e-1"},
		{"/api/v1/exchanges/?", "pair=BTC_USDT&after=0&limit=10",
			"pair=BTC_USDT&after=0.0&limit=1e1"},
		{"/api/v1/withdraws/?", "status=10", "status=1e1"},
		{"/api/v1/orderbook/BTC_USDT/?", "limit_buy=1", "limit_buy=1.0"},
	} {
		a, b := h.Get("bob", c[0]+c[1]), h.Get("bob", c[0]+c[2])
		if a.Status != 200 || b.Status != 200 || a.Body != b.Body {
			t.Errorf("%s%s: %d %s\n%s: %d %s", c[0], c[1], a.Status, a.Body, c[2], b.Status, b.Body)
		}
	}
	newest := h.Get("bob", "/api/v1/orders/own/?limit=1").Body
	id := strings.TrimPrefix(strings.Split(newest, ",")[0], `[{"id":`)
	for _, bad := range []string{".0", "e0", "%2E0", "%65"} {
		h.Get("bob", "/api/v1/order/"+id+bad+"/").Is(t, 404)
	}
	for _, c := range [][3]string{
		{"/api/v1/order-cancel-after/", `{"timeout":6e1}`, `{"timeout":60,`},
		{"/api/v1/order-cancel/", "order=" + id + ".5", `{"order":["` + api.FieldInteger + `"]}`},
		{"/api/v1/order-amend/", `{"order":` + id + `e0,"amount":2e-5}`, `{"success":true,`},
		{"/api/v1/order-cancel/", `{"order":` + id + `.0}`, `{"order":` + id + `}`},
		{"/api/v1/order-cancel/", "order=" + id + "0e-1", `{"order":["Order already cancelled"]}`},
		{"/api/v1/withdraw-cancel/", `{"withdraw":"12.0"}`, `{"withdraw":["Withdraw not found"]}`},
	} {
		if a := h.BobSends(c[0], c[1]); !strings.HasPrefix(a.Body, c[2]) {
			t.Errorf("%s %s: %d %s", c[0], c[1], a.Status, a.Body)
		}
	}
}
