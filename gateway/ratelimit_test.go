package gateway

import (
	"bytes"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp/fasthttputil"

	"exchange/core/event"
)

// A testClock stands still until the test moves it.
type testClock struct{ ns atomic.Int64 }

func (c *testClock) pass(d time.Duration) { c.ns.Add(int64(d)) }

// limited is the exchange of market, started again with limits on requests a second. The peer of all its
// connections is 0.0.0.0, which is a proxy that is trusted: see from.
func limited(t *testing.T, account, address Rate) (*harness, *testClock) {
	h, c := trading(t), &testClock{}
	h.tune = func(o *Options) {
		o.AccountRate, o.AddressRate, o.RateEntries, o.Clock = account, address, 1000, c.ns.Load
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/32"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}
	}
	h.stop()
	h.start()
	return h, c
}

// from is the header with which a proxy says where a request comes from.
func from(address string) []string { return []string{"X-Forwarded-For", address} }

const (
	publicPath  = "/api/v1/currencies/"
	privatePath = "/api/v1/orders/own/?status=3&type=sell" // nothing, for bob
)

// rated checks what an answer says about its limit; limit 0: nothing.
func rated(t *testing.T, what string, a answer, limit, remaining, reset int) {
	t.Helper()
	want := fmt.Sprint(limit, remaining, reset)
	if limit == 0 {
		want = "  "
	}
	h := a.header
	if got := fmt.Sprintf("%s %s %s", h.Peek("X-RateLimit-Limit"), h.Peek("X-RateLimit-Remaining"), h.Peek("X-RateLimit-Reset")); got != want {
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
	h, clock := limited(t, Rate{}, Rate{PerSecond: 2, Burst: 3})
	get := func(address string) answer { return h.do("GET", publicPath, "", "", from(address)...) }
	const me, other = "192.0.2.1", "192.0.2.2"
	served(t, "first", get(me), 200, 3, 2, 1)
	served(t, "HEAD", h.do("HEAD", "/api/v1/orderbook/BTC_USDT", "", "", from(me)...), 200, 3, 1, 1)
	served(t, "with a bad field", h.do("GET", "/api/v1/exchanges?limit=x", "", "", from(me)...), 400, 3, 0, 2)
	for range 3 {
		throttled(t, "one more", get(me), 3, 2)
		throttled(t, "of another path", h.do("GET", "/api/v1/pairs?currency1=?", "", "", from(me)...), 3, 2)
	}
	if a := h.do("HEAD", publicPath, "", "", from(me)...); a.status != 429 || a.body != "" {
		t.Errorf("HEAD: %d %q", a.status, a.body)
	}
	for _, path := range []string{"/healthz", "/readyz/"} {
		served(t, path, h.do("GET", path, "", "", from(me)...), 200, 0, 0, 0)
	}
	for _, path := range []string{"/api/v1/orderbook/NO_PAIR/", "/api/charts/BTC_USDT/7/chart", "/api/v1/order/x/", "/docs/x"} { // told, and not counted
		served(t, path, h.do("GET", path, "", "", from(me)...), 404, 3, 0, 2)
		served(t, path, h.do("OPTIONS", path, "", "", from(me)...), 404, 3, 0, 2)
	}
	served(t, "preflight", h.do("OPTIONS", publicPath, "", "", from(me)...), 204, 0, 0, 0)
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

func TestAnAccountIsLimitedOverAllItsKeysAndNoOtherWithIt(t *testing.T) {
	h, clock := limited(t, Rate{PerSecond: 1, Burst: 4}, Rate{PerSecond: 1, Burst: 5})
	h.key("bob", "second", event.PermissionRead)
	placing := order("buy", "BTC_USDT", "1", "0.01")
	served(t, "read", h.get("bob", privatePath), 200, 4, 3, 1)
	served(t, "order", h.post("bob", "/api/v1/order", placing), 201, 4, 2, 2)
	served(t, "permission", h.post("second", "/api/v1/order", placing), 403, 4, 1, 3)
	served(t, "HEAD", h.do("HEAD", privatePath, "", "", signed("second", h.nextNonce("second"), "")...), 200, 4, 0, 4)
	before := h.hash()
	throttled(t, "order over the limit", h.post("bob", "/api/v1/order", placing), 4, 4)
	throttled(t, "cancel over the limit", h.post("bob", "/api/v1/order-cancel", "order=3"), 4, 4)
	throttled(t, "read over the limit", h.get("second", privatePath), 4, 4)
	throttled(t, "from elsewhere", h.do("GET", privatePath, "", "", append(from("192.0.2.1"), signed("bob", 1000, "")...)...), 4, 4)
	if h.hash() != before {
		t.Error("refused requests changed the state")
	}
	served(t, "another account of the same address", h.get("alice", privatePath), 200, 4, 3, 1)
	served(t, "the address has served none of that", h.do("GET", publicPath, "", ""), 200, 5, 4, 1)
	clock.pass(time.Second)
	served(t, "the nonce is not used", h.do("POST", "/api/v1/order", formType, placing, signed("bob", h.nonces["bob"], placing)...), 201, 4, 0, 4)
	clock.pass(2 * time.Second)
	served(t, "a used nonce costs the account", h.do("GET", privatePath, "", "", signed("bob", 1, "")...), 401, 4, 1, 3)
}

func TestWhatIsNotAuthenticatedCountsAgainstItsAddressAlone(t *testing.T) {
	h, clock := limited(t, Rate{PerSecond: 1, Burst: 3}, Rate{PerSecond: 1, Burst: 8})
	h.key("bob", "elsewhere", event.AllPermissions, "198.51.100.0/24")
	nonce := uint64(100)
	headers := func(account string) []string { return append(signed(account, nonce, ""), from("192.0.2.1")...) }
	wrong := headers("bob")
	wrong[3] = strings.Repeat("0", 64)
	for i, x := range []struct {
		what   string
		a      func() answer
		status int
	}{
		{"no headers", func() answer { return h.do("GET", privatePath, "", "", from("192.0.2.1")...) }, 401},
		{"unknown key", func() answer { return h.do("GET", privatePath, "", "", headers("nobody")...) }, 401},
		{"not from here", func() answer { return h.do("GET", privatePath, "", "", headers("elsewhere")...) }, 403},
		{"no body that can be read", func() answer { return h.do("POST", "/api/v1/order", jsonType, "{", headers("bob")...) }, 400},
		{"no query that can be read", func() answer { return h.do("GET", privatePath+"&%zz", "", "", headers("bob")...) }, 400},
		{"wrong signature", func() answer { return h.do("GET", privatePath, "", "", wrong...) }, 401},
		{"wrong signature of an order", func() answer { return h.do("POST", "/api/v1/order", formType, "a=1", wrong...) }, 401},
		{"public", func() answer { return h.do("GET", publicPath, "", "", headers("bob")...) }, 200},
	} {
		served(t, x.what, x.a(), x.status, 8, 7-i, 1+i)
	}
	throttled(t, "public", h.do("GET", publicPath, "", "", headers("bob")...), 8, 8)
	throttled(t, "wrong signature", h.do("GET", privatePath, "", "", wrong...), 8, 8)
	throttled(t, "good signature", h.do("GET", privatePath, "", "", headers("bob")...), 8, 8)
	there := append(signed("bob", nonce, ""), from("192.0.2.9")...)
	served(t, "the account from elsewhere, with its nonce", h.do("GET", privatePath, "", "", there...), 200, 3, 2, 1)
	clock.pass(time.Second)
	nonce++
	for i := range 3 { // the address's one token is looked at and not taken
		served(t, "with a good signature", h.do("GET", privatePath, "", "", headers("bob")...), 200, 3, 2-i, 1+i)
		nonce++
	}
	throttled(t, "until the account's are used up", h.do("GET", privatePath, "", "", headers("bob")...), 3, 3)
	served(t, "wrong signature takes it", h.do("GET", privatePath, "", "", wrong...), 401, 8, 0, 8)
	throttled(t, "and the next is refused for it", h.do("GET", privatePath, "", "", headers("bob")...), 8, 8)
}

func TestRatesAreCheckedInTheirOrder(t *testing.T) {
	h, clock := limited(t, Rate{PerSecond: 1, Burst: 1}, Rate{PerSecond: 1, Burst: 1})
	h.key("bob", "reader", event.PermissionRead)
	early := func(remaining, reset int) {
		t.Helper()
		large := strings.Repeat("x", 64<<10+1)
		served(t, "path before rate", h.do("GET", "/api/v1/nothing", "", ""), 404, 0, 0, 0)
		served(t, "pair before rate", h.do("GET", "/api/v1/orderbook/NO_PAIR", "", ""), 404, 1, remaining, reset)
		served(t, "method before rate", h.do("DELETE", publicPath, "", ""), 405, 1, remaining, reset)
		served(t, "format before rate", h.do("GET", publicPath+"?format=xml", "", ""), 406, 1, remaining, reset)
		served(t, "size before rate", h.raw("POST", fmt.Sprintf("POST /api/v1/order HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(large), large)), 413, 1, remaining, reset)
	}
	early(1, 0)
	served(t, "the one token", h.do("GET", publicPath, "", ""), 200, 1, 0, 1)
	early(0, 1)
	throttled(t, "address before headers", h.do("GET", privatePath, "", ""), 1, 1)
	throttled(t, "address before query", h.do("GET", publicPath+"?%zz", "", ""), 1, 1)
	throttled(t, "address before body", h.do("POST", "/api/v1/order", jsonType, "{", signed("bob", 50, "")...), 1, 1)
	clock.pass(time.Second)

	f := "amount=x"
	served(t, "permission and fields come after the account's", h.do("POST", "/api/v1/order", formType, f, signed("reader", 50, f)...), 403, 1, 0, 1)
	throttled(t, "account before permission", h.do("POST", "/api/v1/order", formType, f, signed("reader", 50, f)...), 1, 1)
	throttled(t, "account before fields", h.do("POST", "/api/v1/order", formType, f, signed("bob", 50, f)...), 1, 1)
	throttled(t, "account before nonce", h.do("GET", privatePath, "", "", signed("bob", 1, "")...), 1, 1)
	s := signed("bob", 50, f)
	s[3] = strings.Repeat("0", 64)
	want(t, "signature before account", h.do("POST", "/api/v1/order", formType, f, s...), 401, wrongSign)
}

func TestALimitMayBeSwitchedOff(t *testing.T) {
	t.Run("address", func(t *testing.T) {
		h, _ := limited(t, Rate{PerSecond: 1, Burst: 1}, Rate{})
		for range 5 {
			served(t, "public", h.do("GET", publicPath, "", ""), 200, 0, 0, 0)
			served(t, "unknown", h.do("GET", privatePath, "", ""), 401, 0, 0, 0)
			served(t, "wrong method", h.do("PUT", privatePath, "", ""), 405, 0, 0, 0)
		}
		served(t, "private", h.get("bob", privatePath), 200, 1, 0, 1)
		throttled(t, "private", h.get("bob", privatePath), 1, 1)
	})
	t.Run("account", func(t *testing.T) {
		h, _ := limited(t, Rate{}, Rate{PerSecond: 1, Burst: 1})
		for range 5 {
			served(t, "private", h.get("bob", privatePath), 200, 1, 1, 0)
		}
		served(t, "public", h.do("GET", publicPath, "", ""), 200, 1, 0, 1)
		throttled(t, "private", h.get("bob", privatePath), 1, 1)
	})
	t.Run("both", func(t *testing.T) {
		h, _ := limited(t, Rate{}, Rate{})
		for range 5 {
			served(t, "public", h.do("GET", publicPath, "", ""), 200, 0, 0, 0)
			served(t, "private", h.get("bob", privatePath), 200, 0, 0, 0)
			served(t, "unknown", h.do("GET", privatePath, "", ""), 401, 0, 0, 0)
		}
	})
}

func TestTheLimitHoldsBeforeThereIsAnEngine(t *testing.T) {
	g := New(Options{Log: quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10, Connections: 10, AddressRate: Rate{1, 1}, RateEntries: 10, Clock: func() int64 { return 0 }})
	l := fasthttputil.NewInmemoryListener()
	go g.Serve(l) //nolint:errcheck // ends with the listener
	defer g.Shutdown(time.Minute)
	h := &harness{t: t, listener: l}
	get := func(path string) answer { return h.raw("GET", "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n") }
	if a := get(privatePath); a.status != 503 || string(a.header.Peek("X-RateLimit-Remaining")) != "1" {
		t.Errorf("private: %d %s\n%s", a.status, a.body, a.header)
	}
	if a := get(publicPath); a.status != 503 || string(a.header.Peek("X-RateLimit-Remaining")) != "0" {
		t.Errorf("public: %d %s\n%s", a.status, a.body, a.header)
	}
	throttled(t, "public", get(publicPath), 1, 1)
	throttled(t, "private", get(privatePath), 1, 1)
	served(t, "alive", get("/healthz"), 200, 0, 0, 0)
}

func TestTheHeadersAreSpelledAsDocumented(t *testing.T) {
	h, _ := limited(t, Rate{}, Rate{PerSecond: 100, Burst: 200})
	c, err := h.listener.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", publicPath)
	var b bytes.Buffer
	if _, err := b.ReadFrom(c); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"X-RateLimit-Limit: 200", "X-RateLimit-Remaining: 199", "X-RateLimit-Reset: 1"} {
		if !strings.Contains(b.String(), "\r\n"+line+"\r\n") {
			t.Errorf("%s is not in\n%s", line, b.String())
		}
	}
}

func TestAClientBehindATrustedProxyIsKnownByItsOwnAddress(t *testing.T) {
	h, clock := limited(t, Rate{}, Rate{PerSecond: 1, Burst: 2})
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
	f("192.0.2.1", "192.0.2.1", "6.6.6.6, 192.0.2.1", "6.6.6.6|192.0.2.1", "192.0.2.1, 10.1.2.3", "192.0.2.1|10.1.2.3|10.0.0.1", "192.0.2.1:4711", "::ffff:192.0.2.1", "nobody, 192.0.2.1")
	f("2001:db8::1", "2001:db8::2", "[2001:db8::3]:443", "2001:db8:0:0:ffff::")
	f("2001:db8:0:1::1")
	f("2001:db8:0:2::1")
	f("0.0.0.0", "", "nobody", "192.0.2.1, nobody", "192.0.2.1|unknown, 10.0.0.1") // the proxy itself
	f("10.0.0.7", "10.0.0.7, 10.0.0.8")                                            // an address of the trusted network, behind a proxy of it
}

func TestTheAllowListOfAKeyGoesByTheClientsAddress(t *testing.T) {
	h, _ := limited(t, Rate{}, Rate{})
	h.key("bob", "office", event.AllPermissions, "198.51.100.0/24")
	get := func(headers ...string) int {
		return h.do("GET", privatePath, "", "", append(signed("office", h.nextNonce("office"), ""), headers...)...).status
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
	h.tune = func(o *Options) { trusting(o); o.TrustedProxies = nil }
	h.stop()
	h.start()
	f("a header of somebody who is no trusted proxy", get(from("198.51.100.7")...), 403)
}

func TestForwardedNamesTheFirstThatIsNoProxyFromTheEnd(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	peer := netip.MustParseAddr("10.0.0.1")
	f := func(want string, lines ...string) {
		t.Helper()
		var b [][]byte
		for _, l := range lines {
			b = append(b, []byte(l))
		}
		if got := forwarded(b, trusted, peer); got.String() != want {
			t.Errorf("%.100q: got %s, want %s", lines, got, want)
		}
	}
	f("10.0.0.1")
	f("10.0.0.1", "")
	f("10.0.0.1", " , ,, ")
	f("192.0.2.1", "192.0.2.1")
	f("192.0.2.1", "\t192.0.2.1 ")
	f("192.0.2.1", ",192.0.2.1,, ")
	f("192.0.2.2", "192.0.2.1,192.0.2.2")
	f("192.0.2.2", "192.0.2.1", "192.0.2.2")
	f("192.0.2.1", "192.0.2.1,10.2.2.2", "fd00::1", "10.3.3.3")
	f("192.0.2.1", "192.0.2.1:0")
	f("2001:db8::1", "[2001:db8::1]:65535")
	f("192.0.2.1", "::ffff:192.0.2.1, ::ffff:10.0.0.2")
	f("fd00::1", "fd00::1, 10.9.9.9")
	f("10.9.9.9", "10.9.9.9")
	for _, garbage := range []string{"x", "192.0.2.1 192.0.2.2", "192.0.2", "192.0.2.256", "192.0.2.01", "192.0.2.1:", "192.0.2.1:65536", "[2001:db8::1", "fe80::1%eth0", "[fe80::1%eth0]:1",
		"192.0.2.1/32", "\"192.0.2.1\"", "192.0.2.1;", "for=192.0.2.1", "\x00", "\xff\xfe", strings.Repeat("1", 10_000)} {
		f("10.0.0.1", garbage)
		f("10.0.0.1", "192.0.2.1, "+garbage)
		f("10.0.0.1", "192.0.2.1", garbage+",10.0.0.2")
		f("192.0.2.9", garbage+",192.0.2.9")
		f("192.0.2.9", garbage, "192.0.2.9")
	}
	// Only so much of its end is looked at, in all lines together.
	chain := strings.Repeat("10.0.0.2,", (maxForwarded-len("192.0.2.1,"))/len("10.0.0.2,"))
	f("192.0.2.1", "192.0.2.1,"+chain)
	f("192.0.2.1", "192.0.2.1", chain)
	f("10.0.0.1", "192.0.2.1,"+chain+chain)
	f("10.0.0.1", "192.0.2.1", chain, chain)
	f("10.0.0.1", "192.0.2.1,"+strings.Repeat(" ", maxForwarded))
	f("10.0.0.1", "192.0.2.1,"+strings.Repeat(" ", maxForwarded-len("10.0.0.2")-1)+"10.0.0.2") // cut before a comma
	for pad := range 40 {                                                                      // an address that is cut is not taken for another
		f := forwarded([][]byte{[]byte("6.6.6.6,192.0.2.123" + strings.Repeat(" ", pad) + "," + chain)}, trusted, peer).String()
		if f != "192.0.2.123" && f != "10.0.0.1" {
			t.Errorf("%d blanks: %s", pad, f)
		}
	}
}

func TestAnAddressIsFoundWithoutAllocating(t *testing.T) {
	g := New(Options{Log: quiet(), BodyBytes: 1, HeaderBytes: 1, Connections: 1, AddressRate: Rate{1, 1}, RateEntries: 10})
	ctx := orderRequest(jsonType, "{}", "")
	ctx.Request.Header.Set("X-Forwarded-For", "192.0.2.1, 10.0.0.1")
	measure := func(what, want string) {
		t.Helper()
		r := newRequest(g, ctx)
		if n := testing.AllocsPerRun(100, func() { r.from = netip.Addr{}; r.address() }); n != 0 && !raceDetector {
			t.Errorf("%s: %v allocations", what, n)
		}
		if got := r.address().String(); got != want {
			t.Errorf("%s: %s", what, got)
		}
	}
	measure("no proxy", "0.0.0.0")
	g.opts.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/32"), netip.MustParsePrefix("10.0.0.0/8")}
	measure("a proxy", "192.0.2.1")
}
