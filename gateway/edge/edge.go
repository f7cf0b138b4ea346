package edge

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

// An Edge holds the shared state of all listeners' requests.
type Edge struct {
	opts Options
	log  *slog.Logger
	// nil: the exchange is starting, or is a follower that cannot serve yet
	api atomic.Pointer[api.API]
	// engine of operators' requests and metrics; nil: the exchange is starting, or is a follower
	engine atomic.Pointer[actors.Engine]
	// a follower's view of the cluster; false: this node is not a follower
	following func() (operator.Standing, bool)
	limits    rateLimits
	stream    *mount

	mu       sync.Mutex        // serialises changes of the served API
	agreed   Limits            // set by SetLimits; guarded by mu
	deposits map[string]string // deposit instructions by currency; guarded by mu

	configured configured
	budget     *api.Budget  // of large answers
	now        func() int64 // clock of limits and of requests' durations, in nanoseconds
	reports    reports
	Meter      *Meter // of the public listener
}

// A configured holds the state of the process's configuration, for the metrics.
type configured struct {
	at    atomic.Int64 // time of the last reload, in Unix time
	stale atomic.Bool  // a later reload was refused
}

// New makes an edge. Its listeners are made with it.
func New(o Options) *Edge {
	e := &Edge{opts: o, log: o.Log, now: o.ForTests.Clock, agreed: o.Limits,
		deposits: o.DepositInstructions,
		budget:   api.NewBudget(cmp.Or(o.AnswersBytes, 256<<20))}
	if start := time.Now(); e.now == nil {
		e.now = func() int64 { return int64(time.Since(start)) }
	}
	e.limits.set(&o.Limits, o.RateEntries, e.now())
	e.reports.log, e.reports.now = o.Log, e.now
	e.configured.at.Store(time.Now().Unix())
	e.stream = &mount{Edge: e}
	return e
}

// Follow closes the previous API and sockets, and opens those of a follower: see
// Gateway.SetFollower.
func (e *Edge) Follow(p *actors.Public, c actors.Commands) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.api.Store(nil)
	e.engine.Store(nil)
	e.stream.end()
	if p != nil {
		e.open(api.New(p, c))
	}
}

// Lead opens the API and the stream of an engine.
func (e *Edge) Lead(engine *actors.Engine) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.engine.Store(engine)
	e.open(api.New(engine.Public, engine).Lead(engine.Ready))
}

// open opens an API and the stream. The caller holds mu.
func (e *Edge) open(a *api.API) {
	a.Configure(e.rates(), e.deposits)
	e.api.Store(a.Demo(e.opts.Demo))
	e.stream.sockets.Store(e.stream.newSockets(a))
}

// rates returns the rates published to clients. The caller holds mu.
func (e *Edge) rates() api.Rates {
	o := &e.agreed
	return api.Rates{Public: api.Rate(o.PublicRate), Reads: api.Rate(o.ReadRate),
		Commands: api.Rate(o.CommandRate), Cancels: api.Rate(o.CancelRate)}
}

// SetLimits changes the limits on requests, and those of streams opened afterwards. Any goroutine
// may call it.
func (e *Edge) SetLimits(l Limits) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.limits.set(&l, e.opts.RateEntries, e.now())
	e.agreed = l
	e.publish()
}

// SetDepositInstructions replaces the deposit instructions, and publishes them to clients. Any
// goroutine may call it.
func (e *Edge) SetDepositInstructions(texts map[string]string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deposits = texts
	e.publish()
}

// publish publishes the current configuration to clients. The caller holds mu.
func (e *Edge) publish() {
	if a := e.api.Load(); a != nil {
		a.Configure(e.rates(), e.deposits)
	}
}

// Reconfigured updates the metrics: a configuration was applied now, or refused.
func (e *Edge) Reconfigured(taken bool) {
	if taken {
		e.configured.at.Store(time.Now().Unix())
	}
	e.configured.stale.Store(!taken)
}

// CloseStream notifies the clients of the stream and closes it.
func (e *Edge) CloseStream() { e.stream.close() }

// Options returns the options.
func (e *Edge) Options() *Options { return &e.opts }

// address returns the address of a request's client.
func (e *Edge) address(ctx *fasthttp.RequestCtx) netip.Addr {
	return addressOf(ctx, e.opts.TrustedProxies)
}
