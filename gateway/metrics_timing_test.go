package gateway

import (
	"testing"

	"github.com/valyala/fasthttp"
)

// BenchmarkScrape is a whole scrape without a connection, on a goroutine of its own as in the
// server.
func BenchmarkScrape(b *testing.B) {
	h := newHarness(b, nil)
	h.do("GET", "/api/v1/pairs", "", "")
	ctx := &fasthttp.RequestCtx{}
	ctx.Request.SetRequestURI("/metrics")
	ctx.Request.Header.Set("Authorization", "Bearer "+operatorToken)
	b.ReportAllocs()
	for b.Loop() {
		ctx.Response.Reset()
		h.gateway.operators.handle(ctx)
	}
	if ctx.Response.StatusCode() != 200 {
		b.Fatal(ctx.Response.String())
	}
	b.ReportMetric(float64(len(ctx.Response.Body())), "bytes/scrape")
}

// BenchmarkCount is the cost of the gateway's meter for a request, but for one look at the clock.
func BenchmarkCount(b *testing.B) {
	h := newHarness(b, nil)
	b.RunParallel(func(p *testing.PB) {
		shard := nextShard.Add(1)
		for p.Next() {
			h.gateway.meter.count(shard, firstRoute, 201, 300_000)
		}
	})
}
