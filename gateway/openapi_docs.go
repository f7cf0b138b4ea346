package gateway

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/swaggest/swgui"
	"github.com/swaggest/swgui/v5emb"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
)

// The page at /docs shows the OpenAPI document to people. It is Swagger UI, whose files are part of
// the program, so that the page is there wherever the exchange runs, and tells nobody else who
// reads it.

// docsFiles are the files that the page needs; Swagger UI has more.
var docsFiles = []string{"swagger-ui.css", "swagger-ui-bundle.js",
	"swagger-ui-standalone-preset.js", "favicon-16x16.png", "favicon-32x32.png"}

var swaggerUI = fasthttpadaptor.NewFastHTTPHandler(v5emb.NewHandlerWithConfig(swgui.Config{
	Title: "Exchange API", SwaggerJSON: "/api/openapi.json", BasePath: "/docs/",
	// the schemas are listed, below the operations
	SettingsUI: map[string]string{"defaultModelsExpandDepth": "0"},
}))

// docsPolicy keeps browsers from loading anything from elsewhere, whatever the scripts and the
// document ask for. The page has a script and styles of its own, and icons within its styles.
const docsPolicy = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' " +
	"'unsafe-inline'; img-src 'self' data:; " +
	"font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'none'"

// isDocs reports whether a route is that of the page or of one of its files.
func isDocs(route string) bool { return strings.HasPrefix(route, "/docs") }

// isDocsFile reports whether a path below /docs can name something.
func isDocsFile(name string) bool { return slices.Contains(docsFiles, name) }

// docsContent is everything below /docs by name. Each is made when a client asks for it for the
// first time.
var docsContent = func() map[string]func() *packedPage {
	content := make(map[string]func() *packedPage)
	for _, name := range append([]string{""}, docsFiles...) {
		content[name] = sync.OnceValue(func() *packedPage { return newDocsPage(name) })
	}
	return content
}()

func newDocsPage(name string) *packedPage {
	var request fasthttp.Request
	request.SetRequestURI("http://exchange/docs/" + name)
	ctx := new(fasthttp.RequestCtx)
	ctx.Init(&request, nil, nil)
	swaggerUI(ctx)
	answer := &ctx.Response
	if answer.StatusCode() != fasthttp.StatusOK || len(answer.Header.ContentEncoding()) > 0 {
		panic(fmt.Sprintf("BUG: Swagger UI answers %d for %q", answer.StatusCode(), name))
	}
	contentType := string(answer.Header.ContentType())
	if name == "" {
		contentType = "text/html; charset=utf-8"
	}
	return newPage(contentType, slices.Clone(answer.Body()))
}

// docs serves the page and its files. A slash at the end, and a query, mean nothing here.
func (g *Gateway) docs(r *request) {
	name, _ := r.ctx.UserValue("file").(string)
	h := &r.ctx.Response.Header
	if name == "" {
		h.Set("Content-Security-Policy", docsPolicy)
	}
	h.Set("X-Content-Type-Options", "nosniff")
	r.sendPage(docsContent[name]())
}

// A packedPage is a file in memory, in each coding that makes it smaller.
type packedPage struct {
	contentType string
	forms       []pageForm // the best one first, the plain one last
}

type pageForm struct {
	coding string // "": none
	body   []byte
	tag    string
}

// newPage packs a file.
func newPage(contentType string, plain []byte) *packedPage {
	p := &packedPage{contentType: contentType}
	add := func(coding string, body []byte) {
		if coding == "" || len(body) < len(plain)*9/10 {
			p.forms = append(p.forms, pageForm{coding, body,
				fmt.Sprintf(`"%x"`, sha256.Sum256(body))})
		}
	}
	add("br", fasthttp.AppendBrotliBytesLevel(nil, plain,
		fasthttp.CompressBrotliDefaultCompression))
	add("gzip", fasthttp.AppendGzipBytesLevel(nil, plain, fasthttp.CompressDefaultCompression))
	add("", plain)
	return p
}

// form is the best one that a client takes.
func (p *packedPage) form(accept string) *pageForm {
	for i := range p.forms {
		if f := &p.forms[i]; f.coding == "" || accepts(accept, f.coding) {
			return f
		}
	}
	panic("BUG: a page has no plain form")
}

// sendPage answers with a page, or with 304 if the client has it. Beside requests the bytes of
// pages are counted for the client's address, because a page is thousands of times as large as what
// asks for it.
func (r *request) sendPage(p *packedPage) {
	f, h := p.form(string(r.ctx.Request.Header.Peek("Accept-Encoding"))), &r.ctx.Response.Header
	have := strings.Contains(string(r.ctx.Request.Header.Peek("If-None-Match")), f.tag)
	if !have && !r.ctx.IsHead() && !r.mayLoad(len(f.body)) {
		return
	}
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", f.tag)
	if r.written = true; have {
		r.Status = fasthttp.StatusNotModified
		return
	}
	h.SetContentType(p.contentType)
	if f.coding != "" {
		h.Set("Content-Encoding", f.coding)
	}
	r.ctx.Response.SetBodyRaw(f.body)
}

// accepts looks through an Accept-Encoding header, in which * stands for every coding that it does
// not name.
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
