package api_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"exchange/actors"
	"exchange/core/money"
	"exchange/gateway/api"
	"exchange/gateway/params"
	"exchange/prove/harness"
)

// untouched runs requests that must all be refused, and checks that they left no trace.
func untouched(t *testing.T, h *harness.Exchange, refused func()) {
	t.Helper()
	before := h.Hash()
	refused()
	h.StillAt(before)
	a := h.PostJSON("bob", harness.FieldsNonce, "/api/v1/order/",
		`{"amount":1,"pair":"BTC_USDT","price":1,"type":"buy"}`)
	if a.Status != 201 {
		t.Errorf("the nonce of refused requests is not good any more: %d %s", a.Status, a.Body)
	}
	h.Verify()
}

// Values that no field takes, and values that one kind of field does not take, as JSON.
var (
	noScalars = []string{"true", "false", "{}", "[]", `{"a":1}`, "[1]", `["1"]`,
		"[" + strings.Repeat("[", 30) + strings.Repeat("]", 30) + "]"}
	strange = []string{`""`, `" "`, `"\u0000"`, `"\u0661"`, `"\uff11"`, `"\ud83d\ude00"`,
		harness.Quote(strings.Repeat("9", 5000)), `"1 "`, `" 1"`, `"1\n"`}
	noNumbers = []string{"-1", `"-1"`, `"+1"`, "-0", `"NaN"`, `"Infinity"`, `"0x10"`, `"1,5"`,
		`"1_000"`, `".5"`, `"5."`, `"1e"`, `"e1"`, `"1.2.3"`, `"--1"`, `"one"`}
	noPrices = []string{"0", "0.0", "0e9", `"0"`, "0.001", "1.234", "1e-3", "0.000000001",
		"1e-9", "1e-400", "1e400", "1e99999999999", "99999999999999999999",
		"92233720368547758.08e9", "1" + strings.Repeat("0", 70)}
	noAmounts = []string{"0", "0.0", "0e9", `"0"`, "0.000000001", "1e-9", "0.000009",
		"0.00000999", "1000000.00000001", "1000001", "1e7", "1e19", "1e400", "99999999999999999999"}
	noIntegers = []string{"0", "-1", "1.5", "1e-1", "10.01", `"+1"`, "1e19", "12345678901234567890",
		`"0x1"`, `"one"`, `"1 2"`}
	noIDs = []string{`"a b"`, `"a.b"`, `"a/b"`, `"\u00e9"`, `"<script>"`,
		harness.Quote(strings.Repeat("a", 37)), "1.5"}
	noCurrencies = []string{"1", `"usdt"`, `"USDT "`, `"USD"`, `"BTC_USDT"`, `"USDT\u0000"`,
		`"\u0426"`}
	noPairs = []string{"1", `"btc_usdt"`, `"BTC_USDT "`, `"USDT_BTC"`, `"BTC/USDT"`, `"BTC"`,
		`"BTC_USDT\u0000"`}
	noMoney = []string{"0", "0.0", "0e9", `"0"`, "0.000000001", "1e-9", "1e-400", "1e19", "1e400",
		"99999999999999999999", "92233720368.54775808", "1" + strings.Repeat("0", 70)}
	noSides = []string{"1", `"Buy"`, `"BUY"`, `"buy "`, `"bid"`, `"sell,buy"`}
)

// Texts that no field of free text takes.
var noTexts = []string{`""`, `"\u0000"`, `"a\u0000b"`, `"a\nb"`, `"\t"`, `"\u001b[2J"`, `"\u007f"`,
	`"\u0085"`, harness.Quote(strings.Repeat("x", 5000)),
	harness.Quote(strings.Repeat("\u00e9", 1000))}

// noAddresses look different to a reader than they are: with blanks, marks of direction, characters
// without a width, or letters of another script.
var noAddresses = []string{`" "`, `"a b"`, `" a"`, `"a "`, `"a\u00a0b"`, `"a\u3000"`, `"a\u202eb"`,
	`"\u2066a\u2069"`, `"a\u200bb"`, `"a\ufeff"`,
	`"a\u00adb"`, `"b\u0441a"`, `"\u00e9"`, `"\ud83d\ude00"`, `"a\u007f"`,
	harness.Quote(strings.Repeat("\u00e9", 128))}

