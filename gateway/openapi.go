package gateway

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"exchange/gateway/api"
	"exchange/gateway/encode"
)

// The OpenAPI document of the public API, for programs and for the page at /docs. It is made when
// the gateway is, from three things that cannot drift apart from what the gateway does: the table
// of routes, which says what is private, limited and under which permission; the catalogue of
// failures; and one description for each route and method, which has the words, the parameters and
// the shape of the answer. Tests hold the answers of a running exchange against it.

// An apiDescription is one operation of the document: a route's method. What follows from the route
// itself is not repeated here.
type apiDescription struct {
	method, path string // as in the table of routes
	id, tag      string
	summary      string // a few words for lists
	text         string // Markdown

	parameters []apiParameter // of the path and the query
	body       string         // the schema of a POST's body, by name

	status  int    // of success
	success string // what is in the answer
	answer  any    // its schema
	kind    string // its media type; "": JSON
	headers []string
	cached  bool // 304 is possible

	refusals []apiRefusal   // 400 with other bodies than a failure's
	failures []*api.Failure // beyond those that follow from the route
}

// An apiRefusal is an example of 400 that the catalogue does not have.
type apiRefusal struct {
	name string
	body any
}

// An apiParameter is one parameter of a path or a query.
type apiParameter struct {
	name, in, text string
	example        any // of a path's; every path's has one
	schema         object
}

// The operations, in the order in which readers want them.
func apiDescriptions() []apiDescription {
	var all []apiDescription
	for _, part := range [][]apiDescription{marketDescriptions(), accountDescriptions(),
		orderDescriptions(), withdrawDescriptions(), serviceDescriptions()} {
		all = append(all, part...)
	}
	return all
}

// A document is an encoded one.
type document struct {
	body []byte
	page func() *packedPage // packed when a client asks for the first time
}

// newDocument describes the routes.
func newDocument(routes map[string]*endpoint) *document {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(apiDocument(routes)); err != nil {
		panic("BUG: the OpenAPI document cannot be encoded: " + err.Error())
	}
	body := bytes.TrimSpace(b.Bytes())
	return &document{body, sync.OnceValue(func() *packedPage { return newPage(jsonMedia, body) })}
}

func apiDocument(routes map[string]*endpoint) object {
	var paths object
	at := map[string]int{}
	for _, d := range apiDescriptions() {
		e := routes[d.path]
		if e == nil && isDocs(d.path) {
			continue // it is switched off
		}
		if e == nil {
			panic("BUG: " + d.path + " is described and is no route")
		}
		path := d.documentPath()
		n, known := at[path]
		if !known {
			n = len(paths)
			at[path] = n
			paths = append(paths, member{path, object{}})
		}
		operations := paths[n].value.(object)
		paths[n].value = append(operations, member{strings.ToLower(d.method), d.operation(e)})
	}
	return object{
		{"openapi", "3.1.0"},
		{"info", object{{"title", "Exchange API"}, {"version", "1"},
			{"description", strings.TrimSpace(apiGuide)}}},
		{"servers", []object{{{"url", "/"},
			{"description", "The exchange that serves this document."}}}},
		{"tags", apiTags()},
		{"paths", paths},
		{"components", object{
			{"schemas", apiSchemas()},
			{"responses", sharedResponses()},
			{"headers", apiHeaders()},
			{"examples", failureExamples()},
			{"securitySchemes", apiSecurity()},
		}},
	}
}

//go:embed openapi.md
var apiGuide string // what a reader must know before any operation

// documentPath is the path as clients are told to write it: those of version 1 end with a slash.
// All are answered with and without.
func (d *apiDescription) documentPath() string {
	if strings.HasPrefix(d.path, "/api/v1/") {
		return d.path + "/"
	}
	return d.path
}

func (d *apiDescription) operation(e *endpoint) object {
	o := object{{"operationId", d.id}, {"tags", []string{d.tag}}, {"summary", d.summary},
		{"description", d.text + "\n\n" + d.access(e)}}
	if len(d.parameters) > 0 {
		list := make([]object, 0, len(d.parameters))
		for _, p := range d.parameters {
			one := object{{"name", p.name}, {"in", p.in}, {"description", p.text}}
			if p.in == "path" {
				one = append(one, member{"required", true}, member{"example", p.example})
			}
			list = append(list, append(one, member{"schema", p.schema}))
		}
		o = append(o, member{"parameters", list})
	}
	if d.body != "" {
		content := object{{"schema", reference("schemas", d.body)}}
		o = append(o, member{"requestBody",
			object{{"required", true}, {"content",
				object{{jsonMedia, content}, {formMedia, content}}}}})
	}
	if !e.Private {
		o = append(o, member{"security", []object{}}) // none, whatever is said elsewhere
	} else {
		o = append(o, member{"security",
			[]object{{{"key", []string{}}, {"signature", []string{}}, {"nonce", []string{}}}}})
	}
	return append(o, member{"responses", d.responses(e)})
}

// access says who may ask, and at which other address.
func (d *apiDescription) access(e *endpoint) string {
	var s string
	switch {
	case e.Private:
		s = "Private: signed, with a key of the permission `" + api.PermissionName(e.Permission) +
			"`."
	case e.Probe:
		s = "Public, with a limit of its own."
	default:
		s = "Public."
	}
	if e.Early {
		s += " Answers before the exchange has started, too."
	}
	if slashed := d.documentPath(); strings.HasSuffix(slashed, "/") {
		return s + " The last slash may be left out."
	}
	return s + " A slash at the end changes nothing."
}

const (
	jsonMedia = "application/json"
	formMedia = "application/x-www-form-urlencoded"
)

// rateHeaders are those of answers whose rate is limited.
var rateHeaders = []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}

// usualHeaders are those of every answer that is no failure.
var usualHeaders = append([]string{"Cache-Control"}, rateHeaders...)

func (d *apiDescription) responses(e *endpoint) object {
	kind := d.kind
	if kind == "" {
		kind = jsonMedia
	}
	good := object{{"description", d.success}}
	if names := slices.Concat(d.headers, usualHeaders); len(names) > 0 {
		good = append(good, member{"headers", headerReferences(names)})
	}
	all := object{{strconv.Itoa(d.status),
		append(good, member{"content", object{{kind, object{{"schema", d.answer}}}}})}}
	if d.cached {
		all = append(all, member{"304",
			object{{"description", "What the client has, by its ETag, is still so."},
				{"headers", headerReferences(slices.Concat([]string{"ETag"}, usualHeaders))}}})
	}
	return append(all, d.failed(e)...)
}

func headerReferences(names []string) object {
	var o object
	for _, name := range names {
		o = append(o, member{name, reference("headers", name)})
	}
	return o
}

// openAPI serves the document.
func (g *Gateway) openAPI(r *request) { r.sendPage(g.document.page()) }

// An object is a JSON object whose members keep their order: that of the document is the order in
// which its readers see things.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(encode.Text(b, m.name), ':')
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		b = append(b, value...)
	}
	return append(b, '}'), nil
}

// reference points to a component.
func reference(kind, name string) object {
	return object{{"$ref", "#/components/" + kind + "/" + name}}
}
