package gateway

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"exchange/actors"
	"exchange/core/market"
	"exchange/gateway/api"
	"exchange/gateway/openapi"
	"exchange/gateway/operator"
	"exchange/gateway/ratelimit"
	"exchange/gateway/sign"
)

// Options are the parameters of a Gateway.
type Options struct {
	Log       *slog.Logger
	BodyBytes int // largest body
	// AnswersBytes is the most memory, in bytes, of all large answers until clients have taken
	// them; 0: 256 MiB.
	AnswersBytes int64
	HeaderBytes  int // largest head of a request
	// most connections at once on each listener; the operator's never has more than
	// OperatorConnections
	Connections int
	// ConnectionsPerAddress is how many of them one client address may have; 0: all.
	ConnectionsPerAddress int
	IdleTimeout           time.Duration
	ReadTimeout           time.Duration // for a whole request to arrive
	WriteTimeout          time.Duration // for an answer to be taken
	// bearer token of the operator's listener; SetOperatorToken changes it
	OperatorToken string
	// bearer token of the metrics' listener; SetMetricsToken changes it; "": none is asked for
	MetricsToken string
	// The listeners' certificates. nil: plain HTTP, which all but the public one speak on loopback
	// addresses only.
	Certificate, OperatorCertificate, MetricsCertificate *Certificate

	Archive operator.Archive // of the journal; nil: there is none
	Build   Build            // source of the program, for monitoring

	Stream StreamOptions
	// Limits on requests a second, each of one kind: see rates.go.
	PublicRate, ReadRate, CommandRate, CancelRate, FailureRate, ProbeRate Rate

	DocsRate       Rate           // bytes of the API's pages a second, of one client address
	NoDocs         bool           // there is no page at /docs
	RateEntries    int            // most buckets of each kind
	TrustedProxies []netip.Prefix // proxies whose X-Forwarded-For is believed
	// clock counts for rates: nanoseconds of a clock that never goes back. nil: the process's
	// own.
	clock func() int64
}

// A Build names the version and the commit that a program was built from.
type Build struct{ Version, Commit string }

// A Rate is a limit on requests: so many a second in the long run, and a burst at once. The zero
// Rate is no limit.
type Rate struct{ PerSecond, Burst int }

// A Gateway serves the public API and the operator's. It may serve before there is an engine: until
// SetEngine each answer says that the exchange is starting.
type Gateway struct {
	opts     Options
	log      *slog.Logger
	api      atomic.Pointer[api.API] // nil: the exchange is starting
	sockets  atomic.Pointer[sockets]
	routes   *router.Router
	document *openapi.Document // of the public API

	public, operatorServer, watcher *fasthttp.Server // of the listeners

	operator     *operator.Server
	local        atomic.Bool    // the operator's listener is a socket, which needs no token
	metricsToken operator.Token // none: the metrics need none

	limits rateLimits
	budget *api.Budget  // of large answers
	now    func() int64 // for all of them, and for how long requests take

	meter, operatorMeter                   *meter
	publicConnections, operatorConnections connectionMeter
	publicPlaces, operatorPlaces           *places
	metricsPlaces                          *places
	metricsConnections                     connectionMeter
	errorLog, unavailableLog               failureLog     // of 500 and of the others
	operatorPaths                          map[string]int // number of each route in operatorMeter
	scrape                                 fasthttp.RequestHandler
}

// KeyMaterial returns a key's prepared secret, with which signatures are verified, for
// actors.Options.
func KeyMaterial(secret []byte) any { return sign.New(secret) }

// New makes a gateway. It does not listen yet.
func New(o Options) *Gateway {
	g := &Gateway{opts: o, log: o.Log, now: o.clock}
	g.limits.init(&o)
	g.budget = api.NewBudget(cmp.Or(o.AnswersBytes, 256<<20))
	if start := time.Now(); g.now == nil {
		g.now = func() int64 { return int64(time.Since(start)) }
	}
	g.publicPlaces = newPlaces(o.Connections, o.ConnectionsPerAddress, o.TrustedProxies,
		&g.publicConnections)
	g.publicPlaces.spare = SpareConnections
	g.operatorPlaces = newPlaces(min(OperatorConnections, o.Connections),
		operatorConnectionsPerAddress,
		o.TrustedProxies, &g.operatorConnections)
	g.operator = operator.New(operator.Options{Log: o.Log, Token: o.OperatorToken,
		Archive: o.Archive, Clock: g.now})
	g.routes = g.router()
	g.operatorMeter, g.operatorPaths = newOperatorMeter()
	g.scrape = g.newScrape()
	g.document = openapi.New(!o.NoDocs)
	g.public = g.server(g.route, g.brokenRequest,
		func(*fasthttp.RequestHeader) int { return o.BodyBytes })
	g.operatorServer = g.server(g.handleOperator, g.brokenOperatorRequest, g.operatorBody)
	g.operatorServer.HeaderReceived = g.operatorHead
	g.SetMetricsToken(o.MetricsToken)
	g.metricsPlaces = newPlaces(metricsConnections, metricsConnections/2, nil,
		&g.metricsConnections)
	g.watcher = g.server(g.handleMetrics, g.brokenMetricsRequest,
		func(*fasthttp.RequestHeader) int { return 1 })
	g.watcher.HeaderReceived = func(*fasthttp.RequestHeader) fasthttp.RequestConfig {
		// metrics take no body; 0 would set no limit here
		return fasthttp.RequestConfig{MaxRequestBodySize: 1}
	}
	return g
}

