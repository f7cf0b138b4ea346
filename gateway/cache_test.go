package gateway

import (
	"slices"
	"strings"
	"testing"

	"exchange/core/event"
	"exchange/gateway/openapi"
)

// A sharedCache is a model of a cache in front of the exchange that many clients share, within RFC
// 9111. It keeps all that may be kept, and assumes an age for answers without one, as common caches
// do.
type sharedCache struct {
	h      *harness
	stored map[string][]variant // by path
	hits   int                  // answers from memory alone
	same   int                  // answers from memory after asking whether they are still so
}

// A variant is a stored answer with the request headers on which it depends.
type variant struct {
	answer answer
	vary   map[string]string
}

// heuristic are the statuses that a cache may keep without being told how long (RFC 9110, 15.1).
var heuristic = []int{200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501}

func (c *sharedCache) get(path string, headers ...string) answer {
	c.h.t.Helper()
	asked := map[string]string{}
	for i := 0; i+1 < len(headers); i += 2 {
		asked[strings.ToLower(headers[i])] = headers[i+1]
	}
	at := slices.IndexFunc(c.stored[path], func(v variant) bool {
		for name, value := range v.vary {
			if asked[name] != value {
				return false
			}
		}
		return true
	})
	if at >= 0 {
		kept := c.stored[path][at].answer
		if !has(kept, "no-cache") {
			c.hits++
			return kept
		}
		if tag := string(kept.header.Peek("ETag")); tag != "" {
			if c.h.do("GET", path, "", "",
				append(slices.Clone(headers), "If-None-Match", tag)...).status == 304 {
				c.same++
				return kept
			}
		}
		c.stored[path] = slices.Delete(c.stored[path], at, at+1)
	}
	a := c.h.do("GET", path, "", "", headers...)
	dated := has(a, "max-age") || has(a, "s-maxage") || has(a, "public")
	vary := string(a.header.Peek("Vary"))
	mayKeep := !has(a, "no-store") && !has(a, "private") && vary != "*" &&
		asked["authorization"] == "" &&
		(dated || slices.Contains(heuristic, a.status))
	if mayKeep {
		v := variant{a, map[string]string{}}
		for name := range strings.SplitSeq(vary, ",") {
			if name = strings.ToLower(strings.TrimSpace(name)); name != "" {
				v.vary[name] = asked[name]
			}
		}
		c.stored[path] = append(c.stored[path], v)
	}
	return a
}

// has reports whether an answer's Cache-Control has a directive.
func has(a answer, directive string) bool {
	for part := range strings.SplitSeq(string(a.header.Peek("Cache-Control")), ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(part), "=")
		if strings.EqualFold(name, directive) {
			return true
		}
	}
	return false
}

// cached is the exchange of market behind a shared cache.
func cached(t *testing.T) (*harness, *sharedCache) {
	h := traded(t)
	return h, &sharedCache{h: h, stored: map[string][]variant{}}
}

func TestNoSharedCacheShowsOneAccountWhatIsAnothers(t *testing.T) {
	h, cache := cached(t)
	h.key("bob", "writer", event.PermissionTrade)
	for _, p := range apiPaths {
		if !strings.HasPrefix(p.allow, "GET") || p.needs == "" {
			continue
		}
		for range 2 {
			for _, key := range []string{"alice", "bob", "writer"} {
				direct := h.get(key, p.path)
				through := cache.get(p.path, signed(key, h.nextNonce(key), "")...)
				if through.status != direct.status || through.body != direct.body {
					t.Errorf("%s of %s: %d %s, the exchange says %d %s", p.path, key,
						through.status, through.body, direct.status, direct.body)
				}
			}
			want(t, "without a key "+p.path, cache.get(p.path), 401, credentials)
		}
	}
	if cache.hits+cache.same > 0 || len(cache.stored) > 0 {
		t.Errorf("%d hits, kept: %v", cache.hits, cache.stored)
	}
}

