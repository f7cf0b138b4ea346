package edge_test

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"exchange/core/event"
	"exchange/gateway"
	"exchange/gateway/edge"
	"exchange/prove/harness"
)

const (
	publicPath  = "/api/v1/currencies/"
	privatePath = "/api/v1/orders/own/?status=3&type=sell" // nothing, for bob
)

// rated checks the headers of an answer about its limit; limit 0: there are none.
func rated(t *testing.T, what string, a harness.Answer, limit, remaining, reset int) {
	t.Helper()
	want := fmt.Sprint(limit, remaining, reset)
	if limit == 0 {
		want = "  "
	}
	h := a.Header
	if got := fmt.Sprintf("%s %s %s", h.Peek("X-RateLimit-Limit"), h.Peek("X-RateLimit-Remaining"),
		h.Peek("X-RateLimit-Reset")); got != want {
		t.Errorf("%s: limit, remaining, reset are %q, want %q", what, got, want)
	}
	if got := string(h.Peek("Retry-After")); (a.Status == 429) != (got != "") {
		t.Errorf("%s: Retry-After is %q with status %d", what, got, a.Status)
	}
}

// served checks an answer that is not refused for its rate.
func served(t *testing.T, what string, a harness.Answer, status, limit, remaining, reset int) {
	t.Helper()
	if a.Status != status {
		t.Errorf("%s: %d %s, want %d", what, a.Status, a.Body, status)
	}
	rated(t, what, a, limit, remaining, reset)
}

// throttled checks a refusal; with whole rates a token is never more than a second away.
func throttled(t *testing.T, what string, a harness.Answer, limit, reset int) {
	t.Helper()
	harness.Want(t, what, a, 429,
		`{"detail":"Request was throttled. Expected available in 1 seconds."}`)
	rated(t, what, a, limit, 0, reset)
	if got := string(a.Header.Peek("Retry-After")); got != "1" {
		t.Errorf("%s: Retry-After is %q", what, got)
	}
}

func TestExactlyABurstOfPublicRequestsPassesAndThenTheRateOfTheAddress(t *testing.T) {
	h, clock := harness.Limited(t,
		func(o *edge.Options) { o.PublicRate = edge.Rate{PerSecond: 2, Burst: 3} })
	get := func(address string) harness.Answer {
		return h.Do("GET", publicPath, "", "",
			harness.From(address)...)
	}
	const me, other = "192.0.2.1", "192.0.2.2"
	served(t, "first", get(me), 200, 3, 2, 1)
	served(t, "HEAD", h.Do("HEAD", "/api/v1/orderbook/BTC_USDT", "", "", harness.From(me)...), 200,
		3, 1, 1)
	served(t, "with a bad field",
		h.Do("GET", "/api/v1/exchanges?limit=x", "", "", harness.From(me)...), 400, 3, 0, 2)
	for range 3 {
		throttled(t, "one more", get(me), 3, 2)
		throttled(t, "of another path",
			h.Do("GET", "/api/v1/pairs?currency1=?", "", "", harness.From(me)...), 3, 2)
	}
	if a := h.Do("HEAD", publicPath, "", "", harness.From(me)...); a.Status != 429 || a.Body != "" {
		t.Errorf("HEAD: %d %q", a.Status, a.Body)
	}
	for _, path := range []string{"/healthz", "/readyz/"} {
		served(t, path, h.Do("GET", path, "", "", harness.From(me)...), 200, 0, 0, 0)
	}
	throttled(t, "preflight", h.Do("OPTIONS", publicPath, "", "", harness.From(me)...), 3, 2)
	served(t, "another address", get(other), 200, 3, 2, 1)
	clock.Pass(500*time.Millisecond - 1)
	throttled(t, "a nanosecond too early", get(me), 3, 2)
	clock.Pass(1)
	served(t, "after half a second", get(me), 200, 3, 0, 2)
	throttled(t, "and no second one", get(me), 3, 2)
	clock.Pass(time.Hour)
	for i := range 3 {
		served(t, "after an hour", get(me), 200, 3, 2-i, 1+i/2)
	}
	throttled(t, "no more than a burst after an hour", get(me), 3, 2)
}

