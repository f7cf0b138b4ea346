package gateway

import (
	"net"
	"time"

	"exchange/actors"
	"exchange/gateway/edge"
	"exchange/gateway/metrics"
	"exchange/gateway/sign"
)

// A Gateway serves the public API and the operator's. Until SetEngine or SetFollower each answer
// says that the exchange is starting. A node of a cluster calls SetEngine when it becomes leader,
// and SetFollower when it becomes a follower.
type Gateway struct {
	*edge.Edge
	public    *edge.PublicListener
	operators *edge.OperatorListener
	watchers  *edge.MetricsListener
}

// KeyMaterial returns a key's prepared secret, with which signatures are verified, for
// actors.Options.
func KeyMaterial(secret []byte) any { return sign.New(secret) }

// New makes a gateway. It does not listen yet.
func New(o edge.Options) *Gateway {
	e := edge.New(o)
	c := metrics.New(e)
	scrape := metrics.NewScrape(c, o.Log)
	g := &Gateway{Edge: e, public: edge.NewPublicListener(e),
		operators: edge.NewOperatorListener(e, scrape)}
	c.Operator = g.operators.Operator
	g.watchers = edge.NewMetricsListener(e, c.Operator, scrape)
	c.Meters = []*edge.Meter{g.public.Meter, g.operators.Meter}
	c.Listeners = g.listeners()
	return g
}

func (g *Gateway) listeners() []*edge.Listener {
	return []*edge.Listener{&g.public.Listener, &g.operators.Listener, &g.watchers.Listener}
}

// SetFollower makes this process a follower in Options.Cluster, until SetEngine. It closes the
// previous API and sockets. Reads and sockets are served from p; nil: none are. Clients' commands
// go to c; nil: public calls only. Operators' requests are relayed to the leader. SetEngine,
// SetFollower and Shutdown are not called concurrently.
func (g *Gateway) SetFollower(p *actors.Public, c actors.Commands) {
	g.operators.Operator.SetFollower(true, p != nil && c != nil)
	g.Follow(p, c)
}

// SetEngine opens the API and the stream.
func (g *Gateway) SetEngine(e *actors.Engine) {
	g.Lead(e)
	g.operators.Operator.SetFollower(false, false)
}

// Serve serves the public API until Shutdown.
func (g *Gateway) Serve(l net.Listener) error { return g.public.Serve(l) }

// ServeOperator serves the operator's API until Shutdown. It returns listen.ErrPlain if the token
// would cross the network in clear text. On a Unix socket the kernel reports the user, and no token
// is needed.
func (g *Gateway) ServeOperator(l net.Listener) error { return g.operators.Serve(l) }

// ServeNode serves one operator's request that another node of the cluster relays, and closes the
// connection. The caller has authenticated the node; ServeNode checks the operator's token.
func (g *Gateway) ServeNode(node string, conn net.Conn) { g.operators.ServeNode(node, conn) }

// ServeMetrics serves /metrics until Shutdown. It returns listen.ErrPlain if other machines can
// reach a listener without a certificate.
func (g *Gateway) ServeMetrics(l net.Listener) error { return g.watchers.Serve(l) }

// SetOperatorToken replaces the bearer token: the previous one is invalid from now on. With "" no
// token is accepted.
func (g *Gateway) SetOperatorToken(token string) { g.operators.Operator.SetToken(token) }

// SetStandby sets the name of the store's owner, for whose end this standby waits; "": the process
// is no standby. Operators see the name; clients see that the exchange is starting.
func (g *Gateway) SetStandby(owner string) { g.operators.Operator.SetStandby(owner) }

// SetMetricsToken replaces the token of the metrics' listener; "": none is required.
func (g *Gateway) SetMetricsToken(token string) { g.watchers.Token.Set(token) }

// Shutdown stops listening, and waits at most d until pending answers are sent.
func (g *Gateway) Shutdown(d time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.CloseStream()
		for _, l := range g.listeners() {
			l.Server.Shutdown() //nolint:errcheck // the listener is gone either way
		}
	}()
	select {
	case <-done:
	case <-time.After(d):
	}
}
