package api_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/gateway"
	"exchange/gateway/api"
	"exchange/gateway/edge"
	"exchange/gateway/ratelimit"
	"exchange/prove/harness"
)

// The tests about all paths cover only their own list.
func TestTheTableHasEveryPathButTheDocumentation(t *testing.T) {
	shape := strings.NewReplacer("{pair}", "BTC_USDT", "{timeframe}", "60", "{pk}", "2")
	known := map[string]bool{"/api/openapi.json": true, "/docs": true, "/docs/{file}": true}
	for _, p := range harness.ApiPaths {
		known[p.Path] = true
	}
	for path := range gateway.New(edge.Options{Log: harness.Quiet()}).Public().Table() {
		if !known[shape.Replace(path)] {
			t.Errorf("%s is not in the table", path)
		}
	}
}

func TestEveryResourceHasExactlyItsShape(t *testing.T) {
	h := harness.Traded(t)
	f := func(path, body string) {
		t.Helper()
		for _, p := range []string{path + "/", path, path + "/?format=json", path + "?format=json",
			path + "?format=xml&format=json&unknown=x%20y"} {
			harness.Want(t, p, h.Do("GET", p, "", "", h.Bobs(true)...), 200, body)
		}
	}
	f("/api/v1/currencies",
		`[{"sign":"B","short_name":"BTC"},{"sign":"E","short_name":"ETH"},{"sign":"U","short_name":"USDT"}]`)
	f("/api/v1/pairs", "["+pairObject("BTC", "USDT", 2)+","+pairObject("ETH", "USDT", 2)+","+
		pairObject("ETH", "BTC", 6)+"]")
	f("/api/v1/orderbook/BTC_USDT",
		`{"sell":[{"price":100.5,"amount":0.5,"id":1,"timestamp":T}],"buy":[{"price":0.01,"amount":0.00001,"id":3,"timestamp":T}]}`)
	f("/api/v1/orderbook/ETH_BTC", `{"sell":[],"buy":[]}`)
	trade := `{"id":1,"price":100.5,"pair":"BTC_USDT","type":"buy","timestamp":T,"amount":1`
	f("/api/v1/exchanges", "["+trade+"}]")
	f("/api/v1/exchanges/own", "["+trade+`,"my_side":"buy","fee":0,"fee_currency":"BTC","order":2,"maker":false}]`)
	f("/api/v1/wallets",
		`[{"currency":"BTC","balance":1,"reserve":0},{"currency":"ETH","balance":0,"reserve":0},{"currency":"USDT","balance":899.5,"reserve":0.0000001}]`)
	done := `{"id":2,"pair":"BTC_USDT","type":"buy","status":3,"price":101,"amount":0,"amount_filled":1,"amount_original":1,"date":T}`
	open := `{"id":3,"pair":"BTC_USDT","type":"buy","status":1,"price":0.01,"amount":0.00001,"amount_filled":0,"amount_original":0.00001,"date":T,"client_order_id":"bid-1"}`
	f("/api/v1/orders/own", "["+open+","+done+"]")
	f("/api/v1/order/2", done)
	f("/api/v1/order/3", open)
	f("/api/v1/ticker", "["+btcTicker+","+emptyTicker("ETH_USDT")+","+emptyTicker("ETH_BTC")+"]")
	at := harness.Decode[[]struct{ Timestamp float64 }](t,
		h.Do("GET", "/api/v1/exchanges", "", ""))[0].Timestamp
	candle := func(frame string, seconds int64) {
		t.Helper()
		f("/api/charts/BTC_USDT/"+frame+"/chart",
			fmt.Sprintf(
				`[{"time":%d,"open":100.5,"high":100.5,"low":100.5,"close":100.5,"volume":1}]`,
				int64(at)/seconds*seconds))
	}
	candle("1", 60)
	candle("5", 300)
	candle("15", 900)
	candle("30", 1800)
	candle("60", 3600)
	candle("240", 14400)
	candle("D", 86400)
	f("/api/charts/ETH_BTC/D/chart", "[]")
	f("/api/v1/deposits", `[{"id":2,"timestamp":T,"currency":"USDT","amount":1000}]`)
	f("/api/v1/withdraws", "[]")
	f("/api/v1/fees",
		`[{"pair":"BTC_USDT","maker":0,"taker":0},{"pair":"ETH_USDT","maker":0,"taker":0},{"pair":"ETH_BTC","maker":0,"taker":0}]`)
	f("/healthz", `{"status":"alive"}`)
	f("/readyz", `{"status":"ready"}`)
	f("/leaderz", `{"status":"leads"}`)
}

