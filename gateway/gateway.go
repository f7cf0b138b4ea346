package gateway

import (
	"net"
	"time"

	"exchange/actors"
	"exchange/gateway/edge"
	"exchange/gateway/metrics"
	"exchange/gateway/sign"
)

// A Gateway serves the public API and the operator's. It may serve before there is an engine: until
// SetEngine each answer says that the exchange is starting. A node of a cluster alternates between
// leading, with an engine, and following: then SetEngine and SetFollower take turns.
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
// previous API and sockets. Reads and sockets are served from p; nil: nothing is. Clients' commands
// go to c; nil: public calls only. Operators are served where an engine is. SetEngine, SetFollower
// and Shutdown are called one after the other.
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
// would cross the network in clear text. On a socket it asks the kernel for users, and takes no
// token.
func (g *Gateway) ServeOperator(l net.Listener) error { return g.operators.Serve(l) }

// ServeNode answers one request of an operator that another node of the cluster has relayed, and
// closes the connection. The other node has proved its name. The operator's token is checked here.
func (g *Gateway) ServeNode(node string, conn net.Conn) { g.operators.ServeNode(node, conn) }

// ServeMetrics serves /metrics until Shutdown. It returns listen.ErrPlain if other machines can
// reach a listener without a certificate.
func (g *Gateway) ServeMetrics(l net.Listener) error { return g.watchers.Serve(l) }

// SetOperatorToken changes the bearer token: the previous one ends with this call. With "" no
// client is the operator.
func (g *Gateway) SetOperatorToken(token string) { g.operators.Operator.SetToken(token) }

// SetStandby names the owner of the store that the start waits for. "" ends that wait. Operators
// see the name; clients see that the exchange is starting.
func (g *Gateway) SetStandby(owner string) { g.operators.Operator.SetStandby(owner) }

// SetMetricsToken changes the token of the metrics' listener. With "" it needs none.
func (g *Gateway) SetMetricsToken(token string) { g.watchers.Token.Set(token) }

// Shutdown stops listening and lets pending answers out, at most for d.
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
