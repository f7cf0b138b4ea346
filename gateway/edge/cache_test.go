package edge_test

import (
	"strings"
	"testing"

	"exchange/gateway/edge"
	"exchange/prove/harness"
)

// Caches keep no answer about an account or a moment, and must revalidate each public one (RFC
// 9111).
func TestEveryAnswerHasCacheControl(t *testing.T) {
	h := harness.Traded(t)
	f := func(what string, a harness.Answer, status int, control string) {
		t.Helper()
		if got := string(a.Header.Peek("Cache-Control")); a.Status != status || got != control {
			t.Errorf("%s: %d with Cache-Control %q, want %d with %q", what, a.Status,
				got, status, control)
		}
		if got := string(a.Header.Peek("WWW-Authenticate")); (got == "HMAC-SHA256") !=
			(status == 401) {
			t.Errorf("%s: %d with WWW-Authenticate %q", what, a.Status, got)
		}
	}
	for _, p := range harness.ApiPaths {
		if !strings.HasPrefix(p.Allow, "GET") {
			continue
		}
		control, a := "no-store", h.Do("GET", p.Path, "", "", h.Bobs(p.Needs != "")...)
		isNow := strings.HasSuffix(p.Path, "/time") || strings.HasSuffix(p.Path, "/exchange-info")
		if p.Needs == "" && strings.HasPrefix(p.Path, "/api/") && !isNow {
			control = "no-cache"
		}
		f(p.Path, a, 200, control)
		for _, name := range []string{"ETag", "Last-Modified", "Expires"} {
			if got := a.Header.Peek(name); len(got) > 0 {
				t.Errorf("%s has a validator or an age: %s %s", p.Path, name, got)
			}
		}
		if p.Needs != "" {
			f("no key "+p.Path, h.Do("GET", p.Path, "", ""), 401, "no-store")
		}
	}
	f("a bad field", h.Do("GET", "/api/v1/exchanges?limit=x", "", ""), 400, "no-store")
	f("no path", h.Do("GET", "/x", "", ""), 404, "no-store")
	f("no method", h.Do("PUT", publicPath, "", ""), 405, "no-store")
	f("no format", h.Do("GET", publicPath+"?format=xml", "", ""), 406, "no-store")
	f("no HTTP", h.Raw("GET", "GET\r\n\r\n"), 400, "no-store")
	f("HEAD", h.Do("HEAD", privatePath, "", "", harness.Signed("bob", h.NextNonce("bob"), "")...),
		200, "no-store")
	f("a used nonce", h.Do("GET", privatePath, "", "", harness.Signed("bob", 1, "")...), 401,
		"no-store")
	f("a new order", h.Post("bob", "/api/v1/order", harness.Order("buy", "BTC_USDT", "1", "0.01")),
		201, "no-store")
	f("a cancel", h.Post("bob", "/api/v1/order-cancel", "order=3"), 200, "no-store")
	f("no session", h.Do("GET", edge.StreamPath+"?EIO=4&transport=polling&sid=none", "", ""), 400,
		"no-store")
	f("a session", h.Do("GET", edge.StreamPath+"?EIO=4&transport=polling", "", ""), 200, "no-store")
	h.Gateway.CurrentAPI().Store(nil)
	f("starting", h.Do("GET", publicPath, "", ""), 503, "no-store")
	f("a probe", h.Do("GET", "/readyz", "", ""), 503, "no-store")
}
