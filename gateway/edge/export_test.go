package edge

import (
	"net/netip"

	"github.com/valyala/fasthttp"

	"exchange/actors"
	"exchange/gateway/api"
	"exchange/gateway/ratelimit"
)

// Paths, bounds and texts.
const (
	MetricsPath                   = metricsPath
	PprofPath                     = pprofPath
	PprofRoute                    = pprofRoute
	BookPath                      = bookPath
	LeastVisit                    = leastVisit
	PagePolicy                    = pagePolicy
	OperatorConnectionsPerAddress = operatorConnectionsPerAddress
)

// FailureBuckets are those of failed private requests.
func (e *Edge) FailureBuckets() *ratelimit.Limiter { return e.limits.failures.buckets.Load() }

// SetOrdersInFlight changes that limit of streams opened afterwards.
func (e *Edge) SetOrdersInFlight(n int) { e.agreed.Stream.OrdersInFlight = n }

// ForgetStream has requests of the stream find none.
func (e *Edge) ForgetStream() { e.stream.sockets.Store(nil) }

// PollingClients returns a function that counts the polling clients of the present stream.
func (e *Edge) PollingClients() func() int {
	s := e.stream.sockets.Load()
	return func() int { return int(s.server.Stats().Polling) }
}

// AddressOf returns the address of a request's client.
func (e *Edge) AddressOf(ctx *fasthttp.RequestCtx) netip.Addr { return e.address(ctx) }

// SetAPI changes the engine and the API, and not the stream.
func (e *Edge) SetAPI(engine *actors.Engine, a *api.API) {
	e.engine.Store(engine)
	e.api.Store(a)
}

// Work checks an order as far as an edge and the API do, and answers as placed says, for tests of
// its allocations.
func (e *Edge) Work(ctx *fasthttp.RequestCtx, o *api.Operation, placed func(*api.Call) bool) bool {
	r := newRequest(e, ctx)
	r.BindAPI(e.api.Load())
	ok := r.acceptable() && r.checkBodySize() && r.identify(nil) && r.checkPermission(o) &&
		placed(&r.Call)
	r.send()
	return ok
}

// RouterPaths returns the router's paths by method.
func (p *PublicListener) RouterPaths() map[string][]string { return p.routes.List() }

// Handle answers a request.
func (l *OperatorListener) Handle(ctx *fasthttp.RequestCtx) { l.handle(ctx) }

// Head decides by a request's head about its body and its answer.
func (l *OperatorListener) Head(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	return l.head(h)
}

// Paths has the routes in the meter.
func (l *OperatorListener) Paths() map[string]int { return l.paths }
