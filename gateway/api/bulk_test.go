package api_test

import (
	"encoding/json"
	"testing"

	"github.com/valyala/fasthttp"

	"exchange/gateway/api"
	"exchange/gateway/edge"
	"exchange/prove/harness"
)

// Large answers that wait for clients have one budget. It counts each text once, however many
// clients wait.
func TestLargeAnswersThatWaitHaveABudget(t *testing.T) {
	h := harness.New(t, nil)
	h.Retune(func(o *edge.Options) { o.AnswersBytes = 100_000 })
	h.Account("alice")
	h.Deposit("alice", "2", "BTC", "to-alice")
	const orders = 1000
	for range orders {
		h.Sell("alice")
	}
	const book = "/api/v1/orderbook/BTC_USDT/"
	want := func(ctx *fasthttp.RequestCtx, status int) {
		t.Helper()
		if r := &ctx.Response; r.StatusCode() != status ||
			status == 503 && (string(r.Body()) != harness.Detail(api.Overloaded.Detail) ||
				string(r.Header.Peek("Retry-After")) != "1") {
			t.Fatalf("%s: %d %.200s", ctx.Path(), r.StatusCode(), r.Body())
		}
	}
	first := harness.Answered(h, book+"?limit_sell=999")
	want(first, 200)
	same := harness.Answered(h, book+"?limit_sell=990")
	want(same, 200) // another part of the same text
	whole := harness.Answered(h, book)
	want(whole, 503) // is a text of its own
	want(harness.Answered(h, book+"?limit_sell=100"), 200)
	h.Sell("alice") // now the book is another
	want(harness.Answered(h, book+"?limit_sell=999"), 503)

	body := first.Response.Body()
	var b struct{ Sell, Buy []json.RawMessage }
	if err := json.Unmarshal(body, &b); err != nil || len(b.Sell) != 999 ||
		len(body) != first.Response.Header.ContentLength() {
		t.Errorf("%d orders in %d bytes, announced are %d, %v", len(b.Sell), len(body),
			first.Response.Header.ContentLength(), err)
	}
	want(harness.Answered(h, book+"?limit_sell=999"), 503) // one still waits
	same.Response.Reset()                                  // as when a connection breaks
	nothingWaits := func() bool {
		texts, bytes := h.Gateway.Budget().Waiting()
		return texts == 0 && bytes == 0
	}
	if !nothingWaits() {
		t.Error("something waits though no client takes it any more")
	}
	next := harness.Answered(h, book+"?limit_sell=999")
	want(next, 200)

	next.Response.Reset()
	h.Post("alice", "/api/v1/order-cancel-all/", "all=1").Is(t, 200, "the cancel of all")
	if a := h.Do("GET", book, "", ""); a.Status != 200 || a.Body != `{"sell":[],"buy":[]}` {
		t.Errorf("in the end: %d %.200s", a.Status, a.Body)
	}
	harness.Spin(nothingWaits)
}
