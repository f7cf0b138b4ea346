package gateway

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"exchange/actors"
	"exchange/core/event"
	"exchange/gateway/api"
	"exchange/gateway/edge"
	"exchange/persistence"
)

// A stubborn store holds appends back on request, and loses sight of its owner.
type stubborn struct {
	persistence.Store
	// appends wait until the gate is closed; nil: they do not wait
	gate   atomic.Pointer[chan struct{}]
	unseen atomic.Bool
	silent atomic.Bool // lookups of references are not answered
	broken atomic.Bool // they meet a damaged entry
}

func (s *stubborn) Reference(ctx context.Context, watermark uint64,
	reference string) (persistence.Deposit, error) {
	if s.broken.Load() {
		return persistence.Deposit{}, fmt.Errorf("%w: reference %q",
			persistence.ErrCorrupt, reference)
	}
	if s.silent.Load() {
		return persistence.Deposit{}, errors.New("no answer")
	}
	return s.Store.Reference(ctx, watermark, reference)
}

func (s *stubborn) Append(ctx context.Context, tok persistence.Token, prev, next uint64,
	batch []byte) error {
	if gate := s.gate.Load(); gate != nil {
		select {
		case <-*gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.Store.Append(ctx, tok, prev, next, batch)
}

func (s *stubborn) Check(ctx context.Context, tok persistence.Token) error {
	if s.unseen.Load() {
		return errors.New("no connection")
	}
	return s.Store.Check(ctx, tok)
}

// block holds appends back until the function that it returns is called.
func (s *stubborn) block() (release func()) {
	gate := make(chan struct{})
	s.gate.Store(&gate)
	return func() {
		s.gate.Store(nil)
		close(gate)
	}
}

// newStubborn is an exchange on a stubborn store, with two accounts of 100 keys each, that have the
// names alice-0 ... bob-99, so that commands of one account need not come in the order of one
// nonce.
func newStubborn(t *testing.T, change func(*actors.Options)) (*harness, *stubborn) {
	s := &stubborn{}
	// until then the usual settings hold, because filling takes longer than the short times allow
	filled := false
	h := newHarness(t, func(o *actors.Options) {
		s.Store = o.Store
		o.Store = s
		o.Limits.KeysPerAccount = 1000
		if filled {
			change(o)
		}
	})
	for _, name := range []string{"alice", "bob"} {
		h.account(name)
		h.deposit(name, "100000", "USDT", name)
		for i := range 100 {
			h.key(name, name+"-"+strconv.Itoa(i), event.AllPermissions)
		}
	}
	if filled = change != nil; filled {
		h.stop()
		h.start()
	}
	return h, s
}

// receive waits for n answers.
func receive(answers <-chan answer, n int) (list []answer) {
	for range n {
		list = append(list, <-answers)
	}
	return list
}

// eventually waits for a condition, in a bubble.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for late := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		if synctest.Wait(); holds() {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("never true: %s", what)
		}
	}
}

// spin waits for a condition that no clock brings about.
func spin(holds func() bool) {
	for !holds() {
		runtime.Gosched()
	}
}

// atRest returns the difference between both sides of an engine once all triggers are done: a stop
// order is executed after the answer to the order that triggers it, and its book counts as in
// flight until then.
func atRest(e *actors.Engine) (err error) {
	for range 1000 { // each comparison waits for both sides
		spin(func() bool { return e.Stats().CommandsInFlight == 0 })
		if err = e.VerifyAtRest(); err == nil {
			break
		}
	}
	return err
}

// refusedForNow checks a 503 with a time to retry.
func refusedForNow(t *testing.T, what string, a answer, f *api.Failure) {
	t.Helper()
	want(t, what, a, 503, detail(f.Detail))
	if got := string(a.header.Peek("Retry-After")); got != strconv.Itoa(f.RetryAfter) {
		t.Errorf("%s: Retry-After is %q", what, got)
	}
}

func TestAStalledStoreRefusesNewCommandsAndLeavesTheOutcomeOfOthersOpen(t *testing.T) {
	bubble(t, testAStalledStoreRefusesNewCommandsAndLeavesTheOutcomeOfOthersOpen)
}

