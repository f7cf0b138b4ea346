package api_test

import (
	"strings"
	"testing"

	"exchange/prove/harness"
)

// fixedByAmends are the parameters that no amend changes.
var fixedByAmends = []string{"order_type=market", "orderType=market", "time_in_force=gtd",
	"time_in_force=fok", "timeInForce=po", "quote_amount=100", "cost=100", "trigger_when=rise",
	"stopLossPrice=100", "takeProfitPrice=100", "oco_trigger_price=80", "oco_price=70",
	"self_trade=cancel_both", "selfTradePrevention=EXPIRE_TAKER"}

// An amend that its order or pair does not allow is refused on its field, and changes nothing.
func TestAnAmendIsHeldAgainstItsOrder(t *testing.T) {
	h := harness.RuledHarness(t)
	for i, says := range []string{"client_order_id=plain", "client_order_id=ice&display_amount=0.1",
		"client_order_id=stop&trigger_price=110&time_in_force=ioc",
		"client_order_id=market&trigger_price=110&order_type=market&price=-",
		"client_order_id=oco&type=sell&oco_trigger_price=90&price=200"} {
		h.Post("bob", "/api/v1/order/", harness.InstructionForm(says)).Must(t, 201, "order", i+1)
	}
	own := func() string { return h.Get("bob", "/api/v1/orders/own/").Body }
	before, wallet := own(), h.Get("bob", "/api/v1/wallets/").Body
	f := func(form, body string) {
		t.Helper()
		harness.Want(t, form, h.Post("bob", "/api/v1/order-amend/", form), 400, "{"+body+"}")
	}
	f("client_order_id=plain&price=100.01", `"price":["A multiple of 0.05 is required."]`)
	f("amount=0.0015&client_order_id=plain", `"amount":["A multiple of 0.001 is required."]`)
	f("amount=0.005&client_order_id=plain", `"amount":["The smallest amount is 0.01."]`)
	f("amount=1001&client_order_id=oco", `"amount":["The largest amount is 1000."]`)
	f("amount=0.01&client_order_id=plain&price=99",
		`"amount":["price x amount must be at least 1."]`)
	f("client_order_id=plain&price=0.95", `"price":["price x amount must be at least 1."]`)
	f("client_order_id=plain&display_amount=1",
		`"display_amount":["It must be below amount."]`)
	f("client_order_id=plain&stopPrice=90", `"stopPrice":["The order waits for no trigger."]`)
	f("amount=3&clientOrderId=ice", `"amount":["It must be at most 20 times display_amount."]`)
	f("client_order_id=ice&display_amount=0.04",
		`"display_amount":["It must be at least a twentieth of amount."]`)
	f("client_order_id=stop&trigger_price=110.01",
		`"trigger_price":["A multiple of 0.05 is required."]`)
	f("client_order_id=stop&postOnly=1", `"postOnly":["Not possible with time_in_force ioc."]`)
	f(harness.Soon("client_order_id=market&expire_time=SOON"),
		`"expire_time":["Not possible with order_type market."]`)
	f("client_order_id=market&display_amount=0.5",
		`"display_amount":["Not possible with order_type market."]`)
	f("client_order_id=oco&price=85", `"price":["It must be above oco_trigger_price."]`)
	f("client_order_id=oco&trigger_price=200", `"trigger_price":["It must be below price."]`)
	for _, fixed := range fixedByAmends {
		name, _, _ := strings.Cut(fixed, "=")
		f("amount=0.5&client_order_id=plain&"+fixed, `"`+name+`":["It cannot be amended."]`)
	}
	f("amount=0.5&client_order_id=plain&stopLoss=1", `"stopLoss":["Not offered."]`)
	f("client_order_id=plain&postOnly=1&post_only=1",
		`"post_only":["Given twice, also as postOnly."]`)
	f("clientOrderId=plain&client_order_id=plain&price=99",
		`"client_order_id":["Given twice, also as clientOrderId."]`)
	f(harness.Soon("client_order_id=oco&expire_time=SOON"),
		`"expire_time":["Not possible with oco_trigger_price."]`)
	f("client_order_id=oco&post_only=slide",
		`"post_only":["Not possible with oco_trigger_price without oco_price."]`)
	f("client_order_id=stop", `"amount":["One of amount, price, display_amount, trigger_price, `+
		`expire_time and post_only is required."]`)
	f("amount=1&order=99", `"order":["Order not found"]`)
	f("client_order_id=none&price=1", `"client_order_id":["Order not found"]`)
	if after := own(); after != before {
		t.Errorf("the orders were\n%s\nand are\n%s", before, after)
	}
	if after := h.Get("bob", "/api/v1/wallets/").Body; after != wallet {
		t.Errorf("the wallet was %s and is %s", wallet, after)
	}
	harness.Want(t, "an amend", h.Post("bob", "/api/v1/order-amend/",
		"amount=0.5&client_order_id=plain&order_type=limit&price=100&self_trade=none"), 200,
		`{"success":true,"type":"buy","date":T,"oid":1,"price":100,"amount":0.5,`+
			`"amount_filled":0,"amount_original":0.5,"client_order_id":"plain","trades":[],`+
			`"priority":"kept"}`)
	h.Verify()
}