// server makes the server of a listener. broken answers a request that cannot be read to its end.
// limit is the length of the longest body that is read after a head, in bytes.
func (g *Gateway) server(h fasthttp.RequestHandler, broken func(*fasthttp.RequestCtx, error),
	limit func(*fasthttp.RequestHeader) int,
) *fasthttp.Server {
	refuse := func(ctx *fasthttp.RequestCtx, err error) {
		g.mayWrite(ctx)
		c := placeOf(ctx.Conn())
		if !occupied(ctx, c) {
			return
		}
		broken(ctx, err)
		if isTimeout(err) { // the client has had its time
			ctx.SetConnectionClose()
			return
		}
		lingerAfter(ctx, c)
	}
	return &fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			if c := placeOf(ctx.Conn()); occupied(ctx, c) {
				h(ctx)
				endUpgrade(ctx, c)
			}
		}, ErrorHandler: refuse,
		// A client that asks before sending its body is told at once that the body is too long.
		ExpectHandler: func(ctx *fasthttp.RequestCtx) int {
			if ctx.Request.Header.ContentLength() > limit(&ctx.Request.Header) {
				refuse(ctx, fasthttp.ErrBodyTooLarge)
				return ctx.Response.StatusCode()
			}
			g.mayWrite(ctx)
			return fasthttp.StatusContinue
		}, Logger: serverLog{g.log},
		// The listener bounds connections. This leaves room for connections that are closed and not
		// yet cleared away.
		Concurrency: 2*g.opts.Connections + 1024, ReadBufferSize: g.opts.HeaderBytes,
		MaxRequestBodySize: g.opts.BodyBytes,
		ReadTimeout:        g.opts.ReadTimeout, WriteTimeout: g.opts.WriteTimeout,
		IdleTimeout:           g.opts.IdleTimeout,
		NoDefaultServerHeader: true, NoDefaultContentType: true, DisablePreParseMultipartForm: true,
		CloseOnShutdown: true, KeepHijackedConns: true,
		// or a broken request is logged with its signature or bearer token
		SecureErrorLogMessage: true,
	}
}

// mayWrite renews the write deadline for an answer to a request that was never read. The current
// deadline belongs to the previous answer and may have passed. That answer may still wait to be
// written too, if both requests came together.
func (g *Gateway) mayWrite(ctx *fasthttp.RequestCtx) {
	if c := ctx.Conn(); c != nil && g.opts.WriteTimeout > 0 {
		c.SetWriteDeadline(time.Now().Add(g.opts.WriteTimeout)) //nolint:errcheck // then writing fails too
	}
}

// occupied keeps a connection while its request is answered. It returns false if the connection was
// given up for a newer one. Then no request is carried out, and no answer may look as if one were.
// So occupied closes the connection, because the listener may not have done so yet.
func occupied(ctx *fasthttp.RequestCtx, c *boundedConn) bool {
	if c == nil || c.occupy() {
		return true
	}
	c.cut()
	ctx.SetStatusCode(api.TooManyConnections.Status)
	ctx.Response.Header.SetCanonical(headerRetryAfter,
		strconv.AppendInt(nil, int64(api.TooManyConnections.RetryAfter), 10))
	ctx.SetConnectionClose()
	return false
}

// endUpgrade closes a connection that asked for a websocket and got none, because the bytes behind
// the request were not followed.
func endUpgrade(ctx *fasthttp.RequestCtx, c *boundedConn) {
	if c != nil && c.requests.off && !ctx.Hijacked() {
		ctx.SetConnectionClose()
	}
}

// serverLog keeps the server's own words, which come from clients' broken requests, at debug level.
type serverLog struct{ log *slog.Logger }