func testAStalledStoreRefusesNewCommandsAndLeavesTheOutcomeOfOthersOpen(t *testing.T) {
	h, store := newStubborn(t, func(o *actors.Options) {
		o.Timing.Stall, o.Timing.Request = 20*time.Millisecond, time.Second
	})
	release := store.block()
	placed := h.postJSON("alice", 1, "/api/v1/order",
		`{"amount":1,"client_order_id":"mine-1","pair":"BTC_USDT","price":1,"type":"buy"}`)
	wellFormed(t, "in flight", placed)
	if placed.status != 503 || !strings.Contains(placed.body, `"code":"outcome_unknown"`) ||
		!strings.Contains(placed.body, "GET /api/v1/orders/own/?client_order_id=mine-1 shows") {
		t.Errorf("in flight: %d %s", placed.status, placed.body)
	}
	if got := placed.header.Peek("Retry-After"); len(got) > 0 {
		t.Errorf("an unknown outcome has Retry-After %s", got)
	}
	bad := "amount=x"
	for _, path := range []string{"/api/v1/order/", "/api/v1/order-cancel/"} {
		refusedForNow(t, "the store comes before the fields of "+path,
			h.do("POST", path, formType, bad, signed("bob", 1, bad)...), api.StoreUnavailable)
		s := signed("bob", 1, bad)
		s[3] = strings.Repeat("0", 64)
		want(t, "the signature comes before the store", h.do("POST", path, formType, bad, s...),
			401, wrongSign)
	}
	refusedForNow(t, "ready", h.do("GET", "/readyz", "", ""), api.StoreUnavailable)
	want(t, "alive", h.do("GET", "/healthz/", "", ""), 200, `{"status":"alive"}`)
	want(t, "nothing is shown that is not durable",
		h.do("GET", "/api/v1/orderbook/BTC_USDT", "", ""), 200, `{"sell":[],"buy":[]}`)
	release()
	eventually(t, "the exchange is ready again", func() bool {
		return h.do("GET", "/readyz", "", "").status == 200
	})
	nonce := uint64(1)
	eventually(t, "the order is there", func() bool {
		nonce++
		return strings.Contains(h.do("GET", "/api/v1/orders/own/?client_order_id=mine-1", "", "",
			signed("alice", nonce, "")...).body, `"id":1,`)
	})
	p := order("buy", "BTC_USDT", "1", "1")
	h.do("POST", "/api/v1/order", formType, p, signed("bob", 1, p)...).is(t, 201,
		"the nonce of a refused request was used up")
	h.verify()
}

func TestPrivateReadsEndWhenTheOwnerIsNotConfirmed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h, store := newStubborn(t, func(o *actors.Options) {
			o.Timing.OwnerCheck, o.Timing.OwnerStale = 5*time.Millisecond, 200*time.Millisecond
		})
		nonce := uint64(0)
		wallets := func() answer {
			nonce++
			return h.do("GET", "/api/v1/wallets/?currency_id=BTC", "", "",
				signed("alice", nonce, "")...)
		}
		store.unseen.Store(true)
		eventually(t, "private reads are refused", func() bool { return wallets().status == 503 })
		refusedForNow(t, "wallets", wallets(), api.StoreUnavailable)
		for _, path := range []string{"/api/v1/orders/own/", "/api/v1/order/1/",
			"/api/v1/exchanges/own/"} {
			refusedForNow(t, path, h.do("GET", path, "", "", signed("alice", nonce+1, "")...),
				api.StoreUnavailable)
		}
		refusedForNow(t, "ready", h.do("GET", "/readyz", "", ""), api.StoreUnavailable)
		for _, path := range []string{"/api/v1/orderbook/BTC_USDT/", "/api/v1/pairs/",
			"/api/v1/currencies/", "/healthz"} {
			h.do("GET", path, "", "").is(t, 200, path)
		}
		store.unseen.Store(false)
		eventually(t, "private reads are answered", func() bool { return wallets().status == 200 })
		eventually(t, "the exchange is ready again", func() bool {
			return h.do("GET", "/readyz", "", "").status == 200
		})
	})
}

func TestReadsOverTheirLimitAreRefused(t *testing.T) {
	h := newHarness(t, func(o *actors.Options) { o.Limits.Reads = 0 })
	for _, path := range []string{"/api/v1/orderbook/BTC_USDT/", "/api/v1/exchanges/"} {
		refusedForNow(t, path, h.do("GET", path, "", ""), api.Overloaded)
	}
}

