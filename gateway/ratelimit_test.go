package gateway

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"exchange/core/event"
	"exchange/gateway/edge"
)

// A testClock stands still until the test moves it.
type testClock struct{ ns atomic.Int64 }

func (c *testClock) pass(d time.Duration) { c.ns.Add(int64(d)) }

// limited is the exchange of market, started again with limits on requests a second. The peer of
// all its connections is 0.0.0.0, which is a proxy that is trusted: see from.
func limited(t *testing.T, rates func(*edge.Options)) (*harness, *testClock) {
	h, c := traded(t), &testClock{}
	h.retune(func(o *edge.Options) {
		rates(o)
		o.RateEntries, o.Clock = 1000, c.ns.Load
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/32"),
			netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}
	})
	return h, c
}

// every sets all limits on requests to one rate, and lets the pages of the API pass.
func every(o *edge.Options, rate edge.Rate) {
	o.PublicRate, o.ReadRate, o.CommandRate, o.CancelRate, o.FailureRate, o.ProbeRate = rate, rate,
		rate, rate, rate, rate
	o.DocsRate = edge.Rate{PerSecond: 1_000_000_000, Burst: 1_000_000_000}
	if o.RateEntries == 0 {
		o.RateEntries = 100
	}
}

// from is the header in which a proxy names the origin of a request.
func from(address string) []string { return []string{"X-Forwarded-For", address} }

const (
	publicPath  = "/api/v1/currencies/"
	privatePath = "/api/v1/orders/own/?status=3&type=sell" // nothing, for bob
)

// rated checks the headers of an answer about its limit; limit 0: there are none.
func rated(t *testing.T, what string, a answer, limit, remaining, reset int) {
	t.Helper()
	want := fmt.Sprint(limit, remaining, reset)
	if limit == 0 {
		want = "  "
	}
	h := a.header
	if got := fmt.Sprintf("%s %s %s", h.Peek("X-RateLimit-Limit"), h.Peek("X-RateLimit-Remaining"),
		h.Peek("X-RateLimit-Reset")); got != want {
		t.Errorf("%s: limit, remaining, reset are %q, want %q", what, got, want)
	}
	if got := string(h.Peek("Retry-After")); (a.status == 429) != (got != "") {
		t.Errorf("%s: Retry-After is %q with status %d", what, got, a.status)
	}
}

// served checks an answer that is not refused for its rate.
func served(t *testing.T, what string, a answer, status, limit, remaining, reset int) {
	t.Helper()
	if a.status != status {
		t.Errorf("%s: %d %s, want %d", what, a.status, a.body, status)
	}
	rated(t, what, a, limit, remaining, reset)
}

// throttled checks a refusal; with whole rates a token is never more than a second away.
func throttled(t *testing.T, what string, a answer, limit, reset int) {
	t.Helper()
	want(t, what, a, 429, `{"detail":"Request was throttled. Expected available in 1 seconds."}`)
	rated(t, what, a, limit, 0, reset)
	if got := string(a.header.Peek("Retry-After")); got != "1" {
		t.Errorf("%s: Retry-After is %q", what, got)
	}
}