// A market order has its worst price before it is admitted, from the book as it was answered.
func TestAMarketOrderHasAWorstPrice(t *testing.T) {
	h := harness.RuledHarness(t)
	before := h.Hash()
	form := harness.InstructionForm("order_type=market&price=-")
	harness.Want(t, "an empty book", h.Do("POST", "/api/v1/order/", harness.FormType, form,
		harness.Signed("bob", harness.FieldsNonce, form)...), 400,
		`{"date":T,"error":"Nothing to trade with on BTC_USDT","code":"no_liquidity"}`)
	h.StillAt(before)
	h.Post("alice", "/api/v1/order/", harness.Order("sell", "BTC_USDT", "1", "500"))
	harness.Want(t, "too little", h.Post("bob", "/api/v1/order/",
		harness.InstructionForm("order_type=market&amount=-&price=-&quote_amount=1")), 400,
		`{"quote_amount":["It buys less than 0.01 at 525."]}`)
	// It buys 1000.0008 at 50, which is 1000 in whole steps: the maximum.
	harness.Want(t, "a sum at the bound", h.Post("bob", "/api/v1/order-test/",
		harness.InstructionForm("order_type=market&amount=-&price=50&quote_amount=50000.04")), 200,
		`{"valid":true,"price":50,"reserve":{"currency":"USDT","amount":50000.04},`+
			`"available":100000,"would_trade":false}`)
	// The least value goes by the worst price, not by the best: 94.5, and not 90.
	h.Post("alice", "/api/v1/order/", harness.Order("sell", "BTC_USDT", "1", "90"))
	form = harness.InstructionForm("amount=0.01&order_type=market&price=-")
	for _, path := range []string{"/api/v1/order-test/", "/api/v1/order/"} {
		harness.Want(t, path, h.Post("bob", path, form), 400,
			`{"amount":["price x amount must be at least 1."]}`)
	}
	form = harness.InstructionForm("amount=0.011&order_type=market&price=-")
	h.Post("bob", "/api/v1/order/", form).Is(t, 201, "enough at its worst price")
}

// A trial refuses taken client order ids: those of open orders, and of the newest closed ones.
func TestTrialChecksTakenIDs(t *testing.T) {
	h := harness.RuledHarness(t)
	form := harness.InstructionForm("client_order_id=a")
	both := func(what string, status int) {
		t.Helper()
		tried := h.Post("bob", "/api/v1/order-test/", form)
		placed := h.Post("bob", "/api/v1/order/", form)
		if placed.Status != status || tried.Status == 200 != (status == 201) ||
			status == 400 && tried.Body != placed.Body {
			t.Errorf("%s: tried %d %s, placed %d %s", what, tried.Status, tried.Body,
				placed.Status, placed.Body)
		}
	}
	both("a new name", 201)
	both("that of an open order", 400)
	h.Post("bob", "/api/v1/order-cancel/", "client_order_id=a")
	both("that of a cancelled order", 400)
}

// A trial uses up a nonce like a read: no read and no order can use it again, even if the trial is
// refused.
func TestATrialTakesANonce(t *testing.T) {
	h := harness.RuledHarness(t)
	for _, says := range []string{"post_only=1", "post_only=1&amount=1000&price=101"} {
		form, nonce := harness.InstructionForm(says), h.NextNonce("bob")
		send := func(path string) harness.Answer {
			return h.Do("POST", path, harness.FormType, form, harness.Signed("bob", nonce, form)...)
		}
		if a := send("/api/v1/order-test/"); a.Status == 401 {
			t.Fatal(a.Body)
		}
		harness.Want(t, "a trial again", send("/api/v1/order-test/"), 401, harness.UsedNonce(nonce))
		harness.Want(t, "an order", send("/api/v1/order/"), 401, harness.UsedNonce(nonce))
		harness.Want(t, "a read",
			h.Do("GET", "/api/v1/wallets/", "", "", harness.Signed("bob", nonce, "")...), 401,
			harness.UsedNonce(nonce))
	}
	h.Post("bob", "/api/v1/order/", harness.InstructionForm("post_only=1")).Is(t, 201)
}
