package edge

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"exchange/gateway/api"
	"exchange/gateway/listen"
	"exchange/gateway/operator"
)

// The operator's listener. Over TCP every request carries the bearer token; over the operator's
// socket the kernel reports the user: see package listen. Package operator answers requests. The
// listener also has /metrics and /debug/pprof, in the forms that Prometheus and pprof read: see
// metrics.go and profiles.go.

// An OperatorListener serves the operator's API.
type OperatorListener struct {
	Listener
	Operator *operator.Server
	local    atomic.Bool // the listener is a socket, which needs no token
	Meter    *Meter
	paths    map[string]int          // number of each route in meter
	scrape   fasthttp.RequestHandler // of /metrics
	relayed  *fasthttp.Server        // server of requests relayed by other nodes: see ServeNode
}

// NewOperatorListener makes the operator's listener. scrape serves /metrics.
func NewOperatorListener(e *Edge, scrape fasthttp.RequestHandler) *OperatorListener {
	o := &e.opts
	l := &OperatorListener{scrape: scrape, Listener: Listener{Edge: e, Name: operators,
		Places: listen.NewPlaces(min(OperatorConnections, o.Connections), 0,
			operatorConnectionsPerAddress, o.TrustedProxies),
		Certificate: o.OperatorCertificate}}
	l.Operator = operator.New(operator.Options{Log: o.Log, Token: o.OperatorToken,
		Commit: o.Build.Commit, Archive: o.Archive, Cluster: o.Cluster, TaskStore: o.Tasks,
		Reloader: o.Reload, Clock: e.now})
	l.Meter, l.paths = newOperatorMeter()
	e.following = l.Operator.Follows
	l.Server = e.server(l.handle, l.broken, l.body)
	l.Server.HeaderReceived = l.head
	l.relayed = e.server(l.handle, l.broken, l.bodyOfNode)
	l.relayed.HeaderReceived = l.headOfNode
	return l
}

// newOperatorMeter makes the meter of the operator's listener, and the numbers of its routes by
// path.
func newOperatorMeter() (*Meter, map[string]int) {
	paths := map[string]int{metricsPath: 0, pprofRoute: 0}
	for _, route := range operator.Routes() {
		_, path, _ := strings.Cut(route, " ")
		paths[path] = 0
	}
	sorted := slices.Sorted(maps.Keys(paths))
	for i, path := range sorted {
		paths[path] = firstRoute + i
	}
	return newMeter(operators, sorted), paths
}

func (l *OperatorListener) routeNumber(ctx *fasthttp.RequestCtx) int {
	path := strings.TrimSuffix(string(ctx.Path()), "/")
	if path == pprofPath || strings.HasPrefix(path, pprofPath+"/") {
		path = pprofRoute
	}
	return l.paths[path] // 0, which is unmatched, for an unknown path
}

// Serve serves until the server ends. It returns listen.ErrPlain if the token would cross the
// network in clear text. On a Unix socket the kernel reports the user, and no token is needed.
func (l *OperatorListener) Serve(on net.Listener) error {
	if socket, ok := on.(*net.UnixListener); ok {
		l.local.Store(true)
		on = listen.OnSocket(socket, l.opts.HeaderBytes, l.log.Warn)
	}
	if err := listen.Protected(on, l.Certificate); err != nil {
		return fmt.Errorf("the operator's listener: %w", err)
	}
	return l.serve(on, refuseOperator)
}

// refuseOperator writes the response to a connection above the limit.
func refuseOperator(ctx *fasthttp.RequestCtx) { operator.Fail(ctx, api.TooManyConnections, "") }

// A nodeConn is a connection with a request that another node relays.
type nodeConn struct {
	net.Conn
	node string // authenticated name of the relaying node
}

// ServeNode serves one request that another node relays, and closes the connection.
func (l *OperatorListener) ServeNode(node string, conn net.Conn) {
	if err := l.relayed.ServeConn(&nodeConn{conn, node}); err != nil {
		l.log.Debug("an operator's request through another node has ended", "node", node,
			"error", err)
	}
}

// peerOf returns the client of a request. Wrong tokens relayed by another node are charged to the
// node's address.
func (l *OperatorListener) peerOf(ctx *fasthttp.RequestCtx) operator.Peer {
	if c, ok := ctx.Conn().(*nodeConn); ok {
		from, _ := netip.AddrFromSlice(ctx.RemoteIP())
		return operator.Peer{Node: c.node, Origin: operator.OriginOf(&ctx.Request.Header),
			Address: from.Unmap()}
	}
	if u, ok := listen.UserOf(ctx.Conn()); ok {
		return operator.Peer{Origin: fmt.Sprintf("user id %d", u.ID), Socket: true, User: u.ID,
			Allowed: u.MayOperate()}
	}
	return operator.Peer{Origin: ctx.RemoteIP().String(), Address: l.address(ctx)}
}