// A path that does not exist, and bytes that are no request, cost the address as much as a good
// request.
func TestUnknownPathsCountAsPublicRequests(t *testing.T) {
	h, clock := harness.Limited(t,
		func(o *edge.Options) { o.PublicRate = edge.Rate{PerSecond: 1, Burst: 1} })
	h.Gateway.Options().TrustedProxies = nil // all come from 0.0.0.0
	raw := func(method, text string) func() harness.Answer {
		return func() harness.Answer { return h.Raw(method, text) }
	}
	do := func(method, path string, headers ...string) func() harness.Answer {
		return func() harness.Answer { return h.Do(method, path, "", "", headers...) }
	}
	bob := harness.Signed("bob", 1<<40, "")
	for _, x := range []struct {
		what   string
		a      func() harness.Answer
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
		throttled(t, "public after "+x.what, h.Do("GET", publicPath, "", ""), 1, 1)
		clock.Pass(time.Second)
	}
	for _, query := range []string{"", "?EIO=4&transport=carrier-pigeon",
		"?EIO=3&transport=polling", "?EIO=4&transport=websocket",
		"?EIO=4&transport=polling&sid=none"} {
		h.Do("GET", edge.StreamPath+query, "", "").Is(t, 400, "stream", query)
		throttled(t, "public after stream"+query, h.Do("GET", publicPath, "", ""), 1, 1)
		a := h.Do("GET", edge.StreamPath+query, "", "")
		if retry := string(a.Header.Peek("Retry-After")); a.Status != 403 || retry != "1" {
			t.Errorf("stream%s, again: %d %s, Retry-After %q", query, a.Status, a.Body, retry)
		}
		clock.Pass(time.Second)
	}
	served(t, "a private request counts elsewhere", h.Get("bob", privatePath), 200, 0, 0, 0)
	served(t, "and an unknown key", h.Do("GET", privatePath, "", ""), 401, 0, 0, 0)
	served(t, "the one token", h.Do("GET", publicPath, "", ""), 200, 1, 0, 1)
}

