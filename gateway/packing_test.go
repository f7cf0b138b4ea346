package gateway

import (
	"testing"

	"github.com/valyala/fasthttp"

	"exchange/gateway/api"
	"exchange/gateway/edge"
)

// plain returns the answer's body as it was before it was packed.
func plain(t *testing.T, a answer) string {
	t.Helper()
	if len(a.header.Peek("Content-Encoding")) == 0 {
		return a.body
	}
	b := must(fasthttp.AppendGunzipBytes(nil, []byte(a.body)))
	return string(b)
}

// Large public answers are packed for clients that take gzip, with the same content. Small ones,
// private ones and failures never are.
func TestLargePublicAnswersArePacked(t *testing.T) {
	h := newHarness(t, nil)
	h.account("alice")
	h.deposit("alice", "2", "BTC", "to-alice")
	for range 700 {
		h.sell("alice")
	}
	ask := func(path, coding string, headers ...string) answer {
		return h.do("GET", path, "", "", append(headers, "Accept-Encoding", coding)...)
	}
	const whole = "/api/v1/orderbook/BTC_USDT/"
	for _, path := range []string{whole, whole + "?limit_sell=300", whole,
		whole + "?limit_sell=301"} {
		a, packed := ask(path, "identity"), ask(path, "br, gzip;q=0.5")
		refused := ask(path, "gzip;q=0, *")
		if a.status != 200 || len(a.body) < 16<<10 || packed.status != 200 ||
			string(packed.header.Peek("Content-Encoding")) != "gzip" ||
			len(packed.body)*3 > len(a.body) || plain(t, packed) != a.body ||
			string(packed.header.Peek("X-Update-Id")) != string(a.header.Peek("X-Update-Id")) {
			t.Errorf("%s: %d bytes, packed %d\n%s", path, len(a.body), len(packed.body),
				packed.header)
		}
		for _, x := range []answer{a, packed, refused} {
			if string(x.header.Peek("Vary")) != "Accept-Encoding" {
				t.Errorf("%s: a cache may mix up codings:\n%s", path, x.header)
			}
		}
		if refused.body != a.body {
			t.Errorf("%s is packed for a client that takes no gzip", path)
		}
	}
	if a := ask(whole+"?limit_sell=10", "gzip"); a.header.Peek("Vary") != nil ||
		a.header.Peek("Content-Encoding") != nil {
		t.Errorf("a small answer is packed:\n%s", a.header)
	}
	own := "/api/v1/orders/own/?limit=1000"
	if a := ask(own, "gzip", signed("alice", h.nextNonce("alice"), "limit=1000")...); len(
		a.body) < 16<<10 || a.header.Peek("Content-Encoding") != nil {
		t.Errorf("a private answer is packed:\n%d bytes %.200s", len(a.body), a.header)
	}
	h.sell("alice")
	if a := ask(whole, "gzip"); plain(t, a) != ask(whole, "").body {
		t.Error("the packed answer is not of the newest state")
	}
}

// A packed answer for which the budget has no room is refused in plain text.
func TestAPackedAnswerWithoutRoomIsRefusedPlainly(t *testing.T) {
	h := newHarness(t, nil)
	h.retune(func(o *edge.Options) { o.AnswersBytes = 1 })
	sellers := []string{"alice", "bob", "carol"}
	for _, name := range sellers {
		h.account(name)
		h.deposit(name, "10", "BTC", "to-"+name)
	}
	const book = "/api/v1/orderbook/BTC_USDT/"
	packed := func() *fasthttp.RequestCtx { return answered(h, book, "Accept-Encoding", "gzip") }
	first := packed()
	for first.Response.Header.ContentLength() <= 64<<10 { // others fit in no budget's count
		for range 1000 {
			for _, name := range sellers {
				h.sell(name)
			}
		}
		first = packed()
	}
	second := &packed().Response
	if string(first.Response.Header.Peek("Content-Encoding")) != "gzip" ||
		first.Response.StatusCode() != 200 || second.StatusCode() != 200 {
		t.Errorf("%d and %d", first.Response.StatusCode(), second.StatusCode())
	}
	h.sell("alice")
	var r *fasthttp.Response
	spin(func() bool { // until the view of the deep book is too old to be shown
		r = &packed().Response
		return r.StatusCode() != 200
	})
	if r.StatusCode() != 503 || r.Header.Peek("Content-Encoding") != nil ||
		string(r.Body()) != detail(api.Overloaded.Detail) {
		t.Errorf("%d %s%.100q", r.StatusCode(), r.Header.String(), r.Body())
	}
}
