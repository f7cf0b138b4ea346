package openapi

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"slices"
	"sync"

	"github.com/swaggest/swgui"
	"github.com/swaggest/swgui/v5emb"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"exchange/gateway/api"
	"exchange/web"
)

// Paths of the document and of its page.
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

// The page's own files: one signs private requests, one has its colours. signForm has the fields of
// the first. A browser stores the content of a password field, and of a field without
// autocomplete="off".
// autocomplete="off".
const (
	signScript = "sign.js"
	docsStyle  = "docs.css"
	links      = `<a href="/trade">Market</a><a href="/account">Account page</a>`
	docsHead   = `<meta name="viewport" content="width=device-width, initial-scale=1">` +
		`<link rel="stylesheet" href="/docs/` + docsStyle + `">` +
		`<script src="/docs/` + signScript + `"></script>`
	signForm = `<header class="top"><b>Exchange API</b>` + links + `</header><section class="sign">
<b>Signing</b>
<label>key <input id="sign-key" autocomplete="off" spellcheck="false"></label>
<label>secret <input id="sign-secret" autocomplete="off" spellcheck="false"></label>
<span id="sign-state">Both stay in the memory of this page, and are gone when it is left.</span>
</section>`
)

//go:embed sign.js docs.css
var docsOwn embed.FS

// docsFiles are the files that the page needs; Swagger UI has more.
var docsFiles = []string{"swagger-ui.css", "swagger-ui-bundle.js",
	"swagger-ui-standalone-preset.js", "favicon-16x16.png", "favicon-32x32.png", signScript,
	docsStyle}

var swaggerUI = fasthttpadaptor.NewFastHTTPHandler(v5emb.NewHandlerWithConfig(swgui.Config{
	Title: "Exchange API", SwaggerJSON: "/api/openapi.json", BasePath: "/docs/",
	// list the schemas, below the operations
	SettingsUI: map[string]string{"defaultModelsExpandDepth": "0",
		"requestInterceptor": "signRequest"},
	AppendHead:  docsHead,
	PrependHTML: signForm,
}))

// DocsPolicy keeps browsers from loading anything from elsewhere, even if the scripts or the
// document ask for it. The page has its own script and styles, and icons within the styles. The
// sandbox gives it an origin of its own, so that it cannot reach the other pages' data in a
// browser. It calls the API like a page from elsewhere.
const DocsPolicy = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' " +
	"'unsafe-inline'; img-src 'self' data:; " +
	"font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'none'; sandbox allow-scripts allow-forms allow-popups"

// HasDocs reports whether the page at /docs has a file with a name.
func HasDocs(name string) bool { return slices.Contains(docsFiles, name) }

// Docs returns a file of the page at /docs for which HasDocs is true.
func Docs(name string) *Page { return docsContent[name]() }

// A DocsLook holds the parameters of the page at /docs.
type DocsLook struct {
	Theme string // dark or light; "": the browser's preference
	Pages bool   // the web pages exist, and it links to them
}

// DocsPage returns the page at /docs itself.
func DocsPage(l DocsLook) *Page {
	if p, ok := docsPages.Load(l); ok {
		return p.(*Page)
	}
	_, plain := swaggerFile("")
	plain = bytes.Replace(plain, []byte("<html "), []byte(`<html data-theme="`+l.Theme+`" `), 1)
	if !l.Pages {
		plain = bytes.Replace(plain, []byte(links), nil, 1)
	}
	p, _ := docsPages.LoadOrStore(l, newPage("text/html; charset=utf-8", plain))
	return p.(*Page)
}

// docsPages holds the page in each requested look.
var docsPages sync.Map

// docsContent holds the files below /docs by name. Each is made for its first request.
var docsContent = func() map[string]func() *Page {
	content := make(map[string]func() *Page)
	for _, name := range docsFiles {
		content[name] = sync.OnceValue(func() *Page { return newDocsPage(name) })
	}
	return content
}()

func newDocsPage(name string) *Page {
	if own, err := docsOwn.ReadFile(name); err == nil {
		if name == docsStyle {
			return newPage("text/css; charset=utf-8", slices.Concat(web.Colours(), own))
		}
		return newPage("text/javascript; charset=utf-8", own)
	}
	kind, plain := swaggerFile(name)
	return newPage(kind, plain)
}

// swaggerFile returns a file of Swagger UI, its page for "".
func swaggerFile(name string) (contentType string, content []byte) {
	var request fasthttp.Request
	request.SetRequestURI("http://exchange/docs/" + name)
	ctx := new(fasthttp.RequestCtx)
	ctx.Init(&request, nil, nil)
	swaggerUI(ctx)
	answer := &ctx.Response
	if answer.StatusCode() != fasthttp.StatusOK || len(answer.Header.ContentEncoding()) > 0 {
		panic(fmt.Sprintf("BUG: Swagger UI answers %d for %q", answer.StatusCode(), name))
	}
	return string(answer.Header.ContentType()), slices.Clone(answer.Body())
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
