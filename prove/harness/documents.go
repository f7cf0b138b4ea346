package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/valyala/fasthttp"

	"exchange/gateway"
	"exchange/gateway/edge"
	"exchange/gateway/openapi"
	"exchange/gateway/operator"
)

// A Documented harness checks every answer against the OpenAPI document.
type Documented struct {
	*Exchange
	Doc  *ApiDocumentation
	Seen map[string]bool // method, path of the document and status
}

// NewDocumentedOf has the answers of an exchange checked.
func NewDocumentedOf(t testing.TB, h *Exchange) *Documented {
	return &Documented{h, Documentation(t, true), map[string]bool{}}
}

// PathOf is the path of the document that an address belongs to.
func (d *Documented) PathOf(address string) string {
	path, _, _ := strings.Cut(address, "?")
	parts := strings.Split(strings.TrimSuffix(path, "/"), "/")
	best := ""
	for p := range d.Doc.Root["paths"].(map[string]any) {
		same := func(part, described string) bool {
			return part == described || strings.HasPrefix(described, "{")
		}
		if slices.EqualFunc(parts, strings.Split(strings.TrimSuffix(p, "/"), "/"), same) &&
			(best == "" || strings.Contains(best, "{")) {
			best = p
		}
	}
	return best
}

// Fits checks an answer against the document.
func (d *Documented) Fits(method, address string, a Answer, status int) Answer {
	d.T.Helper()
	what := fmt.Sprintf("%s %s: %d %.300s", method, address, a.Status, a.Body)
	path := d.PathOf(address)
	at := "/paths/" + Escaped(path) + "/" + strings.ToLower(method)
	if d.Doc.At(at) == nil {
		// a wrong method is described with the right ones
		at = "/paths/" + Escaped(path) + "/get"
		if d.Doc.At(at) == nil {
			at = "/paths/" + Escaped(path) + "/post"
		}
	}
	at = d.Doc.Follow(at + "/responses/" + fmt.Sprint(a.Status))
	if a.Status != status || d.Doc.At(at) == nil {
		d.T.Errorf("%s\nwanted is %d, and it must be described", what, status)
		return a
	}
	d.Seen[fmt.Sprint(method, " ", path, " ", status)] = true
	kind, _, _ := strings.Cut(string(a.Header.ContentType()), ";")
	content := at + "/content/" + Escaped(kind)
	if d.Doc.At(content) == nil {
		content = at + "/content/" + Escaped("*/*")
	}
	switch {
	case d.Doc.At(content) == nil:
		d.T.Errorf("%s\nis %s, which is not described", what, kind)
	case kind == JsonMedia:
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(a.Body))
		if err == nil {
			err = d.Doc.Check(content+"/schema", v)
		}
		if err != nil {
			d.T.Errorf("%s\n%v", what, err)
		}
	}
	d.headers(what, at, a)
	return a
}

// headers checks that an answer has the described headers, and no other header that a client may
// read.
func (d *Documented) headers(what, at string, a Answer) {
	d.T.Helper()
	described, _ := d.Doc.At(at + "/headers").(map[string]any)
	sent := map[string]bool{}
	for key := range a.Header.All() {
		sent[strings.ToLower(string(key))] = true
	}
	for _, name := range append(strings.Split(exposed, ", "), "Allow", "ETag", "Cache-Control",
		"WWW-Authenticate") {
		is, must := sent[strings.ToLower(name)], described[name] != nil
		// described in the guide only
		if a.Status >= 400 && a.Status != 429 && slices.Contains(rateHeaderNames, name) {
			must = is
		}
		if a.Status >= 400 && name == "Cache-Control" { // as is this
			must = true
		}
		// one is for server failures, one where a retry is safe, one of followers
		if a.Status == 503 &&
			(name == "X-Request-Id" || name == "Retry-After" || name == "X-Leader") {
			must = must && is
		}
		if is != must {
			d.T.Errorf("%s\nheader %s: described %v, sent %v", what, name, must, is)
		}
	}
}

// rateHeaderNames are the headers of answers whose rate is limited.
var rateHeaderNames = []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}

// An ApiDocumentation is the document as readers get it.
type ApiDocumentation struct {
	T        testing.TB
	Root     map[string]any
	compiler *jsonschema.Compiler
}

