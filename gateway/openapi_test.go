package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/valyala/fasthttp"

	"exchange/actors/committed"
	"exchange/gateway/api"
	"exchange/gateway/edge"
	"exchange/gateway/openapi"
	"exchange/gateway/operator"
	"exchange/gateway/params"
	"exchange/gateway/sign"
)

// An apiDocumentation is the document as readers get it.
type apiDocumentation struct {
	t        testing.TB
	root     map[string]any
	compiler *jsonschema.Compiler
}

// documentation reads the document. If strict, schemas of objects allow only the named members.
func documentation(t testing.TB, strict bool) *apiDocumentation {
	t.Helper()
	d := newDocumentation(t, openapi.New(true, "").Text())
	if strict {
		for _, s := range d.at("/components/schemas").(map[string]any) {
			if s := s.(map[string]any); s["properties"] != nil {
				s["additionalProperties"] = false
			}
		}
	}
	return d
}

// newDocumentation reads a document.
func newDocumentation(t testing.TB, text []byte) *apiDocumentation {
	t.Helper()
	root := must(jsonschema.UnmarshalJSON(bytes.NewReader(text)))
	d := &apiDocumentation{t: t, root: root.(map[string]any), compiler: jsonschema.NewCompiler()}
	worked(t, d.compiler.AddResource("openapi.json", root))
	return d
}