func TestExactlyABurstOfPublicRequestsPassesAndThenTheRateOfTheAddress(t *testing.T) {
	h, clock := limited(t,
		func(o *edge.Options) { o.PublicRate = edge.Rate{PerSecond: 2, Burst: 3} })
	get := func(address string) answer { return h.do("GET", publicPath, "", "", from(address)...) }
	const me, other = "192.0.2.1", "192.0.2.2"
	served(t, "first", get(me), 200, 3, 2, 1)
	served(t, "HEAD", h.do("HEAD", "/api/v1/orderbook/BTC_USDT", "", "", from(me)...), 200, 3, 1, 1)
	served(t, "with a bad field", h.do("GET", "/api/v1/exchanges?limit=x", "", "", from(me)...),
		400, 3, 0, 2)
	for range 3 {
		throttled(t, "one more", get(me), 3, 2)
		throttled(t, "of another path",
			h.do("GET", "/api/v1/pairs?currency1=?", "", "", from(me)...), 3, 2)
	}
	if a := h.do("HEAD", publicPath, "", "", from(me)...); a.status != 429 || a.body != "" {
		t.Errorf("HEAD: %d %q", a.status, a.body)
	}
	for _, path := range []string{"/healthz", "/readyz/"} {
		served(t, path, h.do("GET", path, "", "", from(me)...), 200, 0, 0, 0)
	}
	throttled(t, "preflight", h.do("OPTIONS", publicPath, "", "", from(me)...), 3, 2)
	served(t, "another address", get(other), 200, 3, 2, 1)
	clock.pass(500*time.Millisecond - 1)
	throttled(t, "a nanosecond too early", get(me), 3, 2)
	clock.pass(1)
	served(t, "after half a second", get(me), 200, 3, 0, 2)
	throttled(t, "and no second one", get(me), 3, 2)
	clock.pass(time.Hour)
	for i := range 3 {
		served(t, "after an hour", get(me), 200, 3, 2-i, 1+i/2)
	}
	throttled(t, "no more than a burst after an hour", get(me), 3, 2)
}

// A path that does not exist, and bytes that are no request, cost the address as much as a good
// request.
func TestUnknownPathsCountAsPublicRequests(t *testing.T) {
	h, clock := limited(t,
		func(o *edge.Options) { o.PublicRate = edge.Rate{PerSecond: 1, Burst: 1} })
	h.gateway.Options().TrustedProxies = nil // all come from 0.0.0.0
	raw := func(method, text string) func() answer {
		return func() answer { return h.raw(method, text) }
	}
	do := func(method, path string, headers ...string) func() answer {
		return func() answer { return h.do(method, path, "", "", headers...) }
	}
	bob := signed("bob", 1<<40, "")
	for _, x := range []struct {
		what   string
		a      func() answer
		status int
	}{
		{"path", do("GET", "/api/v1/nothing"), 404},
		{"pair", do("GET", "/api/v1/orderbook/NO_PAIR/"), 404},
		{"timeframe", do("GET", "/api/charts/BTC_USDT/7/chart"), 404},
		{"file", do("GET", "/docs/x"), 404},
		{"order", do("GET", "/api/v1/order/x/", bob...), 404},
		{"path of OPTIONS", do("OPTIONS", "/api/v1/order/x/"), 404},
		{"method", do("DELETE", publicPath), 405},
		{"method of a probe", do("POST", "/healthz"), 405},
		{"method of a private path", do("PUT", "/api/v1/order/", bob...), 405},
		{"format", do("GET", publicPath+"?format=xml"), 406},
		{"format of a private path", do("GET", privatePath+"&format=xml", bob...), 406},
		{"no HTTP", raw("GET", "GET\r\n\r\n"), 400},
		{"a head in two ways", raw("GET", "GET /healthz HTTP/1.1\r\nHost : x\r\n\r\n"), 400},
		{"a large head", raw("GET", "GET /healthz HTTP/1.1\r\nHost: x\r\nX: "+
			strings.Repeat("x", 9<<10)+"\r\n\r\n"), 431},
	} {
		served(t, x.what, x.a(), x.status, 1, 0, 1)
		throttled(t, x.what+", again", x.a(), 1, 1)
		throttled(t, "public after "+x.what, h.do("GET", publicPath, "", ""), 1, 1)
		clock.pass(time.Second)
	}
	for _, query := range []string{"", "?EIO=4&transport=carrier-pigeon",
		"?EIO=3&transport=polling", "?EIO=4&transport=websocket",
		"?EIO=4&transport=polling&sid=none"} {
		h.do("GET", edge.StreamPath+query, "", "").is(t, 400, "stream", query)
		throttled(t, "public after stream"+query, h.do("GET", publicPath, "", ""), 1, 1)
		a := h.do("GET", edge.StreamPath+query, "", "")
		if retry := string(a.header.Peek("Retry-After")); a.status != 403 || retry != "1" {
			t.Errorf("stream%s, again: %d %s, Retry-After %q", query, a.status, a.body, retry)
		}
		clock.pass(time.Second)
	}
	served(t, "a private request counts elsewhere", h.get("bob", privatePath), 200, 0, 0, 0)
	served(t, "and an unknown key", h.do("GET", privatePath, "", ""), 401, 0, 0, 0)
	served(t, "the one token", h.do("GET", publicPath, "", ""), 200, 1, 0, 1)
}

