package gateway

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/gateway/api"
	"exchange/gateway/edge"
	"exchange/gateway/ratelimit"
)

// The table of each path's methods and rules, written apart from the one in the code.
var apiPaths = []struct {
	path, allow string
	needs       string // permission of the key; "": the path is public
}{
	{"/api/v1/time", "GET, HEAD, OPTIONS", ""},
	{"/api/v1/exchange-info", "GET, HEAD, OPTIONS", ""},
	{"/api/v1/currencies", "GET, HEAD, OPTIONS", ""},
	{"/api/v1/pairs", "GET, HEAD, OPTIONS", ""},
	{"/api/v1/ticker", "GET, HEAD, OPTIONS", ""},
	{"/api/charts/BTC_USDT/60/chart", "GET, HEAD, OPTIONS", ""},
	{"/api/v1/orderbook/BTC_USDT", "GET, HEAD, OPTIONS", ""},
	{"/api/v1/exchanges", "GET, HEAD, OPTIONS", ""},
	{"/api/v1/wallets", "GET, HEAD, OPTIONS", "read"},
	{"/api/v1/orders/own", "GET, HEAD, OPTIONS", "read"},
	{"/api/v1/order/2", "GET, HEAD, OPTIONS", "read"},
	{"/api/v1/exchanges/own", "GET, HEAD, OPTIONS", "read"},
	{"/api/v1/deposits", "GET, HEAD, OPTIONS", "read"},
	{"/api/v1/withdraws", "GET, HEAD, OPTIONS", "read"},
	{"/api/v1/fees", "GET, HEAD, OPTIONS", "read"},
	{"/api/v1/trading-settings", "GET, HEAD, POST, OPTIONS", "read"},
	{"/api/v1/order-cancel-after", "GET, HEAD, POST, OPTIONS", "read"},
	{"/api/v1/order", "POST, OPTIONS", "trade"},
	{"/api/v1/order-amend", "POST, OPTIONS", "trade"},
	{"/api/v1/order-test", "POST, OPTIONS", "trade"},
	{"/api/v1/order-batch", "POST, OPTIONS", "trade"},
	{"/api/v1/order-cancel", "POST, OPTIONS", "trade"},
	{"/api/v1/order-cancel-all", "POST, OPTIONS", "trade"},
	{"/api/v1/withdraw", "POST, OPTIONS", "withdraw"},
	{"/api/v1/withdraw-confirm", "POST, OPTIONS", "withdraw"},
	{"/api/v1/withdraw-cancel", "POST, OPTIONS", "withdraw"},
	{"/healthz", "GET, HEAD, OPTIONS", ""},
	{"/readyz", "GET, HEAD, OPTIONS", ""},
	{"/leaderz", "GET, HEAD, OPTIONS", ""},
}

// The tests about all paths cover only their own list.
func TestTheTableHasEveryPathButTheDocumentation(t *testing.T) {
	shape := strings.NewReplacer("{pair}", "BTC_USDT", "{timeframe}", "60", "{pk}", "2")
	known := map[string]bool{"/api/openapi.json": true, "/docs": true, "/docs/{file}": true}
	for _, p := range apiPaths {
		known[p.path] = true
	}
	for path := range New(edge.Options{Log: quiet()}).public.Table() {
		if !known[shape.Replace(path)] {
			t.Errorf("%s is not in the table", path)
		}
	}
}

const exposed = "X-Update-Id, X-Request-Id, Retry-After, X-RateLimit-Limit, " +
	"X-RateLimit-Remaining, X-RateLimit-Reset, X-Leader"

// plainNumber is how the API writes numbers: no exponent, no sign of zero, no trailing zeros.
var plainNumber = regexp.MustCompile(`^(0|-?[1-9][0-9]*|-?(0|[1-9][0-9]*)\.[0-9]*[1-9])$`)