// escaped is a name as a part of a JSON pointer.
func escaped(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// at returns the target of a JSON pointer; nil: nothing.
func (d *apiDocumentation) at(pointer string) any {
	var v any = d.root
	for _, part := range strings.Split(pointer, "/")[1:] {
		m, _ := v.(map[string]any)
		v = m[strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")]
	}
	return v
}

// follow is the target of a pointer to a reference.
func (d *apiDocumentation) follow(pointer string) string {
	if m, ok := d.at(pointer).(map[string]any); ok {
		if to, ok := m["$ref"].(string); ok {
			return strings.TrimPrefix(to, "#")
		}
	}
	return pointer
}

// check checks a value against the schema at a pointer.
func (d *apiDocumentation) check(pointer string, v any) error {
	s, err := d.compiler.Compile("openapi.json#" + (&url.URL{Path: pointer}).EscapedPath())
	if err != nil {
		d.t.Fatalf("%s: %v", pointer, err)
	}
	return s.Validate(v)
}

// walk visits everything in the document.
func (d *apiDocumentation) walk(visit func(pointer string, v any)) { walk("", d.root, visit) }

func walk(pointer string, v any, visit func(string, any)) {
	visit(pointer, v)
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v {
			walk(pointer+"/"+escaped(name), x, visit)
		}
	case []any:
		for i, x := range v {
			walk(pointer+"/"+strconv.Itoa(i), x, visit)
		}
	}
}

// operations visits each operation of the document.
func (d *apiDocumentation) operations(visit func(method, path, pointer string, o map[string]any)) {
	for path, item := range d.root["paths"].(map[string]any) {
		for method, o := range item.(map[string]any) {
			visit(strings.ToUpper(method), path, "/paths/"+escaped(path)+"/"+method,
				o.(map[string]any))
		}
	}
}

func TestTheDocumentIsValidOpenAPI(t *testing.T) {
	text := must(os.ReadFile("testdata/openapi-3.1.schema.json")) // as published at its $id
	read := must(jsonschema.UnmarshalJSON(bytes.NewReader(text)))
	c := jsonschema.NewCompiler()
	worked(t, c.AddResource("schema.json", read))
	schema := c.MustCompile("schema.json")
	checkDocument(t, schema, documentation(t, false))
	checkDocument(t, schema, newDocumentation(t, operator.Document()))
}

// Generators make types of schemas: required members have to be described beside it.
func TestRequiredMembersAreDescribed(t *testing.T) {
	for _, d := range []*apiDocumentation{documentation(t, false),
		newDocumentation(t, operator.Document())} {
		d.walk(func(pointer string, v any) {
			schema, _ := v.(map[string]any)
			required, _ := schema["required"].([]any)
			properties, _ := schema["properties"].(map[string]any)
			for _, name := range required {
				if properties[name.(string)] == nil {
					t.Errorf("%s requires %v, which it does not describe", pointer, name)
				}
			}
		})
	}
}

func TestTheDocumentNamesLicenseAndContact(t *testing.T) {
	for contact, want := range map[string]any{"": nil,
		"api@example.org":         map[string]any{"email": "api@example.org"},
		"https://example.org/api": map[string]any{"url": "https://example.org/api"}} {
		d := newDocumentation(t, openapi.New(true, contact).Text())
		if got := d.at("/info/contact"); !reflect.DeepEqual(got, want) {
			t.Errorf("contact %q is %v", contact, got)
		}
		if got := d.at("/info/license/identifier"); got != "Apache-2.0" {
			t.Errorf("the license is %v", got)
		}
	}
}

// checkDocument checks a document against the schema of OpenAPI, and follows its references.
func checkDocument(t *testing.T, schema *jsonschema.Schema, d *apiDocumentation) {
	t.Helper()
	if err := schema.Validate(d.root); err != nil {
		t.Errorf("%#v", err)
	}
	ids := map[any]bool{}
	d.operations(func(_, path, _ string, o map[string]any) {
		if id := o["operationId"]; id == nil || ids[id] {
			t.Errorf("%s: operationId %v is missing or not unique", path, id)
		} else {
			ids[id] = true
		}
	})
	used := map[string]bool{}
	d.walk(func(pointer string, v any) {
		m, _ := v.(map[string]any)
		if to, ok := m["$ref"].(string); ok {
			used[to] = true
			if !strings.HasPrefix(to, "#/components/") || d.at(to[1:]) == nil {
				t.Errorf("%s: %s is nowhere", pointer, to)
			}
		}
	})
	for kind, all := range d.root["components"].(map[string]any) {
		for name := range all.(map[string]any) {
			if to := "#/components/" + kind + "/" + name; kind != "securitySchemes" && !used[to] {
				t.Errorf("nothing refers to %s", to)
			}
		}
	}
}

// isSchema is true of the pointers at which schemas are.
var isSchema = regexp.MustCompile(`/schema$|^/components/schemas/[^/]+$|/properties/[^/]+$`)

func TestExamplesAndDefaultsFitTheirSchemas(t *testing.T) {
	d := documentation(t, true)
	schemas, examples := 0, 0
	d.walk(func(pointer string, v any) {
		m, _ := v.(map[string]any)
		if isSchema.MatchString(pointer) {
			schemas++
			all, _ := m["examples"].([]any)
			if x, ok := m["default"]; ok {
				all = append(all, x)
			}
			d.check(pointer, nil) //nolint:errcheck // it must compile
			for _, x := range all {
				examples++
				if err := d.check(pointer, x); err != nil {
					t.Errorf("%s: %v", pointer, err)
				}
			}
			return
		}
		if x, ok := m["example"]; ok && m["schema"] != nil {
			examples++
			if err := d.check(pointer+"/schema", x); err != nil {
				t.Errorf("%s: %v", pointer, err)
			}
		}
		if m["schema"] == nil || m["examples"] == nil {
			return
		}
		for name := range m["examples"].(map[string]any) {
			examples++
			x := d.at(d.follow(pointer+"/examples/"+name) + "/value")
			if err := d.check(pointer+"/schema", x); err != nil {
				t.Errorf("%s, %s: %v", pointer, name, err)
			}
		}
	})
	if schemas < 100 || examples < 200 {
		t.Errorf("only %d schemas and %d examples were found", schemas, examples)
	}
}

func TestEveryRouteAndMethodIsDescribedOnceAndNothingElse(t *testing.T) {
	d := documentation(t, false)
	described := map[string]bool{}
	d.operations(func(method, path, _ string, o map[string]any) {
		described[method+" "+path] = true
		for _, must := range []string{"summary", "description", "tags", "responses"} {
			if o[must] == nil {
				t.Errorf("%s %s has no %s", method, path, must)
			}
		}
	})
	if len(openapi.Descriptions()) != len(described) {
		t.Error("an operation is described twice")
	}
	for route, list := range New(edge.Options{Log: quiet()}).public.Table() {
		path := route
		if strings.HasPrefix(route, "/api/v1/") {
			path += "/"
		}
		for _, method := range []string{"GET", "POST"} {
			o := list[0]
			if method == "POST" && len(list) > 1 {
				o = list[1]
			}
			what, has := method+" "+path, method == o.Method
			if described[what] != has {
				t.Errorf("%s: route %v, described %v", what, has, described[what])
			}
			delete(described, what)
			if !has {
				continue
			}
			at, _ := d.at("/paths/" + escaped(path) + "/" +
				strings.ToLower(method)).(map[string]any)
			security, said := at["security"].([]any) // [] of a public one: none is needed
			if private := len(security) > 0; !said || private != (o.Private || o.Signable) {
				t.Errorf("%s: described as private: %v", what, private)
			}
			var names []string
			list, _ := at["parameters"].([]any)
			for _, p := range list {
				if p := p.(map[string]any); p["in"] == "path" {
					names = append(names, "{"+p["name"].(string)+"}")
				}
			}
			if want := regexp.MustCompile(`\{[a-z]+\}`).FindAllString(path,
				-1); !slices.Equal(names, want) {
				t.Errorf("%s: the path has %v, described are %v", what, want, names)
			}
		}
	}
	for what := range described {
		t.Errorf("%s is described and is no route", what)
	}
}

// TestEveryFailureIsDescribed also compares the examples with the gateway's answers.
func TestEveryFailureIsDescribed(t *testing.T) {
	d := documentation(t, false)
	described := map[string]bool{}
	d.operations(func(_, _, pointer string, o map[string]any) {
		for status := range o["responses"].(map[string]any) {
			examples, _ := d.at(d.follow(pointer+"/responses/"+status) +
				"/content/application~1json/examples").(map[string]any)
			for name := range examples {
				described[name+" "+status] = true
			}
		}
	})
	for _, f := range api.Failures {
		if !described[fmt.Sprint(f.Name, " ", f.Status)] {
			t.Errorf("no operation has %s", f.Name)
		}
		var c api.Call
		if c.Fail(f, openapi.About(f)); f == api.WrongNonce {
			c.FailWith(&committed.NonceError{Last: openapi.LastNonce})
		}
		written, _ := c.Body()
		body := must(jsonschema.UnmarshalJSON(bytes.NewReader(written)))
		if got := d.at("/components/examples/" + f.Name + "/value"); !reflect.DeepEqual(got, body) {
			t.Errorf("%s: described as %v, written as %s", f.Name, got, written)
		}
		if about := openapi.About(f); strings.Contains(f.Detail, "%s") != (about != "") {
			t.Errorf("%s: %q is described with %q", f.Name, f.Detail, about)
		}
		if retry := f.RetryAfter > 0 ||
			f == api.Throttled; retry && d.at(
			"/components/responses/"+responseName(f.Status)+"/headers/Retry-After") == nil {
			t.Errorf("%s: Retry-After is not described", f.Name)
		}
		if f.Ours && d.at("/components/responses/"+responseName(f.Status)+
			"/headers/X-Request-Id") == nil {
			t.Errorf("%s: X-Request-Id is not described", f.Name)
		}
	}
}

func TestTheBoundsOfAChartAreDescribedAsNotNegative(t *testing.T) {
	d, seen := documentation(t, false), 0
	at := "/paths/" + escaped("/api/charts/{pair}/{timeframe}/chart") + "/get/parameters"
	for i, p := range d.at(at).([]any) {
		if name := p.(map[string]any)["name"]; name != "since" && name != "until" {
			continue
		}
		seen++
		for v, good := range map[json.Number]bool{"0": true, "0.5": true, "1570599480": true,
			"-1": false, "-0.5": false} {
			if err := d.check(fmt.Sprint(at, "/", i, "/schema"), v); (err == nil) != good {
				t.Errorf("parameter %d, %s: %v", i, v, err)
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d bounds are described", seen)
	}
}

func TestEveryCommandDocumentsUnknownOutcome(t *testing.T) {
	if text := api.OutcomeUnknown.Detail; !strings.HasPrefix(text, "Outcome unknown") ||
		strings.Contains(text, "the order") {
		t.Errorf("a withdrawal is answered with %q", text)
	}
}

func TestTheDescribedSignatureIsAccepted(t *testing.T) {
	d := documentation(t, false)
	text := d.at("/components/securitySchemes/signature/description").(string)
	m := regexp.MustCompile(`demo-alice(amount=\S+)\n[^0-9]*\n *([0-9a-f]{64})$`).
		FindStringSubmatch(text)
	if m == nil {
		t.Fatal(text)
	}
	guide := d.at("/info/description").(string)
	if !strings.Contains(guide, "body='"+m[1]+"'") {
		t.Errorf("the guide signs something else than %s", m[1])
	}
	var set params.Set
	worked(t, set.ParseForm([]byte(m[1])))
	var v sign.Verifier
	if !sign.New([]byte("demo-alice-secret")).Verify(&v, []byte("demo-alice"), &set, []byte(m[1]),
		[]byte(m[2])) {
		t.Errorf("%s is no signature of %s", m[2], m[1])
	}
}

// bare is a gateway without an engine.
func bare(o edge.Options) func(method, uri string, headers ...string) *fasthttp.Response {
	o.Log = quiet()
	g := New(o)
	return func(method, uri string, headers ...string) *fasthttp.Response {
		ctx := &fasthttp.RequestCtx{}
		ctx.Request.Header.SetMethod(method)
		ctx.Request.SetRequestURI(uri)
		for i := 0; i+1 < len(headers); i += 2 {
			ctx.Request.Header.Set(headers[i], headers[i+1])
		}
		g.public.Route(ctx)
		return &ctx.Response
	}
}

// headerOf is a header of an answer, in upper or lower case.
func headerOf(a *fasthttp.Response, name string) string {
	for key, value := range a.Header.All() {
		if strings.EqualFold(string(key), name) {
			return string(value)
		}
	}
	return ""
}

func TestTheDocumentIsServedBeforeThereIsAnEngine(t *testing.T) {
	do := bare(edge.Options{Limits: edge.Limits{PublicRate: edge.Rate{PerSecond: 1, Burst: 10}},
		RateEntries: 10, ForTests: edge.ForTests{Clock: func() int64 { return 1 }}})
	for i, path := range []string{"/api/openapi.json", "/api/openapi.json/",
		"/api/openapi.json?format=json"} {
		a := do("GET", path, "Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
		h := &a.Header
		if a.StatusCode() != 200 || !json.Valid(a.Body()) ||
			string(h.ContentType()) != "application/json" {
			t.Errorf("%s: %d %s %.100s", path, a.StatusCode(), h.ContentType(), a.Body())
		}
		if string(h.Peek("Access-Control-Allow-Origin")) != "*" ||
			string(h.Peek("Cache-Control")) != "no-cache" {
			t.Errorf("%s: %s", path, h)
		}
		if got := headerOf(a, "X-RateLimit-Remaining"); got != strconv.Itoa(9-2*i) {
			t.Errorf("%s: it counts for the address, %q are left", path, got)
		}
		etag := string(h.Peek("ETag"))
		if a := do("GET", path, "If-None-Match", `"other", W/`+etag); a.StatusCode() != 304 ||
			len(a.Body()) > 0 || string(a.Header.Peek("ETag")) != etag {
			t.Errorf("%s with its ETag %s: %d %.100s", path, etag, a.StatusCode(), a.Body())
		}
	}
	if a := do("GET", "/api/openapi.json", "If-None-Match", `"other"`); a.StatusCode() != 200 {
		t.Errorf("with another ETag: %d", a.StatusCode())
	}
	if a := do("POST", "/api/openapi.json"); a.StatusCode() != 405 {
		t.Errorf("POST: %d", a.StatusCode())
	}
	if a := do("GET", "/api/openapi.json?format=yaml"); a.StatusCode() != 406 {
		t.Errorf("yaml: %d", a.StatusCode())
	}
	if a := do("GET", "/api/v1/pairs/"); a.StatusCode() != 503 {
		t.Errorf("pairs: %d", a.StatusCode())
	}
}

// responseName returns the name of a shared response.
func responseName(status int) string {
	return strings.ReplaceAll(fasthttp.StatusMessage(status), " ", "")
}
