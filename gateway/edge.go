package gateway

import (
	"cmp"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/actors"
	"exchange/gateway/api"
	"exchange/gateway/operator"
)

// An edge holds the shared state of all listeners' requests.
type edge struct {
	opts Options
	log  *slog.Logger
	// nil: the exchange is starting, or is a follower that cannot serve yet
	api atomic.Pointer[api.API]
	// of operators and metrics; nil: the exchange is starting, or is a follower
	engine atomic.Pointer[actors.Engine]
	// a follower's view of the cluster; false: this node is not a follower
	following func() (operator.Standing, bool)
	limits    rateLimits

	mu       sync.Mutex        // serialises changes of the served API
	agreed   Limits            // of SetLimits; guarded by mu
	deposits map[string]string // of SetDepositInstructions; guarded by mu

	configured configured
	budget     *api.Budget  // of large answers
	now        func() int64 // for limits, and to time requests
	reports    reports
	meter      *meter // of the public listener
}

// A configured is the state of the process's configuration, for the metrics.
type configured struct {
	at    atomic.Int64 // time of the last reload, in Unix time
	stale atomic.Bool  // a reload was refused since
}

func newEdge(o Options) *edge {
	e := &edge{opts: o, log: o.Log, now: o.clock, agreed: o.Limits,
		deposits: o.DepositInstructions,
		budget:   api.NewBudget(cmp.Or(o.AnswersBytes, 256<<20))}
	if start := time.Now(); e.now == nil {
		e.now = func() int64 { return int64(time.Since(start)) }
	}
	e.opts.pollPatience = cmp.Or(o.pollPatience, pollPatience)
	e.limits.set(&o.Limits, o.RateEntries, e.now())
	e.reports.log, e.reports.now = o.Log, e.now
	e.configured.at.Store(time.Now().Unix())
	return e
}

// address returns the address of a request's client.
func (e *edge) address(ctx *fasthttp.RequestCtx) netip.Addr {
	return addressOf(ctx, e.opts.TrustedProxies)
}
