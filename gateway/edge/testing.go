package edge

import (
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"exchange/gateway/api"
	"exchange/gateway/ratelimit"
)

// ForTests are options for tests of gateway.
type ForTests struct {
	// Clock is the clock of rate limits, in nanoseconds of a monotonic clock. nil: the process's
	// own.
	Clock func() int64
}

// Paths, bounds and texts, for tests of gateway.
const (
	StreamPath        = streamPath
	MaxPreflight      = maxPreflight
	FailuresPerSecond = failuresPerSecond
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

// HandlerOf returns the handler of an operation, for tests of gateway.
func (e *Edge) HandlerOf(o *api.Operation) fasthttp.RequestHandler {
	return e.handler(&endpoint{Operation: *o}, false)
}

// Table returns the operations of each path, for tests of gateway: its GET, or only method, and a
// POST beside it.
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

// Route serves a request, for tests of gateway.
func (p *PublicListener) Route(ctx *fasthttp.RequestCtx) { p.route(ctx) }