func (l serverLog) Printf(format string, args ...any) {
	l.log.Debug("http server", "text", strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// SetEngine opens the API and the stream.
func (g *Gateway) SetEngine(e *actors.Engine) {
	g.api.Store(api.New(e))
	g.sockets.Store(g.newSockets(e))
}

// engine returns the engine, nil while the exchange is starting.
func (g *Gateway) engine() *actors.Engine {
	if a := g.api.Load(); a != nil {
		return a.Engine()
	}
	return nil
}

// Serve serves the public API until Shutdown.
func (g *Gateway) Serve(l net.Listener) error {
	return g.public.Serve(g.bounded(l, g.publicPlaces,
		g.opts.Certificate, func(ctx *fasthttp.RequestCtx) {
			r := newRequest(g, ctx)
			r.route = uncounted
			r.Fail(api.TooManyConnections, "")
			r.send()
		}))
}

// Shutdown stops listening and lets the answers that are on their way out, at most for d.
func (g *Gateway) Shutdown(d time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if s := g.sockets.Load(); s != nil {
			s.close()
		}
		g.public.Shutdown()         //nolint:errcheck // the listener is gone either way
		g.operatorServer.Shutdown() //nolint:errcheck
		g.watcher.Shutdown()        //nolint:errcheck
	}()
	select {
	case <-done:
	case <-time.After(d):
	}
}

// An endpoint is a path with its operation. Every path of the API is answered with and without its
// last slash.
type endpoint struct {
	api.Operation
	page  func(*request) // of HTTP alone, instead of Run; nil: none
	route int            // its number in the meter
}

func (e *endpoint) allow() string {
	if e.Method == fasthttp.MethodGet {
		return "GET, HEAD, OPTIONS"
	}
	return e.Method + ", OPTIONS"
}

// has reports whether the endpoint has the method of a request.
func (e *endpoint) has(ctx *fasthttp.RequestCtx) bool {
	if e.Method == fasthttp.MethodGet {
		return ctx.IsGet() || ctx.IsHead()
	}
	return ctx.IsPost()
}

// run answers a request that has passed all checks.
func (e *endpoint) run(r *request) {
	if e.page != nil {
		e.page(r)
	} else {
		e.Run(&r.Call)
	}
}

// endpoints returns the routes of the public listener by path. `{x}` stands for one part of a path.
func (g *Gateway) endpoints() map[string]*endpoint {
	all := map[string]*endpoint{}
	for _, o := range api.Operations {
		all[o.Path] = &endpoint{Operation: o}
	}
	for _, o := range openapi.Operations(!g.opts.NoDocs) {
		all[o.Path] = &endpoint{Operation: o, page: g.docs}
	}
	all[openapi.Path].page = g.openAPI
	return all
}

func (g *Gateway) router() *router.Router {
	r := router.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath, r.HandleMethodNotAllowed, r.HandleOPTIONS = false,
		false, false, false
	all := g.endpoints()
	paths := slices.Sorted(maps.Keys(all))
	g.meter = newMeter(public, paths)
	for i, path := range paths {
		e := all[path]
		e.route = firstRoute + i
		r.Handle(router.MethodWild, path, g.handler(e, strings.Contains(path, "{")))
	}
	return r
}

// route finds a request's endpoint by its path without the last slash, for every method.
func (g *Gateway) route(ctx *fasthttp.RequestCtx) {
	if !isSpoken(&ctx.Request.Header) {
		lingerAfter(ctx, placeOf(ctx.Conn()))
		g.malformed(ctx, api.MalformedRequest, "")
		return
	}
	path := unescaped(ctx.URI().PathOriginal())
	if isStream(path) {
		g.handleStream(ctx)
		return
	}
	if n := len(path); n > 1 && path[n-1] == '/' {
		path = path[:n-1]
	}
	if h, _ := g.routes.Lookup(router.MethodWild, unsafe.String(unsafe.SliceData(path), len(path)),
		ctx); h != nil {
		h(ctx)
		return
	}
	r := newRequest(g, ctx)
	if r.takesPublic() {
		r.Fail(api.NotFound, "")
	}
	r.send()
}

// unescaped returns a path in which no letter, digit, dash, dot, underscore or tilde is
// percent-encoded. The encoded path names the same resource (RFC 3986, 6.2.2.2). Other bytes stay:
// an encoded slash is no slash.
func unescaped(path []byte) []byte {
	if bytes.IndexByte(path, '%') < 0 {
		return path
	}
	var plain []byte
	for i := 0; i < len(path); i++ {
		if i+2 < len(path) && path[i] == '%' {
			n, err := strconv.ParseUint(string(path[i+1:i+3]), 16, 8)
			if c := byte(n); err == nil && (isWord(c) || c == '-' || c == '.' || c == '~') {
				plain, i = append(plain, c), i+2
				continue
			}
		}
		plain = append(plain, path[i])
	}
	return plain
}

func isWord(c byte) bool { return c == '_' || c-'0' < 10 || c|' '-'a' < 26 }

// handler runs the checks that every endpoint has, in their order, and then the endpoint.
func (g *Gateway) handler(e *endpoint, variable bool) fasthttp.RequestHandler {
	allow := e.allow()
	return func(ctx *fasthttp.RequestCtx) {
		r := newRequest(g, ctx)
		r.route, r.private = e.route, e.Private || e.Probe
		defer r.recover()
		missing, method := variable && !r.exists(), e.has(ctx)
		switch {
		case ctx.IsOptions() && !missing:
			if r.takesPublic() {
				r.preflight(allow)
			}
		case missing || !method || !r.acceptable():
			r.refuseForm(missing, !method, allow)
		case r.admitted(e):
			e.run(r)
		}
		r.send()
	}
}

// refuseForm answers a request for a path, a method or a format that there is not. It counts as a
// public request.
func (r *request) refuseForm(missing, method bool, allow string) {
	switch {
	case !r.takesPublic():
	case missing:
		r.Fail(api.NotFound, "")
	case method:
		r.ctx.Response.Header.Set("Allow", allow)
		r.Fail(api.MethodNotAllowed, string(r.ctx.Method()))
	default:
		r.Fail(api.NotAcceptable, "")
	}
}

// admitted runs the checks from the size of the body to the operation's limit. False: the request
// is answered.
func (r *request) admitted(e *endpoint) bool {
	switch sized := r.sized(); {
	case !sized && e.Private:
		r.countFailure()
		return false
	case !sized:
		r.rate = r.g.limits.public.buckets.Take(ratelimit.AddressKey(r.address()), r.at)
		return false
	case e.Private:
		return r.begin(e) && r.identified() && r.permitted(e) && (r.ctx.IsPost() || r.confirmed())
	}
	may := e.Probe && r.mayProbe() || !e.Probe && r.takesPublic()
	return may && r.begin(e) && r.parseQuery()
}

// identified is identify, and counts a failure. That the exchange is starting is none of the
// client's.
func (r *request) identified() bool {
	ok := r.identify()
	if !ok {
		r.countFailure()
	}
	return ok
}

// sized answers 413 if the body was too large to be read: false.
func (r *request) sized() bool {
	limit, large := r.ctx.UserValue(tooLarge).(string)
	if large {
		r.Fail(api.BodyTooLarge, limit)
	}
	return !large
}

// exists returns false for a path whose variable part can name nothing. Examples are an order that
// is no positive integer, a pair that is not configured, a file that the page at /docs does not
// have. The path is checked before all other faults of a request.
func (r *request) exists() bool {
	pair, ok := r.ctx.UserValue("pair").(string)
	r.Names.Pair = pair
	if pk, ok := r.ctx.UserValue("pk").(string); ok {
		r.Names.Order = pk
		id, ok := api.Integer([]byte(pk))
		return ok && id > 0
	}
	if frame, ok := r.ctx.UserValue("timeframe").(string); ok {
		r.Names.Timeframe = frame
		if _, known := market.ParseFrame(frame); !known {
			return false
		}
	}
	if file, ok := r.ctx.UserValue("file").(string); ok {
		return openapi.HasDocs(file)
	}
	engine := r.g.engine()
	return !ok || engine == nil || engine.Pair([]byte(pair)) != nil
}

// begin gives the request its API. It returns false if the request was answered.
func (r *request) begin(e *endpoint) bool {
	if a := r.g.api.Load(); a != nil {
		r.Begin(a)
	} else if !e.Early {
		r.Fail(api.Starting, "")
		return false
	}
	return true
}

// parseQuery reads the parameters of the address; false if the request was answered. A private
// request does so after its key was found.
func (r *request) parseQuery() bool {
	if q := r.ctx.URI().QueryString(); len(q) > 0 {
		if err := r.Query.ParseQuery(q); err != nil {
			r.Fail(api.MalformedQuery, err.Error())
			return false
		}
	}
	return true
}

// isOutside is true of the paths outside the API: the probes and the page about the API.
func (r *request) isOutside() bool { return !strings.HasPrefix(string(r.ctx.Path()), "/api/") }

// acceptable reports whether the client takes JSON.
func (r *request) acceptable() bool {
	if r.isOutside() {
		return true
	}
	if len(r.ctx.URI().QueryString()) > 0 {
		// of a repeated one the last counts, as everywhere
		all := r.ctx.QueryArgs().PeekMulti("format")
		if n := len(all); n > 0 && len(all[n-1]) > 0 && string(all[n-1]) != "json" {
			return false
		}
	}
	accept := r.ctx.Request.Header.Peek("Accept")
	switch {
	case len(accept) == 0, string(accept) == "*/*", string(accept) == "application/json",
		acceptsJSON(string(accept)):
		return true
	}
	lines := r.ctx.Request.Header.PeekAll("Accept") // which are one list
	return len(lines) > 1 && acceptsJSON(string(bytes.Join(lines, []byte{','})))
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
		best, ok = rank, wanted(parameters)
	}
	return ok
}