func TestReadsCommandsAndCancelsHaveLimitsOfTheirOwn(t *testing.T) {
	h, clock := harness.Limited(t, func(o *edge.Options) {
		o.ReadRate, o.CommandRate, o.CancelRate = harness.PerSecond(1, 4), harness.PerSecond(1, 3),
			harness.PerSecond(1, 2)
		o.PublicRate, o.FailureRate = harness.PerSecond(1, 5), harness.PerSecond(1, 6)
	})
	h.Key("bob", "second", event.PermissionRead)
	placing := harness.Order("buy", "BTC_USDT", "1", "0.01")
	place := func(key string) harness.Answer { return h.Post(key, "/api/v1/order", placing) }
	cancel := func(key, id string) harness.Answer {
		return h.Post(key, "/api/v1/order-cancel", "order="+id)
	}

	for i := range 3 {
		served(t, "order", place("bob"), 201, 3, 2-i, 1+i)
	}
	before := h.Hash()
	throttled(t, "order over the limit", place("bob"), 3, 3)
	throttled(t, "withdraw over the limit", h.Post("bob", "/api/v1/withdraw", "x=1"), 3, 3)
	throttled(t, "confirmation over the limit",
		h.Post("bob", "/api/v1/withdraw-confirm", "x=1"), 3, 3)
	throttled(t, "from elsewhere",
		h.Do("POST", "/api/v1/order", harness.FormType, placing,
			append(harness.From("192.0.2.1"), harness.Signed("bob", 1000, placing)...)...), 3, 3)
	h.StillAt(before)
	served(t, "a cancel all the same", cancel("bob", "3"), 200, 2, 1, 1)
	served(t, "a cancel of a withdrawal",
		h.Post("bob", "/api/v1/withdraw-cancel", "withdraw=7"), 400, 2, 0, 2)
	throttled(t, "cancel over the limit", cancel("bob", "4"), 2, 2)
	throttled(t, "cancel of all over the limit",
		h.Post("bob", "/api/v1/order-cancel-all", "pair=BTC_USDT"), 2, 2)

	for i := range 3 {
		served(t, "read", h.Get("second", privatePath), 200, 4, 3-i, 1+i)
	}
	served(t, "permission", place("second"), 403, 4, 0, 4)
	throttled(t, "permission over the limit of the key's reads", place("second"), 4, 4)
	throttled(t, "read over the limit", h.Get("second", privatePath), 4, 4)
	h.Do("HEAD", privatePath, "", "", harness.Signed("second", h.NextNonce("second"), "")...).Is(t,
		429, "HEAD over the limit")
	served(t, "a read with another key of the account", h.Get("bob", privatePath), 200, 4, 3, 1)
	served(t, "another account", h.Get("alice", privatePath), 200, 4, 3, 1)
	served(t, "an order of another account", place("alice"), 201, 3, 2, 1)
	served(t, "the address has served none of that", h.Do("GET", publicPath, "", ""), 200, 5, 4, 1)
	served(t, "and has no failures", h.Do("GET", privatePath, "", ""), 401, 6, 5, 1)

	clock.Pass(time.Second)
	served(t, "the nonce is not used",
		h.Do("POST", "/api/v1/order", harness.FormType, placing,
			harness.Signed("bob", h.Nonces["bob"]+1, placing)...), 201, 3, 0, 3)
	clock.Pass(2 * time.Second)
	served(t, "a used nonce counts",
		h.Do("GET", privatePath, "", "", harness.Signed("bob", 1, "")...), 401, 4, 3, 1)
	h.Done(h.Engine.Freeze("test", "bob", true))
	for i := range 3 {
		served(t, "frozen counts for the key's reads", place("bob"), 403, 4, 2-i, 2+i)
	}
	throttled(t, "frozen over the limit", cancel("bob", "4"), 4, 4)
}

func TestWrongSignaturesCountAgainstTheirAddressAlone(t *testing.T) {
	h, clock := harness.Limited(t, func(o *edge.Options) {
		harness.Every(o, edge.Rate{PerSecond: 1, Burst: 3})
		o.FailureRate = edge.Rate{PerSecond: 1, Burst: 9}
	})
	h.Key("bob", "elsewhere", event.AllPermissions, "198.51.100.0/24")
	nonce := uint64(100)
	headers := func(account string) []string {
		return append(harness.Signed(account, nonce, ""), harness.From("192.0.2.1")...)
	}
	wrong := headers("bob")
	wrong[3] = strings.Repeat("0", 64)
	large := fmt.Sprintf(
		"POST /api/v1/order HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 192.0.2.1\r\nContent-Length: "+
			"%d\r\n\r\n", 64<<10+1)
	failures := []struct {
		what   string
		a      func() harness.Answer
		status int
	}{
		{"no headers", func() harness.Answer {
			return h.Do("GET", privatePath, "", "", harness.From("192.0.2.1")...)
		}, 401},
		{"unknown key", func() harness.Answer {
			return h.Do("GET", privatePath, "", "", headers("nobody")...)
		}, 401},
		{"not from here", func() harness.Answer {
			return h.Do("GET", privatePath, "", "", headers("elsewhere")...)
		}, 403},
		{"no body that can be read", func() harness.Answer {
			return h.Do("POST", "/api/v1/order", harness.JsonType, "{", headers("bob")...)
		}, 400},
		{"a body of no known type", func() harness.Answer {
			return h.Do("POST", "/api/v1/order", "text/plain", "{", headers("bob")...)
		}, 400},
		{"no query that can be read", func() harness.Answer {
			return h.Do("GET", privatePath+"&%zz", "", "", headers("bob")...)
		}, 400},
		{"a body that is too large", func() harness.Answer {
			return h.Raw("POST", large+strings.Repeat("x", 64<<10+1))
		}, 413},
		{"wrong signature",
			func() harness.Answer { return h.Do("GET", privatePath, "", "", wrong...) }, 401},
		{"wrong signature of an order",
			func() harness.Answer {
				return h.Do("POST", "/api/v1/order", harness.FormType, "a=1",
					wrong...)
			}, 401},
	}
	for i, x := range failures {
		served(t, x.what, x.a(), x.status, 9, 8-i, 1+i)
	}
	for _, x := range failures {
		a := x.a()
		throttled(t, x.what, a, 9, 9)
		if !a.Header.ConnectionClose() && x.status != 413 ||
			len(a.Header.Peek("WWW-Authenticate")) > 0 {
			t.Errorf("%s: the connection stays open\n%s", x.what, a.Header)
		}
	}
	served(t, "public", h.Do("GET", publicPath, "", "", headers("bob")...), 200, 3, 2, 1)
	served(t, "good signature", h.Do("GET", privatePath, "", "", headers("bob")...), 200, 3, 2, 1)
	served(t, "another address", h.Do("GET", privatePath, "", "",
		append(wrong[:6:6], harness.From("192.0.2.9")...)...), 401, 9, 8, 1)
	clock.Pass(time.Second)
	served(t, "one a second", h.Do("GET", privatePath, "", "", wrong...), 401, 9, 0, 9)
	throttled(t, "and no more", h.Do("GET", privatePath, "", "", wrong...), 9, 9)
}