// Documentation reads the document. If strict, schemas of objects allow only the named members.
func Documentation(t testing.TB, strict bool) *ApiDocumentation {
	t.Helper()
	d := NewDocumentation(t, openapi.New(true, "").Text())
	if strict {
		for _, s := range d.At("/components/schemas").(map[string]any) {
			if s := s.(map[string]any); s["properties"] != nil {
				s["additionalProperties"] = false
			}
		}
	}
	return d
}

// NewDocumentation reads a document.
func NewDocumentation(t testing.TB, text []byte) *ApiDocumentation {
	t.Helper()
	root := Must(jsonschema.UnmarshalJSON(bytes.NewReader(text)))
	d := &ApiDocumentation{T: t, Root: root.(map[string]any), compiler: jsonschema.NewCompiler()}
	Worked(t, d.compiler.AddResource("openapi.json", root))
	return d
}

// Escaped is a name as a part of a JSON pointer.
func Escaped(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// At returns the target of a JSON pointer; nil: nothing.
func (d *ApiDocumentation) At(pointer string) any {
	var v any = d.Root
	for _, part := range strings.Split(pointer, "/")[1:] {
		m, _ := v.(map[string]any)
		v = m[strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")]
	}
	return v
}

// Follow is the target of a pointer to a reference.
func (d *ApiDocumentation) Follow(pointer string) string {
	if m, ok := d.At(pointer).(map[string]any); ok {
		if to, ok := m["$ref"].(string); ok {
			return strings.TrimPrefix(to, "#")
		}
	}
	return pointer
}

// Check checks a value against the schema at a pointer.
func (d *ApiDocumentation) Check(pointer string, v any) error {
	s, err := d.compiler.Compile("openapi.json#" + (&url.URL{Path: pointer}).EscapedPath())
	if err != nil {
		d.T.Fatalf("%s: %v", pointer, err)
	}
	return s.Validate(v)
}

// Walk visits everything in the document.
func (d *ApiDocumentation) Walk(visit func(pointer string, v any)) { walk("", d.Root, visit) }

func walk(pointer string, v any, visit func(string, any)) {
	visit(pointer, v)
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v {
			walk(pointer+"/"+Escaped(name), x, visit)
		}
	case []any:
		for i, x := range v {
			walk(pointer+"/"+strconv.Itoa(i), x, visit)
		}
	}
}

// Operations visits each operation of the document.
func (d *ApiDocumentation) Operations(visit func(method, path, pointer string, o map[string]any)) {
	for path, item := range d.Root["paths"].(map[string]any) {
		for method, o := range item.(map[string]any) {
			visit(strings.ToUpper(method), path, "/paths/"+Escaped(path)+"/"+method,
				o.(map[string]any))
		}
	}
}

// Bare is a gateway without an engine.
func Bare(o edge.Options) func(method, uri string, headers ...string) *fasthttp.Response {
	o.Log = Quiet()
	g := gateway.New(o)
	return func(method, uri string, headers ...string) *fasthttp.Response {
		ctx := &fasthttp.RequestCtx{}
		ctx.Request.Header.SetMethod(method)
		ctx.Request.SetRequestURI(uri)
		for i := 0; i+1 < len(headers); i += 2 {
			ctx.Request.Header.Set(headers[i], headers[i+1])
		}
		g.Public().Route(ctx)
		return &ctx.Response
	}
}

// HeaderOf is a header of an answer, in upper or lower case.
func HeaderOf(a *fasthttp.Response, name string) string {
	for key, value := range a.Header.All() {
		if strings.EqualFold(string(key), name) {
			return string(value)
		}
	}
	return ""
}

// ResponseName returns the name of a shared response.
func ResponseName(status int) string {
	return strings.ReplaceAll(fasthttp.StatusMessage(status), " ", "")
}

// An operatorDocumentation is the document of the operator's API. Its schemas of objects allow only
// the named members. Any goroutine may use it.
type operatorDocumentation struct {
	*ApiDocumentation
	mu       sync.Mutex
	compiled map[string]*jsonschema.Schema // by pointer
	seen     map[string]bool               // operations that have answered 200
}

// OperatorDocument has the document that all answers to operators are checked against.
var OperatorDocument = sync.OnceValue(func() *operatorDocumentation {
	root, err := jsonschema.UnmarshalJSON(strings.NewReader(string(operator.Document())))
	if err != nil {
		panic(err)
	}
	d := &operatorDocumentation{ApiDocumentation: &ApiDocumentation{Root: root.(map[string]any),
		compiler: jsonschema.NewCompiler()}, compiled: map[string]*jsonschema.Schema{},
		seen: map[string]bool{}}
	d.Walk(func(_ string, v any) {
		if s, ok := v.(map[string]any); ok && s["type"] == "object" && s["properties"] != nil {
			s["additionalProperties"] = false
		}
	})
	if err := d.compiler.AddResource("operator.json", root); err != nil {
		panic(err)
	}
	return d
})

// schema returns the schema at a pointer.
func (d *operatorDocumentation) schema(pointer string) *jsonschema.Schema {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.compiled[pointer] == nil {
		d.compiled[pointer] = d.compiler.MustCompile("operator.json#" +
			(&url.URL{Path: pointer}).EscapedPath())
	}
	return d.compiled[pointer]
}

// Fits checks an answer against the document, and an executed request.
func (d *operatorDocumentation) Fits(t testing.TB, method, address, body string, a Answer) {
	t.Helper()
	path, query, _ := strings.Cut(address, "?")
	path = strings.TrimSuffix(path, "/")
	if !strings.HasPrefix(path, "/operator/v1/") || method == "HEAD" || a.Status == 0 {
		return
	}
	operation := "/paths/" + Escaped(path) + "/" + strings.ToLower(method)
	at := d.Follow(operation + "/responses/" + strconv.Itoa(a.Status))
	if d.At(operation) == nil {
		at = "/components/responses/" + ResponseName(a.Status)
	}
	kind, _, _ := strings.Cut(string(a.Header.ContentType()), ";")
	at += "/content/" + Escaped(kind)
	if d.At(at) == nil {
		t.Errorf("%s %s: %d of %s is not described: %.300s", method, address, a.Status, kind,
			a.Body)
		return
	}
	switch kind {
	case JsonMedia:
		d.holds(t, method+" "+address, at+"/schema", a.Body)
	case "application/x-ndjson":
		for line := range strings.Lines(a.Body) {
			d.holds(t, method+" "+address, at+"/schema", line)
		}
	}
	if a.Status == 200 {
		d.Asked(t, operation, query, body)
	}
}

// holds checks a text against a schema.
func (d *operatorDocumentation) holds(t testing.TB, what, schema, text string) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err == nil {
		err = d.schema(schema).Validate(v)
	}
	if err != nil {
		t.Errorf("%s: %.300s\n%v", what, text, err)
	}
}

