package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"exchange/actors"
	"exchange/prove/harness"
)

// The rules of orders with instructions: the parameters of an order beside its pair and its side,
// and their faults, each sentence of a field once. The combinations are with
// TestEachTwoInstructionsGoTogetherOrAreRefused. Each order buys, unless it has type=sell. Its
// amount is 1 and its price 100 by default; a value of - leaves the field out, and SOON is a time
// soon.
var instructionRules = []struct{ says, want string }{
	// values
	{"order_type=stop", `"order_type":["Not a valid choice. It must be limit or market."]`},
	{"time_in_force=day",
		`"time_in_force":["Not a valid choice. It must be gtc, ioc, fok, gtd or po."]`},
	{"post_only=yes",
		`"post_only":["Not a valid choice. It must be 1, 0, true, false or slide."]`},
	{"self_trade=all", `"self_trade":["Not a valid choice. It must be none, cancel_newest, ` +
		`cancel_oldest or cancel_both."]`},
	{"trigger_price=90&trigger_when=up",
		`"trigger_when":["Not a valid choice. It must be rise or fall."]`},
	{"trigger_price=0", `"trigger_price":["A number above 0 is required."]`},
	{"stopPrice=1.001", `"stopPrice":["At most 2 fractional digits are possible."]`},
	{"trigger_price=x", `"trigger_price":["A valid number is required."]`},
	{"trigger_price=90.01", `"trigger_price":["A multiple of 0.05 is required."]`},
	{"trigger_price=1e12", `"trigger_price":["The number is too large."]`},
	{"stopLossPrice=90.01", `"stopLossPrice":["A multiple of 0.05 is required."]`},
	{"takeProfitPrice=90.01", `"takeProfitPrice":["A multiple of 0.05 is required."]`},
	{"takeProfitPrice=0", `"takeProfitPrice":["A number above 0 is required."]`},
	{"type=sell&oco_trigger_price=90.01",
		`"oco_trigger_price":["A multiple of 0.05 is required."]`},
	{"type=sell&oco_trigger_price=90&oco_price=80.01",
		`"oco_price":["A multiple of 0.05 is required."]`},
	{"type=sell&oco_trigger_price=0", `"oco_trigger_price":["A number above 0 is required."]`},
	{"type=sell&oco_trigger_price=90&oco_price=0",
		`"oco_price":["A number above 0 is required."]`},
	{"display_amount=0", `"display_amount":["A number above 0 is required."]`},
	{"display_amount=0.123456789",
		`"display_amount":["At most 8 fractional digits are possible."]`},
	{"display_amount=0.0505", `"display_amount":["A multiple of 0.001 is required."]`},
	{"display_amount=x", `"display_amount":["A valid number is required."]`},
	{"price=100.01&time_in_force=ioc", `"price":["A multiple of 0.05 is required."]`},
	{"price=100.001&trigger_price=110",
		`"price":["At most 2 fractional digits are possible."]`},
	{"price=0&order_type=market", `"price":["A number above 0 is required."]`},
	{"price=x&post_only=1", `"price":["A valid number is required."]`},
	{"amount=0&display_amount=0.5", `"amount":["A number above 0 is required."]`},
	{"amount=x&time_in_force=fok", `"amount":["A valid number is required."]`},
	{"amount=0.009&trigger_price=110", `"amount":["The smallest amount is 0.01."]`},
	{"amount=1001&order_type=market&price=-", `"amount":["The largest amount is 1000."]`},
	{"pair=BTC_EUR&post_only=1", `"pair":["Unknown pair."]`},
	{"type=hold&post_only=1", `"type":["Not a valid choice. It must be buy or sell."]`},
	{"amount=0.0015&post_only=1", `"amount":["A multiple of 0.001 is required."]`},
	{"amount=0.01&post_only=1&price=99", `"amount":["price x amount must be at least 1."]`},
	{"amount=0.01&order_type=market&price=-&trigger_price=95", // at worst 99.75
		`"amount":["price x amount must be at least 1."]`},
	{"amount=0.01&order_type=market&price=-&trigger_price=105&type=sell", // at worst 99.75
		`"amount":["price x amount must be at least 1."]`},
	{"time_in_force=gtd&expire_time=soon",
		`"expire_time":["A valid number is required. It is a time in seconds since 1970."]`},
	{"time_in_force=gtd&expire_time=1000000000",
		`"expire_time":["A time 1 second to 366 days ahead is required."]`},
	{"time_in_force=gtd&expire_time=1900000000000",
		`"expire_time":["A time 1 second to 366 days ahead is required."]`},
	{"order_type=market&quote_amount=-1&amount=-",
		`"quote_amount":["A valid number is required."]`},
	{"order_type=market&cost=0&amount=-", `"cost":["A number above 0 is required."]`},
	{"order_type=market&cost=0.123456789&amount=-",
		`"cost":["At most 8 fractional digits are possible."]`},
	{"order_type=market&quote_amount=0.99&amount=-",
		`"quote_amount":["It must be at least 1."]`},
	{"order_type=market&quote_amount=10&amount=-&price=2000",
		`"quote_amount":["It buys less than 0.01 at 2000."]`},
	{"order_type=market&quote_amount=100100&amount=-",
		`"quote_amount":["It buys more than 1000 at 100."]`},
	// missing and superfluous parameters
	{"post_only=1&price=-", `"price":["This field is required."]`},
	{"time_in_force=ioc&price=-", `"price":["This field is required."]`},
	{"trigger_price=110&price=-", `"price":["This field is required."]`},
	{"post_only=1&type=-", `"type":["This field is required."]`},
	{"post_only=1&pair=-", `"pair":["This field is required."]`},
	{"post_only=1&amount=-", `"amount":["This field is required."]`},
	{"order_type=market&amount=-&price=-", `"amount":["This field is required."]`},
	{"time_in_force=gtd", `"expire_time":["This field is required."]`},
	{"expire_time=SOON", `"expire_time":["Not possible without time_in_force gtd."]`},
	{"trigger_when=rise", `"trigger_when":["Not possible without trigger_price."]`},
	{"type=sell&oco_price=80", `"oco_price":["Not possible without oco_trigger_price."]`},
	// bad combinations
	{"order_type=market&time_in_force=gtc",
		`"time_in_force":["Not possible with order_type market."]`},
	{"order_type=market&post_only=1", `"post_only":["Not possible with order_type market."]`},
	{"order_type=market&display_amount=0.5",
		`"display_amount":["Not possible with order_type market."]`},
	{"time_in_force=ioc&post_only=1", `"post_only":["Not possible with time_in_force ioc."]`},
	{"time_in_force=fok&post_only=true",
		`"post_only":["Not possible with time_in_force fok."]`},
	{"time_in_force=ioc&display_amount=0.5",
		`"display_amount":["Not possible with time_in_force ioc."]`},
	{"time_in_force=fok&display_amount=0.5",
		`"display_amount":["Not possible with time_in_force fok."]`},
	{"quote_amount=100&amount=-", `"quote_amount":["Not possible with order_type limit."]`},
	{"order_type=market&quote_amount=100",
		`"quote_amount":["Not possible with amount."]`},
	{"order_type=market&quote_amount=100&amount=-&type=sell",
		`"quote_amount":["Not possible with type sell."]`},
	{"order_type=market&quote_amount=100&amount=-&trigger_price=90",
		`"quote_amount":["Not possible with trigger_price."]`},
	{"order_type=market&cost=100&amount=-&takeProfitPrice=90",
		`"cost":["Not possible with trigger_price."]`},
	{"order_type=market&cost=100&amount=-&stopLossPrice=110",
		`"cost":["Not possible with trigger_price."]`},
	{"stopLossPrice=110&takeProfitPrice=90",
		`"stopLossPrice":["Not possible with takeProfitPrice."]`},
	{"stopLossPrice=110&triggerPrice=110",
		`"triggerPrice":["Given twice, also as stopLossPrice."]`},
	{"takeProfitPrice=90&trigger_price=90",
		`"trigger_price":["Given twice, also as takeProfitPrice."]`},
	{"stopLossPrice=110&trigger_when=fall",
		`"trigger_when":["Not possible with stopLossPrice."]`},
	{"takeProfitPrice=90&trigger_when=fall",
		`"trigger_when":["Not possible with takeProfitPrice."]`},
	{"oco_trigger_price=90", `"oco_trigger_price":["Not possible with type buy."]`},
	{"type=sell&order_type=market&oco_trigger_price=90",
		`"oco_trigger_price":["Not possible with order_type market."]`},
	{"type=sell&time_in_force=gtd&expire_time=SOON&oco_trigger_price=90",
		`"oco_trigger_price":["Not possible with time_in_force gtd."]`},
	{"type=sell&time_in_force=ioc&oco_trigger_price=90",
		`"oco_trigger_price":["Not possible with time_in_force ioc."]`},
	{"type=sell&time_in_force=fok&oco_trigger_price=90",
		`"oco_trigger_price":["Not possible with time_in_force fok."]`},
	{"type=sell&trigger_price=95&oco_trigger_price=90",
		`"oco_trigger_price":["Not possible with trigger_price."]`},
	{"type=sell&post_only=1&oco_trigger_price=90",
		`"post_only":["Not possible with oco_trigger_price without oco_price."]`},
	{"type=sell&time_in_force=po&oco_trigger_price=90",
		`"time_in_force":["Not possible with oco_trigger_price without oco_price."]`},
	{"type=sell&oco_trigger_price=100", `"oco_trigger_price":["It must be below price."]`},
	{"type=sell&oco_trigger_price=100.05", `"oco_trigger_price":["It must be below price."]`},
	{"display_amount=1", `"display_amount":["It must be below amount."]`},
	{"display_amount=0.009", `"display_amount":["The smallest amount is 0.01."]`},
	{"display_amount=0.049", `"display_amount":["It must be at least a twentieth of amount."]`},
	{"amount=1.001&display_amount=0.05",
		`"display_amount":["It must be at least a twentieth of amount."]`},
	// names
	{"trailingPercent=5", `"trailingPercent":["Not offered."]`},
	{"stopLoss[triggerPrice]=5", `"stopLoss[triggerPrice]":["Not offered."]`},
	{"takeProfit[price]=5", `"takeProfit[price]":["Not offered."]`},
	{"post_only=1&postOnly=1", `"post_only":["Given twice, also as postOnly."]`},
	{"orderType=limit&order_type=limit", `"order_type":["Given twice, also as orderType."]`},
	{"timeInForce=gtc&time_in_force=gtc",
		`"time_in_force":["Given twice, also as timeInForce."]`},
	{"cost=1&quote_amount=1", `"quote_amount":["Given twice, also as cost."]`},
	{"stopPrice=90&trigger_price=90", `"trigger_price":["Given twice, also as stopPrice."]`},
	{"trigger_price=90&triggerPrice=90",
		`"trigger_price":["Given twice, also as triggerPrice."]`},
	{"selfTradePrevention=none&self_trade=none",
		`"self_trade":["Given twice, also as selfTradePrevention."]`},
	{"post_only=1&clientOrderId=a&client_order_id=b",
		`"client_order_id":["Given twice, also as clientOrderId."]`},
}