// missing are the two ways in which a required field is missing.
var missing = []string{"", "null"}

// The fields of every POST, with a good value of each, "" for an optional field, and bad values;
// "": the field is missing, as it is if it is null.
var postFields = []struct {
	path string
	good map[string]string
	bad  map[string][]string
}{
	{"/api/v1/order/", map[string]string{"amount": "1", "pair": `"BTC_USDT"`, "price": "1",
		"type": `"buy"`, "client_order_id": ""}, map[string][]string{
		"amount":          slices.Concat(noScalars, strange, noNumbers, noAmounts, missing),
		"price":           slices.Concat(noScalars, strange, noNumbers, noPrices, missing),
		"pair":            slices.Concat(noScalars, strange, noPairs, missing),
		"type":            slices.Concat(noScalars, strange, noSides, missing),
		"client_order_id": slices.Concat(noScalars, strange, noIDs)}},
	{"/api/v1/order/", map[string]string{"amount": "1", "pair": `"BTC_USDT"`, "price": "1",
		"type": `"buy"`, "order_type": "", "timeInForce": "", "post_only": "",
		"selfTradePrevention": "", "trigger_when": "", "cost": ""}, map[string][]string{
		"amount": noNumbers, "pair": noPairs, "price": noNumbers, "type": noSides,
		"order_type":  slices.Concat(noScalars, strange, []string{`"stop"`, `"mar\u212aet"`}),
		"timeInForce": slices.Concat(noScalars, strange, []string{`"day"`, `"gt\u0441"`, "1"}),
		"post_only": slices.Concat([]string{"{}", "[]", `[1]`}, strange,
			[]string{"2", "-0", `"yes"`, "1.0", `"\u017flide"`}),
		"selfTradePrevention": slices.Concat(noScalars, strange, []string{`"all"`, "0"}),
		"trigger_when":        slices.Concat(noScalars, strange, []string{`"up"`}),
		"cost": slices.Concat(noScalars, strange, noNumbers,
			[]string{"0", "1e-9"})}},
	{"/api/v1/order/", map[string]string{"amount": "1", "pair": `"BTC_USDT"`, "price": "1",
		"type": `"sell"`, "display_amount": "", "expire_time": "", "oco_price": "",
		"takeProfitPrice": "", "triggerPrice": ""}, map[string][]string{
		"amount": noNumbers, "pair": noPairs, "price": noNumbers, "type": noSides,
		"display_amount":  slices.Concat(noScalars, strange, noNumbers, []string{"0"}),
		"expire_time":     slices.Concat(noScalars, strange, noNumbers, []string{"1", "1e13"}),
		"oco_price":       slices.Concat(noScalars, strange, noNumbers),
		"takeProfitPrice": slices.Concat(noScalars, strange, noNumbers),
		"triggerPrice":    slices.Concat(noScalars, strange, noNumbers)}},
	{"/api/v1/order-amend/", map[string]string{"order": "1", "amount": "", "price": "1",
		"display_amount": "", "trigger_price": "", "expire_time": "", "post_only": ""},
		map[string][]string{
			"order":          slices.Concat(noScalars, strange, noNumbers, noIntegers),
			"amount":         slices.Concat(noScalars, strange, noNumbers, []string{"0"}),
			"price":          slices.Concat(noScalars, strange, noNumbers, []string{"0"}),
			"display_amount": slices.Concat(noScalars, strange, noNumbers, []string{"0"}),
			"trigger_price":  slices.Concat(noScalars, strange, noNumbers, []string{"0"}),
			"expire_time":    slices.Concat(noScalars, strange, noNumbers, []string{"1"}),
			"post_only":      slices.Concat([]string{"{}"}, strange, []string{"2"})}},
	{"/api/v1/trading-settings/", map[string]string{"self_trade": `"none"`},
		map[string][]string{"self_trade": slices.Concat(noScalars, strange,
			[]string{`"all"`, "0", "", "null"})}},
	{"/api/v1/order-cancel-after/", map[string]string{"timeout": "60", "pair": "", "type": "",
		"client_order_id_prefix": ""}, map[string][]string{
		"timeout": slices.Concat(noScalars, strange, noNumbers,
			[]string{"1", "4", "86401", "5.5", "1e6", "", "null"}),
		"pair":                   slices.Concat(noScalars, strange, noPairs),
		"type":                   slices.Concat(noScalars, strange, noSides),
		"client_order_id_prefix": slices.Concat(noScalars, strange, noIDs)}},
	{"/api/v1/order-cancel/", map[string]string{"order": "1"},
		map[string][]string{"order": slices.Concat(noScalars, strange, noNumbers, noIntegers,
			missing)}},
	{"/api/v1/order-cancel/", map[string]string{"client_order_id": `"x"`}, map[string][]string{
		"client_order_id": slices.Concat(noScalars, strange, noIDs)}},
	{"/api/v1/order-cancel/", map[string]string{"clientOrderId": `"x"`}, map[string][]string{
		"clientOrderId": slices.Concat(noScalars, strange, noIDs)}},
	{"/api/v1/order-cancel-all/", map[string]string{"all": "1", "pair": "", "type": "",
		"client_order_id_prefix": ""}, map[string][]string{
		"all": slices.Concat([]string{"{}", "[]", "[1]", "[true]"}, strange,
			[]string{"2", "1.0", `"01"`, `"all"`, `""`}),
		"pair":                   slices.Concat(noScalars, strange, noPairs),
		"type":                   slices.Concat(noScalars, strange, noSides),
		"client_order_id_prefix": slices.Concat(noScalars, strange, noIDs)}},
	{"/api/v1/withdraw/", map[string]string{"amount": "1", "currency": `"USDT"`, "address": `"x"`},
		map[string][]string{
			"amount":   slices.Concat(noScalars, strange, noNumbers, noMoney, missing),
			"currency": slices.Concat(noScalars, strange, noCurrencies, missing),
			"address": slices.Concat(noScalars, noTexts, noAddresses,
				[]string{harness.Quote(strings.Repeat("x", 257)), "", "null"})}},
	{"/api/v1/withdraw-confirm/", map[string]string{"withdraw": "1", "code": `"x"`},
		map[string][]string{
			"withdraw": slices.Concat(noScalars, strange, noNumbers, noIntegers, missing),
			"code": slices.Concat(noScalars, noTexts,
				[]string{harness.Quote(strings.Repeat("1", 65)), "", "null"})}},
	{"/api/v1/withdraw-cancel/", map[string]string{"withdraw": "1"},
		map[string][]string{"withdraw": slices.Concat(noScalars, strange, noNumbers, noIntegers,
			missing)}},
}