// Asked checks an executed request against the document.
func (d *operatorDocumentation) Asked(t testing.TB, operation, query, body string) {
	t.Helper()
	d.mu.Lock()
	d.seen[operation] = true
	d.mu.Unlock()
	values, _ := url.ParseQuery(query)
	list, _ := d.At(operation + "/parameters").([]any)
	for name := range values {
		if !slices.ContainsFunc(list, func(p any) bool {
			return p.(map[string]any)["name"] == name
		}) {
			t.Errorf("%s: the parameter %s is not described", operation, name)
		}
	}
	var sent map[string]any
	if d.At(operation+"/requestBody") == nil || json.Unmarshal([]byte(body), &sent) != nil ||
		sent == nil {
		return
	}
	plain := map[string]any{} // case does not matter, and null is as if it were left out
	for name, v := range sent {
		if v != nil {
			plain[strings.ToLower(name)] = v
		}
	}
	text := Must(json.Marshal(plain))
	d.holds(t, operation, operation+"/requestBody/content/"+Escaped(JsonMedia)+"/schema",
		string(text))
}

// Bodies visits each operation with a body, with the names of the body's members.
func (d *operatorDocumentation) Bodies(visit func(path string, members []string)) {
	d.Operations(func(method, path, pointer string, _ map[string]any) {
		schema := d.Follow(pointer + "/requestBody/content/" + Escaped(JsonMedia) + "/schema")
		if method != "POST" {
			return
		}
		var members []string
		all, _ := d.At(schema + "/properties").(map[string]any)
		for name := range all {
			members = append(members, name)
		}
		slices.Sort(members)
		visit(path, members)
	})
}