func TestReadsCommandsAndCancelsHaveLimitsOfTheirOwn(t *testing.T) {
	h, clock := limited(t, func(o *edge.Options) {
		o.ReadRate, o.CommandRate, o.CancelRate = perSecond(1, 4), perSecond(1, 3), perSecond(1, 2)
		o.PublicRate, o.FailureRate = perSecond(1, 5), perSecond(1, 6)
	})
	h.key("bob", "second", event.PermissionRead)
	placing := order("buy", "BTC_USDT", "1", "0.01")
	place := func(key string) answer { return h.post(key, "/api/v1/order", placing) }
	cancel := func(key, id string) answer {
		return h.post(key, "/api/v1/order-cancel", "order="+id)
	}

	for i := range 3 {
		served(t, "order", place("bob"), 201, 3, 2-i, 1+i)
	}
	before := h.hash()
	throttled(t, "order over the limit", place("bob"), 3, 3)
	throttled(t, "withdraw over the limit", h.post("bob", "/api/v1/withdraw", "x=1"), 3, 3)
	throttled(t, "confirmation over the limit",
		h.post("bob", "/api/v1/withdraw-confirm", "x=1"), 3, 3)
	throttled(t, "from elsewhere",
		h.do("POST", "/api/v1/order", formType, placing,
			append(from("192.0.2.1"), signed("bob", 1000, placing)...)...), 3, 3)
	h.stillAt(before)
	served(t, "a cancel all the same", cancel("bob", "3"), 200, 2, 1, 1)
	served(t, "a cancel of a withdrawal",
		h.post("bob", "/api/v1/withdraw-cancel", "withdraw=7"), 400, 2, 0, 2)
	throttled(t, "cancel over the limit", cancel("bob", "4"), 2, 2)
	throttled(t, "cancel of all over the limit",
		h.post("bob", "/api/v1/order-cancel-all", "pair=BTC_USDT"), 2, 2)

	for i := range 3 {
		served(t, "read", h.get("second", privatePath), 200, 4, 3-i, 1+i)
	}
	served(t, "permission", place("second"), 403, 4, 0, 4)
	throttled(t, "permission over the limit of the key's reads", place("second"), 4, 4)
	throttled(t, "read over the limit", h.get("second", privatePath), 4, 4)
	h.do("HEAD", privatePath, "", "", signed("second", h.nextNonce("second"), "")...).is(t, 429,
		"HEAD over the limit")
	served(t, "a read with another key of the account", h.get("bob", privatePath), 200, 4, 3, 1)
	served(t, "another account", h.get("alice", privatePath), 200, 4, 3, 1)
	served(t, "an order of another account", place("alice"), 201, 3, 2, 1)
	served(t, "the address has served none of that", h.do("GET", publicPath, "", ""), 200, 5, 4, 1)
	served(t, "and has no failures", h.do("GET", privatePath, "", ""), 401, 6, 5, 1)

	clock.pass(time.Second)
	served(t, "the nonce is not used",
		h.do("POST", "/api/v1/order", formType, placing,
			signed("bob", h.nonces["bob"]+1, placing)...), 201, 3, 0, 3)
	clock.pass(2 * time.Second)
	served(t, "a used nonce counts",
		h.do("GET", privatePath, "", "", signed("bob", 1, "")...), 401, 4, 3, 1)
	h.done(h.engine.Freeze("test", "bob", true))
	for i := range 3 {
		served(t, "frozen counts for the key's reads", place("bob"), 403, 4, 2-i, 2+i)
	}
	throttled(t, "frozen over the limit", cancel("bob", "4"), 4, 4)
}

