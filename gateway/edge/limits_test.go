package edge_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"exchange/actors"
	"exchange/gateway"
	"exchange/gateway/api"
	"exchange/gateway/edge"
	"exchange/prove/harness"
)

func TestAStalledStoreRefusesNewCommandsAndLeavesTheOutcomeOfOthersOpen(t *testing.T) {
	harness.Bubble(t, testAStalledStoreRefusesNewCommandsAndLeavesTheOutcomeOfOthersOpen)
}

func testAStalledStoreRefusesNewCommandsAndLeavesTheOutcomeOfOthersOpen(t *testing.T) {
	h, store := harness.NewStubborn(t, func(o *actors.Options) {
		o.Timing.Stall, o.Timing.Request = 20*time.Millisecond, time.Second
	})
	release := store.Block()
	placed := h.PostJSON("alice", 1, "/api/v1/order",
		`{"amount":1,"client_order_id":"mine-1","pair":"BTC_USDT","price":1,"type":"buy"}`)
	harness.WellFormed(t, "in flight", placed)
	if placed.Status != 503 || !strings.Contains(placed.Body, `"code":"outcome_unknown"`) ||
		!strings.Contains(placed.Body, "GET /api/v1/orders/own/?client_order_id=mine-1 shows") {
		t.Errorf("in flight: %d %s", placed.Status, placed.Body)
	}
	if got := placed.Header.Peek("Retry-After"); len(got) > 0 {
		t.Errorf("an unknown outcome has Retry-After %s", got)
	}
	bad := "amount=x"
	for _, path := range []string{"/api/v1/order/", "/api/v1/order-cancel/"} {
		harness.RefusedForNow(t, "the store comes before the fields of "+path,
			h.Do("POST", path, harness.FormType, bad, harness.Signed("bob", 1, bad)...),
			api.StoreUnavailable)
		s := harness.Signed("bob", 1, bad)
		s[3] = strings.Repeat("0", 64)
		harness.Want(t, "the signature comes before the store",
			h.Do("POST", path, harness.FormType, bad, s...), 401, harness.WrongSign)
	}
	harness.RefusedForNow(t, "ready", h.Do("GET", "/readyz", "", ""), api.StoreUnavailable)
	harness.Want(t, "alive", h.Do("GET", "/healthz/", "", ""), 200, `{"status":"alive"}`)
	harness.Want(t, "nothing is shown that is not durable",
		h.Do("GET", "/api/v1/orderbook/BTC_USDT", "", ""), 200, `{"sell":[],"buy":[]}`)
	release()
	harness.Eventually(t, "the exchange is ready again", func() bool {
		return h.Do("GET", "/readyz", "", "").Status == 200
	})
	nonce := uint64(1)
	harness.Eventually(t, "the order is there", func() bool {
		nonce++
		return strings.Contains(h.Do("GET", "/api/v1/orders/own/?client_order_id=mine-1", "", "",
			harness.Signed("alice", nonce, "")...).Body, `"id":1,`)
	})
	p := harness.Order("buy", "BTC_USDT", "1", "1")
	h.Do("POST", "/api/v1/order", harness.FormType, p, harness.Signed("bob", 1, p)...).Is(t, 201,
		"the nonce of a refused request was used up")
	h.Verify()
}

