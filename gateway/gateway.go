package gateway

import (
	"net"
	"time"

	"exchange/actors"
	"exchange/gateway/api"
	"exchange/gateway/sign"
)

// A Gateway serves the public API and the operator's. It may serve before there is an engine: until
// SetEngine each answer says that the exchange is starting. A node of a cluster alternates between
// leading, with an engine, and following: then SetEngine and SetFollower take turns.
type Gateway struct {
	*edge
	stream    *mount
	public    *publicListener
	operators *operatorListener
	watchers  *metricsListener
}

// KeyMaterial returns a key's prepared secret, with which signatures are verified, for
// actors.Options.
func KeyMaterial(secret []byte) any { return sign.New(secret) }

// New makes a gateway. It does not listen yet.
func New(o Options) *Gateway {
	e := newEdge(o)
	g := &Gateway{edge: e, stream: &mount{edge: e}}
	c := &collector{edge: e, stream: g.stream, surveys: poll[survey]{fresh: pollFresh},
		disks: poll[[]disk]{fresh: pollFresh}}
	scrape := newScrape(c, o.Log)
	g.public = newPublicListener(e, g.stream)
	g.operators = newOperatorListener(e, scrape)
	e.following = g.operators.operator.Follows
	g.watchers = newMetricsListener(e, g.operators.operator, scrape)
	c.operator = g.operators.operator
	c.meters = []*meter{e.meter, g.operators.meter}
	c.listeners = []*listener{&g.public.listener, &g.operators.listener, &g.watchers.listener}
	return g
}

// SetFollower makes this process a follower in Options.Cluster, until SetEngine. It closes the
// previous API and sockets. Reads and sockets are served from p; nil: nothing is. Clients' commands
// go to c; nil: public calls only. Operators are served where an engine is. SetEngine, SetFollower
// and Shutdown are called one after the other.
func (g *Gateway) SetFollower(p *actors.Public, c actors.Commands) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.operators.operator.SetFollower(true, p != nil && c != nil)
	g.api.Store(nil)
	g.engine.Store(nil)
	g.stream.end()
	if p != nil {
		g.open(api.New(p, c))
	}
}

// open opens an API and the stream. The caller holds mu.
func (g *Gateway) open(a *api.API) {
	a.Configure(g.rates(), g.deposits)
	g.api.Store(a.Demo(g.opts.Demo))
	g.stream.sockets.Store(g.stream.newSockets(a))
}

// rates are the rates published to clients. The caller holds mu.
func (g *Gateway) rates() api.Rates {
	o := &g.agreed
	return api.Rates{Public: api.Rate(o.PublicRate), Reads: api.Rate(o.ReadRate),
		Commands: api.Rate(o.CommandRate), Cancels: api.Rate(o.CancelRate)}
}

// SetLimits changes the limits on requests, and those of streams opened afterwards. Any goroutine
// may call it.
func (g *Gateway) SetLimits(l Limits) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limits.set(&l, g.opts.RateEntries, g.now())
	g.agreed = l
	g.publish()
}

// SetDepositInstructions changes those of the options, and publishes them to clients at once. Any
// goroutine may call it.
func (g *Gateway) SetDepositInstructions(texts map[string]string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deposits = texts
	g.publish()
}

// publish publishes the present configuration to clients. The caller holds mu.
func (g *Gateway) publish() {
	if a := g.api.Load(); a != nil {
		a.Configure(g.rates(), g.deposits)
	}
}

// SetEngine opens the API and the stream.
func (g *Gateway) SetEngine(e *actors.Engine) {
	defer g.operators.operator.SetFollower(false, false)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.engine.Store(e)
	g.open(api.New(e.Public, e).Lead(e.Ready))
}

// Reconfigured updates the metrics: a configuration was applied now, or refused.
func (g *Gateway) Reconfigured(taken bool) {
	if taken {
		g.configured.at.Store(time.Now().Unix())
	}
	g.configured.stale.Store(!taken)
}

// Serve serves the public API until Shutdown.
func (g *Gateway) Serve(l net.Listener) error { return g.public.serveOn(l) }

// ServeOperator serves the operator's API until Shutdown. It returns listen.ErrPlain if the token
// would cross the network in clear text. On a socket it asks the kernel for users, and takes no
// token.
func (g *Gateway) ServeOperator(l net.Listener) error { return g.operators.serveOn(l) }

// ServeNode answers one request of an operator that another node of the cluster has relayed, and
// closes the connection. The other node has proved its name. The operator's token is checked here.
func (g *Gateway) ServeNode(node string, conn net.Conn) { g.operators.serveNode(node, conn) }

// ServeMetrics serves /metrics until Shutdown. It returns listen.ErrPlain if other machines can
// reach a listener without a certificate.
func (g *Gateway) ServeMetrics(l net.Listener) error { return g.watchers.serveOn(l) }

// SetOperatorToken changes the bearer token: the previous one ends with this call. With "" no
// client is the operator.
func (g *Gateway) SetOperatorToken(token string) { g.operators.operator.SetToken(token) }

// SetStandby names the owner of the store that the start waits for. "" ends that wait. Operators
// see the name; clients see that the exchange is starting.
func (g *Gateway) SetStandby(owner string) { g.operators.operator.SetStandby(owner) }

// SetMetricsToken changes the token of the metrics' listener. With "" it needs none.
func (g *Gateway) SetMetricsToken(token string) { g.watchers.token.Set(token) }

// Shutdown stops listening and lets pending answers out, at most for d.
func (g *Gateway) Shutdown(d time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.stream.close()
		for _, l := range []*listener{&g.public.listener, &g.operators.listener,
			&g.watchers.listener} {
			l.server.Shutdown() //nolint:errcheck // the listener is gone either way
		}
	}()
	select {
	case <-done:
	case <-time.After(d):
	}
}