func TestWrongSignaturesCountAgainstTheirAddressAlone(t *testing.T) {
	h, clock := limited(t, func(o *edge.Options) {
		every(o, edge.Rate{PerSecond: 1, Burst: 3})
		o.FailureRate = edge.Rate{PerSecond: 1, Burst: 9}
	})
	h.key("bob", "elsewhere", event.AllPermissions, "198.51.100.0/24")
	nonce := uint64(100)
	headers := func(account string) []string {
		return append(signed(account, nonce, ""), from("192.0.2.1")...)
	}
	wrong := headers("bob")
	wrong[3] = strings.Repeat("0", 64)
	large := fmt.Sprintf(
		"POST /api/v1/order HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 192.0.2.1\r\nContent-Length: "+
			"%d\r\n\r\n", 64<<10+1)
	failures := []struct {
		what   string
		a      func() answer
		status int
	}{
		{"no headers", func() answer {
			return h.do("GET", privatePath, "", "", from("192.0.2.1")...)
		}, 401},
		{"unknown key", func() answer {
			return h.do("GET", privatePath, "", "", headers("nobody")...)
		}, 401},
		{"not from here", func() answer {
			return h.do("GET", privatePath, "", "", headers("elsewhere")...)
		}, 403},
		{"no body that can be read", func() answer {
			return h.do("POST", "/api/v1/order", jsonType, "{", headers("bob")...)
		}, 400},
		{"a body of no known type", func() answer {
			return h.do("POST", "/api/v1/order", "text/plain", "{", headers("bob")...)
		}, 400},
		{"no query that can be read", func() answer {
			return h.do("GET", privatePath+"&%zz", "", "", headers("bob")...)
		}, 400},
		{"a body that is too large", func() answer {
			return h.raw("POST", large+strings.Repeat("x", 64<<10+1))
		}, 413},
		{"wrong signature", func() answer { return h.do("GET", privatePath, "", "", wrong...) },
			401},
		{"wrong signature of an order",
			func() answer { return h.do("POST", "/api/v1/order", formType, "a=1", wrong...) }, 401},
	}
	for i, x := range failures {
		served(t, x.what, x.a(), x.status, 9, 8-i, 1+i)
	}
	for _, x := range failures {
		a := x.a()
		throttled(t, x.what, a, 9, 9)
		if !a.header.ConnectionClose() && x.status != 413 ||
			len(a.header.Peek("WWW-Authenticate")) > 0 {
			t.Errorf("%s: the connection stays open\n%s", x.what, a.header)
		}
	}
	served(t, "public", h.do("GET", publicPath, "", "", headers("bob")...), 200, 3, 2, 1)
	served(t, "good signature", h.do("GET", privatePath, "", "", headers("bob")...), 200, 3, 2, 1)
	served(t, "another address", h.do("GET", privatePath, "", "",
		append(wrong[:6:6], from("192.0.2.9")...)...), 401, 9, 8, 1)
	clock.pass(time.Second)
	served(t, "one a second", h.do("GET", privatePath, "", "", wrong...), 401, 9, 0, 9)
	throttled(t, "and no more", h.do("GET", privatePath, "", "", wrong...), 9, 9)
}

func TestRatesAreCheckedInTheirOrder(t *testing.T) {
	h, clock := limited(t, func(o *edge.Options) { every(o, edge.Rate{PerSecond: 1, Burst: 1}) })
	h.key("bob", "reader", event.PermissionRead)
	served(t, "the address's token", h.do("GET", publicPath, "", ""), 200, 1, 0, 1)
	throttled(t, "address before query", h.do("GET", publicPath+"?%zz", "", ""), 1, 1)
	clock.pass(time.Second)

	f := "amount=x"
	served(t, "permission and fields",
		h.do("POST", "/api/v1/order", formType, f, signed("reader", 50, f)...), 403, 1, 0, 1)
	throttled(t, "the key's reads before permission",
		h.do("POST", "/api/v1/order", formType, f, signed("reader", 50, f)...), 1, 1)
	served(t, "fields after the account's commands",
		h.do("POST", "/api/v1/order", formType, f, signed("bob", 50, f)...), 400, 1, 0, 1)
	throttled(t, "the account's commands before fields",
		h.do("POST", "/api/v1/order", formType, f, signed("bob", 50, f)...), 1, 1)
	throttled(t, "the key's reads before nonce",
		h.do("GET", privatePath, "", "", signed("reader", 1, "")...), 1, 1)
	on := event.Maintenance{On: true}
	h.done(h.engine.SetMaintenance(t.Context(), "test", on))
	throttled(t, "the account's commands before maintenance",
		h.do("POST", "/api/v1/order", formType, f, signed("bob", 50, f)...), 1, 1)
	s := signed("bob", 50, f)
	s[3] = strings.Repeat("0", 64)
	want(t, "signature before the account's commands",
		h.do("POST", "/api/v1/order", formType, f, s...), 401, wrongSign)
}