func TestParametersChooseFromAResource(t *testing.T) {
	h := harness.Traded(t)
	g := func(path, body string) {
		t.Helper()
		harness.Want(t, path, h.Do("GET", path, "", "", h.Bobs(true)...), 200, body)
	}
	btc, eth, cross := pairObject("BTC", "USDT", 2), pairObject("ETH", "USDT", 2),
		pairObject("ETH", "BTC", 6)
	g("/api/v1/pairs/?currency1=ETH", "["+eth+","+cross+"]")
	g("/api/v1/pairs/?currency2=USDT", "["+btc+","+eth+"]")
	g("/api/v1/pairs?currency1=ETH&currency2=BTC", "["+cross+"]")
	g("/api/v1/pairs?currency1=USDT", "[]")
	g("/api/v1/pairs?currency1=USDT&currency1=BTC", "["+btc+"]")
	g("/api/v1/ticker/?pair=BTC_USDT&pair=ETH_BTC", "["+emptyTicker("ETH_BTC")+"]")
}

// pairObject is a pair of the tests' exchange in JSON.
func pairObject(base, quote string, digits int) string {
	return fmt.Sprintf(`{"name":"%s_%s","currency1":"%s","currency2":"%s",`+
		`"minimum_order_size":0.00001,"maximum_order_size":1000000,"minimum_order_value":0,`+
		`"price_precision":%d,"amount_precision":8}`, base, quote, base, quote, digits)
}

// The tickers of traded.
const btcTicker = `{"timestamp":T,"pair":"BTC_USDT","last":100.5,"diff":0,"vol":1,"high":100.5,"low":100.5,"buy":0.01,"sell":100.5}`

func emptyTicker(pair string) string {
	return `{"timestamp":T,"pair":"` + pair +
		`","last":0,"diff":0,"vol":0,"high":0,"low":0,"buy":0,"sell":0}`
}

func TestTimesHaveMicrosecondsAndOrderDatesMilliseconds(t *testing.T) {
	before := time.Now().Unix()
	h := harness.Traded(t)
	f := func(path, pattern string, unit int64) {
		t.Helper()
		a := h.Do("GET", path, "", "", h.Bobs(true)...)
		m := regexp.MustCompile(pattern).FindStringSubmatch(a.Body)
		if m == nil {
			t.Fatalf("%s: %s does not match %s", path, a.Body, pattern)
		}
		if n, err := strconv.ParseInt(m[1], 10, 64); err != nil || n < before*unit ||
			n > (time.Now().Unix()+1)*unit {
			t.Errorf("%s: the time %s is not now", path, m[1])
		}
	}
	f("/api/v1/exchanges", `"timestamp":([0-9]+)(\.[0-9]{1,6})?,"amount"`, 1)
	f("/api/v1/orderbook/BTC_USDT", `"timestamp":([0-9]+)(\.[0-9]{1,6})?}`, 1)
	f("/api/v1/order/2", `"date":([0-9]+)[,}]`, 1000)
	f("/api/v1/ticker", `"timestamp":([0-9]+)(\.[0-9]{1,6})?,"pair":"BTC_USDT"`, 1)
	f("/api/v1/deposits", `"timestamp":([0-9]+)(\.[0-9]{1,6})?,"currency"`, 1)
}