// Kept answers must be asked about each time: a book, a probe and a refusal are of a moment.
func TestNoSharedCacheShowsWhatIsOver(t *testing.T) {
	h, cache := cached(t)
	const book = "/api/v1/orderbook/BTC_USDT"
	fresh := func(what, path string) {
		t.Helper()
		direct, through := h.do("GET", path, "", ""), cache.get(path)
		if direct.status != through.status || direct.body != through.body {
			t.Errorf("%s: %d %.200s, the exchange says %d %.200s", what, through.status,
				through.body, direct.status, direct.body)
		}
	}
	probes := []string{"/healthz", "/readyz"}
	for range 2 {
		fresh("book", book)
		fresh("ticker", "/api/v1/ticker")
		fresh("nothing", "/api/v1/nothing")
		for _, path := range probes {
			fresh("ready", path)
		}
		if a := h.post("bob", "/api/v1/order",
			order("buy", "BTC_USDT", "1", "0.01")); a.status != 201 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	fresh("book with one order more", book)
	answers := h.gateway.api.Load()
	h.gateway.api.Store(nil)
	fresh("starting", "/readyz")
	fresh("starting", book)
	h.gateway.api.Store(answers)
	fresh("ready again", "/readyz")
	fresh("ready again", book)
	for _, path := range append(probes, "/api/v1/nothing") {
		if cache.stored[path] != nil {
			t.Errorf("%s is kept", path)
		}
	}
	if cache.hits > 0 {
		t.Errorf("%d answers came from memory alone", cache.hits)
	}
}

// Pages and documents have validators, so a cache asks about them without loading the bodies again.
func TestASharedCacheKeepsThePagesOfTheAPI(t *testing.T) {
	h, cache := cached(t)
	paths := []string{"/docs", "/api/openapi.json"}
	for _, name := range openapi.Files() {
		paths = append(paths, "/docs/"+name)
	}
	for _, path := range paths {
		for _, coding := range []string{"", "gzip", "br", "gzip"} {
			headers := []string{"Accept-Encoding", coding}
			direct, through := h.do("GET", path, "", "", headers...), cache.get(path, headers...)
			if direct.status != 200 || direct.body != through.body || !has(direct, "no-cache") {
				t.Errorf("%s in %q: %d, %d bytes, the exchange sends %d", path, coding,
					through.status, len(through.body), len(direct.body))
			}
		}
	}
	if cache.hits > 0 || cache.same < len(paths) {
		t.Errorf("%d answers from memory alone, %d after asking", cache.hits, cache.same)
	}
	for _, path := range []string{"/api/v1/pairs", "/api/v1/ticker",
		"/api/v1/wallets", "/healthz"} {
		a := h.do("GET", path, "", "", signed("bob", h.nextNonce("bob"), "")...)
		if len(a.header.Peek("ETag"))+len(a.header.Peek("Last-Modified"))+len(
			a.header.Peek("Expires")) > 0 {
			t.Errorf("%s has a validator or an age:\n%s", path, a.header)
		}
	}
}

func TestEveryAnswerSaysWhatCachesMayDoWithIt(t *testing.T) {
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
	f("public", h.do("GET", publicPath, "", ""), 200, "no-cache")
	f("a bad field", h.do("GET", "/api/v1/exchanges?limit=x", "", ""), 400, "no-store")
	f("no path", h.do("GET", "/x", "", ""), 404, "no-store")
	f("no method", h.do("PUT", publicPath, "", ""), 405, "no-store")
	f("no format", h.do("GET", publicPath+"?format=xml", "", ""), 406, "no-store")
	f("no HTTP", h.raw("GET", "GET\r\n\r\n"), 400, "no-store")
	f("private", h.get("bob", privatePath), 200, "no-store")
	f("HEAD", h.do("HEAD", privatePath, "", "", signed("bob", h.nextNonce("bob"), "")...), 200,
		"no-store")
	f("no key", h.do("GET", privatePath, "", ""), 401, "no-store")
	f("a used nonce", h.do("GET", privatePath, "", "", signed("bob", 1, "")...), 401, "no-store")
	f("a new order", h.post("bob", "/api/v1/order", order("buy", "BTC_USDT", "1", "0.01")), 201,
		"no-store")
	f("a cancel", h.post("bob", "/api/v1/order-cancel", "order=3"), 200, "no-store")
	f("a probe", h.do("GET", "/healthz", "", ""), 200, "no-store")
	f("no session", h.do("GET", streamPath+"?EIO=4&transport=polling&sid=none", "", ""), 400,
		"no-store")
	f("a session", h.do("GET", streamPath+"?EIO=4&transport=polling", "", ""), 200, "no-store")
}