func TestALimitMayBeSwitchedOff(t *testing.T) {
	for name, off := range map[string]func(o *edge.Options){
		"public":   func(o *edge.Options) { o.PublicRate = edge.Rate{} },
		"reads":    func(o *edge.Options) { o.ReadRate = edge.Rate{} },
		"commands": func(o *edge.Options) { o.CommandRate = edge.Rate{} },
		"cancels":  func(o *edge.Options) { o.CancelRate = edge.Rate{} },
		"failures": func(o *edge.Options) { o.FailureRate = edge.Rate{} },
		"probes":   func(o *edge.Options) { o.ProbeRate = edge.Rate{} },
		"":         func(*edge.Options) {},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := limited(t, func(o *edge.Options) { every(o, perSecond(1, 1)); off(o) })
			for kind, ask := range map[string]func() answer{
				"public": func() answer {
					return h.do("GET", publicPath, "", "",
						from("192.0.2.1")...)
				},
				"reads":    func() answer { return h.get("bob", privatePath) },
				"commands": func() answer { return h.post("bob", "/api/v1/order", "x=1") },
				"cancels":  func() answer { return h.post("bob", "/api/v1/order-cancel", "x=1") },
				"failures": func() answer {
					return h.do("GET", privatePath, "", "",
						from("192.0.2.1")...)
				},
				"probes": func() answer {
					return h.do("GET", "/healthz", "", "",
						from("192.0.2.1")...)
				},
			} {
				first, second := ask(), ask()
				if kind == name {
					rated(t, kind, first, 0, 0, 0)
					rated(t, kind, second, 0, 0, 0)
				} else {
					rated(t, kind, first, 1, 0, 1)
					throttled(t, kind, second, 1, 1)
				}
			}
		})
	}
}

// A flood of probes from elsewhere is refused, and those of a supervisor on this machine, and of
// the proxies in front, never are.
func TestProbesHaveALimitOfTheirOwnAndTheSupervisorNone(t *testing.T) {
	h, clock := limited(t, func(o *edge.Options) { every(o, edge.Rate{PerSecond: 1, Burst: 2}) })
	for _, path := range []string{"/healthz", "/readyz"} {
		get := func(headers ...string) answer { return h.do("GET", path, "", "", headers...) }
		served(t, path, get(from("192.0.2.1")...), 200, 2, 1, 1)
		served(t, path, get(from("192.0.2.1")...), 200, 2, 0, 2)
		throttled(t, path, get(from("192.0.2.1")...), 2, 2)
		for range 5 {
			served(t, "of the proxy", get(), 200, 0, 0, 0)
			served(t, "of another proxy", get(from("10.1.2.3")...), 200, 0, 0, 0)
		}
		served(t, "public requests are apart",
			h.do("GET", publicPath, "", "", from("192.0.2.1")...), 200, 2, 1, 1)
		clock.pass(time.Hour)
	}
	h.gateway.Options().TrustedProxies = nil
	for path, remote := range map[string]string{"/healthz": "127.0.0.1", "/readyz": "::1"} {
		for range 5 {
			ctx := probing(path, remote)
			if h.gateway.public.Route(ctx); ctx.Response.StatusCode() != 200 {
				t.Errorf("%s from %s: %d", path, remote, ctx.Response.StatusCode())
			}
		}
	}
	// A proxy elsewhere may claim to forward for this machine. That is not this machine.
	h.gateway.Options().TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}
	for i := range 3 {
		ctx := probing("/healthz", "192.0.2.1")
		ctx.Request.Header.Set("X-Forwarded-For", "127.0.0.1")
		if h.gateway.public.Route(ctx); (ctx.Response.StatusCode() == 429) != (i == 2) {
			t.Errorf("probe %d: %d", i, ctx.Response.StatusCode())
		}
	}
}

