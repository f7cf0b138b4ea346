package gateway

import (
	"fmt"
	"net"
	"runtime/debug"

	"github.com/valyala/fasthttp"

	"exchange/gateway/api"
	"exchange/gateway/operator"
)

// The operator's listener. Over TCP every request carries the bearer token; over the operator's
// socket the system tells the user (socket.go). Package operator answers requests. The listener
// also has /metrics and /debug/pprof, in the forms that Prometheus and pprof read: see metrics.go.

// Bounds of the operator's listener. The public listener's do not apply, because operators and
// monitoring are few. This machine's own addresses may have all connections.
const (
	OperatorConnections           = 64
	operatorConnectionsPerAddress = OperatorConnections / 4
)

// ServeOperator serves the operator's API until Shutdown. It returns ErrPlain if the token could be
// read on the way. On a socket it asks the system for users, and takes no token.
func (g *Gateway) ServeOperator(l net.Listener) error {
	if socket, ok := l.(*net.UnixListener); ok {
		g.local.Store(true)
		l = &socketListener{UnixListener: socket, warn: g.log.Warn, most: g.opts.HeaderBytes}
	}
	if g.opts.OperatorCertificate == nil && !onlyHere(l) {
		return fmt.Errorf("the operator's listener: %w", ErrPlain)
	}
	return g.operatorServer.Serve(g.bounded(l, g.operatorPlaces, g.opts.OperatorCertificate,
		func(ctx *fasthttp.RequestCtx) { operator.Fail(ctx, api.TooManyConnections, "") }))
}

// SetOperatorToken changes the bearer token: the token before ends with this call. With "" no
// client is the operator.
func (g *Gateway) SetOperatorToken(token string) { g.operator.SetToken(token) }

// SetStandby names the owner of the store for which the start waits. "" ends that wait. Operators
// are told the name; clients are told that the exchange is starting.
func (g *Gateway) SetStandby(owner string) { g.operator.SetStandby(owner) }

// peerOf returns the client of a request to the operator's listener.
func (g *Gateway) peerOf(ctx *fasthttp.RequestCtx) operator.Peer {
	if c := socketOf(ctx); c != nil {
		return operator.Peer{Origin: fmt.Sprintf("user id %d", c.user), Socket: true, User: c.user,
			Allowed: c.mayOperate()}
	}
	return operator.Peer{Origin: ctx.RemoteIP().String(), Address: g.address(ctx)}
}

func (g *Gateway) handleOperator(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.SetCanonical(headerCacheControl, noStore)
	if !isSpoken(&ctx.Request.Header) {
		lingerAfter(ctx, placeOf(ctx.Conn()))
		operator.Fail(ctx, api.MalformedRequest, "")
		g.operatorMeter.count(0, malformed, api.MalformedRequest.Status, 0)
		return
	}
	came, number := g.now(), g.operatorRouteNumber(ctx)
	route := g.operatorMeter.routes[number]
	defer func() {
		took := g.now() - came
		if p := recover(); p != nil {
			id := g.report(ctx, route, fasthttp.StatusInternalServerError, took, "error",
				fmt.Errorf("a handler panicked: %v", p), "stack", string(debug.Stack()))
			operator.Answer(ctx, fasthttp.StatusInternalServerError,
				map[string]string{"error": "internal error, request id " + id})
		}
		g.operatorMeter.count(0, number, ctx.Response.StatusCode(), took)
	}()
	watch, from := g.watchRoute(ctx), g.peerOf(ctx)
	if !g.operator.Admit(ctx, from) {
		return
	}
	known(ctx.Conn())
	// even while the engine or the store stands still, because that is its subject
	if watch != nil {
		watch(ctx)
		return
	}
	if err := g.operator.Serve(ctx, g.engine(), from); err != nil {
		g.report(ctx, route, ctx.Response.StatusCode(), g.now()-came, "error", err)
	}
}

// showsOperator reports whether a request's head shows an operator: the head has the token, or the
// request came over the socket.
func (g *Gateway) showsOperator(h *fasthttp.RequestHeader) bool {
	return g.local.Load() || g.operator.ShowsToken(h)
}

// operatorHead decides by a request's head how much of the body is read, and how long the answer
// may take. With the token the body is read, and the answer may take as long as the long answers.
// Chunks are read either way, within the limits, because a body that breaks off leaves the server
// without the head.
func (g *Gateway) operatorHead(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	switch {
	case g.showsOperator(h):
		return fasthttp.RequestConfig{WriteTimeout: operator.StreamTimeout}
	case h.ContentLength() > 0:
		return fasthttp.RequestConfig{MaxRequestBodySize: 1} // 0 would be no limit of its own
	}
	return fasthttp.RequestConfig{}
}

// operatorBody returns the length of the longest body that is read after a head, in bytes.
func (g *Gateway) operatorBody(h *fasthttp.RequestHeader) int {
	if most := g.operatorHead(h).MaxRequestBodySize; most > 0 {
		return most
	}
	return g.opts.BodyBytes
}

// brokenOperatorRequest answers a request that could not be read to its end.
func (g *Gateway) brokenOperatorRequest(ctx *fasthttp.RequestCtx, err error) {
	f, about := g.classify(err)
	from, h, number := g.peerOf(ctx), &ctx.Request.Header, malformed
	switch {
	case from.Socket && !from.Allowed:
		g.operator.Admit(ctx, from)
	case f == api.BodyTooLarge && h.ContentLength() > 0 && !g.showsOperator(h): // it was not read
		g.operator.Admit(ctx, from)
		number = g.operatorRouteNumber(ctx)
	default:
		operator.Fail(ctx, f, about)
	}
	g.operatorMeter.count(0, number, ctx.Response.StatusCode(), 0)
}