// Each exclusion of the page is refused on its field, however the order comes: alone, as a trial,
// or in a batch. It reserves nothing, writes nothing, and uses no nonce.
func TestInstructionsAreHeldAgainstTheirRules(t *testing.T) {
	h := harness.RuledHarness(t)
	untouched(t, h, func() {
		for _, rule := range instructionRules {
			form := harness.InstructionForm(rule.says)
			for _, path := range []string{"/api/v1/order/", "/api/v1/order-test/"} {
				a := h.Do("POST", path, harness.FormType, form,
					harness.Signed("bob", harness.FieldsNonce, form)...)
				harness.Want(t, path+" "+rule.says, a, 400, "{"+rule.want+"}")
			}
			a := h.PostJSON("bob", harness.FieldsNonce, "/api/v1/order-batch/",
				`{"orders":[`+formItem("place", form)+`]}`)
			harness.Want(t, "a batch of "+rule.says, a, 200,
				`{"results":[{"status":400,"body":{`+rule.want+`}}]}`)
		}
	})
}

// formItem returns an item of a batch with the fields of a form.
func formItem(do, form string) string {
	item := map[string]string{"do": do}
	for field := range strings.SplitSeq(form, "&") {
		name, value, _ := strings.Cut(field, "=")
		item[name] = value
	}
	b, err := json.Marshal(item)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// Every bad instruction is named at once, and so is each other bad field.
func TestBadInstructionsAreNamedTogether(t *testing.T) {
	h := harness.RuledHarness(t)
	untouched(t, h, func() {
		form :=
			harness.InstructionForm("amount=0&expire_time=x&order_type=stop&pair=X&post_only=2" +
				"&price=0&self_trade=x&stopPrice=0&time_in_force=x&trigger_when=x&type=x")
		a := h.Do("POST", "/api/v1/order/", harness.FormType, form,
			harness.Signed("bob", harness.FieldsNonce, form)...)
		got := harness.BadFieldsOf(t, form, a)
		if names := fmt.Sprint(got); names != "[amount expire_time order_type pair post_only "+
			"price self_trade stopPrice time_in_force trigger_when type]" {
			t.Errorf("%s", names)
		}
	})
}

// A time that is possible now is not possible for long, so it has its own test.
func TestAnEndIsPossibleWithinItsBounds(t *testing.T) {
	h := harness.RuledHarness(t)
	now := time.Now().Unix()
	for _, x := range []struct {
		ahead  int64
		status int
	}{{-1, 400}, {0, 400}, {100, 201}, {366*86400 - 100, 201}, {366*86400 + 100, 400}} {
		form := harness.InstructionForm(fmt.Sprintf("time_in_force=gtd&expire_time=%d.5",
			now+x.ahead))
		if a := h.Post("bob", "/api/v1/order/", form); a.Status != x.status {
			t.Errorf("%d s ahead: %d %s", x.ahead, a.Status, a.Body)
		}
	}
}

// A refusal by the market uses a nonce, and nothing else. Without anything to trade with a market
// order is refused before that.
func TestMarketRefusalUsesNonce(t *testing.T) {
	h := harness.RuledHarness(t, func(o *actors.Options) { o.Pairs[0].PriceBand = 10_000_000 })
	h.Post("alice", "/api/v1/order/", harness.Order("sell", "BTC_USDT", "2", "100"))
	h.Post("alice", "/api/v1/order/", harness.Order("buy", "BTC_USDT", "1", "100"))
	own := func() string {
		return h.Get("bob", "/api/v1/orders/own/").Body + h.Get("bob", "/api/v1/wallets/").Body
	}
	before := own()
	for _, x := range []struct{ says, code string }{
		{"post_only=1", "would_trade"}, {"time_in_force=po", "would_trade"},
		{"trigger_price=100", "would_trigger"},
		{"oco_trigger_price=100&price=105&type=sell", "would_trigger"},
		{"price=110.05", "price_band"}, {"price=120&time_in_force=fok", "price_band"},
		{"price=89.95&type=sell", "price_band"},
		{"price=220.05&trigger_price=200", "price_band"},
		{"oco_price=80&oco_trigger_price=90&price=105&type=sell", "price_band"},
		{"order_type=market&price=-&type=sell", "no_liquidity"},
	} {
		form, nonce := harness.InstructionForm("client_order_id=free&"+x.says), h.NextNonce("bob")
		send := func() harness.Answer {
			return h.Do("POST", "/api/v1/order/", harness.FormType, form,
				harness.Signed("bob", nonce, form)...)
		}
		refused := func(a harness.Answer) bool {
			return a.Status == 400 && strings.HasPrefix(a.Body, `{"date":`) &&
				strings.HasSuffix(a.Body, `,"code":"`+x.code+`"}`)
		}
		if a := send(); !refused(a) {
			t.Errorf("%s: %d %s", x.says, a.Status, a.Body)
		}
		if a := send(); refused(a) != (x.code == "no_liquidity") ||
			!refused(a) && a.Body != harness.UsedNonce(nonce) {
			t.Errorf("%s again: %d %s", x.says, a.Status, a.Body)
		}
	}
	if after := own(); after != before {
		t.Errorf("of refused orders there is\n%s, before\n%s", after, before)
	}
	h.Post("bob", "/api/v1/order/", harness.InstructionForm("client_order_id=free")).Is(t, 201,
		"the name of refused orders")
}