func TestRatesAreCheckedInTheirOrder(t *testing.T) {
	h, clock := harness.Limited(t,
		func(o *edge.Options) { harness.Every(o, edge.Rate{PerSecond: 1, Burst: 1}) })
	h.Key("bob", "reader", event.PermissionRead)
	served(t, "the address's token", h.Do("GET", publicPath, "", ""), 200, 1, 0, 1)
	throttled(t, "address before query", h.Do("GET", publicPath+"?%zz", "", ""), 1, 1)
	clock.Pass(time.Second)

	f := "amount=x"
	served(t, "permission and fields",
		h.Do("POST", "/api/v1/order", harness.FormType, f, harness.Signed("reader", 50, f)...), 403,
		1, 0, 1)
	throttled(t, "the key's reads before permission",
		h.Do("POST", "/api/v1/order", harness.FormType, f, harness.Signed("reader", 50, f)...), 1,
		1)
	served(t, "fields after the account's commands",
		h.Do("POST", "/api/v1/order", harness.FormType, f, harness.Signed("bob", 50, f)...), 400, 1,
		0, 1)
	throttled(t, "the account's commands before fields",
		h.Do("POST", "/api/v1/order", harness.FormType, f, harness.Signed("bob", 50, f)...), 1, 1)
	throttled(t, "the key's reads before nonce",
		h.Do("GET", privatePath, "", "", harness.Signed("reader", 1, "")...), 1, 1)
	on := event.Maintenance{On: true}
	h.Done(h.Engine.SetMaintenance(t.Context(), "test", on))
	throttled(t, "the account's commands before maintenance",
		h.Do("POST", "/api/v1/order", harness.FormType, f, harness.Signed("bob", 50, f)...), 1, 1)
	s := harness.Signed("bob", 50, f)
	s[3] = strings.Repeat("0", 64)
	harness.Want(t, "signature before the account's commands",
		h.Do("POST", "/api/v1/order", harness.FormType, f, s...), 401, harness.WrongSign)
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
			h, _ := harness.Limited(t,
				func(o *edge.Options) { harness.Every(o, harness.PerSecond(1, 1)); off(o) })
			for kind, ask := range map[string]func() harness.Answer{
				"public": func() harness.Answer {
					return h.Do("GET", publicPath, "", "",
						harness.From("192.0.2.1")...)
				},
				"reads":    func() harness.Answer { return h.Get("bob", privatePath) },
				"commands": func() harness.Answer { return h.Post("bob", "/api/v1/order", "x=1") },
				"cancels": func() harness.Answer {
					return h.Post("bob", "/api/v1/order-cancel",
						"x=1")
				},
				"failures": func() harness.Answer {
					return h.Do("GET", privatePath, "", "",
						harness.From("192.0.2.1")...)
				},
				"probes": func() harness.Answer {
					return h.Do("GET", "/healthz", "", "",
						harness.From("192.0.2.1")...)
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
	h, clock := harness.Limited(t,
		func(o *edge.Options) { harness.Every(o, edge.Rate{PerSecond: 1, Burst: 2}) })
	for _, path := range []string{"/healthz", "/readyz"} {
		get := func(headers ...string) harness.Answer {
			return h.Do("GET", path, "", "",
				headers...)
		}
		served(t, path, get(harness.From("192.0.2.1")...), 200, 2, 1, 1)
		served(t, path, get(harness.From("192.0.2.1")...), 200, 2, 0, 2)
		throttled(t, path, get(harness.From("192.0.2.1")...), 2, 2)
		for range 5 {
			served(t, "of the proxy", get(), 200, 0, 0, 0)
			served(t, "of another proxy", get(harness.From("10.1.2.3")...), 200, 0, 0, 0)
		}
		served(t, "public requests are apart",
			h.Do("GET", publicPath, "", "", harness.From("192.0.2.1")...), 200, 2, 1, 1)
		clock.Pass(time.Hour)
	}
	h.Gateway.Options().TrustedProxies = nil
	for path, remote := range map[string]string{"/healthz": "127.0.0.1", "/readyz": "::1"} {
		for range 5 {
			ctx := probing(path, remote)
			if h.Gateway.Public().Route(ctx); ctx.Response.StatusCode() != 200 {
				t.Errorf("%s from %s: %d", path, remote, ctx.Response.StatusCode())
			}
		}
	}
	// A proxy elsewhere may claim to forward for this machine. That is not this machine.
	h.Gateway.Options().TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}
	for i := range 3 {
		ctx := probing("/healthz", "192.0.2.1")
		ctx.Request.Header.Set("X-Forwarded-For", "127.0.0.1")
		if h.Gateway.Public().Route(ctx); (ctx.Response.StatusCode() == 429) != (i == 2) {
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
	o := edge.Options{Log: harness.Quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10,
		Connections: 10, ForTests: edge.ForTests{Clock: func() int64 { return 0 }}}
	harness.Every(&o, harness.PerSecond(1, 1))
	g := gateway.New(o)
	l := fasthttputil.NewInmemoryListener()
	go g.Serve(l) //nolint:errcheck // ends with the listener
	defer g.Shutdown(time.Minute)
	h := &harness.Exchange{T: t, Listener: l}
	get := func(path string) harness.Answer {
		return h.Raw("GET", "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
	}
	if a := get(publicPath); a.Status != 503 ||
		string(a.Header.Peek("X-RateLimit-Remaining")) != "0" {
		t.Errorf("%d %s\n%s", a.Status, a.Body, a.Header)
	}
	throttled(t, "public", get(publicPath), 1, 1)
	for range 3 { // none of these has failed
		if a := get(privatePath); a.Status != 503 ||
			len(a.Header.Peek("X-RateLimit-Remaining")) > 0 {
			t.Errorf("%d %s\n%s", a.Status, a.Body, a.Header)
		}
	}
	get(edge.StreamPath).Is(t, 429, "stream")
	served(t, "alive", get("/healthz"), 200, 1, 0, 1)
}

func TestTheHeadersAreSpelledAsDocumented(t *testing.T) {
	h, _ := harness.Limited(t,
		func(o *edge.Options) { o.PublicRate = edge.Rate{PerSecond: 100, Burst: 200} })
	c := harness.Must(h.Listener.Dial())
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
	h, clock := harness.Limited(t,
		func(o *edge.Options) { o.PublicRate = edge.Rate{PerSecond: 1, Burst: 2} })
	remaining := func(lines ...string) string {
		t.Helper()
		text := "GET " + publicPath + " HTTP/1.1\r\nHost: x\r\n"
		for _, l := range lines {
			text += "X-Forwarded-For: " + l + "\r\n"
		}
		a := h.Raw("GET", text+"\r\n")
		return strconv.Itoa(a.Status) + " " + string(a.Header.Peek("X-RateLimit-Remaining"))
	}
	f := func(client string, same ...string) {
		t.Helper()
		clock.Pass(time.Hour)
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
			clock.Pass(time.Second)
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
	h, _ := harness.Limited(t, func(*edge.Options) {})
	h.Key("bob", "office", event.AllPermissions, "198.51.100.0/24")
	get := func(headers ...string) int {
		return h.Do("GET", privatePath, "", "",
			append(harness.Signed("office", h.NextNonce("office"), ""), headers...)...).Status
	}
	f := func(what string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	f("from the office", get(harness.From("198.51.100.7")...), 200)
	f("through another proxy", get(harness.From("198.51.100.7, 10.0.0.1")...), 200)
	f("from elsewhere", get(harness.From("203.0.113.7")...), 403)
	f("pretending to be there", get(harness.From("198.51.100.7, 203.0.113.7")...), 403)
	f("from the proxy", get(), 403)
	trusting := h.Tune
	h.Retune(func(o *edge.Options) { trusting(o); o.TrustedProxies = nil })
	f("a header of a client that is no trusted proxy", get(harness.From("198.51.100.7")...), 403)
}

// A node of a cluster has the limits of each of its terms. Requests already counted by an unchanged
// limit stay counted.
func TestLimitsThatChangeCountFromTheNextEngineOn(t *testing.T) {
	h, _ := harness.Limited(t, func(o *edge.Options) {
		o.PublicRate, o.CommandRate = edge.Rate{PerSecond: 1, Burst: 3},
			edge.Rate{PerSecond: 1, Burst: 5}
	})
	public := func() harness.Answer {
		return h.Do("GET", publicPath, "", "",
			harness.From("192.0.2.1")...)
	}
	rated(t, "the first one", public(), 3, 2, 1)
	again := func(change func(*edge.Limits)) {
		t.Helper()
		l := h.Gateway.Options().Limits
		change(&l)
		h.Gateway.SetFollower(nil, nil)
		h.Gateway.SetLimits(l)
		h.Gateway.SetEngine(h.Engine)
	}
	again(func(l *edge.Limits) {
		l.CommandRate, l.Stream.OrdersInFlight = harness.PerSecond(2, 4),
			9
	})
	rated(t, "a limit that stays", public(), 3, 1, 2)
	info := harness.Decode[harness.ExchangeInfo](t, h.Do("GET", "/api/v1/exchange-info/", "", "",
		harness.From("192.0.2.2")...))
	if r := info.Limits.Rates["commands"]; r == nil || r.PerSecond != 2 || r.Burst != 4 {
		t.Errorf("clients receive %+v", r)
	}
	again(func(l *edge.Limits) { l.PublicRate = harness.PerSecond(1, 4) })
	rated(t, "another limit", public(), 4, 1, 3)
	again(func(l *edge.Limits) { l.PublicRate = edge.Rate{} })
	rated(t, "without a limit", public(), 0, 0, 0)
}

func TestAnAddressIsFoundWithoutAllocating(t *testing.T) {
	g := gateway.New(edge.Options{Log: harness.Quiet(), BodyBytes: 1, HeaderBytes: 1,
		Connections: 1, Limits: edge.Limits{PublicRate: harness.PerSecond(1, 1)}, RateEntries: 10})
	ctx := orderRequest(harness.JsonType, "{}", "")
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
