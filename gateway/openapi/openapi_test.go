package openapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"exchange/actors/committed"
	"exchange/gateway"
	"exchange/gateway/api"
	"exchange/gateway/edge"
	"exchange/gateway/openapi"
	"exchange/gateway/operator"
	"exchange/gateway/params"
	"exchange/gateway/sign"
	"exchange/prove/harness"
)

func TestTheDocumentIsValidOpenAPI(t *testing.T) {
	text := harness.Must(os.ReadFile("testdata/openapi-3.1.schema.json")) // as published at its $id
	read := harness.Must(jsonschema.UnmarshalJSON(bytes.NewReader(text)))
	c := jsonschema.NewCompiler()
	harness.Worked(t, c.AddResource("schema.json", read))
	schema := c.MustCompile("schema.json")
	checkDocument(t, schema, harness.Documentation(t, false))
	checkDocument(t, schema, harness.NewDocumentation(t, operator.Document()))
}

// Generators make types of schemas: required members have to be described beside it.
func TestRequiredMembersAreDescribed(t *testing.T) {
	for _, d := range []*harness.ApiDocumentation{harness.Documentation(t, false),
		harness.NewDocumentation(t, operator.Document())} {
		d.Walk(func(pointer string, v any) {
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
		d := harness.NewDocumentation(t, openapi.New(true, contact).Text())
		if got := d.At("/info/contact"); !reflect.DeepEqual(got, want) {
			t.Errorf("contact %q is %v", contact, got)
		}
		if got := d.At("/info/license/identifier"); got != "Apache-2.0" {
			t.Errorf("the license is %v", got)
		}
	}
}

// checkDocument checks a document against the schema of OpenAPI, and follows its references.
func checkDocument(t *testing.T, schema *jsonschema.Schema, d *harness.ApiDocumentation) {
	t.Helper()
	if err := schema.Validate(d.Root); err != nil {
		t.Errorf("%#v", err)
	}
	ids := map[any]bool{}
	d.Operations(func(_, path, _ string, o map[string]any) {
		if id := o["operationId"]; id == nil || ids[id] {
			t.Errorf("%s: operationId %v is missing or not unique", path, id)
		} else {
			ids[id] = true
		}
	})
	used := map[string]bool{}
	d.Walk(func(pointer string, v any) {
		m, _ := v.(map[string]any)
		if to, ok := m["$ref"].(string); ok {
			used[to] = true
			if !strings.HasPrefix(to, "#/components/") || d.At(to[1:]) == nil {
				t.Errorf("%s: %s is nowhere", pointer, to)
			}
		}
	})
	for kind, all := range d.Root["components"].(map[string]any) {
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
	d := harness.Documentation(t, true)
	schemas, examples := 0, 0
	d.Walk(func(pointer string, v any) {
		m, _ := v.(map[string]any)
		if isSchema.MatchString(pointer) {
			schemas++
			all, _ := m["examples"].([]any)
			if x, ok := m["default"]; ok {
				all = append(all, x)
			}
			d.Check(pointer, nil) //nolint:errcheck // it must compile
			for _, x := range all {
				examples++
				if err := d.Check(pointer, x); err != nil {
					t.Errorf("%s: %v", pointer, err)
				}
			}
			return
		}
		if x, ok := m["example"]; ok && m["schema"] != nil {
			examples++
			if err := d.Check(pointer+"/schema", x); err != nil {
				t.Errorf("%s: %v", pointer, err)
			}
		}
		if m["schema"] == nil || m["examples"] == nil {
			return
		}
		for name := range m["examples"].(map[string]any) {
			examples++
			x := d.At(d.Follow(pointer+"/examples/"+name) + "/value")
			if err := d.Check(pointer+"/schema", x); err != nil {
				t.Errorf("%s, %s: %v", pointer, name, err)
			}
		}
	})
	if schemas < 100 || examples < 200 {
		t.Errorf("only %d schemas and %d examples were found", schemas, examples)
	}
}

func TestEveryRouteAndMethodIsDescribedOnceAndNothingElse(t *testing.T) {
	d := harness.Documentation(t, false)
	described := map[string]bool{}
	d.Operations(func(method, path, _ string, o map[string]any) {
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
	for route, list := range gateway.New(edge.Options{Log: harness.Quiet()}).Public().Table() {
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
			at, _ := d.At("/paths/" + harness.Escaped(path) + "/" +
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
	d := harness.Documentation(t, false)
	described := map[string]bool{}
	d.Operations(func(_, _, pointer string, o map[string]any) {
		for status := range o["responses"].(map[string]any) {
			examples, _ := d.At(d.Follow(pointer+"/responses/"+status) +
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
		body := harness.Must(jsonschema.UnmarshalJSON(bytes.NewReader(written)))
		if got := d.At("/components/examples/" + f.Name + "/value"); !reflect.DeepEqual(got, body) {
			t.Errorf("%s: described as %v, written as %s", f.Name, got, written)
		}
		if about := openapi.About(f); strings.Contains(f.Detail, "%s") != (about != "") {
			t.Errorf("%s: %q is described with %q", f.Name, f.Detail, about)
		}
		if retry := f.RetryAfter > 0 ||
			f == api.Throttled; retry && d.At(
			"/components/responses/"+harness.ResponseName(f.Status)+"/headers/Retry-After") == nil {
			t.Errorf("%s: Retry-After is not described", f.Name)
		}
		if f.Ours && d.At("/components/responses/"+harness.ResponseName(f.Status)+
			"/headers/X-Request-Id") == nil {
			t.Errorf("%s: X-Request-Id is not described", f.Name)
		}
	}
}

func TestTheBoundsOfAChartAreDescribedAsNotNegative(t *testing.T) {
	d, seen := harness.Documentation(t, false), 0
	at := "/paths/" + harness.Escaped("/api/charts/{pair}/{timeframe}/chart") + "/get/parameters"
	for i, p := range d.At(at).([]any) {
		if name := p.(map[string]any)["name"]; name != "since" && name != "until" {
			continue
		}
		seen++
		for v, good := range map[json.Number]bool{"0": true, "0.5": true, "1570599480": true,
			"-1": false, "-0.5": false} {
			if err := d.Check(fmt.Sprint(at, "/", i, "/schema"), v); (err == nil) != good {
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
	d := harness.Documentation(t, false)
	text := d.At("/components/securitySchemes/signature/description").(string)
	m := regexp.MustCompile(`demo-alice(amount=\S+)\n[^0-9]*\n *([0-9a-f]{64})$`).
		FindStringSubmatch(text)
	if m == nil {
		t.Fatal(text)
	}
	guide := d.At("/info/description").(string)
	if !strings.Contains(guide, "body='"+m[1]+"'") {
		t.Errorf("the guide signs something else than %s", m[1])
	}
	var set params.Set
	harness.Worked(t, set.ParseForm([]byte(m[1])))
	var v sign.Verifier
	if !sign.New([]byte("demo-alice-secret")).Verify(&v, []byte("demo-alice"), &set, []byte(m[1]),
		[]byte(m[2])) {
		t.Errorf("%s is no signature of %s", m[2], m[1])
	}
}

func TestTheDocumentIsServedBeforeThereIsAnEngine(t *testing.T) {
	do := harness.Bare(
		edge.Options{Limits: edge.Limits{PublicRate: edge.Rate{PerSecond: 1, Burst: 10}},
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
		if got := harness.HeaderOf(a, "X-RateLimit-Remaining"); got != strconv.Itoa(9-2*i) {
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
