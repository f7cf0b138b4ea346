package edge

import (
	"github.com/valyala/fasthttp"

	"exchange/gateway/openapi"
	"exchange/web"
)

// docs serves the page at /docs and its files. A slash at the end and a query are ignored.
func docs(r *request) {
	name, _ := r.ctx.UserValue("file").(string)
	h := &r.ctx.Response.Header
	h.Set("X-Content-Type-Options", "nosniff")
	if name != "" {
		r.sendPage(openapi.Docs(name), "Accept-Encoding")
		return
	}
	h.Set("Content-Security-Policy", openapi.DocsPolicy)
	look := web.LookOf(r.ctx.Request.Header.Cookie(web.ThemeCookie), nil)
	r.sendPage(openapi.DocsPage(openapi.DocsLook{Theme: look.Theme(), Pages: !r.edge.opts.NoPages}),
		"Accept-Encoding, Cookie")
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

// sendPage writes a page, or 304 if the client has it. It takes a token of the client's address for
// each byte, because a page is thousands of times as large as its request.
func (r *request) sendPage(p *openapi.Page, vary string) {
	f := formOf(p, string(listOf(&r.ctx.Request.Header, "Accept-Encoding")))
	h := &r.ctx.Response.Header
	have := r.has(f.Tag)
	if !have && !r.ctx.IsHead() && !r.takePageTokens(len(f.Body)) {
		return
	}
	h.Set("Vary", vary)
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