// probing returns a probe of some client at an address, without a connection.
func probing(path, remote string) *fasthttp.RequestCtx {
	var request fasthttp.Request
	request.SetRequestURI(path)
	ctx := new(fasthttp.RequestCtx)
	ctx.Init(&request, &net.TCPAddr{IP: net.ParseIP(remote), Port: 4711}, nil)
	return ctx
}

func TestTheLimitHoldsBeforeThereIsAnEngine(t *testing.T) {
	o := edge.Options{Log: quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10, Connections: 10,
		ForTests: edge.ForTests{Clock: func() int64 { return 0 }}}
	every(&o, perSecond(1, 1))
	g := New(o)
	l := fasthttputil.NewInmemoryListener()
	go g.Serve(l) //nolint:errcheck // ends with the listener
	defer g.Shutdown(time.Minute)
	h := &harness{t: t, listener: l}
	get := func(path string) answer {
		return h.raw("GET", "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
	}
	if a := get(publicPath); a.status != 503 ||
		string(a.header.Peek("X-RateLimit-Remaining")) != "0" {
		t.Errorf("%d %s\n%s", a.status, a.body, a.header)
	}
	throttled(t, "public", get(publicPath), 1, 1)
	for range 3 { // none of these has failed
		if a := get(privatePath); a.status != 503 ||
			len(a.header.Peek("X-RateLimit-Remaining")) > 0 {
			t.Errorf("%d %s\n%s", a.status, a.body, a.header)
		}
	}
	get(edge.StreamPath).is(t, 429, "stream")
	served(t, "alive", get("/healthz"), 200, 1, 0, 1)
}

func TestTheHeadersAreSpelledAsDocumented(t *testing.T) {
	h, _ := limited(t,
		func(o *edge.Options) { o.PublicRate = edge.Rate{PerSecond: 100, Burst: 200} })
	c := must(h.listener.Dial())
	defer c.Close()
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", publicPath)
	var b bytes.Buffer
	if _, err := b.ReadFrom(c); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"X-RateLimit-Limit: 200", "X-RateLimit-Remaining: 199",
		"X-RateLimit-Reset: 1"} {
		if !strings.Contains(b.String(), "\r\n"+line+"\r\n") {
			t.Errorf("%s is not in\n%s", line, b.String())
		}
	}
}

func TestAClientBehindATrustedProxyIsKnownByItsOwnAddress(t *testing.T) {
	h, clock := limited(t,
		func(o *edge.Options) { o.PublicRate = edge.Rate{PerSecond: 1, Burst: 2} })
	remaining := func(lines ...string) string {
		t.Helper()
		text := "GET " + publicPath + " HTTP/1.1\r\nHost: x\r\n"
		for _, l := range lines {
			text += "X-Forwarded-For: " + l + "\r\n"
		}
		a := h.raw("GET", text+"\r\n")
		return strconv.Itoa(a.status) + " " + string(a.header.Peek("X-RateLimit-Remaining"))
	}
	f := func(client string, same ...string) {
		t.Helper()
		clock.pass(time.Hour)
		if got := remaining(strings.Split(client, "|")...); got != "200 1" {
			t.Errorf("%s: %s", client, got)
		}
		for _, s := range same {
			if got := remaining(strings.Split(s, "|")...); got != "200 0" {
				t.Errorf("%s after %s: %s", s, client, got)
			}
			if got := remaining(strings.Split(s, "|")...); got != "429 0" {
				t.Errorf("%s again after %s: %s", s, client, got)
			}
			clock.pass(time.Second)
		}
	}
	f("192.0.2.1", "192.0.2.1", "6.6.6.6, 192.0.2.1", "6.6.6.6|192.0.2.1", "192.0.2.1, 10.1.2.3",
		"192.0.2.1|10.1.2.3|10.0.0.1", "192.0.2.1:4711", "::ffff:192.0.2.1", "nobody, 192.0.2.1")
	f("2001:db8::1", "2001:db8::2", "[2001:db8::3]:443", "2001:db8:0:0:ffff::")
	f("2001:db8:0:1::1")
	f("2001:db8:0:2::1")
	// the proxy itself
	f("0.0.0.0", "", "nobody", "192.0.2.1, nobody", "192.0.2.1|unknown, 10.0.0.1")
	f("10.0.0.7", "10.0.0.7, 10.0.0.8") // an address of the trusted network, behind a proxy of it
}

