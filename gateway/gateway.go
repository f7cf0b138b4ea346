package gateway

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"exchange/actors"
	"exchange/gateway/sign"
)

// Options are what a Gateway is made with.
type Options struct {
	Log           *slog.Logger
	BodyBytes     int // largest body
	HeaderBytes   int // largest head of a request
	Connections   int // most connections at once
	IdleTimeout   time.Duration
	ReadTimeout   time.Duration // for a whole request to arrive
	WriteTimeout  time.Duration // for an answer to be taken
	OperatorToken string        // bearer token of the operator's listener
}

// A Gateway serves the public API and the operator's. It may be made and serve before there is an
// engine: until SetEngine it answers that the exchange is starting.
type Gateway struct {
	opts     Options
	log      *slog.Logger
	engine   atomic.Pointer[actors.Engine]
	static   atomic.Pointer[static]
	public   *fasthttp.Server
	operator *fasthttp.Server
	routes   *router.Router
}

// KeyMaterial makes what signatures are verified with, for actors.Options.
func KeyMaterial(secret []byte) any { return sign.New(secret) }

// New makes a gateway. It does not listen yet.
func New(o Options) *Gateway {
	g := &Gateway{opts: o, log: o.Log}
	g.routes = g.router()
	g.public = g.server(g.route, g.brokenRequest)
	g.operator = g.server(g.handleOperator, g.brokenOperatorRequest)
	return g
}

func (g *Gateway) server(h fasthttp.RequestHandler, broken func(*fasthttp.RequestCtx, error)) *fasthttp.Server {
	return &fasthttp.Server{
		Handler: h, ErrorHandler: broken, Logger: serverLog{g.log},
		Concurrency: g.opts.Connections, ReadBufferSize: g.opts.HeaderBytes, MaxRequestBodySize: g.opts.BodyBytes,
		ReadTimeout: g.opts.ReadTimeout, WriteTimeout: g.opts.WriteTimeout, IdleTimeout: g.opts.IdleTimeout,
		NoDefaultServerHeader: true, NoDefaultContentType: true, DisablePreParseMultipartForm: true,
		CloseOnShutdown: true, KeepHijackedConns: true,
		SecureErrorLogMessage: true, // or a broken request is logged with its signature or bearer token
	}
}

// serverLog keeps the server's own words, which come from clients' broken requests, at debug level.
type serverLog struct{ log *slog.Logger }

