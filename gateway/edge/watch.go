package edge

import (
	"fmt"
	"net"

	"github.com/valyala/fasthttp"

	"exchange/gateway/api"
	"exchange/gateway/listen"
	"exchange/gateway/operator"
)

// The listener that serves only /metrics. Monitoring needs no right to move money, and no profiles,
// which expose the memory.

// A MetricsListener serves only /metrics.
type MetricsListener struct {
	Listener
	operator *operator.Server // limits wrong tokens
	Token    operator.Token   // none: the metrics need no token
	scrape   fasthttp.RequestHandler
}

// NewMetricsListener makes the listener of monitoring. o limits wrong tokens.
func NewMetricsListener(e *Edge, o *operator.Server, scrape fasthttp.RequestHandler,
) *MetricsListener {
	l := &MetricsListener{operator: o, scrape: scrape, Listener: Listener{Edge: e, Name: watchers,
		Places:      listen.NewPlaces(metricsConnections, 0, metricsConnections/2, nil),
		Certificate: e.opts.MetricsCertificate}}
	l.Token.Set(e.opts.MetricsToken)
	l.Server = e.server(l.handle, l.broken, func(*fasthttp.RequestHeader) int { return 1 })
	l.Server.HeaderReceived = func(*fasthttp.RequestHeader) fasthttp.RequestConfig {
		// metrics take no body; 0 would set no limit here
		return fasthttp.RequestConfig{MaxRequestBodySize: 1}
	}
	return l
}

// Serve serves until the server ends. It returns listen.ErrPlain if other machines can reach a
// listener without a certificate.
func (l *MetricsListener) Serve(on net.Listener) error {
	if err := listen.Protected(on, l.Certificate); err != nil {
		return fmt.Errorf("the metrics' listener: %w", err)
	}
	return l.serve(on, refuseOperator)
}

func (l *MetricsListener) handle(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.SetCanonical(headerCacheControl, cacheNoStore)
	switch {
	case !isSpoken(&ctx.Request.Header):
		ctx.SetConnectionClose()
		operator.Fail(ctx, api.MalformedRequest, "")
	case !l.admit(ctx):
	case !ctx.IsGet() || string(ctx.Path()) != metricsPath:
		operator.Answer(ctx, fasthttp.StatusNotFound,
			map[string]string{"error": "this listener has GET /metrics alone"})
	default:
		listen.Authenticated(ctx.Conn())
		l.scrape(ctx)
	}
}

// admit returns true if the request has the metrics' token, or none is set; otherwise false, after
// writing an error response. Wrong tokens are limited by address.
func (l *MetricsListener) admit(ctx *fasthttp.RequestCtx) bool {
	if l.Token.IsNone() || l.Token.Shown(&ctx.Request.Header) {
		return true
	}
	l.operator.RefuseToken(ctx, l.address(ctx),
		"the bearer token of the metrics is missing or wrong")
	return false
}

// broken writes the response for a request that could not be read completely.
func (l *MetricsListener) broken(ctx *fasthttp.RequestCtx, err error) {
	f, about := l.classify(&ctx.Request.Header, err)
	operator.Fail(ctx, f, about)
}