func (l *OperatorListener) handle(ctx *fasthttp.RequestCtx) {
	from := l.peerOf(ctx)
	if from.Node != "" {
		ctx.SetConnectionClose()
	}
	ctx.Response.Header.SetCanonical(headerCacheControl, cacheNoStore)
	if !isSpoken(&ctx.Request.Header) {
		lingerAfter(ctx)
		operator.Fail(ctx, api.MalformedRequest, "")
		l.Meter.count(0, malformed, api.MalformedRequest.Status, 0)
		return
	}
	came, number := l.now(), l.routeNumber(ctx)
	route := l.Meter.Routes[number]
	defer func() {
		took := l.now() - came
		if p := recover(); p != nil {
			id := l.reports.report(ctx, route, fasthttp.StatusInternalServerError, took, "error",
				fmt.Errorf("a handler panicked: %v", p), "stack", string(debug.Stack()))
			operator.Answer(ctx, fasthttp.StatusInternalServerError,
				map[string]string{"error": "internal error, request id " + id})
		}
		l.Meter.count(0, number, ctx.Response.StatusCode(), took)
	}()
	watch := watchRoute(ctx, l.scrape)
	if !l.Operator.Admit(ctx, from) {
		return
	}
	listen.Authenticated(ctx.Conn())
	// before Serve, because monitoring must work even while the engine or the store hangs
	if watch != nil && from.Node == "" {
		watch(ctx)
		return
	}
	if err := l.Operator.Serve(ctx, l.engine.Load(), from); err != nil {
		l.reports.report(ctx, route, ctx.Response.StatusCode(), l.now()-came, "error", err)
	}
}

// showsOperator reports whether a request's head proves an operator: the head has the token, or the
// request came over the socket.
func (l *OperatorListener) showsOperator(h *fasthttp.RequestHeader) bool {
	return l.local.Load() || l.Operator.ShowsToken(h)
}

// head returns the limits of a request's body and of the time of its answer, by the request's head.
// Only with the token is a body with a length read, and a long answer possible. Chunked bodies are
// always read, within the limits: after one that breaks off, the server no longer has the head.
func (l *OperatorListener) head(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	return l.headOf(h, l.showsOperator(h))
}

// headOfNode is head for a request that another node relays.
func (l *OperatorListener) headOfNode(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	return l.headOf(h, l.Operator.ShowsToken(h))
}

func (l *OperatorListener) headOf(h *fasthttp.RequestHeader, shown bool) fasthttp.RequestConfig {
	switch {
	case shown:
		path, _, _ := strings.Cut(string(h.RequestURI()), "?")
		return fasthttp.RequestConfig{WriteTimeout: operator.StreamTimeout,
			MaxRequestBodySize: max(l.opts.BodyBytes, operator.LongestBody(path))}
	case h.ContentLength() > 0:
		return fasthttp.RequestConfig{MaxRequestBodySize: 1} // 0 would mean the server's default
	}
	return fasthttp.RequestConfig{}
}

// body returns the maximum length of a body after a head, in bytes.
func (l *OperatorListener) body(h *fasthttp.RequestHeader) int { return l.bodyOf(l.head(h)) }

// bodyOfNode is body for a request that another node relays.
func (l *OperatorListener) bodyOfNode(h *fasthttp.RequestHeader) int {
	return l.bodyOf(l.headOfNode(h))
}

func (l *OperatorListener) bodyOf(c fasthttp.RequestConfig) int {
	return cmp.Or(c.MaxRequestBodySize, l.opts.BodyBytes)
}

// broken writes the response for a request that could not be read completely.
func (l *OperatorListener) broken(ctx *fasthttp.RequestCtx, err error) {
	f, about := l.classify(&ctx.Request.Header, err)
	from, h, number := l.peerOf(ctx), &ctx.Request.Header, malformed
	shown := from.Node == "" && l.local.Load() || l.Operator.ShowsToken(h)
	switch {
	case from.Socket && !from.Allowed:
		l.Operator.Admit(ctx, from)
	case f == api.BodyTooLarge && h.ContentLength() > 0 && !shown: // the body was not read
		l.Operator.Admit(ctx, from)
		number = l.routeNumber(ctx)
	default:
		operator.Fail(ctx, f, about)
	}
	l.Meter.count(0, number, ctx.Response.StatusCode(), 0)
}