func TestEachBadFieldOfABodyIsNamed(t *testing.T) {
	h := harness.Traded(t)
	body := func(with map[string]string) string {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(with)) {
			if v := with[name]; v != "" {
				parts = append(parts, harness.Quote(name)+":"+v)
			}
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	untouched(t, h, func() {
		for _, p := range postFields {
			f := func(with map[string]string, names ...string) {
				t.Helper()
				b := body(with)
				if got := harness.BadFieldsOf(t, p.path+" "+b,
					h.PostJSON("bob", harness.FieldsNonce, p.path, b)); !slices.Equal(got, names) {
					t.Errorf("%s %.300s: names %v, want %v", p.path, b, got, names)
				}
			}
			names := slices.Sorted(maps.Keys(p.good))
			for _, name := range names {
				for _, v := range p.bad[name] {
					with := maps.Clone(p.good)
					with[name] = v
					f(with, name)
				}
			}
			// Every combination of bad fields is reported at once.
			for set := 1; set < 1<<len(names); set++ {
				with, bad := maps.Clone(p.good), []string(nil)
				for i, name := range names {
					if set>>i&1 == 1 {
						with[name], bad = p.bad[name][set%len(p.bad[name])], append(bad, name)
					}
				}
				f(with, bad...)
			}
		}
		const required = `["This field is required."]`
		for _, empty := range []string{"{}", ""} {
			for path, text := range map[string]string{
				"/api/v1/order/": `{"pair":` + required + `,"type":` + required +
					`,"price":` + required + `,"amount":` + required + `}`,
				"/api/v1/order-cancel/":       `{"order":` + required + `}`,
				"/api/v1/order-amend/":        `{"order":` + required + `}`,
				"/api/v1/trading-settings/":   `{"self_trade":` + required + `}`,
				"/api/v1/order-cancel-after/": `{"timeout":` + required + `}`,
				"/api/v1/order-cancel-all/":   `{"all":` + required + `}`,
				"/api/v1/withdraw/": `{"currency":` + required + `,"amount":` + required +
					`,"address":` + required + `}`,
				"/api/v1/withdraw-confirm/": `{"withdraw":` + required + `,"code":` + required +
					`}`,
				"/api/v1/withdraw-cancel/": `{"withdraw":` + required + `}`,
			} {
				harness.Want(t, "nothing to "+path,
					h.PostJSON("bob", harness.FieldsNonce, path, empty), 400, text)
			}
		}
	})
}

// Texts at the bounds, and strange texts, are taken. The requests are refused only because bob has
// no e-mail address, and because there is no such withdrawal.
func TestTextsOfAWithdrawalMayBeAnyAtTheirBounds(t *testing.T) {
	h := harness.Traded(t)
	nonce := uint64(harness.FieldsNonce)
	for _, v := range []string{harness.Quote(strings.Repeat("x", 256)), "1.50", `"<b>&"`,
		`"!~'\"\\"`} {
		harness.Want(t, v, h.PostJSON("bob", nonce, "/api/v1/withdraw/",
			`{"address":`+v+`,"amount":"1e-8","currency":"USDT"}`), 400,
			harness.Detail(api.NoEmail.Detail))
	}
	for _, v := range []string{harness.Quote(strings.Repeat("1", 64)), `"\u00e9"`, "123456"} {
		nonce++
		harness.Want(t, v, h.PostJSON("bob", nonce, "/api/v1/withdraw-confirm/",
			`{"code":`+v+`,"withdraw":1}`), 400, `{"withdraw":["Withdraw not found"]}`)
	}
}

func TestAWithdrawalIsAtLeastTheMinimumOfItsCurrency(t *testing.T) {
	h := harness.New(t, func(o *actors.Options) { o.Currencies[0].MinimumWithdrawal = 1e5 })
	h.AccountAt("bob", "bob@example.org")
	h.Deposit("bob", "1", "BTC", "r")
	f := func(amount, currency string, status int, body string) {
		t.Helper()
		harness.Want(t, amount+" "+currency, h.Post("bob", "/api/v1/withdraw/",
			"address=x&amount="+amount+"&currency="+currency), status, body)
	}
	f("0.00099999", "BTC", 400, `{"amount":["The smallest amount is 0.001."]}`)
	f("0.00099999", "btc", 400, `{"currency":["Unknown currency."]}`)
	// it has none
	f("0.00000001", "ETH", 400, `{"date":T,"error":"Out of balance -0.00000001 ETH"}`)
	f("0.001", "BTC", 201,
		`{"id":1,"timestamp":T,"currency":"BTC","amount":0.001,"status":10,"address":"x"}`)
}

// The least value is checked as soon as there is a price and an amount, even beside other bad
// fields.
func TestAnOrderOfTooLittleValueIsRefusedTogetherWithOtherFaults(t *testing.T) {
	h := harness.New(t, func(o *actors.Options) {
		for i := range o.Pairs {
			o.Pairs[i].MinimumOrderValue = money.Amount(10e8).Balance()
		}
	})
	h.Account("bob")
	h.Deposit("bob", "100", "USDT", "r")
	const less = `"amount":["price x amount must be at least 10."]`
	f := func(amount, price, side string, status int, body string) {
		t.Helper()
		a := h.PostJSON("bob", harness.FieldsNonce, "/api/v1/order/",
			fmt.Sprintf(`{"amount":%s,"pair":"BTC_USDT","price":%s,"type":"%s"}`, amount, price,
				side))
		harness.Want(t, amount+" x "+price, a, status, body)
	}
	f("0.09999999", "100", "buy", 400, "{"+less+"}")
	f("0.09999999", "100", "hold", 400,
		`{"type":["Not a valid choice. It must be buy or sell."],`+less+"}")
	f("0.09999999", "0", "buy", 400, `{"price":["A number above 0 is required."]}`)
	f("0.1", "100", "buy", 201,
		`{"success":true,"type":"buy","date":T,"oid":1,"price":100,"amount":0.1,"amount_filled":0,"amount_original":0.1,"trades":[]}`)
}

func TestFormsAreCheckedAsJSONIs(t *testing.T) {
	h := harness.Traded(t)
	untouched(t, h, func() {
		f := func(params, names string) {
			t.Helper()
			a := h.Do("POST", "/api/v1/order/", harness.FormType, params,
				harness.Signed("bob", harness.FieldsNonce, params)...)
			if got := strings.Join(harness.BadFieldsOf(t, params, a), " "); got != names {
				t.Errorf("%s: names %s, want %s", params, got, names)
			}
		}
		f("amount", "amount pair price type")
		f("amount=&pair=&price=&type=", "amount pair price type")
		f("amount=1&client_order_id=&pair=BTC_USDT&price=1&type=buy", "client_order_id")
		f("amount=1&pair=BTC_USDT&price=%2B1&type=buy", "price")
		f("amount=+1&pair=BTC_USDT&price=1&type=buy", "amount")
		f("amount=1&amount=1&pair=BTC_USDT&price=1&type=buy", "amount")
		f("amount=1&am%6Funt=2&pair=BTC_USDT&price=1&type=buy", "amount")
		f("amount=%5B1%5D&pair=BTC_USDT&price=true&type=null", "amount price type")
		f("amount[]=1&pair=BTC_USDT&price=1&type=buy", "amount")
	})
}

func TestMalformedParametersAreRefusedWithAReason(t *testing.T) {
	h := harness.Traded(t)
	good := `{"amount":1,"pair":"BTC_USDT","price":1,"type":"buy"}`
	many := func(n int) string {
		var parts []string
		for i := range n {
			parts = append(parts, `"p`+strconv.Itoa(i)+`":1`)
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	untouched(t, h, func() {
		for _, p := range harness.ApiPaths {
			f := func(what, kind, body, text string) {
				t.Helper()
				method, path := "POST", p.Path
				if !strings.HasPrefix(p.Allow, method) {
					method, path, body = "GET", p.Path+"?"+body, ""
				}
				a := h.Do(method, path, kind, body,
					harness.Signed("bob", harness.FieldsNonce, "")...)
				harness.WellFormed(t, what, a)
				if a.Status != 400 || !strings.HasPrefix(a.Body, text) {
					t.Errorf("%s %s: %d %s", p.Path, what, a.Status, a.Body)
				}
			}
			const unread = `could not be parsed. Malformed at position `
			switch {
			case strings.HasPrefix(p.Allow, "POST"):
				f("half of it", harness.JsonType, good[:20], `{"detail":"The body `+unread)
				f("more than it", harness.JsonType, good+"x", `{"detail":"The body `+unread)
				f("a list", harness.JsonType, "["+good+"]", `{"detail":"The body `+unread)
				f("a form as JSON", harness.JsonType, "amount=1&pair=BTC_USDT",
					`{"detail":"The body `+unread)
				f("no form", harness.FormType, "a=%zz", `{"detail":"The body `+unread)
				f("too many", harness.JsonType, many(params.MaxParams+1),
					`{"detail":"The body could not be`)
				f("a name twice", harness.JsonType, `{"amount":1,"\u0061mount":2}`, `{"amount":["`)
				f("a strange name twice", harness.JsonType, `{"<b>":1,"<b>":[]}`,
					`{"\u003cb\u003e":["`)
				for _, kind := range []string{"text/plain", "text/json", "application/xml",
					"application/jsonx", "application/json-patch+json", "json", ";application/json",
					"multipart/form-data; boundary=x", "application/octet-stream"} {
					f(kind, kind, good, harness.Detail(api.UnknownContentType.Detail))
				}
			case strings.HasPrefix(p.Path, "/api/"):
				f("no query", "", "a=%", `{"detail":"The query `+unread)
				f("too many", "", strings.NewReplacer(`{"`, "", `":1,"`, "=1&", `":1}`, "=1").Replace(
					many(params.MaxParams+1)), `{"detail":"The query could not be`)
			}
		}
	})
	// The greatest number of parameters is fine: the unknown ones are signed and ignored.
	body := strings.Replace(many(params.MaxParams-4), "{", good[:len(good)-1]+",", 1)
	h.PostJSON("bob", harness.FieldsNonce+1, "/api/v1/order/", body).Is(t, 201)
}

func TestEachBadParameterOfAQueryIsNamed(t *testing.T) {
	h := harness.Traded(t)
	counts := []string{"0", "00", "-1", "1.5", "1e-1", "1e19", "+1", "%201", "", "all",
		"12345678901234567890", "%D9%A1"}
	ids := counts
	afters := slices.DeleteFunc(slices.Clone(counts), func(n string) bool {
		return n == "0" || n == "00" // from the first on
	})
	sides := []string{"", "Buy", "SELL", "1", "buy,sell"}
	pairs := []string{"", "BTC", "btc_usdt", "BTC_EUR", "%F0%9F%98%80", strings.Repeat("x", 500)}
	offsets := []string{"-1", "100001", "1e6", "0.5", "", "x", "12345678901234567890"}
	orderings := []string{"", "ID", "--id", "price", "id,-id"}
	currencies := []string{"", "btc", "EUR", "1", "BTC%00", "%F0%9F%98%80",
		strings.Repeat("x", 500)}
	statuses := []string{"", "0", "1", "11", "60", "10.5", "-10", "new", "%D9%A1%D9%A0"}
	moments := []string{"", "x", "%2B1", "+1", "-", "-1", "-0", "-0.5", "--1", "-+1", "1,5", "1e",
		".5", "5.", "NaN", "0x10", "1.123456789", "-1.123456789", "-1e11", "1e-9", "%D9%A1", "1%00",
		strings.Repeat("9", 500)}
	untouched(t, h, func() {
		h.NamesEach("/api/v1/pairs/", false, map[string][]string{"currency1": currencies,
			"currency2": currencies})
		h.NamesEach("/api/v1/orderbook/BTC_USDT/", false,
			map[string][]string{"limit_sell": counts, "limit_buy": counts,
				"group": {"", "2", "-1", "yes", "01"}})
		h.NamesEach("/api/v1/orderbook/BTC_USDT/", false,
			map[string][]string{"limit_asks": counts, "limit_bids": counts})
		h.NamesEach("/api/v1/exchanges/", false,
			map[string][]string{"pair": pairs, "limit": counts, "offset": offsets, "before": ids,
				"ordering": orderings})
		withoutPair := map[string][]string{"after": {"1"}, "since": {"1"}, "until": {"1"}}
		h.NamesEach("/api/v1/exchanges/", false, withoutPair)
		h.NamesEach("/api/v1/exchanges/own/", true, withoutPair)
		h.NamesEach("/api/v1/exchanges/?pair=BTC_USDT", false,
			map[string][]string{"after": afters, "since": moments, "until": moments})
		h.NamesEach("/api/v1/ticker/", false, map[string][]string{"pair": pairs})
		h.NamesEach("/api/charts/BTC_USDT/1/chart", false,
			map[string][]string{"limit": counts, "since": moments, "until": moments})
		h.NamesEach("/api/v1/deposits/", true, map[string][]string{"currency_id": currencies,
			"limit": counts, "offset": offsets, "before": ids})
		h.NamesEach("/api/v1/withdraws/", true, map[string][]string{"currency_id": currencies,
			"status": statuses, "limit": counts, "offset": offsets, "before": ids})
		h.NamesEach("/api/v1/wallets/", true, map[string][]string{"currency_id": currencies})
		h.NamesEach("/api/v1/orders/own/", true,
			map[string][]string{"type": sides, "pair": pairs,
				"status": {"0", "4", "", "active", "-1", "1.5"}, "limit": counts, "offset": offsets,
				"before": ids, "waiting": {"", "2", "-1", "01", "on", "%D9%A1"},
				"client_order_id": {"", "a%20b", "%C3%A9", strings.Repeat("a", 37)}})
		h.NamesEach("/api/v1/orders/own/", true,
			map[string][]string{"clientOrderId": {"", "a%20b", "%C3%A9", strings.Repeat("a", 37)}})
		h.NamesEach("/api/v1/exchanges/own/", true,
			map[string][]string{"type": sides, "my_side": sides, "pair": pairs, "limit": counts,
				"offset": offsets, "before": ids, "ordering": orderings})
		h.NamesEach("/api/v1/exchanges/own/?pair=BTC_USDT", true,
			map[string][]string{"after": afters, "since": moments, "until": moments})
	})
}
