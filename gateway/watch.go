package gateway

import (
	"fmt"
	"net"

	"github.com/valyala/fasthttp"

	"exchange/gateway/api"
	"exchange/gateway/listen"
	"exchange/gateway/operator"
)

// The listener for /metrics alone. Monitoring needs no right to move money, and no profiles, which
// expose the memory.

// A metricsListener serves /metrics alone.
type metricsListener struct {
	listener
	operator *operator.Server // counts wrong tokens
	token    operator.Token   // none: the metrics need none
	scrape   fasthttp.RequestHandler
}

func newMetricsListener(e *edge, o *operator.Server, scrape fasthttp.RequestHandler,
) *metricsListener {
	l := &metricsListener{operator: o, scrape: scrape, listener: listener{edge: e, name: watchers,
		places:      listen.NewPlaces(metricsConnections, 0, metricsConnections/2, nil),
		certificate: e.opts.MetricsCertificate}}
	l.token.Set(e.opts.MetricsToken)
	l.server = e.server(l.handle, l.broken, func(*fasthttp.RequestHeader) int { return 1 })
	l.server.HeaderReceived = func(*fasthttp.RequestHeader) fasthttp.RequestConfig {
		// metrics take no body; 0 would set no limit here
		return fasthttp.RequestConfig{MaxRequestBodySize: 1}
	}
	return l
}

// serveOn serves until the server ends. It returns listen.ErrPlain if other machines can reach a
// listener without a certificate.
func (l *metricsListener) serveOn(on net.Listener) error {
	if err := listen.Protected(on, l.certificate); err != nil {
		return fmt.Errorf("the metrics' listener: %w", err)
	}
	return l.serve(on, refuseOperator)
}

func (l *metricsListener) handle(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.SetCanonical(headerCacheControl, noStore)
	switch {
	case !isSpoken(&ctx.Request.Header):
		ctx.SetConnectionClose()
		operator.Fail(ctx, api.MalformedRequest, "")
	case !l.mayWatch(ctx):
	case !ctx.IsGet() || string(ctx.Path()) != metricsPath:
		operator.Answer(ctx, fasthttp.StatusNotFound,
			map[string]string{"error": "this listener has GET /metrics alone"})
	default:
		listen.Authenticated(ctx.Conn())
		l.scrape(ctx)
	}
}

// mayWatch reports whether a client shows the metrics' token, if there is one, and answers the
// request otherwise. Wrong tokens count by address.
func (l *metricsListener) mayWatch(ctx *fasthttp.RequestCtx) bool {
	if l.token.IsNone() || l.token.Shown(&ctx.Request.Header) {
		return true
	}
	l.operator.RefuseToken(ctx, l.address(ctx),
		"the bearer token of the metrics is missing or wrong")
	return false
}

// broken answers a request that could not be read to its end.
func (l *metricsListener) broken(ctx *fasthttp.RequestCtx, err error) {
	f, about := l.classify(&ctx.Request.Header, err)
	operator.Fail(ctx, f, about)
}