// wanted reports whether the parameters of an accepted coding allow the server to send it: a q of 0
// forbids that.
func wanted(parameters string) bool {
	for p := range strings.SplitSeq(parameters, ";") {
		if name, value, _ := strings.Cut(strings.TrimSpace(p), "="); strings.EqualFold(name, "q") {
			q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return err == nil && q > 0
		}
	}
	return true
}

// confirmed answers 503 for a private read while another process may own the store.
func (r *request) confirmed() bool {
	if err := r.Engine().Confirmed(); err != nil {
		r.Fail(api.FailureOf(err), "")
		return false
	}
	return true
}

func (r *request) preflight(allow string) {
	r.Status = fasthttp.StatusNoContent
	h := &r.ctx.Response.Header
	h.Set("Allow", allow)
	h.Set("Access-Control-Allow-Methods", allow)
	headers := "X-KEY, X-SIGN, X-NONCE, Content-Type"
	if asked := r.ctx.Request.Header.Peek("Access-Control-Request-Headers"); isHeaderList(asked) {
		headers = string(asked)
	}
	h.Set("Access-Control-Allow-Headers", headers)
	h.Set("Vary", "Access-Control-Request-Headers")
	h.Set("Access-Control-Max-Age", "86400")
}

// maxPreflight bounds the list of headers that a preflight asks for, in bytes.
const maxPreflight = 1024

