package gateway

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/valyala/fasthttp"

	"exchange/gateway/edge"
	"exchange/gateway/operator"
)

// An operatorDocumentation is the document of the operator's API. Its schemas of objects allow only
// the named members. Any goroutine may use it.
type operatorDocumentation struct {
	*apiDocumentation
	mu       sync.Mutex
	compiled map[string]*jsonschema.Schema // by pointer
	seen     map[string]bool               // operations that have answered 200
}

// operatorDocument has the document that all answers to operators are checked against.
var operatorDocument = sync.OnceValue(func() *operatorDocumentation {
	root, err := jsonschema.UnmarshalJSON(strings.NewReader(string(operator.Document())))
	if err != nil {
		panic(err)
	}
	d := &operatorDocumentation{apiDocumentation: &apiDocumentation{root: root.(map[string]any),
		compiler: jsonschema.NewCompiler()}, compiled: map[string]*jsonschema.Schema{},
		seen: map[string]bool{}}
	d.walk(func(_ string, v any) {
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

// fits checks an answer against the document, and an executed request.
func (d *operatorDocumentation) fits(t testing.TB, method, address, body string, a answer) {
	t.Helper()
	path, query, _ := strings.Cut(address, "?")
	path = strings.TrimSuffix(path, "/")
	if !strings.HasPrefix(path, "/operator/v1/") || method == "HEAD" || a.status == 0 {
		return
	}
	operation := "/paths/" + escaped(path) + "/" + strings.ToLower(method)
	at := d.follow(operation + "/responses/" + strconv.Itoa(a.status))
	if d.at(operation) == nil {
		at = "/components/responses/" + responseName(a.status)
	}
	kind, _, _ := strings.Cut(string(a.header.ContentType()), ";")
	at += "/content/" + escaped(kind)
	if d.at(at) == nil {
		t.Errorf("%s %s: %d of %s is not described: %.300s", method, address, a.status, kind,
			a.body)
		return
	}
	switch kind {
	case jsonMedia:
		d.holds(t, method+" "+address, at+"/schema", a.body)
	case "application/x-ndjson":
		for line := range strings.Lines(a.body) {
			d.holds(t, method+" "+address, at+"/schema", line)
		}
	}
	if a.status == 200 {
		d.asked(t, operation, query, body)
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

// asked checks an executed request against the document.
func (d *operatorDocumentation) asked(t testing.TB, operation, query, body string) {
	t.Helper()
	d.mu.Lock()
	d.seen[operation] = true
	d.mu.Unlock()
	values, _ := url.ParseQuery(query)
	list, _ := d.at(operation + "/parameters").([]any)
	for name := range values {
		if !slices.ContainsFunc(list, func(p any) bool {
			return p.(map[string]any)["name"] == name
		}) {
			t.Errorf("%s: the parameter %s is not described", operation, name)
		}
	}
	var sent map[string]any
	if d.at(operation+"/requestBody") == nil || json.Unmarshal([]byte(body), &sent) != nil ||
		sent == nil {
		return
	}
	plain := map[string]any{} // case does not matter, and null is as if it were left out
	for name, v := range sent {
		if v != nil {
			plain[strings.ToLower(name)] = v
		}
	}
	text := must(json.Marshal(plain))
	d.holds(t, operation, operation+"/requestBody/content/"+escaped(jsonMedia)+"/schema",
		string(text))
}

// bodies visits each operation with a body, with the names of the body's members.
func (d *operatorDocumentation) bodies(visit func(path string, members []string)) {
	d.operations(func(method, path, pointer string, _ map[string]any) {
		schema := d.follow(pointer + "/requestBody/content/" + escaped(jsonMedia) + "/schema")
		if method != "POST" {
			return
		}
		var members []string
		all, _ := d.at(schema + "/properties").(map[string]any)
		for name := range all {
			members = append(members, name)
		}
		slices.Sort(members)
		visit(path, members)
	})
}

// A failureCounter counts the failures of a checker that is tried itself.
type failureCounter struct {
	testing.TB
	failures int
}

func (c *failureCounter) Errorf(string, ...any) { c.failures++ }

func TestAnswersOutsideTheOperatorsDocumentAreFound(t *testing.T) {
	const row = `{"accounts":[{"account":"a","id":1,"email":"","frozen":false`
	for body, failures := range map[string]int{
		`{"accounts":[]}`: 0, row + `}],"next":1}`: 0,
		row + `,"x":1}]}`: 1, `{"accounts":[],"x":1}`: 1, // additional members
		`{"accounts":[{"account":"a","id":1,"email":""}]}`: 1, `{}`: 1, // missing ones
		`{"accounts":null}`: 1, `{"accounts":[],"next":1.5}`: 1, // other types
		`{"accounts":[{"account":"a","id":"1","email":"","frozen":false}]}`: 1,
		`{"error":"wrong"}`: 1, `{"accounts":[]`: 1,
	} {
		c, a := &failureCounter{TB: t}, answer{200, new(fasthttp.ResponseHeader), body}
		a.header.SetContentType(jsonMedia)
		operatorDocument().fits(c, "GET", "/operator/v1/accounts", "", a)
		if c.failures != failures {
			t.Errorf("%s: %d failures", body, c.failures)
		}
	}
	for _, ask := range [][3]string{{"GET", "/operator/v1/accounts?x=1"}, // an additional parameter
		{"POST", "/operator/v1/accounts/freeze", `{"account":"a","on":1}`}} {
		c := &failureCounter{TB: t}
		path, query, _ := strings.Cut(ask[1], "?")
		operatorDocument().asked(c, "/paths/"+escaped(path)+"/"+strings.ToLower(ask[0]), query,
			ask[2])
		if c.failures != 1 {
			t.Errorf("%s: %d failures", ask, c.failures)
		}
	}
}

func TestTheOperatorsDocumentHasTheRoutesAndNoOther(t *testing.T) {
	d := newDocumentation(t, operator.Document())
	var described []string
	d.operations(func(method, path, _ string, o map[string]any) {
		described = append(described, method+" "+path)
		for _, must := range []string{"summary", "description", "tags", "responses"} {
			if o[must] == nil {
				t.Errorf("%s %s has no %s", method, path, must)
			}
		}
		if (method == "POST") != (o["requestBody"] != nil) {
			t.Errorf("%s %s: body %v", method, path, o["requestBody"])
		}
	})
	if slices.Sort(described); !slices.Equal(described, operator.Routes()) {
		t.Errorf("described are %q, routes are %q", described, operator.Routes())
	}
}

func TestTheOperatorsDocumentIsServed(t *testing.T) {
	g := New(edge.Options{Log: quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10, Connections: 10,
		OperatorToken: operatorToken})
	ask := asOperator(t, g) // before there is an engine
	a := ask("GET", operator.DocumentPath, "")
	var want bytes.Buffer
	if err := json.Compact(&want, operator.Document()); err != nil || a.status != 200 ||
		string(a.header.ContentType()) != jsonMedia || a.body != want.String()+"\n" {
		t.Errorf("%d %v, another document is served: %.200s", a.status, err, a.body)
	}
	ask("GET", operator.DocumentPath, "", "Authorization: Bearer x").is(t, 401, "without the token")
}

// Handlers take the documented members, and each of them refuses any other.
func TestTheOperatorsBodiesHaveTheMembersOfTheDocument(t *testing.T) {
	h := newHarness(t, nil)
	ask := asOperator(t, h.gateway)
	operatorDocument().bodies(func(path string, members []string) {
		for _, name := range append(members, "unheard_of") {
			a := ask("POST", path, `{"`+name+`":null}`)
			if unknown := strings.Contains(a.body, "unknown field"); unknown != (name ==
				"unheard_of") {
				t.Errorf("%s %s: %d %s", path, name, a.status, a.body)
			}
		}
	})
}

func TestExamplesOfRefusalsOfOperatorsAreTrue(t *testing.T) {
	h := newHarness(t, nil)
	ask := asOperator(t, h.gateway)
	for _, route := range operator.Routes() {
		method, path, _ := strings.Cut(route, " ")
		for _, x := range operator.RefusalsOf(route) {
			query, body := "", x.Ask
			if method == "GET" {
				query, body = "?"+x.Ask, ""
			}
			says(t, route+" "+x.Ask, ask(method, path+query, body), 400, refusal(x.Text))
		}
	}
}
