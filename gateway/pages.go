package gateway

import (
	"strings"

	"github.com/valyala/fasthttp"

	"exchange/gateway/openapi"
)

// openAPI serves the document of the API.
func (g *Gateway) openAPI(r *request) { r.sendPage(g.document.Page()) }

// docs serves the page at /docs and its files. A slash at the end and a query mean nothing here.
func (g *Gateway) docs(r *request) {
	name, _ := r.ctx.UserValue("file").(string)
	h := &r.ctx.Response.Header
	if name == "" {
		h.Set("Content-Security-Policy", openapi.DocsPolicy)
	}
	h.Set("X-Content-Type-Options", "nosniff")
	r.sendPage(openapi.Docs(name))
}

// formOf returns the best form of a page that a client takes.
func formOf(p *openapi.Page, accept string) *openapi.Form {
	for i := range p.Forms {
		if f := &p.Forms[i]; f.Coding == "" || accepts(accept, f.Coding) {
			return f
		}
	}
	panic("BUG: a page has no plain form")
}

// sendPage answers with a page, or with 304 if the client has it. The bytes of pages count for the
// client's address, because a page is thousands of times as large as its request.
func (r *request) sendPage(p *openapi.Page) {
	f := formOf(p, string(r.ctx.Request.Header.Peek("Accept-Encoding")))
	h := &r.ctx.Response.Header
	have := strings.Contains(string(r.ctx.Request.Header.Peek("If-None-Match")), f.Tag)
	if !have && !r.ctx.IsHead() && !r.mayLoad(len(f.Body)) {
		return
	}
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", f.Tag)
	if r.written = true; have {
		r.Status = fasthttp.StatusNotModified
		return
	}
	h.SetContentType(p.ContentType)
	if f.Coding != "" {
		h.Set("Content-Encoding", f.Coding)
	}
	r.ctx.Response.SetBodyRaw(f.Body)
}

// accepts reports whether an Accept-Encoding header takes a coding. * stands for each coding that
// the header does not name.
func accepts(header, wantedCoding string) (ok bool) {
	for part := range strings.SplitSeq(header, ",") {
		coding, parameters, _ := strings.Cut(part, ";")
		switch coding = strings.TrimSpace(coding); {
		case strings.EqualFold(coding, wantedCoding):
			return wanted(parameters)
		case coding == "*":
			ok = wanted(parameters)
		}
	}
	return ok
}
