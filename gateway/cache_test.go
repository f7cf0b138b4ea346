package gateway

import (
	"strings"
	"testing"

	"exchange/gateway/edge"
)

// Caches keep no answer about an account or a moment, and must revalidate each public one (RFC
// 9111).
func TestEveryAnswerHasCacheControl(t *testing.T) {
	h := traded(t)
	f := func(what string, a answer, status int, control string) {
		t.Helper()
		if got := string(a.header.Peek("Cache-Control")); a.status != status || got != control {
			t.Errorf("%s: %d with Cache-Control %q, want %d with %q", what, a.status,
				got, status, control)
		}
		if got := string(a.header.Peek("WWW-Authenticate")); (got == "HMAC-SHA256") !=
			(status == 401) {
			t.Errorf("%s: %d with WWW-Authenticate %q", what, a.status, got)
		}
	}
	for _, p := range apiPaths {
		if !strings.HasPrefix(p.allow, "GET") {
			continue
		}
		control, a := "no-store", h.do("GET", p.path, "", "", h.bobs(p.needs != "")...)
		isNow := strings.HasSuffix(p.path, "/time") || strings.HasSuffix(p.path, "/exchange-info")
		if p.needs == "" && strings.HasPrefix(p.path, "/api/") && !isNow {
			control = "no-cache"
		}
		f(p.path, a, 200, control)
		for _, name := range []string{"ETag", "Last-Modified", "Expires"} {
			if got := a.header.Peek(name); len(got) > 0 {
				t.Errorf("%s has a validator or an age: %s %s", p.path, name, got)
			}
		}
		if p.needs != "" {
			f("no key "+p.path, h.do("GET", p.path, "", ""), 401, "no-store")
		}
	}
	f("a bad field", h.do("GET", "/api/v1/exchanges?limit=x", "", ""), 400, "no-store")
	f("no path", h.do("GET", "/x", "", ""), 404, "no-store")
	f("no method", h.do("PUT", publicPath, "", ""), 405, "no-store")
	f("no format", h.do("GET", publicPath+"?format=xml", "", ""), 406, "no-store")
	f("no HTTP", h.raw("GET", "GET\r\n\r\n"), 400, "no-store")
	f("HEAD", h.do("HEAD", privatePath, "", "", signed("bob", h.nextNonce("bob"), "")...), 200,
		"no-store")
	f("a used nonce", h.do("GET", privatePath, "", "", signed("bob", 1, "")...), 401, "no-store")
	f("a new order", h.post("bob", "/api/v1/order", order("buy", "BTC_USDT", "1", "0.01")), 201,
		"no-store")
	f("a cancel", h.post("bob", "/api/v1/order-cancel", "order=3"), 200, "no-store")
	f("no session", h.do("GET", edge.StreamPath+"?EIO=4&transport=polling&sid=none", "", ""), 400,
		"no-store")
	f("a session", h.do("GET", edge.StreamPath+"?EIO=4&transport=polling", "", ""), 200, "no-store")
	h.gateway.CurrentAPI().Store(nil)
	f("starting", h.do("GET", publicPath, "", ""), 503, "no-store")
	f("a probe", h.do("GET", "/readyz", "", ""), 503, "no-store")
}