// wellFormed checks the common parts of every answer: the headers for browsers, JSON, plain
// numbers.
func wellFormed(t testing.TB, what string, a answer) {
	t.Helper()
	if got := string(a.header.Peek("Access-Control-Allow-Origin")); got != "*" {
		t.Errorf("%s: Access-Control-Allow-Origin is %q", what, got)
	}
	if got := string(a.header.Peek("Access-Control-Expose-Headers")); got != exposed {
		t.Errorf("%s: Access-Control-Expose-Headers is %q", what, got)
	}
	if a.status == 204 {
		if a.body != "" {
			t.Errorf("%s: a body with 204: %s", what, a.body)
		}
		return
	}
	if got := string(a.header.ContentType()); got != "application/json" {
		t.Errorf("%s: Content-Type is %q", what, got)
	}
	d := json.NewDecoder(strings.NewReader(a.body))
	d.UseNumber()
	var seconds bool
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Errorf("%s: not JSON: %v: %q", what, err, a.body)
			return
		}
		switch v := token.(type) {
		case string:
			seconds = v == "timestamp" || v == "date"
		case json.Number:
			_, fraction, _ := strings.Cut(v.String(), ".")
			if !plainNumber.MatchString(v.String()) || seconds && len(fraction) > 6 {
				t.Errorf("%s: number %s in %s", what, v, a.body)
			}
		}
	}
}

// dates are the times of orders, trades and money. The time of a candle is none: tests compute it.
var dates = regexp.MustCompile(`"(date|timestamp)":[0-9.]+`)

// want checks an answer as a whole; dates in it are shown as T.
func want(t testing.TB, what string, a answer, status int, body string) {
	t.Helper()
	wellFormed(t, what, a)
	if got := dates.ReplaceAllString(a.body, `"$1":T`); a.status != status || got != body {
		t.Errorf("%s:\n got %d %s\nwant %d %s", what, a.status, got, status, body)
	}
}

func detail(text string) string {
	b, err := json.Marshal(map[string]string{"detail": text})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// raw sends bytes on a connection of their own and reads one answer.
func (h *harness) raw(method, text string) answer {
	h.t.Helper()
	c := must(h.listener.Dial())
	defer c.Close()
	return talk(h.t, c, method, text)
}

// talk sends bytes on a connection and reads one answer.
func talk(t testing.TB, c net.Conn, method, text string) answer {
	t.Helper()
	if text != "" {
		//nolint:errcheck // the server may answer and hang up before it has read all
		go io.WriteString(c, text)
	}
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, &http.Request{Method: method})
	if err == nil && resp.StatusCode == http.StatusContinue {
		resp, err = http.ReadResponse(in, &http.Request{Method: method})
	}
	if err != nil {
		t.Fatalf("%.80q: %v", text, err)
	}
	defer resp.Body.Close()
	body := must(io.ReadAll(resp.Body))
	a := answer{status: resp.StatusCode, header: &fasthttp.ResponseHeader{}, body: string(body)}
	for name, values := range resp.Header {
		a.header.Set(name, strings.Join(values, ", "))
	}
	return a
}

// traded is an exchange where bob has bought 1 of alice's 1.5 BTC and bids next to nothing for
// more.
func traded(t *testing.T) *harness { return trades(t, newHarness(t, nil)) }

func trades(t *testing.T, h *harness) *harness {
	h.account("alice")
	h.account("bob")
	for _, d := range [][3]string{{"alice", "2", "BTC"}, {"bob", "1000", "USDT"}} {
		h.deposit(d[0], d[1], d[2], "to-"+d[0])
	}
	for i, a := range []answer{
		h.post("alice", "/api/v1/order/", order("sell", "BTC_USDT", "1.5", "100.5")),
		h.post("bob", "/api/v1/order/", order("buy", "BTC_USDT", "1", "101")),
		h.post("bob", "/api/v1/order/",
			"amount=0.00001&client_order_id=bid-1&pair=BTC_USDT&price=0.01&type=buy"),
	} {
		if a.status != 201 {
			t.Fatalf("order %d: %d %s", i+1, a.status, a.body)
		}
	}
	return h
}

// bobs are the headers of a request of bob's without parameters, if the path needs any.
func (h *harness) bobs(private bool) []string {
	if !private {
		return nil
	}
	return signed("bob", h.nextNonce("bob"), "")
}

