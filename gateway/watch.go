package gateway

import (
	"fmt"
	"net"

	"github.com/valyala/fasthttp"

	"exchange/gateway/api"
	"exchange/gateway/operator"
)

// The listener for /metrics alone. Monitoring needs no right to move money, and no profiles, which
// show the memory.

// metricsConnections is the most connections of the metrics' listener at once.
const metricsConnections = 16

// ServeMetrics serves /metrics until Shutdown. It returns ErrPlain if other machines can reach a
// listener without a certificate.
func (g *Gateway) ServeMetrics(l net.Listener) error {
	if g.opts.MetricsCertificate == nil && !onlyHere(l) {
		return fmt.Errorf("the metrics' listener: %w", ErrPlain)
	}
	return g.watcher.Serve(g.bounded(l, g.metricsPlaces, g.opts.MetricsCertificate,
		func(ctx *fasthttp.RequestCtx) { operator.Fail(ctx, api.TooManyConnections, "") }))
}

func (g *Gateway) handleMetrics(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.SetCanonical(headerCacheControl, noStore)
	switch {
	case !isSpoken(&ctx.Request.Header):
		ctx.SetConnectionClose()
		operator.Fail(ctx, api.MalformedRequest, "")
	case !g.mayWatch(ctx):
	case !ctx.IsGet() || string(ctx.Path()) != metricsPath:
		operator.Answer(ctx, fasthttp.StatusNotFound,
			map[string]string{"error": "this listener has GET /metrics alone"})
	default:
		known(ctx.Conn())
		g.scrape(ctx)
	}
}

// mayWatch reports whether a client shows the metrics' token, if there is one, and answers the
// request otherwise. Wrong tokens count by address.
func (g *Gateway) mayWatch(ctx *fasthttp.RequestCtx) bool {
	if g.metricsToken.IsNone() || g.metricsToken.Shown(&ctx.Request.Header) {
		return true
	}
	g.operator.RefuseToken(ctx, g.address(ctx),
		"the bearer token of the metrics is missing or wrong")
	return false
}

// SetMetricsToken changes the token of the metrics' listener. With "" it needs none.
func (g *Gateway) SetMetricsToken(token string) { g.metricsToken.Set(token) }

func (g *Gateway) brokenMetricsRequest(ctx *fasthttp.RequestCtx, err error) {
	f, about := g.classify(err)
	operator.Fail(ctx, f, about)
}
