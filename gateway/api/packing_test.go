package api_test

import (
	"testing"

	"github.com/valyala/fasthttp"

	"exchange/gateway/api"
	"exchange/gateway/edge"
	"exchange/prove/harness"
)

// plain returns the answer's body as it was before it was packed.
func plain(t *testing.T, a harness.Answer) string {
	t.Helper()
	if len(a.Header.Peek("Content-Encoding")) == 0 {
		return a.Body
	}
	b := harness.Must(fasthttp.AppendGunzipBytes(nil, []byte(a.Body)))
	return string(b)
}

// Large public answers are packed for clients that take gzip, with the same content. Small ones,
// private ones and failures never are.
func TestLargePublicAnswersArePacked(t *testing.T) {
	h := harness.New(t, nil)
	h.Account("alice")
	h.Deposit("alice", "2", "BTC", "to-alice")
	for range 700 {
		h.Sell("alice")
	}
	ask := func(path, coding string, headers ...string) harness.Answer {
		return h.Do("GET", path, "", "", append(headers, "Accept-Encoding", coding)...)
	}
	const whole = "/api/v1/orderbook/BTC_USDT/"
	for _, path := range []string{whole, whole + "?limit_sell=300", whole,
		whole + "?limit_sell=301"} {
		a, packed := ask(path, "identity"), ask(path, "br, gzip;q=0.5")
		refused := ask(path, "gzip;q=0, *")
		if a.Status != 200 || len(a.Body) < 16<<10 || packed.Status != 200 ||
			string(packed.Header.Peek("Content-Encoding")) != "gzip" ||
			len(packed.Body)*3 > len(a.Body) || plain(t, packed) != a.Body ||
			string(packed.Header.Peek("X-Update-Id")) != string(a.Header.Peek("X-Update-Id")) {
			t.Errorf("%s: %d bytes, packed %d\n%s", path, len(a.Body), len(packed.Body),
				packed.Header)
		}
		for _, x := range []harness.Answer{a, packed, refused} {
			if string(x.Header.Peek("Vary")) != "Accept-Encoding" {
				t.Errorf("%s: a cache may mix up codings:\n%s", path, x.Header)
			}
		}
		if refused.Body != a.Body {
			t.Errorf("%s is packed for a client that takes no gzip", path)
		}
	}
	if a := ask(whole+"?limit_sell=10", "gzip"); a.Header.Peek("Vary") != nil ||
		a.Header.Peek("Content-Encoding") != nil {
		t.Errorf("a small answer is packed:\n%s", a.Header)
	}
	own := "/api/v1/orders/own/?limit=1000"
	if a := ask(own, "gzip", harness.Signed("alice", h.NextNonce("alice"), "limit=1000")...); len(
		a.Body) < 16<<10 || a.Header.Peek("Content-Encoding") != nil {
		t.Errorf("a private answer is packed:\n%d bytes %.200s", len(a.Body), a.Header)
	}
	h.Sell("alice")
	if a := ask(whole, "gzip"); plain(t, a) != ask(whole, "").Body {
		t.Error("the packed answer is not of the newest state")
	}
}

// A packed answer for which the budget has no room is refused in plain text.
func TestAPackedAnswerWithoutRoomIsRefusedPlainly(t *testing.T) {
	h := harness.New(t, nil)
	h.Retune(func(o *edge.Options) { o.AnswersBytes = 1 })
	sellers := []string{"alice", "bob", "carol"}
	for _, name := range sellers {
		h.Account(name)
		h.Deposit(name, "10", "BTC", "to-"+name)
	}
	const book = "/api/v1/orderbook/BTC_USDT/"
	packed := func() *fasthttp.RequestCtx {
		return harness.Answered(h, book, "Accept-Encoding",
			"gzip")
	}
	first := packed()
	for first.Response.Header.ContentLength() <= 64<<10 { // others fit in no budget's count
		for range 1000 {
			for _, name := range sellers {
				h.Sell(name)
			}
		}
		first = packed()
	}
	second := &packed().Response
	if string(first.Response.Header.Peek("Content-Encoding")) != "gzip" ||
		first.Response.StatusCode() != 200 || second.StatusCode() != 200 {
		t.Errorf("%d and %d", first.Response.StatusCode(), second.StatusCode())
	}
	h.Sell("alice")
	var r *fasthttp.Response
	harness.Spin(func() bool { // until the view of the deep book is too old to be shown
		r = &packed().Response
		return r.StatusCode() != 200
	})
	if r.StatusCode() != 503 || r.Header.Peek("Content-Encoding") != nil ||
		string(r.Body()) != harness.Detail(api.Overloaded.Detail) {
		t.Errorf("%d %s%.100q", r.StatusCode(), r.Header.String(), r.Body())
	}
}
