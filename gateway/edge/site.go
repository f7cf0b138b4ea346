package edge

import (
	"strings"

	"github.com/valyala/fasthttp"

	"exchange/gateway/api"
	"exchange/gateway/ratelimit"
	"exchange/web"
)

// The web pages of package web. They are no part of the API: no other origin may read them, they
// have limits of their own, and they are served before there is an engine.

// siteRoot is the address that redirects to the first page.
const (
	siteRoot  = "/"
	firstPage = "/trade"
)

// siteRoutes are the web pages' routes in the meter. All files below web.Folder share one.
func siteRoutes() []string {
	return append([]string{siteRoot, web.Folder, web.MailsAddress}, web.Addresses()...)
}

// siteRoute returns the route of a web page's path; "": no page has it.
func (e *Edge) siteRoute(path string) string {
	if e.opts.NoPages {
		return ""
	}
	if strings.HasPrefix(path, web.Folder) {
		return web.Folder
	}
	if path == siteRoot || web.Page(path, web.Look{}) != nil ||
		path == web.MailsAddress && e.opts.DemoMails != nil {
		return path
	}
	return ""
}

// sendSite answers a request for a page or a part of one.
func (r *request) sendSite(route, path string) {
	defer r.recover()
	switch {
	case !r.ctx.IsGet() && !r.ctx.IsHead():
		if r.takeSiteTokens(0) {
			r.ctx.Response.Header.Set("Allow", "GET, HEAD")
			r.Fail(api.MethodNotAllowed, string(r.ctx.Method()))
		}
	case !r.checkBodySize():
	case route == siteRoot:
		if r.takeSiteTokens(0) {
			r.sameOrigin, r.written, r.Status = true, true, fasthttp.StatusFound
			r.ctx.Response.Header.Set("Location", firstPage)
		}
	case route == web.Folder:
		r.sendAsset(path)
	default:
		h := &r.ctx.Request.Header
		look := web.LookOf(h.Cookie(web.ThemeCookie), h.Cookie(web.PaletteCookie))
		f, keep := web.Page(path, look), cacheNoCache
		if route == web.MailsAddress {
			f, keep = r.demoMails(look), cacheNoStore
		}
		if f != nil && r.sendFile(f, "Accept-Encoding, Cookie", keep) {
			r.guardPage()
		}
	}
	r.send()
}

// sendAsset answers a request for a part of a page. A page of another program version gets 404, and
// offers to reload.
func (r *request) sendAsset(path string) {
	if f := web.Asset(path); f != nil {
		r.sendFile(f, "Accept-Encoding", cacheImmutable)
	} else if r.takeSiteTokens(0) {
		r.Fail(api.NotFound, "")
	}
}

// demoMails returns the page with the demo's mails. It returns nil after writing an error response.
func (r *request) demoMails(look web.Look) *web.File {
	if !r.takeSiteTokens(0) { // reading the folder costs more than sending the page
		return nil
	}
	list, err := r.edge.opts.DemoMails()
	if err != nil {
		r.Cause = err
		r.Fail(api.InternalError, "")
		return nil
	}
	return web.MailsPage(look, list)
}

// pagePolicy keeps a page from running, loading and requesting anything outside the exchange.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; " +
	"img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; " +
	"trusted-types lit-html"

// guardPage writes the headers of every page.
func (r *request) guardPage() {
	h := &r.ctx.Response.Header
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=()")
	if r.edge.opts.Certificate != nil {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// cacheImmutable is the Cache-Control of a file whose address names its content.
var cacheImmutable = []byte("public, max-age=31536000, immutable")

// sendFile writes a file, or 304 if the client has it. It returns false after writing 429.
func (r *request) sendFile(f *web.File, vary string, keep []byte) bool {
	body, tag := f.Plain, f.Tag
	packed := f.Packed != nil &&
		accepts(string(listOf(&r.ctx.Request.Header, "Accept-Encoding")), "gzip")
	if packed {
		body, tag = f.Packed, f.PackedTag
	}
	have := r.has(tag)
	bytes := len(body)
	if have || r.ctx.IsHead() {
		bytes = 0
	}
	if !r.takeSiteTokens(bytes) {
		return false
	}
	h := &r.ctx.Response.Header
	h.Set("Vary", vary)
	h.Set("ETag", tag)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.SetCanonical(headerCacheControl, keep)
	r.sameOrigin, r.written = true, true
	if have {
		r.Status = fasthttp.StatusNotModified
		return true
	}
	h.SetContentType(f.ContentType)
	if packed {
		h.Set("Content-Encoding", "gzip")
	}
	r.ctx.Response.SetBodyRaw(body)
	return true
}

// leastVisit is the least cost of a page request, in bytes.
const leastVisit = 1024

// takeSiteTokens takes a token of the web pages' bucket for each byte of an answer. It returns
// false after writing 429. So an office behind one address can open pages without throttling its
// programs.
func (r *request) takeSiteTokens(bytes int) bool {
	a, ok := r.edge.limits.web.take(&r.Call, ratelimit.AddressKey(r.address()),
		max(bytes, leastVisit), r.at)
	if !ok {
		r.rate = a
	}
	return ok
}