func TestUntilThereIsAnEngineTheExchangeIsStarting(t *testing.T) {
	g := New(edge.Options{Log: quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10, Connections: 10,
		OperatorToken: operatorToken})
	l := fasthttputil.NewInmemoryListener()
	go g.Serve(l) //nolint:errcheck // ends with the listener
	defer g.Shutdown(time.Minute)
	h := &harness{t: t, listener: l}
	for _, p := range apiPaths {
		method := strings.Split(p.allow, ",")[0]
		a := h.raw(method, method+" "+p.path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
		if p.path == "/healthz" {
			want(t, p.path, a, 200, `{"status":"alive"}`)
			continue
		}
		refusedForNow(t, p.path, a, api.Starting)
		want(t, p.path, h.raw("PUT", "PUT "+p.path+
			" HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"), 405,
			detail(`Method "PUT" not allowed.`))
	}
	want(t, "unknown", h.raw("GET", "GET /api/v1/x HTTP/1.1\r\nHost: x\r\n\r\n"), 404,
		detail("Not found."))
	var ctx fasthttp.RequestCtx
	ctx.Request.SetRequestURI("/operator/v1/accounts")
	ctx.Request.Header.Set("Authorization", "Bearer "+operatorToken)
	if g.operators.Handle(&ctx); ctx.Response.StatusCode() != 503 ||
		string(ctx.Response.Body()) != `{"error":"The exchange is starting."}`+"\n" {
		t.Errorf("operator: %d %s", ctx.Response.StatusCode(), ctx.Response.Body())
	}
}

func TestAfterTheEndOfItsEngineTheExchangeIsStopping(t *testing.T) {
	h := traded(t)
	h.engine.CloseAdmission()
	p := order("buy", "BTC_USDT", "1", "1")
	refusedForNow(t, "order", h.post("bob", "/api/v1/order", p), api.Stopping)
	refusedForNow(t, "cancel", h.post("bob", "/api/v1/order-cancel", "order=3"), api.Stopping)
	refusedForNow(t, "wallets", h.get("bob", "/api/v1/wallets"), api.Stopping)
	refusedForNow(t, "book", h.do("GET", "/api/v1/orderbook/BTC_USDT", "", ""), api.Stopping)
	refusedForNow(t, "ready", h.do("GET", "/readyz", "", ""), api.Stopping)
}

func TestABodyMayBeAsLargeAsTheLimitAndNotAByteMore(t *testing.T) {
	h := traded(t)
	const most = 64 << 10 // the harness's
	good := `{"amount":1,"pair":"BTC_USDT","price":1,"type":"buy","x":"`
	body := good + strings.Repeat("x", most-len(good)-2) + `"}`
	if a := h.postJSON("bob", 100, "/api/v1/order/", body); len(body) != most || a.status != 201 {
		t.Errorf("%d bytes: %d %s", len(body), a.status, a.body)
	}
	before := h.hash()
	body = strings.Replace(body, "xx", "xxx", 1)
	large := detail("The body is larger than 65536 bytes.")
	for _, encoding := range []string{"length", "chunks"} {
		for _, expect := range []string{"", "Expect: 100-continue\r\n"} {
			f := func(method, path, accept string, status int, text string) {
				t.Helper()
				head := method + " " + path + " HTTP/1.1\r\nHost: x\r\nAccept: " + accept +
					"\r\nContent-Type: application/json\r\n" + expect
				for i, s := range signedJSON("bob", 101, body) {
					head += s + []string{": ", "\r\n"}[i%2]
				}
				if encoding == "length" {
					want(t, method+path, h.raw(method,
						head+"Content-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body), status,
						text)
				} else { // the server has forgotten the path when it notices
					want(t, method+path, h.raw(method,
						head+fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n",
							len(body), body)), 413, large)
				}
			}
			f("POST", "/api/v1/order/", "*/*", 413, large)
			f("POST", "/api/v1/order-cancel", "*/*", 413, large)
			f("GET", "/api/v1/wallets/", "*/*", 413, large)
			f("POST", "/api/v1/orders/", "*/*", 404, detail("Not found."))
			f("POST", "/api/v1/order/1/", "*/*", 405, detail(`Method "POST" not allowed.`))
			f("PUT", "/api/v1/order/", "*/*", 405, detail(`Method "PUT" not allowed.`))
			f("POST", "/api/v1/order/", "text/html", 406, detail(api.NotAcceptable.Detail))
		}
	}
	huge := h.raw("POST",
		"POST /api/v1/order/ HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775807\r\n\r\n")
	want(t, "announced and not sent", huge, 413, large)
	h.stillAt(before)
}

func TestHeadersLargerThanTheLimitAreRefused(t *testing.T) {
	h := traded(t)
	const most = 8 << 10 // the harness's
	text := func(pad int) string {
		return "GET /api/v1/currencies HTTP/1.1\r\nHost: x\r\nX-Pad: " + strings.Repeat("x", pad) +
			"\r\n\r\n"
	}
	h.raw("GET", text(most-len(text(0)))).is(t, 200, "at the limit")
	for _, pad := range []int{most - len(text(0)) + 1, most, 10 * most} {
		want(t, "above", h.raw("GET", text(pad)), 431,
			detail("The headers are larger than 8192 bytes."))
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
	want(t, "headers and body at their limits", h.raw("POST", both), 401,
		detail(api.Unauthenticated.Detail))
	c := must(h.listener.Dial())
	defer c.Close()
	for range 3 {
		want(t, "again on the same connection", talk(t, c, "POST", both), 401,
			detail(api.Unauthenticated.Detail))
	}
	want(t, "a path", h.raw("GET",
		"GET /"+strings.Repeat("x", most)+" HTTP/1.1\r\nHost: x\r\n\r\n"), 431,
		detail("The headers are larger than 8192 bytes."))
}
