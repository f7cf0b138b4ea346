package edge

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"

	"exchange/core/market"
	"exchange/gateway/api"
	"exchange/gateway/openapi"
	"exchange/gateway/ratelimit"
)

// An endpoint is a path with its operation, or with two: a GET, and a POST that changes the same
// object. Every path of the API is served with and without its last slash.
type endpoint struct {
	api.Operation
	change *api.Operation // a POST beside the GET; nil: the path has one method
	page   func(*request) // handler of a page, instead of Run; nil: none
	route  int            // number in the meter
}

func (e *endpoint) allow() string {
	switch {
	case e.change != nil:
		return "GET, HEAD, POST, OPTIONS"
	case e.Method == fasthttp.MethodGet:
		return "GET, HEAD, OPTIONS"
	}
	return e.Method + ", OPTIONS"
}

// operation returns the operation for the method of a request, nil if the path has none.
func (e *endpoint) operation(ctx *fasthttp.RequestCtx) *api.Operation {
	isGet := ctx.IsGet() || ctx.IsHead()
	switch {
	case isGet == (e.Method == fasthttp.MethodGet) && (isGet || ctx.IsPost()):
		return &e.Operation
	case ctx.IsPost():
		return e.change
	}
	return nil
}

// run runs an operation, or the page, after all checks of the request.
func (e *endpoint) run(o *api.Operation, r *request) {
	if e.page != nil {
		e.page(r)
	} else {
		o.Do(&r.Call)
	}
}

// handler runs the common checks of all endpoints, in their order, and then the operation.
func (e *Edge) handler(ep *endpoint, variable bool) fasthttp.RequestHandler {
	allow := ep.allow()
	return func(ctx *fasthttp.RequestCtx) {
		r := newRequest(e, ctx)
		r.route, r.noStore, r.probe = ep.route, ep.Private || ep.Probe || ep.Now, ep.Probe
		defer r.recover()
		unknownPath, o := variable && !r.readPath(), ep.operation(ctx)
		switch {
		case ctx.IsOptions() && !unknownPath:
			if r.takePublicToken() {
				r.preflight(allow)
			}
		case unknownPath || o == nil || !r.acceptable():
			r.refuseRoute(unknownPath, o == nil, allow)
		case r.runChecks(o):
			ep.run(o, r)
			r.confirmForwarded(o)
		}
		r.send()
	}
}

// refuseRoute writes the response for an unknown path, method or format. It takes a token of public
// requests.
func (r *request) refuseRoute(unknownPath, wrongMethod bool, allow string) {
	switch {
	case !r.takePublicToken():
	case unknownPath:
		r.Fail(api.NotFound, "")
	case wrongMethod:
		r.ctx.Response.Header.Set("Allow", allow)
		r.Fail(api.MethodNotAllowed, string(r.ctx.Method()))
	default:
		r.Fail(api.NotAcceptable, "")
	}
}

// runChecks runs the checks from the size of the body to the operation's limit. It returns false
// after writing an error response.
func (r *request) runChecks(o *api.Operation) bool {
	signed := o.Private || o.Signable && len(r.ctx.Request.Header.Peek("X-Key")) > 0
	r.noStore = r.noStore || signed
	switch fits := r.checkBodySize(); {
	case !fits && signed:
		r.takeFailureToken()
		return false
	case !fits:
		r.rate = r.edge.limits.public.buckets.Load().Take(ratelimit.AddressKey(r.address()), r.at)
		return false
	case signed:
		return r.requireAPI(o, true) && r.authenticate(o) &&
			(r.Key.Signed != nil || r.checkPermission(o)) && (r.ctx.IsPost() || r.checkOwner())
	}
	admitted := o.Probe && r.takeProbeToken() || !o.Probe && r.takePublicToken()
	return admitted && r.requireAPI(o, false) && r.parseQuery()
}

// checkBodySize returns false after writing 413 for a body that was too large to be read.
func (r *request) checkBodySize() bool {
	limit, large := r.ctx.UserValue(tooLarge).(string)
	if large {
		r.Fail(api.BodyTooLarge, limit)
	}
	return !large
}

// readPath reads the path's parameters. It returns false for a value that cannot exist: an order
// that is no positive integer, an unconfigured pair, a file that the page at /docs lacks.
func (r *request) readPath() bool {
	pair, ok := r.ctx.UserValue("pair").(string)
	r.Path.Pair = pair
	if pk, ok := r.ctx.UserValue("pk").(string); ok {
		r.Path.Order = pk
		id, ok := api.Digits([]byte(pk))
		return ok && id > 0
	}
	if frame, ok := r.ctx.UserValue("timeframe").(string); ok {
		r.Path.Timeframe = frame
		if _, known := market.ParseFrame(frame); !known {
			return false
		}
	}
	if file, ok := r.ctx.UserValue("file").(string); ok {
		return openapi.HasDocs(file)
	}
	a := r.edge.api.Load()
	return !ok || a == nil || a.Public().Pair([]byte(pair)) != nil
}

// requireAPI binds the request to the served API, which must have keys if the request is signed. It
// returns false after writing an error response.
func (r *request) requireAPI(o *api.Operation, signed bool) bool {
	if a := r.edge.api.Load(); a != nil && a.Serves(o) && (!signed || a.Commands() != nil) {
		r.BindAPI(a)
	} else if !o.Early {
		r.refuseNotServing()
		return false
	}
	return true
}

// isOutside is true of the paths outside the API: the probes and the API's page.
func (r *request) isOutside() bool { return !strings.HasPrefix(string(r.ctx.Path()), "/api/") }

// acceptable reports whether the client takes JSON.
func (r *request) acceptable() bool {
	if r.isOutside() {
		return true
	}
	if len(r.ctx.URI().QueryString()) > 0 {
		// the last one of a repeated parameter applies, as in all queries
		all := r.ctx.QueryArgs().PeekMulti("format")
		if n := len(all); n > 0 && len(all[n-1]) > 0 && string(all[n-1]) != "json" {
			return false
		}
	}
	switch accept := listOf(&r.ctx.Request.Header, "Accept"); string(accept) {
	case "", "*/*", "application/json":
		return true
	default:
		return acceptsJSON(string(accept))
	}
}

func (r *request) preflight(allow string) {
	r.Status = fasthttp.StatusNoContent
	h := &r.ctx.Response.Header
	h.Set("Allow", allow)
	h.Set("Access-Control-Allow-Methods", allow)
	headers := "X-KEY, X-SIGN, X-NONCE, Content-Type"
	asked := listOf(&r.ctx.Request.Header, "Access-Control-Request-Headers")
	if isHeaderList(asked) {
		headers = string(asked)
	}
	h.Set("Access-Control-Allow-Headers", headers)
	h.Set("Vary", "Access-Control-Request-Headers")
	h.Set("Access-Control-Max-Age", "86400")
}

// maxPreflight bounds the header list of a preflight, in bytes.
const maxPreflight = 1024

// isHeaderList reports whether a text is a list of header names, of a length that browsers send.
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

func isWord(c byte) bool { return c == '_' || c-'0' < 10 || c|' '-'a' < 26 }
