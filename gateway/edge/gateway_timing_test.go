package edge_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	shopspring "github.com/shopspring/decimal"
	"github.com/valyala/fasthttp"

	"exchange/core/event"
	"exchange/core/trading"
	"exchange/gateway"
	"exchange/gateway/api"
	"exchange/gateway/edge"
	"exchange/prove/harness"
)

// work is the gateway's own work for an order: route, count, parse, verify, validate, encode. The
// engine is not asked.
func work(g *gateway.Gateway, ctx *fasthttp.RequestCtx, rec *event.Record) bool {
	return g.Work(ctx, &api.Operation{Permission: event.PermissionTrade},
		func(c *api.Call) bool { return c.Placed(rec) })
}

// orderRequest is a signed order as the server has parsed it.
func orderRequest(contentType, body, params string) *fasthttp.RequestCtx {
	ctx := &fasthttp.RequestCtx{}
	ctx.Request.Header.SetMethod("POST")
	ctx.Request.SetRequestURI("/api/v1/order/")
	ctx.Request.Header.SetContentType(contentType)
	h := harness.Signed("alice", 1, params)
	for i := 0; i < len(h); i += 2 {
		ctx.Request.Header.Set(h[i], h[i+1])
	}
	ctx.Request.SetBodyString(body)
	return ctx
}

var orderBodies = []struct{ name, contentType, body, params string }{
	{"json", "application/json",
		`{"type":"buy","pair":"BTC_USDT","amount":0.12345678,"price":50000.12}`,
		"amount=0.12345678&pair=BTC_USDT&price=50000.12&type=buy"},
	{"form", "application/x-www-form-urlencoded",
		"amount=0.12345678&pair=BTC_USDT&price=50000.12&type=buy",
		"amount=0.12345678&pair=BTC_USDT&price=50000.12&type=buy"},
}

func tradeRecord() *event.Record {
	rec := &event.Record{Kind: event.KindOrder, TimeUs: 1795241513443573}
	rec.Order = event.Order{ID: 1234567, Side: trading.Buy,
		Trades: []event.Trade{{ID: 7654321, Maker: 1234560, Price: 5000012e6, Amount: 12345678}}}
	return rec
}

// naive is the same work by the simplest means: maps, encoding/json, a new HMAC and decimals. It is
// the yardstick of work.
func naive(ctx *fasthttp.RequestCtx, secrets map[string]string) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(ctx.PostBody(), &fields) != nil {
		return false
	}
	key := string(ctx.Request.Header.Peek("X-KEY"))
	var params []string
	for name, raw := range fields {
		params = append(params, url.QueryEscape(name)+"="+url.QueryEscape(
			strings.Trim(string(raw), `"`)))
	}
	slices.Sort(params)
	mac := hmac.New(sha256.New, []byte(secrets[key]))
	mac.Write([]byte(key + strings.Join(params, "&")))
	if _, err := strconv.ParseUint(string(ctx.Request.Header.Peek("X-NONCE")), 10,
		64); err != nil ||
		!hmac.Equal([]byte(hex.EncodeToString(mac.Sum(nil))), ctx.Request.Header.Peek("X-SIGN")) {
		return false
	}
	amount, err1 := shopspring.NewFromString(string(fields["amount"]))
	price, err2 := shopspring.NewFromString(string(fields["price"]))
	if err1 != nil || err2 != nil || amount.Sign() <= 0 || price.Exponent() < -2 ||
		string(fields["pair"]) != `"BTC_USDT"` || string(fields["type"]) != `"buy"` {
		return false
	}
	body, err := json.Marshal(map[string]any{"success": true,
		"date": float64(time.Now().UnixMicro()) / 1e6, "oid": 1234567, "type": "buy",
		"amount": amount, "price": price, "amount_unfilled": amount,
		"trades": []map[string]any{{"id": 7654321, "o_id": 1234560, "price": price,
			"amount": amount}}})
	ctx.Response.Header.SetContentType("application/json")
	ctx.Response.SetBody(body)
	return err == nil
}

// counted switches on limits on requests a second that are never reached.
func counted(h *harness.Exchange) {
	most := edge.Rate{PerSecond: 1_000_000_000, Burst: 1_000_000}
	h.Retune(func(o *edge.Options) { o.RateEntries = 100_000; harness.Every(o, most) })
}

func TestTheGatewaysWorkForAnOrderAllocatesNothing(t *testing.T) {
	h := harness.New(t, nil)
	counted(h)
	h.Account("alice")
	for _, b := range orderBodies {
		ctx, rec := orderRequest(b.contentType, b.body, b.params), tradeRecord()
		if !work(h.Gateway, ctx, rec) {
			t.Fatalf("%s: %s", b.name, ctx.Response.Body())
		}
		if n := testing.AllocsPerRun(200, func() { work(h.Gateway, ctx, rec) }); n != 0 &&
			!raceDetector {
			t.Errorf("%s: %v allocations", b.name, n)
		}
	}
}

func BenchmarkGatewayWork(b *testing.B) {
	h := harness.New(b, nil)
	h.Account("alice")
	b.Run("naive", func(b *testing.B) {
		ctx, secrets := orderRequest(orderBodies[0].contentType, orderBodies[0].body,
			orderBodies[0].params), map[string]string{"key-alice": "secret-alice"}
		b.ReportAllocs()
		for b.Loop() {
			if !naive(ctx, secrets) {
				b.Fatal("it is refused")
			}
		}
	})
	for _, limits := range []string{"", ", limits on"} {
		if limits != "" {
			counted(h)
		}
		for _, body := range orderBodies {
			b.Run(body.name+limits, func(b *testing.B) {
				ctx, rec := orderRequest(body.contentType, body.body, body.params), tradeRecord()
				b.ReportAllocs()
				for b.Loop() {
					work(h.Gateway, ctx, rec)
				}
			})
		}
	}
}
