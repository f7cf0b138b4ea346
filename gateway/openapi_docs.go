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

// The page at /docs shows the OpenAPI document to people. It is Swagger UI, whose files are part of the
// program, so that the page is there wherever the exchange runs, and tells nobody else who reads it.

// docsFiles are the files that the page needs; Swagger UI has more.
var docsFiles = []string{"swagger-ui.css", "swagger-ui-bundle.js", "swagger-ui-standalone-preset.js", "favicon-16x16.png", "favicon-32x32.png"}

var swaggerUI = fasthttpadaptor.NewFastHTTPHandler(v5emb.NewHandlerWithConfig(swgui.Config{
	Title: "Exchange API", SwaggerJSON: "/api/openapi.json", BasePath: "/docs/",
	SettingsUI: map[string]string{"defaultModelsExpandDepth": "0"}, // the schemas are listed, below the operations
}))

// docsPolicy keeps browsers from loading anything from elsewhere, whatever the scripts and the document
// ask for. The page has a script and styles of its own, and icons within its styles.
const docsPolicy = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// isDocsFile reports whether a path below /docs can name something.
func isDocsFile(name string) bool { return slices.Contains(docsFiles, name) }

// A docsFile is one of them in memory. Swagger UI has most of them only compressed, and would inflate them for each request.
type docsFile struct {
	contentType   string
	plain, packed docsForm // packed with gzip; without a body if there is none
}

type docsForm struct {
	body []byte
	tag  string
}

// docsContent is everything below /docs by name, made when somebody asks for the first time.
var docsContent = sync.OnceValue(func() map[string]*docsFile {
	content := make(map[string]*docsFile)
	for _, name := range append([]string{""}, docsFiles...) {
		f := new(docsFile)
		for _, encoding := range []string{"", "gzip"} {
			var request fasthttp.Request
			request.SetRequestURI("http://exchange/docs/" + name)
			request.Header.Set("Accept-Encoding", encoding)
			ctx := new(fasthttp.RequestCtx)
			ctx.Init(&request, nil, nil)
			swaggerUI(ctx)
			h := &ctx.Response.Header
			if ctx.Response.StatusCode() != fasthttp.StatusOK || string(h.ContentEncoding()) != encoding && len(h.ContentEncoding()) > 0 {
				panic(fmt.Sprintf("BUG: Swagger UI answers %d for %q", ctx.Response.StatusCode(), name))
			}
			f.contentType = string(h.ContentType())
			form := &f.plain
			if len(h.ContentEncoding()) > 0 {
				form = &f.packed
			}
			form.body = slices.Clone(ctx.Response.Body())
			form.tag = fmt.Sprintf(`"%x"`, sha256.Sum256(form.body))
		}
		content[name] = f
	}
	content[""].contentType = "text/html; charset=utf-8"
	return content
})

// docs serves the page and its files. A slash at the end, and a query, mean nothing here.
func (g *Gateway) docs(r *request) {
	name, _ := r.ctx.UserValue("file").(string)
	f := docsContent()[name]
	h := &r.ctx.Response.Header
	form := &f.plain
	if f.packed.body != nil {
		h.Set("Vary", "Accept-Encoding")
		if acceptsGzip(string(r.ctx.Request.Header.Peek("Accept-Encoding"))) {
			form = &f.packed
			h.Set("Content-Encoding", "gzip")
		}
	}
	h.Set("Content-Type", f.contentType)
	if name == "" {
		h.Set("Content-Security-Policy", docsPolicy)
	} else {
		h.Set("ETag", form.tag)
	}
	h.Set("X-Content-Type-Options", "nosniff")
	r.written = true
	if name != "" && strings.Contains(string(r.ctx.Request.Header.Peek("If-None-Match")), form.tag) {
		r.status = fasthttp.StatusNotModified
		return
	}
	r.ctx.Response.SetBodyRaw(form.body)
}

// acceptsGzip looks through an Accept-Encoding header, in which * stands for every coding that it does not name.
func acceptsGzip(header string) (ok bool) {
	for part := range strings.SplitSeq(header, ",") {
		coding, parameters, _ := strings.Cut(part, ";")
		switch coding = strings.TrimSpace(coding); {
		case strings.EqualFold(coding, "gzip"):
			return wanted(parameters)
		case coding == "*":
			ok = wanted(parameters)
		}
	}
	return ok
}