func TestPrivateReadsEndWhenTheOwnerIsNotConfirmed(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		h, store := harness.NewStubborn(t, func(o *actors.Options) {
			o.Timing.OwnerCheck, o.Timing.OwnerStale = 5*time.Millisecond, 200*time.Millisecond
		})
		nonce := uint64(0)
		wallets := func() harness.Answer {
			nonce++
			return h.Do("GET", "/api/v1/wallets/?currency_id=BTC", "", "",
				harness.Signed("alice", nonce, "")...)
		}
		store.Unseen.Store(true)
		harness.Eventually(t, "private reads are refused",
			func() bool { return wallets().Status == 503 })
		harness.RefusedForNow(t, "wallets", wallets(), api.StoreUnavailable)
		for _, path := range []string{"/api/v1/orders/own/", "/api/v1/order/1/",
			"/api/v1/exchanges/own/"} {
			harness.RefusedForNow(t, path,
				h.Do("GET", path, "", "", harness.Signed("alice", nonce+1, "")...),
				api.StoreUnavailable)
		}
		harness.RefusedForNow(t, "ready", h.Do("GET", "/readyz", "", ""), api.StoreUnavailable)
		for _, path := range []string{"/api/v1/orderbook/BTC_USDT/", "/api/v1/pairs/",
			"/api/v1/currencies/", "/healthz"} {
			h.Do("GET", path, "", "").Is(t, 200, path)
		}
		store.Unseen.Store(false)
		harness.Eventually(t, "private reads are answered",
			func() bool { return wallets().Status == 200 })
		harness.Eventually(t, "the exchange is ready again", func() bool {
			return h.Do("GET", "/readyz", "", "").Status == 200
		})
	})
}

func TestReadsOverTheirLimitAreRefused(t *testing.T) {
	h := harness.New(t, func(o *actors.Options) { o.Limits.Reads = 0 })
	for _, path := range []string{"/api/v1/orderbook/BTC_USDT/", "/api/v1/exchanges/"} {
		harness.RefusedForNow(t, path, h.Do("GET", path, "", ""), api.Overloaded)
	}
}

