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

// An edge has what the requests of all listeners share.
type edge struct {
	opts Options
	log  *slog.Logger
	// nil: the exchange is starting, or follows another node and knows too little
	api atomic.Pointer[api.API]
	// of operators and metrics; nil: the exchange is starting, or follows another node
	engine atomic.Pointer[actors.Engine]
	// what a node knows that follows another one; false: this one does not
	following func() (operator.Standing, bool)
	limits    rateLimits

	mu       sync.Mutex        // orders the changes of what is served
	agreed   Limits            // of SetLimits; guarded by mu
	deposits map[string]string // of SetDepositInstructions; guarded by mu

	configured configured
	budget     *api.Budget  // of large answers
	now        func() int64 // for all of them, and for how long requests take
	reports    reports
	meter      *meter // of the public listener
}

// A configured tells the metrics of the process's configuration.
type configured struct {
	at    atomic.Int64 // when it was last taken up, in Unix time
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