func TestTheAllowListOfAKeyGoesByTheClientsAddress(t *testing.T) {
	h, _ := limited(t, func(*edge.Options) {})
	h.key("bob", "office", event.AllPermissions, "198.51.100.0/24")
	get := func(headers ...string) int {
		return h.do("GET", privatePath, "", "",
			append(signed("office", h.nextNonce("office"), ""), headers...)...).status
	}
	f := func(what string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	f("from the office", get(from("198.51.100.7")...), 200)
	f("through another proxy", get(from("198.51.100.7, 10.0.0.1")...), 200)
	f("from elsewhere", get(from("203.0.113.7")...), 403)
	f("pretending to be there", get(from("198.51.100.7, 203.0.113.7")...), 403)
	f("from the proxy", get(), 403)
	trusting := h.tune
	h.retune(func(o *edge.Options) { trusting(o); o.TrustedProxies = nil })
	f("a header of a client that is no trusted proxy", get(from("198.51.100.7")...), 403)
}

// A node of a cluster has the limits of each of its terms. Requests already counted by an unchanged
// limit stay counted.
func TestLimitsThatChangeCountFromTheNextEngineOn(t *testing.T) {
	h, _ := limited(t, func(o *edge.Options) {
		o.PublicRate, o.CommandRate = edge.Rate{PerSecond: 1, Burst: 3},
			edge.Rate{PerSecond: 1, Burst: 5}
	})
	public := func() answer { return h.do("GET", publicPath, "", "", from("192.0.2.1")...) }
	rated(t, "the first one", public(), 3, 2, 1)
	again := func(change func(*edge.Limits)) {
		t.Helper()
		l := h.gateway.Options().Limits
		change(&l)
		h.gateway.SetFollower(nil, nil)
		h.gateway.SetLimits(l)
		h.gateway.SetEngine(h.engine)
	}
	again(func(l *edge.Limits) { l.CommandRate, l.Stream.OrdersInFlight = perSecond(2, 4), 9 })
	rated(t, "a limit that stays", public(), 3, 1, 2)
	info := decode[exchangeInfo](t, h.do("GET", "/api/v1/exchange-info/", "", "",
		from("192.0.2.2")...))
	if r := info.Limits.Rates["commands"]; r == nil || r.PerSecond != 2 || r.Burst != 4 {
		t.Errorf("clients receive %+v", r)
	}
	again(func(l *edge.Limits) { l.PublicRate = perSecond(1, 4) })
	rated(t, "another limit", public(), 4, 1, 3)
	again(func(l *edge.Limits) { l.PublicRate = edge.Rate{} })
	rated(t, "without a limit", public(), 0, 0, 0)
}

func TestAnAddressIsFoundWithoutAllocating(t *testing.T) {
	g := New(edge.Options{Log: quiet(), BodyBytes: 1, HeaderBytes: 1, Connections: 1,
		Limits: edge.Limits{PublicRate: perSecond(1, 1)}, RateEntries: 10})
	ctx := orderRequest(jsonType, "{}", "")
	ctx.Request.Header.Set("X-Forwarded-For", "192.0.2.1, 10.0.0.1")
	measure := func(what, want string) {
		t.Helper()
		if n := testing.AllocsPerRun(100, func() { g.AddressOf(ctx) }); n != 0 && !raceDetector {
			t.Errorf("%s: %v allocations", what, n)
		}
		if got := g.AddressOf(ctx).String(); got != want {
			t.Errorf("%s: %s", what, got)
		}
	}
	measure("no proxy", "0.0.0.0")
	g.Options().TrustedProxies = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/32"),
		netip.MustParsePrefix("10.0.0.0/8")}
	measure("a proxy", "192.0.2.1")
}
