package edge

import (
	"net/http/pprof"
	"strings"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
)

// Monitoring on the operator's listener: /metrics for Prometheus, and Go's profiles below
// /debug/pprof. Both answer before there is an engine, and while the store does not answer.
// docs/operations/watch.md has the signs to watch for.

const (
	metricsPath = "/metrics"
	pprofPath   = "/debug/pprof"
	pprofRoute  = pprofPath + "/{profile}"
)

// watchRoute returns the handler of a path for monitoring, nil for other paths. scrape answers
// /metrics.
func watchRoute(ctx *fasthttp.RequestCtx, scrape fasthttp.RequestHandler) fasthttp.RequestHandler {
	path := string(ctx.Path())
	switch {
	case !ctx.IsGet():
	case path == metricsPath:
		return scrape
	case path == pprofPath+"/profile":
		return cpuProfile
	case path == pprofPath+"/trace":
		return executionTrace
	case strings.HasPrefix(path, pprofPath+"/"):
		return profiles
	}
	return nil
}

// net/http/pprof also has the command line. It is left out because a store's password may be in it.
var (
	profiles       = fasthttpadaptor.NewFastHTTPHandlerFunc(pprof.Index)
	cpuProfile     = fasthttpadaptor.NewFastHTTPHandlerFunc(pprof.Profile)
	executionTrace = fasthttpadaptor.NewFastHTTPHandlerFunc(pprof.Trace)
)