func TestOtherFormatsThanJSONAreRefused(t *testing.T) {
	h := harness.Traded(t)
	refused := harness.Detail(api.NotAcceptable.Detail)
	for _, p := range harness.ApiPaths {
		probe := !strings.HasPrefix(p.Path, "/api/")
		method := "GET"
		if strings.HasPrefix(p.Allow, "POST") {
			method = "POST"
		}
		f := func(query, accept string, ok bool) {
			t.Helper()
			var headers []string
			if method == "GET" {
				headers = h.Bobs(p.Needs != "")
			}
			if accept != "" {
				headers = append(headers, "Accept", accept)
			}
			a := h.Do(method, p.Path+query, "", "", headers...)
			what := method + " " + p.Path + query + " Accept: " + accept
			switch {
			case !ok && !probe:
				harness.Want(t, what, a, 406, refused)
			case method == "POST": // no headers of a key
				harness.Want(t, what, a, 401, harness.Detail(api.Unauthenticated.Detail))
			case a.Status != 200:
				t.Errorf("%s: %d %s", what, a.Status, a.Body)
			default:
				harness.WellFormed(t, what, a)
			}
		}
		f("/?format=xml", "", false)
		f("?format=xml", "application/json", false)
		f("?format=JSON", "", false)
		f("?format=json&format=api", "", false)
		f("?format=xml&format=json", "", true)
		f("?format=", "", true)
		f("", "text/html", false)
		f("", "text/*", false)
		f("", "application/xml, text/html;q=0.9", false)
		f("", "application/json;q=0", false)
		f("", "application/json;q=0, */*", false)
		f("", "application/json;q=0.0,application/*;q=1", false)
		f("", "*/*;q=0", false)
		f("", "application/*;q=x", false)
		f("", "*/*", true)
		f("", "application/json", true)
		f("", "Application/JSON; charset=utf-8", true)
		f("", "application/*", true)
		f("", "text/html, application/*;q=0.1", true)
		f("", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true)
		f("", "*/*;q=0, application/json;q=0.001", true)
		f("", "application/json, text/plain, */*", true)
	}
}

func TestWrongMethodsGetAllow(t *testing.T) {
	h := harness.Traded(t)
	for _, p := range harness.ApiPaths {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE",
			"CONNECT", "get", "BREW"} {
			if strings.Contains(", "+p.Allow+",", ", "+method+",") {
				continue
			}
			for _, path := range []string{p.Path, p.Path + "/", p.Path + "/?format=xml"} {
				a := h.Raw(method, method+" "+path+
					" HTTP/1.1\r\nHost: exchange\r\nAccept: text/html\r\nContent-Length: 0\r\n\r\n")
				what := method + " " + path
				if method == "HEAD" {
					if a.Status != 405 || a.Body != "" {
						t.Errorf("%s: %d %q", what, a.Status, a.Body)
					}
				} else {
					harness.Want(t, what, a, 405,
						harness.Detail(`Method "`+method+`" not allowed.`))
				}
				if got := string(a.Header.Peek("Allow")); got != p.Allow {
					t.Errorf("%s: Allow is %q, want %q", what, got, p.Allow)
				}
			}
		}
	}
}

func TestHEADHasTheHeadersOfGETAndNoBody(t *testing.T) {
	h := harness.Traded(t)
	paths := []string{"/api/v1/pairs/?currency1=EUR", "/api/v1/ticker/?pair=X",
		"/api/charts/BTC_USDT/7/chart", "/api/charts/BTC_USDT/D/chart?since=x",
		"/api/v1/orderbook/NO_PAIR/", "/api/v1/order/77", "/api/v1/order/x", "/nothing",
		"/api/v1/wallets?format=xml", "/docs", "/docs/swagger-ui.css", "/docs/favicon-32x32.png",
		"/api/openapi.json"}
	clocks := []string{"/api/v1/time", "/api/v1/exchange-info"} // whose length the time changes
	for _, p := range harness.ApiPaths {
		if !strings.HasPrefix(p.Allow, "POST") && !slices.Contains(clocks, p.Path) {
			paths = append(paths, p.Path, p.Path+"/")
		}
	}
	headers := func(a harness.Answer) string {
		a.Header.Set("Date", "")
		return strings.TrimSpace(a.Header.String())
	}
	for _, path := range paths {
		get := h.Do("GET", path, "", "", h.Bobs(true)...)
		head := h.Do("HEAD", path, "", "", h.Bobs(true)...)
		if head.Body != "" || head.Status != get.Status ||
			head.Header.ContentLength() != len(get.Body) {
			t.Errorf("HEAD %s: %d, %d bytes of body, Content-Length %d; GET has %d and %d", path,
				head.Status, len(head.Body), head.Header.ContentLength(), get.Status, len(get.Body))
		}
		if a, b := headers(get), headers(head); a != b {
			t.Errorf("%s: GET has\n%s\nHEAD has\n%s", path, a, b)
		}
	}
}

