package gateway

import (
	"encoding/json"
	"net"
	"testing"

	"github.com/valyala/fasthttp"

	"exchange/actors"
	"exchange/core/trading"
	"exchange/gateway/api"
	"exchange/gateway/edge"
)

// answered returns an answered request whose answer no client has taken yet.
func answered(h *harness, path string, headers ...string) *fasthttp.RequestCtx {
	var request fasthttp.Request
	request.SetRequestURI("http://exchange" + path)
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	ctx := new(fasthttp.RequestCtx)
	ctx.Init(&request, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, nil)
	h.gateway.public.Route(ctx)
	return ctx
}

// sell lets an account sell a little, without a request.
func (h *harness) sell(account string) {
	h.t.Helper()
	c, err := h.engine.Place(h.engine.Key([]byte("key-"+account)), h.nextNonce(account),
		&actors.OrderRequest{Pair: h.engine.Pairs()[0], Side: trading.Sell, Price: 100e8,
			Amount: 1e5})
	if err != nil || c.Outcome() != actors.Accepted {
		h.t.Fatal(c, err)
	}
	c.Free()
}

// Large answers that wait for clients have one budget. It counts each text once, however many
// clients wait.
func TestLargeAnswersThatWaitHaveABudget(t *testing.T) {
	h := newHarness(t, nil)
	h.retune(func(o *edge.Options) { o.AnswersBytes = 100_000 })
	h.account("alice")
	h.deposit("alice", "2", "BTC", "to-alice")
	const orders = 1000
	for range orders {
		h.sell("alice")
	}
	const book = "/api/v1/orderbook/BTC_USDT/"
	want := func(ctx *fasthttp.RequestCtx, status int) {
		t.Helper()
		if r := &ctx.Response; r.StatusCode() != status ||
			status == 503 && (string(r.Body()) != detail(api.Overloaded.Detail) ||
				string(r.Header.Peek("Retry-After")) != "1") {
			t.Fatalf("%s: %d %.200s", ctx.Path(), r.StatusCode(), r.Body())
		}
	}
	first := answered(h, book+"?limit_sell=999")
	want(first, 200)
	same := answered(h, book+"?limit_sell=990")
	want(same, 200) // another part of the same text
	whole := answered(h, book)
	want(whole, 503) // is a text of its own
	want(answered(h, book+"?limit_sell=100"), 200)
	h.sell("alice") // now the book is another
	want(answered(h, book+"?limit_sell=999"), 503)

	body := first.Response.Body()
	var b struct{ Sell, Buy []json.RawMessage }
	if err := json.Unmarshal(body, &b); err != nil || len(b.Sell) != 999 ||
		len(body) != first.Response.Header.ContentLength() {
		t.Errorf("%d orders in %d bytes, announced are %d, %v", len(b.Sell), len(body),
			first.Response.Header.ContentLength(), err)
	}
	want(answered(h, book+"?limit_sell=999"), 503) // one still waits
	same.Response.Reset()                          // as when a connection breaks
	nothingWaits := func() bool {
		texts, bytes := h.gateway.Budget().Waiting()
		return texts == 0 && bytes == 0
	}
	if !nothingWaits() {
		t.Error("something waits though no client takes it any more")
	}
	next := answered(h, book+"?limit_sell=999")
	want(next, 200)

	next.Response.Reset()
	h.post("alice", "/api/v1/order-cancel-all/", "all=1").is(t, 200, "the cancel of all")
	if a := h.do("GET", book, "", ""); a.status != 200 || a.body != `{"sell":[],"buy":[]}` {
		t.Errorf("in the end: %d %.200s", a.status, a.body)
	}
	spin(nothingWaits)
}
