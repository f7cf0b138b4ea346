package gateway

import (
	"cmp"
	"log/slog"
	"net/netip"
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
	agreed    Limits       // of SetLimits; of its caller
	budget    *api.Budget  // of large answers
	now       func() int64 // for all of them, and for how long requests take
	reports   reports
	meter     *meter // of the public listener
}

func newEdge(o Options) *edge {
	e := &edge{opts: o, log: o.Log, now: o.clock, agreed: o.Limits,
		budget: api.NewBudget(cmp.Or(o.AnswersBytes, 256<<20))}
	if start := time.Now(); e.now == nil {
		e.now = func() int64 { return int64(time.Since(start)) }
	}
	e.opts.pollPatience = cmp.Or(o.pollPatience, pollPatience)
	e.limits.set(&o.Limits, o.RateEntries)
	e.reports.log, e.reports.now = o.Log, e.now
	return e
}

// address returns the address of a request's client.
func (e *edge) address(ctx *fasthttp.RequestCtx) netip.Addr {
	return addressOf(ctx, e.opts.TrustedProxies)
}