func (l serverLog) Printf(format string, args ...any) {
	l.log.Debug("http server", "text", strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// SetEngine opens the API.
func (g *Gateway) SetEngine(e *actors.Engine) {
	g.static.Store(newStatic(e))
	g.engine.Store(e)
}

// Serve serves the public API until Shutdown.
func (g *Gateway) Serve(l net.Listener) error { return g.public.Serve(l) }

// ServeOperator serves the operator's API until Shutdown.
func (g *Gateway) ServeOperator(l net.Listener) error { return g.operator.Serve(l) }

// Shutdown stops listening and lets the answers that are on their way out, at most for d.
func (g *Gateway) Shutdown(d time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.public.Shutdown()   //nolint:errcheck // the listener is gone either way
		g.operator.Shutdown() //nolint:errcheck
	}()
	select {
	case <-done:
	case <-time.After(d):
	}
}

// An endpoint is what a path can do. Every path of the API is answered with and without its last slash.
type endpoint struct {
	get  func(*request)
	post func(*request)
	// private endpoints need a signed request, of a key with this permission.
	private    bool
	permission uint8
}

func (e *endpoint) allow() string {
	methods := make([]string, 0, 4)
	if e.get != nil {
		methods = append(methods, "GET", "HEAD")
	}
	if e.post != nil {
		methods = append(methods, "POST")
	}
	return strings.Join(append(methods, "OPTIONS"), ", ")
}

// endpoints are the routes of the public listener. `{x}` stands for one path segment.
func (g *Gateway) endpoints() map[string]*endpoint {
	read, trade := permissionRead, permissionTrade
	return map[string]*endpoint{
		"/api/v1/currencies":       {get: g.currencies},
		"/api/v1/pairs":            {get: g.pairs},
		"/api/v1/orderbook/{pair}": {get: g.orderBook},
		"/api/v1/exchanges":        {get: g.trades},
		"/api/v1/wallets":          {get: g.wallets, private: true, permission: read},
		"/api/v1/orders/own":       {get: g.ownOrders, private: true, permission: read},
		"/api/v1/order/{pk}":       {get: g.order, private: true, permission: read},
		"/api/v1/exchanges/own":    {get: g.ownTrades, private: true, permission: read},
		"/api/v1/order":            {post: g.placeOrder, private: true, permission: trade},
		"/api/v1/order-cancel":     {post: g.cancelOrder, private: true, permission: trade},
		"/healthz":                 {get: g.healthz},
		"/readyz":                  {get: g.readyz},
	}
}

func (g *Gateway) router() *router.Router {
	r := router.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath, r.HandleMethodNotAllowed, r.HandleOPTIONS = false, false, false, false
	for path, e := range g.endpoints() {
		r.Handle(router.MethodWild, path, g.handler(e, strings.Contains(path, "{")))
	}
	return r
}

// route finds a request's endpoint: by its path without the last slash, whatever the method.
func (g *Gateway) route(ctx *fasthttp.RequestCtx) {
	path := ctx.URI().PathOriginal()
	if n := len(path); n > 1 && path[n-1] == '/' {
		path = path[:n-1]
	}
	if h, _ := g.routes.Lookup(router.MethodWild, unsafe.String(unsafe.SliceData(path), len(path)), ctx); h != nil {
		h(ctx)
		return
	}
	r := newRequest(g, ctx)
	r.fail(NotFound, "")
	r.send()
}

// handler runs the checks that every endpoint has, in their order, and then the endpoint.
func (g *Gateway) handler(e *endpoint, variable bool) fasthttp.RequestHandler {
	allow := e.allow()
	return func(ctx *fasthttp.RequestCtx) {
		r := newRequest(g, ctx)
		defer r.recover()
		if variable && !g.exists(ctx) {
			r.fail(NotFound, "")
			r.send()
			return
		}
		run := e.get
		switch {
		case ctx.IsGet() || ctx.IsHead():
		case ctx.IsPost():
			run = e.post
		case ctx.IsOptions():
			r.preflight(allow)
			r.send()
			return
		default:
			run = nil
		}
		switch {
		case run == nil:
			ctx.Response.Header.Set("Allow", allow)
			r.fail(MethodNotAllowed, string(ctx.Method()))
		case !r.acceptable():
			r.fail(NotAcceptable, "")
		case ctx.UserValue(tooLarge) != nil:
			r.fail(BodyTooLarge, ctx.UserValue(tooLarge).(string))
		case !g.begin(r, e):
		case e.private && !r.authenticate(e.permission):
		case e.private && !ctx.IsPost() && !r.confirmed():
		default:
			run(r)
		}
		r.send()
	}
}

// exists is false of a path whose variable part can name nothing: an order that is no positive integer,
// a pair that is not configured. Whatever else is wrong with such a request, its path comes first.
func (g *Gateway) exists(ctx *fasthttp.RequestCtx) bool {
	if pk, ok := ctx.UserValue("pk").(string); ok {
		id, ok := integer([]byte(pk))
		return ok && id > 0
	}
	pair, ok := ctx.UserValue("pair").(string)
	engine := g.engine.Load()
	return !ok || engine == nil || engine.Pair([]byte(pair)) != nil
}

// begin gives the request its engine; false if it was answered.
func (g *Gateway) begin(r *request, e *endpoint) bool {
	r.engine, r.static = g.engine.Load(), g.static.Load()
	if r.engine == nil && (e.private || !r.isProbe()) {
		r.fail(Starting, "")
		return false
	}
	return e.private || r.parseQuery()
}

// parseQuery reads the parameters of the address; false if the request was answered. A private request
// does so after its key was found.
func (r *request) parseQuery() bool {
	if q := r.ctx.URI().QueryString(); len(q) > 0 {
		if err := r.query.ParseQuery(q); err != nil {
			r.fail(MalformedQuery, err.Error())
			return false
		}
	}
	return true
}

// isProbe is true of the paths outside the API, which answer before there is an engine.
func (r *request) isProbe() bool { return !strings.HasPrefix(string(r.ctx.Path()), "/api/") }

// acceptable reports whether the client takes JSON.
func (r *request) acceptable() bool {
	if r.isProbe() {
		return true
	}
	if len(r.ctx.URI().QueryString()) > 0 {
		all := r.ctx.QueryArgs().PeekMulti("format") // of a repeated one the last counts, as everywhere
		if n := len(all); n > 0 && len(all[n-1]) > 0 && string(all[n-1]) != "json" {
			return false
		}
	}
	accept := r.ctx.Request.Header.Peek("Accept")
	return len(accept) == 0 || string(accept) == "*/*" || string(accept) == "application/json" || acceptsJSON(string(accept))
}

// acceptsJSON looks through an Accept header; the most specific range that fits decides.
func acceptsJSON(header string) bool {
	best, ok := 0, false
	for part := range strings.SplitSeq(header, ",") {
		kind, parameters, _ := strings.Cut(part, ";")
		rank := 0
		switch strings.ToLower(strings.TrimSpace(kind)) {
		case "application/json":
			rank = 3
		case "application/*":
			rank = 2
		case "*/*":
			rank = 1
		}
		if rank < best || rank == 0 {
			continue
		}
		best, ok = rank, true
		for p := range strings.SplitSeq(parameters, ";") {
			if name, value, _ := strings.Cut(strings.TrimSpace(p), "="); strings.EqualFold(name, "q") {
				q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
				ok = err == nil && q > 0
			}
		}
	}
	return ok
}

// confirmed answers 503 for a private read while another process may own the store.
func (r *request) confirmed() bool {
	if err := r.engine.Confirmed(); err != nil {
		r.fail(failureOf(err), "")
		return false
	}
	return true
}

func (r *request) preflight(allow string) {
	r.status = fasthttp.StatusNoContent
	h := &r.ctx.Response.Header
	h.Set("Allow", allow)
	h.Set("Access-Control-Allow-Methods", allow)
	h.Set("Access-Control-Allow-Headers", "X-KEY, X-SIGN, X-NONCE, Content-Type")
	h.Set("Access-Control-Max-Age", "86400")
}

// brokenRequest answers what never became a request. A body that is too large has a path, a method and
// headers by then, and those are looked at first; unless it came in chunks, because then the server has
// forgotten them when it notices.
func (g *Gateway) brokenRequest(ctx *fasthttp.RequestCtx, err error) {
	f, about := g.classify(err)
	if f == BodyTooLarge && string(ctx.URI().PathOriginal()) != "/" {
		ctx.SetUserValue(tooLarge, about)
		g.route(ctx)
		return
	}
	r := newRequest(g, ctx)
	r.fail(f, about)
	r.send()
}

// tooLarge is the user value that says that the body of a request was not read, and its limit.
const tooLarge = "body too large"

func (g *Gateway) classify(err error) (*Failure, string) {
	var small *fasthttp.ErrSmallBuffer
	var network *net.OpError
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return BodyTooLarge, strconv.Itoa(g.opts.BodyBytes)
	case errors.As(err, &small):
		return HeaderTooLarge, strconv.Itoa(g.opts.HeaderBytes)
	case errors.As(err, &network) && network.Timeout():
		return RequestTimeout, ""
	}
	return MalformedRequest, ""
}

