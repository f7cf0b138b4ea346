package edge

import (
	"net/netip"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"exchange/actors"
	"exchange/gateway/api"
	"exchange/gateway/ratelimit"
)

// ForTests are options for tests of gateway.
type ForTests struct {
	// Clock counts for rates: nanoseconds of a monotonic clock. nil: the process's own.
	Clock func() int64
}

// Paths, bounds and texts, for tests of gateway.
const (
	MetricsPath                   = metricsPath
	PprofPath                     = pprofPath
	PprofRoute                    = pprofRoute
	StreamPath                    = streamPath
	BookPath                      = bookPath
	MaxPreflight                  = maxPreflight
	FailuresPerSecond             = failuresPerSecond
	LeastVisit                    = leastVisit
	PagePolicy                    = pagePolicy
	OperatorConnectionsPerAddress = operatorConnectionsPerAddress
)

// SiteRoutes are the web pages' routes in the meter, for tests of gateway.
func SiteRoutes() []string { return siteRoutes() }

// CurrentAPI holds the served API, for tests of gateway.
func (e *Edge) CurrentAPI() *atomic.Pointer[api.API] { return &e.api }

// Budget is that of large answers, for tests of gateway.
func (e *Edge) Budget() *api.Budget { return e.budget }

// SetConfigured sets when the configuration was last applied, in Unix time, for tests of gateway.
func (e *Edge) SetConfigured(at int64) { e.configured.at.Store(at) }

// PublicBuckets are those of public requests, for tests of gateway.
func (e *Edge) PublicBuckets() *atomic.Pointer[ratelimit.Limiter] {
	return &e.limits.public.buckets
}

// FailureBuckets are those of failed private requests, for tests of gateway.
func (e *Edge) FailureBuckets() *ratelimit.Limiter { return e.limits.failures.buckets.Load() }

// SetOrdersInFlight changes that limit of streams opened afterwards, for tests of gateway.
func (e *Edge) SetOrdersInFlight(n int) { e.agreed.Stream.OrdersInFlight = n }

// ForgetStream has requests of the stream find none, for tests of gateway.
func (e *Edge) ForgetStream() { e.stream.sockets.Store(nil) }

// PollingClients returns a function that counts the polling clients of the present stream, for
// tests of gateway.
func (e *Edge) PollingClients() func() int {
	s := e.stream.sockets.Load()
	return func() int { return int(s.server.Stats().Polling) }
}

// HandlerOf returns the handler of an operation, for tests of gateway.
func (e *Edge) HandlerOf(o *api.Operation) fasthttp.RequestHandler {
	return e.handler(&endpoint{Operation: *o}, false)
}

// AddressOf returns the address of a request's client, for tests of its allocations.
func (e *Edge) AddressOf(ctx *fasthttp.RequestCtx) netip.Addr { return e.address(ctx) }

// SetAPI changes the engine and the API, and not the stream, for tests of gateway.
func (e *Edge) SetAPI(engine *actors.Engine, a *api.API) {
	e.engine.Store(engine)
	e.api.Store(a)
}

// Work checks an order as far as an edge and the API do, and answers as placed says, for tests of
// its allocations.
func (e *Edge) Work(ctx *fasthttp.RequestCtx, o *api.Operation, placed func(*api.Call) bool) bool {
	r := newRequest(e, ctx)
	r.Begin(e.api.Load())
	ok := r.acceptable() && r.sized() && r.identify(nil) && r.permitted(o) && placed(&r.Call)
	r.send()
	return ok
}

// Table returns the operations of each path, for tests of gateway: its GET, or only method, and a POST beside
// it.
func (p *PublicListener) Table() map[string][]*api.Operation {
	all := map[string][]*api.Operation{}
	for path, e := range p.endpoints {
		all[path] = append(all[path], &e.Operation)
		if e.change != nil {
			all[path] = append(all[path], e.change)
		}
	}
	return all
}

// RouterPaths returns the router's paths by method, for tests of gateway.
func (p *PublicListener) RouterPaths() map[string][]string { return p.routes.List() }

// Route answers a request, for tests of gateway.
func (p *PublicListener) Route(ctx *fasthttp.RequestCtx) { p.route(ctx) }

// Handle answers a request, for tests of gateway.
func (l *OperatorListener) Handle(ctx *fasthttp.RequestCtx) { l.handle(ctx) }

// Head decides by a request's head about its body and its answer, for tests of gateway.
func (l *OperatorListener) Head(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	return l.head(h)
}

// Paths has the routes in the meter, for tests of gateway.
func (l *OperatorListener) Paths() map[string]int { return l.paths }
