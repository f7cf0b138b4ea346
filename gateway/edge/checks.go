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
// object. Every path of the API is answered with and without its last slash.
type endpoint struct {
	api.Operation
	change *api.Operation // a POST beside the GET; nil: the path has one method
	page   func(*request) // of HTTP alone, instead of Run; nil: none
	route  int            // its number in the meter
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

// run answers a request that has passed all checks of an operation.
func (e *endpoint) run(o *api.Operation, r *request) {
	if e.page != nil {
		e.page(r)
	} else {
		o.Do(&r.Call)
	}
}

// handler runs the common checks of all endpoints, in their order, and then the operation.
func (e *Edge) handler(to *endpoint, variable bool) fasthttp.RequestHandler {
	allow := to.allow()
	return func(ctx *fasthttp.RequestCtx) {
		r := newRequest(e, ctx)
		r.route, r.private, r.probe = to.route, to.Private || to.Probe || to.Now, to.Probe
		defer r.recover()
		missing, o := variable && !r.exists(), to.operation(ctx)
		switch {
		case ctx.IsOptions() && !missing:
			if r.mayTakePublic() {
				r.preflight(allow)
			}
		case missing || o == nil || !r.acceptable():
			r.refuseForm(missing, o == nil, allow)
		case r.admitted(o):
			to.run(o, r)
			r.confirmPassed(o)
		}
		r.send()
	}
}

// refuseForm answers a request for an unknown path, method or format. It counts as a public
// request.
func (r *request) refuseForm(missing, method bool, allow string) {
	switch {
	case !r.mayTakePublic():
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
func (r *request) admitted(o *api.Operation) bool {
	signed := o.Private || o.Signable && len(r.ctx.Request.Header.Peek("X-Key")) > 0
	r.private = r.private || signed
	switch sized := r.sized(); {
	case !sized && signed:
		r.countFailure()
		return false
	case !sized:
		r.rate = r.edge.limits.public.buckets.Load().Take(ratelimit.AddressKey(r.address()), r.at)
		return false
	case signed:
		return r.begin(o, true) && r.identified(o) &&
			(r.Key.Signed != nil || r.permitted(o)) && (r.ctx.IsPost() || r.confirmed())
	}
	may := o.Probe && r.mayProbe() || !o.Probe && r.mayTakePublic()
	return may && r.begin(o, false) && r.parseQuery()
}

// sized returns false after a 413: the body was too large to be read.
func (r *request) sized() bool {
	limit, large := r.ctx.UserValue(tooLarge).(string)
	if large {
		r.Fail(api.BodyTooLarge, limit)
	}
	return !large
}

// exists returns false for a path whose variable part can name nothing. Examples are an order that
// is no positive integer, an unconfigured pair, a file that the page at /docs lacks. The path is
// checked before all other faults of a request.
func (r *request) exists() bool {
	pair, ok := r.ctx.UserValue("pair").(string)
	r.Names.Pair = pair
	if pk, ok := r.ctx.UserValue("pk").(string); ok {
		r.Names.Order = pk
		id, ok := api.Digits([]byte(pk))
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
	a := r.edge.api.Load()
	return !ok || a == nil || a.Public().Pair([]byte(pair)) != nil
}

// begin gives the request its API. It returns false if the request was answered. A signed one needs
// an API with keys.
func (r *request) begin(o *api.Operation, signed bool) bool {
	if a := r.edge.api.Load(); a != nil && a.Serves(o) && (!signed || a.Commands() != nil) {
		r.Begin(a)
	} else if !o.Early {
		r.refuseAbsent()
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
		// of a repeated one the last counts, as everywhere
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