func TestUntilThereIsAnEngineTheExchangeIsStarting(t *testing.T) {
	g := gateway.New(edge.Options{Log: harness.Quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10,
		Connections: 10, OperatorToken: harness.OperatorToken})
	l := fasthttputil.NewInmemoryListener()
	go g.Serve(l) //nolint:errcheck // ends with the listener
	defer g.Shutdown(time.Minute)
	h := &harness.Exchange{T: t, Listener: l}
	for _, p := range harness.ApiPaths {
		method := strings.Split(p.Allow, ",")[0]
		a := h.Raw(method, method+" "+p.Path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
		if p.Path == "/healthz" {
			harness.Want(t, p.Path, a, 200, `{"status":"alive"}`)
			continue
		}
		harness.RefusedForNow(t, p.Path, a, api.Starting)
		harness.Want(t, p.Path, h.Raw("PUT", "PUT "+p.Path+
			" HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"), 405,
			harness.Detail(`Method "PUT" not allowed.`))
	}
	harness.Want(t, "unknown", h.Raw("GET", "GET /api/v1/x HTTP/1.1\r\nHost: x\r\n\r\n"), 404,
		harness.Detail("Not found."))
	var ctx fasthttp.RequestCtx
	ctx.Request.SetRequestURI("/operator/v1/accounts")
	ctx.Request.Header.Set("Authorization", "Bearer "+harness.OperatorToken)
	if g.Operators().Handle(&ctx); ctx.Response.StatusCode() != 503 ||
		string(ctx.Response.Body()) != `{"error":"The exchange is starting."}`+"\n" {
		t.Errorf("operator: %d %s", ctx.Response.StatusCode(), ctx.Response.Body())
	}
}

func TestAfterTheEndOfItsEngineTheExchangeIsStopping(t *testing.T) {
	h := harness.Traded(t)
	h.Engine.CloseAdmission()
	p := harness.Order("buy", "BTC_USDT", "1", "1")
	harness.RefusedForNow(t, "order", h.Post("bob", "/api/v1/order", p), api.Stopping)
	harness.RefusedForNow(t, "cancel", h.Post("bob", "/api/v1/order-cancel", "order=3"),
		api.Stopping)
	harness.RefusedForNow(t, "wallets", h.Get("bob", "/api/v1/wallets"), api.Stopping)
	harness.RefusedForNow(t, "book", h.Do("GET", "/api/v1/orderbook/BTC_USDT", "", ""),
		api.Stopping)
	harness.RefusedForNow(t, "ready", h.Do("GET", "/readyz", "", ""), api.Stopping)
}

func TestABodyMayBeAsLargeAsTheLimitAndNotAByteMore(t *testing.T) {
	h := harness.Traded(t)
	const most = 64 << 10 // the harness's
	good := `{"amount":1,"pair":"BTC_USDT","price":1,"type":"buy","x":"`
	body := good + strings.Repeat("x", most-len(good)-2) + `"}`
	if a := h.PostJSON("bob", 100, "/api/v1/order/", body); len(body) != most || a.Status != 201 {
		t.Errorf("%d bytes: %d %s", len(body), a.Status, a.Body)
	}
	before := h.Hash()
	body = strings.Replace(body, "xx", "xxx", 1)
	large := harness.Detail("The body is larger than 65536 bytes.")
	for _, encoding := range []string{"length", "chunks"} {
		for _, expect := range []string{"", "Expect: 100-continue\r\n"} {
			f := func(method, path, accept string, status int, text string) {
				t.Helper()
				head := method + " " + path + " HTTP/1.1\r\nHost: x\r\nAccept: " + accept +
					"\r\nContent-Type: application/json\r\n" + expect
				for i, s := range harness.SignedJSON("bob", 101, body) {
					head += s + []string{": ", "\r\n"}[i%2]
				}
				if encoding == "length" {
					harness.Want(t, method+path, h.Raw(method,
						head+"Content-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body), status,
						text)
				} else { // the server has forgotten the path when it notices
					harness.Want(t, method+path, h.Raw(method,
						head+fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n",
							len(body), body)), 413, large)
				}
			}
			f("POST", "/api/v1/order/", "*/*", 413, large)
			f("POST", "/api/v1/order-cancel", "*/*", 413, large)
			f("GET", "/api/v1/wallets/", "*/*", 413, large)
			f("POST", "/api/v1/orders/", "*/*", 404, harness.Detail("Not found."))
			f("POST", "/api/v1/order/1/", "*/*", 405, harness.Detail(`Method "POST" not allowed.`))
			f("PUT", "/api/v1/order/", "*/*", 405, harness.Detail(`Method "PUT" not allowed.`))
			f("POST", "/api/v1/order/", "text/html", 406, harness.Detail(api.NotAcceptable.Detail))
		}
	}
	huge := h.Raw("POST",
		"POST /api/v1/order/ HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775807\r\n\r\n")
	harness.Want(t, "announced and not sent", huge, 413, large)
	h.StillAt(before)
}

func TestHeadersLargerThanTheLimitAreRefused(t *testing.T) {
	h := harness.Traded(t)
	const most = 8 << 10 // the harness's
	text := func(pad int) string {
		return "GET /api/v1/currencies HTTP/1.1\r\nHost: x\r\nX-Pad: " + strings.Repeat("x", pad) +
			"\r\n\r\n"
	}
	h.Raw("GET", text(most-len(text(0)))).Is(t, 200, "at the limit")
	for _, pad := range []int{most - len(text(0)) + 1, most, 10 * most} {
		harness.Want(t, "above", h.Raw("GET", text(pad)), 431,
			harness.Detail("The headers are larger than 8192 bytes."))
	}
	// A body counts separately: both at their limits fit, also after another request on the same
	// connection.
	const largest = 64 << 10
	post := func(pad int) string {
		return fmt.Sprintf(
			"POST /api/v1/order HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nX-Pad: %s\r\n\r\n",
			largest, strings.Repeat("x", pad))
	}
	both := post(most-len(post(0))) + strings.Repeat("x", largest)
	harness.Want(t, "headers and body at their limits", h.Raw("POST", both), 401,
		harness.Detail(api.Unauthenticated.Detail))
	c := harness.Must(h.Listener.Dial())
	defer c.Close()
	for range 3 {
		harness.Want(t, "again on the same connection", harness.Talk(t, c, "POST", both), 401,
			harness.Detail(api.Unauthenticated.Detail))
	}
	harness.Want(t, "a path", h.Raw("GET",
		"GET /"+strings.Repeat("x", most)+" HTTP/1.1\r\nHost: x\r\n\r\n"), 431,
		harness.Detail("The headers are larger than 8192 bytes."))
}
