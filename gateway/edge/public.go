package edge

import (
	"bytes"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"exchange/gateway/api"
	"exchange/gateway/listen"
	"exchange/gateway/openapi"
)

// A PublicListener serves the API to clients.
type PublicListener struct {
	Listener
	endpoints map[string]*endpoint // by path
	routes    *router.Router
	site      map[string]int // numbers of the web pages' routes in the meter
}

// NewPublicListener makes the listener of the public API.
func NewPublicListener(e *Edge) *PublicListener {
	o := &e.opts
	p := &PublicListener{Listener: Listener{Edge: e, Name: Public,
		Places: listen.NewPlaces(o.Connections, SpareConnections, o.ConnectionsPerAddress,
			o.TrustedProxies),
		Certificate: o.Certificate}}
	p.Server = e.server(p.route, p.broken, func(*fasthttp.RequestHeader) int { return o.BodyBytes })
	p.routes = router.New()
	p.routes.RedirectTrailingSlash, p.routes.RedirectFixedPath = false, false
	p.routes.HandleMethodNotAllowed, p.routes.HandleOPTIONS = false, false
	p.endpoints = endpoints(!o.NoDocs, o.Contact)
	paths := slices.Sorted(maps.Keys(p.endpoints))
	site := siteRoutes()
	e.Meter = newMeter(Public, append(slices.Clone(paths), site...))
	p.site = map[string]int{}
	for i, path := range site {
		p.site[path] = firstRoute + len(paths) + i
	}
	for i, path := range paths {
		ep := p.endpoints[path]
		ep.route = firstRoute + i
		p.routes.Handle(router.MethodWild, path, e.handler(ep, strings.Contains(path, "{")))
	}
	return p
}

// endpoints returns the routes of the public listener by path, in which `{x}` stands for one part.
// withDocs includes the page at /docs; contact is for the OpenAPI document.
func endpoints(withDocs bool, contact string) map[string]*endpoint {
	all := map[string]*endpoint{}
	for _, o := range api.Operations {
		switch ep := all[o.Path]; {
		case ep == nil:
			all[o.Path] = &endpoint{Operation: o}
		case ep.Method == fasthttp.MethodGet && o.Method == fasthttp.MethodPost && ep.change == nil:
			ep.change = &o
		default:
			panic("BUG: " + o.Method + " " + o.Path + " is in the table twice, or before its GET")
		}
	}
	for _, o := range openapi.Operations(withDocs) {
		all[o.Path] = &endpoint{Operation: o, page: docs}
	}
	document := openapi.New(withDocs, contact)
	all[openapi.Path].page = func(r *request) {
		r.sendPage(document.Page(), "Accept-Encoding")
	}
	return all
}

// Serve serves until the server ends.
func (p *PublicListener) Serve(l net.Listener) error {
	return p.serve(l, func(ctx *fasthttp.RequestCtx) {
		r := newRequest(p.Edge, ctx)
		r.route = uncounted
		r.Fail(api.TooManyConnections, "")
		r.send()
	})
}

// route runs the endpoint of a request's path, without the last slash. It looks for web pages last,
// so that they cost commands no time.
func (p *PublicListener) route(ctx *fasthttp.RequestCtx) {
	if !isSpoken(&ctx.Request.Header) {
		lingerAfter(ctx)
		p.malformed(ctx, api.MalformedRequest, "")
		return
	}
	path := unescaped(ctx.URI().PathOriginal())
	if isStream(path) {
		p.stream.handle(ctx)
		return
	}
	if n := len(path); n > 1 && path[n-1] == '/' {
		path = path[:n-1]
	}
	if h, _ := p.routes.Lookup(router.MethodWild, unsafe.String(unsafe.SliceData(path), len(path)),
		ctx); h != nil {
		h(ctx)
		return
	}
	r := newRequest(p.Edge, ctx)
	if page := p.siteRoute(string(path)); page != "" {
		r.route = p.site[page]
		r.sendSite(page, string(path))
		return
	}
	if r.takePublicToken() {
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

// broken writes the response for bytes that the server could not read as a request. For a body that
// is too large, the path, the method and the headers are checked first, unless it came in chunks:
// then the server no longer has the head.
func (p *PublicListener) broken(ctx *fasthttp.RequestCtx, err error) {
	f, about := p.classify(&ctx.Request.Header, err)
	if f == api.BodyTooLarge && string(ctx.URI().PathOriginal()) != "/" {
		ctx.SetUserValue(tooLarge, about)
		p.route(ctx)
		return
	}
	if c := listen.Of(ctx.Conn()); f == api.RequestTimeout && c != nil && c.IsSilent() {
		// browsers open spare connections: that is no request
		r := newRequest(p.Edge, ctx)
		r.route = malformed
		r.Fail(f, about)
		r.send()
		return
	}
	p.malformed(ctx, f, about)
}

// malformed writes the response for bytes that are no request, and takes a token of public
// requests.
func (p *PublicListener) malformed(ctx *fasthttp.RequestCtx, f *api.Failure, about string) {
	r := newRequest(p.Edge, ctx)
	r.route = malformed
	if r.takePublicToken() {
		r.Fail(f, about)
	}
	r.send()
}
