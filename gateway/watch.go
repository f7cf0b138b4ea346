package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"strings"

	"github.com/valyala/fasthttp"

	"exchange/gateway/ratelimit"
)

// The listener for those who watch: /metrics alone. What watches an exchange needs no right to move
// money, nor profiles, which show what is in memory.

// MetricsConnections is how many connections the metrics' listener holds at once.
const MetricsConnections = 16

// ServeMetrics serves /metrics until Shutdown. ErrPlain: it does not, because the listener can be
// reached from elsewhere and has no certificate.
func (g *Gateway) ServeMetrics(l net.Listener) error {
	if g.opts.MetricsCertificate == nil && !onlyHere(l) {
		return fmt.Errorf("the metrics' listener: %w", ErrPlain)
	}
	return g.watcher.Serve(g.bounded(l, g.metricsPlaces, g.opts.MetricsCertificate,
		func(ctx *fasthttp.RequestCtx) { operatorUnavailable(ctx, TooManyConnections) }))
}

func (g *Gateway) handleMetrics(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.SetCanonical(headerCacheControl, noStore)
	switch {
	case !isSpoken(&ctx.Request.Header):
		ctx.SetConnectionClose()
		operatorAnswer(ctx, MalformedRequest.Status,
			map[string]string{"error": MalformedRequest.Detail})
	case !g.mayWatch(ctx):
	case !ctx.IsGet() || string(ctx.Path()) != metricsPath:
		operatorAnswer(ctx, 404, map[string]string{"error": "this listener has GET /metrics alone"})
	default:
		known(ctx.Conn())
		g.scrape(ctx)
	}
}

// mayWatch answers for a client without the metrics' token, if there is one: false. Wrong tokens
// are counted by address.
func (g *Gateway) mayWatch(ctx *fasthttp.RequestCtx) bool {
	want := g.metricsToken.Load()
	if want == nil {
		return true
	}
	token, ok := strings.CutPrefix(string(ctx.Request.Header.Peek("Authorization")), "Bearer ")
	if got := sha256.Sum256([]byte(token)); ok && subtle.ConstantTimeCompare(got[:], want[:]) == 1 {
		return true
	}
	ctx.SetConnectionClose()
	if rate := g.guesses.buckets.Take(ratelimit.AddressKey(g.address(ctx)), g.now()); !rate.OK {
		g.operatorThrottled(ctx, rate)
		return false
	}
	operatorAnswer(ctx, 401, map[string]string{
		"error": "the bearer token of the metrics is missing or wrong"})
	return false
}

// SetMetricsToken changes the token of the metrics' listener. An empty one takes the need for it
// away.
func (g *Gateway) SetMetricsToken(token string) { setToken(&g.metricsToken, token) }

func (g *Gateway) brokenMetricsRequest(ctx *fasthttp.RequestCtx, err error) {
	f, about := g.classify(err)
	operatorAnswer(ctx, f.Status, map[string]string{"error": expand(f.Detail, about)})
}