// isHeaderList reports whether a text is a list of names of headers, of a length that browsers
// send.
func isHeaderList(text []byte) bool {
	if len(text) == 0 || len(text) > maxPreflight {
		return false
	}
	for name := range bytes.SplitSeq(text, []byte{','}) {
		if name = bytes.Trim(name, " \t"); len(name) == 0 {
			return false
		}
		for _, c := range name {
			if !isWord(c) && bytes.IndexByte([]byte("!#$%&'*+-.^`|~"), c) < 0 {
				return false
			}
		}
	}
	return true
}

// brokenRequest answers bytes that never became a request. If the body is too large, the path, the
// method and the headers are known by then, and are checked first. A body in chunks is the
// exception, because the server has forgotten its head by then.
func (g *Gateway) brokenRequest(ctx *fasthttp.RequestCtx, err error) {
	f, about := g.classify(err)
	if f == api.BodyTooLarge && string(ctx.URI().PathOriginal()) != "/" {
		ctx.SetUserValue(tooLarge, about)
		g.route(ctx)
		return
	}
	if c := placeOf(ctx.Conn()); f == api.RequestTimeout && c != nil && c.requests.none() {
		// browsers open connections that they may not need: that is no request
		r := newRequest(g, ctx)
		r.route = malformed
		r.Fail(f, about)
		r.send()
		return
	}
	g.malformed(ctx, f, about)
}

// malformed answers bytes that are no request.
func (g *Gateway) malformed(ctx *fasthttp.RequestCtx, f *api.Failure, about string) {
	r := newRequest(g, ctx)
	r.route = malformed
	if r.takesPublic() {
		r.Fail(f, about)
	}
	r.send()
}

// tooLarge is the user value that says that the body of a request was not read, and its limit.
const tooLarge = "body too large"

func (g *Gateway) classify(err error) (*api.Failure, string) {
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return api.BodyTooLarge, strconv.Itoa(g.opts.BodyBytes)
	case errors.As(err, &small):
		return api.HeaderTooLarge, strconv.Itoa(g.opts.HeaderBytes)
	case isTimeout(err):
		return api.RequestTimeout, ""
	}
	return api.MalformedRequest, ""
}

// isTimeout reports whether a request did not arrive in time.
func isTimeout(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && network.Timeout()
}

// recover answers 500 for a panic in a handler: its state is the request's own, so the process goes
// on.
func (r *request) recover() {
	p := recover()
	if p == nil {
		return
	}
	r.Cause, r.stack = fmt.Errorf("a handler panicked: %v", p), debug.Stack()
	r.Fail(api.InternalError, "")
	r.send()
}