func TestEveryResourceHasExactlyItsShape(t *testing.T) {
	h := traded(t)
	f := func(path, body string) {
		t.Helper()
		for _, p := range []string{path + "/", path, path + "/?format=json", path + "?format=json",
			path + "?format=xml&format=json&unknown=x%20y"} {
			want(t, p, h.do("GET", p, "", "", h.bobs(true)...), 200, body)
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
	at := decode[[]struct{ Timestamp float64 }](t,
		h.do("GET", "/api/v1/exchanges", "", ""))[0].Timestamp
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
	h := traded(t)
	g := func(path, body string) {
		t.Helper()
		want(t, path, h.do("GET", path, "", "", h.bobs(true)...), 200, body)
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
	h := traded(t)
	f := func(path, pattern string, unit int64) {
		t.Helper()
		a := h.do("GET", path, "", "", h.bobs(true)...)
		m := regexp.MustCompile(pattern).FindStringSubmatch(a.body)
		if m == nil {
			t.Fatalf("%s: %s does not match %s", path, a.body, pattern)
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
	h := traded(t)
	refused := detail(api.NotAcceptable.Detail)
	for _, p := range apiPaths {
		probe := !strings.HasPrefix(p.path, "/api/")
		method := "GET"
		if strings.HasPrefix(p.allow, "POST") {
			method = "POST"
		}
		f := func(query, accept string, ok bool) {
			t.Helper()
			var headers []string
			if method == "GET" {
				headers = h.bobs(p.needs != "")
			}
			if accept != "" {
				headers = append(headers, "Accept", accept)
			}
			a := h.do(method, p.path+query, "", "", headers...)
			what := method + " " + p.path + query + " Accept: " + accept
			switch {
			case !ok && !probe:
				want(t, what, a, 406, refused)
			case method == "POST": // no headers of a key
				want(t, what, a, 401, detail(api.Unauthenticated.Detail))
			case a.status != 200:
				t.Errorf("%s: %d %s", what, a.status, a.body)
			default:
				wellFormed(t, what, a)
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
	h := traded(t)
	for _, p := range apiPaths {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE",
			"CONNECT", "get", "BREW"} {
			if strings.Contains(", "+p.allow+",", ", "+method+",") {
				continue
			}
			for _, path := range []string{p.path, p.path + "/", p.path + "/?format=xml"} {
				a := h.raw(method, method+" "+path+
					" HTTP/1.1\r\nHost: exchange\r\nAccept: text/html\r\nContent-Length: 0\r\n\r\n")
				what := method + " " + path
				if method == "HEAD" {
					if a.status != 405 || a.body != "" {
						t.Errorf("%s: %d %q", what, a.status, a.body)
					}
				} else {
					want(t, what, a, 405, detail(`Method "`+method+`" not allowed.`))
				}
				if got := string(a.header.Peek("Allow")); got != p.allow {
					t.Errorf("%s: Allow is %q, want %q", what, got, p.allow)
				}
			}
		}
	}
}

func TestHEADHasTheHeadersOfGETAndNoBody(t *testing.T) {
	h := traded(t)
	paths := []string{"/api/v1/pairs/?currency1=EUR", "/api/v1/ticker/?pair=X",
		"/api/charts/BTC_USDT/7/chart", "/api/charts/BTC_USDT/D/chart?since=x",
		"/api/v1/orderbook/NO_PAIR/", "/api/v1/order/77", "/api/v1/order/x", "/nothing",
		"/api/v1/wallets?format=xml", "/docs", "/docs/swagger-ui.css", "/docs/favicon-32x32.png",
		"/api/openapi.json"}
	clocks := []string{"/api/v1/time", "/api/v1/exchange-info"} // whose length the time changes
	for _, p := range apiPaths {
		if !strings.HasPrefix(p.allow, "POST") && !slices.Contains(clocks, p.path) {
			paths = append(paths, p.path, p.path+"/")
		}
	}
	headers := func(a answer) string {
		a.header.Set("Date", "")
		return strings.TrimSpace(a.header.String())
	}
	for _, path := range paths {
		get := h.do("GET", path, "", "", h.bobs(true)...)
		head := h.do("HEAD", path, "", "", h.bobs(true)...)
		if head.body != "" || head.status != get.status ||
			head.header.ContentLength() != len(get.body) {
			t.Errorf("HEAD %s: %d, %d bytes of body, Content-Length %d; GET has %d and %d", path,
				head.status, len(head.body), head.header.ContentLength(), get.status, len(get.body))
		}
		if a, b := headers(get), headers(head); a != b {
			t.Errorf("%s: GET has\n%s\nHEAD has\n%s", path, a, b)
		}
	}
}

func TestPreflightAllowsTheMethodsAndHeadersOfThePath(t *testing.T) {
	h := traded(t)
	for _, p := range apiPaths {
		for _, path := range []string{p.path, p.path + "/"} {
			a := h.do("OPTIONS", path, "", "", "Origin", "https://app.example",
				"Access-Control-Request-Method", "POST",
				"Access-Control-Request-Headers", "x-key,x-sign,x-nonce,content-type", "Accept",
				"text/html")
			want(t, "OPTIONS "+path, a, 204, "")
			for name, value := range map[string]string{"Allow": p.allow,
				"Access-Control-Allow-Methods": p.allow,
				"Access-Control-Allow-Headers": "x-key,x-sign,x-nonce,content-type",
				"Access-Control-Max-Age":       "86400"} {
				if got := string(a.header.Peek(name)); got != value {
					t.Errorf("OPTIONS %s: %s is %q, want %q", path, name, got, value)
				}
			}
		}
	}
}

// A path is the same with and without encoding of its letters.
func TestAPathMayHaveEncodedLetters(t *testing.T) {
	h := traded(t)
	for path, same := range map[string]string{
		"/api/v1/%70airs/": "/api/v1/pairs", "/%61%70%69/v1/pair%73": "/api/v1/pairs",
		"/api/v1/orderbook/BTC%5FUSDT":         "/api/v1/orderbook/BTC_USDT",
		"/api/charts/BTC_USDT/%36%30/chart%2f": "",
		"/api/charts/BTC%5fUSDT/%36%30/chart":  "/api/charts/BTC_USDT/60/chart",
		"/health%7A":                           "/healthz",
		"/docs/favicon%2D16x16%2epng":          "/docs/favicon-16x16.png",
	} {
		encoded := h.raw("GET", "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
		if same == "" {
			want(t, path, encoded, 404, detail("Not found."))
		} else if plain := h.do("GET", same, "", ""); encoded.status != 200 ||
			encoded.body != plain.body {
			t.Errorf("%s: %d %.100s, want %.100s", path, encoded.status, encoded.body, plain.body)
		}
	}
	a := h.raw("GET", "GET /api/v1/order/%33/ HTTP/1.1\r\nHost: x\r\nX-KEY: key-bob\r\nX-SIGN: "+
		signed("bob", 1, "")[3]+"\r\nX-NONCE: 900\r\n\r\n")
	if a.status != 200 || !strings.Contains(a.body, `"id":3`) {
		t.Errorf("an order: %d %s", a.status, a.body)
	}
	h.raw("GET", "GET /socket%2Ev2/?EIO=4&transport=polling HTTP/1.1\r\nHost: x\r\n\r\n").is(t, 200,
		"the stream")
}

func TestPreflightAllowsRequestedHeadersWithinBounds(t *testing.T) {
	h := traded(t)
	f := func(asked, allowed string) {
		t.Helper()
		a := h.do("OPTIONS", "/api/v1/order/", "", "", "Access-Control-Request-Headers", asked)
		if got := string(a.header.Peek("Access-Control-Allow-Headers")); a.status != 204 ||
			got != allowed || string(a.header.Peek("Vary")) != "Access-Control-Request-Headers" {
			t.Errorf("%.80q: %d, allowed are %.80q", asked, a.status, got)
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
	h := traded(t)
	p := order("buy", "BTC_USDT", "1", "1")
	for coding, status := range map[string]int{"gzip": 415, "br": 415, "Identity": 201,
		"identity, gzip": 415} {
		a := h.do("POST", "/api/v1/order/", formType, p,
			append(signed("bob", h.nextNonce("bob"), p), "Content-Encoding", coding)...)
		if a.status != status || status == 415 && a.body != detail(api.PackedBody.Detail) {
			t.Errorf("%s: %d %s", coding, a.status, a.body)
		}
	}
	wrong := append(signed("nobody", 1, p), "Content-Encoding", "gzip")
	want(t, "the key before the coding", h.do("POST", "/api/v1/order/", jsonType, "{", wrong...),
		401, credentials)
	wrong = append(signed("bob", 900, ""), "Content-Encoding", "gzip")
	wrong[3] = strings.Repeat("ab", 32)
	want(t, "the coding before form and signature",
		h.do("POST", "/api/v1/order/", jsonType, "{", wrong...), 415, detail(api.PackedBody.Detail))
}

// Clients send milliseconds where seconds are meant: such a moment is no bound.
func TestAMomentInMillisecondsIsNoBound(t *testing.T) {
	h := traded(t)
	all := h.do("GET", "/api/charts/BTC_USDT/D/chart", "", "")
	if all.status != 200 || len(all.body) < 10 {
		t.Fatalf("%d %s", all.status, all.body)
	}
	for _, query := range []string{"until=1795241513443", "since=1795241513443",
		"since=1e30&until=99999999999999999999"} {
		want(t, query, h.do("GET", "/api/charts/BTC_USDT/D/chart?"+query, "", ""), 200,
			dates.ReplaceAllString(all.body, `"$1":T`))
	}
	h.do("GET", "/api/charts/BTC_USDT/D/chart?until=-1", "", "").is(t, 400, "a sign")
}

func TestUnknownPathsAreNotFoundEvenIfMoreIsWrong(t *testing.T) {
	h := traded(t)
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
			a := h.raw(method, method+" "+path+
				"?format=xml HTTP/1.1\r\nHost: exchange\r\nAccept: text/html\r\nContent-Length: "+
				"0\r\n\r\n")
			want(t, method+" "+path, a, 404, detail("Not found."))
		}
	}
	// 1 is alice's
	for _, id := range []string{"77", "9007199254740993", "9999999999999999999", "1"} {
		want(t, "order "+id, h.get("bob", "/api/v1/order/"+id+"/"), 404, detail("Not found."))
	}
}

// Bytes that are no HTTP, and strange HTTP, get an answer and end nothing but their connection.
func TestStrangeRequestsAreAnswered(t *testing.T) {
	h := traded(t)
	f := func(text string, statuses ...int) {
		t.Helper()
		a := h.raw("GET", text)
		for _, s := range statuses {
			if a.status == s {
				wellFormed(t, text, a)
				return
			}
		}
		t.Errorf("%q: %d %s", text, a.status, a.body)
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
	g := New(edge.Options{Log: quiet(), BodyBytes: 1, HeaderBytes: 1, Connections: 1})
	ctx := &fasthttp.RequestCtx{}
	ctx.Request.SetRequestURI("/healthz")
	health := g.public.Table()["/healthz"][0].Run
	g.HandlerOf(&api.Operation{Method: "GET", Early: true,
		Run: func(c *api.Call) {
			health(c) // half an answer
			panic("on purpose")
		}})(ctx)
	if got := string(ctx.Response.Body()); ctx.Response.StatusCode() != 500 ||
		got != detail(api.InternalError.Detail) {
		t.Errorf("%d %s", ctx.Response.StatusCode(), got)
	}
	if id := ctx.Response.Header.Peek("X-Request-Id"); len(id) != 24 {
		t.Errorf("the request id is %q", id)
	}
}

func TestAPanicInARequestOfTheStreamIsAnsweredToo(t *testing.T) {
	h := newHarness(t, nil)
	for _, path := range []string{"/socket.v2/", "/socket.io"} { // the slash may be missing
		open := answered(h, path+"?EIO=4&transport=polling")
		if body := string(open.Response.Body()); open.Response.StatusCode() != 200 ||
			!strings.HasPrefix(body, `0{"sid":`) {
			t.Errorf("%s: %d %s", path, open.Response.StatusCode(), body)
		}
	}
	// it has no room for any client
	h.gateway.PublicBuckets().Store(new(ratelimit.Limiter))
	ctx := answered(h, "/socket.v2/?EIO=4&transport=polling")
	if got := string(ctx.Response.Body()); ctx.Response.StatusCode() != 500 ||
		got != detail(api.InternalError.Detail) ||
		len(ctx.Response.Header.Peek("X-Request-Id")) != 24 {
		t.Errorf("%d %s", ctx.Response.StatusCode(), got)
	}
}
