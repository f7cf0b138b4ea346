package gateway

import (
	"github.com/swaggest/swgui"
	"github.com/swaggest/swgui/v5emb"
	"github.com/valyala/fasthttp/fasthttpadaptor"
	"slices"
	"strings"
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

// docs serves the page and its files.
func (g *Gateway) docs(r *request) {
	file, _ := r.ctx.UserValue("file").(string)
	// A slash at the end, and a query, mean nothing here.
	r.ctx.Request.SetRequestURI("/docs/" + file)
	// Swagger UI writes its tags without the quotes that belong to them, and wants them back so.
	known := string(r.ctx.Request.Header.Peek("If-None-Match"))
	r.ctx.Request.Header.Del("If-None-Match")
	// Asked for HEAD, Swagger UI does not tell the length of what it has only compressed. The server leaves
	// the body out, as long as it finds HEAD again.
	if r.ctx.IsHead() {
		r.ctx.Request.Header.SetMethod("GET")
		defer r.ctx.Request.Header.SetMethod("HEAD")
	}
	swaggerUI(r.ctx)
	h := &r.ctx.Response.Header
	if tag := string(h.Peek("ETag")); tag != "" {
		tag = `"` + tag + `"`
		h.Set("ETag", tag)
		if strings.Contains(known, tag) {
			r.ctx.Response.ResetBody()
			r.ctx.Response.SetStatusCode(304)
		}
	}
	if file == "" {
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", docsPolicy)
	}
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", cacheControl)
	r.status, r.written = r.ctx.Response.StatusCode(), true
}