func TestPreflightAllowsTheMethodsAndHeadersOfThePath(t *testing.T) {
	h := harness.Traded(t)
	for _, p := range harness.ApiPaths {
		for _, path := range []string{p.Path, p.Path + "/"} {
			a := h.Do("OPTIONS", path, "", "", "Origin", "https://app.example",
				"Access-Control-Request-Method", "POST",
				"Access-Control-Request-Headers", "x-key,x-sign,x-nonce,content-type", "Accept",
				"text/html")
			harness.Want(t, "OPTIONS "+path, a, 204, "")
			for name, value := range map[string]string{"Allow": p.Allow,
				"Access-Control-Allow-Methods": p.Allow,
				"Access-Control-Allow-Headers": "x-key,x-sign,x-nonce,content-type",
				"Access-Control-Max-Age":       "86400"} {
				if got := string(a.Header.Peek(name)); got != value {
					t.Errorf("OPTIONS %s: %s is %q, want %q", path, name, got, value)
				}
			}
		}
	}
}

// A path is the same with and without encoding of its letters.
func TestAPathMayHaveEncodedLetters(t *testing.T) {
	h := harness.Traded(t)
	for path, same := range map[string]string{
		"/api/v1/%70airs/": "/api/v1/pairs", "/%61%70%69/v1/pair%73": "/api/v1/pairs",
		"/api/v1/orderbook/BTC%5FUSDT":         "/api/v1/orderbook/BTC_USDT",
		"/api/charts/BTC_USDT/%36%30/chart%2f": "",
		"/api/charts/BTC%5fUSDT/%36%30/chart":  "/api/charts/BTC_USDT/60/chart",
		"/health%7A":                           "/healthz",
		"/docs/favicon%2D16x16%2epng":          "/docs/favicon-16x16.png",
	} {
		encoded := h.Raw("GET", "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
		if same == "" {
			harness.Want(t, path, encoded, 404, harness.Detail("Not found."))
		} else if plain := h.Do("GET", same, "", ""); encoded.Status != 200 ||
			encoded.Body != plain.Body {
			t.Errorf("%s: %d %.100s, want %.100s", path, encoded.Status, encoded.Body, plain.Body)
		}
	}
	a := h.Raw("GET", "GET /api/v1/order/%33/ HTTP/1.1\r\nHost: x\r\nX-KEY: key-bob\r\nX-SIGN: "+
		harness.Signed("bob", 1, "")[3]+"\r\nX-NONCE: 900\r\n\r\n")
	if a.Status != 200 || !strings.Contains(a.Body, `"id":3`) {
		t.Errorf("an order: %d %s", a.Status, a.Body)
	}
	h.Raw("GET", "GET /socket%2Ev2/?EIO=4&transport=polling HTTP/1.1\r\nHost: x\r\n\r\n").Is(t, 200,
		"the stream")
}

func TestPreflightAllowsRequestedHeadersWithinBounds(t *testing.T) {
	h := harness.Traded(t)
	f := func(asked, allowed string) {
		t.Helper()
		a := h.Do("OPTIONS", "/api/v1/order/", "", "", "Access-Control-Request-Headers", asked)
		if got := string(a.Header.Peek("Access-Control-Allow-Headers")); a.Status != 204 ||
			got != allowed || string(a.Header.Peek("Vary")) != "Access-Control-Request-Headers" {
			t.Errorf("%.80q: %d, allowed are %.80q", asked, a.Status, got)
		}
	}
	const usual = "X-KEY, X-SIGN, X-NONCE, Content-Type"
	f("x-key", "x-key")
	f("x-key,x-sign, traceparent,\tx-my_own.header~1",
		"x-key,x-sign, traceparent,\tx-my_own.header~1")
	f("", usual)
	f("x-key,", usual)
	f("x key", usual)
	f("x-key;q=1", usual)
	f("x-k\u00e9y", usual)
	f(strings.Repeat("x", edge.MaxPreflight), strings.Repeat("x", edge.MaxPreflight))
	f(strings.Repeat("x", edge.MaxPreflight+1), usual)
}

func TestAPackedBodyIsRefusedAsSuch(t *testing.T) {
	h := harness.Traded(t)
	p := harness.Order("buy", "BTC_USDT", "1", "1")
	for coding, status := range map[string]int{"gzip": 415, "br": 415, "Identity": 201,
		"identity, gzip": 415} {
		a := h.Do("POST", "/api/v1/order/", harness.FormType, p,
			append(harness.Signed("bob", h.NextNonce("bob"), p), "Content-Encoding", coding)...)
		if a.Status != status || status == 415 && a.Body != harness.Detail(api.EncodedBody.Detail) {
			t.Errorf("%s: %d %s", coding, a.Status, a.Body)
		}
	}
	wrong := append(harness.Signed("nobody", 1, p), "Content-Encoding", "gzip")
	harness.Want(t, "the key before the coding",
		h.Do("POST", "/api/v1/order/", harness.JsonType, "{", wrong...), 401, harness.Credentials)
	wrong = append(harness.Signed("bob", 900, ""), "Content-Encoding", "gzip")
	wrong[3] = strings.Repeat("ab", 32)
	harness.Want(t, "the coding before form and signature",
		h.Do("POST", "/api/v1/order/", harness.JsonType, "{", wrong...), 415,
		harness.Detail(api.EncodedBody.Detail))
}

// Clients send milliseconds where seconds are meant: such a moment is no bound.
func TestAMomentInMillisecondsIsNoBound(t *testing.T) {
	h := harness.Traded(t)
	all := h.Do("GET", "/api/charts/BTC_USDT/D/chart", "", "")
	if all.Status != 200 || len(all.Body) < 10 {
		t.Fatalf("%d %s", all.Status, all.Body)
	}
	for _, query := range []string{"until=1795241513443", "since=1795241513443",
		"since=1e30&until=99999999999999999999"} {
		harness.Want(t, query, h.Do("GET", "/api/charts/BTC_USDT/D/chart?"+query, "", ""), 200,
			harness.Dates.ReplaceAllString(all.Body, `"$1":T`))
	}
	h.Do("GET", "/api/charts/BTC_USDT/D/chart?until=-1", "", "").Is(t, 400, "a sign")
}

func TestUnknownPathsAreNotFoundEvenIfMoreIsWrong(t *testing.T) {
	h := harness.Traded(t)
	for _, path := range []string{
		"/api", "/api/", "/api/v1", "/api/v1/", "/api/v2/pairs/", "/api/v1/pair/",
		"/api/v1/pairs/BTC_USDT/", "/API/v1/pairs", "/api/v1/Pairs",
		"/api/v1/pairs//", "//api/v1/pairs/", "/api//v1/pairs/", "/api/v1/./pairs/",
		"/api/v1/x/../pairs/", "/api/v1/pairs%2F", "/api/v1%2Fpairs", "/api/v1/%2570airs",
		"/api/v1/%2e/pairs", "/api/v1/pairs%20", "/api/v1/%zzpairs", "/api/v1/%", "/api/v1/%7",
		"/api/v1/orders/", "/api/v1/orders/own/1/", "/api/v1/order/1/2/", "/api/v1/orderbook/",
		"/api/v1/orderbook/BTC_EUR/", "/api/v1/orderbook/btc_usdt",
		"/api/v1/orderbook/BTC_USDT/x", "/api/v1/order/x/", "/api/v1/order/0/", "/api/v1/order/-1/",
		"/api/v1/order/1.0/",
		"/api/charts/BTC_USDT/60/", "/api/charts/BTC_USDT/chart/", "/api/charts/BTC_EUR/60/chart",
		"/api/charts/btc_usdt/60/chart/", "/api/charts/BTC_USDT/2/chart",
		"/api/charts/BTC_USDT/060/chart",
		"/api/charts/BTC_USDT/d/chart", "/api/charts/BTC_USDT/1440/chart",
		"/api/charts/BTC_USDT/60m/chart", "/api/charts/BTC_USDT//chart",
		"/api/v1/charts/BTC_USDT/60/chart",
		"/api/v1/ticker/BTC_USDT/", "/api/v1/deposit/", "/api/v1/withdraws/1/",
		"/api/v1/withdraw/1/", "/api/v1/fee/", "/api/v1/order-cancel-all/BTC_USDT",
		"/api/v1/order/+1", "/api/v1/order/1e3", "/api/v1/order/12345678901234567890/",
		"/api/v1/order/\u0661/", "/healthz/x", "/readyz.", "/metrics", "/operator/v1/accounts",
	} {
		for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS"} {
			a := h.Raw(method, method+" "+path+
				"?format=xml HTTP/1.1\r\nHost: exchange\r\nAccept: text/html\r\nContent-Length: "+
				"0\r\n\r\n")
			harness.Want(t, method+" "+path, a, 404, harness.Detail("Not found."))
		}
	}
	// 1 is alice's
	for _, id := range []string{"77", "9007199254740993", "9999999999999999999", "1"} {
		harness.Want(t, "order "+id, h.Get("bob", "/api/v1/order/"+id+"/"), 404,
			harness.Detail("Not found."))
	}
}