// recover answers 500 for a panic in a handler: its state is the request's own, so the process goes on.
func (r *request) recover() {
	p := recover()
	if p == nil {
		return
	}
	id := requestID()
	r.g.log.Error("a handler panicked", "request", id, "method", string(r.ctx.Method()), "path", string(r.ctx.Path()), "reason", p, "stack", string(debug.Stack()))
	r.ctx.Response.Header.Set("X-Request-Id", id)
	r.fail(InternalError, "")
	r.send()
}

// internal answers 500 for an error that is ours, and logs it under the request's id.
func (r *request) internal(err error) {
	id := requestID()
	r.g.log.Error("a request failed", "request", id, "method", string(r.ctx.Method()), "path", string(r.ctx.Path()), "error", err)
	r.ctx.Response.Header.Set("X-Request-Id", id)
	r.fail(InternalError, "")
}

// engineFailed answers for an error of the engine; one that the catalogue does not know is ours.
func (r *request) engineFailed(err error) {
	if f := failureOf(err); f != InternalError {
		r.fail(f, "")
		return
	}
	r.internal(err)
}

func requestID() string {
	var b [12]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

func (g *Gateway) healthz(r *request) { r.body = append(r.body, `{"status":"alive"}`...) }

func (g *Gateway) readyz(r *request) {
	if r.engine == nil {
		r.fail(Starting, "")
		return
	}
	if err := r.engine.Ready(); err != nil {
		r.engineFailed(err)
		return
	}
	r.body = append(r.body, `{"status":"ready"}`...)
}
