package openapi

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"slices"
	"sync"

	"github.com/swaggest/swgui"
	"github.com/swaggest/swgui/v5emb"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"exchange/gateway/api"
)

// Paths of the document and of the page that shows it to people.
const (
	Path     = "/api/openapi.json"
	docsPath = "/docs"
)

// Operations returns the operations of the document, and of the page at /docs if docs is true.
func Operations(docs bool) []api.Operation {
	get := func(path string) api.Operation {
		return api.Operation{Method: fasthttp.MethodGet, Path: path, Early: true}
	}
	if !docs {
		return []api.Operation{get(Path)}
	}
	return []api.Operation{get(Path), get(docsPath), get(docsPath + "/{file}")}
}

// signScript is the page's own file, which signs private requests; signForm has its fields. A
// browser keeps what is typed into a password field, and into a field without autocomplete="off".
const (
	signScript = "sign.js"
	signForm   = `<section style="max-width:1460px;margin:1em auto;padding:0 20px;` +
		`font-family:sans-serif;font-size:14px">
<b>Signing</b>
<label>key <input id="sign-key" size="36" autocomplete="off" spellcheck="false"></label>
<label>secret <input id="sign-secret" size="36" autocomplete="off" spellcheck="false" ` +
		`style="-webkit-text-security:disc"></label>
<span id="sign-state">Both stay in the memory of this page, and are gone when it is left.</span>
</section>`
)

//go:embed sign.js
var signing []byte

// docsFiles are the files that the page needs; Swagger UI has more.
var docsFiles = []string{"swagger-ui.css", "swagger-ui-bundle.js",
	"swagger-ui-standalone-preset.js", "favicon-16x16.png", "favicon-32x32.png", signScript}

var swaggerUI = fasthttpadaptor.NewFastHTTPHandler(v5emb.NewHandlerWithConfig(swgui.Config{
	Title: "Exchange API", SwaggerJSON: "/api/openapi.json", BasePath: "/docs/",
	// list the schemas, below the operations
	SettingsUI: map[string]string{"defaultModelsExpandDepth": "0",
		"requestInterceptor": "signRequest"},
	AppendHead:  `<script src="/docs/` + signScript + `"></script>`,
	PrependHTML: signForm,
}))

// DocsPolicy keeps browsers from loading anything from elsewhere, even if the scripts or the
// document ask for it. The page has its own script and styles, and icons within the styles. The
// sandbox gives it an origin of its own, so that it cannot reach what the exchange's other pages
// keep in a browser. It asks the API as a page from elsewhere does.
const DocsPolicy = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' " +
	"'unsafe-inline'; img-src 'self' data:; " +
	"font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'none'; sandbox allow-scripts allow-forms allow-popups"

// HasDocs reports whether the page at /docs has a file with a name.
func HasDocs(name string) bool { return slices.Contains(docsFiles, name) }

// Docs returns a file of the page at /docs that HasDocs knows, or the page itself for "".
func Docs(name string) *Page { return docsContent[name]() }

// docsContent has the files below /docs by name. Each is made when a client first asks for it.
var docsContent = func() map[string]func() *Page {
	content := make(map[string]func() *Page)
	for _, name := range append([]string{""}, docsFiles...) {
		content[name] = sync.OnceValue(func() *Page { return newDocsPage(name) })
	}
	return content
}()

func newDocsPage(name string) *Page {
	if name == signScript {
		return newPage("text/javascript; charset=utf-8", signing)
	}
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

// A Page is a file in memory, in each coding that makes it smaller.
type Page struct {
	ContentType string
	Forms       []Form // the best one first, the plain one last
}

// A Form is a file in one coding.
type Form struct {
	Coding string // "": none
	Body   []byte
	Tag    string // for the header ETag
}

// newPage packs a file.
func newPage(contentType string, plain []byte) *Page {
	p := &Page{ContentType: contentType}
	add := func(coding string, body []byte) {
		if coding == "" || len(body) < len(plain)*9/10 {
			p.Forms = append(p.Forms, Form{coding, body,
				fmt.Sprintf(`"%x"`, sha256.Sum256(body))})
		}
	}
	add("br", fasthttp.AppendBrotliBytesLevel(nil, plain,
		fasthttp.CompressBrotliDefaultCompression))
	add("gzip", fasthttp.AppendGzipBytesLevel(nil, plain, fasthttp.CompressDefaultCompression))
	add("", plain)
	return p
}