// Bytes that are no HTTP, and strange HTTP, get an answer and end nothing but their connection.
func TestStrangeRequestsAreAnswered(t *testing.T) {
	h := harness.Traded(t)
	f := func(text string, statuses ...int) {
		t.Helper()
		a := h.Raw("GET", text)
		for _, s := range statuses {
			if a.Status == s {
				harness.WellFormed(t, text, a)
				return
			}
		}
		t.Errorf("%q: %d %s", text, a.Status, a.Body)
	}
	f("GET\r\n\r\n", 400)
	f("\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400)
	f("GET /healthz HTTP/1.1\r\nHost exchange\r\n\r\n", 400)
	f("POST /api/v1/order/ HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", 400)
	f("POST /api/v1/order/ HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n", 400)
	f("POST /api/v1/order/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400)
	f("GET * HTTP/1.1\r\nHost: x\r\n\r\n", 404, 400)
	f("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 404, 400)
	f("GET  HTTP/1.1\r\nHost: x\r\n\r\n", 404, 400)
	f("GET ? HTTP/1.1\r\nHost: x\r\n\r\n", 404, 400)
	f("GET api HTTP/1.1\r\nHost: x\r\n\r\n", 404, 400)
	f("CONNECT exchange:80 HTTP/1.1\r\nHost: x\r\n\r\n", 404, 400)
	f("GET http://other/api/v1/currencies/ HTTP/1.1\r\nHost: x\r\n\r\n", 200)
	f("GET /api/v1/currencies HTTP/1.0\r\n\r\n", 200)
	f("GET /api/v1/currencies?%zz=1 HTTP/1.1\r\nHost: x\r\n\r\n", 400)
	// one name
	f("GET /api/v1/currencies?"+strings.Repeat("a&", 100)+" HTTP/1.1\r\nHost: x\r\n\r\n", 200)
	f("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 200)
}

func TestAPanicInAHandlerIsAnsweredWithItsRequestID(t *testing.T) {
	g := gateway.New(edge.Options{Log: harness.Quiet(), BodyBytes: 1, HeaderBytes: 1,
		Connections: 1})
	ctx := &fasthttp.RequestCtx{}
	ctx.Request.SetRequestURI("/healthz")
	health := g.Public().Table()["/healthz"][0].Run
	g.HandlerOf(&api.Operation{Method: "GET", Early: true,
		Run: func(c *api.Call) {
			health(c) // half an answer
			panic("on purpose")
		}})(ctx)
	if got := string(ctx.Response.Body()); ctx.Response.StatusCode() != 500 ||
		got != harness.Detail(api.InternalError.Detail) {
		t.Errorf("%d %s", ctx.Response.StatusCode(), got)
	}
	if id := ctx.Response.Header.Peek("X-Request-Id"); len(id) != 24 {
		t.Errorf("the request id is %q", id)
	}
}

func TestAPanicInARequestOfTheStreamIsAnsweredToo(t *testing.T) {
	h := harness.New(t, nil)
	for _, path := range []string{"/socket.v2/", "/socket.io"} { // the slash may be missing
		open := harness.Answered(h, path+"?EIO=4&transport=polling")
		if body := string(open.Response.Body()); open.Response.StatusCode() != 200 ||
			!strings.HasPrefix(body, `0{"sid":`) {
			t.Errorf("%s: %d %s", path, open.Response.StatusCode(), body)
		}
	}
	// it has no room for any client
	h.Gateway.PublicBuckets().Store(new(ratelimit.Limiter))
	ctx := harness.Answered(h, "/socket.v2/?EIO=4&transport=polling")
	if got := string(ctx.Response.Body()); ctx.Response.StatusCode() != 500 ||
		got != harness.Detail(api.InternalError.Detail) ||
		len(ctx.Response.Header.Peek("X-Request-Id")) != 24 {
		t.Errorf("%d %s", ctx.Response.StatusCode(), got)
	}
}
